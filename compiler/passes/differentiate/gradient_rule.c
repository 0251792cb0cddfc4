/* Derives gradients of rules that are expressions. Gradients of kernels (layer norm, softmax,
 * attention) are functions beside their prototypes in include/hetu/ops.h. gradient_dtype gives the
 * type of a gradient: f32 for parameters that are cast to bf16. */
#include "passes/differentiate/gradient_rule.h"

#include "rule/build.h"
#include "rule/gradient.h"

#include <string.h>

/* The derivation of a gradient rule, whose accesses are: the forward operands, then dy, then y. */
typedef struct Deriver {
    Arena *arena;
    const Op *op;
    const Rule *rule;
    int operand, dy, y;        // operand whose gradient is dx; access numbers of dy and y
    const char **factor_names; // by bound factor
    const char **access_names; // by access
    const char *dx_name;
    int *place;       // by access: its position in `order`; -1: none
    bool *occurs;     // by bound factor: occurs in the derived rule
    Array(int) order; // the accesses in the order in which the derived rule mentions them
} Deriver;

/* ---- names ---- */

/* Returns how many bound factors before `bound` belong to the same factor of the rule. */
static int place_in_factor(const Binding *binding, int bound) {
    int place = 0;
    while (bound > place &&
           binding->factors[bound - place - 1].factor == binding->factors[bound].factor)
        place++;
    return place;
}

static void name_factors(Deriver *deriver) {
    const Binding *binding = deriver->op->binding;
    int written = deriver->rule->factor_count, count = binding->factor_count;
    const char **known = arena_array(deriver->arena, const char *, written + count + 1);
    for (int f = 0; f < written; f++) known[f] = deriver->rule->factors[f].name;
    deriver->factor_names = known + written;
    for (int b = 0; b < count; b++) {
        const Factor *factor = &deriver->rule->factors[binding->factors[b].factor];
        const char *name = factor->name;
        if (factor->ellipsis)
            name = arena_format(deriver->arena, "%s%d", name, place_in_factor(binding, b));
        while (factor->ellipsis && text_find(known, written + b, name) >= 0)
            name = arena_format(deriver->arena, "%s_", name);
        deriver->factor_names[b] = name;
    }
}

static const char *new_name(Deriver *deriver, int known, const char *base) {
    const char *name = arena_format(deriver->arena, "d%s", base);
    while (text_find(deriver->access_names, known, name) >= 0 ||
           !strcmp(name, deriver->rule->results[0].name))
        name = arena_format(deriver->arena, "d%s", name);
    return name;
}

static void name_accesses(Deriver *deriver) {
    int count = deriver->rule->operand_count;
    deriver->access_names = arena_array(deriver->arena, const char *, count + 2);
    for (int i = 0; i < count; i++) deriver->access_names[i] = deriver->rule->operands[i].name;
    deriver->access_names[deriver->dy] = new_name(deriver, count, deriver->rule->results[0].name);
    deriver->access_names[deriver->y] = deriver->rule->results[0].name;
    deriver->dx_name = new_name(deriver, count + 2, deriver->rule->operands[deriver->operand].name);
}

/* ---- the derivative ---- */

static const BoundAccess *bound_access(const Deriver *deriver, int access) {
    bool result = access == deriver->dy || access == deriver->y;
    return result ? &deriver->op->binding->results[0] : &deriver->op->binding->operands[access];
}

static DType access_dtype(const Deriver *deriver, int access) {
    if (access == deriver->dy) return gradient_dtype(deriver->op->results[0]);
    return access == deriver->y ? deriver->op->results[0]->type.dtype
                                : deriver->op->operands[access]->type.dtype;
}

static void mark_access(const BoundAccess *access, bool *factors) {
    for (int d = 0; d < access->rank; d++)
        for (int k = 0; k < access->dims[d].count; k++) factors[access->dims[d].factors[k]] = true;
}

/* Marks the bound factors of all accesses in an expression. */
static void mark_factors(const Deriver *deriver, const Expr *expr, bool *factors) {
    if (expr->kind == EXPR_ACCESS) mark_access(bound_access(deriver, expr->index), factors);
    for (int i = 0; i < expr->arg_count; i++) mark_factors(deriver, expr->arg[i], factors);
}

static bool mentions_absent(const Deriver *deriver, const Expr *expr) {
    if (expr->kind == EXPR_ACCESS) return !deriver->op->operands[expr->index];
    for (int i = 0; i < expr->arg_count; i++)
        if (mentions_absent(deriver, expr->arg[i])) return true;
    return false;
}

/* Returns whether the result is the body's value without rounding: nothing is summed, and the
 * result's type is at least as wide as float and as the type of every operand. */
