#include "strategy/parser.h"

#include <string.h>

enum { MOST_DEVICE = 65535 };

/* ---- stages ---- */

typedef struct DeviceList {
    Array(int) device;
    Array(Position) at;
} DeviceList;

static bool parse_device_item(StrategyParser *parser, void *to)
{
    DeviceList *list = to;
    int64_t first, last;
    Position at = parser->token->at;
    if (parser->token->kind == TOKEN_NAME && !strcmp(parser->token[1].text, ":")) {
        diag_error(parser->diag, at, "\"%s:\" names a class of devices, but cluster files are not read by this version",
                   parser->token->text);
        diag_note(parser->diag, at, "list the devices by number alone");
        return false;
    }
    if (!strategy_range(parser, "a device number", &first, &last))
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

static bool parse_weights(StrategyParser *parser, MeshAxis *axis)
{
    Array(int64_t) weights = {0};
    Position by = parser->token->at;
    do {
        int64_t weight;
        strategy_next(parser);
        if (!strategy_primary(parser, "a weight", &weight))
            return false;
        array_push(parser->arena, &weights, weight);
    } while (strategy_reads(parser, ":"));
    if (weights.count != axis->count) {
        diag_error(parser->diag, by, "the axis \"%s\" has %d pieces, but %d weights", axis->name, axis->count, weights.count);
        return false;
    }
    axis->weights = weights.at;
    return true;
}

static bool parse_mesh_item(StrategyParser *parser, void *to)
{
    Stage *stage = to;
    MeshAxis axis = {.at = parser->token->at};
    int64_t count;
    if (!(axis.name = strategy_name(parser, "the name of a mesh axis")) || !strategy_expect(parser, ":") ||
        !strategy_bounded(parser, "the number of pieces", 1, MOST_DEVICE + 1, &count))
        return false;
    axis.count = (int)count;
    if (strategy_reads(parser, "by") && !parse_weights(parser, &axis))
        return false;
    array_push(parser->arena, &stage->mesh, axis);
    return true;
}

/* Whether the current token is a name that stands for itself: no integer constant, no end of a range. */
static bool at_plain_name(StrategyParser *parser)
{
    const StrategyNames *names = parser->names;
    int64_t value;
    return parser->token->kind == TOKEN_NAME && strcmp(parser->token[1].text, "-") &&
           !(names && names->value && names->value(names->state, parser->token->text, &value));
}

static bool parse_layer_item(StrategyParser *parser, void *to)
{
    Stage *stage = to;
    LayerRange range = {.at = parser->token->at};
    if (parser->token->kind == TOKEN_NAME && !strcmp(parser->token[1].text, ":")) {
        range.tower = strategy_name(parser, "a tower");
        strategy_next(parser);
    }
    if (at_plain_name(parser))
        range.name = strategy_name(parser, "a layer");
    else if (!strategy_range(parser, "a layer", &range.first, &range.last))
        return false;
    array_push(parser->arena, &stage->layers, range);
    return true;
}

static bool parse_devices(StrategyParser *parser, Stage *stage)
{
    DeviceList list = {0};
    if (!strategy_list(parser, parse_device_item, &list))
        return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(parser->arena, &stage->devices, list.device.at[i]);
        array_push(parser->arena, &stage->device_at, list.at.at[i]);
    }
    return true;
}

static bool parse_mesh(StrategyParser *parser, Stage *stage)
{
    stage->mesh_at = parser->token[-1].at;
    return strategy_list(parser, parse_mesh_item, stage);
}

static bool parse_layers(StrategyParser *parser, Stage *stage) { return strategy_list(parser, parse_layer_item, stage); }

static bool parse_recompute(StrategyParser *parser, Stage *stage)
{
    static const char *const words[] = {"full", "selective"};
    if (!strategy_expect(parser, "("))
        return false;
    Token word = *parser->token;
    if (!strategy_reads(parser, "full") && !strategy_reads(parser, "selective")) {
        strategy_unexpected(parser, "\"full\" or \"selective\"");
        strategy_suggest(parser, word.at, word.text, words, 2);
        return false;
    }
    stage->recompute = word.text;
    strategy_next(parser);
    return strategy_expect(parser, ")");
}

