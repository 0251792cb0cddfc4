#include "strategy/parser.h"
#include "syntax/undone.h"

#include <string.h>

enum { MOST_DEVICE = 65535 };

/* ---- stages ---- */

typedef struct DeviceList {
    Array(int) device;
    Array(Position) at;
} DeviceList;

static bool parse_device_item(StrategyParser *parser, void *to)
{
    Tokens *tokens = parser->tokens;
    DeviceList *list = to;
    int64_t first, last;
    Position at = tokens->token->at;
    if (tokens->token->kind == TOKEN_NAME && tokens_before(tokens, ":"))
        return undone_error(tokens->diag, at, UNDONE_CLASS);
    if (!strategy_range(parser, "a device number", &first, &last))
        return false;
    if (last > MOST_DEVICE) {
        diag_error(tokens->diag, at, "device %lld: device numbers go up to %d", (long long)last, MOST_DEVICE);
        return false;
    }
    for (int64_t device = first; device <= last; device++) {
        array_push(tokens->arena, &list->device, (int)device);
        array_push(tokens->arena, &list->at, at);
    }
    return true;
}

static bool parse_weights(StrategyParser *parser, MeshAxis *axis)
{
    Tokens *tokens = parser->tokens;
    Array(int64_t) weights = {0};
    Position by = tokens->token->at;
    do {
        int64_t weight;
        tokens_next(tokens);
        if (!strategy_primary(parser, "a weight", &weight))
            return false;
        array_push(tokens->arena, &weights, weight);
    } while (tokens_is(tokens, ":"));
    if (weights.count != axis->count) {
        diag_error(tokens->diag, by, "the axis \"%s\" has %d pieces, but %d weights", axis->name, axis->count, weights.count);
        return false;
    }
    axis->weights = weights.at;
    return true;
}

static bool parse_mesh_item(StrategyParser *parser, void *to)
{
    Tokens *tokens = parser->tokens;
    Stage *stage = to;
    MeshAxis axis = {.at = tokens->token->at};
    int64_t count;
    if (!(axis.name = tokens_name(tokens, "the name of a mesh axis")) || !tokens_expect(tokens, ":", NULL) ||
        !strategy_bounded(parser, "the number of pieces", 1, MOST_DEVICE + 1, &count))
        return false;
    axis.count = (int)count;
    if (tokens_is(tokens, "by") && !parse_weights(parser, &axis))
        return false;
    array_push(tokens->arena, &stage->mesh, axis);
    return true;
}

/* Whether the current token is a name that stands for itself: no integer constant, no end of a range. */
static bool at_plain_name(StrategyParser *parser)
{
    Tokens *tokens = parser->tokens;
    const StrategyNames *names = parser->names;
    int64_t value;
    return tokens->token->kind == TOKEN_NAME && !tokens_before(tokens, "-") &&
           !(names && names->value && names->value(names->state, tokens->token->text, &value));
}

static bool parse_layer_item(StrategyParser *parser, void *to)
{
    Tokens *tokens = parser->tokens;
    Stage *stage = to;
    LayerRange range = {.at = tokens->token->at};
    if (tokens->token->kind == TOKEN_NAME && tokens_before(tokens, ":")) {
        range.tower = tokens_name(tokens, "a tower");
        tokens_next(tokens);
    }
    if (at_plain_name(parser))
        range.name = tokens_name(tokens, "a layer");
    else if (!strategy_range(parser, "a layer", &range.first, &range.last))
        return false;
    array_push(tokens->arena, &stage->layers, range);
    return true;
}

static bool parse_devices(StrategyParser *parser, Stage *stage)
{
    Tokens *tokens = parser->tokens;
    DeviceList list = {0};
    if (!strategy_list(parser, parse_device_item, &list))
        return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(tokens->arena, &stage->devices, list.device.at[i]);
        array_push(tokens->arena, &stage->device_at, list.at.at[i]);
    }
    return true;
}

static bool parse_mesh(StrategyParser *parser, Stage *stage)
{
    stage->mesh_at = parser->tokens->token[-1].at;
    return strategy_list(parser, parse_mesh_item, stage);
}