static bool result_is_body(const Deriver *deriver) {
    DType dtype = deriver->op->results[0]->type.dtype;
    if (deriver->rule->form != RULE_MAP) return false;
    for (int k = 0; k < deriver->op->operand_count; k++)
        if (deriver->op->operands[k] &&
            dtype_size(deriver->op->operands[k]->type.dtype) > dtype_size(dtype))
            return false;
    return dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

/* Returns size(f) for a bound factor f, or its extent as a number if the derived rule lacks f. */
static const Expr *size_of(const Deriver *deriver, int bound) {
    if (!deriver->occurs[bound])
        return expr_number(deriver->arena, (double)deriver->op->binding->factors[bound].extent,
                           NULL);
    return expr_leaf(deriver->arena, EXPR_SIZE, bound);
}

/* Returns the operands with integer elements; bit i: operand i. */
static uint64_t integer_operands(const Op *op) {
    uint64_t set = 0;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && !dtype_is_float(op->operands[k]->type.dtype))
            set |= UINT64_C(1) << k;
    return set;
}

static bool is_zero(const Expr *expr) { return expr->kind == EXPR_NUMBER && expr->number == 0; }

/* Returns the right side of the derived rule. */
static const Expr *gradient_expression(Deriver *deriver) {
    Arena *arena = deriver->arena;
    int count = expr_terms(deriver->rule->body, NULL, 0),
        factors = deriver->op->binding->factor_count;
    ExprTerm *terms = arena_array(arena, ExprTerm, count);
    const Expr *total = expr_number(arena, 0, NULL);
    OperandGradient of = {.rule = deriver->rule,
                          .operand = deriver->operand,
                          .integers = integer_operands(deriver->op),
                          .reuse = result_is_body(deriver)};
    uint64_t repeated;
    expr_terms(deriver->rule->body, terms, count);
    for (int i = 0; i < count; i++) {
        if (mentions_absent(deriver, terms[i].expr) ||
            !expr_mentions(terms[i].expr, EXPR_ACCESS, deriver->operand))
            continue;
        const Expr *term = rule_term_gradient(arena, &of, terms[i].expr, &repeated);
        // a term that lacks a factor of the forward sum counts once for each index of that factor
        for (int b = 0; b < factors && !is_zero(term); b++)
            if (repeated >> deriver->op->binding->factors[b].factor & 1)
                term = expr_binary(
                    arena, EXPR_MUL, term,
                    expr_number(arena, (double)deriver->op->binding->factors[b].extent, NULL));
        total = expr_binary(arena, terms[i].negative ? EXPR_SUB : EXPR_ADD, total, term);
    }
    return total;
}

/* ---- arguments and sizes ---- */

/* Replaces accesses by their positions, arguments by numbers, and sizes by products of sizes of
 * bound factors. Implements ExprLeafMap. */
static const Expr *derived_leaf(const Expr *leaf, void *context) {
    const Deriver *deriver = context;
    const Binding *binding = deriver->op->binding;
    if (leaf->kind == EXPR_ACCESS)
        return expr_leaf(deriver->arena, EXPR_ACCESS, deriver->place[leaf->index]);
    if (leaf->kind == EXPR_ATTR) return argument_number(deriver->arena, deriver->op, leaf->index);
    if (leaf->kind != EXPR_SIZE) return leaf;
    const Expr *size = expr_number(deriver->arena, 1, NULL);
    for (int b = 0; b < binding->factor_count; b++)
        if (binding->factors[b].factor == leaf->index)
            size = expr_binary(deriver->arena, EXPR_MUL, size, size_of(deriver, b));
    return size;
}

/* ---- accesses ---- */

/* Appends the accesses that an expression mentions to `order`, each once. */
static void list_accesses(Deriver *deriver, const Expr *expr) {
    if (expr->kind == EXPR_ACCESS && deriver->place[expr->index] < 0) {
        deriver->place[expr->index] = deriver->order.count;
        array_push(deriver->arena, &deriver->order, expr->index);
    }
    for (int i = 0; i < expr->arg_count; i++) list_accesses(deriver, expr->arg[i]);
}

/* Returns an access of the derived rule, whose factors are bound factors. */
static Access access_of(const Deriver *deriver, const char *name, const BoundAccess *bound) {
    RuleDim *dims = arena_array(deriver->arena, RuleDim, bound->rank + 1);
    for (int d = 0; d < bound->rank; d++)
        dims[d] = (RuleDim){bound->dims[d].count, bound->dims[d].factors};
    return (Access){.name = name,
                    .dim_count = bound->rank,
                    .dims = dims,
                    .inplace = -1,
                    .place = -1,
                    .plus = -1,
                    .pitch = -1};
}

/* Marks each factor that is the only unknown one of a dimension; returns whether it marked any. */
static bool learn(const BoundAccess *access, bool *known) {
    bool learnt = false;
    for (int d = 0; d < access->rank; d++) {
        int unknown = -1, unknowns = 0;
        for (int k = 0; k < access->dims[d].count; k++)
            if (!known[access->dims[d].factors[k]]) {
                unknown = access->dims[d].factors[k];
                unknowns++;
            }
        if (unknowns == 1) learnt = known[unknown] = true;
    }
    return learnt;
}

