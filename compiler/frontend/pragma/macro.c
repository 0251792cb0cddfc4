/* Expands macros inside pragmas, as the preprocessor would. */
#include "frontend/pragma/pragma.h"
#include "support/text.h"

enum { MOST_TOKENS = 100000, MOST_NESTING = 64 };

typedef struct Expander {
    Arena *arena;
    Macros macros;
    const Pragma *pragma;
    const char *active[MOST_NESTING]; // macros that are being expanded
    int depth;
} Expander;

/* Returns the index of the `)` that closes the `(` at `open`; -1 when it is missing. */
static int closing(const TokenList *list, int open) {
    int depth = 0;
    for (int i = open; i < list->count; i++) {
        depth += token_is(&list->at[i], "(") - token_is(&list->at[i], ")");
        if (depth == 0) return i;
    }
    return -1;
}

typedef struct Arguments {
    TokenList at[MOST_NESTING];
    int count;
} Arguments;

static void split_arguments(Expander *x, const Macro *macro, const Token *open, const Token *close,
                            Arguments *arguments) {
    int depth = 0;
    arguments->count = macro->params.count ? 1 : 0;
    for (const Token *token = open + 1; token < close; token++) {
        depth += token_is(token, "(") - token_is(token, ")");
        bool rest = macro->variadic && arguments->count == macro->params.count;
        if (depth == 0 && token_is(token, ",") && !rest && arguments->count < macro->params.count)
            arguments->count++;
        else if (arguments->count)
            array_push(x->arena, &arguments->at[arguments->count - 1], *token);
    }
}

static void expand(Expander *x, const TokenList *from, TokenList *to);

/* Appends the macro's body with its parameters replaced; the body's tokens get `use`'s position. */
static void substitute(Expander *x, const Macro *macro, const Arguments *arguments,
                       const Token *use, TokenList *to) {
    for (int i = 0; !token_ends(&macro->body.at[i]); i++) {
        Token token = macro->body.at[i];
        int p = token.kind == TOKEN_NAME
                    ? text_find(macro->params.at, macro->params.count, token.text)
                    : -1;
        if (p >= 0) {
            for (int k = 0; p < arguments->count && k < arguments->at[p].count; k++)
                array_push(x->arena, to, arguments->at[p].at[k]);
            continue;
        }
        token.at = use->at;
        token.start = use->start;
        token.length = use->length;
        token.expanded = true;
        array_push(x->arena, to, token);
    }
}

/* Appends the expansion of the macro at `index`. Returns the use's last index; -1: no use. */
static int expand_macro(Expander *x, const Macro *macro, const TokenList *list, int index,
                        TokenList *to) {
    Arguments *arguments = arena_new(x->arena, Arguments);
    int last = index;
    if (macro->takes_arguments) {
        if (index + 1 >= list->count || !token_is(&list->at[index + 1], "(") ||
            macro->params.count > MOST_NESTING)
            return -1;
        last = closing(list, index + 1);
        if (last < 0) return -1;
        split_arguments(x, macro, &list->at[index + 1], &list->at[last], arguments);
    }
    Token use = list->at[index];
    const char *end = list->at[last].start + list->at[last].length;
    if (end > use.start + use.length) use.length = (int)(end - use.start);
    TokenList replaced = {0};
    substitute(x, macro, arguments, &use, &replaced);
    x->active[x->depth++] = macro->name;
    expand(x, &replaced, to);
    x->depth--;
    return last;
}

static void expand(Expander *x, const TokenList *from, TokenList *to) {
    for (int i = 0; i < from->count && to->count < MOST_TOKENS; i++) {
        const Token *token = &from->at[i];
        bool candidate = token->kind == TOKEN_NAME && x->depth < MOST_NESTING && x->macros.lookup &&
                         text_find(x->active, x->depth, token->text) < 0;
        const Macro *macro =
            candidate ? x->macros.lookup(x->macros.context, x->pragma, token->text) : NULL;
        int last = macro ? expand_macro(x, macro, from, i, to) : -1;
        if (last >= 0) i = last;
        else array_push(x->arena, to, *token);
    }
}

TokenList macros_expand(Arena *arena, Macros macros, const Pragma *pragma,
                        const TokenList *tokens) {
    Expander x = {.arena = arena, .macros = macros, .pragma = pragma};
    TokenList expanded = {0};
    expand(&x, tokens, &expanded);
    return expanded;
}
