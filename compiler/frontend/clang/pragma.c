/* Finds the active pragmas, and the declarations that they belong to. */
#include "frontend/clang/reader.h"

#include <string.h>

/* ---- lines of pragmas ---- */

/* Returns whether clang warned of an unknown pragma on a line: some inclusion does not skip it. */
static bool was_warned(Reader *r, const char *file, const PragmaLine *line) {
    bool found = false;
    for (unsigned i = 0; i < clang_getNumDiagnostics(r->tu) && !found; i++) {
        CXDiagnostic diagnostic = clang_getDiagnostic(r->tu, i);
        CXFile where;
        unsigned offset;
        clang_getExpansionLocation(clang_getDiagnosticLocation(diagnostic), &where, NULL, NULL,
                                   &offset);
        found = where && (int)offset >= line->begin && (int)offset < line->end &&
                clang_file(r, where) == file;
        clang_disposeDiagnostic(diagnostic);
    }
    return found;
}

/* Returns whether the preprocessor skips a line, by `ranges`, in all inclusions of its file. */
static bool is_skipped(Reader *r, const char *file, const CXSourceRangeList *ranges,
                       const PragmaLine *line) {
    bool skipped = false;
    for (unsigned i = 0; ranges && i < ranges->count; i++) {
        unsigned begin, end;
        clang_getExpansionLocation(clang_getRangeStart(ranges->ranges[i]), NULL, NULL, NULL,
                                   &begin);
        clang_getExpansionLocation(clang_getRangeEnd(ranges->ranges[i]), NULL, NULL, NULL, &end);
        skipped |= line->begin >= (int)begin && line->begin < (int)end;
    }
    return skipped && !was_warned(r, file, line);
}

/* Returns whether an earlier source included the header with this `padding` or strategy line. */
static bool read_before(Reader *r, const Pragma *pragma) {
    bool found = false;
    bool free = pragma->kind == PRAGMA_PADDING || pragma->kind == PRAGMA_STRATEGY;
    for (int i = 0; free && i < r->pragmas.first && !found; i++) {
        const Pragma *other = r->unit->pragmas.at[i];
        found = other->kind == pragma->kind && other->at.file && pragma->at.file &&
                !strcmp(other->at.file, pragma->at.file) && other->at.line == pragma->at.line;
    }
    return found;
}

/* Adds the name to r->pragmas.weak if the tokens are `weak NAME` or `weak NAME = OTHER`. */
static void note_weak(Reader *r, const Token *tokens, int count) {
    if (count > 1 && token_is(&tokens[0], "weak") && tokens[1].kind == TOKEN_NAME)
        array_push(r->arena, &r->pragmas.weak, tokens[1]);
}

/* Marks functions that a pragma anywhere in the source makes weak. */
static void take_weak(Reader *r) {
    for (int i = 0; i < r->pragmas.weak.count; i++) {
        CFunction *function = cunit_lookup(r->unit, r->pragmas.weak.at[i].text).function;
        if (!function || function->weak) continue;
        function->weak = true;
        function->weak_at = r->pragmas.weak.at[i].at;
    }
}

static void read_lines(Reader *r, const Source *source) {
    CXFile file = clang_getFile(r->tu, source->file);
    CXSourceRangeList *skipped = file ? clang_getSkippedRanges(r->tu, file) : NULL;
    for (int i = 0; i < source->lines.count; i++) {
        const PragmaLine *line = &source->lines.at[i];
        if (is_skipped(r, source->file, skipped, line)) continue;
        Pragma *pragma = pragma_read(r->unit, clang_macros(r), line, &r->pragmas.strategy_lines);
        if (!read_before(r, pragma)) array_push(r->arena, &r->unit->pragmas, pragma);
    }
    for (int i = 0; i < source->strays.count; i++)
        if (!is_skipped(r, source->file, skipped, &source->strays.at[i])) {
            pragma_check_stray(r->diag, &source->strays.at[i], source->lines.count > 0);
            note_weak(r, source->strays.at[i].tokens.at, source->strays.at[i].tokens.count);
        }
    if (skipped) clang_disposeSourceRangeList(skipped);
}

/* ---- `_Pragma` ---- */

/* Returns the string of a static assertion; NULL for any other declaration. */
static const char *asserted_text(Reader *r, CXCursor cursor) {
    int64_t length;
    if (clang_getCursorKind(cursor) != CXCursor_StaticAssert) return NULL;
    Cursors children = clang_children(r, cursor);
    if (children.count < 2 || clang_getCursorKind(children.at[1]) != CXCursor_StringLiteral)
        return NULL;
    return clang_unquoted(r, clang_string(r, clang_getCursorSpelling(children.at[1])), &length);
}

Pragma *clang_asserted(Reader *r, CXCursor cursor) {
    const char *text = asserted_text(r, cursor);
    PragmaLine line = {0};
    Position at = clang_position(r, clang_getCursorLocation(cursor));
    Lexer lexer = lex_begin(r->arena, r->diag, at, text ? text : "");
    Token first = lex_next(&lexer);
    if (token_is(&first, "weak")) {
        Token words[2] = {first, lex_next(&lexer)};
        words[1].at = at;
        note_weak(r, words, 2);
    }
    if (token_is(&first, "pack"))
        diag_error(r->diag, at, "the pragma pack is understood as #pragma alone, not as _Pragma");
    if (!token_is(&first, "hspmd")) return NULL;
    lex_rest(&lexer, &line.tokens);
    for (int i = 0; i < line.tokens.count; i++) line.tokens.at[i].at = at;
    Pragma *pragma = pragma_read(r->unit, clang_macros(r), &line, &r->pragmas.strategy_lines);
    array_push(r->arena, &r->unit->pragmas, pragma);
    return pragma;
}

