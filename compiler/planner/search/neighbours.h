/* Strategies like one that was tried: each adds to the list what differs in one way. */
#ifndef PLANNER_SEARCH_NEIGHBOURS_H
#define PLANNER_SEARCH_NEIGHBOURS_H

#include "planner/search/evaluated.h"

/* Adds a copy that lives as long as the search, with what closed forms say of it. */
void add_changed(Search *search, CandidateList *list, const Candidate *changed);

/* More and fewer rows in a micro-batch. */
void change_rows(Search *search, CandidateList *list, const Candidate *candidate);

/* A layer from each stage to its neighbours. */
void change_layers(Search *search, CandidateList *list, const Candidate *candidate);

/* All stages in each way to recompute; each level of ZeRO. */
void change_modes(Search *search, CandidateList *list, const Candidate *candidate);

/* The strategies that people begin with. They are tried whatever closed forms say of them, so that
 * no plan is slower than any. */

/* Tries one device, a host and all devices of each class and of the whole cluster: data parallelism
 * without and with ZeRO, tensors cut within hosts, layers in equal parts over stages. */
void search_baselines(Search *search);

/* Where nothing has fitted: what needs the least memory, whatever it takes. */

/* Tries strategies until one fits, or nothing is left that closed forms let hope for less than what
 * needs least. */
void search_min_memory(Search *search);

/* What closed forms were off by of strategies that were tried, by their kind: how they recompute,
 * their level of ZeRO, and whether the batch is one micro-batch. What was not tried may need as
 * little of what closed forms say as the best of its kind did. */

enum { KINDS = 2 * 4 * (RECOMPUTES + 1) };

typedef struct OptimisticBound {
    double least[KINDS]; // of what was needed over what closed forms said; INFINITY: none was tried
    double lowest;       // of all kinds, 1 at most
} OptimisticBound;

/* Learns from all single pipelines that were tried. */
OptimisticBound optimistic_bound_learn(Search *search);

/* Returns what a candidate may need over what devices may have; its need is that of closed
 * forms, without a correction. */
double optimistic_bound_of(const OptimisticBound *hope, const Candidate *candidate);

#endif
