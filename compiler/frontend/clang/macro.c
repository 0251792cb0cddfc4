/* Reads macros for pragmas; finds macros whose expansion differs between compilers. */
#include "frontend/clang/reader.h"

#include "support/text.h"

#include <ctype.h>
#include <string.h>

void clang_macro_seen(Reader *r, CXCursor cursor) {
    if (clang_Cursor_isMacroBuiltin(cursor)) return;
    const char *name = clang_string(r, clang_getCursorSpelling(cursor));
    SeenMacro *known, *seen = arena_new(r->arena, SeenMacro);
    *seen = (SeenMacro){.name = name, .cursor = cursor};
    HASH_FIND_STR(r->macros.seen, name, known);
    if (known) {
        HASH_DEL(r->macros.seen, known);
        seen->earlier = known;
    }
    HASH_ADD_KEYPTR(hh, r->macros.seen, seen->name, strlen(seen->name), seen);
}

/* Converts clang's tokens [first, count), without comments, to tokens of lex.h. */
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

/* Reads the macro's parameters, after token 1, `(`. Returns the index of the body's first token. */
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

/* Returns whether a definition is visible to a pragma: before it, or in another file. */
static bool is_visible(Reader *r, const SeenMacro *seen, const Pragma *pragma) {
    if (!pragma || !pragma->line.file) return true;
    Extent extent = clang_extent(r, seen->cursor);
    return !extent.file || strcmp(extent.file, pragma->line.file) ||
           extent.begin < pragma->line.begin;
}

/* Returns whether a pragma is in hetu's headers, which no macro of the model changes. */
static bool is_own(Reader *r, const Pragma *pragma) {
    return pragma && pragma->line.file && r->library &&
           !strncmp(pragma->line.file, r->library, strlen(r->library));
}

static const Macro *lookup(void *context, const Pragma *pragma, const char *name) {
    Reader *r = context;
    SeenMacro *seen;
    if (is_own(r, pragma)) return NULL;
    HASH_FIND_STR(r->macros.seen, name, seen);
    while (seen && !is_visible(r, seen, pragma)) seen = seen->earlier;
    if (seen && !seen->macro) seen->macro = read_macro(r, seen);
    return seen ? seen->macro : NULL;
}

Macros clang_macros(Reader *reader) { return (Macros){lookup, reader}; }

/* ---- __LINE__ in the body of a macro ---- */

/* Returns whether the body of a macro has __LINE__, itself or through other macros. */
static bool has_line(Reader *r, const char *name, int depth) {
    const Macro *macro = depth < 16 ? lookup(r, NULL, name) : NULL;
    for (int i = 0; macro && i < macro->body.count; i++) {
        const char *word = macro->body.at[i].text;
        if (!strcmp(word, "__LINE__") || has_line(r, word, depth + 1)) return true;
    }
    return false;
}

/* Returns the offset past the comment, string or character constant at `at`; else `at` + 1. */
static int skip(const Source *source, int at) {
    const char *text = source->text + at, *end = text + 1;
    if (*text != '/' && *text != '"' && *text != '\'') return at + 1;
    if (!strncmp(text, "//", 2)) end = text + strcspn(text, "\n");
    if (!strncmp(text, "/*", 2)) {
        end = strstr(text + 2, "*/");
        end = end ? end + 2 : NULL;
    }
    if (*text == '"' || *text == '\'') {
        while (*end && *end != *text && *end != '\n') end += *end == '\\' && end[1] ? 2 : 1;
        end += *end == *text;
    }
    return end ? (int)(end - source->text) : source->length;
}

/* Returns the offset past the parenthesis that closes the one at `at`; if none, the text's end. */
static int closing(const Source *source, int at) {
    for (int depth = 0; at < source->length; at = skip(source, at)) {
        depth += source->text[at] == '(';
        depth -= source->text[at] == ')';
        if (!depth) return at + 1;
    }
    return at;
}

static bool begins_name(const Source *source, int at) {
    return isalpha((unsigned char)source->text[at]) || source->text[at] == '_';
}

static int name_end(const Source *source, int at) {
    while (isalnum((unsigned char)source->text[at]) || source->text[at] == '_') at++;
    return at;
}

/* Returns the offset past the arguments of a name that ends at `at`; `at` if no `(` follows it. */
static int call_end(const Source *source, int at) {
    int open = at + (int)strspn(source->text + at, " \t\n");
    return source->text[open] == '(' ? closing(source, open) : at;
}

static int lines_between(const Source *source, int from, int to) {
    int count = 0;
    for (; from < to; from++) count += source->text[from] == '\n';
    return count;
}

