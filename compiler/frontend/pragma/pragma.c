/* Parses and checks lines `#pragma hspmd`. Unknown directives are refused here, unknown clauses of
 * a strategy in strategy/parse_stage.c. */
#include "frontend/pragma/pragma.h"

#include "ir/dim.h"
#include "layout/user_layout.h"
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

bool pragma_marks(const Pragma *pragma) {
    return pragma->kind == PRAGMA_LAYER || pragma->kind == PRAGMA_RECOMPUTE;
}
bool pragma_acts(const Pragma *pragma) {
    return pragma->kind == PRAGMA_DIMS || pragma->kind == PRAGMA_SHARD ||
           pragma->kind == PRAGMA_RESHARD;
}

/* ---- directives ---- */

/* The directives. Those up to `strategy` are in the order of PragmaKind. */
static const char *const names[] = {"dims",  "layer",   "recompute", "shard",    "reshard",
                                    "shape", "padding", "op",        "strategy", "end"};

static void unknown_directive(CUnit *unit, const Pragma *pragma) {
    const Token *first = pragma->line.tokens.at;
    if (!*pragma->directive) {
        diag_error(unit->diag, pragma->at,
                   "\"#pragma hspmd\" needs a directive such as dims or strategy");
        if (!token_ends(first) && first[1].kind == TOKEN_NAME) // "hspmd.strategy"
            diag_note(unit->diag, pragma->at, "did you mean \"#pragma hspmd %s\"?", first[1].text);
        return;
    }
    diag_error(unit->diag, pragma->at, "unknown directive \"%s\"", pragma->directive);
    diag_suggest(unit->diag, pragma->at, pragma->directive, names, sizeof names / sizeof *names);
}

static bool is_directive(const char *word) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], word)) return true;
    return strategy_has_statement(word);
}

/* Returns the text of a name or number; "" for any other token. */
static const char *word(const Token *token) {
    return token->kind <= TOKEN_NUMBER ? token->text : "";
}

void pragma_check_stray(Diag *diag, const PragmaLine *line, bool ours) {
    static const char *const mark[] = {"hspmd"};
    const Token *first = line->tokens.at;
    bool misspelled = diag_closest(word(first), mark, 1),
         misplaced = *word(first) && token_is(first + 1, "hspmd");
    if (!misspelled && !misplaced && !(ours && is_directive(word(first)))) return;
    diag_error(diag, first->at, "unknown pragma \"%s\"", word(first));
    diag_note(diag, first->at, "pragmas of hetucc begin with \"#pragma hspmd\"");
}

static PragmaKind directive_kind(CUnit *unit, const Pragma *pragma, StrategyLines *lines) {
    bool begins = !strcmp(pragma->directive, "strategy"), ends = !strcmp(pragma->directive, "end");
    for (PragmaKind kind = PRAGMA_DIMS; kind < PRAGMA_STRATEGY; kind++)
        if (!strcmp(names[kind], pragma->directive)) return kind;
    bool refused = *lines == LINES_REFUSED && (ends || strategy_has_statement(pragma->directive));
    if (!refused && (begins || ends || *lines == LINES_INSIDE)) {
        *lines = ends ? LINES_NONE : LINES_INSIDE;
        return PRAGMA_STRATEGY;
    }
    *lines = refused && ends ? LINES_NONE : LINES_REFUSED;
    if (refused) return PRAGMA_BAD;
    if (strategy_has_statement(pragma->directive)) {
        diag_error(unit->diag, pragma->at, "\"%s\" stands outside a strategy", pragma->directive);
        diag_note(unit->diag, pragma->at, "a strategy begins with \"#pragma hspmd strategy NAME\"");
    } else {
        unknown_directive(unit, pragma);
    }
    return PRAGMA_BAD;
}

/* ---- parts of operands ---- */

/* Passes the `)` that closes the operands; else false, after an error with a note at its `(`. */
static bool expect_close(Pragma *pragma) {
    int depth = 0;
    const Token *open = pragma->tokens.token;
    if (tokens_expect(&pragma->tokens, ")", NULL)) return true;
    while (open > pragma->first && depth >= 0) {
        open--;
        depth += token_is(open, ")") - token_is(open, "(");
    }
    diag_note(pragma->tokens.diag, open->at, "to match this \"(\"");
    return false;
}

static bool expect_end(Pragma *pragma) {
    Tokens *tokens = &pragma->tokens;
    return tokens_end(tokens) || tokens_error(tokens, "unexpected %s behind the %s pragma",
                                              tokens_shown(tokens), pragma->directive);
}

/* Reads a name; NULL after an error. If a macro expands to no name, returns the macro's name. */
static const char *read_name(Pragma *pragma, const char *what) {
    Tokens *tokens = &pragma->tokens;
    const Token *token = tokens->token;
    if (!token->expanded || token->kind == TOKEN_NAME ||
        memchr(token->start, '(', (size_t)token->length))
        return tokens_name(tokens, what);
    tokens_next(tokens);
    return arena_substring(tokens->arena, token->start, (size_t)token->length);
}

