/* What must hold of a rule as a whole. */
#include "rule/parse.h"

#include <string.h>

static int count_with(const Access *accesses, int count, int factor)
{
    int with = 0;
    for (int i = 0; i < count; i++)
        with += access_has(&accesses[i], factor);
    return with;
}

static void check_factor(RuleParser *parser, int index)
{
    Factor *factor = &parser->factors.at[index];
    Position at = parser->factor_at.at[index];
    int in_results = count_with(parser->results.at, parser->results.count, index);
    factor->contracted = in_results == 0;
    if (factor->contracted && parser->kind == RULE_BODY)
        factor->reduction = REDUCE_SUM;
    if (factor->contracted && parser->kind != RULE_BODY && !factor->reduction && !factor->replicate)
        RULE_ERROR(parser, at, "the results lack the factor '%s': say reduction(+: %s), reduction(max: %s) or replicate(%s)", factor->name,
                   factor->name, factor->name, factor->name);
    if (factor->reduction && in_results == parser->results.count)
        RULE_ERROR(parser, at, "the clause reduction names '%s', which every result has", factor->name);
    if (!count_with(parser->operands.at, parser->operands.count, index) && !factor->size) {
        if (factor->ellipsis)
            RULE_ERROR(parser, at, "no operand has the factor '%s..', so its extents are not known", factor->name);
        else
            RULE_ERROR(parser, at, "no operand has the factor '%s': give its extent with size(%s: ...)", factor->name, factor->name);
    }
    if (factor->size && factor->ellipsis)
        RULE_ERROR(parser, at, "the clause size cannot give the extents of '%s..', which stands for several dimensions", factor->name);
}

/* size(n: +m): m stands in one variadic operand, where each tensor has its own. */
static void check_size_sum(RuleParser *parser)
{
    if (parser->size_sum_of < 0)
        return;
    for (int i = 0; i < parser->operands.count; i++)
        if (parser->operands.at[i].variadic && access_has(&parser->operands.at[i], parser->size_sum_of))
            return;
    RULE_ERROR(parser, parser->factor_at.at[parser->size_sum_of],
               "size(f: +%s) adds up over an operand of any number of tensors, but none has '%s'",
               parser->factors.at[parser->size_sum_of].name, parser->factors.at[parser->size_sum_of].name);
}

static void check_variadic(RuleParser *parser)
{
    int variadic = 0;
    for (int i = 0; i < parser->operands.count; i++)
        if (parser->operands.at[i].variadic && variadic++)
            RULE_ERROR(parser, parser->operand_at.at[i], "one operand may stand for any number of tensors, not two");
}

static void check_kernel(RuleParser *parser, Position start)
{
    if (parser->kind == RULE_CALL && !parser->kernels.count && parser->equations.count)
        parser->kind = RULE_EQUATIONS;
    if (parser->kind == RULE_CALL && !parser->kernels.count)
        RULE_ERROR(parser, start, "a rule of this form needs the clause kernel(f): the C function that computes it");
    if (parser->kind != RULE_CALL && parser->kernels.count)
        RULE_ERROR(parser, parser->kernels.at[0].at, "the rule says what is computed; the clause kernel would say it twice");
    if (parser->kind == RULE_VIEW && parser->shape_attr < 0)
        RULE_ERROR(parser, start, "a view needs the clause shape(argument): the parameter of type ht_dims with the new shape");
    if (parser->kind != RULE_VIEW && parser->shape_attr >= 0)
        RULE_ERROR(parser, parser->shape_at, "the clause shape belongs to a view: y = name(x)");
}

static void check_epilogue(RuleParser *parser, Position start)
{
    bool elementwise = parser->kind == RULE_BODY && parser->operands.count == 1;
    for (int f = 0; f < parser->factors.count; f++)
        elementwise = elementwise && !parser->factors.at[f].contracted;
    if (parser->epilogue && !elementwise && !(parser->kind == RULE_EQUATIONS && parser->equations.count == 2))
        RULE_ERROR(parser, start, "the clause epilogue belongs to a rule of the form y[i..] = f(x[i..])");
}

static void check_tiles(RuleParser *parser, Position start)
{
    bool one = parser->results.count == 1 && parser->operands.count == 1 && !parser->operands.at[0].variadic;
    if (parser->tiles && !one)
        RULE_ERROR(parser, start, "the clause tiles belongs to a rule of one operand and one result");
}

static void check_params_used(RuleParser *parser, Position start)
{
    for (int i = 0; i < parser->param_count; i++)
        if (param_is_tensor(parser->params[i].kind) && rule_operand(parser, parser->params[i].name) < 0)
            RULE_ERROR(parser, start, "the rule does not mention the parameter '%s' of the function", parser->params[i].name);
}

void rule_check(RuleParser *parser, Position start)
{
    for (int i = 0; i < parser->factors.count; i++)
        check_factor(parser, i);
    check_size_sum(parser);
    check_variadic(parser);
    check_kernel(parser, start);
    check_params_used(parser, start);
    check_tiles(parser, start);
    check_epilogue(parser, start);
    if (parser->equations.count)
        rule_check_equations(parser, start);
}
