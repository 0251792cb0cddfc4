/* Reads accesses and leaves of expressions in rules, for parse.c and clause.c.
 *
 *     x[b.., (g r)]    an operand: factors b, g, r, of which (g r) is one dimension
 *     size(i)          a leaf EXPR_SIZE; factor i may appear later in a body
 */
#include "rule/draft.h"
#include "syntax/lex.h"

#include <string.h>

bool access_has(const Access *access, int factor) {
    for (int d = 0; d < access->dim_count; d++)
        for (int k = 0; k < access->dims[d].count; k++)
            if (access->dims[d].factors[k] == factor) return true;
    return false;
}

/* ---- names ---- */

int rule_factor(const RuleDraft *draft, const char *name) {
    for (int i = 0; i < draft->factors.count; i++)
        if (!strcmp(draft->factors.at[i].name, name)) return i;
    return -1;
}

/* Returns the index of the access called `name`; -1: there is none. */
static int access_named(const Access *accesses, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(accesses[i].name, name)) return i;
    return -1;
}

int rule_operand(const RuleDraft *draft, const char *name) {
    return access_named(draft->operands.at, draft->operands.count, name);
}

int rule_result(const RuleDraft *draft, const char *name) {
    return access_named(draft->results.at, draft->results.count, name);
}

int rule_value(const RuleDraft *draft, const char *name) {
    int result = rule_result(draft, name),
        local = access_named(draft->locals.at, draft->locals.count, name);
    return result >= 0 || local < 0 ? result : draft->results.count + local;
}

int rule_attr(const RuleDraft *draft, const char *name, ParamKind kind, ParamKind other) {
    int index = 0;
    for (int i = 0; i < draft->param_count; i++) {
        const OpParam *param = &draft->params[i];
        if (param_is_tensor(param->kind)) continue;
        if (!strcmp(param->name, name) && (param->kind == kind || param->kind == other))
            return index;
        index++;
    }
    return -1;
}

const OpParam *rule_param(const RuleDraft *draft, const char *name) {
    for (int i = 0; i < draft->param_count; i++)
        if (!strcmp(draft->params[i].name, name)) return &draft->params[i];
    return NULL;
}

bool rule_unknown(RuleDraft *draft, Position at, const char *what, const char *name,
                  const char *const *names) {
    int count = 0;
    while (names && names[count]) count++;
    RULE_ERROR(draft, at, "'%s' is not %s", name, what);
    tokens_suggest(&draft->tokens, at, name, names, count);
    return false;
}

void rule_unknown_factor(RuleDraft *draft, Position at, const char *name) {
    const char **names = arena_array(draft->arena, const char *, draft->factors.count + 1);
    for (int i = 0; i < draft->factors.count; i++) names[i] = draft->factors.at[i].name;
    rule_unknown(draft, at, "a factor of the rule", name, names);
}

/* Returns the names of all parameters that are tensors (if !tensors: no tensors), then NULL. */
static const char **param_names(const RuleDraft *draft, bool tensors) {
    const char **names = arena_array(draft->arena, const char *, draft->param_count + 1);
    int count = 0;
    for (int i = 0; i < draft->param_count; i++)
        if (param_is_tensor(draft->params[i].kind) == tensors)
            names[count++] = draft->params[i].name;
    return names;
}

/* ---- expressions over integers ---- */

/* Sets the factor of a leaf size(f). Returns false after an error. */
static bool resolve_size(RuleDraft *draft, const ForwardSize *size) {
    int factor = size->leaf->index = rule_factor(draft, size->name);
    if (factor < 0) rule_unknown_factor(draft, size->at, size->name);
    else if (size->ellipsis && !draft->factors.at[factor].ellipsis)
        RULE_ERROR(draft, size->at, "'%s' stands for one dimension, not for any number of them",
                   size->name);
    return !draft->failed;
}

void rule_resolve_sizes(RuleDraft *draft) {
    for (int i = 0; i < draft->forward.count; i++) resolve_size(draft, &draft->forward.at[i]);
}

/* Reads size(f). `later`: f may be a factor that appears only later in the body. */
static const Expr *size_of_factor(RuleDraft *draft, bool later) {
    Tokens *tokens = &draft->tokens;
    ForwardSize size = {.leaf = arena_copy(draft->arena, &(Expr){.kind = EXPR_SIZE}, sizeof(Expr))};
    tokens_next(tokens);
    if (!tokens_expect(tokens, "(", "after 'size'")) return rule_fail(draft), NULL;
    size.name = tokens->token->text;
    size.at = tokens->token->at;
    tokens_next(tokens);
    size.ellipsis = tokens_take(tokens, "..");
    if (later) array_push(draft->arena, &draft->forward, size);
    else if (!resolve_size(draft, &size)) return NULL;
    if (!tokens_expect(tokens, ")", "after the factor")) return rule_fail(draft), NULL;
    return size.leaf;
}

