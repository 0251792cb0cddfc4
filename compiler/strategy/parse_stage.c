/* Parses pipeline, stage, idle and their clauses: microbatches, rows, mesh, layers, recompute. */
#include "strategy/parser.h"

#include "syntax/lex.h"
#include "syntax/tokens.h"

enum { MOST_DEVICE = 65535 };

typedef struct DeviceList {
    Array(int) device;
    Array(Position) at;
    Array(const char *) class;
} DeviceList;

/* Reads an item's prefix `NAME:`, a class or tower. Returns the name; NULL: there is no prefix. */
static const char *parse_prefix(Tokens *tokens) {
    const char *name = tokens->token->text;
    if (tokens->token->kind != TOKEN_NAME || !tokens_before(tokens, ":")) return NULL;
    tokens->token += 2;
    return name;
}

static bool parse_device_item(StrategyParser *parser, void *to) {
    Tokens *tokens = parser->tokens;
    DeviceList *list = to;
    int64_t first, last;
    Position at = tokens->token->at;
    const char *class = parse_prefix(tokens);
    if (!strategy_range(parser, "a device number", &first, &last)) return false;
    if (last > MOST_DEVICE) {
        diag_error(tokens->diag, at, "device %lld: device numbers go up to %d", (long long)last,
                   MOST_DEVICE);
        return false;
    }
    for (int64_t device = first; device <= last; device++) {
        array_push(tokens->arena, &list->device, (int)device);
        array_push(tokens->arena, &list->at, at);
        array_push(tokens->arena, &list->class, class);
    }
    return true;
}

static bool parse_weights(StrategyParser *parser, MeshAxis *axis) {
    Tokens *tokens = parser->tokens;
    Array(int64_t) weights = {0};
    Position by = tokens->token->at;
    do {
        int64_t weight;
        tokens_next(tokens);
        if (!strategy_primary(parser, "a weight", &weight)) return false;
        array_push(tokens->arena, &weights, weight);
    } while (tokens_is(tokens, ":"));
    if (weights.count != axis->count && !parser->skimmed) {
        diag_error(tokens->diag, by, "the axis \"%s\" has %d pieces, but %d weights", axis->name,
                   axis->count, weights.count);
        return false;
    }
    axis->weights = weights.at;
    return true;
}

static bool parse_mesh_item(StrategyParser *parser, void *to) {
    Tokens *tokens = parser->tokens;
    Stage *stage = to;
    MeshAxis axis = {.at = tokens->token->at};
    int64_t count;
    if (!(axis.name = tokens_name(tokens, "the name of a mesh axis")) ||
        !tokens_expect(tokens, ":", NULL) ||
        !strategy_bounded(parser, "the number of pieces", 1, MOST_DEVICE + 1, &count))
        return false;
    axis.count = (int)count;
    if (tokens_is(tokens, "by") && !parse_weights(parser, &axis)) return false;
    array_push(tokens->arena, &stage->mesh, axis);
    return true;
}

/* Returns whether a layer's name is next: neither an integer constant nor a range's start. */
static bool at_plain_name(StrategyParser *parser) {
    Tokens *tokens = parser->tokens;
    const StrategyNames *names = parser->names;
    int64_t value;
    return tokens->token->kind == TOKEN_NAME && !tokens_before(tokens, "-") &&
           !(names && names->value && names->value(names->state, tokens->token->text, &value));
}

static bool parse_layer_item(StrategyParser *parser, void *to) {
    Tokens *tokens = parser->tokens;
    Stage *stage = to;
    LayerRange range = {.at = tokens->token->at};
    range.tower = parse_prefix(tokens);
    if (at_plain_name(parser)) range.name = tokens_name(tokens, "a layer");
    else if (!strategy_range(parser, "a layer", &range.first, &range.last)) return false;
    array_push(tokens->arena, &stage->layers, range);
    return true;
}

static bool parse_devices(StrategyParser *parser, Stage *stage) {
    Tokens *tokens = parser->tokens;
    DeviceList list = {0};
    if (!strategy_list(parser, parse_device_item, &list)) return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(tokens->arena, &stage->devices, list.device.at[i]);
        array_push(tokens->arena, &stage->device_at, list.at.at[i]);
        array_push(tokens->arena, &stage->device_class, list.class.at[i]);
    }
    return true;
}

static bool parse_mesh(StrategyParser *parser, Stage *stage) {
    stage->mesh_at = parser->tokens->token[-1].at;
    return strategy_list(parser, parse_mesh_item, stage);
}

static bool parse_layers(StrategyParser *parser, Stage *stage) {
    return strategy_list(parser, parse_layer_item, stage);
}

