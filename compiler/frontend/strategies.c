/* Chooses strategies by --strategy: from pragmas or files; resolves names of dimensions, axes,
 * layers and constants, and sets shape variables. strategy/parse.c has the syntax. */
#include "frontend/strategies.h"

#include "frontend/eval/eval.h"
#include "frontend/models.h"
#include "ir/dim.h"
#include "ir/unit.h"
#include "layout/user_layout.h"
#include "support/reading.h"
#include "strategy/layer_placement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Chooser {
    Arena *arena;
    Diag *diag;
    CUnit *unit;
    Macros macros;
    const char *word; // the current word of --strategy; NULL: none given
    StrategyNames names;
    StrategyList list; // strategies of the source; if it has none, of the sources that it needs
    StrategyChoice *choice;
} Chooser;

/* ---- constants and axes that strategies name ---- */

/* Sets *value to the constant `name`, an enumerator or a macro; false if there is none. */
static bool constant_value(void *state, const char *name, int64_t *value) {
    const Chooser *chooser = state;
    CName what = cunit_lookup(chooser->unit, name);
    Macros macros = chooser->macros;
    if (what.constant) {
        *value = what.constant->value;
        return true;
    }
    const Macro *macro = macros.lookup(macros.context, NULL, name);
    if (!macro || macro->takes_arguments || macro->body.count == 1) return false;
    Tokens tokens = {.arena = chooser->arena,
                     .diag = chooser->diag,
                     .token = macros_expand(chooser->arena, macros, NULL, &macro->body).at,
                     .found = true};
    int slots = 0;
    for (const Token *token = tokens.token; !token_ends(token); token++)
        if (token->kind == TOKEN_STRING || token->kind == TOKEN_CHARACTER ||
            (token->kind == TOKEN_NAME && !cunit_lookup(chooser->unit, token->text).constant))
            return false;
    const CExpr *expr = expression_read(chooser->unit, &tokens, NULL, &slots);
    if (!expr) return false;
    Eval *ev = eval_create(chooser->unit, NULL);
    bool good = eval_integer(ev, expr, slots, value);
    eval_destroy(ev);
    return good;
}

/* Returns whether a `shard` or `reshard` of the source names the axis; after errors returns true,
 * because a pragma that could not be read may name it. */
static bool axis_used(void *state, const char *axis) {
    const Chooser *chooser = state;
    if (diag_errors(chooser->diag)) return true;
    for (int i = 0; i < chooser->unit->pragmas.count; i++) {
        const Pragma *pragma = chooser->unit->pragmas.at[i];
        if (pragma->layout && user_layout_names(pragma->layout, axis)) return true;
    }
    return false;
}

/* ---- positions in the command line ---- */

static const char option[] = "--strategy=";

/* Returns the position `offset` bytes after --strategy=, in a line that messages then quote. */
static Position option_place(Chooser *chooser, size_t offset) {
    static const char file[] = "<command line>";
    diag_source(chooser->diag, file, arena_format(chooser->arena, "%s%s", option, chooser->word));
    return (Position){file, 1, (int)(sizeof option + offset)};
}

/* ---- strategies by name ---- */

static Strategy *find_strategy(const StrategyList *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->at[i]->name, name)) return list->at[i];
    return NULL;
}

/* Returns the joined names of the strategies: "a, b and c". */
static const char *listed(Arena *arena, const StrategyList *list) {
    Text text = {.arena = arena};
    for (int i = 0; i < list->count; i++)
        text_print(&text, "%s%s",
                   i == 0                 ? ""
                   : i + 1 == list->count ? " and "
                                          : ", ",
                   list->at[i]->name);
    return text_bytes(&text);
}

