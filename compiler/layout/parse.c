/* The reader of layouts, and what is checked against a shape. */
#include "layout/layout.h"
#include "support/array.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICE = 1 << 24, MAX_DEVICES = 1 << 20 };

static const int64_t max_weight = (int64_t)1 << 40;

typedef Array(int64_t) Numbers;

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    Position at; // of the text's beginning
    const char *text, *next;
    bool failed;
} Parser;

static Position position_of(const Parser *parser, const char *place)
{
    Position at = parser->at;
    at.column += (int)(place - parser->text);
    return at;
}

#define FAIL(parser, place, ...)                                                                                                           \
    do {                                                                                                                                   \
        if (!(parser)->failed)                                                                                                             \
            diag_error((parser)->diag, position_of((parser), (place)), __VA_ARGS__);                                                       \
        (parser)->failed = true;                                                                                                           \
    } while (0)

static void skip_space(Parser *parser)
{
    while (isspace((unsigned char)*parser->next))
        parser->next++;
}

/* Whether the next character is `c`, which is then passed. */
static bool accept(Parser *parser, char c)
{
    skip_space(parser);
    if (parser->failed || *parser->next != c)
        return false;
    parser->next++;
    return true;
}

/* The bytes of the UTF-8 letter that a text begins with. */
static int letter_length(const char *text)
{
    int length = 1;
    while (length < 4 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length++;
    return length;
}

static void expect(Parser *parser, char c, const char *where)
{
    if (accept(parser, c) || parser->failed)
        return;
    if (*parser->next)
        FAIL(parser, parser->next, "expected '%c' %s, not '%.*s'", c, where, letter_length(parser->next), parser->next);
    else
        FAIL(parser, parser->next, "expected '%c' %s, but the layout ends here", c, where);
}

/* Whether the next word is `word`, which is then passed. */
static bool accept_word(Parser *parser, const char *word)
{
    skip_space(parser);
    size_t length = strlen(word);
    if (parser->failed || strncmp(parser->next, word, length) || isalnum((unsigned char)parser->next[length]) || parser->next[length] == '_')
        return false;
    parser->next += length;
    return true;
}

/* A number from `least` to `most`. */
static int64_t parse_number(Parser *parser, const char *what, int64_t least, int64_t most)
{
    skip_space(parser);
    const char *begin = parser->next;
    if (!isdigit((unsigned char)*begin)) {
        FAIL(parser, begin, "expected %s", what);
        return least;
    }
    int64_t value = 0;
    bool large = false;
    for (; isdigit((unsigned char)*parser->next); parser->next++) {
        large = large || value > (most - (*parser->next - '0')) / 10;
        value = large ? most : 10 * value + (*parser->next - '0');
    }
    if (large || value < least)
        FAIL(parser, begin, "%s must be from %lld to %lld", what, (long long)least, (long long)most);
    return value;
}

/* `by w:w:...`, as many as `count`; NULL when there is none or all are equal. */
static const int64_t *parse_weights(Parser *parser, int64_t count)
{
    if (!accept_word(parser, "by"))
        return NULL;
    skip_space(parser);
    const char *begin = parser->next;
    Numbers weights = {0};
    bool equal = true;
    int64_t sum = 0;
    do {
        int64_t weight = parse_number(parser, "a weight", 0, max_weight);
        sum += weight;
        array_push(parser->arena, &weights, weight);
        equal = equal && weight == weights.at[0];
    } while (accept(parser, ':'));
    if (weights.count != count)
        FAIL(parser, begin, "%d weights for %lld pieces", weights.count, (long long)count);
    if (!sum)
        FAIL(parser, begin, "weights that are all zero");
    return equal ? NULL : weights.at;
}

static State parse_state(Parser *parser)
{
    static const char *const known[] = {"dup", "sum", "max"};
    skip_space(parser);
    const char *begin = parser->next;
    State state = {.column = (int)(begin - parser->text)};
    if (isdigit((unsigned char)*begin))
        state.dim = (int)parse_number(parser, "a dimension", 0, LAYOUT_MAX_RANK - 1);
    else if (accept_word(parser, "dup"))
        state.kind = STATE_DUP;
    else if (accept_word(parser, "sum"))
        state.kind = STATE_SUM;
    else if (accept_word(parser, "max"))
        state.kind = STATE_MAX;
    else {
        size_t length = strspn(begin, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        char *word = arena_substring(parser->arena, begin, length);
        const char *close = length ? diag_closest(word, known, 3) : NULL;
        FAIL(parser, begin, "expected a state: the number of a dimension, 'dup', 'sum' or 'max'%s%s%s", close ? "; did you mean '" : "", close ? close : "", close ? "'?" : "");
    }
    expect(parser, ':', "after what a state does");
    state.count = (int)parse_number(parser, "the count of a state", 1, MAX_DEVICES);
    state.weights = parse_weights(parser, state.count);
    if (state.kind != STATE_SPLIT)
        state.weights = NULL;
    return state;
}

/* Device numbers and inclusive ranges of them. */
static void parse_devices(Parser *parser, Group *group)
{
    Array(int) devices = {0};
    do {
        skip_space(parser);
        const char *begin = parser->next;
        int64_t first = parse_number(parser, "a device number", 0, MAX_DEVICE), last = first;
        if (accept(parser, '-'))
            last = parse_number(parser, "a device number", 0, MAX_DEVICE);
        if (last < first)
            FAIL(parser, begin, "the range ends before it begins");
        if (last - first >= MAX_DEVICES - devices.count)
            FAIL(parser, begin, "more than %d devices", MAX_DEVICES);
        for (int64_t d = first; d <= last && !parser->failed; d++)
            array_push(parser->arena, &devices, (int)d);
    } while (accept(parser, ','));
    group->devices = devices.at;
    group->device_count = devices.count;
}

static void parse_states(Parser *parser, Group *group)
{
    Array(State) states = {0};
    if (!accept(parser, '}')) {
        do
            array_push(parser->arena, &states, parse_state(parser));
        while (accept(parser, ','));
        expect(parser, '}', "after the states");
    }
    group->states = states.at;
    group->state_count = states.count;
}

static void check_group_counts(Parser *parser, const Group *group, const char *begin)
{
    int64_t product = 1;
    for (int s = 0; s < group->state_count && product <= MAX_DEVICES; s++)
        product *= group->states[s].count;
    if (product != group->device_count)
        FAIL(parser, begin, "the counts of the states multiply to %lld, but the subgroup has %d device%s", (long long)product, group->device_count,
             group->device_count == 1 ? "" : "s");
}

static Group parse_group(Parser *parser)
{
    Group group = {0};
    expect(parser, '[', "before the devices of a subgroup");
    if (parser->failed)
        return group;
    parse_devices(parser, &group);
    expect(parser, ']', "after the devices");
    skip_space(parser);
    const char *states = parser->next;
    expect(parser, '{', "before the states of a subgroup");
    if (!parser->failed)
        parse_states(parser, &group);
    if (!parser->failed)
        check_group_counts(parser, &group, states);
    return group;
}

static void parse_view(Parser *parser, Layout *layout)
{
    const char *begin = parser->next;
    Numbers factors = {0};
    Array(int) dims = {0};
    int dim = 0;
    do {
        do {
            array_push(parser->arena, &factors, parse_number(parser, "an extent", 0, INT64_MAX / 2));
            array_push(parser->arena, &dims, dim);
        } while (accept(parser, '*'));
        dim++;
    } while (accept(parser, ','));
    expect(parser, ')', "after the view");
    if (factors.count > LAYOUT_MAX_RANK)
        FAIL(parser, begin, "a view has at most %d factors", LAYOUT_MAX_RANK);
    layout->view_rank = factors.count;
    layout->view = factors.at;
    layout->view_dim = dims.at;
}

/* Reads the top's kind; whether there is one. */
static bool parse_top(Parser *parser, Layout *layout)
{
    skip_space(parser);
    layout->top_column = (int)(parser->next - parser->text);
    if (accept_word(parser, "dup"))
        layout->top = TOP_DUP;
    else if (accept_word(parser, "sum"))
        layout->top = TOP_SUM;
    else if (accept_word(parser, "max"))
        layout->top = TOP_MAX;
    else if (accept_word(parser, "split"))
        layout->top = TOP_SPLIT;
    else
        return false;
    if (layout->top == TOP_SPLIT) {
        layout->top_dim = (int)parse_number(parser, "a dimension", 0, LAYOUT_MAX_RANK - 1);
        layout->inner = accept_word(parser, "inner");
    }
    return true;
}

/* The weights of the top stand before its subgroups and count them; they are read last. */
static void parse_union(Parser *parser, Layout *layout)
{
    const char *weights = parser->next;
    if (layout->top == TOP_SPLIT)
        parser->next += strcspn(parser->next, "(");
    Array(Group) groups = {0};
    expect(parser, '(', "before the subgroups");
    do
        array_push(parser->arena, &groups, parse_group(parser));
    while (accept(parser, '|'));
    expect(parser, ')', "after the subgroups");
    const char *end = parser->next;
    layout->groups = groups.at;
    layout->group_count = groups.count;
    if (parser->failed || layout->top != TOP_SPLIT)
        return;
    parser->next = weights;
    layout->top_weights = parse_weights(parser, groups.count);
    skip_space(parser);
    if (!parser->failed && *parser->next != '(')
        FAIL(parser, parser->next, "expected 'inner', 'by' or '(' after the dimension of a split");
    parser->next = end;
}

static int compare_ints(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Where the text names `device` for the second time; the text is known to be well formed. */
static const char *second_mention(const char *text, int device)
{
    int seen = 0;
    for (const char *at = text; (at = strchr(at, '['));)
        for (at++; *at && *at != ']';) {
            char *end;
            long first = strtol(at, &end, 10), last = first;
            if (strspn(end, " \t") + end == strchr(end, '-') && memchr(end, '-', strcspn(end, ",]")))
                last = strtol(strchr(end, '-') + 1, &end, 10);
            if (first <= device && device <= last && ++seen == 2)
                return at + strspn(at, " \t");
            at = end + strcspn(end, ",]");
            at += *at == ',';
        }
    return text;
}

static void check_devices_once(Parser *parser, const Layout *layout)
{
    int count;
    const int *devices = layout_devices(parser->arena, layout, &count);
    int *sorted = arena_copy(parser->arena, devices, sizeof(int) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ints);
    for (int i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1]) {
            FAIL(parser, second_mention(parser->text, sorted[i]), "device %d stands twice", sorted[i]);
            return;
        }
}

/* A union of one subgroup says nothing more than the subgroup. */
static void drop_lonely_top(Layout *layout)
{
    if (layout->group_count != 1)
        return;
    layout->top = TOP_NONE;
    layout->top_dim = 0;
    layout->inner = false;
    layout->top_weights = NULL;
}

Layout *layout_parse(Arena *arena, Diag *diag, Position at, const char *text)
{
    Parser parser = {.arena = arena, .diag = diag, .at = at, .text = text, .next = text};
    Layout *layout = arena_new(arena, Layout);
    skip_space(&parser);
    layout->view_column = (int)(parser.next - text);
    if (accept(&parser, '('))
        parse_view(&parser, layout);
    if (!parser.failed && parse_top(&parser, layout)) {
        parse_union(&parser, layout);
    } else if (!parser.failed) {
        Group *group = arena_new(arena, Group);
        *group = parse_group(&parser);
        layout->groups = group;
        layout->group_count = 1;
    }
    skip_space(&parser);
    if (!parser.failed && *parser.next)
        FAIL(&parser, parser.next, "unexpected text after the layout");
    if (!parser.failed)
        check_devices_once(&parser, layout);
    drop_lonely_top(layout);
    return parser.failed ? NULL : layout;
}

static Position shifted(Position at, int column)
{
    at.column += column;
    return at;
}

/* Whether each dimension's factors multiply to its extent. */
static bool check_view(Diag *diag, Position at, const Layout *layout, Shape shape)
{
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
            diag_error(diag, at, "the view's factors of dimension %d do not multiply to its extent, %lld", d, (long long)shape.extent[d]);
            return false;
        }
    }
    return true;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

int64_t layout_denominator(const int64_t *weights, int count)
{
    int64_t sum = weights ? 0 : count, divisor = weights ? 0 : 1;
    for (int i = 0; weights && i < count; i++) {
        sum += weights[i];
        divisor = common_divisor(weights[i], divisor);
    }
    return sum / divisor;
}

/* The denominators of what cuts a dimension: cuts are exact fractions of 63 bits. */
typedef struct Denominators {
    int64_t group, most, second; // of a subgroup's states, and the largest two of all subgroups that differ
} Denominators;

/* Multiplies the denominators of the states that cut a dimension. */
static bool check_group_weights(Diag *diag, Position at, const Group *group, int dim, Denominators *found)
{
    found->group = 1;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        if (state->kind != STATE_SPLIT || state->dim != dim)
            continue;
        int64_t own = layout_denominator(state->weights, state->count);
        if (own > LAYOUT_MOST_DENOMINATOR / found->group) {
            diag_error(diag, shifted(at, state->column), "the weights of dimension %d are too large: their sums multiply to more than %lld",
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

/* Under a split of the top the subgroups' cuts are parts of its own; an inner one divides what lies between the cuts of two subgroups. */
static bool check_weights(Diag *diag, Position at, const Layout *layout, int dim)
{
    Denominators found = {1, 1, 1};
    for (int g = 0; g < layout->group_count; g++)
        if (!check_group_weights(diag, at, &layout->groups[g], dim, &found))
            return false;
    if (layout->top != TOP_SPLIT || layout->top_dim != dim)
        return true;
    int64_t second = layout->inner ? found.second : 1, top = layout_denominator(layout->top_weights, layout->group_count);
    if (found.most <= LAYOUT_MOST_DENOMINATOR / second && found.most * second <= LAYOUT_MOST_DENOMINATOR / top)
        return true;
    diag_error(diag, shifted(at, layout->top_column),
               "the weights of dimension %d are too large: those of the subgroups and of the split multiply to more than %lld", dim,
               (long long)LAYOUT_MOST_DENOMINATOR);
    return false;
}

/* One kind of reduction a layout; *kind is STATE_DUP until one is found. */
static bool check_reduction(Diag *diag, Position at, StateKind found, StateKind *kind)
{
    if (*kind != STATE_DUP && *kind != found) {
        diag_error(diag, at, "a layout has one kind of reduction, either 'sum' or 'max'");
        return false;
    }
    *kind = found;
    return true;
}

static bool check_state(Diag *diag, Position at, const State *state, int rank, StateKind *kind)
{
    at = shifted(at, state->column);
    if (state->kind == STATE_SPLIT && state->dim >= rank) {
        diag_error(diag, at, "there is no dimension %d: the states number %d dimension%s, from 0", state->dim, rank, rank == 1 ? "" : "s");
        return false;
    }
    if ((state->kind == STATE_SUM || state->kind == STATE_MAX) && state->count > 1)
        return check_reduction(diag, at, state->kind, kind);
    return true;
}

bool layout_check(Diag *diag, Position at, const Layout *layout, Shape shape)
{
    if (!check_view(diag, at, layout, shape))
        return false;
    int rank = layout_view(layout, shape).rank;
    if (layout->top == TOP_SPLIT && layout->top_dim >= rank) {
        diag_error(diag, shifted(at, layout->top_column), "there is no dimension %d: the states number %d dimension%s, from 0", layout->top_dim, rank, rank == 1 ? "" : "s");
        return false;
    }
    StateKind kind = layout->top == TOP_SUM ? STATE_SUM : layout->top == TOP_MAX ? STATE_MAX : STATE_DUP;
    for (int g = 0; g < layout->group_count; g++) {
        const Group *group = &layout->groups[g];
        for (int s = 0; s < group->state_count; s++)
            if (!check_state(diag, at, &group->states[s], rank, &kind))
                return false;
    }
    for (int d = 0; d < rank; d++)
        if (!check_weights(diag, at, layout, d))
            return false;
    return true;
}
