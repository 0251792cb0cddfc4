/* Parses strategies: split, turns, zero, optimizer, schedule. parse_stage.c parses pipelines,
 * stages and devices. Parsing functions return false after an error. */
#include "strategy/parser.h"

#include "syntax/lex.h"
#include "syntax/tokens.h"

#include <string.h>

/* ---- splits ---- */

typedef Array(const char *) AxisNames;
typedef Array(Position) AxisPlaces;

/* Reads axis { * axis }. Appends names to `axes`, positions to `places`. False after an error. */
static bool parse_axes(StrategyParser *parser, AxisNames *axes, AxisPlaces *places) {
    Tokens *tokens = parser->tokens;
    do {
        Position at = tokens->token->at;
        const char *axis = tokens_name(tokens, "the name of a mesh axis");
        if (!axis) return false;
        if (text_find(axes->at, axes->count, axis) >= 0) {
            diag_error(tokens->diag, at, "the axis \"%s\" stands here a second time", axis);
            return false;
        }
        array_push(tokens->arena, axes, axis);
        array_push(tokens->arena, places, at);
    } while (tokens_take(tokens, "*"));
    return true;
}

/* Reads `dimension : axes` to *rule; false after an error. */
static bool parse_rule(StrategyParser *parser, SplitRule *rule) {
    Tokens *tokens = parser->tokens;
    AxisNames axes = {0};
    AxisPlaces places = {0};
    *rule = (SplitRule){.at = tokens->token->at};
    if (!(rule->dim = tokens_name(tokens, "the name of a dimension")) ||
        !tokens_expect(tokens, ":", NULL) || !parse_axes(parser, &axes, &places))
        return false;
    rule->axes = axes.at;
    rule->axis_at = places.at;
    rule->axis_count = axes.count;
    return true;
}

/* Adds a split rule, in place of the dimension's rule if that was only implied by `turns`. */
static void add_split(StrategyParser *parser, SplitRule rule) {
    SplitRule *before = strategy_split(parser->open, rule.dim);
    if (before && before->implied) *before = rule;
    else array_push(parser->tokens->arena, &parser->open->splits, rule);
}

static bool parse_split(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    (void)at;
    do {
        SplitRule rule;
        if (!parse_rule(parser, &rule)) return false;
        rule.zigzag = tokens_is(tokens, "zigzag") && !tokens_before(tokens, ":");
        tokens->token += rule.zigzag;
        add_split(parser, rule);
    } while (!tokens_end(tokens));
    return true;
}

static bool parse_turns(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    (void)at;
    do {
        SplitRule rule;
        if (!parse_rule(parser, &rule)) return false;
        if (tokens_is(tokens, "zigzag") && !tokens_before(tokens, ":"))
            return tokens_error(tokens, "\"zigzag\" belongs to a split, as in: split %s:%s zigzag",
                                rule.dim, rule.axes[0]);
        array_push(tokens->arena, &parser->open->turns, rule);
        rule.implied = true;
        if (!strategy_split(parser->open, rule.dim))
            array_push(tokens->arena, &parser->open->splits, rule);
    } while (!tokens_end(tokens));
    return true;
}

/* ---- zero, optimizer and schedule ---- */

/* Returns whether this is the strategy's first statement of its kind; reports a second one.
 * `before` is the position of the first, with line 0 when there is none. */
static bool first_time(StrategyParser *parser, Position at, const char *statement,
                       Position before) {
    Tokens *tokens = parser->tokens;
    if (!before.line) return true;
    diag_error(tokens->diag, at, "the statement \"%s\" stands here a second time", statement);
    diag_note(tokens->diag, before, "the first one is here");
    return false;
}

