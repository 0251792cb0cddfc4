/* Makes the gradient of one operand of an expression from derivatives (derivative.c).
 * passes/differentiate/gradient_rule.c makes the rule that passes insert. */
#include "rule/gradient.h"

#include "rule/rule.h"

static bool has_factor(const Rule *rule, const Expr *expr, int factor) {
    bool operand = expr->kind == EXPR_ACCESS && expr->index < rule->operand_count;
    bool has = expr->kind == EXPR_ACCESS &&
               access_has(operand ? &rule->operands[expr->index] : &rule->results[0], factor);
    for (int i = 0; i < expr->arg_count; i++) has = has || has_factor(rule, expr->arg[i], factor);
    return has;
}

static int accesses_in(const Rule *rule, const Expr *expr) {
    int count = 0;
    for (int i = 0; i < rule->operand_count + 2; i++) count += expr_mentions(expr, EXPR_ACCESS, i);
    return count;
}

/* Returns the derivative, with the result in place of the body where this adds no accesses. */
static const Expr *reuse_result(Arena *arena, const Rule *rule, const Expr *derivative) {
    if (!expr_mentions(rule->body, EXPR_CALL, -1)) return derivative;
    const Expr *reused = expr_replace(arena, derivative, rule->body,
                                      expr_leaf(arena, EXPR_ACCESS, rule->operand_count + 1));
    return accesses_in(rule, reused) <= accesses_in(rule, derivative) ? reused : derivative;
}

const Expr *rule_term_gradient(Arena *arena, const OperandGradient *of, const Expr *term,
                               uint64_t *repeated) {
    const Rule *rule = of->rule;
    const Expr *derivative = expr_derivative(arena, term, of->operand, of->integers);
    if (of->reuse) derivative = reuse_result(arena, rule, derivative);
    *repeated = 0;
    for (int f = 0; f < rule->factor_count; f++)
        if (has_factor(rule, term, f) && !has_factor(rule, derivative, f) &&
            !access_has(&rule->operands[of->operand], f) && !access_has(&rule->results[0], f))
            *repeated |= UINT64_C(1) << f;
    return expr_binary(arena, EXPR_MUL, expr_leaf(arena, EXPR_ACCESS, rule->operand_count),
                       derivative);
}

const Expr *rule_gradient(Arena *arena, const Rule *rule, int operand, uint64_t integers) {
    OperandGradient of = {.rule = rule, .operand = operand, .integers = integers};
    int count = expr_terms(rule->body, NULL, 0);
    ExprTerm *terms = arena_array(arena, ExprTerm, count);
    const Expr *total = expr_number(arena, 0, NULL);
    uint64_t repeated;
    expr_terms(rule->body, terms, count);
    for (int i = 0; i < count; i++) {
        const Expr *term = rule_term_gradient(arena, &of, terms[i].expr, &repeated);
        for (int f = 0; f < rule->factor_count; f++)
            if (repeated >> f & 1)
                term = expr_binary(arena, EXPR_MUL, term, expr_leaf(arena, EXPR_SIZE, f));
        total = expr_binary(arena, terms[i].negative ? EXPR_SUB : EXPR_ADD, total, term);
    }
    return total;
}
