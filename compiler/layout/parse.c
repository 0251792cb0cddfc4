/* Parses layouts and checks them against a shape. */
#include "layout/layout.h"
#include "syntax/lex.h"
#include "syntax/tokens.h"
#include "support/array.h"

#include <stdlib.h>

enum { MAX_DEVICE = 1 << 24, MAX_DEVICES = 1 << 20 };

typedef Array(int64_t) Numbers;

/* A mention of devices in the text: a number or a range. */
typedef struct Mention {
    int64_t first, last;
    const Token *token;
} Mention;

typedef struct Parser {
    Tokens tokens;
    Arena *arena;
    const char *close; // token that ends the layout; NULL: the end of the text
    const char *begin; // start of the text, from which columns count
    Array(Mention) mentions;
    bool failed;
} Parser;

#define FAIL(parser, place, ...)                                                                   \
    do {                                                                                           \
        if (!(parser)->failed) diag_error((parser)->tokens.diag, (place)->at, __VA_ARGS__);        \
        (parser)->failed = true;                                                                   \
    } while (0)

static const Token *here(const Parser *parser) { return parser->tokens.token; }

static int column(const Parser *parser) { return (int)(here(parser)->start - parser->begin); }

static bool ended(const Parser *parser) {
    return tokens_end(&parser->tokens) ||
           (parser->close && tokens_is(&parser->tokens, parser->close));
}

/* If the next token is `text`, skips the token and returns true. */
static bool accept(Parser *parser, const char *text) {
    return !parser->failed && tokens_take(&parser->tokens, text);
}

static void expect(Parser *parser, const char *text, const char *where) {
    if (accept(parser, text) || parser->failed) return;
    if (ended(parser))
        FAIL(parser, here(parser), "expected '%s' %s, but the layout ends here", text, where);
    parser->failed = parser->failed || !tokens_expect(&parser->tokens, text, where);
}

/* Reads a number in [least, most]; returns `least` after an error. */
static int64_t parse_number(Parser *parser, const char *what, int64_t least, int64_t most) {
    const Token *token = here(parser);
    char *rest;
    int64_t value = strtoll(token->text, &rest, 10);
    if (token->kind != TOKEN_NUMBER || *rest) FAIL(parser, token, "expected %s", what);
    else if (value < least || value > most)
        FAIL(parser, token, "%s must be from %lld to %lld", what, (long long)least,
             (long long)most);
    if (parser->failed) return least;
    tokens_next(&parser->tokens);
    return value;
}

/* Reads `by w:w:...`; leaves *weights empty if the text has no `by`. */
static void read_weights(Parser *parser, Numbers *weights) {
    if (accept(parser, "by")) do
            array_push(parser->arena, weights,
                       parse_number(parser, "a weight", 0, LAYOUT_MOST_WEIGHT));
        while (accept(parser, ":"));
}

/* Returns the weights, which begin at token `begin`; NULL if there are none, or all are equal.
 * Reports an error if there are weights, but not `count` of them, or if all are zero. */
static const int64_t *check_count(Parser *parser, const Numbers *weights, int64_t count,
                                  const Token *begin) {
    bool equal = true;
    int64_t sum = 0;
    for (int i = 0; i < weights->count; i++) {
        sum += weights->at[i];
        equal = equal && weights->at[i] == weights->at[0];
    }
    if (weights->count && weights->count != count)
        FAIL(parser, begin, "%d weights for %lld pieces", weights->count, (long long)count);
    if (weights->count && !sum) FAIL(parser, begin, "weights that are all zero");
    return equal ? NULL : weights->at;
}

/* Reads `dup`, `sum` or `max`; at another token, reads nothing and returns STATE_SPLIT. */
static StateKind parse_kind(Parser *parser) {
    return accept(parser, "dup")   ? STATE_DUP
           : accept(parser, "sum") ? STATE_SUM
           : accept(parser, "max") ? STATE_MAX
                                   : STATE_SPLIT;
}

static void unknown_state(Parser *parser) {
    static const char *const known[] = {"dup", "sum", "max"};
    const char *close =
        here(parser)->kind == TOKEN_NAME ? diag_closest(here(parser)->text, known, 3) : NULL;
    FAIL(parser, here(parser),
         "expected a state: the number of a dimension, 'dup', 'sum' or 'max'%s%s%s",
         close ? "; did you mean '" : "", close ? close : "", close ? "'?" : "");
}

