/* Reads a rule: its results, its right side, then its clauses (clause.c).
 *
 *     y[b.., o] = x[b.., i] * w[o, i]  ...      results y; right side: a body
 *     y[i..] = name(x[i..], n)  kernel(k)       right side: the call of a kernel
 */
#include "rule/draft.h"

#include "syntax/lex.h"

#include <stdlib.h>
#include <string.h>

static bool parse_result(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    Access access = rule_access(draft, "a result such as y[i]");
    if (!access.name) return false;
    if (rule_param(draft, access.name) || rule_result(draft, access.name) >= 0)
        return RULE_ERROR(draft, access.at,
                          rule_param(draft, access.name)
                              ? "the result '%s' has the name of a parameter"
                              : "two results are called '%s'",
                          access.name);
    if (tokens_is(tokens, "=") && draft->results.count == 0) draft->rule.kind = RULE_VIEW;
    else if (!rule_dims(draft, &access)) return rule_fail(draft);
    if (draft->results.count == IR_MAX_RESULTS)
        return RULE_ERROR(draft, access.at, "a rule has at most %d results", IR_MAX_RESULTS);
    array_push(draft->arena, &draft->results, access);
    return true;
}

/* Returns whether the right side is NAME(...) with a name that is not a function of math.h; then
 * the rule has no body. */
static bool begins_call(const RuleDraft *draft) {
    const Tokens *tokens = &draft->tokens;
    if (tokens->token->kind != TOKEN_NAME || !tokens_before(tokens, "(")) return false;
    const char *name = tokens->token->text;
    return !expr_function_arity(name) && strcmp(name, "size");
}

/* Reads the `= NUMBER` of an optional operand. */
static bool parse_absent(RuleDraft *draft, int operand) {
    Tokens *tokens = &draft->tokens;
    Position at = tokens->token->at;
    if (!tokens_take(tokens, "=")) return true;
    const char *number = tokens->token->text;
    if (!draft->operands.at[operand].optional || tokens->token->kind != TOKEN_NUMBER)
        return RULE_ERROR(
            draft, at,
            "behind '=' stands the number that is meant where an operand with '?' is absent");
    draft->operands.at[operand].absent = expr_number(draft->arena, strtod(number, NULL), number);
    tokens_next(tokens);
    return true;
}

/* Reads one argument of a kernel's rule: an access, or the name of an attribute. */
static bool parse_argument(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    const OpParam *param = rule_param(draft, tokens->token->text);
    if (param && !param_is_tensor(param->kind)) {
        tokens_next(tokens);
        return true;
    }
    int operand = rule_read_operand(draft);
    return operand >= 0 && parse_absent(draft, operand);
}

static bool parse_view_argument(RuleDraft *draft) {
    Access access = rule_access(draft, "the name of the tensor that is viewed");
    array_push(draft->arena, &draft->operands, access);
    return access.name && rule_check_param(draft, &access);
}

static bool parse_call(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    tokens_next(tokens);
    tokens_next(tokens);
    if (draft->rule.kind == RULE_VIEW)
        return parse_view_argument(draft) && tokens_expect(tokens, ")", "after the tensor");
    draft->rule.kind = RULE_CALL;
    for (bool first = true; !tokens_is(tokens, ")"); first = false)
        if ((!first && !tokens_expect(tokens, ",", "between two arguments")) ||
            !parse_argument(draft))
            return false;
    return tokens_expect(tokens, ")", "after the arguments");
}

static bool parse_body(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    if (draft->rule.kind == RULE_VIEW)
        return RULE_ERROR(draft, tokens->token->at,
                          "expected NAME(tensor): a result without indices is a view of a tensor");
    if (draft->results.count > 1)
        return RULE_ERROR(draft, draft->results.at[1].at,
                          "a body gives one result; several need a kernel: y[i..], z[i..] = "
                          "name(x[i..]) kernel(name)");
    draft->rule.kind = RULE_BODY;
    draft->rule.body = expr_parse(tokens, rule_body_primary, draft);
    if (draft->rule.body) rule_resolve_sizes(draft);
    return draft->rule.body && !draft->failed;
}

static bool parse_equation(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    do {
        if (!parse_result(draft)) return false;
    } while (tokens_take(tokens, ","));
    if (!tokens_expect(tokens, "=", "after the results")) return false;
    return begins_call(draft) ? parse_call(draft) : parse_body(draft);
}

const Rule *rule_parse(Tokens *tokens, const OpParam *params, int param_count) {
    const Token *first = tokens->token;
    RuleDraft draft = {
        .tokens = {.arena = tokens->arena, .diag = tokens->diag, .token = first, .end = "the end"},
        .arena = tokens->arena,
        .diag = tokens->diag,
        .params = params,
        .param_count = param_count,
        .rule = {.shape_attr = -1, .copy.row = -1},
        .size_sum_of = -1};
    int before = diag_errors(tokens->diag);
    bool good = parse_equation(&draft);
    if (good) rule_clauses(&draft);
    tokens->token = draft.tokens.token;
    if (!good || draft.failed || diag_errors(tokens->diag) > before) return NULL;
    Rule *rule = rule_finished(&draft, first->at);
    if (rule) rule->text = token_line(tokens->arena, first, tokens->token);
    return rule;
}
