/* The state of a search: the strategies evaluated so far, and corrections of the closed forms. */
#pragma once

#include "planner/search/layers_on_stages.h"
#include "planner/search/devices.h"
#include "planner/search/enumerate.h"
#include "planner/search/evaluate.h"
#include "planner/search/layer_costs.h"
#include "planner/search/search_model.h"

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

/* Evaluates the first `most` new candidates roughly; evaluates those that nearly fit, or may need
 * the least memory, again with exact bytes. Returns the number of new candidates. */
int try_candidates(Search *search, const CandidateList *list, int most);

/* Evaluates the strategies of a list with exact bytes. */
void tries_settle(Search *search, const TriedList *list);

/* Returns the `most` fastest strategies that fit, or fewer, sorted by seconds. */
TriedList best_of(const Search *search, int most);

/* Returns the fastest strategy that fits of each of at most `most` kinds (candidate_kind), and
 * strategies that differ from one of these only in ZeRO; sorted by seconds. */
TriedList best_kinds(const Search *search, int most);

/* Returns whether any evaluated strategy fits. */
bool anything_fits(const Search *search);

/* Returns the accepted strategy that lacks the fewest bytes; NULL: hetucc accepts none. */
const TriedStrategy *least_need(const Search *search);

/* Returns the ratio of needed to allowed bytes on the strategy's worst device; 0: no bound. */
double real_need(const Search *search, const TriedStrategy *tried);

/* Multiplies each variant's correction by its median error in tried.at[first] and later. */
void correct_all(Search *search, int first);

/* Returns the index of the variant whose list is `splits`; -1: no variant has this list. */
int variant_of(const Search *search, const SplitList *splits);

/* Returns how many strategies are compiled in a round: fewer for large models, to save time. */
int round_size(const Search *search);

/* ---- the explanation of a plan (explain.c) ---- */

/* Prints the best strategies that fit, the plan first: seconds, bytes, and what limits the step.
 * Strategies that differ from a printed one only in ZeRO share a line. */
void explain_print(Text *out, const EvaluationContext *context, const TriedList *best, int tried);

/* Returns whether two strategies differ in ZeRO and in nothing else. */
bool explain_folds(Arena *arena, const TriedStrategy *head, const TriedStrategy *other,
                   const Fleet *devices);

/* Prints the seconds, bytes and limits of the plan alone, as comments in front of its strategy. */
void explain_comment(Text *out, const EvaluationContext *context, const TriedStrategy *plan,
                     const char *source);

/* Reports that no strategy fits, and the bytes that `least` lacks; `tried` were evaluated. */
void explain_report(Diag *diag, const EvaluationContext *context, const TriedStrategy *least,
                    int tried);