static State parse_state(Parser *parser) {
    Numbers weights = {0};
    State state = {.column = column(parser)};
    state.kind = parse_kind(parser);
    if (state.kind == STATE_SPLIT && here(parser)->kind == TOKEN_NUMBER)
        state.dim = (int)parse_number(parser, "a dimension", 0, LAYOUT_MAX_RANK - 1);
    else if (state.kind == STATE_SPLIT) unknown_state(parser);
    expect(parser, ":", "after what a state does");
    state.count = (int)parse_number(parser, "the count of a state", 1, MAX_DEVICES);
    const Token *first = here(parser) + 1;
    read_weights(parser, &weights);
    state.weights = check_count(parser, &weights, state.count, first);
    const Token *zigzag = here(parser);
    state.zigzag = accept(parser, "zigzag");
    if (state.zigzag && state.kind != STATE_SPLIT)
        FAIL(parser, zigzag, "only a split of a dimension can be zigzag");
    if (state.kind != STATE_SPLIT) state.weights = NULL;
    return state;
}

/* Reads device numbers and inclusive ranges of them. */
static void parse_devices(Parser *parser, Group *group) {
    Array(int) devices = {0};
    do {
        Mention mention = {.token = here(parser)};
        mention.first = mention.last = parse_number(parser, "a device number", 0, MAX_DEVICE);
        if (accept(parser, "-"))
            mention.last = parse_number(parser, "a device number", 0, MAX_DEVICE);
        if (mention.last < mention.first)
            FAIL(parser, mention.token, "the range ends before it begins");
        if (mention.last - mention.first >= MAX_DEVICES - devices.count)
            FAIL(parser, mention.token, "more than %d devices", MAX_DEVICES);
        for (int64_t d = mention.first; d <= mention.last && !parser->failed; d++)
            array_push(parser->arena, &devices, (int)d);
        array_push(parser->arena, &parser->mentions, mention);
    } while (accept(parser, ","));
    group->devices = devices.at;
    group->device_count = devices.count;
}

static void parse_states(Parser *parser, Group *group) {
    Array(State) states = {0};
    if (!accept(parser, "}")) {
        do array_push(parser->arena, &states, parse_state(parser));
        while (accept(parser, ","));
        expect(parser, "}", "after the states");
    }
    group->states = states.at;
    group->state_count = states.count;
}

static void check_group_counts(Parser *parser, const Group *group, const Token *begin) {
    int64_t product = 1;
    for (int s = 0; s < group->state_count && product <= MAX_DEVICES; s++)
        product *= group->states[s].count;
    if (product != group->device_count)
        FAIL(parser, begin,
             "the counts of the states multiply to %lld, but the subgroup has %d device%s",
             (long long)product, group->device_count, group->device_count == 1 ? "" : "s");
}

static Group parse_group(Parser *parser) {
    Group group = {0};
    expect(parser, "[", "before the devices of a subgroup");
    if (parser->failed) return group;
    parse_devices(parser, &group);
    expect(parser, "]", "after the devices");
    const Token *states = here(parser);
    expect(parser, "{", "before the states of a subgroup");
    if (!parser->failed) parse_states(parser, &group);
    if (!parser->failed) check_group_counts(parser, &group, states);
    return group;
}

static void parse_view(Parser *parser, Layout *layout) {
    const Token *begin = here(parser);
    Numbers factors = {0};
    Array(int) dims = {0};
    int dim = 0;
    do {
        do {
            array_push(parser->arena, &factors,
                       parse_number(parser, "an extent", 0, INT64_MAX / 2));
            array_push(parser->arena, &dims, dim);
        } while (accept(parser, "*"));
        dim++;
    } while (accept(parser, ","));
    expect(parser, ")", "after the view");
    if (factors.count > LAYOUT_MAX_RANK)
        FAIL(parser, begin, "a view has at most %d factors", LAYOUT_MAX_RANK);
    layout->view_rank = factors.count;
    layout->view = factors.at;
    layout->view_dim = dims.at;
}

/* Reads the top's kind, and a split's dimension and `inner`. Returns false if there is no top. */
static bool parse_top(Parser *parser, Layout *layout) {
    static const TopKind tops[] = {[STATE_SPLIT] = TOP_SPLIT,
                                   [STATE_DUP] = TOP_DUP,
                                   [STATE_SUM] = TOP_SUM,
                                   [STATE_MAX] = TOP_MAX};
    layout->top_column = column(parser);
    StateKind kind = parse_kind(parser);
    if (kind == STATE_SPLIT && !accept(parser, "split")) return false;
    layout->top = tops[kind];
    if (layout->top == TOP_SPLIT) {
        layout->top_dim = (int)parse_number(parser, "a dimension", 0, LAYOUT_MAX_RANK - 1);
        layout->inner = accept(parser, "inner");
    }
    return true;
}

