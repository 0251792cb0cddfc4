#include "passes/gradient/rule.h"

#include "rule/expr.h"
#include "passes/arguments.h"

#include <string.h>

/* The forward operator, and the names that the derived rule gives to things. Accesses of the derived rule are numbered as the forward
 * operands, then dy, then y. */
typedef struct Deriver {
    Arena *arena;
    const Op *op;
    const Rule *rule;
    int operand, dy, y;        // dx is the gradient of `operand`; the numbers of dy and y
    const char **factor_names; // by bound factor
    const char **access_names; // by access
    const char *dx_name;
    bool *mentioned;  // by access: the derived rule has it
    bool *occurs;     // by bound factor: the derived rule has it
    Array(int) order; // accesses as the text mentions them
} Deriver;

/* ---- names ---- */

static bool name_taken(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (names[i] && !strcmp(names[i], name))
            return true;
    return false;
}

/* How many bound factors before `bound` belong to the same factor of the rule. */
static int place_in_factor(const Binding *binding, int bound)
{
    int place = 0;
    while (bound > place && binding->factors[bound - place - 1].factor == binding->factors[bound].factor)
        place++;
    return place;
}

static void name_factors(Deriver *deriver)
{
    const Binding *binding = deriver->op->binding;
    int written = deriver->rule->factor_count, count = binding->factor_count;
    const char **known = arena_array(deriver->arena, const char *, written + count + 1);
    for (int f = 0; f < written; f++)
        known[f] = deriver->rule->factors[f].name;
    deriver->factor_names = known + written;
    for (int b = 0; b < count; b++) {
        const Factor *factor = &deriver->rule->factors[binding->factors[b].factor];
        const char *name = factor->name;
        if (factor->ellipsis)
            name = arena_format(deriver->arena, "%s%d", name, place_in_factor(binding, b));
        while (factor->ellipsis && name_taken(known, written + b, name))
            name = arena_format(deriver->arena, "%s_", name);
        deriver->factor_names[b] = name;
    }
}

static const char *new_name(Deriver *deriver, int known, const char *base)
{
    const char *name = arena_format(deriver->arena, "d%s", base);
    while (name_taken(deriver->access_names, known, name) || !strcmp(name, deriver->rule->results[0].name))
        name = arena_format(deriver->arena, "d%s", name);
    return name;
}

static void name_accesses(Deriver *deriver)
{
    int count = deriver->rule->operand_count;
    deriver->access_names = arena_array(deriver->arena, const char *, count + 2);
    for (int i = 0; i < count; i++)
        deriver->access_names[i] = deriver->rule->operands[i].name;
    deriver->access_names[deriver->dy] = new_name(deriver, count, deriver->rule->results[0].name);
    deriver->access_names[deriver->y] = deriver->rule->results[0].name;
    deriver->dx_name = new_name(deriver, count + 2, deriver->rule->operands[deriver->operand].name);
}

/* ---- the derivative ---- */

static const BoundAccess *bound_access(const Deriver *deriver, int access)
{
    bool result = access == deriver->dy || access == deriver->y;
    return result ? &deriver->op->binding->results[0] : &deriver->op->binding->operands[access];
}

static DType access_dtype(const Deriver *deriver, int access)
{
    if (access == deriver->dy)
        return gradient_dtype(deriver->op->results[0]);
    return access == deriver->y ? deriver->op->results[0]->type.dtype : deriver->op->operands[access]->type.dtype;
}

static void mark_access(const BoundAccess *access, bool *factors)
{
    for (int d = 0; d < access->rank; d++)
        for (int k = 0; k < access->dims[d].count; k++)
            factors[access->dims[d].factors[k]] = true;
}

/* Marks the bound factors of all accesses in an expression. */
static void mark_factors(const Deriver *deriver, const Expr *expr, bool *factors)
{
    if (expr->kind == EXPR_ACCESS)
        mark_access(bound_access(deriver, expr->index), factors);
    for (int i = 0; i < expr->arg_count; i++)
        mark_factors(deriver, expr->arg[i], factors);
}