const Expr *rule_integer_primary(Tokens *tokens, void *context) {
    RuleDraft *draft = context;
    Position at = tokens->token->at;
    const char *name = tokens->token->text;
    if (!strcmp(name, "size") && tokens_before(tokens, "(")) return size_of_factor(draft, false);
    int attr = rule_attr(draft, name, PARAM_INT, PARAM_INT);
    if (attr < 0) {
        return rule_unknown(draft, at, "an integer parameter of the function", name,
                            param_names(draft, false)),
               NULL;
    }
    tokens_next(tokens);
    return expr_leaf(draft->arena, EXPR_ATTR, attr);
}

/* ---- accesses ---- */

/* Reads the name of a factor, and adds the factor if it is new; -1 after an error. */
static int parse_factor(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    Position at = tokens->token->at;
    const char *name = tokens_name(tokens, "a factor, a name such as i or b..");
    if (!name) return -1;
    bool ellipsis = tokens_take(tokens, "..");
    int index = rule_factor(draft, name);
    if (index < 0) {
        array_push(draft->arena, &draft->factors,
                   (Factor){.name = name, .at = at, .ellipsis = ellipsis});
        index = draft->factors.count - 1;
    } else if (draft->factors.at[index].ellipsis != ellipsis) {
        RULE_ERROR(draft, at, "the factor '%s' is written once with '..' and once without", name);
        diag_note(draft->diag, draft->factors.at[index].at, "here first");
        return -1;
    }
    if (ellipsis && tokens_take(tokens, "{")) {
        const Expr *count = expr_parse(tokens, rule_integer_primary, draft);
        if (!count || !tokens_expect(tokens, "}", "after the number of dimensions"))
            return rule_fail(draft), -1;
        draft->factors.at[index].count = count;
    }
    return index;
}

typedef Array(RuleDim) Dims;

/* Reads one dimension: a factor or (f g). */
static bool parse_dim(RuleDraft *draft, Dims *dims) {
    Tokens *tokens = &draft->tokens;
    Array(int) factors = {0};
    bool merged = tokens_take(tokens, "(");
    do {
        Position at = tokens->token->at;
        int factor = parse_factor(draft);
        if (factor < 0) return false;
        if (merged && draft->factors.at[factor].ellipsis)
            return RULE_ERROR(
                draft, at,
                "a factor that stands for several dimensions cannot be merged with others");
        array_push(draft->arena, &factors, factor);
    } while (merged && !tokens_is(tokens, ")") && !tokens_end(tokens));
    if (merged && !tokens_expect(tokens, ")", "after the merged factors")) return rule_fail(draft);
    array_push(draft->arena, dims, (RuleDim){factors.count, factors.at});
    return true;
}

static bool check_repeats(RuleDraft *draft, const Access *access) {
    for (int f = 0; f < draft->factors.count; f++) {
        int uses = 0;
        for (int d = 0; d < access->dim_count; d++)
            for (int k = 0; k < access->dims[d].count; k++) uses += access->dims[d].factors[k] == f;
        if (uses > 1)
            return RULE_ERROR(
                draft, access->at,
                "the factor '%s' stands twice in the indices of '%s'; a diagonal cannot be written",
                draft->factors.at[f].name, access->name);
    }
    return true;
}

Access rule_access(RuleDraft *draft, const char *expected) {
    Position at = draft->tokens.token->at;
    return (Access){.name = tokens_name(&draft->tokens, expected),
                    .at = at,
                    .inplace = -1,
                    .place = -1,
                    .plus = -1,
                    .pitch = -1};
}

bool rule_dims(RuleDraft *draft, Access *access) {
    Tokens *tokens = &draft->tokens;
    Dims dims = {0};
    if (!tokens_expect(tokens, "[", "before the indices")) return rule_fail(draft);
    while (!tokens_is(tokens, "]"))
        if ((dims.count && !tokens_expect(tokens, ",", "between two indices")) ||
            !parse_dim(draft, &dims))
            return rule_fail(draft);
    tokens_next(tokens);
    access->dim_count = dims.count;
    access->dims = dims.at;
    return check_repeats(draft, access);
}

bool rule_dims_equal(const Access *a, const Access *b) {
    if (a->dim_count != b->dim_count) return false;
    for (int d = 0; d < a->dim_count; d++)
        if (a->dims[d].count != b->dims[d].count ||
            memcmp(a->dims[d].factors, b->dims[d].factors, sizeof(int) * (size_t)a->dims[d].count))
            return false;
    return true;
}

/* Skips the `[]` of a variadic operand if `[` follows. Returns whether the operand is variadic. */
static bool take_variadic(Tokens *tokens) {
    bool variadic =
        tokens_is(tokens, "[") && tokens_before(tokens, "]") && token_is(tokens->token + 2, "[");
    tokens->token += variadic ? 2 : 0;
    return variadic;
}

