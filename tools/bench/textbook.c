/* Times the textbook's conversions beside the plain MPI calls, on four ranks:
 *
 *     mpirun -np 4 textbook [SECONDS]
 *
 * Each conversion is measured on tensors whose largest piece has 4 KiB and 16 MiB. The plain call, the run-time library's conversion by the planner's plan, and, where
 * pieces are strided, one copy of the piece take turns for SECONDS (default 2) a conversion, so that whatever else the machine does meets all of them. A time is from when
 * the first rank begins until the last one is done; all ranks are on one machine, whose clock they share. Rank 0 prints a line a conversion: name, bytes, microseconds of the plain call, of the copy and of the conversion, and the conversion over the
 * sum of the other two: by medians and by the shortest times.
 */
#include "layout/plan.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, SMALL_BYTES = 4 << 10, LARGE_BYTES = 16 << 20, SMALL_REPEATS = 50, MOST_SAMPLES = 4000, LEAST_SAMPLES = 9, WARM_UPS = 3, ALIGNMENT = 64 };

/* What is strided: nothing, what a rank sends, or what it receives. */
typedef enum Strided { NOT_STRIDED, SENT_STRIDED, RECEIVED_STRIDED } Strided;

typedef enum Way { WAY_PLAIN, WAY_COPY, WAY_RUN, WAYS } Way;

typedef struct Job Job;

/* A conversion, the call that it stands beside, and how many elements the tensor has for each one of a rank's largest piece. */
typedef struct Textbook {
    const char *name, *from, *to;
    void (*plain)(const Job *job);
    Strided strided;
    int whole;
} Textbook;

/* A conversion at one size. */
struct Job {
    const Textbook *textbook;
    int rank;
    int64_t piece, rows, columns; // elements of the largest piece; of the tensor (rows, columns)
    float *from, *to, *packed;    // (piece)
    void *scratch;
    const ht_reshard *plan;
};

/* ---- the plain calls ---- */

static int part(const Job *job) { return (int)job->piece / RANKS; }

