/* Renumbers the dimensions of the source's layouts, after pass factor_dims has split them.
 *
 *     x : [b, 2304], {1:tp}    ->    x : [b, 3, 12, 64], {1:tp}    allowed if tp divides 3
 *
 * A dimension of extent 1 disappears, and its state becomes `dup`. */
#include "passes/factor_dims/factor_dims.h"

typedef struct Reader {
    Module *module;
    const Value *value;
    const int8_t *origin; // by new dimension: the dimension of the source that it is part of
    Type source;          // the type in the source
} Reader;

/* The new form of a dimension of the written layout. */
typedef struct Match {
    bool fits, gone; // consists of whole new dimensions; has no new dimension
    int dim;         // its first new dimension
    int64_t extent;  // extent of the written dimension
} Match;

/* Returns the state on the first new dimension of dimension `number`; `dup` if there is none. */
static UserLayoutState numbered(const Reader *reader, UserLayoutState state, int number) {
    const Value *value = reader->value;
    state.name = NULL;
    for (int d = 0; d < value->type.rank; d++)
        if (reader->origin[d] == number) {
            state.dim = d;
            return state;
        }
    state.kind = STATE_DUP;
    return state;
}

static const char *state_word(const Reader *reader, const UserLayoutState *state) {
    return state->name ? state->name : arena_format(reader->module->arena, "%d", state->dim);
}

static void unknown_dimension(const Reader *reader, const UserLayoutState *state) {
    const Value *value = reader->value;
    const char *names[IR_MAX_RANK], *word = state_word(reader, state);
    for (int d = 0; d < value->type.rank; d++) names[d] = dim_name(value->dims, d).name;
    diag_error(reader->module->diag, state->at,
               "\"%s\" is no dimension of this tensor: write a dimension's name or number, dup, "
               "sum or max",
               word);
    const char *close = diag_closest(word, names, value->type.rank);
    if (close) diag_note(reader->module->diag, state->at, "did you mean \"%s\"?", close);
}

/* Replaces the dimension of a state by the new dimension. Returns false after an error. */
static bool renumber_written(const Reader *reader, UserLayoutState *state) {
    const Value *value = reader->value;
    if (state->kind != STATE_SPLIT) return true;
    for (int d = 0; state->name && d < value->type.rank; d++)
        if (dim_equal(dim_name(value->dims, d), (DimName){state->name, 0})) {
            state->name = NULL;
            state->dim = d;
            return true;
        }
    if (state->name || state->dim >= reader->source.rank) {
        unknown_dimension(reader, state);
        return false;
    }
    *state = numbered(reader, *state, state->dim);
    return true;
}

static const UserLayout *renumber_states(const Reader *reader, UserLayout *written) {
    UserLayoutState *states = arena_copy(reader->module->arena, written->states,
                                         sizeof *states * (size_t)written->state_count);
    for (int s = 0; s < written->state_count; s++)
        if (!renumber_written(reader, &states[s])) return NULL;
    written->states = states;
    return written;
}

/* Writes to now[] the new form of each dimension of `written`: of the layout's view, or of the
 * tensor's shape in the source. */
static void match_dims(const Reader *reader, Shape written, Match *now) {
    int d = 0, rank = reader->value->type.rank;
    const int64_t *extent = reader->value->type.extent;
    for (int k = 0; k < written.rank; k++) {
        int64_t product = 1;
        int first = d;
        for (; product < written.extent[k] && d < rank; d++) product *= extent[d];
        now[k] = (Match){.fits = product == written.extent[k] || !written.extent[k],
                         .extent = written.extent[k]};
        now[k].gone = first >= d;
        now[k].dim = first;
    }
}

/* Returns how many pieces a group makes of `dim` of the written layout; negative if weighted. */
static int64_t group_pieces(const Group *group, int dim) {
    int64_t pieces = 1;
    bool weighted = false;
    for (int s = 0; s < group->state_count; s++)
        if (group->states[s].kind == STATE_SPLIT && group->states[s].dim == dim) {
            pieces *= group->states[s].count;
            weighted = weighted || group->states[s].weights;
        }
    return weighted ? -1 : pieces;
}

/* Returns whether cutting a dimension is cutting its first factor: there is one factor, or the
 * number of pieces divides the first one. */