static bool parse_layers(StrategyParser *parser, Stage *stage)
{
    stage->layers_at = parser->tokens->token[-1].at;
    return strategy_list(parser, parse_layer_item, stage);
}

static bool parse_recompute(StrategyParser *parser, Stage *stage)
{
    Tokens *tokens = parser->tokens;
    static const char *const words[] = {"full", "selective"};
    stage->recompute_at = tokens->token[-1].at;
    if (!tokens_expect(tokens, "(", NULL))
        return false;
    Token word = *tokens->token;
    if (!tokens_is(tokens, "full") && !tokens_is(tokens, "selective")) {
        tokens_unexpected(tokens, "\"full\" or \"selective\"");
        tokens_suggest(tokens, word.at, word.text, words, 2);
        return false;
    }
    stage->recompute = word.text;
    tokens_next(tokens);
    return tokens_expect(tokens, ")", NULL);
}

static const struct StageClause {
    const char *word;
    bool (*parse)(StrategyParser *parser, Stage *stage);
} stage_clauses[] = {{"devices", parse_devices}, {"mesh", parse_mesh}, {"layers", parse_layers}, {"recompute", parse_recompute}};
enum { STAGE_CLAUSES = sizeof stage_clauses / sizeof *stage_clauses };

/* Reports a word that is no clause of the statement. False. */
static bool unknown_clause(StrategyParser *parser, const char *statement, const char *const *words, int count)
{
    Tokens *tokens = parser->tokens;
    if (tokens->token->kind != TOKEN_NAME)
        return tokens_unexpected(tokens, arena_format(tokens->arena, "a clause of \"%s\"", statement));
    tokens_error(tokens, "\"%s\" is no clause of \"%s\"", tokens->token->text, statement);
    tokens_suggest(tokens, tokens->token->at, tokens->token->text, words, count);
    return false;
}

static bool repeated_clause(StrategyParser *parser)
{
    Tokens *tokens = parser->tokens;
    return tokens_error(tokens, "the clause \"%s\" stands here a second time", tokens->token->text);
}

static bool parse_stage_clause(StrategyParser *parser, Stage *stage, bool *seen)
{
    Tokens *tokens = parser->tokens;
    const char *words[STAGE_CLAUSES];
    for (int i = 0; i < STAGE_CLAUSES; i++) {
        words[i] = stage_clauses[i].word;
        if (!tokens_is(tokens, words[i]))
            continue;
        if (seen[i])
            return repeated_clause(parser);
        seen[i] = true;
        tokens_next(tokens);
        return stage_clauses[i].parse(parser, stage);
    }
    return unknown_clause(parser, "stage", words, STAGE_CLAUSES);
}

static bool parse_stage(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    Strategy *strategy = parser->open;
    Stage stage = {.at = at};
    bool seen[STAGE_CLAUSES] = {false};
    if (!strategy->pipelines.count) {
        array_push(tokens->arena, &strategy->pipelines, ((Pipeline){.microbatches = 1, .at = at}));
        parser->implied = true;
    }
    while (!tokens_end(tokens))
        if (!parse_stage_clause(parser, &stage, seen))
            return false;
    if (!seen[0]) {
        diag_error(tokens->diag, at, "this stage names no devices");
        diag_note(tokens->diag, at, "write them as in: stage devices(0-3)");
        return false;
    }
    if (!seen[1])
        stage.mesh_at = at;
    array_push(tokens->arena, &strategy->pipelines.at[strategy->pipelines.count - 1].stages, stage);
    return true;
}

/* ---- other statements ---- */

