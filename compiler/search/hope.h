/* What closed forms were off by of strategies that were tried, by their kind: how they recompute, their level of ZeRO, and whether the
 * batch is one micro-batch. What was not tried may need as little of what closed forms say as the best of its kind did. */
#ifndef SEARCH_HOPE_H
#define SEARCH_HOPE_H

#include "search/tries.h"

enum { KINDS = 2 * 4 * (RECOMPUTES + 1) };

typedef struct Hope {
    double least[KINDS]; // of what was needed over what closed forms said; INFINITY: none was tried
    double lowest;       // of all kinds, 1 at most
} Hope;

/* Learns from all single pipelines that were tried. */
Hope hope_learn(Search *search);

/* What a candidate may need over what devices may have; its need is that of closed forms, without a correction. */
double hope_of(const Hope *hope, const Candidate *candidate);

#endif
