#include "ir/strategy_token.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICE = 65535, MOST_DEPTH = 100 };

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    const Token *token;
    const StrategyNames *names;
    const char *unnamed;
    StrategyList *list;
    Strategy *open;  // the strategy that statements belong to; NULL outside
    bool framed;     // `open` began with the statement `strategy`
    bool implied;    // its last pipeline was not written: a stage came first
    int errors;      // reported before `open` began
    int depth;       // of parentheses in an expression
} Parser;

/* ---- tokens ---- */

static bool is(const Parser *parser, const char *text) { return parser->token->kind <= TOKEN_PUNCT && !strcmp(parser->token->text, text); }

static bool at_line_end(const Parser *parser) { return parser->token->kind >= TOKEN_LINE; }

static void next(Parser *parser)
{
    if (!at_line_end(parser))
        parser->token++;
}

static bool accept(Parser *parser, const char *text)
{
    bool found = is(parser, text);
    if (found)
        next(parser);
    return found;
}

/* The current token as messages show it. */
static const char *found(const Parser *parser)
{
    return at_line_end(parser) ? "the end of the line" : arena_format(parser->arena, "\"%s\"", parser->token->text);
}

/* Reports that the current token is not what was expected; quiet where the lexer has complained already. False. */
static bool unexpected(Parser *parser, const char *expected)
{
    if (parser->token->kind != TOKEN_BAD)
        diag_error(parser->diag, parser->token->at, "expected %s, found %s", expected, found(parser));
    return false;
}

static bool expect(Parser *parser, const char *text)
{
    return accept(parser, text) || unexpected(parser, arena_format(parser->arena, "\"%s\"", text));
}

/* A name, or NULL after an error. */
static const char *expect_name(Parser *parser, const char *expected)
{
    if (parser->token->kind != TOKEN_NAME) {
        unexpected(parser, expected);
        return NULL;
    }
    const char *name = parser->token->text;
    next(parser);
    return name;
}

/* "did you mean": a note when one of the words is close to what stands at `at`. */
static void suggest(Parser *parser, Position at, const char *word, const char *const *words, int count)
{
    const char *closest = diag_closest(word, words, count);
    if (closest)
        diag_note(parser->diag, at, "did you mean \"%s\"?", closest);
}

/* ---- integer expressions ---- */

static bool parse_expression(Parser *parser, int64_t *value);

/* The value of a number token as C reads it. */
static bool parse_number(Parser *parser, int64_t *value)
{
    char *end;
    unsigned long long number = strtoull(parser->token->text, &end, 0);
    if (end[strspn(end, "uUlL")] || number > INT64_MAX) {
        diag_error(parser->diag, parser->token->at, "\"%s\" is not an integer", parser->token->text);
        return false;
    }
    *value = (int64_t)number;
    next(parser);
    return true;
}

static bool parse_constant(Parser *parser, int64_t *value)
{
    const StrategyNames *names = parser->names;
    if (!names || !names->value || !names->value(names->state, parser->token->text, value)) {
        diag_error(parser->diag, parser->token->at, "\"%s\" is no integer constant of the model", parser->token->text);
        return false;
    }
    next(parser);
    return true;
}

/* A number, a name, or an expression in parentheses; `expected` says what it stands for. */
static bool parse_primary(Parser *parser, const char *expected, int64_t *value)
{
    if (parser->token->kind == TOKEN_NUMBER)
        return parse_number(parser, value);
    if (parser->token->kind == TOKEN_NAME)
        return parse_constant(parser, value);
    if (!is(parser, "("))
        return unexpected(parser, expected);
    if (parser->depth >= MOST_DEPTH) {
        diag_error(parser->diag, parser->token->at, "this expression has more than %d nested parentheses", MOST_DEPTH);
        return false;
    }
    next(parser);
    parser->depth++;
    bool good = parse_expression(parser, value) && expect(parser, ")");
    parser->depth--;
    return good;
}

static bool parse_unary(Parser *parser, int64_t *value)
{
    bool negative = false;
    while (is(parser, "-") || is(parser, "+")) {
        negative ^= is(parser, "-");
        next(parser);
    }
    if (!parse_primary(parser, "an integer", value))
        return false;
    *value = negative ? -*value : *value;
    return true;
}