static bool mentions_absent(const Deriver *deriver, const Expr *expr)
{
    if (expr->kind == EXPR_ACCESS)
        return !deriver->op->operands[expr->index];
    for (int i = 0; i < expr->arg_count; i++)
        if (mentions_absent(deriver, expr->arg[i]))
            return true;
    return false;
}

static int accesses_in(const Deriver *deriver, const Expr *expr)
{
    int count = 0;
    for (int i = 0; i < deriver->rule->operand_count + 2; i++)
        count += expr_mentions(expr, EXPR_ACCESS, i);
    return count;
}

/* Whether the result is the value of the body at one index, with all its digits: nothing is summed over, and the result's type holds what
 * is computed in float, or in an operand's type. */
static bool result_is_body(const Deriver *deriver)
{
    DType dtype = deriver->op->results[0]->type.dtype;
    for (int f = 0; f < deriver->rule->factor_count; f++)
        if (deriver->rule->factors[f].contracted)
            return false;
    for (int k = 0; k < deriver->op->operand_count; k++)
        if (deriver->op->operands[k] && dtype_size(deriver->op->operands[k]->type.dtype) > dtype_size(dtype))
            return false;
    return dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

/* The derivative in terms of the result where that needs no more tensors: y for expf(x). */
static const Expr *reuse_result(const Deriver *deriver, const Expr *derivative)
{
    const Expr *body = deriver->rule->body;
    if (!expr_calls(body) || !result_is_body(deriver))
        return derivative;
    const Expr *reused = expr_replace(deriver->arena, derivative, body, expr_leaf(deriver->arena, EXPR_ACCESS, deriver->y));
    return accesses_in(deriver, reused) <= accesses_in(deriver, derivative) ? reused : derivative;
}

/* size(f) for bound factor `bound`, as a leaf that print_leaf knows. */
static const Expr *size_of(const Deriver *deriver, int bound)
{
    if (!deriver->occurs[bound])
        return expr_number(deriver->arena, (double)deriver->op->binding->factors[bound].extent, NULL);
    return expr_leaf(deriver->arena, EXPR_SIZE, bound);
}

/* The operands that hold integers, as bits. */
static uint64_t integer_operands(const Op *op)
{
    uint64_t set = 0;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && !dtype_is_float(op->operands[k]->type.dtype))
            set |= UINT64_C(1) << k;
    return set;
}

/* dy times the derivative of one term. Where the term was summed over a factor that the derivative lacks, it counts as often as the
 * factor's extent; `repeated` collects these. */
static const Expr *term_gradient(const Deriver *deriver, const Expr *term, bool *repeated)
{
    int count = deriver->op->binding->factor_count;
    const Expr *derivative = reuse_result(deriver, expr_derivative(deriver->arena, term, deriver->operand, integer_operands(deriver->op)));
    bool *summed = arena_array(deriver->arena, bool, count + 1), *kept = arena_array(deriver->arena, bool, count + 1);
    mark_factors(deriver, term, summed);
    mark_factors(deriver, derivative, kept);
    mark_access(bound_access(deriver, deriver->operand), kept);
    mark_access(bound_access(deriver, deriver->dy), kept);
    for (int b = 0; b < count; b++)
        repeated[b] = summed[b] && !kept[b];
    return expr_binary(deriver->arena, EXPR_MUL, expr_leaf(deriver->arena, EXPR_ACCESS, deriver->dy), derivative);
}

static bool is_zero(const Expr *expr) { return expr->kind == EXPR_NUMBER && expr->number == 0; }

