/* Properties of operators that follow from their rules: form, linearity, kernels. Other code calls
 * these functions instead of inspecting bodies. */
#include "rule/bounds.h"
#include "rule/draft.h"

#include <math.h>
#include <string.h>

ParamKind opdef_attr_kind(const OpDef *def, int index) {
    for (int p = 0, a = 0; p < def->param_count; p++)
        if (def->params[p].kind != PARAM_TENSOR && def->params[p].kind != PARAM_TENSORS &&
            a++ == index)
            return def->params[p].kind;
    BUG("%s has no argument %d", def->name, index);
}

const RuleKernel *rule_kernel(const Rule *rule, const char *backend) {
    const RuleKernel *found = NULL;
    for (int k = 0; k < rule->call.kernel_count; k++)
        if (!rule->call.kernels[k].backend ? !found || !found->backend
                                           : !strcmp(rule->call.kernels[k].backend, backend))
            found = &rule->call.kernels[k];
    return found;
}

static Bounds of_leaf(const Expr *leaf, void *context) {
    (void)leaf, (void)context;
    return bounds_open();
}

static bool has_infinity(const Expr *expr) {
    Bounds range = bounds_of(expr, of_leaf, NULL);
    bool found = bounds_is(range, HUGE_VAL) || bounds_is(range, -HUGE_VAL);
    for (int a = 0; a < expr->arg_count && !found; a++) found = has_infinity(expr->arg[a]);
    return found;
}

bool rule_has_infinity(const Rule *rule) {
    bool found = rule->body && has_infinity(rule->body);
    for (int e = 0; e < rule->equations.count && !found; e++)
        found = has_infinity(rule->equations.at[e].expr);
    for (int f = 0; f < rule->factor_count && !found; f++)
        found = rule->factors[f].reduction == REDUCE_MAX || rule->factors[f].merge;
    return found;
}

bool expr_is_product(const Expr *term, ProductTerm *product) {
    if (term->kind == EXPR_MUL)
        return expr_is_product(term->arg[0], product) && expr_is_product(term->arg[1], product);
    if (term->kind == EXPR_ACCESS && product->count < 2)
        return product->operand[product->count++] = term->index, true;
    if ((term->kind != EXPR_NUMBER && term->kind != EXPR_ATTR) || product->scale) return false;
    return product->scale = term, true;
}

/* Returns whether a contracting body is x * w, perhaps with one optional operand added. */
static bool is_product(const Rule *rule) {
    ExprTerm terms[2];
    ProductTerm product = {0};
    int count = expr_terms(rule->body, terms, 2);
    if (count > 2 || terms[0].negative || !expr_is_product(terms[0].expr, &product) ||
        product.count != 2 || product.scale || product.operand[0] == product.operand[1])
        return false;
    return count == 1 || (!terms[1].negative && terms[1].expr->kind == EXPR_ACCESS &&
                          rule->operands[terms[1].expr->index].optional);
}

RuleForm rule_form(const Rule *rule) {
    bool contracted = false;
    for (int f = 0; f < rule->factor_count; f++) contracted |= rule->factors[f].contracted;
    if (rule->kind != RULE_BODY) return RULE_OTHER;
    return !contracted ? RULE_MAP : is_product(rule) ? RULE_PRODUCT : RULE_REDUCTION;
}

/* ---- copies, sums, and linearity ---- */

/* Returns whether an expression is an operand with the result's indices, one factor a dimension. */
static bool is_operand_in_place(const Rule *rule, const Expr *expr) {
    if (expr->kind != EXPR_ACCESS ||
        rule->operands[expr->index].dim_count != rule->results[0].dim_count)
        return false;
    const Access *operand = &rule->operands[expr->index], *result = &rule->results[0];
    for (int d = 0; d < result->dim_count; d++)
        if (operand->dims[d].count != 1 || result->dims[d].count != 1 ||
            operand->dims[d].factors[0] != result->dims[d].factors[0])
            return false;
    return true;
}

bool rule_is_copy(const Rule *rule) {
    return rule->form == RULE_MAP && is_operand_in_place(rule, rule->body);
}

bool rule_is_sum(const Rule *rule) {
    return rule->form == RULE_MAP && rule->body->kind == EXPR_ADD && rule->operand_count == 2 &&
           is_operand_in_place(rule, rule->body->arg[0]) &&
           is_operand_in_place(rule, rule->body->arg[1]);
}

/* Returns whether an expression has no operand of the set `in`; bit i: operand i. */
static bool free_of(const Expr *expr, unsigned in) {
    if (expr->kind == EXPR_ACCESS) return !(in >> expr->index & 1);
    for (int i = 0; i < expr->arg_count; i++)
        if (!free_of(expr->arg[i], in)) return false;
    return true;
}

/* Returns whether the expression is jointly linear in operands `in`: it doubles if all these do. */
static bool linear_in(const Expr *expr, unsigned in) {
    const Expr *const *arg = expr->arg;
    switch (expr->kind) {
    case EXPR_NUMBER: return expr->number == 0;
    case EXPR_ACCESS: return in >> expr->index & 1;
    case EXPR_NEG: return linear_in(arg[0], in);
    case EXPR_ADD:
    case EXPR_SUB: return linear_in(arg[0], in) && linear_in(arg[1], in);
    case EXPR_MUL:
        return (linear_in(arg[0], in) && free_of(arg[1], in)) ||
               (free_of(arg[0], in) && linear_in(arg[1], in));
    case EXPR_DIV: return linear_in(arg[0], in) && free_of(arg[1], in);
    case EXPR_SELECT: return free_of(arg[0], in) && linear_in(arg[1], in) && linear_in(arg[2], in);
    default: return false;
    }
}

/* Returns the smallest set of operands that has `operand`, has none of `taken`, and in which the
 * body is jointly linear; 0: there is none. */
static unsigned linear_set(const Rule *rule, int operand, unsigned taken) {
    unsigned best = 0;
    for (unsigned set = 1; set < 1u << rule->operand_count; set++)
        if (set >> operand & 1 && !(set & taken) && linear_in(rule->body, set) &&
            (!best || __builtin_popcount(set) < __builtin_popcount(best)))
            best = set;
    return best;
}

bool rule_linear_in(const Rule *rule, unsigned set) { return linear_in(rule->body, set); }

enum { LINEAR_OPERANDS_MOST = 10 };

void rule_linear(const Rule *rule, int *group) {
    for (int i = 0; i < rule->operand_count; i++) group[i] = rule->operands[i].linear;
    if (rule->kind == RULE_VIEW) group[0] = 1;
    bool to_any =
        rule->results[0].element.kind == ELEMENT_ARGUMENT; // perhaps an integer type, which rounds
    if (rule->kind != RULE_BODY || to_any || rule->operand_count > LINEAR_OPERANDS_MOST) return;
    // each operand without a clause joins the smallest linear set of operands without a group
    unsigned taken = 0;
    for (int i = 0; i < rule->operand_count; i++)
        if (group[i]) taken |= 1u << i;
    for (int i = 0, groups = 0; i < rule->operand_count; i++) {
        unsigned set = taken >> i & 1 ? 0 : linear_set(rule, i, taken);
        groups += set != 0;
        for (int k = 0; k < rule->operand_count; k++)
            if (set >> k & 1) group[k] = groups;
        taken |= set;
    }
}
