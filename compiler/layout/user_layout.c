/* Parses and prints layouts over mesh axes: pragmas `shard`, `reshard` (sharding constraints). */
#include "layout/user_layout.h"
#include "support/array.h"
#include "syntax/tokens.h"

#include "syntax/lex.h"

#include <stdlib.h>
#include <string.h>

typedef Array(UserLayoutAxis) Axes;
typedef Array(UserLayoutState) States;

static const char *const kinds[] = {[STATE_DUP] = "dup", [STATE_SUM] = "sum", [STATE_MAX] = "max"};

static bool is_word(const Tokens *tokens) {
    return tokens->token->kind == TOKEN_NAME || tokens->token->kind == TOKEN_NUMBER;
}

static bool fail(Tokens *tokens, const char *message) {
    diag_error(tokens->diag, tokens->token->at, "%s", message);
    return false;
}

static bool state_names(const UserLayoutState *state, const char *axis) {
    for (int k = 0; k < state->axis_count; k++)
        if (!strcmp(state->axes[k].name, axis)) return true;
    return false;
}

bool user_layout_names(const UserLayout *written, const char *axis) {
    for (int i = 0; i < written->state_count; i++)
        if (state_names(&written->states[i], axis)) return true;
    return false;
}

/* Reads axis * axis * ... Returns false after an error: an axis occurs twice, or in `before`. */
static bool parse_axes(Tokens *tokens, const UserLayout *before, UserLayoutState *state) {
    Axes axes = {0};
    do {
        const char *name = tokens->token->text;
        if (!is_word(tokens)) return fail(tokens, "expected the name of a mesh axis");
        if (state_names(state, name) || user_layout_names(before, name))
            return fail(tokens,
                        arena_format(tokens->arena,
                                     "the axis \"%s\" stands in this layout a second time", name));
        array_push(tokens->arena, &axes, (UserLayoutAxis){name, tokens->token->at});
        state->axis_count = axes.count;
        state->axes = axes.at;
        tokens_next(tokens);
    } while (tokens_take(tokens, "*"));
    return true;
}

/* Returns whether `state` is a reduction of another kind than a state of `before`. */
static bool mixes_reductions(const UserLayout *before, const UserLayoutState *state) {
    for (int s = 0; s < before->state_count; s++)
        if (state->kind >= STATE_SUM && before->states[s].kind >= STATE_SUM &&
            before->states[s].kind != state->kind)
            return true;
    return false;
}

/* Reads dup, sum, max or a dimension's name or number, and `:`. Returns false after an error. */
static bool parse_target(Tokens *tokens, UserLayoutState *state) {
    char *end;
    const char *word = tokens->token->text;
    if (!is_word(tokens))
        return fail(tokens, "expected a dimension's name or number, dup, sum or max");
    for (StateKind kind = STATE_DUP; kind <= STATE_MAX; kind++)
        if (tokens_is(tokens, kinds[kind])) state->kind = kind;
    long number = strtol(word, &end, 10);
    state->name = state->kind == STATE_SPLIT && *end ? word : NULL;
    state->dim = number < INT32_MAX ? (int)number : INT32_MAX;
    tokens_next(tokens);
    return tokens_take(tokens, ":") ||
           fail(tokens,
                arena_format(tokens->arena, "expected ':' and a mesh axis after \"%s\"", word));
}

/* Reads TARGET : axis * axis [zigzag] and appends the state. Returns false after an error. */
static bool parse_state(Tokens *tokens, States *states) {
    UserLayoutState state = {.kind = STATE_SPLIT, .at = tokens->token->at};
    UserLayout before = {.state_count = states->count, .states = states->at};
    if (!parse_target(tokens, &state)) return false;
    if (mixes_reductions(&before, &state)) {
        diag_error(tokens->diag, state.at,
                   "a layout has one kind of reduction, either 'sum' or 'max'");
        return false;
    }
    if (!parse_axes(tokens, &before, &state)) return false;
    if (tokens_is(tokens, "zigzag") && state.kind != STATE_SPLIT)
        return fail(tokens, "only a split of a dimension can be zigzag");
    state.zigzag = tokens_take(tokens, "zigzag");
    array_push(tokens->arena, states, state);
    return true;
}

/* Reads { state, ... } up to `close` (NULL: to the end). Returns false after an error. */
static bool parse_states(Tokens *tokens, const char *close, UserLayout *written) {
    States states = {0};
    tokens_next(tokens);
    if (!tokens_is(tokens, "}")) do
            if (!parse_state(tokens, &states)) return false;
        while (tokens_take(tokens, ","));
    if (!tokens_take(tokens, "}")) return fail(tokens, "expected ',' or '}' in this layout");
    if (!tokens_end(tokens) && !(close && tokens_is(tokens, close)))
        return fail(tokens, "unexpected text after the layout");
    written->state_count = states.count;
    written->states = states.at;
    return true;
}

const UserLayout *user_layout_parse(Tokens *tokens, const char *close) {
    UserLayout *written = arena_new(tokens->arena, UserLayout);
    written->at = tokens->token->at;
    bool good = tokens_is(tokens, "{") ? parse_states(tokens, close, written)
                                       : (written->layout = layout_parse(tokens, close)) != NULL;
    return good ? written : NULL;
}

void user_layout_print(Text *out, const UserLayout *written) {
    if (written->layout) {
        layout_print(out, written->layout);
        return;
    }
    text_string(out, "{");
    for (int s = 0; s < written->state_count; s++) {
        const UserLayoutState *state = &written->states[s];
        text_string(out, s ? ", " : "");
        if (state->kind == STATE_SPLIT && !state->name) text_print(out, "%d", state->dim);
        else text_string(out, state->kind == STATE_SPLIT ? state->name : kinds[state->kind]);
        for (int a = 0; a < state->axis_count; a++)
            text_print(out, a ? "*%s" : ":%s", state->axes[a].name);
        text_string(out, state->zigzag ? " zigzag" : "");
    }
    text_string(out, "}");
}