/* The right side of the derived rule. */
static const Expr *gradient_expression(Deriver *deriver)
{
    Arena *arena = deriver->arena;
    int count = expr_terms(deriver->rule->body, NULL, 0), factors = deriver->op->binding->factor_count;
    ExprTerm *terms = arena_array(arena, ExprTerm, count);
    bool *repeated = arena_array(arena, bool, factors + 1);
    const Expr *total = expr_number(arena, 0, NULL);
    expr_terms(deriver->rule->body, terms, count);
    for (int i = 0; i < count; i++) {
        if (mentions_absent(deriver, terms[i].expr) || !expr_mentions(terms[i].expr, EXPR_ACCESS, deriver->operand))
            continue;
        const Expr *term = term_gradient(deriver, terms[i].expr, repeated);
        for (int b = 0; b < factors && !is_zero(term); b++)
            if (repeated[b])
                term = expr_binary(arena, EXPR_MUL, term, expr_number(arena, (double)deriver->op->binding->factors[b].extent, NULL));
        total = expr_binary(arena, terms[i].negative ? EXPR_SUB : EXPR_ADD, total, term);
    }
    return total;
}

/* ---- arguments and sizes ---- */

/* Arguments as numbers, and sizes by bound factor. An ExprLeafMap. */
static const Expr *lowered_leaf(const Expr *leaf, void *context)
{
    const Deriver *deriver = context;
    const Binding *binding = deriver->op->binding;
    if (leaf->kind == EXPR_ATTR)
        return argument_number(deriver->arena, deriver->op, leaf->index);
    if (leaf->kind != EXPR_SIZE)
        return leaf;
    const Expr *size = expr_number(deriver->arena, 1, NULL);
    for (int b = 0; b < binding->factor_count; b++)
        if (binding->factors[b].factor == leaf->index)
            size = expr_binary(deriver->arena, EXPR_MUL, size, size_of(deriver, b));
    return size;
}

/* ---- text ---- */

static void print_dims(Text *out, const Deriver *deriver, const BoundAccess *access)
{
    text_string(out, "[");
    for (int d = 0; d < access->rank; d++) {
        const BoundDim *dim = &access->dims[d];
        text_string(out, d ? ", " : "");
        text_string(out, dim->count > 1 ? "(" : "");
        for (int k = 0; k < dim->count; k++)
            text_print(out, k ? " %s" : "%s", deriver->factor_names[dim->factors[k]]);
        text_string(out, dim->count > 1 ? ")" : "");
    }
    text_string(out, "]");
}

static void print_leaf(Text *out, const Expr *leaf, void *context)
{
    Deriver *deriver = context;
    if (leaf->kind == EXPR_CALL) {
        text_string(out, leaf->spelling);
        return;
    }
    if (leaf->kind == EXPR_SIZE) {
        text_print(out, "size(%s)", deriver->factor_names[leaf->index]);
        return;
    }
    if (!deriver->mentioned[leaf->index])
        array_push(deriver->arena, &deriver->order, leaf->index);
    deriver->mentioned[leaf->index] = true;
    text_string(out, deriver->access_names[leaf->index]);
    print_dims(out, deriver, bound_access(deriver, leaf->index));
}

/* Marks the extents that one access tells, given those that are known; returns whether there are new ones. */
static bool learn(const BoundAccess *access, bool *known)
{
    bool learnt = false;
    for (int d = 0; d < access->rank; d++) {
        int unknown = -1, unknowns = 0;
        for (int k = 0; k < access->dims[d].count; k++)
            if (!known[access->dims[d].factors[k]]) {
                unknown = access->dims[d].factors[k];
                unknowns++;
            }
        if (unknowns == 1)
            learnt = known[unknown] = true;
    }
    return learnt;
}

static void learn_all(const Deriver *deriver, bool *known)
{
    for (bool learnt = true; learnt;) {
        learnt = false;
        for (int i = 0; i < deriver->order.count; i++)
            learnt |= learn(bound_access(deriver, deriver->order.at[i]), known);
    }
}

/* size(f: n) for each extent that the operands do not tell. */
static void print_sizes(Text *out, const Deriver *deriver)
{
    int count = deriver->op->binding->factor_count;
    bool *known = arena_array(deriver->arena, bool, count + 1);
    learn_all(deriver, known);
    for (int b = 0; b < count; b++) {
        if (!deriver->occurs[b] || known[b])
            continue;
        text_print(out, " size(%s: %lld)", deriver->factor_names[b], (long long)deriver->op->binding->factors[b].extent);
        known[b] = true;
        learn_all(deriver, known);
    }
}

