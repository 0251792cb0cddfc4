/* A lower bound of a batch's step: the longest time T, found by bisection, in which a linear or
 * integer program proves that the batch does not fit.
 *
 * In T a micro-batch of a pipeline that has v of them weighs at most W_v = T / (pp - 1 + v) - c.
 * Sequences of nearly equal lengths, from s on, are a bucket b, whose tokens t_bj may be divided
 * among the schemes j; a token weighs at least a s + b. With n_j pipelines of scheme j, of which
 * y_jv have v micro-batches,
 *
 *     minimise sum_j n_j gpus_j
 *     where sum_v y_jv <= n_j, sum_j t_bj = tokens of b,
 *         sum_b (a s_b + b) t_bj <= sum_v v W_v y_jv, sum_b t_bj <= sum_v v tokens_j y_jv,
 *         sum_(b no shorter than k) t_bj / (longest of b)
 *             <= n_j max_v v floor(min(tokens_j / s_k, W_v / w(s_k))).
 *
 * Pipelines may stay empty (the first row); v is at most the number of sequences, since each
 * micro-batch has one. The last row limits a pipeline's long sequences. When the minimum is above
 * the number of devices, no plan takes T or less. A second program has integer n_j. */
#include "planner/kinds/hydraulis/problem.h"

#include "planner/kinds/linear_program.h"
#include "support/array.h"

#include <math.h>

/* Sequences of nearly equal lengths. */
typedef struct Bucket {
    double shortest, longest, tokens; // lengths in tokens; sum of all lengths
    int row; // row of the program: the schemes take all tokens of the bucket
} Bucket;

typedef struct Bound {
    Arena *arena;
    const Schemes *schemes;
    const Strategy *strategy; // NULL: all strategies are allowed
    int gpus, sequences;
    Array(Bucket) buckets; // from the longest sequences to the shortest
} Bound;

/* Makes the buckets: lengths within 3%, or further apart where squares of lengths hardly count. */
static void make_buckets(Bound *bound, const Batch *batch) {
    const double width = 0.97, wide = 0.5, reach = 64;
    for (int i = 0; i < batch->count; i++) {
        Bucket *last = bound->buckets.count ? &bound->buckets.at[bound->buckets.count - 1] : NULL;
        double length = batch->lengths[i],
               least = last ? fmin(width * last->longest,
                                   fmax(wide * last->longest, last->longest - reach))
                            : 0;
        if (!last || length < least) {
            array_push(bound->arena, &bound->buckets, (Bucket){.longest = length});
            last = &bound->buckets.at[bound->buckets.count - 1];
        }
        last->shortest = length;
        last->tokens += length;
    }
}

/* ---- the linear or integer program ---- */

/* Returns W_v: the most ms that each of a pipeline's v micro-batches may weigh in `time`. */
static double most_weight(const Scheme *scheme, double time, int v) {
    return time / (scheme->pp - 1 + v) - scheme->c;
}

/* Returns whether a pipeline of a scheme can hold a sequence of some length at all. */
static bool holds(const Scheme *scheme, double time, double length) {
    return length <= scheme->tokens &&
           scheme_weight(scheme, length) <= most_weight(scheme, time, 1);
}

/* Returns how many sequences of at least a length a pipeline holds, at most `sequences`. */
static int most_sequences(const Scheme *scheme, double time, double length, int sequences) {
    int most = 0;
    for (int v = 1; v <= sequences && most < sequences &&
                    most_weight(scheme, time, v) >= scheme_weight(scheme, length);
         v++) {
        int each = (int)fmin(
            floor(scheme->tokens / length),
            floor(most_weight(scheme, time, v) / scheme_weight(scheme, length) * (1 + 1e-9)));
        most = each >= sequences / v + 1 ? sequences : v * each > most ? v * each : most;
    }
    return most;
}

/* Returns the most pipelines that a scheme can have on the devices. */
static int most_pipelines(const Bound *bound, int index) {
    return bound->strategy ? bound->strategy->pipelines[index]
                           : bound->gpus / bound->schemes->at[index].gpus;
}

/* A scheme's rows in the program. Weights are fractions of the time: one magnitude in any unit. */
typedef struct SchemeRows {
    const Scheme *scheme;
    int pipelines, weight, tokens; // indices of rows: pipelines at most n_j; weight; tokens
    int count;                     // column: n_j, the number of pipelines
} SchemeRows;

/* Adds the columns y_jv. Several v, up to `last`, may share a column, with their best bound. */
static void add_numbers(Program *program, double time, int sequences, const SchemeRows *rows) {
    const Scheme *scheme = rows->scheme;
    const double ratio = 1.02;
    for (int v = 1, last; v <= sequences && most_weight(scheme, time, v) > 0; v = last + 1) {
        double weight = 0;
        last = (int)fmin(v * ratio, sequences);
        for (int u = v; u <= last; u++) weight = fmax(weight, u * most_weight(scheme, time, u));
        int column = program_column(program, 0, INFINITY, 0, false);
        program_entry(program, rows->pipelines, column, 1);
        program_entry(program, rows->weight, column, -weight / time);
        program_entry(program, rows->tokens, column, -(double)last * scheme->tokens);
    }
}

enum { LIMITS = 24 };

/* Adds a row for each of the first LIMITS buckets that a scheme holds. The row limits the number of
 * sequences of this and the longer buckets. Writes the rows' numbers to `limits`. */
