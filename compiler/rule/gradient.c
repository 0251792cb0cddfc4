#include "rule/gradient.h"

#include "rule/expr.h"

/* The access of an expression's leaf: an operand, or behind them the gradient of the result. */
static const Access *access_of(const Rule *rule, int index)
{
    return index < rule->operand_count ? &rule->operands[index] : &rule->results[0];
}

static bool has_factor(const Rule *rule, const Expr *expr, int factor)
{
    bool has = expr->kind == EXPR_ACCESS && access_has(access_of(rule, expr->index), factor);
    for (int i = 0; i < expr->arg_count; i++)
        has = has || has_factor(rule, expr->arg[i], factor);
    return has;
}

/* dy times the derivative of a term. Where the term was summed over a factor that the derivative lacks, it counts as often as the factor's
 * extent. */
static const Expr *term_gradient(Arena *arena, const Rule *rule, const Expr *term, int operand, uint64_t integers)
{
    const Expr *derivative = expr_derivative(arena, term, operand, integers);
    const Expr *gradient = expr_binary(arena, EXPR_MUL, expr_leaf(arena, EXPR_ACCESS, rule->operand_count), derivative);
    for (int f = 0; f < rule->factor_count; f++)
        if (has_factor(rule, term, f) && !has_factor(rule, derivative, f) && !access_has(&rule->operands[operand], f) &&
            !access_has(&rule->results[0], f))
            gradient = expr_binary(arena, EXPR_MUL, gradient, expr_leaf(arena, EXPR_SIZE, f));
    return gradient;
}

const Expr *rule_gradient(Arena *arena, const Rule *rule, int operand, uint64_t integers)
{
    int count = expr_terms(rule->body, NULL, 0);
    ExprTerm *terms = arena_array(arena, ExprTerm, count);
    const Expr *total = expr_number(arena, 0, NULL);
    expr_terms(rule->body, terms, count);
    for (int i = 0; i < count; i++)
        if (expr_mentions(terms[i].expr, EXPR_ACCESS, operand))
            total = expr_binary(arena, terms[i].negative ? EXPR_SUB : EXPR_ADD, total,
                                term_gradient(arena, rule, terms[i].expr, operand, integers));
    return total;
}