/* ---- operators ---- */

/* Returns the index in r->decls of the declaration that follows a pragma at file scope; else -1. */
static int declaration_behind(Reader *r, const Pragma *pragma) {
    for (int i = 0; i < r->decls.count; i++) {
        Extent extent = r->decl_extents.at[i];
        if (extent.file == pragma->line.file && extent.begin >= pragma->line.end) return i;
        if (extent.file == pragma->line.file && extent.end > pragma->line.end) return -1;
    }
    return -1;
}

static void attach_operator(Reader *r, Pragma *pragma, int decl) {
    pragma->used = true;
    if (decl >= 0 && decl < r->decls.count &&
        clang_getCursorKind(r->decls.at[decl]) == CXCursor_FunctionDecl) {
        operator_make(r->unit, pragma, clang_function(r, r->decls.at[decl]));
        return;
    }
    diag_error(r->diag, pragma->at,
               "an op pragma stands in front of the declaration of a function");
    if (decl >= 0 && decl < r->decls.count)
        diag_note(r->diag, clang_position(r, clang_getCursorLocation(r->decls.at[decl])),
                  "this follows it instead");
}

/* ---- shape variables ---- */

static void add_shape_variable(Reader *r, const char *name, Position at) {
    CName what = cunit_lookup(r->unit, name);
    if (!what.var) {
        Array(const char *) names = {0};
        for (int i = 0; i < r->unit->vars.count; i++)
            array_push(r->arena, &names, r->unit->vars.at[i]->name);
        diag_error(r->diag, at, "\"%s\" is no variable at file scope", name);
        diag_suggest(r->diag, at, name, names.at, names.count);
    } else if (!ctype_is_integer(what.var->type)) {
        diag_error(r->diag, at, "a shape variable is an integer; %s is of type %s", name,
                   what.var->type->name);
    } else if (what.var->is_const) {
        diag_error(r->diag, at, "%s is const; strategies could not set it", name);
    } else if (!what.var->shape) {
        what.var->shape = true;
        array_push(r->arena, &r->unit->shapes, what.var);
    }
}

/* ---- all pragmas ---- */

void clang_read_pragmas(Reader *r) {
    for (int i = r->files.sources.count; i-- > 0;) read_lines(r, r->files.sources.at[i]);
    for (int i = r->pragmas.first; i < r->unit->pragmas.count; i++) {
        Pragma *pragma = r->unit->pragmas.at[i];
        if (pragma->kind == PRAGMA_OP && pragma->line.file)
            attach_operator(r, pragma, declaration_behind(r, pragma));
        for (int k = 0; pragma->kind == PRAGMA_SHAPE && k < pragma->names.count; k++)
            add_shape_variable(r, pragma->names.at[k], pragma->name_at.at[k]);
    }
    take_weak(r);
    for (int i = 0; i < r->pragmas.file.count; i++)
        if (r->pragmas.file.at[i]->kind == PRAGMA_OP)
            attach_operator(r, r->pragmas.file.at[i], r->pragmas.file_at.at[i]);
}

static bool in_function(Reader *r, const Pragma *pragma) {
    for (int i = 0; i < r->definitions.count; i++) {
        Extent extent = clang_extent(r, r->definitions.at[i].cursor);
        if (extent.file == pragma->line.file && pragma->line.begin > extent.begin &&
            pragma->line.end < extent.end)
            return true;
    }
    return false;
}

/* The state of a search for the #include directives that include a file. */
typedef struct InclusionSearch {
    Reader *r;
    const char *file;
    bool in_function; // an #include of the file is inside a function
} InclusionSearch;

/* Visits an included file. `stack` has the position of its #include, then those of outer files. */
static void visit_inclusion(CXFile included, CXSourceLocation *stack, unsigned depth, void *data) {
    InclusionSearch *search = data;
    Reader *r = search->r;
    if (!depth || clang_file(r, included) != search->file) return;
    for (unsigned d = 0; d < depth; d++) {
        CXFile where;
        unsigned offset;
        clang_getExpansionLocation(stack[d], &where, NULL, NULL, &offset);
        for (int i = 0; i < r->definitions.count; i++) {
            Extent extent = clang_extent(r, r->definitions.at[i].cursor);
            search->in_function |= extent.file == clang_file(r, where) &&
                                   (int)offset > extent.begin && (int)offset < extent.end;
        }
    }
}

static bool included_in_function(Reader *r, const char *file) {
    InclusionSearch search = {r, file, false};
    clang_getInclusions(r->tu, visit_inclusion, &search);
    return search.in_function;
}

void clang_finish_pragmas(Reader *r) {
    for (int i = r->pragmas.first; i < r->unit->pragmas.count; i++) {
        Pragma *pragma = r->unit->pragmas.at[i];
        if (pragma->used || (!pragma_acts(pragma) && !pragma_marks(pragma))) continue;
        if (pragma->line.file && in_function(r, pragma))
            diag_error(r->diag, pragma->at, "this pragma stands in the middle of a statement");
        else if (pragma->line.file && included_in_function(r, pragma->line.file))
            diag_error(r->diag, pragma->at,
                       "the %s pragma stands in a file that is included inside a function; write "
                       "it into the function itself, behind the #include",
                       pragma->directive);
        else
            diag_error(r->diag, pragma->at,
                       "the %s pragma stands inside a function, in front of a statement",
                       pragma->directive);
    }
}
