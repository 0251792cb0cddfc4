/* Times common conversions ("textbook") and the plain MPI calls, on four ranks of one machine:
 *
 *     mpirun -np 4 textbook [SECONDS]
 *
 * A tensor's largest piece has 4 KiB or 16 MiB. Two ways alternate for SECONDS (default 1): the
 * MPI call, with a copy of the piece before or after it where pieces are strided; and the run-time
 * library with the planner's plan.
 *
 * A time lasts from the first rank's begin to the last rank's end, by a shared clock; the shortest
 * counts, since disturbances only add time. Where the library takes more than 1.1 times as long,
 * the measurement continues for up to ten times SECONDS. Rank 0 prints a line for each conversion:
 * bytes, microseconds of MPI and of the library, their ratio, the name. The exit status is 1 when a
 * ratio stays above 1.1. */
#include <hetu/reshard.h>

#include "reshard/plan.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS = 4, SMALL_BYTES = 4 << 10, LARGE_BYTES = 16 << 20, ALIGNMENT = 64 };

/* A sample takes about SAMPLE_SECONDS; short conversions run several times in it. */
enum { MOST_REPEATS = 100, LEAST_SAMPLES = 8, WARM_UPS = 3, PATIENCE = 10 };
static const double SAMPLE_SECONDS = 5e-4, MOST_RATIO = 1.1;

/* The buffer of a rank whose piece is strided, so that the MPI call needs a packed copy. */
typedef enum Strided { NOT_STRIDED, SENT_STRIDED, RECEIVED_STRIDED } Strided;

typedef struct Job Job;

/* A conversion, its MPI call, and the tensor's size as a multiple of a rank's largest piece. */
typedef struct Textbook {
    const char *name, *from, *to;
    void (*call)(const Job *job, const float *from, float *to);
    bool rooted; // all strided pieces are on one rank
    Strided strided;
    int whole;
} Textbook;

/* A conversion at one size. */
struct Job {
    const Textbook *textbook;
    int rank;
    int64_t piece, rows, columns; // elements of the largest piece, and extents of the tensor
    float *from, *to, *packed;    // (piece); packed: copy of a strided piece for the MPI call
    void *scratch;
    const ht_reshard *plan;
};

/* ---- the plain calls ---- */

static int part(const Job *job) { return (int)job->piece / RANKS; }