/* Adds notes to an error at `at`: the name closest to `name`, and the names that `where` has. */
static void note_names(Chooser *chooser, const StrategyList *list, Position at, const char *name,
                       const char *where) {
    Array(const char *) names = {0};
    for (int i = 0; i < list->count; i++) array_push(chooser->arena, &names, list->at[i]->name);
    diag_suggest(chooser->diag, at, name, names.at, names.count);
    if (list->count)
        diag_note(chooser->diag, (Position){0}, "%s has %s", where, listed(chooser->arena, list));
    else diag_note(chooser->diag, (Position){0}, "%s has no strategies", where);
}

static void several_strategies(Chooser *chooser, const StrategyList *list, const char *where,
                               const char *form) {
    Text word = {.arena = chooser->arena};
    text_shell(&word, arena_format(chooser->arena, "%s%s", option, form));
    diag_error(chooser->diag, list->at[0]->at, "%s has several strategies; choose one with %s",
               where, text_bytes(&word));
    diag_note(chooser->diag, (Position){0}, "there are %s", listed(chooser->arena, list));
}

/* ---- strategy files ---- */

/* Returns whether a file is a program or object, such as an earlier output. */
static bool is_compiled(const char *name) {
    char magic[4] = "";
    const char *why;
    int opened = reading_open(name, &why);
    FILE *file = opened < 0 ? NULL : fdopen(opened, "rb");
    bool compiled = file && fread(magic, 1, sizeof magic, file) == sizeof magic &&
                    !memcmp(magic, "\177ELF", sizeof magic);
    if (file) fclose(file);
    return compiled;
}

static bool is_file(const char *name) {
    struct stat status;
    return !stat(name, &status) && !S_ISDIR(status.st_mode) &&
           !(S_ISREG(status.st_mode) && is_compiled(name));
}

const char *frontend_strategy_file(Arena *arena, const char *word) {
    const char *colon = word ? strrchr(word, ':') : NULL;
    if (word && is_file(word)) return arena_string(arena, word);
    const char *before = colon ? arena_substring(arena, word, (size_t)(colon - word)) : NULL;
    return before && is_file(before) ? before : NULL;
}

static const char *base_name(Arena *arena, const char *file) {
    const char *slash = strrchr(file, '/'), *begin = slash ? slash + 1 : file;
    return arena_substring(arena, begin, strcspn(begin, "."));
}

/* Returns NAME when the current word is FILE:NAME; NULL when it is FILE alone. */
static const char *asked_for(const Chooser *chooser, const char *file) {
    return chooser->word && chooser->word[strlen(file)] ? chooser->word + strlen(file) + 1 : NULL;
}

/* Returns the only strategy of a file, or the one named after a colon; NULL on error. */
static Strategy *choose_of_file(Chooser *chooser, const StrategyList *list, const char *file) {
    const char *name = asked_for(chooser, file);
    Strategy *found = name ? find_strategy(list, name) : list->count == 1 ? list->at[0] : NULL;
    Position at = name ? option_place(chooser, strlen(file) + 1) : (Position){file, 1, 1};
    if (found) return found;
    if (!list->count) {
        diag_error(chooser->diag, (Position){file, 1, 1}, "the file has no strategy");
    } else if (name) {
        diag_error(chooser->diag, at, "there is no strategy \"%s\" in %s", name, file);
        note_names(chooser, list, at, name, file);
    } else {
        several_strategies(chooser, list, file, arena_format(chooser->arena, "%s:NAME", file));
    }
    return NULL;
}

/* Reads the strategies of a file's text. If the word is FILE:NAME, only the syntax of the other
 * strategies is checked. Returns whether there were no errors. */
static bool read_text(Chooser *chooser, const char *file, const char *text, StrategyList *list) {
    TokenList tokens = {0};
    StrategyNames names = chooser->names;
    names.only = asked_for(chooser, file);
    Lexer lexer = lex_begin(chooser->arena, chooser->diag, (Position){file, 1, 1}, text);
    lexer.lines = lexer.hashes = true;
    lex_rest(&lexer, &tokens);
    return strategy_parse(chooser->arena, chooser->diag, tokens.at, &names,
                          base_name(chooser->arena, file), list);
}

