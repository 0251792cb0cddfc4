/* Checks a whole rule after all of its clauses are read: whether its parts fit together. */
#include "rule/draft.h"
#include "rule/equations.h"

static int count_with(const Access *accesses, int count, int factor) {
    int with = 0;
    for (int i = 0; i < count; i++) with += access_has(&accesses[i], factor);
    return with;
}

static void check_factor(RuleDraft *draft, int index) {
    const Rule *rule = &draft->rule;
    const Factor *factor = &rule->factors[index];
    Position at = factor->at;
    if (factor->contracted && rule->kind != RULE_BODY && !factor->reduction && !factor->replicate &&
        !factor->merge)
        RULE_ERROR(draft, at,
                   "the results lack the factor '%s': say reduction(+: %s), reduction(max: %s), "
                   "merge(%s: OPERATOR) or replicate(%s)",
                   factor->name, factor->name, factor->name, factor->name, factor->name);
    if ((factor->reduction || factor->merge) &&
        count_with(rule->results, rule->result_count, index) == rule->result_count)
        RULE_ERROR(draft, at, "the clause %s names '%s', which every result has",
                   factor->merge ? "merge" : "reduction", factor->name);
    if (factor->merge && (factor->reduction || factor->replicate))
        RULE_ERROR(draft, factor->merge_at,
                   "the factor '%s' is %s: the clause merge would join what is joined already or "
                   "never cut",
                   factor->name, factor->reduction ? "reduced" : "replicated");
    if (!count_with(rule->operands, rule->operand_count, index) && !factor->size) {
        if (factor->ellipsis)
            RULE_ERROR(draft, at, "no operand has the factor '%s..', so its extents are not known",
                       factor->name);
        else
            RULE_ERROR(draft, at,
                       "no operand has the factor '%s': give its extent with size(%s: ...)",
                       factor->name, factor->name);
    }
    if (factor->size && factor->ellipsis)
        RULE_ERROR(draft, at,
                   "the clause size cannot give the extents of '%s..', which stands for several "
                   "dimensions",
                   factor->name);
}

/* Checks that a variadic operand has the factor m of size(n: +m); m's extent differs by tensor. */
static void check_size_sum(RuleDraft *draft) {
    const Rule *rule = &draft->rule;
    int summed = draft->size_sum_of;
    for (int i = 0; summed >= 0 && i < rule->operand_count; i++)
        if (rule->operands[i].variadic && access_has(&rule->operands[i], summed)) return;
    if (summed >= 0)
        RULE_ERROR(
            draft, rule->factors[summed].at,
            "size(f: +%s) adds up over an operand of any number of tensors, but none has '%s'",
            rule->factors[summed].name, rule->factors[summed].name);
}

static void check_variadic(RuleDraft *draft) {
    int variadic = 0;
    for (int i = 0; i < draft->rule.operand_count; i++)
        if (draft->rule.operands[i].variadic && variadic++)
            RULE_ERROR(draft, draft->rule.operands[i].at,
                       "one operand may stand for any number of tensors, not two");
}

static void check_kernel(RuleDraft *draft, Position start) {
    const Rule *rule = &draft->rule;
    if (rule->kind == RULE_CALL && !rule->call.kernel_count)
        RULE_ERROR(
            draft, start,
            "a rule of this form needs the clause kernel(f): the C function that computes it");
    if (rule->kind != RULE_CALL && rule->call.kernel_count)
        RULE_ERROR(draft, rule->call.kernels[0].at,
                   "the rule says what is computed; the clause kernel would say it twice");
    if (rule->kind == RULE_VIEW && rule->shape_attr < 0)
        RULE_ERROR(draft, start,
                   "a view needs the clause shape(argument): the parameter of type ht_dims with "
                   "the new shape");
    if (rule->kind != RULE_VIEW && rule->shape_attr >= 0)
        RULE_ERROR(draft, draft->shape_at, "the clause shape belongs to a view: y = name(x)");
}

static void check_epilogue(RuleDraft *draft, Position start) {
    const Rule *rule = &draft->rule;
    bool elementwise = rule->form == RULE_MAP && rule->operand_count == 1;
    if (rule->epilogue && !elementwise &&
        !(rule->kind == RULE_EQUATIONS && rule->equations.count == 2))
        RULE_ERROR(draft, start,
                   "the clause epilogue belongs to a rule of the form y[i..] = f(x[i..])");
}

static void check_tiles(RuleDraft *draft, Position start) {
    const Rule *rule = &draft->rule;
    bool one = rule->result_count == 1 && rule->operand_count == 1 && !rule->operands[0].variadic;
    if (rule->tiles.op && !one)
        RULE_ERROR(draft, start,
                   "the clause tiles belongs to a rule of one operand and one result");
}

static void check_plus(RuleDraft *draft, Position start) {
    const Rule *rule = &draft->rule;
    for (int r = 0; r < rule->result_count; r++)
        if (rule->results[r].plus >= 0 && rule->kind != RULE_CALL)
            RULE_ERROR(draft, start,
                       "the clause plus belongs to a rule with the clause kernel; an expression "
                       "adds the operand itself");
}