/* a OPERATOR b; false where C leaves it undefined. */
static bool compute(const char *operator, int64_t a, int64_t b, int64_t *value)
{
    switch (*operator) {
    case '+': return !__builtin_add_overflow(a, b, value);
    case '-': return !__builtin_sub_overflow(a, b, value);
    case '*': return !__builtin_mul_overflow(a, b, value);
    default: break;
    }
    bool shift = *operator == '<' || *operator == '>';
    if (shift ? a < 0 || b < 0 || b > 62 || (*operator == '<' && a > INT64_MAX >> b) : b == 0 || b == -1)
        return false;
    *value = *operator == '/' ? a / b : *operator == '%' ? a % b : *operator == '<' ? a << b : a >> b;
    return true;
}

/* How tightly the binary operator at the current token binds; 0: there is none. */
static int precedence(const Parser *parser)
{
    return is(parser, "*") || is(parser, "/") || is(parser, "%") ? 3 : is(parser, "+") || is(parser, "-") ? 2 : is(parser, "<<") || is(parser, ">>") ? 1 : 0;
}

static bool parse_binary(Parser *parser, int level, int64_t *value)
{
    if (!parse_unary(parser, value))
        return false;
    for (int binds; (binds = precedence(parser)) >= level;) {
        Token operator = *parser->token;
        int64_t right;
        next(parser);
        if (!parse_binary(parser, binds + 1, &right))
            return false;
        if (!compute(operator.text, *value, right, value)) {
            diag_error(parser->diag, operator.at, "this \"%s\" has no value that fits 64 bits", operator.text);
            return false;
        }
    }
    return true;
}

static bool parse_expression(Parser *parser, int64_t *value) { return parse_binary(parser, 1, value); }

/* An expression between `least` and `most`; `what` names it in messages. */
static bool parse_bounded(Parser *parser, const char *what, int64_t least, int64_t most, int64_t *value)
{
    Position at = parser->token->at;
    if (!parse_expression(parser, value))
        return false;
    if (*value < least || *value > most) {
        diag_error(parser->diag, at, "%s is %lld, but must be from %lld to %lld", what, (long long)*value, (long long)least, (long long)most);
        return false;
    }
    return true;
}

/* ( item { , item } ) */
static bool parse_list(Parser *parser, bool item(Parser *parser, void *to), void *to)
{
    if (!expect(parser, "("))
        return false;
    do
        if (!item(parser, to))
            return false;
    while (accept(parser, ","));
    return accept(parser, ")") || unexpected(parser, "\",\" or \")\"");
}

/* a or a-b: an inclusive range. */
static bool parse_range(Parser *parser, const char *what, int64_t *first, int64_t *last)
{
    Position at = parser->token->at;
    if (!parse_primary(parser, what, first))
        return false;
    *last = *first;
    if (accept(parser, "-") && !parse_primary(parser, what, last))
        return false;
    if (*first < 0 || *last < *first) {
        diag_error(parser->diag, at, *first < 0 ? "%s cannot be negative" : "the range %s %lld-%lld is empty: its end is below its start",
                   what, (long long)*first, (long long)*last);
        return false;
    }
    return true;
}

/* ---- stages ---- */

typedef struct DeviceList {
    Array(int) device;
    Array(Position) at;
} DeviceList;

static bool parse_device_item(Parser *parser, void *to)
{
    DeviceList *list = to;
    int64_t first, last;
    Position at = parser->token->at;
    if (parser->token->kind == TOKEN_NAME && !strcmp(parser->token[1].text, ":")) {
        diag_error(parser->diag, at, "\"%s:\" names a class of devices, but cluster files are not read by this version", parser->token->text);
        diag_note(parser->diag, at, "list the devices by number alone");
        return false;
    }
    if (!parse_range(parser, "a device number", &first, &last))
        return false;
    if (last > MOST_DEVICE) {
        diag_error(parser->diag, at, "device %lld: device numbers go up to %d", (long long)last, MOST_DEVICE);
        return false;
    }
    for (int64_t device = first; device <= last; device++) {
        array_push(parser->arena, &list->device, (int)device);
        array_push(parser->arena, &list->at, at);
    }
    return true;
}