static bool parse_pipeline(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    static const char *const words[] = {"microbatches", "rows"};
    Pipeline pipeline = {.microbatches = 1, .at = at};
    bool seen[2] = {false};
    while (!tokens_end(tokens)) {
        int which = tokens_is(tokens, words[0]) ? 0 : tokens_is(tokens, words[1]) ? 1 : -1;
        if (which < 0)
            return unknown_clause(parser, "pipeline", words, 2);
        if (seen[which])
            return repeated_clause(parser);
        seen[which] = true;
        tokens_next(tokens);
        if (!tokens_expect(tokens, "(", NULL) ||
            !strategy_bounded(parser, which ? "the number of rows" : "the number of micro-batches", 1, INT32_MAX,
                              which ? &pipeline.rows : &pipeline.microbatches) ||
            !tokens_expect(tokens, ")", NULL))
            return false;
    }
    if (parser->implied) {
        diag_error(tokens->diag, at, "a stage stands before this pipeline and belongs to none");
        diag_note(tokens->diag, parser->open->pipelines.at[0].at, "write a \"pipeline\" before this stage");
        return false;
    }
    array_push(tokens->arena, &parser->open->pipelines, pipeline);
    return true;
}

typedef Array(const char *) AxisNames;
typedef Array(Position) AxisPlaces;

/* axis { * axis } */
static bool parse_axes(StrategyParser *parser, AxisNames *axes, AxisPlaces *places)
{
    Tokens *tokens = parser->tokens;
    do {
        Position at = tokens->token->at;
        const char *axis = tokens_name(tokens, "the name of a mesh axis");
        if (!axis)
            return false;
        for (int i = 0; i < axes->count; i++)
            if (!strcmp(axes->at[i], axis)) {
                diag_error(tokens->diag, at, "the axis \"%s\" stands here a second time", axis);
                return false;
            }
        array_push(tokens->arena, axes, axis);
        array_push(tokens->arena, places, at);
    } while (tokens_take(tokens, "*"));
    return true;
}

static bool parse_split(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    (void)at;
    do {
        SplitRule rule = {.at = tokens->token->at};
        AxisNames axes = {0};
        AxisPlaces places = {0};
        if (!(rule.dim = tokens_name(tokens, "the name of a dimension")) || !tokens_expect(tokens, ":", NULL) ||
            !parse_axes(parser, &axes, &places))
            return false;
        rule.axes = axes.at;
        rule.axis_at = places.at;
        rule.axis_count = axes.count;
        array_push(tokens->arena, &parser->open->splits, rule);
    } while (!tokens_end(tokens));
    return true;
}

/* Whether the strategy has no such statement yet; an error with a note at the first one otherwise. */
static bool first_time(StrategyParser *parser, Position at, const char *statement, Position before)
{
    Tokens *tokens = parser->tokens;
    if (!before.line)
        return true;
    diag_error(tokens->diag, at, "the statement \"%s\" stands here a second time", statement);
    diag_note(tokens->diag, before, "the first one is here");
    return false;
}

static bool parse_zero(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    Strategy *strategy = parser->open;
    AxisNames axes = {0};
    AxisPlaces places = {0};
    int64_t level;
    if (!first_time(parser, at, "zero", strategy->zero_at) || !strategy_bounded(parser, "the level of ZeRO", 0, 3, &level))
        return false;
    if (tokens_take(tokens, "over") && !parse_axes(parser, &axes, &places))
        return false;
    strategy->zero = (int)level;
    strategy->zero_at = at;
    for (int i = 0; i < axes.count; i++) {
        array_push(tokens->arena, &strategy->zero_axes, axes.at[i]);
        array_push(tokens->arena, &strategy->zero_axis_at, places.at[i]);
    }
    return true;
}

static bool parse_schedule(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    static const char *const words[] = {"gpipe", "1f1b", "interleaved"};
    if (!first_time(parser, at, "schedule", parser->open->schedule_at))
        return false;
    for (int i = 0; i < 3; i++)
        if (tokens_take(tokens, words[i])) {
            parser->open->schedule = words[i];
            parser->open->schedule_at = at;
            return true;
        }
    tokens_unexpected(tokens, "gpipe, 1f1b or interleaved");
    tokens_suggest(tokens, tokens->token->at, tokens->token->text, words, 3);
    return false;
}

static bool parse_idle(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    (void)at;
    DeviceList list = {0};
    if (!tokens_is(tokens, "devices"))
        return tokens_unexpected(tokens, "\"devices\"");
    tokens_next(tokens);
    if (!strategy_list(parser, parse_device_item, &list))
        return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(tokens->arena, &parser->open->idle, list.device.at[i]);
        array_push(tokens->arena, &parser->open->idle_at, list.at.at[i]);
    }
    return true;
}

