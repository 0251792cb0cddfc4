#include "case.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool launched;

void run_open(int *argc, char ***argv, int *rank, int *ranks)
{
    *rank = 0;
    *ranks = 1;
    launched = getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK");
    if (!launched)
        return;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
}

void run_close(void)
{
    if (launched)
        MPI_Finalize();
}

static FILE *open_file(const char *folder, int device, const char *suffix, const char *mode)
{
    Arena *arena = arena_create();
    const char *path = device < 0 ? arena_format(arena, "%s/%s", folder, suffix) : arena_format(arena, "%s/%d.%s", folder, device, suffix);
    FILE *file = fopen(path, mode);
    if (!file)
        ht_fail("cannot open %s: %s", path, strerror(errno));
    arena_destroy(arena);
    return file;
}

static void close_written(FILE *file, const char *folder)
{
    if (fclose(file))
        ht_fail("cannot write in %s: %s", folder, strerror(errno));
}

/* A buffer, aligned as the run-time library asks. */
static void *buffer(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!memory)
        ht_fail("out of memory: %zu bytes", bytes);
    return memory;
}

static void write_boxes(const Region *region, int device, const char *dump)
{
    FILE *file = open_file(dump, device, "boxes", "w");
    for (int b = 0; b < region->box_count; b++) {
        for (int d = 0; d < region->rank; d++)
            fprintf(file, "%s%lld:%lld", d ? "," : "", (long long)region->boxes[b].dim[d].lo, (long long)region->boxes[b].dim[d].hi);
        fputc('\n', file);
    }
    close_written(file, dump);
}

static void write_data(const void *data, size_t bytes, int device, const char *dump)
{
    FILE *file = open_file(dump, device, "bin", "wb");
    if (fwrite(data, 1, bytes, file) != bytes)
        ht_fail("cannot write in %s: %s", dump, strerror(errno));
    close_written(file, dump);
}

static void write_traffic(const Case *conversion, const ht_reshard *plan, const char *dump)
{
    FILE *file = open_file(dump, -1, "traffic.tsv", "w");
    for (int i = 0; i < conversion->plan->device_count; i++)
        fprintf(file, "%d\t%lld\n", conversion->plan->devices[i], (long long)ht_reshard_received(plan, conversion->plan->devices[i]));
    close_written(file, dump);
}

void run_case(const Case *conversion, int rank, const char *fill, const char *dump)
{
    Arena *arena = arena_create();
    Region from = layout_region(arena, conversion->from, conversion->shape, rank), to = layout_region(arena, conversion->to, conversion->shape, rank);
    size_t element = (size_t)case_element(conversion), from_bytes = (size_t)from.volume * element, to_bytes = (size_t)to.volume * element;
    const ht_reshard *plan = plan_lowered(arena, conversion->plan, conversion->text);
    void *source = buffer(from_bytes), *target = buffer(to_bytes), *scratch = buffer((size_t)ht_reshard_scratch(plan, rank));
    if (from.member) {
        FILE *file = open_file(fill, rank, "bin", "rb");
        if (fread(source, 1, from_bytes, file) != from_bytes)
            ht_fail("%s/%d.bin is shorter than the %zu bytes that device %d holds", fill, rank, from_bytes, rank);
        fclose(file);
    }
    memset(target, 0xff, to_bytes);
    ht_reshard_run(plan, rank, source, target, scratch);
    mkdir(dump, 0777);
    if (to.member) {
        write_boxes(&to, rank, dump);
        write_data(target, to_bytes, rank, dump);
    }
    if (!rank)
        write_traffic(conversion, plan, dump);
    free(source);
    free(target);
    free(scratch);
    arena_destroy(arena);
}
