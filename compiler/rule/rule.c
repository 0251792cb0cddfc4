#include "rule/parse.h"

#include "rule/expr.h"

#include <string.h>

const char *dtype_name(DType dtype)
{
    static const char *const names[] = {
        [DTYPE_F32] = "f32", [DTYPE_BF16] = "bf16", [DTYPE_F64] = "f64", [DTYPE_I32] = "i32", [DTYPE_I64] = "i64"};
    return names[dtype];
}

int dtype_size(DType dtype)
{
    static const int sizes[] = {[DTYPE_F32] = 4, [DTYPE_BF16] = 2, [DTYPE_F64] = 8, [DTYPE_I32] = 4, [DTYPE_I64] = 8};
    return sizes[dtype];
}

DType dtype_wide(DType dtype) { return dtype == DTYPE_BF16 ? DTYPE_F32 : dtype == DTYPE_I32 ? DTYPE_I64 : dtype; }

ParamKind opdef_attr_kind(const OpDef *def, int index)
{
    for (int p = 0, a = 0; p < def->param_count; p++)
        if (def->params[p].kind != PARAM_TENSOR && def->params[p].kind != PARAM_TENSORS && a++ == index)
            return def->params[p].kind;
    BUG("%s has no argument %d", def->name, index);
}

bool dtype_is_float(DType dtype) { return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F64; }

const RuleKernel *rule_kernel(const Rule *rule, const char *backend)
{
    const RuleKernel *found = NULL;
    for (int k = 0; k < rule->kernel_count; k++)
        if (!rule->kernels[k].backend ? !found || !found->backend : !strcmp(rule->kernels[k].backend, backend))
            found = &rule->kernels[k];
    return found;
}

bool access_has(const Access *access, int factor)
{
    for (int d = 0; d < access->dim_count; d++)
        for (int k = 0; k < access->dims[d].count; k++)
            if (access->dims[d].factors[k] == factor)
                return true;
    return false;
}

const OpDef *rule_inserted(Arena *arena, const char *name, const char *text)
{
    Diag *diag = diag_create(arena, stderr);
    Tokens tokens = tokens_of(arena, diag, (Position){0}, text);
    const Rule *rule = rule_parse(&tokens, NULL, 0);
    if (!rule)
        BUG("the inserted rule does not parse: %s", text);
    OpParam *params = arena_array(arena, OpParam, rule->operand_count);
    for (int i = 0; i < rule->operand_count; i++)
        params[i] = (OpParam){rule->operands[i].name, rule->operands[i].variadic ? PARAM_TENSORS : PARAM_TENSOR};
    OpDef *def = arena_new(arena, OpDef);
    *def = (OpDef){.name = arena_string(arena, name), .param_count = rule->operand_count, .params = params, .rule = rule};
    return def;
}

const OpDef *rule_convert(Arena *arena, DType dtype)
{
    return rule_inserted(arena, arena_format(arena, "to_%s", dtype_name(dtype)),
                         arena_format(arena, "y[i..] = x[i..] dtype(y: %s)", dtype_name(dtype)));
}

bool rule_is_copy(const Rule *rule)
{
    if (rule->kind != RULE_BODY || rule->operand_count != 1 || rule->body->kind != EXPR_ACCESS ||
        rule->operands[0].dim_count != rule->results[0].dim_count)
        return false;
    for (int d = 0; d < rule->operands[0].dim_count; d++)
        if (rule->operands[0].dims[d].count != 1 || rule->results[0].dims[d].count != 1 ||
            rule->operands[0].dims[d].factors[0] != rule->results[0].dims[d].factors[0])
            return false;
    return true;
}

static bool is_product(const Expr *expr)
{
    return expr->kind == EXPR_MUL && expr->arg[0]->kind == EXPR_ACCESS && expr->arg[1]->kind == EXPR_ACCESS &&
           expr->arg[0]->index != expr->arg[1]->index;
}

bool rule_is_product(const Rule *rule)
{
    if (rule->kind != RULE_BODY)
        return false;
    const Expr *body = rule->body;
    if (body->kind == EXPR_ADD && body->arg[1]->kind == EXPR_ACCESS && rule->operands[body->arg[1]->index].optional)
        body = body->arg[0];
    bool contracted = false;
    for (int i = 0; i < rule->factor_count; i++)
        contracted |= rule->factors[i].contracted;
    return contracted && is_product(body);
}

/* ---- linearity ---- */

/* Whether no operand of the set `in` (a bit an operand) occurs. */
static bool free_of(const Expr *expr, unsigned in)
{
    if (expr->kind == EXPR_ACCESS)
        return !(in >> expr->index & 1);
    for (int i = 0; i < expr->arg_count; i++)
        if (!free_of(expr->arg[i], in))
            return false;
    return true;
}

/* Whether the expression is linear in the operands of `in` together: twice all of them gives twice the value. */
static bool linear_in(const Expr *expr, unsigned in)
{
    const Expr *const *arg = expr->arg;
    switch (expr->kind) {
    case EXPR_NUMBER: return expr->number == 0;
    case EXPR_ACCESS: return in >> expr->index & 1;
    case EXPR_NEG: return linear_in(arg[0], in);
    case EXPR_ADD:
    case EXPR_SUB: return linear_in(arg[0], in) && linear_in(arg[1], in);
    case EXPR_MUL: return (linear_in(arg[0], in) && free_of(arg[1], in)) || (free_of(arg[0], in) && linear_in(arg[1], in));
    case EXPR_DIV: return linear_in(arg[0], in) && free_of(arg[1], in);
    case EXPR_SELECT: return free_of(arg[0], in) && linear_in(arg[1], in) && linear_in(arg[2], in);
    default: return false;
    }
}

/* The smallest set of operands with `operand`, none of `taken`, in which the body is linear; 0 when there is none. */
static unsigned linear_set(const Rule *rule, int operand, unsigned taken)
{
    unsigned best = 0;
    for (unsigned set = 1; set < 1u << rule->operand_count; set++)
        if (set >> operand & 1 && !(set & taken) && linear_in(rule->body, set) &&
            (!best || __builtin_popcount(set) < __builtin_popcount(best)))
            best = set;
    return best;
}

enum { LINEAR_OPERANDS_MOST = 10 };

void rule_linear(const Rule *rule, int *group)
{
    for (int i = 0; i < rule->operand_count; i++)
        group[i] = rule->operands[i].linear;
    if (rule->kind == RULE_VIEW)
        group[0] = 1;
    bool to_any = rule->results[0].element.kind == ELEMENT_ARGUMENT; // perhaps to integers
    if (rule->kind != RULE_BODY || to_any || rule->operand_count > LINEAR_OPERANDS_MOST)
        return;
    unsigned taken = 0;
    for (int i = 0; i < rule->operand_count; i++)
        if (group[i])
            taken |= 1u << i;
    for (int i = 0, groups = 0; i < rule->operand_count; i++) {
        unsigned set = taken >> i & 1 ? 0 : linear_set(rule, i, taken);
        groups += set != 0;
        for (int k = 0; k < rule->operand_count; k++)
            if (set >> k & 1)
                group[k] = groups;
        taken |= set;
    }
}