/* Returns whether a line is `#include "..."` or `#include <...>`; elsewhere, # begins a comment. */
static bool is_include(const char *line) {
    if (*line++ != '#') return false;
    line += strspn(line, " \t");
    if (strncmp(line, "include", 7)) return false;
    line += 7 + strspn(line + 7, " \t");
    if (*line != '<' && *line != '"') return false;
    size_t name = 1 + strcspn(line + 1, ">\"\n");
    return line[name] == (*line == '<' ? '>' : '"') && strchr("\r\n", line[name + 1]);
}

/* Returns whether a file is a C source, by its name or by an `#include`. */
static bool is_c_source(const char *file, const char *text) {
    const char *dot = strrchr(file, '.');
    if (dot && (!strcmp(dot, ".c") || !strcmp(dot, ".h") || !strcmp(dot, ".cu"))) return true;
    for (; text; text = strchr(text, '\n')) {
        text += strspn(text, " \t\r\n");
        if (is_include(text)) return true;
    }
    return false;
}

/* Returns a strategy file as a source; NULL after an error, also for a C source. */
static Source *read_strategies(Chooser *chooser, const char *file) {
    Source *source = source_read(chooser->arena, chooser->diag, file);
    if (!source || !is_c_source(file, source->text)) return source;
    Position at = option_place(chooser, 0);
    diag_error(chooser->diag, at, "%s is a C source, not a file of strategies", file);
    diag_note(chooser->diag, at,
              "strategies that pragmas of a source describe are chosen by name: --strategy=NAME");
    return NULL;
}

/* Reads a strategy file and returns the strategy that the word names; NULL after an error. */
static Strategy *read_file(Chooser *chooser, const char *file) {
    Source *source = read_strategies(chooser, file);
    StrategyList list = {0};
    return source && read_text(chooser, file, source->text, &list)
               ? choose_of_file(chooser, &list, file)
               : NULL;
}

/* ---- strategies of sources ---- */

/* Returns the joined tokens of all strategy lines among the pragmas [first, end). */
static TokenList gather_lines(const CUnit *unit, int first, int end) {
    TokenList tokens = {0};
    for (int i = first; i < end; i++) {
        const Pragma *pragma = unit->pragmas.at[i];
        for (int k = 0; pragma->kind == PRAGMA_STRATEGY && k < pragma->line.tokens.count; k++) {
            Token token = pragma->line.tokens.at[k];
            token.kind = token.kind == TOKEN_END ? TOKEN_LINE : token.kind;
            array_push(unit->arena, &tokens, token);
        }
    }
    array_push(unit->arena, &tokens, (Token){.kind = TOKEN_END, .text = ""});
    return tokens;
}

/* Reads the source's strategies or, if it has none, those of the other sources that its models
 * need. Returns whether there were no errors. */
static bool read_sources(Chooser *chooser) {
    const CUnit *unit = chooser->unit;
    Token *own = gather_lines(unit, 0, unit->own_pragmas).at;
    Token *others = gather_lines(unit, unit->own_pragmas, unit->pragmas.count).at;
    bool good =
        strategy_parse(chooser->arena, chooser->diag, own, &chooser->names, NULL, &chooser->list);
    if (good && !chooser->list.count)
        good = strategy_parse(chooser->arena, chooser->diag, others, &chooser->names, NULL,
                              &chooser->list);
    return good && !diag_errors(chooser->diag);
}

/* ---- choosing ---- */

