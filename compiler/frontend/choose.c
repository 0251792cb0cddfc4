#include "frontend/choose.h"

#include "frontend/models.h"
#include "frontend/pragma/pragma.h"
#include "frontend/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Chooser {
    Arena *arena;
    Diag *diag;
    const char *word; // of --strategy; NULL: none given
    const StrategyNames *names;
    StrategyChoice *choice;
} Chooser;

/* ---- the command line as a text that errors point into ---- */

static const char option[] = "--strategy=";

/* The place of what stands `offset` bytes behind --strategy=. */
static Position option_place(Chooser *chooser, size_t offset)
{
    static const char file[] = "<command line>";
    diag_source(chooser->diag, file, arena_format(chooser->arena, "%s%s", option, chooser->word));
    return (Position){file, 1, (int)(sizeof option + offset)};
}

/* ---- names ---- */

static Strategy *find_strategy(const StrategyList *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->at[i]->name, name))
            return list->at[i];
    return NULL;
}

/* "a, b and c" */
static const char *listed(Arena *arena, const StrategyList *list)
{
    Text text = {.arena = arena};
    for (int i = 0; i < list->count; i++)
        text_print(&text, "%s%s", i == 0 ? "" : i + 1 == list->count ? " and " : ", ", list->at[i]->name);
    return text_bytes(&text);
}

/* What may have been meant, and what is there, after an error at `at`. */
static void note_names(Chooser *chooser, const StrategyList *list, Position at, const char *name, const char *where)
{
    Array(const char *) names = {0};
    for (int i = 0; i < list->count; i++)
        array_push(chooser->arena, &names, list->at[i]->name);
    const char *closest = diag_closest(name, names.at, names.count);
    if (closest)
        diag_note(chooser->diag, at, "did you mean \"%s\"?", closest);
    if (list->count)
        diag_note(chooser->diag, (Position){0}, "%s has %s", where, listed(chooser->arena, list));
    else
        diag_note(chooser->diag, (Position){0}, "%s has no strategies", where);
}

static void several_strategies(Chooser *chooser, const StrategyList *list, const char *where, const char *form)
{
    diag_error(chooser->diag, list->at[0]->at, "%s has several strategies; choose one with --strategy=%s", where, form);
    diag_note(chooser->diag, (Position){0}, "there are %s", listed(chooser->arena, list));
}

/* ---- files ---- */

/* A program or an object, such as one that an earlier run named like its strategy. */
static bool is_compiled(const char *name)
{
    char magic[4] = "";
    FILE *file = fopen(name, "rb");
    bool compiled = file && fread(magic, 1, sizeof magic, file) == sizeof magic && !memcmp(magic, "\177ELF", sizeof magic);
    if (file)
        fclose(file);
    return compiled;
}

static bool is_file(const char *name)
{
    struct stat status;
    return !stat(name, &status) && !S_ISDIR(status.st_mode) && !(S_ISREG(status.st_mode) && is_compiled(name));
}

const char *frontend_strategy_file(Arena *arena, const char *word)
{
    const char *colon = word ? strrchr(word, ':') : NULL;
    if (word && is_file(word))
        return arena_string(arena, word);
    const char *before = colon ? arena_substring(arena, word, (size_t)(colon - word)) : NULL;
    return before && is_file(before) ? before : NULL;
}

static const char *base_name(Arena *arena, const char *file)
{
    const char *slash = strrchr(file, '/'), *begin = slash ? slash + 1 : file;
    return arena_substring(arena, begin, strcspn(begin, "."));
}

/* The one strategy of a file, or the one that is called what stands behind the file's name and a colon; NULL after an error. */
static Strategy *choose_of_file(Chooser *chooser, const StrategyList *list, const char *file)
{
    const char *name = chooser->word[strlen(file)] ? chooser->word + strlen(file) + 1 : NULL;
    Strategy *found = name ? find_strategy(list, name) : list->count == 1 ? list->at[0] : NULL;
    Position at = name ? option_place(chooser, strlen(file) + 1) : (Position){file, 1, 1};
    if (found)
        return found;
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

/* Reads a strategy file; its strategies take the place of the source's. */
static void read_file(Chooser *chooser, const char *file)
{
    StrategyChoice *choice = chooser->choice;
    Source *source = source_read(chooser->arena, chooser->diag, file);
    TokenList tokens = {0};
    choice->list = (StrategyList){0};
    choice->shared = true;
    if (!source)
        return;
    Lexer lexer = lex_begin(chooser->arena, chooser->diag, (Position){file, 1, 1}, source->text);
    lexer.lines = true;
    lex_rest(&lexer, &tokens);
    if (strategy_parse(chooser->arena, chooser->diag, tokens.at, chooser->names, base_name(chooser->arena, file), &choice->list))
        choice->chosen = choose_of_file(chooser, &choice->list, file);
}

/* ---- choosing ---- */

/* The word is neither a strategy of the source nor a file. */
static void unknown_word(Chooser *chooser)
{
    Position at = option_place(chooser, 0);
    struct stat status;
    bool missing = stat(chooser->word, &status);
    if (!missing && S_ISDIR(status.st_mode)) {
        diag_error(chooser->diag, at, "cannot read %s: it is a directory, not a strategy file", chooser->word);
    } else if (missing && strchr(chooser->word, '/')) {
        diag_error(chooser->diag, at, "cannot read %s: %s", chooser->word, strerror(errno));
    } else {
        diag_error(chooser->diag, at, "there is no strategy \"%s\", in the source or as a file", chooser->word);
        note_names(chooser, &chooser->choice->list, at, chooser->word, "the source");
    }
}

static void choose_word(Chooser *chooser)
{
    StrategyChoice *choice = chooser->choice;
    const char *file = frontend_strategy_file(chooser->arena, chooser->word);
    if ((choice->chosen = find_strategy(&choice->list, chooser->word)))
        return;
    if (file)
        read_file(chooser, file);
    else
        unknown_word(chooser);
}

/* The tokens of all lines of strategies. */
static TokenList gather_lines(const CUnit *unit)
{
    TokenList tokens = {0};
    for (int i = 0; i < unit->pragmas.count; i++) {
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

void strategy_choose(CUnit *unit, const FrontendOptions *options, const StrategyNames *names, StrategyChoice *choice)
{
    Chooser chooser = {unit->arena, unit->diag, options->strategy, names, choice};
    StrategyList *list = &choice->list;
    if (!strategy_parse(unit->arena, unit->diag, gather_lines(unit).at, names, NULL, list) || diag_errors(unit->diag) ||
        !models_exist(unit))
        return;
    if (options->strategy)
        choose_word(&chooser);
    else if (list->count > 1)
        several_strategies(&chooser, list, options->file, "NAME");
    else if (list->count)
        choice->chosen = list->at[0];
    if (choice->chosen)
        strategy_check_done(unit->diag, choice->chosen);
}