static bool parse_zero(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    Strategy *strategy = parser->open;
    AxisNames axes = {0};
    AxisPlaces places = {0};
    int64_t level;
    if (!first_time(parser, at, "zero", strategy->zero_at) ||
        !strategy_bounded(parser, "the level of ZeRO", 0, 3, &level))
        return false;
    if (tokens_take(tokens, "over") && !parse_axes(parser, &axes, &places)) return false;
    strategy->zero = (int)level;
    strategy->zero_at = at;
    for (int i = 0; i < axes.count; i++) {
        array_push(tokens->arena, &strategy->zero_axes, axes.at[i]);
        array_push(tokens->arena, &strategy->zero_axis_at, places.at[i]);
    }
    return true;
}

static bool parse_optimizer(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    Strategy *strategy = parser->open;
    if (!first_time(parser, at, "optimizer", strategy->optimizer_at)) return false;
    strategy->optimizer_at = tokens->token->at;
    strategy->optimizer = tokens_name(tokens, "the name of a strategy");
    return strategy->optimizer != NULL;
}

const char *const schedule_words[] = {"gpipe", "1f1b", "interleaved", "zero_bubble"};
enum { SCHEDULES = sizeof schedule_words / sizeof *schedule_words };

bool schedule_kind(const char *word, ScheduleKind *kind) {
    for (int i = 0; i < SCHEDULES; i++)
        if (!strcmp(schedule_words[i], word)) {
            *kind = (ScheduleKind)i;
            return true;
        }
    return false;
}

static bool parse_schedule(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    ScheduleKind kind;
    if (!first_time(parser, at, "schedule", parser->open->schedule_at)) return false;
    if (schedule_kind(tokens->token->text, &kind)) {
        parser->open->schedule = schedule_words[kind];
        parser->open->schedule_at = at;
        tokens_next(tokens);
        return true;
    }
    tokens_unexpected(tokens, "gpipe, 1f1b, interleaved or zero_bubble");
    tokens_suggest(tokens, tokens->token->at, tokens->token->text, schedule_words, SCHEDULES);
    return false;
}

/* ---- strategies and their statements ---- */

bool strategy_shape_value(StrategyParser *parser, void *to) {
    Tokens *tokens = parser->tokens;
    ShapeValues *shapes = to;
    ShapeValue shape = {.at = tokens->token->at};
    if (!(shape.name = tokens_name(tokens, "the name of a shape variable")) ||
        !tokens_expect(tokens, "=", NULL) || !strategy_integer(parser, &shape.value))
        return false;
    for (int i = 0; i < shapes->count; i++)
        if (!strcmp(shapes->at[i].name, shape.name)) {
            diag_error(tokens->diag, shape.at, "\"%s\" is given a second value", shape.name);
            diag_note(tokens->diag, shapes->at[i].at, "the first one is here");
            return false;
        }
    array_push(tokens->arena, shapes, shape);
    return true;
}

static void open_strategy(StrategyParser *parser, const char *name, Position at, bool framed) {
    Tokens *tokens = parser->tokens;
    parser->open = arena_new(tokens->arena, Strategy);
    parser->open->name = name;
    parser->open->at = at;
    parser->framed = framed;
    parser->implied = false;
    parser->skimmed =
        parser->names && parser->names->only && strcmp(parser->names->only, name) != 0;
    parser->errors = diag_errors(tokens->diag);
    for (int i = 0; i < parser->list->count; i++)
        if (!strcmp(parser->list->at[i]->name, name)) {
            diag_error(tokens->diag, at, "there is a strategy \"%s\" already", name);
            diag_note(tokens->diag, parser->list->at[i]->at, "it is here");
        }
    array_push(tokens->arena, parser->list, parser->open);
}

/* Ends a strategy. Checks a wanted one without errors, on device 0 if it has no pipeline. */
static void close_strategy(StrategyParser *parser) {
    Tokens *tokens = parser->tokens;
    Strategy *strategy = parser->open;
    parser->open = NULL;
    if (!strategy || parser->skimmed || diag_errors(tokens->diag) > parser->errors) return;
    if (!strategy->pipelines.count) {
        Stage stage = {.at = strategy->at, .mesh_at = strategy->at};
        Pipeline pipeline = {.microbatches = 1, .at = strategy->at};
        array_push(tokens->arena, &stage.devices, 0);
        array_push(tokens->arena, &stage.device_at, strategy->at);
        array_push(tokens->arena, &stage.device_class, NULL);
        array_push(tokens->arena, &pipeline.stages, stage);
        array_push(tokens->arena, &strategy->pipelines, pipeline);
    }
    strategy_check(tokens->diag, strategy, parser->names);
}