/* Reports a word that is neither a strategy of the source nor a file. */
static void unknown_word(Chooser *chooser) {
    Position at = option_place(chooser, 0);
    struct stat status;
    const char *colon = strrchr(chooser->word, ':'), *file = chooser->word;
    bool missing = stat(file, &status);
    if (missing && colon &&
        !stat(arena_substring(chooser->arena, file, (size_t)(colon - file)), &status)) {
        file = arena_substring(chooser->arena, file, (size_t)(colon - file));
        missing = false;
    }
    if (!missing && S_ISDIR(status.st_mode)) {
        diag_error(chooser->diag, at, "cannot read %s: it is a directory, not a strategy file",
                   file);
    } else if (missing && strchr(chooser->word, '/')) {
        diag_error(chooser->diag, at, "cannot read %s: %s", chooser->word, strerror(errno));
    } else {
        diag_error(chooser->diag, at, "there is no strategy \"%s\", in the source or as a file",
                   chooser->word);
        note_names(chooser, &chooser->list, at, chooser->word, "the source");
    }
}

/* Returns whether the program has a strategy of this name already; reports an error if so. */
static bool is_taken(Chooser *chooser, const Strategy *strategy) {
    for (int i = 0; i < chooser->choice->count; i++)
        if (!strcmp(chooser->choice->at[i].strategy->name, strategy->name)) {
            diag_error(chooser->diag, option_place(chooser, 0),
                       "the program has a strategy \"%s\" already; ht_switch and HETU_STRATEGY "
                       "take its name",
                       strategy->name);
            return true;
        }
    return false;
}

static void choose_word(Chooser *chooser) {
    const char *file = frontend_strategy_file(chooser->arena, chooser->word);
    ChosenStrategy found = {find_strategy(&chooser->list, chooser->word), false};
    if (!found.strategy && file) found = (ChosenStrategy){read_file(chooser, file), true};
    else if (!found.strategy) unknown_word(chooser);
    if (found.strategy && !is_taken(chooser, found.strategy))
        array_push(chooser->arena, chooser->choice, found);
}

/* Returns the shape variable that a value of a strategy names; NULL when there is none. */
static CVar *shape_variable(const CUnit *unit, const ShapeValue *value) {
    for (int i = 0; i < unit->shapes.count; i++)
        if (!strcmp(unit->shapes.at[i]->name, value->name)) return unit->shapes.at[i];
    return NULL;
}

static void check_shape(const CUnit *unit, const ShapeValue *value) {
    Array(const char *) names = {0};
    if (shape_variable(unit, value)) return;
    for (int i = 0; i < unit->shapes.count; i++)
        array_push(unit->arena, &names, unit->shapes.at[i]->name);
    diag_error(unit->diag, value->at,
               "\"%s\" is no shape variable; \"#pragma hspmd shape(%s)\" makes it one", value->name,
               value->name);
    diag_suggest(unit->diag, value->at, value->name, names.at, names.count);
}

void strategies_give_shapes(CUnit *unit, const Strategy *strategy) {
    for (int i = 0; i < unit->shapes.count; i++) unit->shapes.at[i]->given = false;
    for (int i = 0; strategy && i < strategy->shapes.count; i++) {
        CVar *var = shape_variable(unit, &strategy->shapes.at[i]);
        var->given = true;
        var->given_value = strategy->shapes.at[i].value;
    }
}

/* Returns the current value of a shape variable. */
static int64_t shape_now(CUnit *unit, CVar *var) {
    int64_t value = 0;
    Eval *ev = eval_create(unit, NULL);
    CExpr *expr = cexpr_new(unit->arena, C_VAR, var->type, var->at);
    expr->var = var;
    eval_integer(ev, expr, 0, &value);
    eval_destroy(ev);
    return value;
}

bool strategies_give_lengths(CUnit *unit, const Strategy *strategy, const Pipeline *pipeline,
                             bool *good) {
    bool other = false;
    strategies_give_shapes(unit, strategy);
    for (int i = 0; i < pipeline->lengths.count; i++) {
        const ShapeValue *length = &pipeline->lengths.at[i];
        CVar *var = shape_variable(unit, length);
        int64_t whole = shape_now(unit, var);
        if (length->value == whole) continue;
        // Refuse length 1: passes/factor_dims drops dimensions of extent 1, a model change.
        if (length->value < 2 || length->value > whole) {
            diag_error(unit->diag, length->at,
                       "a pipeline's \"%s\" is between 2 and the strategy's, which is %lld",
                       length->name, (long long)whole);
            if (length->value > whole)
                diag_note(unit->diag, strategy->at,
                          "give the strategy the longest: strategy %s (%s = %lld)", strategy->name,
                          length->name, (long long)length->value);
            return *good = false;
        }
        other = true;
        var->given = true;
        var->given_value = length->value;
    }
    return other;
}