static const struct StageClause {
    const char *word;
    bool (*parse)(StrategyParser *parser, Stage *stage);
} stage_clauses[] = {{"devices", parse_devices}, {"mesh", parse_mesh}, {"layers", parse_layers}, {"recompute", parse_recompute}};
enum { STAGE_CLAUSES = sizeof stage_clauses / sizeof *stage_clauses };

/* Reports a word that is no clause of the statement. False. */
static bool unknown_clause(StrategyParser *parser, const char *statement, const char *const *words, int count)
{
    if (parser->token->kind != TOKEN_NAME)
        return strategy_unexpected(parser, arena_format(parser->arena, "a clause of \"%s\"", statement));
    diag_error(parser->diag, parser->token->at, "\"%s\" is no clause of \"%s\"", parser->token->text, statement);
    strategy_suggest(parser, parser->token->at, parser->token->text, words, count);
    return false;
}

static bool repeated_clause(StrategyParser *parser)
{
    diag_error(parser->diag, parser->token->at, "the clause \"%s\" stands here a second time", parser->token->text);
    return false;
}

static bool parse_stage_clause(StrategyParser *parser, Stage *stage, bool *seen)
{
    const char *words[STAGE_CLAUSES];
    for (int i = 0; i < STAGE_CLAUSES; i++) {
        words[i] = stage_clauses[i].word;
        if (!strategy_reads(parser, words[i]))
            continue;
        if (seen[i])
            return repeated_clause(parser);
        seen[i] = true;
        strategy_next(parser);
        return stage_clauses[i].parse(parser, stage);
    }
    return unknown_clause(parser, "stage", words, STAGE_CLAUSES);
}