static void all_reduce(const Job *job, const float *from, float *to) {
    MPI_Allreduce(from, to, (int)job->piece, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(const Job *job, const float *from, float *to) {
    MPI_Reduce_scatter_block(from, to, part(job), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void all_gather(const Job *job, const float *from, float *to) {
    MPI_Allgather(from, part(job), MPI_FLOAT, to, part(job), MPI_FLOAT, MPI_COMM_WORLD);
}

static void all_to_all(const Job *job, const float *from, float *to) {
    MPI_Alltoall(from, part(job), MPI_FLOAT, to, part(job), MPI_FLOAT, MPI_COMM_WORLD);
}

/* Broadcasts from rank 0, which also copies its own piece to `to`. */
static void broadcast(const Job *job, const float *from, float *to) {
    if (!job->rank) memcpy(to, from, sizeof(float) * (size_t)job->piece);
    MPI_Bcast(to, (int)job->piece, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void reduce(const Job *job, const float *from, float *to) {
    MPI_Reduce(from, to, (int)job->piece, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void gather(const Job *job, const float *from, float *to) {
    MPI_Gather(from, part(job), MPI_FLOAT, to, part(job), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void scatter(const Job *job, const float *from, float *to) {
    MPI_Scatter(from, part(job), MPI_FLOAT, to, part(job), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static const Textbook textbooks[] = {
    {"all-reduce", "[0-3]{sum:4}", "[0-3]{dup:4}", all_reduce, false, NOT_STRIDED, 1},
    {"reduce-scatter", "[0-3]{sum:4}", "[0-3]{0:4}", reduce_scatter, false, NOT_STRIDED, 1},
    {"reduce-scatter, strided", "[0-3]{sum:4}", "[0-3]{1:4}", reduce_scatter, false, SENT_STRIDED,
     1},
    {"all-gather", "[0-3]{0:4}", "[0-3]{dup:4}", all_gather, false, NOT_STRIDED, 1},
    {"all-gather, strided", "[0-3]{1:4}", "[0-3]{dup:4}", all_gather, false, RECEIVED_STRIDED, 1},
    {"all-to-all, rows to columns", "[0-3]{0:4}", "[0-3]{1:4}", all_to_all, false, SENT_STRIDED,
     RANKS},
    {"all-to-all, columns to rows", "[0-3]{1:4}", "[0-3]{0:4}", all_to_all, false, RECEIVED_STRIDED,
     RANKS},
    {"broadcast", "[0]{}", "[0-3]{dup:4}", broadcast, true, NOT_STRIDED, 1},
    {"reduce", "[0-3]{sum:4}", "[0]{}", reduce, true, NOT_STRIDED, 1},
    {"gather", "[0-3]{0:4}", "[0]{}", gather, true, NOT_STRIDED, 1},
    {"gather, strided", "[0-3]{1:4}", "[0]{}", gather, true, RECEIVED_STRIDED, 1},
    {"scatter", "[0]{}", "[0-3]{0:4}", scatter, true, NOT_STRIDED, 1},
    {"scatter, strided", "[0]{}", "[0-3]{1:4}", scatter, true, SENT_STRIDED, 1},
};

/* ---- jobs ---- */

static const Layout *read_layout(Arena *arena, const char *text) {
    Diag *diag = diag_create(arena, stderr);
    diag_source(diag, "layout", text);
    const Layout *layout = layout_parse_text(arena, diag, (Position){"layout", 1, 1}, text);
    diag_finish(diag);
    if (!layout) exit(1);
    return layout;
}

static void *buffer(Arena *arena, size_t bytes) {
    char *memory = arena_alloc(arena, bytes + ALIGNMENT);
    memset(memory, 0, bytes + ALIGNMENT);
    return memory + ALIGNMENT - (uintptr_t)memory % ALIGNMENT;
}

/* Returns the conversion of a tensor whose largest piece has `bytes`. The tensor has four times as
 * many columns as rows. */
static Job make_job(Arena *arena, const Textbook *textbook, int64_t bytes, int rank) {
    Job job = {
        .textbook = textbook, .rank = rank, .piece = bytes / (int64_t)sizeof(float), .rows = 1};
    int64_t elements = job.piece * textbook->whole;
    while (job.rows * job.rows * RANKS < elements) job.rows *= 2;
    job.columns = elements / job.rows;
    const int64_t extents[] = {job.rows, job.columns};
    const Conversion conversion = {(Shape){2, extents}, HT_F32, read_layout(arena, textbook->from),
                                   read_layout(arena, textbook->to)};
    job.plan = plan_lowered(arena, reshard_plan(arena, NULL, &conversion), textbook->name);
    job.from = buffer(arena, (size_t)bytes);
    job.to = buffer(arena, (size_t)bytes);
    job.packed = buffer(arena, (size_t)bytes);
    job.scratch = buffer(arena, (size_t)ht_reshard_scratch(job.plan, rank));
    return job;
}

/* ---- the two ways ---- */

/* Copies the piece between its rows and four packed blocks of columns. */
static void copy_piece(const Job *job, bool pack, float *stored, float *packed) {
    int64_t run = job->columns / RANKS, rows = job->piece / job->columns;
    for (int64_t block = 0; block < RANKS; block++)
        for (int64_t row = 0; row < rows; row++) {
            float *piece = stored + row * job->columns + block * run,
                  *there = packed + (block * rows + row) * run;
            memcpy(pack ? there : piece, pack ? piece : there, sizeof(float) * (size_t)run);
        }
}

static void run_plain(const Job *job) {
    const Textbook *textbook = job->textbook;
    Strided strided = textbook->rooted && job->rank ? NOT_STRIDED : textbook->strided;
    if (strided == SENT_STRIDED) copy_piece(job, true, job->from, job->packed);
    textbook->call(job, strided == SENT_STRIDED ? job->packed : job->from,
                   strided == RECEIVED_STRIDED ? job->packed : job->to);
    if (strided == RECEIVED_STRIDED) copy_piece(job, false, job->to, job->packed);
}

static void run_plan(const Job *job) {
    ht_reshard_run(job->plan, job->rank, job->from, job->to, job->scratch);
}

static void (*const ways[])(const Job *job) = {run_plain, run_plan};

enum { WAYS = sizeof ways / sizeof *ways };

/* ---- times ---- */

/* Returns the machine's clock in seconds; MPI_Wtime starts at another moment in each rank. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the seconds of one run, the mean of `repeats` runs; the same value on all ranks. */
static double take_sample(const Job *job, int way, int repeats) {
    double span[2];
    MPI_Barrier(MPI_COMM_WORLD);
    span[0] = -now();
    for (int i = 0; i < repeats; i++) ways[way](job);
    span[1] = now();
    MPI_Allreduce(MPI_IN_PLACE, span, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (span[0] + span[1]) / repeats;
}

static int choose_repeats(const Job *job) {
    double seconds = 0;
    for (int i = 0; i < WARM_UPS; i++)
        for (int way = 0; way < WAYS; way++) seconds = take_sample(job, way, 1);
    return (int)fmin(MOST_REPEATS, 1 + SAMPLE_SECONDS / seconds);
}

/* Finds the shortest time of both ways, in alternating samples for `seconds`, or longer while their
 * ratio is too large. */
static void find_shortest(const Job *job, double seconds, double *shortest) {
    int repeats = choose_repeats(job);
    double spent = 0;
    for (int way = 0; way < WAYS; way++) shortest[way] = INFINITY;
    for (int count = 0; count < LEAST_SAMPLES || spent < seconds ||
                        (shortest[1] > MOST_RATIO * shortest[0] && spent < PATIENCE * seconds);
         count++)
        for (int k = 0; k < WAYS; k++) {
            int way = (count + k) % WAYS;
            double sample = take_sample(job, way, repeats);
            spent += sample * repeats;
            shortest[way] = fmin(shortest[way], sample);
        }
}

/* Measures a conversion, prints its line, returns on all ranks if the library is fast enough. */
static bool measure(const Textbook *textbook, int64_t bytes, double seconds, int rank) {
    Arena *arena = arena_create();
    Job job = make_job(arena, textbook, bytes, rank);
    double shortest[WAYS];
    find_shortest(&job, seconds, shortest);
    if (!rank)
        printf("%9lld %10.1f %10.1f %6.3f  %s\n", (long long)bytes, 1e6 * shortest[0],
               1e6 * shortest[1], shortest[1] / shortest[0], textbook->name);
    fflush(stdout);
    arena_destroy(arena);
    return shortest[1] <= MOST_RATIO * shortest[0];
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != RANKS) {
        fprintf(stderr, "textbook needs %d ranks: mpirun -np %d textbook\n", RANKS, RANKS);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    bool good = true;
    for (int large = 0; large < 2; large++)
        for (size_t i = 0; i < sizeof textbooks / sizeof *textbooks; i++)
            good = measure(&textbooks[i], large ? LARGE_BYTES : SMALL_BYTES, seconds, rank) && good;
    MPI_Finalize();
    return !good;
}
