/* The tokens of pragmas, with macros expanded. */
#include "frontend/pragma/pragma.h"

#include <ctype.h>
#include <string.h>

enum { MOST_TOKENS = 100000, MOST_NESTING = 64 };

Position pragma_position(const Pragma *pragma, int offset)
{
    Position at = pragma->text_at;
    if (pragma->fixed)
        return at;
    for (int i = 0; i < offset && pragma->text[i]; i++) {
        at.column++;
        if (pragma->text[i] == '\n')
            at = (Position){at.file, at.line + 1, 1};
    }
    return at;
}

typedef Array(Token) TokenList;

typedef struct Expander {
    CUnit *unit;
    Macros macros;
    const Pragma *pragma;
    const char *active[MOST_NESTING]; // macros that are being expanded
    int depth;
} Expander;

/* ---- lexing ---- */

static int number_length(const char *at)
{
    int length = 0;
    while (isalnum((unsigned char)at[length]) || (at[length] == '.' && at[length + 1] != '.') ||
           ((at[length] == '+' || at[length] == '-') && length && strchr("eEpP", at[length - 1]) && !strchr("xX", at[1])))
        length++;
    return length;
}

static int name_length(const char *at)
{
    int length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || (unsigned char)at[length] >= 0x80)
        length++;
    return length;
}

static int quoted_length(const char *at)
{
    int length = 1;
    while (at[length] && at[length] != at[0])
        length += at[length] == '\\' && at[length + 1] ? 2 : 1;
    return length + (at[length] == at[0]);
}