static bool parse_weights(Parser *parser, MeshAxis *axis)
{
    Array(int64_t) weights = {0};
    Position by = parser->token->at;
    do {
        int64_t weight;
        next(parser);
        if (!parse_primary(parser, "a weight", &weight))
            return false;
        array_push(parser->arena, &weights, weight);
    } while (is(parser, ":"));
    if (weights.count != axis->count) {
        diag_error(parser->diag, by, "the axis \"%s\" has %d pieces, but %d weights", axis->name, axis->count, weights.count);
        return false;
    }
    axis->weights = weights.at;
    return true;
}

static bool parse_mesh_item(Parser *parser, void *to)
{
    Stage *stage = to;
    MeshAxis axis = {.at = parser->token->at};
    int64_t count;
    if (!(axis.name = expect_name(parser, "the name of a mesh axis")) || !expect(parser, ":") ||
        !parse_bounded(parser, "the number of pieces", 1, MOST_DEVICE + 1, &count))
        return false;
    axis.count = (int)count;
    if (is(parser, "by") && !parse_weights(parser, &axis))
        return false;
    array_push(parser->arena, &stage->mesh, axis);
    return true;
}

/* Whether the current token is a name that stands for itself: no integer constant, no end of a range. */
static bool at_plain_name(Parser *parser)
{
    const StrategyNames *names = parser->names;
    int64_t value;
    return parser->token->kind == TOKEN_NAME && strcmp(parser->token[1].text, "-") &&
           !(names && names->value && names->value(names->state, parser->token->text, &value));
}

static bool parse_layer_item(Parser *parser, void *to)
{
    Stage *stage = to;
    LayerRange range = {.at = parser->token->at};
    if (parser->token->kind == TOKEN_NAME && !strcmp(parser->token[1].text, ":")) {
        range.tower = expect_name(parser, "a tower");
        next(parser);
    }
    if (at_plain_name(parser))
        range.name = expect_name(parser, "a layer");
    else if (!parse_range(parser, "a layer", &range.first, &range.last))
        return false;
    array_push(parser->arena, &stage->layers, range);
    return true;
}

static bool parse_devices(Parser *parser, Stage *stage)
{
    DeviceList list = {0};
    if (!parse_list(parser, parse_device_item, &list))
        return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(parser->arena, &stage->devices, list.device.at[i]);
        array_push(parser->arena, &stage->device_at, list.at.at[i]);
    }
    return true;
}

static bool parse_mesh(Parser *parser, Stage *stage)
{
    stage->mesh_at = parser->token[-1].at;
    return parse_list(parser, parse_mesh_item, stage);
}

static bool parse_layers(Parser *parser, Stage *stage) { return parse_list(parser, parse_layer_item, stage); }

static bool parse_recompute(Parser *parser, Stage *stage)
{
    static const char *const words[] = {"full", "selective"};
    if (!expect(parser, "("))
        return false;
    Token word = *parser->token;
    if (!is(parser, "full") && !is(parser, "selective")) {
        unexpected(parser, "\"full\" or \"selective\"");
        suggest(parser, word.at, word.text, words, 2);
        return false;
    }
    stage->recompute = word.text;
    next(parser);
    return expect(parser, ")");
}

static const struct StageClause {
    const char *word;
    bool (*parse)(Parser *parser, Stage *stage);
} stage_clauses[] = {{"devices", parse_devices}, {"mesh", parse_mesh}, {"layers", parse_layers}, {"recompute", parse_recompute}};
enum { STAGE_CLAUSES = sizeof stage_clauses / sizeof *stage_clauses };

/* Reports a word that is no clause of the statement. False. */
static bool unknown_clause(Parser *parser, const char *statement, const char *const *words, int count)
{
    if (parser->token->kind != TOKEN_NAME)
        return unexpected(parser, arena_format(parser->arena, "a clause of \"%s\"", statement));
    diag_error(parser->diag, parser->token->at, "\"%s\" is no clause of \"%s\"", parser->token->text, statement);
    suggest(parser, parser->token->at, parser->token->text, words, count);
    return false;
}