/* Adds the calls over several lines of macros with __LINE__ to r->macros.open_calls. */
static void note_calls(Reader *r, const Source *source) {
    for (int at = 0, next; at < source->length; at = next) {
        next = skip(source, at);
        if (!begins_name(source, at)) continue;
        next = name_end(source, at);
        int end = call_end(source, next);
        if (end == next || !lines_between(source, at, end)) continue;
        if (!has_line(r, arena_substring(r->arena, source->text + at, (size_t)(next - at)), 0))
            continue;
        array_push(r->arena, &r->macros.open_calls,
                   (OpenCall){source, at, end, 1 + lines_between(source, 0, end)});
    }
}

void clang_note_lines(Reader *r) {
    for (int i = 0; i < r->files.sources.count; i++) note_calls(r, r->files.sources.at[i]);
}

bool clang_line_is_open(Reader *r, CXCursor cursor, int line) {
    Extent extent = clang_extent(r, cursor);
    const Source *source = clang_source(r, extent.file);
    int end = source ? call_end(source, name_end(source, extent.begin)) : 0;
    end = end > extent.end ? end : extent.end;
    for (int i = 0; i < r->macros.open_calls.count; i++) {
        const OpenCall *call = &r->macros.open_calls.at[i];
        bool meets = call->source == source && call->begin < end && extent.begin < call->end;
        if (call->last_line == line && (meets || !source)) return true;
    }
    return false;
}

/* ---- macros that become strings ---- */

/* Returns whether gcc spells a macro's body unlike clang: a limit, or a macro of clang's headers.
 *
 *     INT_MAX   2147483647 in clang, 0x7fffffff in gcc
 *     NULL      ((void*)0) in clang, ((void *)0) in gcc
 */
static bool has_own_text(Reader *r, const SeenMacro *seen) {
    const char *name = seen->name, *file = clang_extent(r, seen->cursor).file;
    size_t length = strlen(name);
    if (file) return strstr(file, "/clang/") && seen->macro->body.count > 2;
    return (length > 6 && !strcmp(name + length - 6, "_MAX__")) || !strncmp(name, "__FLT_", 6) ||
           !strncmp(name, "__DBL_", 6) || !strncmp(name, "__LDBL_", 7);
}

static const char *longest_word(const Macro *macro) {
    const char *longest = "";
    for (int i = 0; i < macro->body.count; i++)
        if (strlen(macro->body.at[i].text) > strlen(longest)) longest = macro->body.at[i].text;
    return longest;
}

/* Adds to `list` the macros in the expansion of `name` that the C compiler spells differently, the
 * innermost first. Looks at each macro once in a walk. */
static void gather_own(Reader *r, const char *name, int walk, OwnMacros *list) {
    const Macro *macro = lookup(r, NULL, name);
    SeenMacro *seen;
    HASH_FIND_STR(r->macros.seen, name, seen);
    if (!macro || seen->walk == walk) return;
    seen->walk = walk;
    for (int i = 0; i < macro->body.count; i++)
        if (macro->body.at[i].kind == TOKEN_NAME) gather_own(r, macro->body.at[i].text, walk, list);
    OwnMacro own = {name, longest_word(macro)};
    if (strlen(own.word) > 2 && has_own_text(r, seen)) array_push(r->arena, list, own);
}

/* Returns the first macro in the expansion of `name` that the C compiler spells differently and
 * whose longest word is in `text`. NULL: there is none. */
static const char *own_macro(Reader *r, const char *name, const char *text) {
    SeenMacro *seen;
    HASH_FIND_STR(r->macros.seen, name, seen);
    if (!seen) return NULL;
    if (!seen->walked) gather_own(r, name, ++r->macros.walks, &seen->own);
    seen->walked = true;
    for (int i = 0; i < seen->own.count; i++)
        if (strstr(text, seen->own.at[i].word)) return seen->own.at[i].name;
    return NULL;
}

const char *clang_spelled_otherwise(Reader *r, CXCursor string, const char *text) {
    CXFile file;
    const char *found = NULL;
    clang_getSpellingLocation(clang_getCursorLocation(string), &file, NULL, NULL, NULL);
    if (file) return NULL;
    Extent extent = clang_extent(r, string);
    const Source *source = clang_source(r, extent.file);
    if (!source) return NULL;
    for (int at = extent.begin, end = call_end(source, name_end(source, at)), next;
         at < end && !found; at = next) {
        next = skip(source, at);
        if (!begins_name(source, at)) continue;
        next = name_end(source, at);
        found =
            own_macro(r, arena_substring(r->arena, source->text + at, (size_t)(next - at)), text);
    }
    return found;
}