/* Chooses the strategies that options name, else that of the source; reports if it has several. */
static void choose(Chooser *chooser, const FrontendOptions *options) {
    for (int i = 0; i < options->strategy_count; i++) {
        chooser->word = options->strategies[i];
        choose_word(chooser);
    }
    if (!options->strategy_count && chooser->list.count > 1)
        several_strategies(chooser, &chooser->list, options->part.file, "NAME");
    else if (!options->strategy_count && chooser->list.count)
        array_push(chooser->arena, chooser->choice, (ChosenStrategy){chooser->list.at[0], false});
}

/* Chooses the first strategy of a text that is in no file. */
static void choose_text(Chooser *chooser, const char *text) {
    static const char file[] = "<strategy>";
    StrategyList list = {0};
    diag_source(chooser->diag, file, text);
    if (read_text(chooser, file, text, &list) && list.count)
        array_push(chooser->arena, chooser->choice, (ChosenStrategy){list.at[0], true});
}

/* Resolves device classes to devices; false after an error here or in reading the cluster file. */
static bool resolve_devices(const Chooser *chooser, Strategy *strategy,
                            const FrontendOptions *options) {
    if (options->cluster_file && !options->cluster) return false;
    return strategy_resolve(chooser->diag, strategy, options->cluster, options->cluster_file);
}

/* ---- optimizer NAME ---- */

static Strategy *find_chosen(const StrategyChoice *choice, const char *name) {
    for (int i = 0; i < choice->count; i++)
        if (!strcmp(choice->at[i].strategy->name, name)) return choice->at[i].strategy;
    return NULL;
}

/* Returns whether the `optimizer` statements that start at a strategy lead back to it. */
static bool runs_in_circles(const StrategyChoice *choice, const Strategy *first) {
    const Strategy *at = first;
    for (int steps = 0; at && at->optimizer && steps < choice->count; steps++)
        if ((at = find_chosen(choice, at->optimizer)) == first) return true;
    return false;
}

/* Checks that `optimizer` names another strategy of the program, and leads into no cycle. */
static void check_optimizer(const Chooser *chooser, const Strategy *strategy) {
    const StrategyChoice *choice = chooser->choice;
    Array(const char *) names = {0};
    for (int i = 0; i < choice->count; i++)
        if (choice->at[i].strategy != strategy)
            array_push(chooser->arena, &names, choice->at[i].strategy->name);
    if (!find_chosen(choice, strategy->optimizer)) {
        diag_error(chooser->diag, strategy->optimizer_at, "the program has no strategy \"%s\"",
                   strategy->optimizer);
        diag_suggest(chooser->diag, strategy->optimizer_at, strategy->optimizer, names.at,
                     names.count);
        diag_note(chooser->diag, strategy->optimizer_at,
                  "\"%s\" keeps its states as that one does: give both, with --strategy=%s",
                  strategy->name, strategy->optimizer);
    } else if (runs_in_circles(choice, strategy)) {
        diag_error(chooser->diag, strategy->optimizer_at,
                   "no strategy says where the states of \"%s\" lie: its \"optimizer\" leads back "
                   "to itself",
                   strategy->name);
    }
}

static void check_optimizers(const Chooser *chooser) {
    for (int i = 0; i < chooser->choice->count; i++)
        if (chooser->choice->at[i].strategy->optimizer)
            check_optimizer(chooser, chooser->choice->at[i].strategy);
}

