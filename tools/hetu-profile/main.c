/* hetu-profile: measures this machine and writes a cluster file.
 *
 *     mpirun -n RANKS hetu-profile CLUSTER.json
 *
 * Step 1 measures memory, messages, and collectives by size and group, as hetu-reshard --measure
 * does (measure.c; links of hosts: measure_hosts.c). Step 2 measures products, attention and
 * memory-bound operators on all ranks at once. Step 2 also measures a transformer layer (from
 * stacks of two depths), and the slowdown when computing and communication overlap. Step 3 fits
 * rates to some samples, checks the rates on the other samples, and prints the errors. Ranks have
 * as many threads as in a program. */
#include "case.h"
#include "computing.h"
#include "measure.h"

#include "support/tool.h"
#include "transport/world.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Time limit for measuring links, in seconds; all other measurements take about ten seconds. */
static const double LINKS_LIMIT = 75;

static double seconds_of_day(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- fitting ---- */

enum { SMALL = 1000 }; // a kernel with fewer operations takes as long as its launch

/* Fits the rates of a device class to the samples marked `fits`. The shortest time is the kernel
 * launch time. Products give a rate by size; other samples give the mean arithmetic rate. */
static void fit(Arena *arena, DeviceClass *class, const Sample *samples, int count) {
    Point *points = arena_array(arena, Point, count);
    double logarithms = 0;
    int products = 0, others = 0;
    class->start = INFINITY;
    for (int i = 0; i < count; i++)
        class->start = samples[i].fits ? fmin(class->start, samples[i].seconds) : class->start;
    for (int i = 0; i < count; i++) {
        const Sample *own = &samples[i];
        double net = fmax(own->seconds - class->start, own->seconds / 10);
        if (!own->fits || own->work.operations < SMALL) continue;
        if (own->work.product)
            points[products++] = (Point){own->work.operations, own->work.operations / net};
        else {
            logarithms += log(own->work.operations / net);
            others++;
        }
    }
    class->products[HT_F32] = (Curve){products, points};
    class->arithmetic = others ? exp(logarithms / others) : 0;
}

/* ---- the file ---- */

/* Adds the rates to class "rank" of a cluster file; false if it cannot be read or written. */
static bool extend_file(const char *path, const DeviceClass *class) {
    json_error_t error;
    json_t *cluster = json_load_file(path, 0, &error),
           *own = json_object_get(json_object_get(cluster, "classes"), "rank");
    if (!own) {
        json_decref(cluster);
        return false;
    }
    json_object_set_new(own, "start", json_real(class->start));
    json_object_set_new(own, "overlap", json_real(class->overlap));
    json_object_set_new(own, "arithmetic", json_real(class->arithmetic));
    json_object_set_new(own, "products",
                        json_pack("{s:o}", "f32", json_curve(&class->products[HT_F32])));
    bool good = !json_dump_file(cluster, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(cluster);
    return good;
}

/* ---- errors of the fit ---- */

static void print_samples(const DeviceClass *class, const Sample *samples, int count) {
    double worst = 0, sum = 0;
    int checked = 0;
    printf("%-12s %-24s %12s %12s %8s\n", "kernel", "shape", "measured s", "predicted s", "off");
    for (int i = 0; i < count; i++) {
        const Sample *own = &samples[i];
        double off = work_seconds(class, &own->work) / own->seconds - 1;
        char shape[64];
        int length = 0;
        for (int d = 0; d < 4 && own->shape[d]; d++)
            length += snprintf(shape + length, sizeof shape - (size_t)length, "%s%lld",
                               d ? " x " : "", (long long)own->shape[d]);
        printf("%-12s %-24s %12.3e %12.3e %+7.0f%%%s\n", own->what, shape, own->seconds,
               work_seconds(class, &own->work), 100 * off, own->fits ? " (fitted)" : "");
        if (!own->fits) {
            double factor = fmax(1 + off, 1 / (1 + off));
            worst = fmax(worst, factor);
            sum += log(factor);
            checked++;
        }
    }
    printf("of what was not fitted, a mean of %.2f times off, %.2f at most\n", exp(sum / checked),
           worst);
}

static void print_layer(const DeviceClass *class, double seconds, const Work *works, int count) {
    double predicted = 0;
    for (int k = 0; k < count; k++) predicted += work_seconds(class, &works[k]);
    printf("a layer, of two depths by difference: %.3e s, predicted %.3e s (%+.0f%%)\n", seconds,
           predicted, 100 * (predicted / seconds - 1));
}

/* ---- the command ---- */

static void profile(Arena *arena, const char *path) {
    enum { KERNELS = 16 };
    double begin = seconds_of_day(), layer;
    Work works[KERNELS];
    Sample *samples;
    int kernels, count = computing_samples(arena, &samples);
    DeviceClass class = {.name = "rank"};
    measure_cluster(path, LINKS_LIMIT);
    double communicated = seconds_of_day() - begin;
    show_progress("kernels");
    for (int i = 0; i < count; i++) samples[i].seconds = computing_seconds(&samples[i]);
    show_progress("a layer");
    layer = layer_seconds(works, KERNELS, &kernels);
    show_progress("computing beside communication");
    class.overlap = overlap_of_both();
    fit(arena, &class, samples, count);
    if (world_rank()) return;
    if (!extend_file(path, &class)) ht_fail("%s cannot be read and written again", path);
    Diag *diag = diag_create(arena, stderr);
    const Cluster *cluster = cluster_read(arena, diag, path);
    if (!cluster) ht_fail("%s is no cluster file", path);
    print_samples(cluster->devices[0].class, samples, count);
    print_layer(cluster->devices[0].class, layer, works, kernels);
    printf("overlap: computing and communicating at once take %.2f times as long as the longer "
           "alone\n",
           class.overlap);
    printf("%s: %.0f s, of which %.0f s for memory and links\n", path, seconds_of_day() - begin,
           communicated);
}

int main(int argc, char **argv) {
    int rank, ranks;
    tool_begin("hetu-profile", argc, argv);
    tool_read_words(
        "CLUSTER.json",
        "Measures the ranks that mpirun or srun has started, two at least, into a cluster "
        "file.\vStart it as: mpirun -n RANKS hetu-profile CLUSTER.json",
        1, 1, argc, argv);
    Arena *arena = arena_create();
    run_open(&argc, &argv, &rank, &ranks);
    run_threads();
    profile(arena, argv[1]);
    run_close();
    arena_destroy(arena);
    return 0;
}
