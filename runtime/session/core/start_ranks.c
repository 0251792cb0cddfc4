/* Checks that enough ranks run; starts this host's ranks, or explains how to start ranks. */
#include "transport/meet/rendezvous.h"
#include "transport/world.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/signals.h"
#include "device/device.h"
#include "session/core/initial_strategy.h"
#include "session/core/program.h"
#include "session/data/boxes.h"
#include "session/data/named_values.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

/* Prints a space and a word, in quotes if a shell needs them. */
static void print_word(const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%^";
    bool quoted = !*word || word[strspn(word, plain)];
    fputs(quoted ? " '" : " ", stderr);
    for (; *word; word++) fprintf(stderr, *word == '\'' ? "'\\%c'" : "%c", *word);
    if (quoted) fputc('\'', stderr);
}

static void print_command(int ranks, int argc, char **argv) {
    fprintf(stderr, "hetu: run it by\n    heturun -n %d", ranks);
    print_word(argc > 0 ? argv[0] : program_invocation_name);
    for (int a = 1; a < argc; a++) print_word(argv[a]);
    fprintf(stderr, "\nor by mpirun or srun with %d ranks\n", ranks);
}

/* Returns the first image with the largest number of devices; NULL: there are no images. */
static const ht_image *largest_image(void) {
    const ht_image *largest = NULL;
    for (int i = 0; i < image_count(); i++)
        if (!largest || image_at(i)->image->device_count > largest->device_count)
            largest = image_at(i)->image;
    return largest;
}

static void explain_ranks(int ranks, int argc, char **argv) {
    const ht_image *image = largest_image();
    int devices = image ? image->device_count : 1;
    const char *name = image ? image->source : argc > 0 ? argv[0] : program_invocation_name;
    if (!image)
        fprintf(stderr,
                "hetu: %s was not compiled by hetucc, so it runs on one rank; mpirun started %d\n",
                name, ranks);
    else
        fprintf(stderr, "hetu: %s was compiled for %d device%s (%s%s), but %d rank%s\n", name,
                devices, devices == 1 ? "" : "s", image->strategy ? "strategy " : "no strategy",
                image->strategy ? image->strategy : "", ranks,
                ranks == 1 ? " runs it" : "s run it");
    if (devices > 1) print_command(devices, argc, argv);
    else fprintf(stderr, "hetu: run it without mpirun\n");
}

/* Returns an image with fewer devices than the largest; NULL: all have the same number. */
static const ht_image *smaller_image(void) {
    for (int i = 0; i < image_count(); i++)
        if (image_at(i)->image->device_count < largest_image()->device_count)
            return image_at(i)->image;
    return NULL;
}

/* ---- ranks that the program starts by itself ---- */

/* Ends the program if it would start more than 64 ranks and more than 8 per processor. */
static void check_room(int ranks) {
    enum { A_PROCESSOR = 8, ALWAYS = 64 };
    int most =
        A_PROCESSOR * session_node_cores() > ALWAYS ? A_PROCESSOR * session_node_cores() : ALWAYS;
    if (ranks <= most) return;
    ht_fail("the program was compiled for %d devices, and this host has %d processors; start it on "
            "several hosts by mpirun or srun, or for a trial here by heturun -n %d",
            ranks, session_node_cores(), ranks);
}

bool session_start_ranks(void) {
    const char *who = getenv("HETU_RANKS");
    bool external = who && !strcmp(who, "external");
    if (who && *who && !external)
        ht_fail("HETU_RANKS=%s is not known; HETU_RANKS=external leaves the start of ranks to a "
                "launcher",
                who);
    if (image_ranks() < 2 || smaller_image() || external || launch_present()) return false;
    check_room(image_ranks());
    local_ranks_start(image_ranks());
    return true;
}

/* Returns the memory of a device: activations, parameters and their states, in bytes. */
static int64_t device_bytes(const ht_image *image, int device) {
    if (image->role_of[device] < 0) return 0;
    int64_t bytes = schedule_bytes(&image->roles[image->role_of[device]],
                                   image->schedule[image->schedule_of[device]]);
    for (int p = 0; p < image->param_count; p++) {
        const ht_image_param *param = &image->params[p];
        bytes += boxes_count(param->pieces, device) * (int64_t)sizeof(float);
        for (int s = 0; s < param->state_count; s++)
            bytes += boxes_count(param->state[s], device) * (int64_t)sizeof(float);
    }
    return bytes;
}

/* Returns an image under HETU_STRATEGY; if that is not set or not compiled, the largest image. */
static const ht_image *first_image(void) {
    const char *word = initial_strategy_word(), *colon = word ? strrchr(word, ':') : NULL;
    int chosen = word ? image_under(0, colon ? colon + 1 : word) : -1;
    return chosen < 0 ? largest_image() : image_at(chosen)->image;
}

