#include "frontend/pragma/pragma.h"

#include <ctype.h>
#include <string.h>

typedef struct Directive {
    const char *name;
    PragmaKind kind;
} Directive;

static const Directive directives[] = {
    {"dims", PRAGMA_DIMS},       {"layer", PRAGMA_LAYER}, {"recompute", PRAGMA_RECOMPUTE}, {"shard", PRAGMA_SHARD},
    {"reshard", PRAGMA_RESHARD}, {"shape", PRAGMA_SHAPE}, {"op", PRAGMA_OP},
};
enum { DIRECTIVE_COUNT = sizeof directives / sizeof *directives };

bool pragma_marks(const Pragma *pragma) { return pragma->kind == PRAGMA_LAYER || pragma->kind == PRAGMA_RECOMPUTE; }
bool pragma_acts(const Pragma *pragma) { return pragma->kind == PRAGMA_DIMS || pragma->kind == PRAGMA_SHARD || pragma->kind == PRAGMA_RESHARD; }

/* ---- the directive ---- */

static int skip_blanks(const char *text, int at)
{
    while (isspace((unsigned char)text[at]))
        at++;
    return at;
}

static int word_end(const char *text, int at)
{
    while (isalnum((unsigned char)text[at]) || text[at] == '_')
        at++;
    return at;
}

static const char *const names[] = {"dims", "layer", "recompute", "shard", "reshard", "shape", "op", "strategy", "end"};

static void unknown_directive(CUnit *unit, const Pragma *pragma)
{
    if (!*pragma->directive) {
        diag_error(unit->diag, pragma->at, "\"#pragma hspmd\" needs a directive such as dims or strategy");
        return;
    }
    const char *closest = diag_closest(pragma->directive, names, sizeof names / sizeof *names);
    diag_error(unit->diag, pragma->at, "unknown directive \"%s\"", pragma->directive);
    if (closest)
        diag_note(unit->diag, pragma->at, "did you mean \"%s\"?", closest);
}

/* The statements of strategies, which mean nothing outside one. */
static bool is_strategy_word(const char *word)
{
    static const char *const words[] = {"split", "zero", "schedule", "pipeline", "stage", "idle"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], word))
            return true;
    return false;
}

static bool is_directive(const char *word)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], word))
            return true;
    return is_strategy_word(word);
}

void pragma_check_stray(Diag *diag, Arena *arena, Position at, const char *text, bool ours)
{
    static const char *const mark[] = {"hspmd"};
    int end = word_end(text, 0), next = skip_blanks(text, end);
    const char *first = arena_substring(arena, text, (size_t)end);
    const char *second = arena_substring(arena, text + next, (size_t)(word_end(text, next) - next));
    bool misspelled = diag_closest(first, mark, 1), misplaced = !strcmp(second, "hspmd");
    if (!misspelled && !misplaced && !(ours && is_directive(first)))
        return;
    diag_error(diag, at, "unknown pragma \"%s\"", first);
    diag_note(diag, at, "pragmas of hetucc begin with \"#pragma hspmd\"");
}

static PragmaKind directive_kind(CUnit *unit, const Pragma *pragma, StrategyLines *lines)
{
    bool begins = !strcmp(pragma->directive, "strategy"), ends = !strcmp(pragma->directive, "end");
    for (int i = 0; i < DIRECTIVE_COUNT; i++)
        if (!strcmp(directives[i].name, pragma->directive))
            return directives[i].kind;
    bool refused = *lines == LINES_REFUSED && (ends || is_strategy_word(pragma->directive));
    if (!refused && (begins || ends || *lines == LINES_INSIDE)) {
        *lines = ends ? LINES_NONE : LINES_INSIDE;
        return PRAGMA_STRATEGY;
    }
    *lines = refused && ends ? LINES_NONE : LINES_REFUSED;
    if (refused)
        return PRAGMA_BAD;
    if (is_strategy_word(pragma->directive)) {
        diag_error(unit->diag, pragma->at, "\"%s\" stands outside a strategy", pragma->directive);
        diag_note(unit->diag, pragma->at, "a strategy begins with \"#pragma hspmd strategy NAME\"");
    } else {
        unknown_directive(unit, pragma);
    }
    return PRAGMA_BAD;
}

/* ---- reading the operands ---- */

static Token *token(Pragma *pragma) { return &pragma->tokens.list.at[pragma->tokens.next]; }

static bool is(Pragma *pragma, const char *text) { return token(pragma)->kind == TOKEN_PUNCTUATION && !strcmp(token(pragma)->text, text); }

static bool take(Pragma *pragma, const char *text)
{
    bool found = is(pragma, text);
    pragma->tokens.next += found;
    return found;
}

static const char *shown(CUnit *unit, Pragma *pragma)
{
    return token(pragma)->kind == TOKEN_END ? "the end of the pragma" : arena_format(unit->arena, "\"%s\"", token(pragma)->text);
}