/* Checks that a body is linear in operands of clause `linear`: partial values can pass through. */
static void check_linear(RuleDraft *draft, Position start) {
    const Rule *rule = &draft->rule;
    for (int group = 1;
         rule->kind == RULE_BODY && rule->operand_count <= 32 && group <= draft->linear_groups;
         group++) {
        unsigned set = 0;
        const char *first = NULL;
        for (int i = 0; i < rule->operand_count; i++)
            if (rule->operands[i].linear == group) {
                set |= 1u << i;
                first = first ? first : rule->operands[i].name;
            }
        if (set && !rule_linear_in(rule, set))
            RULE_ERROR(draft, start,
                       "the body is not linear in the operands of the clause linear(%s, ...)",
                       first);
    }
}

static void check_params_used(RuleDraft *draft, Position start) {
    for (int i = 0; i < draft->param_count; i++)
        if (param_is_tensor(draft->params[i].kind) &&
            rule_operand(draft, draft->params[i].name) < 0)
            RULE_ERROR(draft, start, "the rule does not mention the parameter '%s' of the function",
                       draft->params[i].name);
}

/* ---- equations ---- */

static const Access *left_side(const Rule *rule, int equation) {
    return equations_value(rule, rule->equations.at[equation].value);
}

/* Returns whether the left side of every equation has the factor. */
static bool in_every_value(const Rule *rule, int factor) {
    for (int e = 0; e < rule->equations.count; e++)
        if (!access_has(left_side(rule, e), factor)) return false;
    return true;
}

/* Checks that a value has all factors of a row, or none of them. Returns false after an error. */
static bool check_row(RuleDraft *draft, const Access *access, Position start) {
    const Rule *rule = &draft->rule;
    int with = 0, factors = 0;
    for (int f = 0; f < rule->factor_count; f++)
        if (!in_every_value(rule, f)) {
            factors++;
            with += access_has(access, f);
        }
    if (!with || with == factors) return true;
    RULE_ERROR(draft, start,
               "the value '%s' has some of the factors that other values lack; it must have all of "
               "them or none",
               access->name);
    return false;
}

static void check_equations(RuleDraft *draft, Position start) {
    const Rule *rule = &draft->rule;
    if (rule->kind == RULE_BODY || rule->kind == RULE_VIEW) {
        RULE_ERROR(draft, start,
                   "the clause body belongs to a rule of the form y[i..] = name(x[i..])");
        return;
    }
    for (int r = 0; r < rule->result_count; r++)
        if (!rule_has_equation(draft, r))
            RULE_ERROR(draft, start, "the clause body has no equation for the result '%s'",
                       rule->results[r].name);
    for (int e = 0; e < rule->equations.count; e++)
        if (!check_row(draft, left_side(rule, e), start)) return;
    for (int f = 0; f < rule->factor_count; f++)
        if (!in_every_value(rule, f) && !rule->factors[f].replicate)
            RULE_ERROR(draft, start,
                       "the factor '%s' goes along the rows of the clause body, which may not be "
                       "cut: say replicate(%s)",
                       rule->factors[f].name, rule->factors[f].name);
}

/* ---- whole rules ---- */

/* Marks the factors that no result has as contracted; a RULE_BODY sums over them. */
static void find_contracted(RuleDraft *draft) {
    for (int f = 0; f < draft->factors.count; f++) {
        Factor *factor = &draft->factors.at[f];
        factor->contracted = !count_with(draft->results.at, draft->results.count, f);
        if (factor->contracted && draft->rule.kind == RULE_BODY) factor->reduction = REDUCE_SUM;
    }
}

static void check(RuleDraft *draft, Position start) {
    for (int i = 0; i < draft->factors.count; i++) check_factor(draft, i);
    check_size_sum(draft);
    check_variadic(draft);
    check_kernel(draft, start);
    check_params_used(draft, start);
    check_linear(draft, start);
    check_tiles(draft, start);
    check_plus(draft, start);
    check_epilogue(draft, start);
    if (draft->equations.count) check_equations(draft, start);
}

Rule *rule_finished(RuleDraft *draft, Position start) {
    Rule *rule = &draft->rule;
    find_contracted(draft);
    rule->factor_count = draft->factors.count;
    rule->factors = draft->factors.at;
    rule->result_count = draft->results.count;
    rule->results = draft->results.at;
    rule->operand_count = draft->operands.count;
    rule->operands = draft->operands.at;
    rule->equations.local_count = draft->locals.count;
    rule->equations.locals = draft->locals.at;
    rule->equations.count = draft->equations.count;
    rule->equations.at = draft->equations.at;
    rule->call.kernel_count = draft->kernels.count;
    rule->call.kernels = draft->kernels.at;
    if (rule->kind == RULE_CALL && !rule->call.kernel_count && rule->equations.count)
        rule->kind = RULE_EQUATIONS;
    rule->form = rule_form(rule);
    check(draft, start);
    return draft->failed ? NULL : arena_copy(draft->arena, rule, sizeof *rule);
}
