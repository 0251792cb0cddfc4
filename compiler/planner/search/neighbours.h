/* The moves of the search from one strategy to similar ones. Each function adds to the list
 * candidates that differ from the given one in one way. */
#pragma once

#include "planner/search/candidate.h"
#include "planner/search/enumerate.h"

typedef struct Search Search;

/* Adds a copy of a candidate in the search's arena, with seconds and need by closed form (or 0). */
void add_changed(Search *search, CandidateList *list, const Candidate *changed);

/* Adds a candidate with more and one with fewer rows in a micro-batch, if it has one pipeline. */
void change_rows(Search *search, CandidateList *list, const Candidate *candidate);

/* Adds candidates in which one layer of the first pipeline moves to an adjacent stage. */
void change_layers(Search *search, CandidateList *list, const Candidate *candidate);

/* Adds a candidate for each way to recompute in all stages, and for each ZeRO level. */
void change_modes(Search *search, CandidateList *list, const Candidate *candidate);

/* Baselines: strategies that people begin with. Baselines are always evaluated, so that no plan is
 * slower than a baseline (baselines.c). */

/* Evaluates strategies of one device, one host and all devices, of each class and the cluster: data
 * parallelism (also with ZeRO), tensor parallelism within hosts, and pipelines of equal stages. */
void search_baselines(Search *search);

/* Minimum memory: if no strategy fits, finds the one that needs the least memory (min_memory.c). */

/* Evaluates strategies until one fits, no bound is below the least need, or all tries are used. */
void search_min_memory(Search *search);

/* An optimistic bound of memory: the least ratio so far of real need to closed form. Each kind of
 * strategy (way to recompute, ZeRO, one or several micro-batches) has its own bound. Strategies
 * that were not evaluated may have the same ratio. */

enum { KINDS = 2 * 4 * (RECOMPUTES + 1) };

typedef struct OptimisticBound {
    double least[KINDS]; // by kind: the least ratio of real need to closed form; INFINITY: none
    double lowest;       // the least of all kinds, at most 1
} OptimisticBound;