static bool expect(CUnit *unit, Pragma *pragma, const char *text)
{
    if (take(pragma, text))
        return true;
    diag_error(unit->diag, token(pragma)->at, "expected \"%s\", found %s", text, shown(unit, pragma));
    return false;
}

/* Expects the `)` that closes the operands. */
static bool expect_close(CUnit *unit, Pragma *pragma)
{
    int depth = 0, open = 0;
    if (take(pragma, ")"))
        return true;
    diag_error(unit->diag, token(pragma)->at, "expected \")\", found %s", shown(unit, pragma));
    for (int i = pragma->tokens.next; i-- > 0 && depth >= 0; open = i) {
        const char *text = pragma->tokens.list.at[i].text;
        depth += !strcmp(text, ")") - !strcmp(text, "(");
    }
    diag_note(unit->diag, pragma->tokens.list.at[open].at, "to match this \"(\"");
    return false;
}

static bool expect_end(CUnit *unit, Pragma *pragma)
{
    if (token(pragma)->kind == TOKEN_END)
        return true;
    diag_error(unit->diag, token(pragma)->at, "unexpected %s behind the %s pragma", shown(unit, pragma), pragma->directive);
    return false;
}

/* A name; one that is a macro for something else than a name stays as written. NULL after an error. */
static const char *read_name(CUnit *unit, Pragma *pragma, const char *what)
{
    Token *at = token(pragma);
    const char *written = arena_substring(unit->arena, pragma->text + at->begin, (size_t)(at->end - at->begin));
    bool hidden = at->expanded && at->kind != TOKEN_NAME && word_end(written, 0) == (int)strlen(written);
    if (at->kind != TOKEN_NAME && !hidden) {
        diag_error(unit->diag, at->at, "expected %s, found %s", what, shown(unit, pragma));
        return NULL;
    }
    pragma->tokens.next++;
    return hidden ? written : at->text;
}

/* The names of the factors of one dimension, "three heads _", behind the `(`. */
static const char *read_factors(CUnit *unit, Pragma *pragma)
{
    Text factors = {.arena = unit->arena};
    do {
        const char *name = read_name(unit, pragma, "the name of a factor");
        if (!name)
            return NULL;
        text_print(&factors, factors.length ? " %s" : "%s", name);
    } while (!is(pragma, ")") && token(pragma)->kind != TOKEN_END);
    return expect_close(unit, pragma) ? text_bytes(&factors) : NULL;
}

static bool read_dimension(CUnit *unit, Pragma *pragma)
{
    Position at = token(pragma)->at;
    const char *name = take(pragma, "(") ? read_factors(unit, pragma) : read_name(unit, pragma, "the name of a dimension");
    if (!name)
        return false;
    array_push(unit->arena, &pragma->names, strcmp(name, "_") ? name : NULL);
    array_push(unit->arena, &pragma->name_at, at);
    return true;
}

static bool read_dimensions(CUnit *unit, Pragma *pragma)
{
    do
        if (!read_dimension(unit, pragma))
            return false;
    while (take(pragma, ","));
    if (expect_close(unit, pragma))
        return expect_end(unit, pragma);
    return false;
}

/* ---- layouts ---- */

static const char *closer(const char *open) { return *open == '(' ? ")" : *open == '[' ? "]" : "}"; }

static bool bracket_error(CUnit *unit, const Token *at, const Token *open)
{
    if (open) {
        diag_error(unit->diag, at->at, "expected \"%s\" in the layout", closer(open->text));
        diag_note(unit->diag, open->at, "to match this \"%s\"", open->text);
    } else {
        diag_error(unit->diag, at->at, "\"%s\" closes nothing that is open here", at->text);
    }
    return false;
}

/* Reports a bracket that does not match; true when all do. */
static bool check_brackets(CUnit *unit, Pragma *pragma, int first, int last)
{
    const Token *list = pragma->tokens.list.at;
    Array(const Token *) open = {0};
    for (int i = first; i < last; i++) {
        bool bracket = list[i].kind == TOKEN_PUNCTUATION && !list[i].text[1];
        if (bracket && strchr("([{", *list[i].text))
            array_push(unit->arena, &open, &list[i]);
        if (!bracket || !strchr(")]}", *list[i].text))
            continue;
        const Token *opened = open.count ? open.at[--open.count] : NULL;
        if (!opened || strcmp(closer(opened->text), list[i].text))
            return bracket_error(unit, &list[i], opened);
    }
    return !open.count || bracket_error(unit, &list[last], open.at[open.count - 1]);
}

