/* Macros: pragmas expand them, which no preprocessor does. */
#include "frontend/clang/reader.h"

#include <string.h>

void clang_macro_seen(Reader *r, CXCursor cursor) {
    if (clang_Cursor_isMacroBuiltin(cursor)) return;
    const char *name = clang_string(r, clang_getCursorSpelling(cursor));
    SeenMacro *known, *seen = arena_new(r->arena, SeenMacro);
    *seen = (SeenMacro){.name = name, .cursor = cursor};
    HASH_FIND_STR(r->macros, name, known);
    if (known) {
        HASH_DEL(r->macros, known);
        seen->earlier = known;
    }
    HASH_ADD_KEYPTR(hh, r->macros, seen->name, strlen(seen->name), seen);
}

/* Clang's tokens from `first` on as ours. */
static TokenList converted(Reader *r, CXToken *tokens, unsigned first, unsigned count) {
    Text text = {.arena = r->arena};
    TokenList list = {0};
    for (unsigned i = first; i < count; i++)
        if (clang_getTokenKind(tokens[i]) != CXToken_Comment)
            text_print(&text, text.length ? " %s" : "%s",
                       clang_string(r, clang_getTokenSpelling(r->tu, tokens[i])));
    Lexer lexer = lex_begin(r->arena, r->diag, (Position){0}, text_bytes(&text));
    lex_rest(&lexer, &list);
    return list;
}

/* Reads the parameters behind the `(` at token 1; the index of the first token of the body. */
static unsigned read_parameters(Reader *r, Macro *macro, CXToken *tokens, unsigned count) {
    unsigned i = 2;
    for (; i < count; i++) {
        const char *text = clang_string(r, clang_getTokenSpelling(r->tu, tokens[i]));
        if (!strcmp(text, ")")) return i + 1;
        if (!strcmp(text, "...")) macro->variadic = true;
        if (strcmp(text, ","))
            array_push(r->arena, &macro->params, macro->variadic ? "__VA_ARGS__" : text);
    }
    return i;
}

static const Macro *read_macro(Reader *r, SeenMacro *seen) {
    CXToken *tokens;
    unsigned count, body = 1;
    Macro *macro = arena_new(r->arena, Macro);
    macro->name = seen->name;
    macro->takes_arguments = clang_Cursor_isMacroFunctionLike(seen->cursor);
    clang_tokenize(r->tu, clang_getCursorExtent(seen->cursor), &tokens, &count);
    if (macro->takes_arguments) body = read_parameters(r, macro, tokens, count);
    macro->body = converted(r, tokens, body, count);
    clang_disposeTokens(r->tu, tokens, count);
    return macro;
}

/* Whether the definition holds where the pragma stands: in the same file before it, or in another
 * file. */
static bool is_visible(Reader *r, const SeenMacro *seen, const Pragma *pragma) {
    Extent extent = clang_extent(r, seen->cursor);
    if (!pragma || !extent.file || !pragma->line.file || strcmp(extent.file, pragma->line.file))
        return true;
    return extent.begin < pragma->line.begin;
}

/* hetu's own headers mean their own names, whatever the model defines. */
static bool is_own(Reader *r, const Pragma *pragma) {
    return pragma && pragma->line.file && r->library &&
           !strncmp(pragma->line.file, r->library, strlen(r->library));
}

static const Macro *lookup(void *context, const Pragma *pragma, const char *name) {
    Reader *r = context;
    SeenMacro *seen;
    if (is_own(r, pragma)) return NULL;
    HASH_FIND_STR(r->macros, name, seen);
    while (seen && !is_visible(r, seen, pragma)) seen = seen->earlier;
    if (seen && !seen->macro) seen->macro = read_macro(r, seen);
    return seen ? seen->macro : NULL;
}

Macros clang_macros(Reader *reader) { return (Macros){lookup, reader}; }