/* ---- the frame ---- */

static bool parse_shape_value(StrategyParser *parser, void *to)
{
    Tokens *tokens = parser->tokens;
    Strategy *strategy = to;
    ShapeValue shape = {.at = tokens->token->at};
    if (!(shape.name = tokens_name(tokens, "the name of a shape variable")) || !tokens_expect(tokens, "=", NULL) ||
        !strategy_integer(parser, &shape.value))
        return false;
    for (int i = 0; i < strategy->shapes.count; i++)
        if (!strcmp(strategy->shapes.at[i].name, shape.name)) {
            diag_error(tokens->diag, shape.at, "\"%s\" is given a second value", shape.name);
            diag_note(tokens->diag, strategy->shapes.at[i].at, "the first one is here");
            return false;
        }
    array_push(tokens->arena, &strategy->shapes, shape);
    return true;
}

static void open_strategy(StrategyParser *parser, const char *name, Position at, bool framed)
{
    Tokens *tokens = parser->tokens;
    parser->open = arena_new(tokens->arena, Strategy);
    parser->open->name = name;
    parser->open->at = at;
    parser->framed = framed;
    parser->implied = false;
    parser->errors = diag_errors(tokens->diag);
    for (int i = 0; i < parser->list->count; i++)
        if (!strcmp(parser->list->at[i]->name, name)) {
            diag_error(tokens->diag, at, "there is a strategy \"%s\" already", name);
            diag_note(tokens->diag, parser->list->at[i]->at, "it is here");
        }
    array_push(tokens->arena, parser->list, parser->open);
}

/* Gives what may be left out its meaning, and checks the whole, unless parts could not be read. */
static void close_strategy(StrategyParser *parser)
{
    Tokens *tokens = parser->tokens;
    Strategy *strategy = parser->open;
    parser->open = NULL;
    if (!strategy || diag_errors(tokens->diag) > parser->errors)
        return;
    if (!strategy->pipelines.count) {
        Stage stage = {.at = strategy->at, .mesh_at = strategy->at};
        Pipeline pipeline = {.microbatches = 1, .at = strategy->at};
        array_push(tokens->arena, &stage.devices, 0);
        array_push(tokens->arena, &stage.device_at, strategy->at);
        array_push(tokens->arena, &pipeline.stages, stage);
        array_push(tokens->arena, &strategy->pipelines, pipeline);
    }
    strategy_check(tokens->diag, strategy, parser->names);
}

/* Reports that the open strategy has no end, where it has none; once, since the end of the next may be the one that is missing. Returns
 * whether it did. */
static bool unclosed(StrategyParser *parser)
{
    bool open = parser->open && parser->framed, first = open && !parser->refused;
    if (first)
        diag_error(parser->tokens->diag, parser->open->at, "the strategy \"%s\" has no \"end strategy\"", parser->open->name);
    parser->refused |= open;
    return first;
}

/* The word `strategy` alone inside a strategy. */
static bool nameless(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    diag_error(tokens->diag, at, "a strategy without a name begins inside the strategy \"%s\"", parser->open->name);
    diag_note(tokens->diag, at, "did you mean \"end strategy\"?");
    close_strategy(parser);
    return false;
}

static bool parse_strategy(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    if (parser->open && parser->framed && tokens_end(tokens))
        return nameless(parser, at);
    if (unclosed(parser))
        diag_note(tokens->diag, at, "the next one begins here");
    close_strategy(parser);
    Position name_at = tokens->token->at;
    const char *name = tokens_name(tokens, "the strategy's name");
    open_strategy(parser, name ? name : "", name ? name_at : at, true);
    if (!name)
        parser->errors = -1;
    return name && (!tokens_is(tokens, "(") || strategy_list(parser, parse_shape_value, parser->open));
}