void session_print_ranks(void) {
    const ht_image *image = first_image();
    int threads = omp_get_max_threads();
    int64_t most = 0;
    for (int device = 0; device < image->device_count; device++) {
        int64_t bytes = device_bytes(image, device);
        most = bytes > most ? bytes : most;
    }
    double unit = most >= 1000000000 ? 1e9 : most >= 1000000 ? 1e6 : 1e3;
    fprintf(stderr,
            "hetu: strategy %s on %d ranks of this host, %d thread%s and at most %.1f %s each\n",
            image->strategy ? image->strategy : "-", world_size(), threads, threads == 1 ? "" : "s",
            (double)most / unit,
            unit == 1e9   ? "GB"
            : unit == 1e6 ? "MB"
                          : "KB");
}

static int ranks_needed(void) { return image_ranks() > 1 ? image_ranks() : 1; }

bool session_ranks_fit(void) {
    return (world_size() == ranks_needed() && !smaller_image()) ||
           (initial_strategy_word() && image_count());
}

void session_explain_ranks(int argc, char **argv) {
    const ht_image *smaller = smaller_image();
    if (smaller)
        fprintf(stderr,
                "hetu: %s was compiled for %d device%s, but %s for %d; compile them for as many\n",
                smaller->source, smaller->device_count, smaller->device_count == 1 ? "" : "s",
                largest_image()->source, ranks_needed());
    else explain_ranks(world_size(), argc, argv);
}

/* ---- several hosts ---- */

/* Returns the first image of several devices that hetucc compiled without --cluster; NULL: none. */
static const ht_image *find_flat(void) {
    for (int i = 0; i < image_count(); i++) {
        const ht_image *image = image_at(i)->image;
        if (image->device_count > 1 && image->strategy && !image->clustered) return image;
    }
    return NULL;
}

void session_tell_hosts(void) {
    const ht_image *image = find_flat();
    int size = world_size(), own[2] = {world_node_rank() == 0, world_node_size()};
    int hosts = 0, widest = 1;
    if (!image || size == 1) return;
    int(*all)[2] = memory_array(size, sizeof *all);
    world_gather(own, sizeof own, all);
    for (int rank = 0; rank < size; rank++) {
        hosts += all[rank][0];
        widest = all[rank][1] > widest ? all[rank][1] : widest;
    }
    free(all);
    if (world_rank() || hosts < 2 || widest < 2) return;
    fprintf(stderr,
            "hetu: the ranks are on %d hosts, but %s was compiled without --cluster: sums do not "
            "run inside each host first, and send up to twice the bytes between hosts. Measure the "
            "cluster with the launcher of this run, and compile for it:\n"
            "    hetu-profile cluster.json\n"
            "    hetucc --cluster=cluster.json --strategy=%s %s ...\n",
            hosts, image->source, image->strategy, image->source);
}

/* ---- variables of the environment ---- */

void session_check_variables(void) {
    static const char *const known[] = {
        "HETU_ATTENTION",  "HETU_BALANCE",    "HETU_CACHE",       "HETU_CHECK",
        "HETU_COPIES",     "HETU_DUMP",       "HETU_GRAPH",       "HETU_HOSTS",
        "HETU_LOCAL_RANK", "HETU_LOCAL_SIZE", "HETU_NAN",         "HETU_NCCL",
        "HETU_NODE",       "HETU_NVTX",       "HETU_PRODUCTS",    "HETU_PROFILE",
        "HETU_RANK",       "HETU_RANKS",      "HETU_RENDEZVOUS",  "HETU_RUNTIME_CACHE",
        "HETU_SIZE",       "HETU_SLOT",       "HETU_STRATEGY",    "HETU_STRATEGY_DIGEST",
        "HETU_TIMEOUT",    "HETU_TRACE",      "HETU_TRACE_STEPS", "HETU_TUNE",
        "HETU_VERBOSE"};
    enum { LIKELY = 2, SHORT = 4, ROOM = 64 };
    for (char **entry = environ; *entry; entry++) {
        char name[ROOM];
        const char *closest = NULL;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
        if (strncmp(name, "HETU_", 5)) continue;
        // A short name may differ in one letter only: HETU_OWN must not match HETU_NAN.
        int least = (strlen(name + 5) > SHORT ? LIKELY : 1) + 1;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            int letters = letters_between(name, known[i]);
            if (letters >= least) continue;
            least = letters;
            closest = known[i];
        }
        if (closest && strcmp(name, closest))
            fprintf(stderr, "hetu: %s is not known; did you mean %s?\n", name, closest);
    }
}

void session_leave(int status) {
    told_close();
    world_close();
    exit(status);
}

void session_take_device(void) {
    const char *missing = device_open();
    int first = world_least(missing ? world_rank() : world_size());
    if (first == world_size()) {
        device_connect();
        return;
    }
    if (first == world_rank()) fprintf(stderr, "hetu: %s\n", missing);
    session_leave(missing ? FAIL_DEVICE : FAIL_PROGRAM);
}