/* Appends a dimension to pragma->dims: a name, `_`, or factors in parentheses; false on error. */
static bool read_dimension(Pragma *pragma) {
    Tokens *tokens = &pragma->tokens;
    Position at = tokens->token->at;
    Array(DimName) factors = {0};
    bool several = tokens_take(tokens, "("), named = false;
    do {
        const char *name =
            read_name(pragma, several ? "the name of a factor" : "the name of a dimension");
        if (!name) return false;
        named |= strcmp(name, "_") != 0;
        array_push(tokens->arena, &factors, (DimName){.name = strcmp(name, "_") ? name : NULL});
    } while (several && !tokens_is(tokens, ")") && !tokens_end(tokens));
    array_push(tokens->arena, &pragma->dims,
               (Dim){named || factors.count > 1 ? factors.count : 0, factors.at});
    array_push(tokens->arena, &pragma->name_at, at);
    return !several || expect_close(pragma);
}

static bool read_dimensions(Pragma *pragma) {
    do
        if (!read_dimension(pragma)) return false;
    while (tokens_take(&pragma->tokens, ","));
    return expect_close(pragma) && expect_end(pragma);
}

/* ---- layouts ---- */

static const char *closer(const Token *open) {
    return token_is(open, "(") ? ")" : token_is(open, "[") ? "]" : "}";
}

static bool is_bracket(const Token *token, const char *brackets) {
    return token->kind == TOKEN_MARK && !token->text[1] && strchr(brackets, *token->text);
}

static bool bracket_error(Diag *diag, const Token *at, const Token *open) {
    if (open) {
        diag_error(diag, at->at, "expected \"%s\" in the layout", closer(open));
        diag_note(diag, open->at, "to match this \"%s\"", open->text);
    } else {
        diag_error(diag, at->at, "\"%s\" closes nothing that is open here", at->text);
    }
    return false;
}

/* Returns whether all brackets up to `end` match; reports the first one that does not. */
static bool check_brackets(Tokens *tokens, const Token *end) {
    Array(const Token *) open = {0};
    for (const Token *token = tokens->token; token < end; token++) {
        if (is_bracket(token, "([{")) array_push(tokens->arena, &open, token);
        if (!is_bracket(token, ")]}")) continue;
        const Token *opened = open.count ? open.at[--open.count] : NULL;
        if (!opened || !token_is(token, closer(opened)))
            return bracket_error(tokens->diag, token, opened);
    }
    return !open.count || bracket_error(tokens->diag, end, open.at[open.count - 1]);
}

static bool check_layout(Tokens *tokens, const Token *end) {
    bool braces = false;
    for (const Token *token = tokens->token; token < end; token++) braces |= token_is(token, "{");
    if (tokens->token == end)
        return tokens_error(tokens, "expected a layout such as {0:tp} or [0-3]{0:4}");
    if (!check_brackets(tokens, end)) return false;
    return braces ||
           tokens_error(tokens, "a layout has states in braces, such as {0:tp} or [0-3]{0:4}");
}

/* Reads the rest of the pragma, up to its last `)`, to pragma->layout; false after an error. */
static bool read_layout(Pragma *pragma) {
    Tokens *tokens = &pragma->tokens;
    const Token *end = tokens->token;
    while (!token_ends(end)) end++;
    if (end == tokens->token || !token_is(end - 1, ")"))
        return diag_error(tokens->diag, end->at, "expected \")\" behind the layout"), false;
    if (!check_layout(tokens, end - 1) || !(pragma->layout = user_layout_parse(tokens, ")")))
        return false;
    tokens_next(tokens);
    return tokens_end(tokens) || tokens_error(tokens, "unexpected text after the layout");
}

/* ---- operands ---- */

static bool check_operand(CUnit *unit, const CExpr *operand) {
    if (operand->type->is_tensor) return true;
    diag_error(unit->diag, operand->at, "this pragma needs tensors; this is of type %s",
               operand->type->name);
    return false;
}

static bool read_operands(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots) {
    if (!tokens_expect(&pragma->tokens, "(", NULL)) return false;
    do {
        const CExpr *operand = expression_read(unit, &pragma->tokens, scope, slots);
        if (!operand || !check_operand(unit, operand)) return false;
        array_push(unit->arena, &pragma->operands, operand);
    } while (tokens_take(&pragma->tokens, ","));
    return tokens_expect(&pragma->tokens, ":", NULL);
}

static bool read_layer_number(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots) {
    pragma->layer = expression_read(unit, &pragma->tokens, scope, slots);
    if (!pragma->layer || ctype_is_integer(pragma->layer->type)) return pragma->layer;
    diag_error(unit->diag, pragma->layer->at,
               "the number of a layer is an integer; this is of type %s",
               pragma->layer->type->name);
    diag_note(unit->diag, pragma->layer->at,
              "a name for a layer is one that nothing else has, as in: layer(head)");
    return false;
}

/* Returns whether a name stands alone in the parentheses and can only name a layer. */
static bool at_layer_name(const CUnit *unit, const Tokens *tokens, const Scope *scope) {
    return tokens->token->kind == TOKEN_NAME && tokens_before(tokens, ")") &&
           !expression_names(unit, scope, tokens->token->text);
}

