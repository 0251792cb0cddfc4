#include "rule/parse.h"

#include <stdlib.h>
#include <string.h>

int rule_factor(const RuleParser *parser, const char *name)
{
    for (int i = 0; i < parser->factors.count; i++)
        if (!strcmp(parser->factors.at[i].name, name))
            return i;
    return -1;
}

int rule_operand(const RuleParser *parser, const char *name)
{
    for (int i = 0; i < parser->operands.count; i++)
        if (!strcmp(parser->operands.at[i].name, name))
            return i;
    return -1;
}

int rule_result(const RuleParser *parser, const char *name)
{
    for (int i = 0; i < parser->results.count; i++)
        if (!strcmp(parser->results.at[i].name, name))
            return i;
    return -1;
}

int rule_attr(const RuleParser *parser, const char *name, ParamKind kind, ParamKind other)
{
    int index = 0;
    for (int i = 0; i < parser->param_count; i++) {
        const OpParam *param = &parser->params[i];
        if (param_is_tensor(param->kind))
            continue;
        if (!strcmp(param->name, name) && (param->kind == kind || param->kind == other))
            return index;
        index++;
    }
    return -1;
}

static const OpParam *find_param(const RuleParser *parser, const char *name)
{
    for (int i = 0; i < parser->param_count; i++)
        if (!strcmp(parser->params[i].name, name))
            return &parser->params[i];
    return NULL;
}

void rule_unknown(RuleParser *parser, Position at, const char *what, const char *name, const char *const *names, int count)
{
    RULE_ERROR(parser, at, "'%s' is not %s", name, what);
    tokens_suggest(&parser->tokens, at, name, names, count);
}

void rule_unknown_factor(RuleParser *parser, Position at, const char *name)
{
    const char **names = arena_array(parser->arena, const char *, parser->factors.count + 1);
    for (int i = 0; i < parser->factors.count; i++)
        names[i] = parser->factors.at[i].name;
    rule_unknown(parser, at, "a factor of the rule", name, names, parser->factors.count);
}

/* The names of all parameters that are tensors, or that are none. */
static int param_names(const RuleParser *parser, bool tensors, const char **names)
{
    int count = 0;
    for (int i = 0; i < parser->param_count; i++)
        if (param_is_tensor(parser->params[i].kind) == tensors)
            names[count++] = parser->params[i].name;
    return count;
}

/* ---- expressions over integers ---- */

/* Says which factor a size is of; false after an error. */
static bool resolve_size(RuleParser *parser, const ForwardSize *size)
{
    int factor = size->leaf->index = rule_factor(parser, size->name);
    if (factor < 0)
        rule_unknown_factor(parser, size->at, size->name);
    else if (size->ellipsis && !parser->factors.at[factor].ellipsis)
        RULE_ERROR(parser, size->at, "'%s' stands for one dimension, not for any number of them", size->name);
    return !parser->failed;
}

/* `later`: the factor may be one that is known only at the end of the body. */
static const Expr *size_of_factor(RuleParser *parser, bool later)
{
    Tokens *tokens = &parser->tokens;
    ForwardSize size = {.leaf = arena_copy(parser->arena, &(Expr){.kind = EXPR_SIZE}, sizeof(Expr))};
    tokens_next(tokens);
    if (!tokens_expect(tokens, "(", "after 'size'"))
        return rule_fail(parser), NULL;
    size.name = tokens->token->text;
    size.at = tokens->token->at;
    tokens_next(tokens);
    size.ellipsis = tokens_take(tokens, "..");
    if (later)
        array_push(parser->arena, &parser->forward, size);
    else if (!resolve_size(parser, &size))
        return NULL;
    if (!tokens_expect(tokens, ")", "after the factor"))
        return rule_fail(parser), NULL;
    return size.leaf;
}

const Expr *rule_integer_primary(Tokens *tokens, void *context)
{
    RuleParser *parser = context;
    Position at = tokens->token->at;
    const char *name = tokens->token->text;
    if (!strcmp(name, "size") && tokens_before(tokens, "("))
        return size_of_factor(parser, false);
    int attr = rule_attr(parser, name, PARAM_INT, PARAM_INT);
    if (attr < 0) {
        const char **names = arena_array(parser->arena, const char *, parser->param_count + 1);
        rule_unknown(parser, at, "an integer parameter of the function", name, names, param_names(parser, false, names));
        return NULL;
    }
    tokens_next(tokens);
    return expr_leaf(parser->arena, EXPR_ATTR, attr);
}

/* ---- accesses ---- */