/* ---- axes that pragmas name ---- */

static bool has_axis(const Strategy *strategy, const char *axis) {
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            const Stage *stage = &strategy->pipelines.at[p].stages.at[s];
            for (int a = 0; a < stage->mesh.count; a++)
                if (!strcmp(stage->mesh.at[a].name, axis)) return true;
        }
    return false;
}

/* Warns of an axis that no strategy of the program has. Without the axis, its size counts as 1. */
static void check_written_axis(const Chooser *chooser, const UserLayoutAxis *axis) {
    bool found = false;
    for (int i = 0; i < chooser->list.count; i++)
        found = found || has_axis(chooser->list.at[i], axis->name);
    for (int i = 0; i < chooser->choice->count; i++)
        found = found || has_axis(chooser->choice->at[i].strategy, axis->name);
    if (!found)
        diag_warning(chooser->diag, axis->at, "no strategy has a mesh axis \"%s\"; it counts as 1",
                     axis->name);
}

static void check_written_axes(const Chooser *chooser) {
    for (int i = 0; chooser->choice->count && i < chooser->unit->pragmas.count; i++) {
        const UserLayout *layout = chooser->unit->pragmas.at[i]->layout;
        for (int s = 0; layout && s < layout->state_count; s++)
            for (int a = 0; a < layout->states[s].axis_count; a++)
                check_written_axis(chooser, &layout->states[s].axes[a]);
    }
}

/* Begins to choose strategies. The caller sets `names.state` to the address of the chooser. */
static Chooser chooser_begin(CUnit *unit, Macros macros, StrategyChoice *choice) {
    return (Chooser){unit->arena, unit->diag, unit,
                     macros,      NULL,       {NULL, constant_value, axis_used, NULL},
                     {0},         choice};
}

/* Adds to chooser->choice a file's strategies, or the one that the word names after a colon. */
static void find_in_file(Chooser *chooser, const char *file) {
    StrategyList list = {0};
    Strategy *named = asked_for(chooser, file) ? read_file(chooser, file) : NULL;
    Source *source = asked_for(chooser, file) ? NULL : read_strategies(chooser, file);
    if (named) array_push(chooser->arena, &list, named);
    if (source && read_text(chooser, file, source->text, &list) && !list.count)
        diag_error(chooser->diag, (Position){file, 1, 1}, "the file has no strategy");
    for (int i = 0; i < list.count; i++)
        array_push(chooser->arena, chooser->choice, (ChosenStrategy){list.at[i], true});
}

/* Adds the strategies of the files that the options name to chooser->choice. Reports a word that is
 * neither a name nor a file; with `others`, a name may belong to another source. */
static void find_words(Chooser *chooser, const FrontendOptions *options, bool others) {
    for (int i = 0; i < options->strategy_count; i++) {
        chooser->word = options->strategies[i];
        const char *file = frontend_strategy_file(chooser->arena, chooser->word);
        if (find_strategy(&chooser->list, chooser->word)) continue;
        if (file) find_in_file(chooser, file);
        else if (!others || strchr(chooser->word, '/')) unknown_word(chooser);
    }
}

void strategies_find(CUnit *unit, Macros macros, const FrontendOptions *options,
                     StrategyChoice *all) {
    Chooser chooser = chooser_begin(unit, macros, all);
    chooser.names.state = &chooser;
    if (!read_sources(&chooser)) return;
    for (int i = 0; i < chooser.list.count; i++)
        array_push(unit->arena, all, (ChosenStrategy){chooser.list.at[i], false});
    find_words(&chooser, options, false);
}

/* Returns true: another source may use any axis. */
static bool any_axis(void *state, const char *axis) { return (void)state, (void)axis, true; }

void strategies_check_waiting(CUnit *unit, Macros macros, const FrontendOptions *options) {
    StrategyChoice found = {0};
    Chooser chooser = chooser_begin(unit, macros, &found);
    chooser.names.state = &chooser;
    chooser.names.axis_used = any_axis;
    if (read_sources(&chooser)) find_words(&chooser, options, !chooser.list.count);
}