/* Reads the weights of the top, if it has any, and its subgroups, one for each weight. */
static void parse_union(Parser *parser, Layout *layout) {
    Array(Group) groups = {0};
    Numbers weights = {0};
    const Token *first = here(parser) + 1;
    if (layout->top == TOP_SPLIT) {
        read_weights(parser, &weights);
        if (!ended(parser) && !tokens_is(&parser->tokens, "("))
            FAIL(parser, here(parser),
                 "expected 'inner', 'by' or '(' after the dimension of a split");
    }
    expect(parser, "(", "before the subgroups");
    do array_push(parser->arena, &groups, parse_group(parser));
    while (accept(parser, "|"));
    expect(parser, ")", "after the subgroups");
    layout->groups = groups.at;
    layout->group_count = groups.count;
    layout->top_weights = check_count(parser, &weights, groups.count, first);
}

static const Token *second_mention(const Parser *parser, int device) {
    bool seen = false;
    for (int i = 0; i < parser->mentions.count; i++) {
        const Mention *mention = &parser->mentions.at[i];
        bool named = mention->first <= device && device <= mention->last;
        if (named && seen) return mention->token;
        seen = seen || named;
    }
    BUG("device %d is not mentioned twice", device);
}

static void check_devices_once(Parser *parser, const Layout *layout) {
    int count;
    const int *devices = layout_devices(parser->arena, layout, &count);
    int *sorted = arena_copy(parser->arena, devices, sizeof(int) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ints);
    for (int i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1]) {
            FAIL(parser, second_mention(parser, sorted[i]), "device %d stands twice", sorted[i]);
            return;
        }
}

/* Removes the top of a layout with a single subgroup, where a top has no meaning. */
static void drop_lonely_top(Layout *layout) {
    if (layout->group_count != 1) return;
    layout->top = TOP_NONE;
    layout->top_dim = 0;
    layout->inner = false;
    layout->top_weights = NULL;
}

/* Reads a layout up to `close` (NULL: the end); columns count from `begin`. NULL after an error. */
static Layout *parse(Tokens *tokens, const char *close, const char *begin) {
    Parser parser = {.tokens = *tokens, .arena = tokens->arena, .close = close, .begin = begin};
    parser.tokens.found = false;
    Layout *layout = arena_new(parser.arena, Layout);
    layout->view_column = column(&parser);
    if (accept(&parser, "(")) parse_view(&parser, layout);
    if (!parser.failed && parse_top(&parser, layout)) {
        parse_union(&parser, layout);
    } else if (!parser.failed) {
        Group *group = arena_new(parser.arena, Group);
        *group = parse_group(&parser);
        layout->groups = group;
        layout->group_count = 1;
    }
    if (!parser.failed && !ended(&parser))
        FAIL(&parser, here(&parser), "unexpected text after the layout");
    if (!parser.failed) check_devices_once(&parser, layout);
    drop_lonely_top(layout);
    tokens->token = parser.tokens.token;
    return parser.failed ? NULL : layout;
}

Layout *layout_parse(Tokens *tokens, const char *close) {
    return parse(tokens, close, tokens->token->start);
}

Layout *layout_parse_text(Arena *arena, Diag *diag, Position at, const char *text) {
    Tokens tokens = tokens_of(arena, diag, at, text);
    return parse(&tokens, NULL, text);
}

static Position shifted(Position at, int column) {
    at.column += column;
    return at;
}