static bool parse_stage(StrategyParser *parser, Position at)
{
    Strategy *strategy = parser->open;
    Stage stage = {.at = at};
    bool seen[STAGE_CLAUSES] = {false};
    if (!strategy->pipelines.count) {
        array_push(parser->arena, &strategy->pipelines, ((Pipeline){.microbatches = 1, .at = at}));
        parser->implied = true;
    }
    while (!strategy_line_end(parser))
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

static bool parse_pipeline(StrategyParser *parser, Position at)
{
    static const char *const words[] = {"microbatches", "rows"};
    Pipeline pipeline = {.microbatches = 1, .at = at};
    bool seen[2] = {false};
    while (!strategy_line_end(parser)) {
        int which = strategy_reads(parser, words[0]) ? 0 : strategy_reads(parser, words[1]) ? 1 : -1;
        if (which < 0)
            return unknown_clause(parser, "pipeline", words, 2);
        if (seen[which])
            return repeated_clause(parser);
        seen[which] = true;
        strategy_next(parser);
        if (!strategy_expect(parser, "(") ||
            !strategy_bounded(parser, which ? "the number of rows" : "the number of micro-batches", 1, INT32_MAX,
                              which ? &pipeline.rows : &pipeline.microbatches) ||
            !strategy_expect(parser, ")"))
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
static bool parse_axes(StrategyParser *parser, AxisNames *axes, AxisPlaces *places)
{
    do {
        Position at = parser->token->at;
        const char *axis = strategy_name(parser, "the name of a mesh axis");
        if (!axis)
            return false;
        for (int i = 0; i < axes->count; i++)
            if (!strcmp(axes->at[i], axis)) {
                diag_error(parser->diag, at, "the axis \"%s\" stands here a second time", axis);
                return false;
            }
        array_push(parser->arena, axes, axis);
        array_push(parser->arena, places, at);
    } while (strategy_accept(parser, "*"));
    return true;
}

static bool parse_split(StrategyParser *parser, Position at)
{
    (void)at;
    do {
        SplitRule rule = {.at = parser->token->at};
        AxisNames axes = {0};
        AxisPlaces places = {0};
        if (!(rule.dim = strategy_name(parser, "the name of a dimension")) || !strategy_expect(parser, ":") ||
            !parse_axes(parser, &axes, &places))
            return false;
        rule.axes = axes.at;
        rule.axis_at = places.at;
        rule.axis_count = axes.count;
        array_push(parser->arena, &parser->open->splits, rule);
    } while (!strategy_line_end(parser));
    return true;
}

/* Whether the strategy has no such statement yet; an error with a note at the first one otherwise. */
static bool first_time(StrategyParser *parser, Position at, const char *statement, Position before)
{
    if (!before.line)
        return true;
    diag_error(parser->diag, at, "the statement \"%s\" stands here a second time", statement);
    diag_note(parser->diag, before, "the first one is here");
    return false;
}

static bool parse_zero(StrategyParser *parser, Position at)
{
    Strategy *strategy = parser->open;
    AxisNames axes = {0};
    AxisPlaces places = {0};
    int64_t level;
    if (!first_time(parser, at, "zero", strategy->zero_at) || !strategy_bounded(parser, "the level of ZeRO", 0, 3, &level))
        return false;
    if (strategy_accept(parser, "over") && !parse_axes(parser, &axes, &places))
        return false;
    strategy->zero = (int)level;
    strategy->zero_at = at;
    for (int i = 0; i < axes.count; i++) {
        array_push(parser->arena, &strategy->zero_axes, axes.at[i]);
        array_push(parser->arena, &strategy->zero_axis_at, places.at[i]);
    }
    return true;
}

static bool parse_schedule(StrategyParser *parser, Position at)
{
    static const char *const words[] = {"gpipe", "1f1b", "interleaved"};
    if (!first_time(parser, at, "schedule", parser->open->schedule_at))
        return false;
    for (int i = 0; i < 3; i++)
        if (strategy_accept(parser, words[i])) {
            parser->open->schedule = words[i];
            parser->open->schedule_at = at;
            return true;
        }
    strategy_unexpected(parser, "gpipe, 1f1b or interleaved");
    strategy_suggest(parser, parser->token->at, parser->token->text, words, 3);
    return false;
}

static bool parse_idle(StrategyParser *parser, Position at)
{
    (void)at;
    DeviceList list = {0};
    if (!strategy_reads(parser, "devices"))
        return strategy_unexpected(parser, "\"devices\"");
    strategy_next(parser);
    if (!strategy_list(parser, parse_device_item, &list))
        return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(parser->arena, &parser->open->idle, list.device.at[i]);
        array_push(parser->arena, &parser->open->idle_at, list.at.at[i]);
    }
    return true;
}

/* ---- the frame ---- */

static bool parse_shape_value(StrategyParser *parser, void *to)
{
    Strategy *strategy = to;
    ShapeValue shape = {.at = parser->token->at};
    if (!(shape.name = strategy_name(parser, "the name of a shape variable")) || !strategy_expect(parser, "=") ||
        !strategy_integer(parser, &shape.value))
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

static void open_strategy(StrategyParser *parser, const char *name, Position at, bool framed)
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
static void close_strategy(StrategyParser *parser)
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

/* Reports that the open strategy has no end, where it has none; once, since the end of the next may be the one that is missing. Returns
 * whether it did. */
static bool unclosed(StrategyParser *parser)
{
    bool open = parser->open && parser->framed, first = open && !parser->refused;
    if (first)
        diag_error(parser->diag, parser->open->at, "the strategy \"%s\" has no \"end strategy\"", parser->open->name);
    parser->refused |= open;
    return first;
}

/* The word `strategy` alone inside a strategy. */
static bool nameless(StrategyParser *parser, Position at)
{
    diag_error(parser->diag, at, "a strategy without a name begins inside the strategy \"%s\"", parser->open->name);
    diag_note(parser->diag, at, "did you mean \"end strategy\"?");
    close_strategy(parser);
    return false;
}

static bool parse_strategy(StrategyParser *parser, Position at)
{
    if (parser->open && parser->framed && strategy_line_end(parser))
        return nameless(parser, at);
    if (unclosed(parser))
        diag_note(parser->diag, at, "the next one begins here");
    close_strategy(parser);
    Position name_at = parser->token->at;
    const char *name = strategy_name(parser, "the strategy's name");
    open_strategy(parser, name ? name : "", name ? name_at : at, true);
    if (!name)
        parser->errors = -1;
    return name && (!strategy_reads(parser, "(") || strategy_list(parser, parse_shape_value, parser->open));
}

static bool parse_end(StrategyParser *parser, Position at)
{
    bool whole = strategy_accept(parser, "strategy");
    if (!whole)
        strategy_unexpected(parser, "\"strategy\"");
    else if ((!parser->open || !parser->framed) && !parser->refused)
        diag_error(parser->diag, at, "this \"end strategy\" ends no strategy");
    close_strategy(parser);
    parser->refused = !whole;
    return whole;
}

static const struct Statement {
    const char *word;
    bool (*parse)(StrategyParser *parser, Position at);
    bool frame; // stands outside of strategies
} statements[] = {{"strategy", parse_strategy, true},  {"end", parse_end, true},
                  {"split", parse_split, false},       {"zero", parse_zero, false},
                  {"schedule", parse_schedule, false}, {"pipeline", parse_pipeline, false},
                  {"stage", parse_stage, false},       {"idle", parse_idle, false}};
enum { STATEMENTS = sizeof statements / sizeof *statements };

const char *const *strategy_statements(void)
{
    static const char *words[STATEMENTS + 1];
    for (int i = 0; i < STATEMENTS; i++)
        words[i] = statements[i].word;
    return words;
}

static bool unknown_statement(StrategyParser *parser)
{
    parser->refused |= !parser->open || !parser->framed;
    if (parser->token->kind != TOKEN_NAME)
        return strategy_unexpected(parser, "a statement of a strategy");
    diag_error(parser->diag, parser->token->at, "\"%s\" begins no statement of a strategy", parser->token->text);
    strategy_suggest(parser, parser->token->at, parser->token->text, strategy_statements(), STATEMENTS);
    return false;
}

/* Opens the strategy that statements without a frame belong to, where there may be one. */
static bool have_strategy(StrategyParser *parser, Position at)
{
    if (parser->open)
        return true;
    if (parser->unnamed)
        open_strategy(parser, parser->unnamed, at, false);
    else
        diag_error(parser->diag, at, "this statement stands outside of \"strategy NAME\" and \"end strategy\"");
    return parser->unnamed != NULL;
}

static bool parse_statement(StrategyParser *parser)
{
    Position at = parser->token->at;
    for (int i = 0; i < STATEMENTS; i++)
        if (strategy_reads(parser, statements[i].word)) {
            if (!statements[i].frame && !have_strategy(parser, at))
                return false;
            strategy_next(parser);
            return statements[i].parse(parser, at) && (strategy_line_end(parser) || strategy_unexpected(parser, "the end of the line"));
        }
    return unknown_statement(parser);
}

bool strategy_parse(Arena *arena, Diag *diag, const StrategyText *texts, int text_count, const StrategyNames *names, const char *unnamed,
                    StrategyList *list)
{
    TokenList tokens = {0};
    int before = diag_errors(diag);
    strategy_tokens(arena, diag, texts, text_count, &tokens);
    StrategyParser parser = {.arena = arena, .diag = diag, .token = tokens.at, .names = names, .unnamed = unnamed, .list = list};
    while (parser.token->kind != TOKEN_END) {
        if (!strategy_line_end(&parser) && !parse_statement(&parser))
            while (!strategy_line_end(&parser))
                strategy_next(&parser);
        while (parser.token->kind == TOKEN_LINE)
            parser.token++;
    }
    unclosed(&parser);
    close_strategy(&parser);
    if (unnamed && !list->count && diag_errors(diag) == before)
        diag_error(diag, texts[0].at, "there is no strategy here");
    return diag_errors(diag) == before;
}
