/* Rules that passes make, as trees: factors, accesses, and a body or equations over them. A rule
 * that is complete is checked as one that was read, and has the text that reads as the same rule.
 * What does not hold together is a bug.
 *
 *     RuleDraft *draft = rule_draft(arena);                                            y[i..] =
 *         -x[i..]
 *     int i = draft_factor(draft, (Factor){.name = "i", .ellipsis = true});
 *     draft_result(draft, draft_access(draft, "y", 1, &i));
 *     draft_operand(draft, draft_access(draft, "x", 1, &i));
 *     draft_body(draft, expr_negative(arena, expr_leaf(arena, EXPR_ACCESS, 0)));
 *     const OpDef *def = draft_op(draft, "negative");
 */
#ifndef RULE_BUILD_H
#define RULE_BUILD_H

#include "rule/rule.h"

typedef struct RuleDraft RuleDraft;

RuleDraft *rule_draft(Arena *arena);

/* A factor; its number in the draft. `name`, `ellipsis`, `size` and `replicate` are the caller's.
 * Those that nothing has are left out in the end, and the others numbered in the order in which the
 * text has them. */
int draft_factor(RuleDraft *draft, Factor factor);

/* An access in which every dimension is one factor. */
Access draft_access(const RuleDraft *draft, const char *name, int dim_count, const int *factors);

/* The next result, operand, or value in between of equations. */
void draft_result(RuleDraft *draft, Access access);
void draft_operand(RuleDraft *draft, Access access);
void draft_local(RuleDraft *draft, Access access);

/* The right side: a body, or equations in their order, each for a result or, behind the results, a
 * value in between. Arguments are numbers there. */
void draft_body(RuleDraft *draft, const Expr *body);
void draft_equation(RuleDraft *draft, int value, const Expr *expr);

/* The clause epilogue; NULL: none. */
void draft_epilogue(RuleDraft *draft, const char *epilogue);

/* The operator `name` with the finished rule; every operand is a tensor, and there are no
 * attributes. */
const OpDef *draft_op(RuleDraft *draft, const char *name);

#endif
