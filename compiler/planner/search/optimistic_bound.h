/* What closed forms were off by of strategies that were tried, by their kind: how they recompute,
 * their level of ZeRO, and whether the batch is one micro-batch. What was not tried may need as
 * little of what closed forms say as the best of its kind did. */
#ifndef PLANNER_SEARCH_OPTIMISTIC_BOUND_H
#define PLANNER_SEARCH_OPTIMISTIC_BOUND_H

#include "planner/search/evaluated.h"

enum { KINDS = 2 * 4 * (RECOMPUTES + 1) };

typedef struct OptimisticBound {
    double least[KINDS]; // of what was needed over what closed forms said; INFINITY: none was tried
    double lowest;       // of all kinds, 1 at most
} OptimisticBound;

/* Learns from all single pipelines that were tried. */
OptimisticBound optimistic_bound_learn(Search *search);

/* What a candidate may need over what devices may have; its need is that of closed forms, without a
 * correction. */
double optimistic_bound_of(const OptimisticBound *hope, const Candidate *candidate);

#endif
