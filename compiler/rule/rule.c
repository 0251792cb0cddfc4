#include "rule/parse.h"

#include "rule/build.h"

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
    return rule_def(arena, name, rule);
}

const OpDef *rule_def(Arena *arena, const char *name, const Rule *rule)
{
    OpParam *params = arena_array(arena, OpParam, rule->operand_count);
    for (int i = 0; i < rule->operand_count; i++)
        params[i] = (OpParam){rule->operands[i].name, rule->operands[i].variadic ? PARAM_TENSORS : PARAM_TENSOR};
    OpDef *def = arena_new(arena, OpDef);
    *def = (OpDef){.name = arena_string(arena, name), .param_count = rule->operand_count, .params = params, .rule = rule};
    return def;
}

const OpDef *rule_convert(Arena *arena, DType dtype)
{
    RuleDraft *draft = rule_draft(arena);
    int i = draft_factor(draft, (Factor){.name = "i", .ellipsis = true});
    Access y = draft_access(draft, "y", 1, &i);
    y.element = (Element){ELEMENT_FIXED, (int)dtype};
    draft_result(draft, y);
    draft_operand(draft, draft_access(draft, "x", 1, &i));
    draft_body(draft, expr_leaf(arena, EXPR_ACCESS, 0));
    return draft_op(draft, arena_format(arena, "to_%s", dtype_name(dtype)));
}
