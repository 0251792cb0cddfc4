/* The state of a search: the strategies evaluated so far, and how far the closed forms were off. */
#ifndef PLANNER_SEARCH_EVALUATED_H
#define PLANNER_SEARCH_EVALUATED_H

#include "planner/search/closed_form.h"
#include "planner/search/devices.h"
#include "planner/search/enumerate.h"
#include "planner/search/evaluate.h"
#include "planner/search/layer_costs.h"
#include "planner/search/model_limits.h"

enum { ENUMERATED = 400, VARIANTS_MOST = 36 };

typedef struct Search {
    Arena *arena;
    EvaluationContext context;
    SearchModel model;
    Fleet devices;
    int variant_count; // number of lists of dimensions that tensor parallelism cuts; each has a
                       // profile and a correction
    SplitList splits[VARIANTS_MOST];
    Profile profiles[VARIANTS_MOST];
    Correction corrections[VARIANTS_MOST];
    const char *name;
    TriedList tried;
} Search;

/* Evaluates the first `most` candidates that were not evaluated yet, and counts to the byte those
 * that nearly fit or need the least. Returns how many were new. */
int try_candidates(Search *search, const CandidateList *list, int most);

/* Evaluates to the byte the strategies of a list that were evaluated roughly. */
void tries_settle(Search *search, const TriedList *list);

/* Returns the strategies that fit, by seconds; at most `most`. */
TriedList best_of(const Search *search, int most);

/* Returns the fastest strategy that fits of each of at most `most` kinds (candidate_kind), each
 * followed by those that differ from it in ZeRO alone. */
TriedList best_kinds(const Search *search, int most);

/* Returns whether any evaluated strategy fits. */
bool anything_fits(const Search *search);

/* Returns the accepted strategy with the least need; NULL: hetucc accepts none. */
const TriedStrategy *least_need(const Search *search);

/* Returns the largest ratio of needed to allowed bytes of a device, by hetucc's count. */
double real_need(const Search *search, const TriedStrategy *tried);

/* Multiplies each variant's correction by its median error over tried.at[first] and later. */
void correct_all(Search *search, int first);

/* Returns the variant with these dimensions; -1: none. */
int variant_of(const Search *search, const SplitList *splits);

/* Returns how many strategies are compiled in a round: fewer for large models, so that a search
 * does not take minutes. */
int round_size(const Search *search);

#endif