/* Reports, unless `refused`, that the open strategy has no `end`; returns whether it reported. Then
 * sets `refused`, since the next `end` may be the missing one. */
static bool unclosed(StrategyParser *parser) {
    bool open = parser->open && parser->framed, first = open && !parser->refused;
    if (first)
        diag_error(parser->tokens->diag, parser->open->at,
                   "the strategy \"%s\" has no \"end strategy\"", parser->open->name);
    parser->refused |= open;
    return first;
}

/* Reports `strategy` without a name in a strategy, and ends the strategy. Returns false. */
static bool nameless(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    diag_error(tokens->diag, at, "a strategy without a name begins inside the strategy \"%s\"",
               parser->open->name);
    diag_note(tokens->diag, at, "did you mean \"end strategy\"?");
    close_strategy(parser);
    return false;
}

static bool parse_strategy(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    if (parser->open && parser->framed && tokens_end(tokens)) return nameless(parser, at);
    if (unclosed(parser)) diag_note(tokens->diag, at, "the next one begins here");
    close_strategy(parser);
    Position name_at = tokens->token->at;
    const char *name = tokens_name(tokens, "the strategy's name");
    open_strategy(parser, name ? name : "", name ? name_at : at, true);
    if (!name) parser->errors = -1;
    return name && (!tokens_is(tokens, "(") ||
                    strategy_list(parser, strategy_shape_value, &parser->open->shapes));
}

static bool parse_end(StrategyParser *parser, Position at) {
    Tokens *tokens = parser->tokens;
    bool whole = tokens_take(tokens, "strategy");
    if (!whole && !tokens_unexpected(tokens, "\"strategy\""))
        diag_note(tokens->diag, at, "a strategy ends with \"end strategy\"");
    else if ((!parser->open || !parser->framed) && !parser->refused)
        diag_error(tokens->diag, at, "this \"end strategy\" ends no strategy");
    close_strategy(parser);
    parser->refused = !whole;
    return whole;
}

static const struct Statement {
    const char *word;
    bool (*parse)(StrategyParser *parser, Position at);
    bool frame; // the statement may stand outside of strategies
} statements[] = {{"strategy", parse_strategy, true},  {"end", parse_end, true},
                  {"split", parse_split, false},       {"zero", parse_zero, false},
                  {"schedule", parse_schedule, false}, {"turns", parse_turns, false},
                  {"pipeline", pipeline_parse, false}, {"stage", stage_parse, false},
                  {"idle", idle_parse, false},         {"optimizer", parse_optimizer, false}};
enum { STATEMENTS = sizeof statements / sizeof *statements };

bool strategy_has_statement(const char *word) {
    bool found = false;
    for (int i = 0; i < STATEMENTS; i++)
        found |= !statements[i].frame && !strcmp(statements[i].word, word);
    return found;
}

static bool unknown_statement(StrategyParser *parser) {
    Tokens *tokens = parser->tokens;
    const char *words[STATEMENTS];
    for (int i = 0; i < STATEMENTS; i++) words[i] = statements[i].word;
    bool bad = tokens->token->kind == TOKEN_BAD; // one refused character, as in ".end"
    if (parser->open && !strncmp(tokens->token[bad].text, "end", 3)) { // as in "ends"
        if (!bad)
            tokens_error(tokens, "\"%s\" begins no statement of a strategy", tokens->token->text);
        diag_note(tokens->diag, tokens->token->at, "did you mean \"end strategy\"?");
        close_strategy(parser);
        parser->refused = true;
        return false;
    }
    parser->refused |= !parser->open || !parser->framed;
    if (tokens->token->kind != TOKEN_NAME)
        return tokens_unexpected(tokens, "a statement of a strategy");
    tokens_error(tokens, "\"%s\" begins no statement of a strategy", tokens->token->text);
    tokens_suggest(tokens, tokens->token->at, tokens->token->text, words, STATEMENTS);
    return false;
}