static bool cuts_first(const Reader *reader, const Layout *layout, int dim, const Match *now) {
    int64_t first = now->gone ? 1 : reader->value->type.extent[now->dim];
    for (int g = 0; g < layout->group_count; g++) {
        int64_t pieces = group_pieces(&layout->groups[g], dim);
        if (pieces != 1 && first != now->extent && (pieces < 0 || first % pieces)) return false;
    }
    return first == now->extent || layout->top != TOP_SPLIT || layout->top_dim != dim;
}

/* Returns whether the new dimensions allow the cut of a dimension; reports an error otherwise. */
static bool check_cut(const Reader *reader, const Layout *layout, int dim, const Match *now) {
    Text factors = {.arena = reader->module->arena};
    if (now->fits && cuts_first(reader, layout, dim, now)) return true;
    for (int d = 0; d < reader->value->type.rank; d++) {
        const char *before = !d ? "" : reader->origin[d] == reader->origin[d - 1] ? "*" : ", ";
        text_print(&factors, "%s%ld", before, (long)reader->value->type.extent[d]);
    }
    diag_error(reader->module->diag, reader->value->user_layout->at,
               "dimension %d of this layout is not one that can be cut like this: the model splits "
               "it into factors",
               dim);
    diag_note(reader->module->diag, reader->value->at, "write the layout for the view (%s)",
              text_bytes(&factors));
    return false;
}

static bool check_cuts(const Reader *reader, const Layout *layout, const Match *now) {
    for (int g = 0; g < layout->group_count; g++)
        for (int s = 0; s < layout->groups[g].state_count; s++) {
            const State *state = &layout->groups[g].states[s];
            if (state->kind == STATE_SPLIT && state->count > 1 &&
                !check_cut(reader, layout, state->dim, &now[state->dim]))
                return false;
        }
    return layout->top != TOP_SPLIT ||
           check_cut(reader, layout, layout->top_dim, &now[layout->top_dim]);
}

/* Returns the state for the new dimensions: `dup` for one piece, or if the dimension is gone. */
static State renumber_state(State state, const Match *now) {
    if (state.kind != STATE_SPLIT) return state;
    if (state.count == 1 || now[state.dim].gone)
        return (State){.kind = STATE_DUP, .count = state.count};
    state.dim = now[state.dim].dim;
    return state;
}

/* Returns the layout for the new dimensions, without a view; NULL after an error. */
static const Layout *renumber_layout(const Reader *reader, const Layout *layout) {
    Match now[LAYOUT_MAX_RANK];
    Arena *arena = reader->module->arena;
    match_dims(reader, layout_view(layout, type_shape(reader->source)), now);
    if (!check_cuts(reader, layout, now)) return NULL;
    Layout *result = arena_copy(arena, layout, sizeof *layout);
    Group *groups = arena_copy(arena, layout->groups, sizeof *groups * (size_t)layout->group_count);
    for (int g = 0; g < layout->group_count; g++) {
        State *states =
            arena_copy(arena, groups[g].states, sizeof *states * (size_t)groups[g].state_count);
        for (int s = 0; s < groups[g].state_count; s++) states[s] = renumber_state(states[s], now);
        groups[g].states = states;
    }
    if (layout->top == TOP_SPLIT && now[layout->top_dim].gone)
        *result = (Layout){.top = TOP_DUP, .group_count = layout->group_count};
    else if (layout->top == TOP_SPLIT) result->top_dim = now[layout->top_dim].dim;
    result->groups = groups;
    result->view_rank = 0;
    return result;
}

/* Renumbers the source's layout of a value (factor_dims.h). Without a strategy, leaves out a layout
 * over device numbers, because a single device cuts nothing. */
const UserLayout *factor_written(Module *module, const Value *value, Type source,
                                 const int8_t *origin) {
    Reader reader = {.module = module, .value = value, .origin = origin, .source = source};
    const UserLayout *written = value->user_layout;
    UserLayout *result = arena_copy(module->arena, written, sizeof *written);
    if (!written->layout) return renumber_states(&reader, result);
    result->layout = NULL;
    if (!module->strategy) return result;
    if (!layout_check(module->diag, written->at, written->layout, type_shape(source))) return NULL;
    result->layout = renumber_layout(&reader, written->layout);
    return result->layout ? result : NULL;
}
