/* A search on its way: what was tried of the strategies, and what closed forms learn of that. */
#ifndef PLANNER_SEARCH_EVALUATED_H
#define PLANNER_SEARCH_EVALUATED_H

#include "planner/search/enumerate.h"
#include "planner/search/explain.h"

enum { ENUMERATED = 400, VARIANTS_MOST = 36 };

typedef struct Search {
    Arena *arena;
    EvaluationContext shop;
    SearchModel model;
    Fleet devices;
    int variant_count; // of what tensor parallelism cuts: lists, each with its profile and what
                       // that is off by
    SplitList splits[VARIANTS_MOST];
    Profile profiles[VARIANTS_MOST];
    Correction corrections[VARIANTS_MOST];
    const char *name;
    TriedList tried;
} Search;

/* Tries the first `most` of the candidates that were not tried: compiles and simulates them, and
 * counts the bytes of what is close to fitting, or to needing least, exactly. Returns how many
 * these were. */
int try_candidates(Search *search, const CandidateList *list, int most);

/* Counts the bytes of what was tried exactly. */
void tries_settle(Search *search, const TriedList *list);

/* Returns those that fit, by seconds; at most `most`. */
TriedList best_of(const Search *search, int most);

/* Returns the best that fits of each kind (candidate_kind), of at most `most` kinds, each with
 * what differs from it in ZeRO alone; by seconds. */
TriedList best_kinds(const Search *search, int most);

/* Returns whether anything that was tried fits. */
bool anything_fits(const Search *search);

/* Returns what needs least of what hetucc takes; NULL: it takes nothing. */
const TriedStrategy *least_need(const Search *search);

/* Returns what a device needs over what it may have, as hetucc counts. */
double real_need(const Search *search, const TriedStrategy *tried);

/* Corrects the closed forms of each variant by the middle of what they were off by, of what was
 * tried since `first`. */
void correct_all(Search *search, int first);

/* Returns the variant whose names these are; -1: none has them. */
int variant_of(const Search *search, const SplitList *splits);

/* Returns how many strategies are compiled in a round: fewer of large models, so that a plan
 * does not take minutes. */
int round_size(const Search *search);

#endif