void strategies_choose(CUnit *unit, Macros macros, const FrontendOptions *options, const char *text,
                       StrategyChoice *choice) {
    Chooser chooser = chooser_begin(unit, macros, choice);
    chooser.names.state = &chooser;
    if (!read_sources(&chooser) || !models_exist(unit)) return;
    if (text) choose_text(&chooser, text);
    else choose(&chooser, options);
    if (!diag_errors(unit->diag)) // after errors, strategies may be missing from the list
        check_optimizers(&chooser);
    check_written_axes(&chooser);
    for (int c = 0; c < choice->count; c++) {
        Strategy *chosen = choice->at[c].strategy;
        if (!resolve_devices(&chooser, chosen, options)) return;
        for (int i = 0; i < chosen->shapes.count; i++) check_shape(unit, &chosen->shapes.at[i]);
        for (int p = 0; p < chosen->pipelines.count; p++)
            for (int i = 0; i < chosen->pipelines.at[p].lengths.count; i++)
                check_shape(unit, &chosen->pipelines.at[p].lengths.at[i]);
    }
}

/* ---- names of layers ---- */

static void check_layers(const Unit *unit, const Strategy *strategy) {
    Array(const Layer *) layers = {0};
    for (int m = 0; m < unit->modules.count; m++)
        for (int i = 0;
             unit->modules.at[m]->strategy == strategy && i < unit->modules.at[m]->ops.count; i++) {
            const Layer *layer = unit->modules.at[m]->ops.at[i]->source->layer;
            if (layer && (!layers.count || !layer_same(layers.at[layers.count - 1], layer)))
                array_push(unit->arena, &layers, layer);
        }
    strategy_check_layers(unit->diag, strategy, layers.at, layers.count);
}

void strategies_check_layers(const Unit *unit) {
    for (int i = 0; i < unit->strategies.count; i++) check_layers(unit, unit->strategies.at[i]);
}

/* ---- names of dimensions ---- */

typedef Array(const char *) NameList;

static void add_pragma_names(const CUnit *unit, NameList *list) {
    for (int i = 0; i < unit->pragmas.count; i++) {
        const Pragma *pragma = unit->pragmas.at[i];
        for (int d = 0; d < pragma->dims.count; d++)
            for (int k = 0; k < pragma->dims.at[d].count; k++)
                if (pragma->dims.at[d].names[k].name)
                    array_push(unit->arena, list, pragma->dims.at[d].names[k].name);
    }
}

/* Returns whether a name of a dimension looks misspelt: it has more than three letters and is close
 * to a name of the model. All short names are close to others. */
static bool is_misspelt(const char *dim, const NameList *names) {
    return strlen(dim) > 3 && diag_closest(dim, names->at, names->count);
}

/* Reports splits of dimensions that the model lacks: errors in the source and, if the name looks
 * misspelt, in files. Else a file's strategy may serve several models: a warning. */
static void check_splits(CUnit *unit, const ChosenStrategy *chosen, const NameList *names) {
    for (int i = 0; i < chosen->strategy->splits.count; i++) {
        const SplitRule *split = &chosen->strategy->splits.at[i];
        if (text_find(names->at, names->count, split->dim) >= 0) continue;
        bool misspelt = is_misspelt(split->dim, names);
        (chosen->shared && !misspelt ? diag_warning : diag_error)(
            unit->diag, split->at, "the dimension \"%s\" is named nowhere in the model",
            split->dim);
        diag_suggest(unit->diag, split->at, split->dim, names->at, names->count);
    }
}

void strategies_check_splits(CUnit *unit, const StrategyChoice *choice) {
    NameList names = {0};
    add_pragma_names(unit, &names);
    for (int i = 0; i < choice->count; i++) check_splits(unit, &choice->at[i], &names);
}