static void add_limits(Bound *bound, Program *program, double time, const SchemeRows *rows,
                       int *limits) {
    const Scheme *scheme = rows->scheme;
    int count = 0;
    for (int b = 0; b < bound->buckets.count && count < LIMITS; b++)
        if (holds(scheme, time, bound->buckets.at[b].shortest)) {
            limits[count] = program_row(program, -INFINITY, 0);
            program_entry(
                program, limits[count++], rows->count,
                -most_sequences(scheme, time, bound->buckets.at[b].shortest, bound->sequences));
        }
}

/* Adds the columns of the tokens that a scheme takes of each bucket. */
static void add_tokens(Bound *bound, Program *program, double time, const SchemeRows *rows) {
    const double nothing = 1e-10; // as a fraction of the time: smaller coefficients are left out
    const Scheme *scheme = rows->scheme;
    int limits[LIMITS], held = 0;
    add_limits(bound, program, time, rows, limits);
    for (int b = 0; b < bound->buckets.count; b++) {
        const Bucket *bucket = &bound->buckets.at[b];
        if (!holds(scheme, time, bucket->shortest)) continue;
        int column = program_column(program, 0, INFINITY, 0, false),
            left = bound->buckets.count - b;
        program_entry(program, bucket->row, column, 1);
        double weight = (scheme->a * bucket->shortest + scheme->b) / time;
        if (weight * bucket->tokens > nothing) program_entry(program, rows->weight, column, weight);
        program_entry(program, rows->tokens, column, 1);
        for (int i = held; i < LIMITS && i < held + left; i++)
            program_entry(program, limits[i], column, 1 / bucket->longest);
        held++;
    }
}

static void add_scheme(Bound *bound, Program *program, int index, double time, bool integers) {
    const Scheme *scheme = &bound->schemes->at[index];
    double most = most_pipelines(bound, index), fixed = bound->strategy ? most : 0;
    SchemeRows rows = {scheme, program_row(program, -INFINITY, 0),
                       program_row(program, -INFINITY, 0), program_row(program, -INFINITY, 0),
                       program_column(program, fixed, most, scheme->gpus, integers)};
    program_entry(program, rows.pipelines, rows.count, -1);
    add_numbers(program, time, bound->sequences, &rows);
    add_tokens(bound, program, time, &rows);
}

static Program *write_program(Bound *bound, double time, bool integers) {
    Program *program = program_create();
    for (int b = 0; b < bound->buckets.count; b++)
        bound->buckets.at[b].row =
            program_row(program, bound->buckets.at[b].tokens, bound->buckets.at[b].tokens);
    for (int i = 0; i < bound->schemes->count; i++) add_scheme(bound, program, i, time, integers);
    return program;
}

/* Returns whether the linear or integer program proves that a batch takes longer than `time`. Sets
 * *devices to the devices that the batch would need; INFINITY: no number suffices. */
static bool is_too_short(Bound *bound, double time, bool integers, double *devices) {
    const double seconds = 3, slack = 1e-7;
    Program *program = write_program(bound, time, integers);
    bool solved = program_relax(program);
    *devices = solved ? program_bound(program) : program_is_impossible(program) ? INFINITY : 0;
    if (solved && integers && *devices <= bound->gpus * (1 + slack)) {
        program_integers(program, seconds, 1e-6);
        *devices = program_bound(program);
    }
    program_destroy(program);
    return *devices > bound->gpus * (1 + slack);
}

/* Returns, by bisection, the longest time proven to be too short; sets *needed to its devices. */
static double longest_short(Bound *bound, double low, double high, bool integers, double *needed) {
    enum { TURNS = 10 };
    for (int turn = 0; turn < TURNS; turn++) {
        double middle = 0.5 * (low + high), devices;
        bool too_short = is_too_short(bound, middle, integers, &devices);
        if (too_short) *needed = devices;
        *(too_short ? &low : &high) = middle;
    }
    return low;
}

/* Returns the least time of the longest sequence alone, a lower bound for all plans. */
static double longest_alone(const Bound *bound) {
    double length = bound->buckets.at[0].longest, least = INFINITY;
    for (int i = 0; i < bound->schemes->count; i++) {
        const Scheme *scheme = &bound->schemes->at[i];
        if (most_pipelines(bound, i) && length <= scheme->tokens)
            least = fmin(least, scheme->pp * (scheme_weight(scheme, length) + scheme->c));
    }
    return least;
}

BatchBound batch_bound(Arena *arena, const Schemes *schemes, const Strategy *strategy, int gpus,
                       const Batch *batch) {
    Bound bound = {.arena = arena,
                   .schemes = schemes,
                   .strategy = strategy,
                   .gpus = gpus,
                   .sequences = batch->count};
    double low, high, devices, needed = INFINITY;
    make_buckets(&bound, batch);
    for (low = high = longest_alone(&bound); is_too_short(&bound, high, false, &devices); high *= 2)
        low = high;
    double relaxed = longest_short(&bound, low, high, false, &needed), whole = relaxed;
    relaxed = whole = longest_short(&bound, relaxed, relaxed + high / 1024, false, &needed);
    if (!strategy) whole = longest_short(&bound, relaxed, 1.2 * relaxed, true, &needed);
    json_t *proof =
        json_pack("{s:f,s:f,s:i,s:i}", "by_linear_program", relaxed, "by_integer_program", whole,
                  "devices", gpus, "buckets", bound.buckets.count);
    if (isfinite(needed)) json_object_set_new(proof, "devices_needed", json_real(needed));
    return (BatchBound){whole, proof};
}