static bool repeated_clause(Parser *parser)
{
    diag_error(parser->diag, parser->token->at, "the clause \"%s\" stands here a second time", parser->token->text);
    return false;
}

static bool parse_stage_clause(Parser *parser, Stage *stage, bool *seen)
{
    const char *words[STAGE_CLAUSES];
    for (int i = 0; i < STAGE_CLAUSES; i++) {
        words[i] = stage_clauses[i].word;
        if (!is(parser, words[i]))
            continue;
        if (seen[i])
            return repeated_clause(parser);
        seen[i] = true;
        next(parser);
        return stage_clauses[i].parse(parser, stage);
    }
    return unknown_clause(parser, "stage", words, STAGE_CLAUSES);
}

static bool parse_stage(Parser *parser, Position at)
{
    Strategy *strategy = parser->open;
    Stage stage = {.at = at};
    bool seen[STAGE_CLAUSES] = {false};
    if (!strategy->pipelines.count) {
        array_push(parser->arena, &strategy->pipelines, ((Pipeline){.microbatches = 1, .at = at}));
        parser->implied = true;
    }
    while (!at_line_end(parser))
        if (!parse_stage_clause(parser, &stage, seen))
            return false;
    if (!seen[0]) {
        diag_error(parser->diag, at, "this stage names no devices");
        diag_note(parser->diag, at, "write them as in: stage devices(0-3)");
        return false;
    }
    if (!seen[1])
        stage.mesh_at = at;
    array_push(parser->arena, &strategy->pipelines.at[strategy->pipelines.count - 1].stages, stage);
    return true;
}

/* ---- other statements ---- */

static bool parse_pipeline(Parser *parser, Position at)
{
    static const char *const words[] = {"microbatches", "rows"};
    Pipeline pipeline = {.microbatches = 1, .at = at};
    bool seen[2] = {false};
    while (!at_line_end(parser)) {
        int which = is(parser, words[0]) ? 0 : is(parser, words[1]) ? 1 : -1;
        if (which < 0)
            return unknown_clause(parser, "pipeline", words, 2);
        if (seen[which])
            return repeated_clause(parser);
        seen[which] = true;
        next(parser);
        if (!expect(parser, "(") || !parse_bounded(parser, which ? "the number of rows" : "the number of micro-batches", 1, INT32_MAX,
                                                   which ? &pipeline.rows : &pipeline.microbatches) || !expect(parser, ")"))
            return false;
    }
    if (parser->implied) {
        diag_error(parser->diag, at, "a stage stands before this pipeline and belongs to none");
        diag_note(parser->diag, parser->open->pipelines.at[0].at, "write a \"pipeline\" before this stage");
        return false;
    }
    array_push(parser->arena, &parser->open->pipelines, pipeline);
    return true;
}

typedef Array(const char *) AxisNames;
typedef Array(Position) AxisPlaces;

/* axis { * axis } */
static bool parse_axes(Parser *parser, AxisNames *axes, AxisPlaces *places)
{
    do {
        Position at = parser->token->at;
        const char *axis = expect_name(parser, "the name of a mesh axis");
        if (!axis)
            return false;
        for (int i = 0; i < axes->count; i++)
            if (!strcmp(axes->at[i], axis)) {
                diag_error(parser->diag, at, "the axis \"%s\" stands here a second time", axis);
                return false;
            }
        array_push(parser->arena, axes, axis);
        array_push(parser->arena, places, at);
    } while (accept(parser, "*"));
    return true;
}

static bool parse_split(Parser *parser, Position at)
{
    (void)at;
    do {
        SplitRule rule = {.at = parser->token->at};
        AxisNames axes = {0};
        AxisPlaces places = {0};
        if (!(rule.dim = expect_name(parser, "the name of a dimension")) || !expect(parser, ":") || !parse_axes(parser, &axes, &places))
            return false;
        rule.axes = axes.at;
        rule.axis_at = places.at;
        rule.axis_count = axes.count;
        array_push(parser->arena, &parser->open->splits, rule);
    } while (!at_line_end(parser));
    return true;
}