/* The factor that the current name stands for, made when it is new; -1 after an error. */
static int parse_factor(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Position at = tokens->token->at;
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, at, "expected a factor, a name such as i or b.., not %s", tokens_shown(tokens));
        return -1;
    }
    const char *name = tokens->token->text;
    tokens_next(tokens);
    bool ellipsis = tokens_take(tokens, "..");
    int index = rule_factor(parser, name);
    if (index < 0) {
        array_push(parser->arena, &parser->factors, (Factor){.name = name, .ellipsis = ellipsis});
        array_push(parser->arena, &parser->factor_at, at);
        index = parser->factors.count - 1;
    } else if (parser->factors.at[index].ellipsis != ellipsis) {
        RULE_ERROR(parser, at, "the factor '%s' is written once with '..' and once without", name);
        diag_note(parser->diag, parser->factor_at.at[index], "here first");
        return -1;
    }
    if (ellipsis && tokens_take(tokens, "{")) {
        const Expr *count = expr_parse(tokens, rule_integer_primary, parser);
        if (!count || !tokens_expect(tokens, "}", "after the number of dimensions"))
            return rule_fail(parser), -1;
        parser->factors.at[index].count = count;
    }
    return index;
}

typedef Array(RuleDim) Dims;

/* One written dimension: a factor or (f g). */
static bool parse_dim(RuleParser *parser, Dims *dims)
{
    Tokens *tokens = &parser->tokens;
    Array(int) factors = {0};
    bool merged = tokens_take(tokens, "(");
    do {
        Position at = tokens->token->at;
        int factor = parse_factor(parser);
        if (factor < 0)
            return false;
        if (merged && parser->factors.at[factor].ellipsis) {
            RULE_ERROR(parser, at, "a factor that stands for several dimensions cannot be merged with others");
            return false;
        }
        array_push(parser->arena, &factors, factor);
    } while (merged && !tokens_is(tokens, ")") && !tokens_end(tokens));
    if (merged && !tokens_expect(tokens, ")", "after the merged factors"))
        return rule_fail(parser), false;
    array_push(parser->arena, dims, (RuleDim){factors.count, factors.at});
    return true;
}

static bool check_repeats(RuleParser *parser, const Dims *dims, const char *name, Position at)
{
    for (int f = 0; f < parser->factors.count; f++) {
        int uses = 0;
        for (int d = 0; d < dims->count; d++)
            for (int k = 0; k < dims->at[d].count; k++)
                uses += dims->at[d].factors[k] == f;
        if (uses > 1) {
            RULE_ERROR(parser, at, "the factor '%s' stands twice in the indices of '%s'; a diagonal cannot be written",
                       parser->factors.at[f].name, name);
            return false;
        }
    }
    return true;
}

/* The indices of an access, from the opening to the closing bracket. */
bool rule_dims(RuleParser *parser, Access *access, Position at)
{
    Tokens *tokens = &parser->tokens;
    Dims dims = {0};
    if (!tokens_expect(tokens, "[", "before the indices"))
        return rule_fail(parser), false;
    while (!tokens_is(tokens, "]"))
        if ((dims.count && !tokens_expect(tokens, ",", "between two indices")) || !parse_dim(parser, &dims))
            return rule_fail(parser), false;
    tokens_next(tokens);
    access->dim_count = dims.count;
    access->dims = dims.at;
    return check_repeats(parser, &dims, access->name, at);
}

bool rule_dims_equal(const Access *a, const Access *b)
{
    if (a->dim_count != b->dim_count)
        return false;
    for (int d = 0; d < a->dim_count; d++)
        if (a->dims[d].count != b->dims[d].count || memcmp(a->dims[d].factors, b->dims[d].factors, sizeof(int) * (size_t)a->dims[d].count))
            return false;
    return true;
}

/* `[]` of a variadic operand: an empty pair of brackets that another pair follows. */
static bool take_variadic(Tokens *tokens)
{
    bool variadic = tokens_is(tokens, "[") && tokens_before(tokens, "]") && token_is(tokens->token + 2, "[");
    tokens->token += variadic ? 2 : 0;
    return variadic;
}

static bool check_param(RuleParser *parser, const Access *access, Position at)
{
    if (!parser->params)
        return true;
    const OpParam *param = find_param(parser, access->name);
    if (!param || !param_is_tensor(param->kind)) {
        const char **names = arena_array(parser->arena, const char *, parser->param_count + 1);
        rule_unknown(parser, at, "a tensor parameter of the function", access->name, names, param_names(parser, true, names));
        return false;
    }
    if (access->variadic != (param->kind == PARAM_TENSORS)) {
        RULE_ERROR(parser, at,
                   access->variadic ? "the parameter '%s' is one tensor, not ht_tensors"
                                    : "the parameter '%s' is of type ht_tensors: write %s[][...]",
                   access->name, access->name);
        return false;
    }
    return true;
}