/* Opens the unnamed strategy, if allowed, when none is open. Returns false after an error. */
static bool have_strategy(StrategyParser *parser, Position at) {
    if (parser->open) return true;
    if (parser->unnamed) open_strategy(parser, parser->unnamed, at, false);
    else
        diag_error(parser->tokens->diag, at,
                   "this statement stands outside of \"strategy NAME\" and \"end strategy\"");
    return parser->unnamed != NULL;
}

static bool parse_statement(StrategyParser *parser) {
    Tokens *tokens = parser->tokens;
    Position at = tokens->token->at;
    for (int i = 0; i < STATEMENTS; i++)
        if (tokens_is(tokens, statements[i].word)) {
            if (!statements[i].frame && !have_strategy(parser, at)) return false;
            tokens_next(tokens);
            return statements[i].parse(parser, at) &&
                   (tokens_end(tokens) || tokens_unexpected(tokens, "the end of the line"));
        }
    return unknown_statement(parser);
}

/* Returns whether a token may occur in strategies. */
static bool is_known(const Token *token) {
    static const char *const marks[] = {"(", ")", ":", ",", "=",  "+",
                                        "-", "*", "/", "%", "<<", ">>"};
    bool known = token->kind < TOKEN_STRING || token->kind > TOKEN_MARK;
    for (size_t i = 0; !known && i < sizeof marks / sizeof *marks; i++)
        known = token_is(token, marks[i]);
    return known;
}

/* Reports tokens that may not occur in strategies and makes them TOKEN_BAD. */
static void refuse_unknown(Diag *diag, Token *token) {
    for (; token->kind != TOKEN_END; token++) {
        unsigned char byte = (unsigned char)*token->text;
        if (is_known(token)) continue;
        if (byte >= ' ' && byte < 0x7f)
            diag_error(diag, token->at, "unexpected character '%c' in a strategy", byte);
        else diag_error(diag, token->at, "unexpected byte 0x%02x in a strategy", byte);
        token->kind = TOKEN_BAD;
    }
}

bool strategy_parse(Arena *arena, Diag *diag, Token *tokens, const StrategyNames *names,
                    const char *unnamed, StrategyList *list) {
    int before = diag_errors(diag);
    Tokens place = {
        .arena = arena, .diag = diag, .token = tokens, .end = "the end of the line", .found = true};
    StrategyParser parser = {.tokens = &place, .names = names, .unnamed = unnamed, .list = list};
    refuse_unknown(diag, tokens);
    for (; place.token->kind != TOKEN_END; tokens_next_line(&place))
        if (!tokens_end(&place)) parse_statement(&parser);
    unclosed(&parser);
    close_strategy(&parser);
    if (unnamed && !list->count && diag_errors(diag) == before)
        diag_error(diag, (Position){tokens->at.file, 1, 1}, "there is no strategy here");
    return diag_errors(diag) == before;
}

Strategy *strategy_parse_one(Tokens *tokens) {
    TokenList own = {0};
    StrategyList list = {0};
    for (bool ends = false; tokens->token->kind != TOKEN_END && !(ends && tokens_end(tokens));
         tokens->token++) {
        ends |= tokens_is(tokens, "end") && tokens_before(tokens, "strategy");
        array_push(tokens->arena, &own, *tokens->token);
    }
    array_push(tokens->arena, &own,
               (Token){.kind = TOKEN_END, .text = "", .at = tokens->token->at});
    return strategy_parse(tokens->arena, tokens->diag, own.at, NULL, NULL, &list) && list.count
               ? list.at[0]
               : NULL;
}