static void plain_all_reduce(const Job *job) { MPI_Allreduce(job->from, job->to, (int)job->piece, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static void plain_reduce_scatter(const Job *job)
{
    MPI_Reduce_scatter_block(job->from, job->to, part(job), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void plain_all_gather(const Job *job)
{
    MPI_Allgather(job->from, part(job), MPI_FLOAT, job->to, part(job), MPI_FLOAT, MPI_COMM_WORLD);
}

static void plain_all_to_all(const Job *job)
{
    MPI_Alltoall(job->from, part(job), MPI_FLOAT, job->to, part(job), MPI_FLOAT, MPI_COMM_WORLD);
}

/* The root's own copy of what it sends is part of the conversion. */
static void plain_broadcast(const Job *job)
{
    if (!job->rank)
        memcpy(job->to, job->from, sizeof(float) * (size_t)job->piece);
    MPI_Bcast(job->to, (int)job->piece, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void plain_reduce(const Job *job) { MPI_Reduce(job->from, job->to, (int)job->piece, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }

static void plain_gather(const Job *job)
{
    MPI_Gather(job->from, part(job), MPI_FLOAT, job->to, part(job), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void plain_scatter(const Job *job)
{
    MPI_Scatter(job->from, part(job), MPI_FLOAT, job->to, part(job), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static const Textbook textbooks[] = {
    {"all-reduce", "[0-3]{sum:4}", "[0-3]{dup:4}", plain_all_reduce, NOT_STRIDED, 1},
    {"reduce-scatter", "[0-3]{sum:4}", "[0-3]{0:4}", plain_reduce_scatter, NOT_STRIDED, 1},
    {"reduce-scatter, strided", "[0-3]{sum:4}", "[0-3]{1:4}", plain_reduce_scatter, SENT_STRIDED, 1},
    {"all-gather", "[0-3]{0:4}", "[0-3]{dup:4}", plain_all_gather, NOT_STRIDED, 1},
    {"all-gather, strided", "[0-3]{1:4}", "[0-3]{dup:4}", plain_all_gather, RECEIVED_STRIDED, 1},
    {"all-to-all, rows", "[0-3]{0:4}", "[0-3]{1:4}", plain_all_to_all, SENT_STRIDED, RANKS},
    {"all-to-all, columns", "[0-3]{1:4}", "[0-3]{0:4}", plain_all_to_all, RECEIVED_STRIDED, RANKS},
    {"broadcast", "[0]{}", "[0-3]{dup:4}", plain_broadcast, NOT_STRIDED, 1},
    {"reduce", "[0-3]{sum:4}", "[0]{}", plain_reduce, NOT_STRIDED, 1},
    {"gather", "[0-3]{0:4}", "[0]{}", plain_gather, NOT_STRIDED, 1},
    {"gather, strided", "[0-3]{1:4}", "[0]{}", plain_gather, RECEIVED_STRIDED, 1},
    {"scatter", "[0]{}", "[0-3]{0:4}", plain_scatter, NOT_STRIDED, 1},
    {"scatter, strided", "[0]{}", "[0-3]{1:4}", plain_scatter, SENT_STRIDED, 1},
};

/* ---- jobs ---- */

static const Layout *read_layout(Arena *arena, const char *text)
{
    Diag *diag = diag_create(arena, stderr);
    diag_source(diag, "layout", text);
    const Layout *layout = layout_parse(arena, diag, (Position){"layout", 1, 1}, text);
    diag_finish(diag);
    if (!layout)
        exit(1);
    return layout;
}

static void *buffer(Arena *arena, size_t bytes)
{
    char *memory = arena_alloc(arena, bytes + ALIGNMENT);
    memset(memory, 0, bytes + ALIGNMENT);
    return memory + ALIGNMENT - (uintptr_t)memory % ALIGNMENT;
}

/* The conversion of a tensor whose largest piece has `bytes`. A row has four times as many columns as there are rows, so that strided runs are as long as the columns are
 * high. */
static Job make_job(Arena *arena, const Textbook *textbook, int64_t bytes, int rank)
{
    Job job = {.textbook = textbook, .rank = rank, .piece = bytes / (int64_t)sizeof(float), .rows = 1};
    int64_t elements = job.piece * textbook->whole;
    while (job.rows * job.rows * RANKS < elements)
        job.rows *= 2;
    job.columns = elements / job.rows;
    const int64_t extents[] = {job.rows, job.columns};
    const Plan *plan = reshard_plan(arena, NULL, (Shape){2, extents}, sizeof(float), read_layout(arena, textbook->from), read_layout(arena, textbook->to));
    job.plan = plan_lowered(arena, plan, HT_F32, textbook->name);
    job.from = buffer(arena, (size_t)bytes);
    job.to = buffer(arena, (size_t)bytes);
    job.packed = buffer(arena, (size_t)bytes);
    job.scratch = buffer(arena, (size_t)ht_reshard_scratch(job.plan, rank));
    return job;
}

/* Whether the rank has the strided side of the conversion: with a root, it alone. */
static bool has_strided(const Job *job)
{
    bool rooted = job->textbook->plain == plain_gather || job->textbook->plain == plain_scatter;
    return job->textbook->strided != NOT_STRIDED && (!rooted || !job->rank);
}

/* One copy of the piece between its storage, in rows, and four packed blocks of columns. */
static void copy_piece(const Job *job)
{
    if (!has_strided(job))
        return;
    int64_t run = job->columns / RANKS, rows = job->piece / job->columns;
    for (int64_t block = 0; block < RANKS; block++)
        for (int64_t row = 0; row < rows; row++) {
            float *stored = job->from + row * job->columns + block * run, *packed = job->packed + (block * rows + row) * run;
            if (job->textbook->strided == SENT_STRIDED)
                memcpy(packed, stored, sizeof(float) * (size_t)run);
            else
                memcpy(stored, packed, sizeof(float) * (size_t)run);
        }
}

static void act(const Job *job, Way way)
{
    switch (way) {
    case WAY_PLAIN: job->textbook->plain(job); break;
    case WAY_COPY: copy_piece(job); break;
    default: ht_reshard_run(job->plan, job->rank, job->from, job->to, job->scratch);
    }
}

/* ---- times ---- */

/* When a rank began and ended what it did in a sample. */
typedef struct Times {
    double begin[MOST_SAMPLES], end[MOST_SAMPLES];
} Times;

static void take_sample(const Job *job, Way way, int repeats, double *begin, double *end)
{
    MPI_Barrier(MPI_COMM_WORLD);
    *begin = MPI_Wtime();
    for (int i = 0; i < repeats; i++)
        act(job, way);
    *end = MPI_Wtime();
}

/* Whether all ranks go on; rank 0's clock decides. */
static bool goes_on(int sample, double until)
{
    int more = sample < LEAST_SAMPLES || (sample < MOST_SAMPLES && MPI_Wtime() < until);
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more;
}

static int compare_doubles(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Seconds of one act in each sample, ascending; in place of its begin. */
static double *sorted_seconds(Times *times, int count, int repeats)
{
    MPI_Allreduce(MPI_IN_PLACE, times->begin, count, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, times->end, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        times->begin[i] = (times->end[i] - times->begin[i]) / repeats;
    qsort(times->begin, (size_t)count, sizeof(double), compare_doubles);
    return times->begin;
}

/* Takes samples of all ways in turns, for `seconds`; their count is the result, and `seconds_of` gets the times of each way. */
static int take_samples(const Job *job, double seconds, double **seconds_of)
{
    static Times times[WAYS];
    int count = 0, repeats = job->piece * (int64_t)sizeof(float) <= SMALL_BYTES ? SMALL_REPEATS : 1;
    for (int i = 0; i < WARM_UPS; i++)
        for (int way = 0; way < WAYS; way++)
            take_sample(job, (Way)way, repeats, times[way].begin, times[way].end);
    for (double until = MPI_Wtime() + seconds; goes_on(count, until); count++)
        for (int k = 0; k < WAYS; k++) {
            int way = (count + k) % WAYS;
            take_sample(job, (Way)way, repeats, &times[way].begin[count], &times[way].end[count]);
        }
    for (int way = 0; way < WAYS; way++)
        seconds_of[way] = sorted_seconds(&times[way], count, repeats);
    return count;
}

static void measure(const Textbook *textbook, int64_t bytes, double seconds, int rank)
{
    Arena *arena = arena_create();
    Job job = make_job(arena, textbook, bytes, rank);
    double *times[WAYS];
    int count = take_samples(&job, seconds, times), middle = count / 2;
    const double *plain = times[WAY_PLAIN], *copy = times[WAY_COPY], *run = times[WAY_RUN];
    if (!rank)
        printf("%-24s %9lld %10.1f %10.1f %10.1f %6.3f %6.3f\n", textbook->name, (long long)bytes, 1e6 * plain[middle], 1e6 * copy[middle], 1e6 * run[middle],
               run[middle] / (plain[middle] + copy[middle]), run[0] / (plain[0] + copy[0]));
    arena_destroy(arena);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != RANKS) {
        fprintf(stderr, "textbook needs %d ranks: mpirun -np %d textbook\n", RANKS, RANKS);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    for (int large = 0; large < 2; large++)
        for (size_t i = 0; i < sizeof textbooks / sizeof *textbooks; i++) {
            measure(&textbooks[i], large ? LARGE_BYTES : SMALL_BYTES, seconds, rank);
            fflush(stdout);
        }
    MPI_Finalize();
    return 0;
}