static int known_operand(RuleParser *parser, int index, const Access *access, Position at)
{
    Access *known = &parser->operands.at[index];
    if (!rule_dims_equal(known, access)) {
        RULE_ERROR(parser, at, "'%s' is written with two different lists of indices", access->name);
        diag_note(parser->diag, parser->operand_at.at[index], "here first");
        return -1;
    }
    known->optional |= access->optional;
    return index;
}

/* [?]NAME[[]][indices]: the index of the operand, or -1 after an error. */
static int parse_operand(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Access access = {.inplace = -1, .optional = tokens_take(tokens, "?")};
    Position at = tokens->token->at;
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, at, "expected an operand such as x[i], not %s", tokens_shown(tokens));
        return -1;
    }
    access.name = tokens->token->text;
    tokens_next(tokens);
    access.variadic = take_variadic(tokens);
    if (!check_param(parser, &access, at) || !rule_dims(parser, &access, at))
        return rule_fail(parser), -1;
    int index = rule_operand(parser, access.name);
    if (index >= 0)
        return known_operand(parser, index, &access, at);
    array_push(parser->arena, &parser->operands, access);
    array_push(parser->arena, &parser->operand_at, at);
    return parser->operands.count - 1;
}

static bool parse_result(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Position at = tokens->token->at;
    Access access = {.inplace = -1};
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, at, "expected a result such as y[i], not %s", tokens_shown(tokens));
        return false;
    }
    access.name = tokens->token->text;
    tokens_next(tokens);
    if (find_param(parser, access.name) || rule_result(parser, access.name) >= 0) {
        RULE_ERROR(parser, at,
                   find_param(parser, access.name) ? "the result '%s' has the name of a parameter" : "two results are called '%s'",
                   access.name);
        return false;
    }
    if (tokens_is(tokens, "=") && parser->results.count == 0)
        parser->kind = RULE_VIEW;
    else if (!rule_dims(parser, &access, at))
        return rule_fail(parser), false;
    if (parser->results.count == IR_MAX_RESULTS) {
        RULE_ERROR(parser, at, "a rule has at most %d results", IR_MAX_RESULTS);
        return false;
    }
    array_push(parser->arena, &parser->results, access);
    array_push(parser->arena, &parser->result_at, at);
    return true;
}

/* ---- the right side ---- */

const Expr *rule_body_primary(Tokens *tokens, void *context)
{
    RuleParser *parser = context;
    const char *name = tokens->token->text;
    int attr = rule_attr(parser, name, PARAM_INT, PARAM_FLOAT);
    if (!strcmp(name, "size"))
        return size_of_factor(parser, !parser->in_equations);
    if (attr >= 0) {
        tokens_next(tokens);
        return expr_leaf(parser->arena, EXPR_ATTR, attr);
    }
    if (rule_is_value(parser, name))
        return rule_value_primary(parser);
    Position at = tokens->token->at;
    if (parser->in_equations && tokens->token->kind == TOKEN_NAME && rule_operand(parser, name) < 0) {
        RULE_ERROR(parser, at, "'%s' is neither an operand nor the value of an equation before", name);
        return NULL;
    }
    int operand = parse_operand(parser);
    if (operand >= 0 && parser->operands.at[operand].variadic) {
        RULE_ERROR(parser, at, "an operand of any number of tensors needs a kernel; a body cannot have one");
        return NULL;
    }
    return operand < 0 ? NULL : expr_leaf(parser->arena, EXPR_ACCESS, operand);
}

/* Whether the right side is NAME(...) of a kernel's rule: a name that math.h lacks, before a bracket. */
static bool begins_call(const RuleParser *parser)
{
    const Tokens *tokens = &parser->tokens;
    if (tokens->token->kind != TOKEN_NAME || !tokens_before(tokens, "("))
        return false;
    const char *name = tokens->token->text;
    return !expr_function_arity(name) && strcmp(name, "size");
}

/* `= NUMBER` behind an operand that may be absent. */
static bool parse_absent(RuleParser *parser, int operand)
{
    Tokens *tokens = &parser->tokens;
    Position at = tokens->token->at;
    if (!tokens_take(tokens, "="))
        return true;
    const char *number = tokens->token->text;
    if (!parser->operands.at[operand].optional || tokens->token->kind != TOKEN_NUMBER) {
        RULE_ERROR(parser, at, "behind '=' stands the number that is meant where an operand with '?' is absent");
        return false;
    }
    parser->operands.at[operand].absent = expr_number(parser->arena, strtod(number, NULL), number);
    tokens_next(tokens);
    return true;
}

