#include "layout/written.h"

#include <string.h>

typedef Array(WrittenAxis) Axes;
typedef Array(WrittenState) States;

static bool is_word(const Tokens *tokens) { return tokens->token->kind == TOKEN_NAME || tokens->token->kind == TOKEN_NUMBER; }

static bool fail(Tokens *tokens, const char *message)
{
    diag_error(tokens->diag, tokens->token->at, "%s", message);
    return false;
}

/* axis * axis */
static bool parse_axes(Tokens *tokens, WrittenState *state)
{
    Axes axes = {0};
    do {
        if (!is_word(tokens))
            return fail(tokens, "expected the name of a mesh axis");
        array_push(tokens->arena, &axes, (WrittenAxis){tokens->token->text, tokens->token->at});
        tokens_next(tokens);
    } while (tokens_take(tokens, "*"));
    state->axis_count = axes.count;
    state->axes = axes.at;
    return true;
}

/* kind : axis * axis */
static bool parse_state(Tokens *tokens, States *states)
{
    static const char *const kinds[] = {[STATE_DUP] = "dup", [STATE_SUM] = "sum", [STATE_MAX] = "max"};
    WrittenState state = {.kind = STATE_SPLIT, .dim = tokens->token->text, .at = tokens->token->at};
    if (!is_word(tokens))
        return fail(tokens, "expected a dimension's name or number, dup, sum or max");
    for (StateKind kind = STATE_DUP; kind <= STATE_MAX; kind++)
        if (tokens_is(tokens, kinds[kind]))
            state.kind = kind;
    tokens_next(tokens);
    if (!tokens_take(tokens, ":"))
        return fail(tokens, arena_format(tokens->arena, "expected ':' and a mesh axis after \"%s\"", state.dim));
    if (!parse_axes(tokens, &state))
        return false;
    array_push(tokens->arena, states, state);
    return true;
}

/* { state, state } */
static bool parse_states(Tokens *tokens, const char *close, WrittenLayout *written)
{
    States states = {0};
    tokens_next(tokens);
    if (!tokens_is(tokens, "}"))
        do
            if (!parse_state(tokens, &states))
                return false;
        while (tokens_take(tokens, ","));
    if (!tokens_take(tokens, "}"))
        return fail(tokens, "expected ',' or '}' in this layout");
    if (!tokens_end(tokens) && !(close && tokens_is(tokens, close)))
        return fail(tokens, "unexpected text after the layout");
    written->state_count = states.count;
    written->states = states.at;
    return true;
}

const WrittenLayout *written_parse(Tokens *tokens, const char *close)
{
    const Token *first = tokens->token;
    WrittenLayout *written = arena_new(tokens->arena, WrittenLayout);
    written->at = first->at;
    bool good = tokens_is(tokens, "{") ? parse_states(tokens, close, written) : (written->layout = layout_parse(tokens, close)) != NULL;
    written->text = token_text(tokens->arena, first, tokens->token);
    return good ? written : NULL;
}

bool written_names(const WrittenLayout *written, const char *axis)
{
    for (int i = 0; i < written->state_count; i++)
        for (int k = 0; k < written->states[i].axis_count; k++)
            if (!strcmp(written->states[i].axes[k].name, axis))
                return true;
    return false;
}
