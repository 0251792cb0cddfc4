/* Builds the rules of operators that passes insert: gradients, casts, fused loops. Constants are
 * folded and expressions simplified in expr.c. */
#include "rule/build.h"

#include "rule/draft.h"

RuleDraft *rule_draft(Arena *arena) {
    RuleDraft *draft = arena_new(arena, RuleDraft);
    *draft = (RuleDraft){.arena = arena,
                         .diag = diag_create(arena, stderr),
                         .rule = {.kind = RULE_EQUATIONS, .shape_attr = -1, .copy.row = -1},
                         .size_sum_of = -1};
    return draft;
}

int draft_factor(RuleDraft *draft, Factor factor) {
    array_push(draft->arena, &draft->factors, factor);
    return draft->factors.count - 1;
}

Access draft_access(const RuleDraft *draft, const char *name, int dim_count, const int *factors) {
    RuleDim *dims = arena_array(draft->arena, RuleDim, dim_count + 1);
    const int *own = arena_copy(draft->arena, factors, sizeof *factors * (size_t)dim_count);
    for (int d = 0; d < dim_count; d++) dims[d] = (RuleDim){1, &own[d]};
    return (Access){.name = name,
                    .dim_count = dim_count,
                    .dims = dims,
                    .inplace = -1,
                    .place = -1,
                    .plus = -1,
                    .pitch = -1};
}

void draft_result(RuleDraft *draft, Access access) {
    array_push(draft->arena, &draft->results, access);
}

void draft_operand(RuleDraft *draft, Access access) {
    array_push(draft->arena, &draft->operands, access);
}

void draft_local(RuleDraft *draft, Access access) {
    array_push(draft->arena, &draft->locals, access);
}

void draft_body(RuleDraft *draft, const Expr *body) {
    draft->rule.kind = RULE_BODY;
    draft->rule.body = body;
}

void draft_equation(RuleDraft *draft, int value, const Expr *expr) {
    array_push(draft->arena, &draft->equations, (RuleEquation){value, expr});
}

void draft_epilogue(RuleDraft *draft, const char *epilogue) { draft->rule.epilogue = epilogue; }

/* The new numbers of factors, by old number; -1: not numbered yet. */
typedef struct Numbering {
    RuleDraft *draft;
    int *number;
    int count;
} Numbering;

/* Returns the access with new factor numbers. Gives the next number to a factor that has none. */
static Access numbered(Numbering *numbering, const Access *access) {
    Arena *arena = numbering->draft->arena;
    RuleDim *dims = arena_array(arena, RuleDim, access->dim_count + 1);
    for (int d = 0; d < access->dim_count; d++) {
        int *factors =
            arena_copy(arena, access->dims[d].factors, sizeof(int) * (size_t)access->dims[d].count);
        for (int k = 0; k < access->dims[d].count; k++) {
            int *number = &numbering->number[factors[k]];
            if (*number < 0) *number = numbering->count++;
            factors[k] = *number;
        }
        dims[d] = (RuleDim){access->dims[d].count, factors};
    }
    Access copy = *access;
    copy.dims = dims;
    return copy;
}

/* Renumbers the factor of a size. Implements ExprLeafMap. */
static const Expr *numbered_leaf(const Expr *leaf, void *context) {
    const Numbering *numbering = context;
    return leaf->kind == EXPR_SIZE
               ? expr_leaf(numbering->draft->arena, EXPR_SIZE, numbering->number[leaf->index])
               : leaf;
}

/* Renumbers the factors in the order in which the rule's text has them: first those of results,
 * then those of operands. Drops factors that no access has. */
static void number_factors(RuleDraft *draft) {
    Arena *arena = draft->arena;
    int count = draft->factors.count;
    Numbering numbering = {.draft = draft, .number = arena_array(arena, int, count + 1)};
    const Factor *old = arena_copy(arena, draft->factors.at, sizeof *old * (size_t)count);
    for (int f = 0; f < count; f++) numbering.number[f] = -1;
    for (int i = 0; i < draft->results.count; i++)
        draft->results.at[i] = numbered(&numbering, &draft->results.at[i]);
    for (int i = 0; i < draft->operands.count; i++)
        draft->operands.at[i] = numbered(&numbering, &draft->operands.at[i]);
    for (int i = 0; i < draft->locals.count; i++)
        draft->locals.at[i] = numbered(&numbering, &draft->locals.at[i]);
    for (int f = 0; f < count; f++)
        if (numbering.number[f] >= 0) draft->factors.at[numbering.number[f]] = old[f];
    draft->factors.count = numbering.count;
    if (draft->rule.body)
        draft->rule.body = expr_mapped(arena, draft->rule.body, numbered_leaf, &numbering);
    for (int i = 0; i < draft->equations.count; i++)
        draft->equations.at[i].expr =
            expr_mapped(arena, draft->equations.at[i].expr, numbered_leaf, &numbering);
}

/* Makes the operator of a rule without attributes. */
static const OpDef *rule_def(Arena *arena, const char *name, const Rule *rule) {
    OpParam *params = arena_array(arena, OpParam, rule->operand_count);
    for (int i = 0; i < rule->operand_count; i++)
        params[i] = (OpParam){rule->operands[i].name,
                              rule->operands[i].variadic ? PARAM_TENSORS : PARAM_TENSOR};
    OpDef *def = arena_new(arena, OpDef);
    *def = (OpDef){.name = arena_string(arena, name),
                   .param_count = rule->operand_count,
                   .params = params,
                   .rule = rule};
    return def;
}

const OpDef *draft_op(RuleDraft *draft, const char *name) {
    number_factors(draft);
    Rule *rule = rule_finished(draft, (Position){0});
    if (!rule) BUG("the rule of %s does not hold together", name);
    rule->text = rule_printed(draft->arena, rule, name);
    return rule_def(draft->arena, name, rule);
}

const OpDef *rule_inserted(Arena *arena, const char *name, const char *text) {
    Diag *diag = diag_create(arena, stderr);
    Tokens tokens = tokens_of(arena, diag, (Position){0}, text);
    const Rule *rule = rule_parse(&tokens, NULL, 0);
    if (!rule) BUG("the inserted rule does not parse: %s", text);
    return rule_def(arena, name, rule);
}

const OpDef *rule_convert(Arena *arena, DType dtype) {
    RuleDraft *draft = rule_draft(arena);
    int i = draft_factor(draft, (Factor){.name = "i", .ellipsis = true});
    Access y = draft_access(draft, "y", 1, &i);
    y.element = (Element){ELEMENT_FIXED, (int)dtype};
    draft_result(draft, y);
    draft_operand(draft, draft_access(draft, "x", 1, &i));
    draft_body(draft, expr_leaf(arena, EXPR_ACCESS, 0));
    return draft_op(draft, arena_format(arena, "to_%s", dtype_name(dtype)));
}
