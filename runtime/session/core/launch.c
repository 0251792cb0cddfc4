/* Checks that enough ranks run, and sets the number of threads of each. */
#define _GNU_SOURCE
#include "transport/world.h"
#include "base/fail.h"
#include "base/signals.h"
#include "device/device.h"
#include "session/core/initial_strategy.h"

#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int node_cores(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : (int)cores;
}

/* Returns the number of cores on which this process may run. */
static int own_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? node_cores() : CPU_COUNT(&set);
}

void session_set_threads(void) {
    int threads = node_cores() / world_node_size();
    if (threads > own_cores()) threads = own_cores();
    if (threads < 1) threads = 1;
    if (getenv("OMP_NUM_THREADS")) threads = omp_get_max_threads();
    omp_set_num_threads(threads);
}

static void print_command(int ranks, int argc, char **argv) {
    fprintf(stderr, "hetu: run it by\n    mpirun");
    if (geteuid() == 0) fprintf(stderr, " --allow-run-as-root");
    if (ranks > node_cores()) fprintf(stderr, " --oversubscribe --mca mpi_yield_when_idle 1");
    fprintf(stderr, " -np %d %s", ranks, argc > 0 ? argv[0] : program_invocation_name);
    for (int a = 1; a < argc; a++) fprintf(stderr, " %s", argv[a]);
    fprintf(stderr, "\n");
}

/* Returns the image that needs the most ranks. */
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
    if (devices > 1)
        print_command(devices, argc, argv);
    else
        fprintf(stderr, "hetu: run it without mpirun\n");
}

/* Returns an image for fewer devices than another image; NULL if all need the same number. */
static const ht_image *smaller_image(void) {
    for (int i = 0; i < image_count(); i++)
        if (image_at(i)->image->device_count < largest_image()->device_count)
            return image_at(i)->image;
    return NULL;
}

void session_check_ranks(int argc, char **argv) {
    int needed = image_ranks() > 1 ? image_ranks() : 1;
    const ht_image *smaller = smaller_image();
    if ((world_size() == needed && !smaller) || (initial_strategy_word() && image_count())) return;
    if (world_rank() == 0 && smaller)
        fprintf(stderr,
                "hetu: %s was compiled for %d device%s, but %s for %d; compile them for as many\n",
                smaller->source, smaller->device_count, smaller->device_count == 1 ? "" : "s",
                largest_image()->source, needed);
    else if (world_rank() == 0)
        explain_ranks(world_size(), argc, argv);
    session_leave(1);
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