/* Returns whether each dimension's factors multiply to its extent; else reports an error. */
static bool check_view(Diag *diag, Position at, const Layout *layout, Shape shape) {
    at = shifted(at, layout->view_column);
    int dims = layout->view_rank ? layout->view_dim[layout->view_rank - 1] + 1 : shape.rank;
    if (dims != shape.rank) {
        diag_error(diag, at, "the view has %d dimensions, but the tensor has %d", dims, shape.rank);
        return false;
    }
    for (int d = 0, f = 0; layout->view_rank && d < shape.rank; d++) {
        __int128 product = 1;
        for (; f < layout->view_rank && layout->view_dim[f] == d; f++)
            product = product > INT64_MAX ? product : product * layout->view[f];
        if (product != shape.extent[d]) {
            diag_error(diag, at,
                       "the view's factors of dimension %d do not multiply to its extent, %lld", d,
                       (long long)shape.extent[d]);
            return false;
        }
    }
    return true;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

int64_t layout_denominator(const int64_t *weights, int count) {
    int64_t sum = weights ? 0 : count, divisor = weights ? 0 : 1;
    for (int i = 0; weights && i < count; i++) {
        sum += weights[i];
        divisor = common_divisor(weights[i], divisor);
    }
    return sum / divisor;
}

/* The denominators of the cuts of a dimension, which must fit into 63 bits. */
typedef struct Denominators {
    // group: product over a subgroup's states; most, second: the two largest different `group`s
    int64_t group, most, second;
} Denominators;

/* Sets found->group to the product of the denominators of a subgroup's states that cut `dim`, and
 * updates `most`, `second`. Returns false if the product is too large; reports it if `diag`. */
static bool check_group_weights(Diag *diag, Position at, const Group *group, int dim,
                                Denominators *found) {
    found->group = 1;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        if (state->kind != STATE_SPLIT || state->dim != dim) continue;
        int64_t pieces = layout_denominator(state->weights, state->count),
                own = state->zigzag ? 2 * pieces : pieces;
        if (own > LAYOUT_MOST_DENOMINATOR / found->group) {
            if (diag)
                diag_error(diag, shifted(at, state->column),
                           "the weights of dimension %d are too large: their sums multiply to more "
                           "than %lld",
                           dim, (long long)LAYOUT_MOST_DENOMINATOR);
            return false;
        }
        found->group *= own;
    }
    if (found->group > found->most) {
        found->second = found->most;
        found->most = found->group;
    } else if (found->group < found->most && found->group > found->second)
        found->second = found->group;
    return true;
}

/* Returns whether all cuts of a dimension are exact. Subgroups cut the parts of a top split; an
 * inner split cuts the ranges between all subgroups' cuts. `diag` NULL: reports no error. */
static bool check_weights(Diag *diag, Position at, const Layout *layout, int dim) {
    Denominators found = {1, 1, 1};
    for (int g = 0; g < layout->group_count; g++)
        if (!check_group_weights(diag, at, &layout->groups[g], dim, &found)) return false;
    if (layout->top != TOP_SPLIT || layout->top_dim != dim) return true;
    int64_t second = layout->inner ? found.second : 1,
            top = layout_denominator(layout->top_weights, layout->group_count);
    if (found.most <= LAYOUT_MOST_DENOMINATOR / second &&
        found.most * second <= LAYOUT_MOST_DENOMINATOR / top)
        return true;
    if (diag)
        diag_error(diag, shifted(at, layout->top_column),
                   "the weights of dimension %d are too large: those of the subgroups and of the "
                   "split multiply to more than %lld",
                   dim, (long long)LAYOUT_MOST_DENOMINATOR);
    return false;
}

bool layout_fits(const Layout *layout, Shape shape) {
    for (int d = 0; d < layout_view(layout, shape).rank; d++)
        if (!check_weights(NULL, (Position){0}, layout, d)) return false;
    return true;
}

/* Sets *kind, at first STATE_DUP, to `found`. False after an error: *kind had another reduction. */
static bool check_reduction(Diag *diag, Position at, StateKind found, StateKind *kind) {
    if (*kind != STATE_DUP && *kind != found) {
        diag_error(diag, at, "a layout has one kind of reduction, either 'sum' or 'max'");
        return false;
    }
    *kind = found;
    return true;
}

static bool check_state(Diag *diag, Position at, const State *state, int rank, StateKind *kind) {
    at = shifted(at, state->column);
    if (state->kind == STATE_SPLIT && state->dim >= rank) {
        diag_error(diag, at, "there is no dimension %d: the states number %d dimension%s, from 0",
                   state->dim, rank, rank == 1 ? "" : "s");
        return false;
    }
    if ((state->kind == STATE_SUM || state->kind == STATE_MAX) && state->count > 1)
        return check_reduction(diag, at, state->kind, kind);
    return true;
}

bool layout_check(Diag *diag, Position at, const Layout *layout, Shape shape) {
    if (!check_view(diag, at, layout, shape)) return false;
    int rank = layout_view(layout, shape).rank;
    if (layout->top == TOP_SPLIT && layout->top_dim >= rank) {
        diag_error(diag, shifted(at, layout->top_column),
                   "there is no dimension %d: the states number %d dimension%s, from 0",
                   layout->top_dim, rank, rank == 1 ? "" : "s");
        return false;
    }
    StateKind kind = layout->top == TOP_SUM   ? STATE_SUM
                     : layout->top == TOP_MAX ? STATE_MAX
                                              : STATE_DUP;
    for (int g = 0; g < layout->group_count; g++) {
        const Group *group = &layout->groups[g];
        for (int s = 0; s < group->state_count; s++)
            if (!check_state(diag, at, &group->states[s], rank, &kind)) return false;
    }
    for (int d = 0; d < rank; d++)
        if (!check_weights(diag, at, layout, d)) return false;
    return true;
}
