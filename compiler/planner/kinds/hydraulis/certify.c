/* The bound is the longest time T in which a linear or integer program proves that a batch does not
 * fit, found by bisection.
 *
 * In T a micro-batch of a pipeline with v of them weighs at most W_v = T / (pp - 1 + v) - c.
 * Sequences of nearly equal lengths from s on are a bucket, whose tokens t_bj are shared out to
 * schemes in parts; a token weighs at least a s + b. With n_j pipelines of scheme j, of which y_jv
 * have v micro-batches,
 *
 *     minimise sum_j n_j gpus_j   where   sum_v y_jv <= n_j,  sum_j t_bj = tokens of b,
 *                                         sum_b (a s_b + b) t_bj <= sum_v v W_v y_jv,  sum_b t_bj
 *                                             <= sum_v v tokens_j y_jv,
 *                                         sum_(b no shorter than k) t_bj / (longest of b) <= n_j
 *                                             max_v v floor(min(tokens_j / s_k, W_v /
 * w(s_k))).
 *
 * The first leaves pipelines empty; v is at most the number of sequences, since every micro-batch
 * has one. The last says how many long sequences a pipeline can hold. When more devices are needed
 * than there are, no plan takes T or less; n_j is whole in the second program.
 */
#include "planner/kinds/hydraulis/certify.h"

#include "planner/kinds/hydraulis/hydraulis.h"
#include "planner/kinds/linear_program.h"
#include "support/array.h"

#include <math.h>

/* Sequences of nearly equal lengths. */
typedef struct Bucket {
    double shortest, longest, tokens;
    int row; // in the program: where its tokens are
} Bucket;

typedef struct Bound {
    Arena *arena;
    const Schemes *schemes;
    const Strategy *strategy; // NULL: any
    int gpus, sequences;
    Array(Bucket) buckets; // from the longest sequences to the shortest
} Bound;

/* Buckets within 3% of a length, and wider where sequences are too short for their squares to
 * weigh. */
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

/* ---- the program ---- */

/* What a micro-batch of v may weigh. */
static double most_weight(const Scheme *scheme, double time, int v) {
    return time / (scheme->pp - 1 + v) - scheme->c;
}

/* Whether a pipeline of a scheme can hold a sequence of some length at all. */
static bool holds(const Scheme *scheme, double time, double length) {
    return length <= scheme->tokens &&
           scheme_weight(scheme, length) <= most_weight(scheme, time, 1);
}

/* How many of `sequences` of a length, or longer ones, a pipeline holds. */
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

/* How many pipelines of a scheme there may be. */
static int most_pipelines(const Bound *bound, int index) {
    return bound->strategy ? bound->strategy->pipelines[index]
                           : bound->gpus / bound->schemes->at[index].gpus;
}

/* Rows of a scheme in the program. Weights are in parts of the time, so that all numbers of a
 * program are of one size whatever the unit. */
typedef struct SchemeRows {
    int pipelines, weight, tokens; // no more pipelines than there are; what they weigh and hold
    int count;                     // the column of n_j
} SchemeRows;

/* Adds y_jv. Numbers of micro-batches from v to last are one column, with the best that any of them
 * has. */
static void add_numbers(Program *program, const Scheme *scheme, double time, int sequences,
                        const SchemeRows *rows) {
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

/* Adds how many of the sequences from each of the first buckets on, of those that a scheme holds at
 * all, its pipelines hold; rows into `limits`. */
static void add_limits(Bound *bound, Program *program, const Scheme *scheme, double time,
                       const SchemeRows *rows, int *limits) {
    int count = 0;
    for (int b = 0; b < bound->buckets.count && count < LIMITS; b++)
        if (holds(scheme, time, bound->buckets.at[b].shortest)) {
            limits[count] = program_row(program, -INFINITY, 0);
            program_entry(
                program, limits[count++], rows->count,
                -most_sequences(scheme, time, bound->buckets.at[b].shortest, bound->sequences));
        }
}

/* Adds the tokens of buckets that a scheme takes. */
static void add_tokens(Bound *bound, Program *program, const Scheme *scheme, double time,
                       const SchemeRows *rows) {
    const double nothing = 1e-10; // of the time: what weighs less is left out
    int limits[LIMITS], held = 0;
    add_limits(bound, program, scheme, time, rows, limits);
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
    SchemeRows rows = {program_row(program, -INFINITY, 0), program_row(program, -INFINITY, 0),
                       program_row(program, -INFINITY, 0),
                       program_column(program, fixed, most, scheme->gpus, integers)};
    program_entry(program, rows.pipelines, rows.count, -1);
    add_numbers(program, scheme, time, bound->sequences, &rows);
    add_tokens(bound, program, scheme, time, &rows);
}

static Program *write_program(Bound *bound, double time, bool integers) {
    Program *program = program_create();
    for (int b = 0; b < bound->buckets.count; b++)
        bound->buckets.at[b].row =
            program_row(program, bound->buckets.at[b].tokens, bound->buckets.at[b].tokens);
    for (int i = 0; i < bound->schemes->count; i++) add_scheme(bound, program, i, time, integers);
    return program;
}

/* Whether it is proven that a batch takes longer than a time; the devices it would need into
 * *devices, INFINITY when no number suffices. */
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

/* The longest time from `low` to `high` that is proven to be too short. */
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

/* The least time that the longest sequence takes alone: no plan is below. */
static double longest_alone(const Bound *bound) {
    double length = bound->buckets.at[0].longest, least = INFINITY;
    for (int i = 0; i < bound->schemes->count; i++) {
        const Scheme *scheme = &bound->schemes->at[i];
        if (most_pipelines(bound, i) && length <= scheme->tokens)
            least = fmin(least, scheme->pp * (scheme_weight(scheme, length) + scheme->c));
    }
    return least;
}

double batch_bound(Arena *arena, const Schemes *schemes, const Strategy *strategy, int gpus,
                   const Batch *batch, json_t **proof) {
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
    *proof = json_pack("{s:f,s:f,s:i,s:i}", "by_linear_program", relaxed, "by_integer_program",
                       whole, "devices", gpus, "buckets", bound.buckets.count);
    if (isfinite(needed)) json_object_set_new(*proof, "devices_needed", json_real(needed));
    return whole;
}
