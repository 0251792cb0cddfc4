/* Runs a plan: reads pieces from files, converts them, and writes the results to files. */
#include "case.h"

#include "base/files.h"
#include "device/device.h"
#include "exchange/channel.h"
#include "session/core/session.h"
#include "transport/world.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void run_open(int *argc, char ***argv, int *rank, int *ranks) {
    // Hosts may be containers that share processors, which ranks must not keep while they wait.
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    world_open(argc, argv, WORLD_PLAIN);
    *rank = world_rank();
    *ranks = world_size();
    const char *missing = device_open();
    if (missing) ht_fail("%s", missing);
    device_connect();
}

void run_close(void) {
    device_close();
    world_close();
}

void run_threads(void) {
    session_set_threads();
    device_open();
}

/* Creates the file DEVICE.SUFFIX, or SUFFIX for a negative device, in a folder, which is created if
 * missing. Refuses links of other users. Ends the program with a message on failure. */
static FILE *make_file(const char *folder, int device, const char *suffix) {
    OpenFolder open;
    int error = folder_open(&open, folder);
    if (error) ht_fail("cannot write in %s: %s", folder, folder_error(error));
    Arena *arena = arena_create();
    const char *path = device < 0 ? arena_format(arena, "%s/%s", open.path, suffix)
                                  : arena_format(arena, "%s/%d.%s", open.path, device, suffix);
    int made = file_create(path);
    FILE *file = made < 0 ? NULL : fdopen(made, "w");
    if (!file) ht_fail("cannot write a file .%s in %s: %s", suffix, folder, strerror(errno));
    folder_close(&open);
    arena_destroy(arena);
    return file;
}

static void close_written(FILE *file, const char *folder) {
    if (fclose(file)) ht_fail("cannot write in %s: %s", folder, strerror(errno));
}

static void write_boxes(const Region *region, int device, const char *dump) {
    FILE *file = make_file(dump, device, "boxes");
    for (int b = 0; b < region->box_count; b++) {
        for (int d = 0; d < region->rank; d++)
            fprintf(file, "%s%lld:%lld", d ? "," : "", (long long)region->boxes[b].dim[d].lo,
                    (long long)region->boxes[b].dim[d].hi);
        fputc('\n', file);
    }
    close_written(file, dump);
}

static void write_data(void *data, size_t bytes, int device, const char *dump) {
    FILE *file = make_file(dump, device, "bin");
    void *host = device_map(data, (int64_t)bytes, DEVICE_READ);
    if (fwrite(host, 1, bytes, file) != bytes)
        ht_fail("cannot write in %s: %s", dump, strerror(errno));
    device_unmap(data, host, (int64_t)bytes, DEVICE_READ);
    close_written(file, dump);
}

/* Reads a device's piece of the source from a file, which must have exactly these bytes. */
static void read_data(void *data, size_t bytes, int device, const char *fill) {
    char path[PATH_MAX];
    const char *why;
    snprintf(path, sizeof path, "%.4000s/%d.bin", fill, device);
    FILE *file = file_read_input(path, &why);
    if (!file) ht_fail("cannot read %s: %s", path, why);
    void *host = device_map(data, (int64_t)bytes, DEVICE_WRITE);
    bool short_of = fread(host, 1, bytes, file) != bytes, more = !short_of && fgetc(file) != EOF;
    if (ferror(file)) ht_fail("cannot read %s/%d.bin: %s", fill, device, strerror(errno));
    if (short_of || more)
        ht_fail("%s/%d.bin is %s than the %zu bytes that device %d holds", fill, device,
                more ? "longer" : "shorter", bytes, device);
    device_unmap(data, host, (int64_t)bytes, DEVICE_WRITE);
    fclose(file);
}

/* Fills a buffer with NaN, so that elements which the conversion does not write are noticed. */
static void spoil_data(void *data, size_t bytes) {
    void *host = device_map(data, (int64_t)bytes, DEVICE_WRITE);
    memset(host, 0xff, bytes);
    device_unmap(data, host, (int64_t)bytes, DEVICE_WRITE);
}

static void write_traffic(const Set *set, const ht_reshard *plan, const char *folder) {
    FILE *file = make_file(folder, -1, "traffic.tsv");
    for (int i = 0; i < set->plan->device_count; i++)
        fprintf(file, "%d\t%lld\n", set->plan->devices[i],
                (long long)ht_reshard_received(plan, set->plan->devices[i]));
    close_written(file, folder);
}

/* ---- running ---- */

/* The elements that this rank holds of a case before and after the conversion, and their bytes. */
typedef struct Pieces {
    Region from, to;
    size_t from_bytes, to_bytes;
} Pieces;

static Pieces pieces_of(Arena *arena, const Case *conversion, int rank) {
    size_t element = (size_t)case_element(conversion);
    Pieces pieces = {.from = layout_region(arena, conversion->from, conversion->shape, rank),
                     .to = layout_region(arena, conversion->to, conversion->shape, rank)};
    pieces.from_bytes = (size_t)pieces.from.volume * element;
    pieces.to_bytes = (size_t)pieces.to.volume * element;
    return pieces;
}

/* Allocates the source and reads its values from `fill`. */
static void *make_source(const Pieces *pieces, int rank, const char *fill) {
    void *source = device_alloc((int64_t)pieces->from_bytes);
    if (pieces->from.member) read_data(source, pieces->from_bytes, rank, fill);
    return source;
}

static void *make_target(const Pieces *pieces) {
    void *target = device_alloc((int64_t)pieces->to_bytes);
    spoil_data(target, pieces->to_bytes);
    return target;
}

static void write_result(const Pieces *pieces, void *target, int rank, const char *dump) {
    if (!pieces->to.member) return;
    write_boxes(&pieces->to, rank, dump);
    write_data(target, pieces->to_bytes, rank, dump);
}

/* Runs the conversion from the sources to the targets. */
static void convert(const ht_reshard *plan, int rank, void *const *sources, void *const *targets) {
    void *scratch = device_alloc(ht_reshard_scratch(plan, rank));
    if (channel_of_device()->prepare)
        channel_of_device()->prepare(
            &(ChannelPlans){.count = 1, .plan = &plan, .queues = (const unsigned[]){0}});
    ht_reshard_run_all(plan, rank, (const void *const *)sources, targets, scratch);
    device_free(scratch);
}

void run_set(const Set *set, int rank, const Folders *folders, const char *folder) {
    Arena *arena = arena_create();
    const ht_reshard *plan = plan_lowered(arena, set->plan, set->label);
    Pieces *pieces = arena_array(arena, Pieces, set->count);
    void **sources = arena_array(arena, void *, set->count),
         **targets = arena_array(arena, void *, set->count);
    for (int i = 0; i < set->count; i++) {
        pieces[i] = pieces_of(arena, set->cases[i], rank);
        sources[i] = make_source(&pieces[i], rank, folders[i].fill);
        targets[i] = make_target(&pieces[i]);
    }
    convert(plan, rank, sources, targets);
    for (int i = 0; i < set->count; i++) {
        write_result(&pieces[i], targets[i], rank, folders[i].dump);
        device_free(sources[i]);
        device_free(targets[i]);
    }
    if (!rank) write_traffic(set, plan, folder);
    arena_destroy(arena);
}
