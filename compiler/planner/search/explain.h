/* The explanation of a plan: why this strategy. */
#ifndef PLANNER_SEARCH_EXPLAIN_H
#define PLANNER_SEARCH_EXPLAIN_H

#include "planner/search/evaluate.h"

/* Prints the best strategies that fit, the plan first: seconds, bytes, and what limits them.
 * Strategies that differ in ZeRO alone share a line. */
void explain_print(Text *out, const EvaluationContext *context, const TriedList *best, int tried);

/* Returns whether two strategies differ in ZeRO alone. */
bool explain_folds(Arena *arena, const TriedStrategy *head, const TriedStrategy *other,
                   const Fleet *devices);

/* Prints the same of the plan alone, as comments in front of its strategy. */
void explain_comment(Text *out, const EvaluationContext *context, const TriedStrategy *plan,
                     const char *source);

/* Reports that no strategy fits: how many bytes the one with the least need lacks, and how many
 * would do. */
void explain_report(Diag *diag, const EvaluationContext *context, const TriedStrategy *least,
                    int tried);

#endif
