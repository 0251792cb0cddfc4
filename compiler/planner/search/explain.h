/* The explanation of a plan: its seconds, its bytes, and what limits them. */
#ifndef PLANNER_SEARCH_EXPLAIN_H
#define PLANNER_SEARCH_EXPLAIN_H

#include "planner/search/evaluate.h"

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

#endif