static int punctuation_length(const char *at)
{
    static const char *const two[] = {"->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "##", ".."};
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (!strncmp(at, two[i], 2))
            return 2;
    return 1;
}

static Token lex_one(Arena *arena, const char *text, int at)
{
    const char *start = text + at;
    bool number = isdigit((unsigned char)*start) || (*start == '.' && isdigit((unsigned char)start[1]));
    bool name = isalpha((unsigned char)*start) || *start == '_' || (unsigned char)*start >= 0x80;
    Token token = {.kind = number ? TOKEN_NUMBER : name ? TOKEN_NAME : *start == '"' || *start == '\'' ? TOKEN_STRING : TOKEN_PUNCTUATION, .begin = at};
    int length = number ? number_length(start) : name ? name_length(start) : token.kind == TOKEN_STRING ? quoted_length(start) : punctuation_length(start);
    token.end = at + length;
    token.text = arena_substring(arena, start, (size_t)length);
    return token;
}

static void lex(Expander *x, const char *text, int begin, TokenList *list)
{
    for (int at = begin; text[at];) {
        if (isspace((unsigned char)text[at])) {
            at++;
            continue;
        }
        Token token = lex_one(x->unit->arena, text, at);
        array_push(x->unit->arena, list, token);
        at = token.end;
    }
}

/* ---- macros ---- */

static bool is_active(const Expander *x, const char *name)
{
    for (int i = 0; i < x->depth; i++)
        if (!strcmp(x->active[i], name))
            return true;
    return false;
}

static bool is_punctuation(const Token *token, const char *text) { return token->kind == TOKEN_PUNCTUATION && !strcmp(token->text, text); }

/* The index of the `)` that closes the `(` at `open`; -1 when none does. */
static int closing(const TokenList *list, int open)
{
    int depth = 0;
    for (int i = open; i < list->count; i++) {
        depth += is_punctuation(&list->at[i], "(") - is_punctuation(&list->at[i], ")");
        if (depth == 0)
            return i;
    }
    return -1;
}

/* The parameter of `macro` that `name` is; -1 none. */
static int parameter(const Macro *macro, const char *name)
{
    for (int i = 0; i < macro->params.count; i++)
        if (!strcmp(macro->params.at[i], name))
            return i;
    return -1;
}

typedef struct Arguments {
    TokenList at[MOST_NESTING];
    int count;
} Arguments;

static void split_arguments(Expander *x, const Macro *macro, const TokenList *list, int open, int close, Arguments *arguments)
{
    int depth = 0;
    arguments->count = macro->params.count ? 1 : 0;
    for (int i = open + 1; i < close; i++) {
        const Token *token = &list->at[i];
        depth += is_punctuation(token, "(") - is_punctuation(token, ")");
        bool rest = macro->variadic && arguments->count == macro->params.count;
        if (depth == 0 && is_punctuation(token, ",") && !rest && arguments->count < macro->params.count)
            arguments->count++;
        else if (arguments->count)
            array_push(x->unit->arena, &arguments->at[arguments->count - 1], *token);
    }
}

static void expand(Expander *x, const TokenList *from, TokenList *to);

/* The macro's body with the parameters replaced, every token at the place of `use`. */
static void substitute(Expander *x, const Macro *macro, const Arguments *arguments, const Token *use, TokenList *to)
{
    TokenList body = {0};
    lex(x, macro->body, 0, &body);
    for (int i = 0; i < body.count; i++) {
        Token token = body.at[i];
        int p = token.kind == TOKEN_NAME ? parameter(macro, token.text) : -1;
        if (p >= 0) {
            for (int k = 0; p < arguments->count && k < arguments->at[p].count; k++)
                array_push(x->unit->arena, to, arguments->at[p].at[k]);
            continue;
        }
        token.begin = use->begin;
        token.end = use->end;
        token.at = use->at;
        token.expanded = true;
        array_push(x->unit->arena, to, token);
    }
}

/* Expands the macro at `index`; the index of its last token, or -1 when it is no use of the macro. */
static int expand_macro(Expander *x, const Macro *macro, const TokenList *list, int index, TokenList *to)
{
    Arguments *arguments = arena_new(x->unit->arena, Arguments);
    int last = index;
    if (macro->takes_arguments) {
        if (index + 1 >= list->count || !is_punctuation(&list->at[index + 1], "(") || macro->params.count > MOST_NESTING)
            return -1;
        last = closing(list, index + 1);
        if (last < 0)
            return -1;
        split_arguments(x, macro, list, index + 1, last, arguments);
    }
    Token use = list->at[index];
    use.end = list->at[last].end;
    TokenList replaced = {0};
    substitute(x, macro, arguments, &use, &replaced);
    x->active[x->depth++] = macro->name;
    expand(x, &replaced, to);
    x->depth--;
    return last;
}

static void expand(Expander *x, const TokenList *from, TokenList *to)
{
    for (int i = 0; i < from->count && to->count < MOST_TOKENS; i++) {
        const Token *token = &from->at[i];
        bool candidate = token->kind == TOKEN_NAME && x->depth < MOST_NESTING && x->macros.lookup && !is_active(x, token->text);
        const Macro *macro = candidate ? x->macros.lookup(x->macros.context, x->pragma, token->text) : NULL;
        int last = macro ? expand_macro(x, macro, from, i, to) : -1;
        if (last >= 0)
            i = last;
        else
            array_push(x->unit->arena, to, *token);
    }
}

void tokens_read(CUnit *unit, Macros macros, const Pragma *pragma, int begin, Tokens *tokens)
{
    Expander x = {.unit = unit, .macros = macros, .pragma = pragma};
    TokenList plain = {0}, expanded = {0};
    lex(&x, pragma->text, begin, &plain);
    for (int i = 0; i < plain.count; i++)
        plain.at[i].at = pragma_position(pragma, plain.at[i].begin);
    expand(&x, &plain, &expanded);
    int end = (int)strlen(pragma->text);
    array_push(unit->arena, &expanded, (Token){.kind = TOKEN_END, .text = "", .at = pragma_position(pragma, end), .begin = end, .end = end});
    tokens->list.at = expanded.at;
    tokens->list.count = expanded.count;
    tokens->list.capacity = expanded.capacity;
    tokens->next = 0;
}

const char *tokens_text(Arena *arena, const Pragma *pragma, int first, int last)
{
    const Token *token = pragma->tokens.list.at;
    Text out = {.arena = arena};
    int copied = first < last ? token[first].begin : 0;
    for (int i = first; i < last; i++) {
        if (!token[i].expanded) {
            if (token[i].begin >= copied)
                text_append(&out, pragma->text + copied, (size_t)(token[i].begin - copied));
            text_string(&out, token[i].text);
            copied = token[i].end;
            continue;
        }
        if (token[i].begin > copied)
            text_append(&out, pragma->text + copied, (size_t)(token[i].begin - copied));
        text_print(&out, i > first ? " %s" : "%s", token[i].text);
        copied = token[i].end > copied ? token[i].end : copied;
    }
    return text_bytes(&out);
}