static bool parse_end(StrategyParser *parser, Position at)
{
    Tokens *tokens = parser->tokens;
    bool whole = tokens_take(tokens, "strategy");
    if (!whole)
        tokens_unexpected(tokens, "\"strategy\"");
    else if ((!parser->open || !parser->framed) && !parser->refused)
        diag_error(tokens->diag, at, "this \"end strategy\" ends no strategy");
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

bool strategy_has_statement(const char *word)
{
    bool found = false;
    for (int i = 0; i < STATEMENTS; i++)
        found |= !statements[i].frame && !strcmp(statements[i].word, word);
    return found;
}

static bool unknown_statement(StrategyParser *parser)
{
    Tokens *tokens = parser->tokens;
    const char *words[STATEMENTS];
    for (int i = 0; i < STATEMENTS; i++)
        words[i] = statements[i].word;
    parser->refused |= !parser->open || !parser->framed;
    if (tokens->token->kind != TOKEN_NAME)
        return tokens_unexpected(tokens, "a statement of a strategy");
    tokens_error(tokens, "\"%s\" begins no statement of a strategy", tokens->token->text);
    tokens_suggest(tokens, tokens->token->at, tokens->token->text, words, STATEMENTS);
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
        diag_error(parser->tokens->diag, at, "this statement stands outside of \"strategy NAME\" and \"end strategy\"");
    return parser->unnamed != NULL;
}

static bool parse_statement(StrategyParser *parser)
{
    Tokens *tokens = parser->tokens;
    Position at = tokens->token->at;
    for (int i = 0; i < STATEMENTS; i++)
        if (tokens_is(tokens, statements[i].word)) {
            if (!statements[i].frame && !have_strategy(parser, at))
                return false;
            tokens_next(tokens);
            return statements[i].parse(parser, at) && (tokens_end(tokens) || tokens_unexpected(tokens, "the end of the line"));
        }
    return unknown_statement(parser);
}

/* Whether strategies know the token. */
static bool is_known(const Token *token)
{
    static const char *const marks[] = {"(", ")", ":", ",", "=", "+", "-", "*", "/", "%", "<<", ">>"};
    bool known = token->kind < TOKEN_STRING || token->kind > TOKEN_MARK;
    for (size_t i = 0; !known && i < sizeof marks / sizeof *marks; i++)
        known = token_is(token, marks[i]);
    return known;
}

/* Reports tokens that no strategy has, and turns them into TOKEN_BAD. */
static void refuse_unknown(Diag *diag, Token *token)
{
    for (; token->kind != TOKEN_END; token++) {
        unsigned char byte = (unsigned char)*token->text;
        if (is_known(token))
            continue;
        if (byte >= ' ' && byte < 0x7f)
            diag_error(diag, token->at, "unexpected character '%c' in a strategy", byte);
        else
            diag_error(diag, token->at, "unexpected byte 0x%02x in a strategy", byte);
        token->kind = TOKEN_BAD;
    }
}

bool strategy_parse(Arena *arena, Diag *diag, Token *tokens, const StrategyNames *names, const char *unnamed, StrategyList *list)
{
    int before = diag_errors(diag);
    Tokens place = {.arena = arena, .diag = diag, .token = tokens, .end = "the end of the line", .found = true};
    StrategyParser parser = {.tokens = &place, .names = names, .unnamed = unnamed, .list = list};
    refuse_unknown(diag, tokens);
    for (; place.token->kind != TOKEN_END; tokens_next_line(&place))
        if (!tokens_end(&place))
            parse_statement(&parser);
    unclosed(&parser);
    close_strategy(&parser);
    if (unnamed && !list->count && diag_errors(diag) == before)
        diag_error(diag, (Position){tokens->at.file, 1, 1}, "there is no strategy here");
    return diag_errors(diag) == before;
}

Strategy *strategy_parse_one(Tokens *tokens)
{
    TokenList own = {0};
    StrategyList list = {0};
    for (bool ends = false; tokens->token->kind != TOKEN_END && !(ends && tokens_end(tokens)); tokens->token++) {
        ends |= tokens_is(tokens, "end") && tokens_before(tokens, "strategy");
        array_push(tokens->arena, &own, *tokens->token);
    }
    array_push(tokens->arena, &own, (Token){.kind = TOKEN_END, .text = "", .at = tokens->token->at});
    return strategy_parse(tokens->arena, tokens->diag, own.at, NULL, NULL, &list) && list.count ? list.at[0] : NULL;
}