static const char *rule_text(Deriver *deriver, const Expr *total)
{
    Text out = {.arena = deriver->arena};
    DType dtype = gradient_dtype(deriver->op->operands[deriver->operand]);
    bool other = false;
    text_string(&out, deriver->dx_name);
    print_dims(&out, deriver, bound_access(deriver, deriver->operand));
    text_string(&out, " = ");
    expr_print(&out, total, print_leaf, deriver);
    print_sizes(&out, deriver);
    for (int i = 0; i < deriver->order.count; i++)
        other |= access_dtype(deriver, deriver->order.at[i]) != dtype;
    if (other)
        text_print(&out, " dtype(%s: %s)", deriver->dx_name, dtype_name(dtype));
    return text_bytes(&out);
}

/* ---- the whole ---- */

/* Whether the operator, which the compiler inserted, only gives its operand in a narrower type. */
static bool is_narrow_copy(const Op *op)
{
    return !op->def->at.file && rule_is_copy(op->def->rule) && dtype_is_float(op->operands[0]->type.dtype) &&
           dtype_size(op->operands[0]->type.dtype) > dtype_size(op->results[0]->type.dtype);
}

DType gradient_dtype(const Value *value)
{
    return value->def && is_narrow_copy(value->def) ? dtype_wide(value->type.dtype) : value->type.dtype;
}

static bool same_dims(const BoundAccess *a, const BoundAccess *b)
{
    if (a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d].count != b->dims[d].count || memcmp(a->dims[d].factors, b->dims[d].factors, sizeof(int) * (size_t)a->dims[d].count))
            return false;
    return true;
}

static bool is_same(const Deriver *deriver, const Expr *total)
{
    return total->kind == EXPR_ACCESS && total->index == deriver->dy &&
           same_dims(bound_access(deriver, deriver->dy), bound_access(deriver, deriver->operand)) &&
           access_dtype(deriver, deriver->dy) == gradient_dtype(deriver->op->operands[deriver->operand]);
}

static const int *operand_list(const Deriver *deriver)
{
    int *list = arena_array(deriver->arena, int, deriver->order.count);
    for (int i = 0; i < deriver->order.count; i++) {
        int access = deriver->order.at[i];
        list[i] = access == deriver->dy ? GRADIENT_OF_RESULT : access == deriver->y ? THE_RESULT : access;
    }
    return list;
}

GradientRule gradient_rule(Module *module, const Op *op, int operand)
{
    Arena *arena = module->arena;
    const Rule *rule = op->def->rule;
    int accesses = rule->operand_count + 2;
    Deriver deriver = {.arena = arena,
                       .op = op,
                       .rule = rule,
                       .operand = operand,
                       .dy = rule->operand_count,
                       .y = rule->operand_count + 1,
                       .mentioned = arena_array(arena, bool, accesses),
                       .occurs = arena_array(arena, bool, op->binding->factor_count + 1)};
    name_factors(&deriver);
    name_accesses(&deriver);
    const Expr *total = gradient_expression(&deriver);
    if (is_zero(total))
        return (GradientRule){.kind = GRADIENT_ZERO};
    if (is_same(&deriver, total))
        return (GradientRule){.kind = GRADIENT_SAME};
    mark_factors(&deriver, total, deriver.occurs);
    mark_access(bound_access(&deriver, operand), deriver.occurs);
    const char *text = rule_text(&deriver, expr_mapped(arena, total, lowered_leaf, &deriver));
    const OpDef *def = rule_inserted(arena, arena_format(arena, "%s_%s", op->def->name, deriver.dx_name), text);
    return (GradientRule){
        .kind = GRADIENT_RULE, .def = module_def(module, def), .operand_count = deriver.order.count, .operands = operand_list(&deriver)};
}