/* Reads layer(l), layer(head) or layer(tower, l); false after an error. */
static bool read_layer(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots) {
    if (!tokens_expect(&pragma->tokens, "(", NULL)) return false;
    const Token *first = pragma->tokens.token;
    if (first->kind == TOKEN_NAME && tokens_before(&pragma->tokens, ",")) {
        pragma->tower = first->text;
        pragma->tokens.token += 2;
    }
    if (at_layer_name(unit, &pragma->tokens, scope))
        pragma->layer_name = tokens_name(&pragma->tokens, "a layer");
    else if (!read_layer_number(unit, pragma, scope, slots)) return false;
    return expect_close(pragma) && expect_end(pragma);
}

static bool read_shape(Pragma *pragma) {
    if (!tokens_expect(&pragma->tokens, "(", NULL)) return false;
    do {
        Position at = pragma->tokens.token->at;
        const char *name = read_name(pragma, "the name of a variable at file scope");
        if (!name) return false;
        array_push(pragma->tokens.arena, &pragma->names, name);
        array_push(pragma->tokens.arena, &pragma->name_at, at);
    } while (tokens_take(&pragma->tokens, ","));
    return expect_close(pragma) && expect_end(pragma);
}

/* Reads pragma->padding, a number with an optional minus; false after an error. */
static bool read_number(Pragma *pragma) {
    Tokens *tokens = &pragma->tokens;
    double *value = arena_new(tokens->arena, double);
    bool negative = tokens_take(tokens, "-");
    char *end = NULL;
    if (tokens->token->kind == TOKEN_NUMBER) *value = strtod(tokens->token->text, &end);
    if (!end || (*end && strcmp(end, "f")))
        return tokens_error(
            tokens, "expected the number that stands for nothing, as in padding(targets: -100)");
    *value = negative ? -*value : *value;
    pragma->padding = value;
    tokens_next(tokens);
    return true;
}

/* Reads padding(targets, labels: -100); false after an error. */
static bool read_padding(Pragma *pragma) {
    Tokens *tokens = &pragma->tokens;
    if (!tokens_expect(tokens, "(", NULL)) return false;
    do {
        Position at = tokens->token->at;
        const char *name = read_name(pragma, "the name of an input");
        if (!name) return false;
        array_push(tokens->arena, &pragma->names, name);
        array_push(tokens->arena, &pragma->name_at, at);
    } while (tokens_take(tokens, ","));
    return tokens_expect(tokens, ":", NULL) && read_number(pragma) && expect_close(pragma) &&
           expect_end(pragma);
}

void pragma_resolve(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots) {
    bool good = true;
    if (pragma->kind == PRAGMA_DIMS)
        good = read_operands(unit, pragma, scope, slots) && read_dimensions(pragma);
    else if (pragma->kind == PRAGMA_SHARD || pragma->kind == PRAGMA_RESHARD)
        good = read_operands(unit, pragma, scope, slots) && read_layout(pragma);
    else if (pragma->kind == PRAGMA_LAYER) good = read_layer(unit, pragma, scope, slots);
    else if (pragma->kind == PRAGMA_RECOMPUTE) good = expect_end(pragma);
    if (!good) pragma->kind = PRAGMA_BAD;
}

/* Returns the tokens after the directive with macros expanded, and a TOKEN_END after them. */
static const Token *read_tokens(CUnit *unit, Macros macros, const Pragma *pragma) {
    const TokenList *line = &pragma->line.tokens;
    Token end = line->at[line->count - 2];
    TokenList behind = {0};
    for (int i = 1; i < line->count - 1; i++) array_push(unit->arena, &behind, line->at[i]);
    end.at.column += pragma->line.file ? end.length : 0;
    array_push(
        unit->arena, &behind,
        (Token){.kind = TOKEN_END, .text = "", .at = end.at, .start = end.start + end.length});
    return macros_expand(unit->arena, macros, pragma, &behind).at;
}

Pragma *pragma_read(CUnit *unit, Macros macros, const PragmaLine *line, StrategyLines *lines) {
    const Token *directive = line->tokens.at;
    Pragma *pragma = arena_new(unit->arena, Pragma);
    *pragma = (Pragma){.line = *line, .at = directive->at, .directive = word(directive)};
    pragma->kind = directive_kind(unit, pragma, lines);
    if (pragma->kind != PRAGMA_STRATEGY && pragma->kind != PRAGMA_BAD)
        pragma->first = read_tokens(unit, macros, pragma);
    pragma->tokens = (Tokens){.arena = unit->arena,
                              .diag = unit->diag,
                              .token = pragma->first,
                              .end = "the end of the pragma",
                              .found = true};
    if (pragma->kind == PRAGMA_SHAPE && !read_shape(pragma)) pragma->kind = PRAGMA_BAD;
    if (pragma->kind == PRAGMA_PADDING && !read_padding(pragma)) pragma->kind = PRAGMA_BAD;
    return pragma;
}
