/* What a plan says for itself. */
#ifndef PLANNER_SEARCH_EXPLAIN_H
#define PLANNER_SEARCH_EXPLAIN_H

#include "planner/search/candidate.h"
#include "planner/search/evaluate.h"

/* A strategy that was tried. */
typedef struct TriedStrategy {
    Candidate candidate;
    const char *text;
    Verdict verdict;
    bool good;  // hetucc takes it
    bool exact; // its bytes are those that hetucc counts; else these, or more
} TriedStrategy;

typedef Array(TriedStrategy *) TriedList;

/* The best strategies that fit, the first the plan: seconds, bytes, what bounds them. Behind each,
 * on its line, those of the list that differ from it in ZeRO alone. */
void explain_print(Text *out, const EvaluationContext *shop, const TriedList *best, int tried);

/* Returns whether two strategies differ in ZeRO alone. */
bool explain_folds(Arena *arena, const TriedStrategy *head, const TriedStrategy *other,
                   const Fleet *devices);

/* The same of the plan, as comments in front of its strategy. */
void explain_comment(Text *out, const EvaluationContext *shop, const TriedStrategy *plan,
                     const char *source);

/* Reports that nothing fits: what is missing where least is, and how much would do. */
void explain_report(Diag *diag, const EvaluationContext *shop, const TriedStrategy *least,
                    int tried);

#endif