static bool check_layout(CUnit *unit, Pragma *pragma, int first, int last)
{
    const Token *at = &pragma->tokens.list.at[first];
    bool braces = false;
    for (int i = first; i < last; i++)
        braces |= !strcmp(pragma->tokens.list.at[i].text, "{");
    if (first == last)
        diag_error(unit->diag, at->at, "expected a layout such as {0:tp} or [0-3]{0:4}");
    else if (!check_brackets(unit, pragma, first, last))
        return false;
    else if (!braces)
        diag_error(unit->diag, at->at, "a layout has states in braces, such as {0:tp} or [0-3]{0:4}");
    return first < last && braces;
}

/* Takes the rest of the pragma up to its last `)` as a layout. */
static bool read_layout(CUnit *unit, Pragma *pragma)
{
    int first = pragma->tokens.next, last = pragma->tokens.list.count - 2;
    const Token *close = &pragma->tokens.list.at[last];
    if (last < first || close->kind != TOKEN_PUNCTUATION || strcmp(close->text, ")")) {
        diag_error(unit->diag, token(pragma)[pragma->tokens.list.count - 1 - first].at, "expected \")\" behind the layout");
        return false;
    }
    if (!check_layout(unit, pragma, first, last))
        return false;
    pragma->layout = tokens_text(unit->arena, pragma, first, last);
    pragma->layout_at = token(pragma)->at;
    return true;
}

/* ---- operands ---- */

static bool check_operand(CUnit *unit, const CExpr *operand)
{
    if (operand->type->is_tensor)
        return true;
    diag_error(unit->diag, operand->at, "this pragma needs tensors; this is of type %s", operand->type->name);
    return false;
}

static bool read_operands(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots)
{
    if (!expect(unit, pragma, "("))
        return false;
    do {
        const CExpr *operand = pexpr_read(unit, &pragma->tokens, scope, slots);
        if (!operand || !check_operand(unit, operand))
            return false;
        array_push(unit->arena, &pragma->operands, operand);
    } while (take(pragma, ","));
    return expect(unit, pragma, ":");
}

/* layer(l), layer(tower, l) */
static bool read_layer(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots)
{
    if (!expect(unit, pragma, "("))
        return false;
    const Token *first = token(pragma);
    if (first->kind == TOKEN_NAME && !strcmp(first[1].text, ",")) {
        pragma->tower = first->text;
        pragma->tokens.next += 2;
    }
    pragma->layer = pexpr_read(unit, &pragma->tokens, scope, slots);
    if (!pragma->layer)
        return false;
    if (!ctype_is_integer(pragma->layer->type)) {
        diag_error(unit->diag, pragma->layer->at, "the number of a layer is an integer; this is of type %s", pragma->layer->type->name);
        return false;
    }
    return expect_close(unit, pragma) && expect_end(unit, pragma);
}

static bool read_shape(CUnit *unit, Pragma *pragma)
{
    if (!expect(unit, pragma, "("))
        return false;
    do {
        Position at = token(pragma)->at;
        const char *name = read_name(unit, pragma, "the name of a variable at file scope");
        if (!name)
            return false;
        array_push(unit->arena, &pragma->names, name);
        array_push(unit->arena, &pragma->name_at, at);
    } while (take(pragma, ","));
    return expect_close(unit, pragma) && expect_end(unit, pragma);
}

void pragma_resolve(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots)
{
    bool good = true;
    if (pragma->kind == PRAGMA_DIMS)
        good = read_operands(unit, pragma, scope, slots) && read_dimensions(unit, pragma);
    else if (pragma->kind == PRAGMA_SHARD || pragma->kind == PRAGMA_RESHARD)
        good = read_operands(unit, pragma, scope, slots) && read_layout(unit, pragma);
    else if (pragma->kind == PRAGMA_LAYER)
        good = read_layer(unit, pragma, scope, slots);
    else if (pragma->kind == PRAGMA_RECOMPUTE)
        good = expect_end(unit, pragma);
    if (!good)
        pragma->kind = PRAGMA_BAD;
}

Pragma *pragma_read(CUnit *unit, Macros macros, const PragmaText *text, StrategyLines *lines)
{
    Pragma *pragma = arena_new(unit->arena, Pragma);
    *pragma = (Pragma){.file = text->file, .begin = text->begin, .end = text->end, .text = text->text, .raw = text->raw, .text_at = text->at, .fixed = text->fixed};
    int begin = skip_blanks(text->text, 0), end = word_end(text->text, begin);
    pragma->directive = arena_substring(unit->arena, text->text + begin, (size_t)(end - begin));
    pragma->at = pragma_position(pragma, begin);
    pragma->rule_begin = skip_blanks(text->text, end);
    pragma->kind = directive_kind(unit, pragma, lines);
    if (pragma->kind != PRAGMA_STRATEGY && pragma->kind != PRAGMA_BAD)
        tokens_read(unit, macros, pragma, end, &pragma->tokens);
    if (pragma->kind == PRAGMA_SHAPE && !read_shape(unit, pragma))
        pragma->kind = PRAGMA_BAD;
    return pragma;
}