/* One argument of a kernel's rule: an access, or the name of an argument that is no tensor. */
static bool parse_argument(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    const OpParam *param = find_param(parser, tokens->token->text);
    if (param && !param_is_tensor(param->kind)) {
        tokens_next(tokens);
        return true;
    }
    int operand = parse_operand(parser);
    return operand >= 0 && parse_absent(parser, operand);
}

static bool parse_view_argument(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Access access = {.name = tokens->token->text, .inplace = -1};
    Position at = tokens->token->at;
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, at, "expected the name of the tensor that is viewed, not %s", tokens_shown(tokens));
        return false;
    }
    tokens_next(tokens);
    array_push(parser->arena, &parser->operands, access);
    array_push(parser->arena, &parser->operand_at, at);
    return check_param(parser, &access, at);
}

static bool parse_call(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    tokens_next(tokens);
    tokens_next(tokens);
    if (parser->kind == RULE_VIEW)
        return parse_view_argument(parser) && tokens_expect(tokens, ")", "after the tensor");
    parser->kind = RULE_CALL;
    for (bool first = true; !tokens_is(tokens, ")"); first = false)
        if ((!first && !tokens_expect(tokens, ",", "between two arguments")) || !parse_argument(parser))
            return false;
    return tokens_expect(tokens, ")", "after the arguments");
}

static bool parse_body(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    if (parser->kind == RULE_VIEW) {
        RULE_ERROR(parser, tokens->token->at, "expected NAME(tensor): a result without indices is a view of a tensor");
        return false;
    }
    if (parser->results.count > 1) {
        RULE_ERROR(parser, parser->result_at.at[1],
                   "a body gives one result; several need a kernel: y[i..], z[i..] = name(x[i..]) kernel(name)");
        return false;
    }
    parser->kind = RULE_BODY;
    parser->body = expr_parse(tokens, rule_body_primary, parser);
    for (int i = 0; parser->body && i < parser->forward.count; i++)
        resolve_size(parser, &parser->forward.at[i]);
    return parser->body && !parser->failed;
}

static bool parse_equation(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    do {
        if (!parse_result(parser))
            return false;
    } while (tokens_take(tokens, ","));
    if (!tokens_expect(tokens, "=", "after the results"))
        return false;
    return begins_call(parser) ? parse_call(parser) : parse_body(parser);
}

/* ---- the whole ---- */

const Rule *rule_finished(const RuleParser *parser, const char *text, const char *name)
{
    Rule *rule = arena_new(parser->arena, Rule);
    *rule = (Rule){.kind = parser->kind,
                   .text = text,
                   .factor_count = parser->factors.count,
                   .factors = parser->factors.at,
                   .result_count = parser->results.count,
                   .results = parser->results.at,
                   .operand_count = parser->operands.count,
                   .operands = parser->operands.at,
                   .body = parser->body,
                   .local_count = parser->locals.count,
                   .locals = parser->locals.at,
                   .equation_count = parser->equations.count,
                   .equations = parser->equations.at,
                   .requirements = parser->requirements,
                   .operations = parser->operations,
                   .shape_attr = parser->shape_attr,
                   .types = parser->types,
                   .kernel_count = parser->kernels.count,
                   .kernels = parser->kernels.at,
                   .tiles = parser->tiles,
                   .tiles_dim = parser->tiles_dim,
                   .tiles_start = parser->tiles_start,
                   .epilogue = parser->epilogue,
                   .grad = parser->grad,
                   .grad_at = parser->grad_at};
    rule->form = rule_form(rule);
    if (!text)
        rule->text = rule_printed(parser->arena, rule, name);
    return rule;
}

const Rule *rule_parse(Tokens *tokens, const OpParam *params, int param_count)
{
    const Token *first = tokens->token;
    RuleParser parser = {.tokens = {.arena = tokens->arena, .diag = tokens->diag, .token = first, .end = "the end"},
                         .arena = tokens->arena,
                         .diag = tokens->diag,
                         .params = params,
                         .param_count = param_count,
                         .kind = RULE_BODY,
                         .shape_attr = -1,
                         .size_sum_of = -1};
    int before = diag_errors(tokens->diag);
    bool good = parse_equation(&parser);
    if (good)
        rule_clauses(&parser);
    tokens->token = parser.tokens.token;
    if (!good || parser.failed || diag_errors(tokens->diag) > before)
        return NULL;
    rule_check(&parser, first->at);
    return parser.failed ? NULL : rule_finished(&parser, token_line(tokens->arena, first, tokens->token), NULL);
}
