/* Rules that passes build as trees: factors, accesses, and a body or equations. A complete rule is
 * checked like a parsed one, and its text parses back to it. A failed check is a bug.
 *
 * The rule y[i..] = -x[i..]:
 *
 *     RuleDraft *draft = rule_draft(arena);
 *     int i = draft_factor(draft, (Factor){.name = "i", .ellipsis = true});
 *     draft_result(draft, draft_access(draft, "y", 1, &i));
 *     draft_operand(draft, draft_access(draft, "x", 1, &i));
 *     draft_body(draft, expr_negative(arena, expr_leaf(arena, EXPR_ACCESS, 0)));
 *     const OpDef *def = draft_op(draft, "negative");
 */
#pragma once

#include "rule/rule.h"

typedef struct RuleDraft RuleDraft;

RuleDraft *rule_draft(Arena *arena);

/* Adds a factor and returns its number in the draft. The caller fills `name`, `ellipsis`, `size`
 * and `replicate`. draft_op drops factors that no access has, and renumbers the others in the order
 * of the text. */
int draft_factor(RuleDraft *draft, Factor factor);

/* Returns an access in which every dimension is one factor. */
Access draft_access(const RuleDraft *draft, const char *name, int dim_count, const int *factors);

/* Add the next result, operand, or local value of equations. */
void draft_result(RuleDraft *draft, Access access);
void draft_operand(RuleDraft *draft, Access access);
void draft_local(RuleDraft *draft, Access access);

/* Set the body, or append the next equation. Value v of an equation is result v, or local value v -
 * (number of results). Expressions have numbers in place of attributes. */
void draft_body(RuleDraft *draft, const Expr *body);
void draft_equation(RuleDraft *draft, int value, const Expr *expr);

/* Sets the clause `epilogue`; NULL: none. */
void draft_epilogue(RuleDraft *draft, const char *epilogue);

/* Finishes the rule and returns operator `name` with it: tensor parameters, no attributes. */
const OpDef *draft_op(RuleDraft *draft, const char *name);