static bool parse_recompute(StrategyParser *parser, Stage *stage) {
    Tokens *tokens = parser->tokens;
    static const char *const words[] = {"full", "selective"};
    stage->recompute_at = tokens->token[-1].at;
    if (!tokens_expect(tokens, "(", NULL)) return false;
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
} stage_clauses[] = {{"devices", parse_devices},
                     {"mesh", parse_mesh},
                     {"layers", parse_layers},
                     {"recompute", parse_recompute}};
enum { STAGE_CLAUSES = sizeof stage_clauses / sizeof *stage_clauses };

/* Reports that the current token is no clause (`words`) of the statement. Returns false. */
static bool unknown_clause(StrategyParser *parser, const char *statement, const char *const *words,
                           int count) {
    Tokens *tokens = parser->tokens;
    if (tokens->token->kind != TOKEN_NAME)
        return tokens_unexpected(tokens,
                                 arena_format(tokens->arena, "a clause of \"%s\"", statement));
    tokens_error(tokens, "\"%s\" is no clause of \"%s\"", tokens->token->text, statement);
    tokens_suggest(tokens, tokens->token->at, tokens->token->text, words, count);
    return false;
}

static bool repeated_clause(StrategyParser *parser) {
    Tokens *tokens = parser->tokens;
    return tokens_error(tokens, "the clause \"%s\" stands here a second time", tokens->token->text);
}

static bool parse_stage_clause(StrategyParser *parser, Stage *stage, bool *seen) {
    Tokens *tokens = parser->tokens;
    const char *words[STAGE_CLAUSES];
    for (int i = 0; i < STAGE_CLAUSES; i++) {
        words[i] = stage_clauses[i].word;
        if (!tokens_is(tokens, words[i])) continue;
        if (seen[i]) return repeated_clause(parser);
        seen[i] = true;
        tokens_next(tokens);
        return stage_clauses[i].parse(parser, stage);
    }
    return unknown_clause(parser, "stage", words, STAGE_CLAUSES);
}

bool stage_parse(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    Strategy *strategy = parser->open;
    Stage stage = {.at = at};
    bool seen[STAGE_CLAUSES] = {false};
    if (!strategy->pipelines.count) {
        array_push(tokens->arena, &strategy->pipelines, ((Pipeline){.microbatches = 1, .at = at}));
        parser->implied = true;
    }
    while (!tokens_end(tokens))
        if (!parse_stage_clause(parser, &stage, seen)) return false;
    if (!seen[0]) {
        diag_error(tokens->diag, at, "this stage names no devices");
        diag_note(tokens->diag, at, "write them as in: stage devices(0-3)");
        return false;
    }
    if (!seen[1]) stage.mesh_at = at;
    array_push(tokens->arena, &strategy->pipelines.at[strategy->pipelines.count - 1].stages, stage);
    return true;
}

bool pipeline_parse(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    static const char *const words[] = {"microbatches", "rows"};
    Pipeline pipeline = {.microbatches = 1, .at = at};
    bool seen[2] = {false};
    while (!tokens_end(tokens)) {
        if (tokens_is(tokens, "(") && !pipeline.lengths.count) {
            if (!strategy_list(parser, strategy_shape_value, &pipeline.lengths)) return false;
            continue;
        }
        int which = tokens_is(tokens, words[0]) ? 0 : tokens_is(tokens, words[1]) ? 1 : -1;
        if (which < 0) return unknown_clause(parser, "pipeline", words, 2);
        if (seen[which]) return repeated_clause(parser);
        seen[which] = true;
        tokens_next(tokens);
        if (!tokens_expect(tokens, "(", NULL) ||
            !strategy_bounded(parser, which ? "the number of rows" : "the number of micro-batches",
                              1, INT32_MAX, which ? &pipeline.rows : &pipeline.microbatches) ||
            !tokens_expect(tokens, ")", NULL))
            return false;
    }
    if (parser->implied) {
        diag_error(tokens->diag, at, "a stage stands before this pipeline and belongs to none");
        diag_note(tokens->diag, parser->open->pipelines.at[0].at,
                  "write a \"pipeline\" before this stage");
        return false;
    }
    array_push(tokens->arena, &parser->open->pipelines, pipeline);
    return true;
}

bool idle_parse(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    (void)at;
    DeviceList list = {0};
    if (!tokens_is(tokens, "devices")) return tokens_unexpected(tokens, "\"devices\"");
    tokens_next(tokens);
    if (!strategy_list(parser, parse_device_item, &list)) return false;
    for (int i = 0; i < list.device.count; i++) {
        array_push(tokens->arena, &parser->open->idle, list.device.at[i]);
        array_push(tokens->arena, &parser->open->idle_at, list.at.at[i]);
        array_push(tokens->arena, &parser->open->idle_class, list.class.at[i]);
    }
    return true;
}