/* Whether the strategy has no such statement yet; an error with a note at the first one otherwise. */
static bool first_time(Parser *parser, Position at, const char *statement, Position before)
{
    if (!before.line)
        return true;
    diag_error(parser->diag, at, "the statement \"%s\" stands here a second time", statement);
    diag_note(parser->diag, before, "the first one is here");
    return false;
}

static bool parse_zero(Parser *parser, Position at)
{
    Strategy *strategy = parser->open;
    AxisNames axes = {0};
    AxisPlaces places = {0};
    int64_t level;
    if (!first_time(parser, at, "zero", strategy->zero_at) || !parse_bounded(parser, "the level of ZeRO", 0, 3, &level))
        return false;
    if (accept(parser, "over") && !parse_axes(parser, &axes, &places))
        return false;
    strategy->zero = (int)level;
    strategy->zero_at = at;
    for (int i = 0; i < axes.count; i++) {
        array_push(parser->arena, &strategy->zero_axes, axes.at[i]);
        array_push(parser->arena, &strategy->zero_axis_at, places.at[i]);
    }
    return true;
}

static bool parse_schedule(Parser *parser, Position at)
{
    static const char *const words[] = {"gpipe", "1f1b", "interleaved"};
    if (!first_time(parser, at, "schedule", parser->open->schedule_at))
        return false;
    for (int i = 0; i < 3; i++)
        if (accept(parser, words[i])) {
            parser->open->schedule = words[i];
            parser->open->schedule_at = at;
            return true;
        }
    unexpected(parser, "gpipe, 1f1b or interleaved");
    suggest(parser, parser->token->at, parser->token->text, words, 3);
    return false;
}

static bool parse_idle(Parser *parser, Position at)
{
    (void)at;
    DeviceList list = {0};
    if (!is(parser, "devices"))
        return unexpected(parser, "\"devices\"");
    next(parser);
    if (!parse_list(parser, parse_device_item, &list))
        return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(parser->arena, &parser->open->idle, list.device.at[i]);
        array_push(parser->arena, &parser->open->idle_at, list.at.at[i]);
    }
    return true;
}

/* ---- the frame ---- */

static bool parse_shape_value(Parser *parser, void *to)
{
    Strategy *strategy = to;
    ShapeValue shape = {.at = parser->token->at};
    if (!(shape.name = expect_name(parser, "the name of a shape variable")) || !expect(parser, "=") || !parse_expression(parser, &shape.value))
        return false;
    for (int i = 0; i < strategy->shapes.count; i++)
        if (!strcmp(strategy->shapes.at[i].name, shape.name)) {
            diag_error(parser->diag, shape.at, "\"%s\" is given a second value", shape.name);
            diag_note(parser->diag, strategy->shapes.at[i].at, "the first one is here");
            return false;
        }
    array_push(parser->arena, &strategy->shapes, shape);
    return true;
}

static void open_strategy(Parser *parser, const char *name, Position at, bool framed)
{
    parser->open = arena_new(parser->arena, Strategy);
    parser->open->name = name;
    parser->open->at = at;
    parser->framed = framed;
    parser->implied = false;
    parser->errors = diag_errors(parser->diag);
    for (int i = 0; i < parser->list->count; i++)
        if (!strcmp(parser->list->at[i]->name, name)) {
            diag_error(parser->diag, at, "there is a strategy \"%s\" already", name);
            diag_note(parser->diag, parser->list->at[i]->at, "it is here");
        }
    array_push(parser->arena, parser->list, parser->open);
}

/* Gives what may be left out its meaning, and checks the whole, unless parts could not be read. */
static void close_strategy(Parser *parser)
{
    Strategy *strategy = parser->open;
    parser->open = NULL;
    if (!strategy || diag_errors(parser->diag) > parser->errors)
        return;
    if (!strategy->pipelines.count) {
        Stage stage = {.at = strategy->at, .mesh_at = strategy->at};
        Pipeline pipeline = {.microbatches = 1, .at = strategy->at};
        array_push(parser->arena, &stage.devices, 0);
        array_push(parser->arena, &stage.device_at, strategy->at);
        array_push(parser->arena, &pipeline.stages, stage);
        array_push(parser->arena, &strategy->pipelines, pipeline);
    }
    strategy_check(parser->diag, strategy, parser->names);
}

