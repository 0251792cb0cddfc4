/* The input of Hydraulis: schemes (how one pipeline computes), strategies (how many pipelines of
 * each scheme) and batches of sequences. */
#pragma once

#include "planner/kinds/input.h"

#include <jansson.h>

/* How a pipeline computes: a sequence of s tokens weighs a s^2 + b s ms. */
typedef struct Scheme {
    int tp, pp, gpus;
    double a, b, c; // ms; c is added once for each micro-batch
    int tokens;     // the most tokens of a micro-batch
} Scheme;

typedef struct Schemes {
    int count;
    Scheme *at;
} Schemes;

/* A strategy: how many pipelines it has of each scheme. */
typedef struct Strategy {
    int *pipelines; // by scheme: number of its pipelines
} Strategy;

/* A batch: its sequences from the longest to the shortest. */
typedef struct Batch {
    int count;
    int *lengths, *numbers; // by sequence: its tokens; its index in the input
    long tokens;            // sum of all lengths
    double **weights;       // [scheme][sequence]: a s^2 + b s
    double *per_token;      // [scheme]: mean weight of a token of the sequences that fit
} Batch;

Schemes schemes_read(Arena *arena, Field list);

/* Returns the index of a scheme, or -1. */
int schemes_find(const Schemes *schemes, int tp, int pp);

static inline double scheme_weight(const Scheme *scheme, double length) {
    return (scheme->a * length + scheme->b) * length;
}

/* Returns a batch of lengths, sorted. */
Batch batch_create(Arena *arena, const Schemes *schemes, const int *lengths, int count);

/* ---- the lower bound of a batch's step (certify.c) ---- */

/* A lower bound in ms of a batch's step, and a new JSON object that proves it. */
typedef struct BatchBound {
    double time;
    json_t *proof;
} BatchBound;

/* Returns the bound of a batch under `strategy` (NULL: under any strategy of `gpus` devices). */
BatchBound batch_bound(Arena *arena, const Schemes *schemes, const Strategy *strategy, int gpus,
                       const Batch *batch);
