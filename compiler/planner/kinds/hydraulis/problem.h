/* Schemes, strategies and batches of sequences, as they are read. */
#ifndef PLANNER_KINDS_HYDRAULIS_PROBLEM_H
#define PLANNER_KINDS_HYDRAULIS_PROBLEM_H

#include "planner/kinds/input.h"

/* How a pipeline computes. */
typedef struct Scheme {
    int tp, pp, gpus;
    double a, b, c; // ms: a s^2 + b s of a sequence, c of a micro-batch
    int tokens;     // of a micro-batch at most
} Scheme;

typedef struct Schemes {
    int count;
    Scheme *at;
} Schemes;

/* How many pipelines of each scheme. */
typedef struct Strategy {
    int *pipelines; // [scheme]
} Strategy;

/* Sequences from the longest to the shortest. */
typedef struct Batch {
    int count;
    int *lengths, *numbers; // numbers: in the input
    long tokens;            // of all
    double **weights;       // [scheme][sequence]: a s^2 + b s
    double *per_token;      // [scheme]: mean weight of a token of the sequences that fit
} Batch;

Schemes schemes_read(Arena *arena, Field list);

/* The index of a scheme, or -1. */
int schemes_find(const Schemes *schemes, int tp, int pp);

static inline double scheme_weight(const Scheme *scheme, double length) {
    return (scheme->a * length + scheme->b) * length;
}

/* A batch of lengths, sorted. */
Batch batch_create(Arena *arena, const Schemes *schemes, const int *lengths, int count);

#endif