bool rule_check_param(RuleDraft *draft, const Access *access) {
    if (!draft->params) return true;
    const OpParam *param = rule_param(draft, access->name);
    if (!param || !param_is_tensor(param->kind)) {
        return rule_unknown(draft, access->at, "a tensor parameter of the function", access->name,
                            param_names(draft, true));
    }
    if (access->variadic != (param->kind == PARAM_TENSORS))
        return RULE_ERROR(draft, access->at,
                          access->variadic
                              ? "the parameter '%s' is one tensor, not ht_tensors"
                              : "the parameter '%s' is of type ht_tensors: write %s[][...]",
                          access->name, access->name);
    return true;
}

static int known_operand(RuleDraft *draft, int index, const Access *access) {
    Access *known = &draft->operands.at[index];
    if (!rule_dims_equal(known, access)) {
        RULE_ERROR(draft, access->at, "'%s' is written with two different lists of indices",
                   access->name);
        diag_note(draft->diag, known->at, "here first");
        return -1;
    }
    known->optional |= access->optional;
    return index;
}

int rule_read_operand(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    bool optional = tokens_take(tokens, "?");
    Access access = rule_access(draft, "an operand such as x[i]");
    if (!access.name) return -1;
    access.optional = optional;
    access.variadic = take_variadic(tokens);
    if (!rule_check_param(draft, &access) || !rule_dims(draft, &access))
        return rule_fail(draft), -1;
    int index = rule_operand(draft, access.name);
    if (index >= 0) return known_operand(draft, index, &access);
    array_push(draft->arena, &draft->operands, access);
    return draft->operands.count - 1;
}

/* ---- values of equations ---- */

static const Access *value_access(const RuleDraft *draft, int value) {
    return value < draft->results.count ? &draft->results.at[value]
                                        : &draft->locals.at[value - draft->results.count];
}

bool rule_has_equation(const RuleDraft *draft, int value) {
    for (int i = 0; i < draft->equations.count; i++)
        if (draft->equations.at[i].value == value) return true;
    return false;
}

/* Reads `NAME[indices]`; all factors must be known. */
static bool read_access(RuleDraft *draft, Access *access) {
    int factors = draft->factors.count;
    *access = rule_access(draft, "a value such as y[i]");
    if (!access->name || !rule_dims(draft, access)) return false;
    if (draft->factors.count == factors) return true;
    RULE_ERROR(draft, access->at, "'%s' has the factor '%s', which no operand and no result has",
               access->name, draft->factors.at[factors].name);
    return false;
}

static bool check_dims(RuleDraft *draft, const Access *access, const Access *known) {
    if (rule_dims_equal(access, known)) return true;
    RULE_ERROR(draft, access->at, "'%s' is written with two different lists of indices",
               access->name);
    return false;
}

/* Reads the access of a value of equations and returns it as an expression; NULL after an error. */
static const Expr *value_primary(RuleDraft *draft, int value) {
    Access access;
    if (!read_access(draft, &access) || !check_dims(draft, &access, value_access(draft, value)))
        return NULL;
    if (rule_has_equation(draft, value)) return expr_leaf(draft->arena, EXPR_RESULT, value);
    RULE_ERROR(draft, access.at, "'%s' is used before its equation", access.name);
    return NULL;
}

int rule_read_value(RuleDraft *draft) {
    Access access;
    if (!read_access(draft, &access)) return -1;
    int value = rule_value(draft, access.name);
    if (value >= 0 && rule_has_equation(draft, value))
        return RULE_ERROR(draft, access.at, "'%s' has two equations", access.name), -1;
    if (value >= 0) return check_dims(draft, &access, value_access(draft, value)) ? value : -1;
    if (rule_operand(draft, access.name) >= 0)
        return RULE_ERROR(draft, access.at,
                          "'%s' is an operand; an equation gives a result or a new value",
                          access.name),
               -1;
    array_push(draft->arena, &draft->locals, access);
    return draft->results.count + draft->locals.count - 1;
}

/* ---- leaves of bodies ---- */

const Expr *rule_body_primary(Tokens *tokens, void *context) {
    RuleDraft *draft = context;
    const char *name = tokens->token->text;
    int attr = rule_attr(draft, name, PARAM_INT, PARAM_FLOAT);
    if (!strcmp(name, "size")) return size_of_factor(draft, !draft->in_equations);
    if (attr >= 0) {
        tokens_next(tokens);
        return expr_leaf(draft->arena, EXPR_ATTR, attr);
    }
    int value = draft->in_equations ? rule_value(draft, name) : -1;
    if (value >= 0) return value_primary(draft, value);
    Position at = tokens->token->at;
    if (draft->in_equations && tokens->token->kind == TOKEN_NAME && rule_operand(draft, name) < 0)
        return RULE_ERROR(draft, at,
                          "'%s' is neither an operand nor the value of an equation before", name),
               NULL;
    int operand = rule_read_operand(draft);
    if (operand >= 0 && draft->operands.at[operand].variadic)
        return RULE_ERROR(
                   draft, at,
                   "an operand of any number of tensors needs a kernel; a body cannot have one"),
               NULL;
    return operand < 0 ? NULL : expr_leaf(draft->arena, EXPR_ACCESS, operand);
}