static void learn_all(const Deriver *deriver, bool *known) {
    for (bool learnt = true; learnt;) {
        learnt = false;
        for (int i = 0; i < deriver->order.count; i++)
            learnt |= learn(bound_access(deriver, deriver->order.at[i]), known);
    }
}

/* Adds the bound factors to the derived rule, with a size if no operand gives the extent. */
static void add_factors(const Deriver *deriver, RuleDraft *draft) {
    const Binding *binding = deriver->op->binding;
    bool *known = arena_array(deriver->arena, bool, binding->factor_count + 1);
    learn_all(deriver, known);
    for (int b = 0; b < binding->factor_count; b++) {
        Factor factor = {.name = deriver->factor_names[b]};
        if (deriver->occurs[b] && !known[b]) {
            factor.size = expr_number(deriver->arena, (double)binding->factors[b].extent, NULL);
            known[b] = true;
            learn_all(deriver, known);
        }
        draft_factor(draft, factor);
    }
}

static const OpDef *derived_op(Deriver *deriver, const Expr *total) {
    RuleDraft *draft = rule_draft(deriver->arena);
    Access dx = access_of(deriver, deriver->dx_name, bound_access(deriver, deriver->operand));
    DType dtype = gradient_dtype(deriver->op->operands[deriver->operand]);
    list_accesses(deriver, total);
    for (int i = 0; i < deriver->order.count; i++)
        if (access_dtype(deriver, deriver->order.at[i]) != dtype)
            dx.element = (Element){ELEMENT_FIXED, (int)dtype};
    add_factors(deriver, draft);
    draft_result(draft, dx);
    for (int i = 0; i < deriver->order.count; i++) {
        int access = deriver->order.at[i];
        draft_operand(draft, access_of(deriver, deriver->access_names[access],
                                       bound_access(deriver, access)));
    }
    draft_body(draft, expr_mapped(deriver->arena, total, derived_leaf, deriver));
    return draft_op(
        draft, arena_format(deriver->arena, "%s_%s", deriver->op->def->name, deriver->dx_name));
}

/* ---- the gradient's type, and the derived rule ---- */

/* Returns whether the operator is a conversion to a narrower type that the compiler inserted. */
static bool is_narrow_copy(const Op *op) {
    return !op->def->at.file && rule_is_copy(op->def->rule) &&
           dtype_is_float(op->operands[0]->type.dtype) &&
           dtype_size(op->operands[0]->type.dtype) > dtype_size(op->results[0]->type.dtype);
}

DType gradient_dtype(const Value *value) {
    return value->def && is_narrow_copy(value->def) ? dtype_wide(value->type.dtype)
                                                    : value->type.dtype;
}

static bool same_dims(const BoundAccess *a, const BoundAccess *b) {
    if (a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d].count != b->dims[d].count ||
            memcmp(a->dims[d].factors, b->dims[d].factors, sizeof(int) * (size_t)a->dims[d].count))
            return false;
    return true;
}

static bool is_same(const Deriver *deriver, const Expr *total) {
    return total->kind == EXPR_ACCESS && total->index == deriver->dy &&
           same_dims(bound_access(deriver, deriver->dy), bound_access(deriver, deriver->operand)) &&
           access_dtype(deriver, deriver->dy) ==
               gradient_dtype(deriver->op->operands[deriver->operand]);
}

static const int *operand_list(const Deriver *deriver) {
    int *list = arena_array(deriver->arena, int, deriver->order.count);
    for (int i = 0; i < deriver->order.count; i++) {
        int access = deriver->order.at[i];
        list[i] = access == deriver->dy  ? GRADIENT_OF_RESULT
                  : access == deriver->y ? THE_RESULT
                                         : access;
    }
    return list;
}

GradientRule gradient_rule(Module *module, const Op *op, int operand) {
    Arena *arena = module->arena;
    const Rule *rule = op->def->rule;
    int accesses = rule->operand_count + 2;
    Deriver deriver = {.arena = arena,
                       .op = op,
                       .rule = rule,
                       .operand = operand,
                       .dy = rule->operand_count,
                       .y = rule->operand_count + 1,
                       .place = arena_array(arena, int, accesses),
                       .occurs = arena_array(arena, bool, op->binding->factor_count + 1)};
    memset(deriver.place, -1, sizeof *deriver.place * (size_t)accesses);
    // 1: names and right side
    name_factors(&deriver);
    name_accesses(&deriver);
    const Expr *total = gradient_expression(&deriver);
    if (is_zero(total)) return (GradientRule){.kind = GRADIENT_ZERO};
    if (is_same(&deriver, total)) return (GradientRule){.kind = GRADIENT_SAME};
    // 2: the rule
    mark_factors(&deriver, total, deriver.occurs);
    mark_access(bound_access(&deriver, operand), deriver.occurs);
    const OpDef *def = module_def(module, derived_op(&deriver, total));
    return (GradientRule){.kind = GRADIENT_RULE,
                          .def = def,
                          .operand_count = deriver.order.count,
                          .operands = operand_list(&deriver)};
}