static void unclosed(Parser *parser)
{
    if (parser->open && parser->framed)
        diag_error(parser->diag, parser->open->at, "the strategy \"%s\" has no \"end strategy\"", parser->open->name);
}

static bool parse_strategy(Parser *parser, Position at)
{
    unclosed(parser);
    close_strategy(parser);
    Position name_at = parser->token->at;
    const char *name = expect_name(parser, "the strategy's name");
    open_strategy(parser, name ? name : "", name ? name_at : at, true);
    if (!name)
        parser->errors = -1;
    return name && (!is(parser, "(") || parse_list(parser, parse_shape_value, parser->open));
}

static bool parse_end(Parser *parser, Position at)
{
    if (!is(parser, "strategy"))
        return unexpected(parser, "\"strategy\"");
    next(parser);
    if (!parser->open || !parser->framed)
        diag_error(parser->diag, at, "this \"end strategy\" ends no strategy");
    close_strategy(parser);
    return true;
}

static const struct Statement {
    const char *word;
    bool (*parse)(Parser *parser, Position at);
    bool frame; // stands outside of strategies
} statements[] = {{"strategy", parse_strategy, true}, {"end", parse_end, true}, {"split", parse_split, false}, {"zero", parse_zero, false},
                  {"schedule", parse_schedule, false}, {"pipeline", parse_pipeline, false}, {"stage", parse_stage, false}, {"idle", parse_idle, false}};
enum { STATEMENTS = sizeof statements / sizeof *statements };

const char *const *strategy_statements(void)
{
    static const char *words[STATEMENTS + 1];
    for (int i = 0; i < STATEMENTS; i++)
        words[i] = statements[i].word;
    return words;
}

static bool unknown_statement(Parser *parser)
{
    if (parser->token->kind != TOKEN_NAME)
        return unexpected(parser, "a statement of a strategy");
    diag_error(parser->diag, parser->token->at, "\"%s\" begins no statement of a strategy", parser->token->text);
    suggest(parser, parser->token->at, parser->token->text, strategy_statements(), STATEMENTS);
    return false;
}

/* Opens the strategy that statements without a frame belong to, where there may be one. */
static bool have_strategy(Parser *parser, Position at)
{
    if (parser->open)
        return true;
    if (parser->unnamed)
        open_strategy(parser, parser->unnamed, at, false);
    else
        diag_error(parser->diag, at, "this statement stands outside of \"strategy NAME\" and \"end strategy\"");
    return parser->unnamed != NULL;
}

static bool parse_statement(Parser *parser)
{
    Position at = parser->token->at;
    for (int i = 0; i < STATEMENTS; i++)
        if (is(parser, statements[i].word)) {
            if (!statements[i].frame && !have_strategy(parser, at))
                return false;
            next(parser);
            return statements[i].parse(parser, at) && (at_line_end(parser) || unexpected(parser, "the end of the line"));
        }
    return unknown_statement(parser);
}

bool strategy_parse(Arena *arena, Diag *diag, const StrategyText *texts, int text_count, const StrategyNames *names, const char *unnamed, StrategyList *list)
{
    TokenList tokens = {0};
    int before = diag_errors(diag);
    strategy_tokens(arena, diag, texts, text_count, &tokens);
    Parser parser = {.arena = arena, .diag = diag, .token = tokens.at, .names = names, .unnamed = unnamed, .list = list};
    while (parser.token->kind != TOKEN_END) {
        if (!at_line_end(&parser) && !parse_statement(&parser))
            while (!at_line_end(&parser))
                next(&parser);
        while (parser.token->kind == TOKEN_LINE)
            parser.token++;
    }
    unclosed(&parser);
    close_strategy(&parser);
    if (unnamed && !list->count && diag_errors(diag) == before)
        diag_error(diag, texts[0].at, "there is no strategy here");
    return diag_errors(diag) == before;
}
