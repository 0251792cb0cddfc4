/* FlexSP: sequence parallelism by length. FlexSP decides how a batch of sequences is cut into
 * micro-batches. In each micro-batch the devices form groups of different degrees, and every
 * sequence is split over the devices of one group.
 *
 *     8 devices, lengths 64K, 8K, 8K, 8K, 8K:
 *         micro-batch 0: degree 8 [64K]      micro-batch 1: degree 2 [8K] four times
 *
 *     Flexsp problem = ...;
 *     FlexspPlan *plan = flexsp_plan(arena, &problem, work, 0);  NULL: a sequence fits in no group
 *     double bound = flexsp_bound(&problem).value;
 *
 * Times are milliseconds, sizes MB (2^20 bytes); names are those of the input file. A group of
 * degree d with lengths s takes
 *
 *     sum (a1 s^2 + a2 s) / d + b1 + 4 * 2 * layers * hidden * 2 * sum s / 2^20 / d / alltoall[d]
 *         the last term, 8 all-to-alls a layer of 2-byte numbers at alltoall[d] MB a ms, for d > 1
 *
 * and holds sum s / d * token_mb + states_mb <= memory_mb on each device; a micro-batch takes as
 * long as its slowest group. */
#pragma once

#include "planner/kinds/kinds.h"

#include <stdint.h>

enum { FLEXSP_DEGREES = 16 };

typedef struct FlexspDegree {
    int size;        // devices, a power of two
    double exchange; // ms of all-to-all for one token
    double tokens;   // the most tokens that a group of this degree has memory for
} FlexspDegree;

typedef struct Flexsp {
    int gpus; // a multiple of the smallest degree
    int degree_count, length_count;
    FlexspDegree degree[FLEXSP_DEGREES]; // ascending sizes, all at most gpus
    double a1, a2, b1;                   // ms, in the formula above
    const int64_t *length;               // by sequence: tokens
} Flexsp;

/* A group; `sequences` are indices of Flexsp.length. */
typedef struct FlexspGroup {
    int batch, degree; // the micro-batch; an index of Flexsp.degree
    int sequence_count;
    const int *sequences;
} FlexspGroup;

/* Groups in the order of their micro-batches. */
typedef struct FlexspPlan {
    double milliseconds;
    int group_count;
    const FlexspGroup *groups;
} FlexspPlan;

/* The lower bound of all plans, and its terms. */
typedef struct FlexspBound {
    double value;   // ms
    int batches;    // the fewest micro-batches that hold all tokens
    double area;    // ms: computing and least exchange of all sequences, spread over all devices
    double longest; // ms of the sequence that takes longest, alone at its best degree
} FlexspBound;

/* Returns the milliseconds of computing of a sequence on one device, without the constant b1. */
double flexsp_work(const Flexsp *q, int sequence);

/* Returns the milliseconds of a group whose sequences have `work` and `tokens` in all. */
double flexsp_time(const Flexsp *q, int degree, double work, double tokens);

/* The least costs of a sequence, over the degrees at which it fits in memory: `area` in
 * device-milliseconds, `alone` in milliseconds without the constant b1. */
typedef struct FlexspLeast {
    double area, alone;
} FlexspLeast;
FlexspLeast flexsp_least(const Flexsp *q, int sequence);

/* Returns the most tokens of a micro-batch: the most of one device at any degree, times devices. */
double flexsp_tokens(const Flexsp *q);

FlexspBound flexsp_bound(const Flexsp *q);

/* Returns the best plan of `work` moves of annealing; NULL when a sequence fits in no group. */
FlexspPlan *flexsp_plan(Arena *arena, const Flexsp *q, int64_t work, uint64_t seed);

/* ---- the functions of the table of kinds (kinds.c) ---- */
json_t *flexsp_answer(Arena *arena, Field input, Budget *budget);
json_t *flexsp_certify(Arena *arena, Field input, Budget *budget);
