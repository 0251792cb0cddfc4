/* Parses sources with libclang, and turns its diagnostics into hetucc's. expr.c, stmt.c and
 * predefined.c refuse what hetucc cannot evaluate. */
#include "frontend/clang/reader.h"

#include "ir/unit.h"

#include <ctype.h>
#include <string.h>

/* ---- positions, files, strings ---- */

char *clang_string(Reader *r, CXString string) {
    const char *text = clang_getCString(string);
    char *copy = arena_string(r->arena, text ? text : "");
    clang_disposeString(string);
    return copy;
}

const char *clang_file(Reader *r, CXFile file) {
    if (!file || file == r->files.last) return file ? r->files.last_name : NULL;
    CXString name = clang_getFileName(file);
    const char *text = clang_getCString(name), *known = NULL;
    for (int i = r->files.names.count; i-- > 0 && !known;)
        if (!strcmp(r->files.names.at[i], text)) known = r->files.names.at[i];
    if (!known) {
        known = arena_string(r->arena, text);
        array_push(r->arena, &r->files.names, known);
    }
    clang_disposeString(name);
    r->files.last = file;
    r->files.last_name = known;
    return known;
}

Position clang_position(Reader *r, CXSourceLocation location) {
    CXFile file;
    unsigned line, column;
    clang_getFileLocation(location, &file, &line, &column, NULL);
    return (Position){.file = clang_file(r, file), .line = (int)line, .column = (int)column};
}

Extent clang_extent(Reader *r, CXCursor cursor) {
    CXSourceRange range = clang_getCursorExtent(cursor);
    CXFile file, last;
    unsigned begin, end;
    clang_getExpansionLocation(clang_getRangeStart(range), &file, NULL, NULL, &begin);
    clang_getExpansionLocation(clang_getRangeEnd(range), &last, NULL, NULL, &end);
    return (Extent){.file = clang_file(r, file), .begin = (int)begin, .end = (int)end};
}

const Source *clang_source(Reader *r, const char *file) {
    for (int i = 0; i < r->files.sources.count; i++)
        if (file && !strcmp(r->files.sources.at[i]->file, file)) return r->files.sources.at[i];
    return NULL;
}

typedef struct Collector {
    Reader *r;
    Cursors children;
} Collector;

static enum CXChildVisitResult collect(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    Collector *c = data;
    enum CXCursorKind kind = clang_getCursorKind(cursor);
    if (!clang_isAttribute(kind)) array_push(c->r->arena, &c->children, cursor);
    return CXChildVisit_Continue;
}

Cursors clang_children(Reader *r, CXCursor cursor) {
    Collector c = {.r = r};
    clang_visitChildren(cursor, collect, &c);
    return c.children;
}

/* ---- the command line ---- */

/* Returns whether an argument is only for the C compiler: a warning option, -c, -fmax-errors. */
static bool is_warning_flag(const char *arg) {
    return !strcmp(arg, "-w") || (!strncmp(arg, "-W", 2) && strncmp(arg, "-Wp,", 4) != 0) ||
           !strncmp(arg, "-pedantic", 9) || !strcmp(arg, "-c") || !strncmp(arg, "-fmax-errors", 12);
}

static void gather_args(Reader *r) {
    static const char *const ours[] = {"-D_HSPMD=202611", "-Wunknown-pragmas", "-Wsystem-headers",
                                       "-ferror-limit=0", "-Wno-builtin-macro-redefined"};
    array_push(r->arena, &r->args, "-xc");
    for (int i = 0; i < r->part->arg_count; i++)
        if (!is_warning_flag(r->part->args[i])) array_push(r->arena, &r->args, r->part->args[i]);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) array_push(r->arena, &r->args, ours[i]);
}

/* ---- parsing and C's own errors ---- */

static CXTranslationUnit parse(Reader *r, int arg_count) {
    CXTranslationUnit tu = NULL;
    int texts = r->part->text_count;
    struct CXUnsavedFile *files = arena_array(r->arena, struct CXUnsavedFile, texts);
    for (int i = 0; i < texts; i++)
        files[i] = (struct CXUnsavedFile){r->part->texts[i].path, r->part->texts[i].text,
                                          strlen(r->part->texts[i].text)};
    enum CXErrorCode code = clang_parseTranslationUnit2(
        r->index, r->part->file, r->args.at, arg_count, files, (unsigned)texts,
        CXTranslationUnit_DetailedPreprocessingRecord, &tu);
    return code == CXError_Success ? tu : NULL;
}

static bool is_error(CXDiagnostic diagnostic) {
    return clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error;
}

static int count_errors(CXTranslationUnit tu) {
    int errors = 0;
    for (unsigned i = 0; i < clang_getNumDiagnostics(tu); i++) {
        CXDiagnostic diagnostic = clang_getDiagnostic(tu, i);
        errors += is_error(diagnostic);
        clang_disposeDiagnostic(diagnostic);
    }
    return errors;
}

static void report_notes(Reader *r, CXDiagnostic diagnostic) {
    CXDiagnosticSet notes = clang_getChildDiagnostics(diagnostic);
    for (unsigned i = 0; i < clang_getNumDiagnosticsInSet(notes); i++) {
        CXDiagnostic note = clang_getDiagnosticInSet(notes, i);
        diag_note(r->diag, clang_position(r, clang_getDiagnosticLocation(note)), "%s",
                  clang_string(r, clang_getDiagnosticSpelling(note)));
        clang_disposeDiagnostic(note);
    }
}

static void report_error(Reader *r, CXDiagnostic diagnostic) {
    const char *text = clang_string(r, clang_getDiagnosticSpelling(diagnostic));
    Position at = clang_position(r, clang_getDiagnosticLocation(diagnostic));
    diag_error(r->diag, at, "%s", text);
    clang_hint(r, text, at);
    report_notes(r, diagnostic);
}

static void report_errors(Reader *r) {
    for (unsigned i = 0; i < clang_getNumDiagnostics(r->tu); i++) {
        CXDiagnostic diagnostic = clang_getDiagnostic(r->tu, i);
        if (is_error(diagnostic)) report_error(r, diagnostic);
        clang_disposeDiagnostic(diagnostic);
    }
}

/* Returns whether -std selects C23, in which gcc replaces trigraphs and libclang does not. */
static bool is_revised(const Reader *r) {
    bool revised = false;
    for (int i = 0; i < r->args.count; i++)
        if (!strncmp(r->args.at[i], "-std=", 5))
            revised = !strcmp(r->args.at[i], "-std=c2x") || !strcmp(r->args.at[i], "-std=c23");
    return revised;
}

/* Returns the error for libclang's warning of code that compilers read differently; else NULL. */
static const char *taken_otherwise(const Reader *r, const char *warning) {
    if (!strncmp(warning, "unknown attribute", 17) && strstr(warning, "scalar_storage_order"))
        return "the attribute scalar_storage_order cannot be evaluated at compile time; move it to "
               "a file without models";
    if (!strncmp(warning, "integer literal is too large", 28))
        return "this number fits no signed type, so that compilers give it different ones; write "
               "it with the suffix u";
    if (!strcmp(warning, "trigraph ignored") && is_revised(r))
        return "compilers differ in whether they replace this trigraph; write its character, or "
               "its question marks apart";
    return NULL;
}

static void check_warnings(Reader *r) {
    for (unsigned i = 0; i < clang_getNumDiagnostics(r->tu); i++) {
        CXDiagnostic diagnostic = clang_getDiagnostic(r->tu, i);
        const char *what =
            taken_otherwise(r, clang_string(r, clang_getDiagnosticSpelling(diagnostic)));
        if (what)
            diag_error(r->diag, clang_position(r, clang_getDiagnosticLocation(diagnostic)), "%s",
                       what);
        clang_disposeDiagnostic(diagnostic);
    }
}

/* ---- files ---- */

/* Returns a file as it was when its object was made, or else from disk; NULL after errors. */
static Source *read_source(Reader *r, const char *name) {
    for (int i = 0; i < r->part->text_count; i++)
        if (!strcmp(r->part->texts[i].path, name)) {
            diag_source(r->diag, name, r->part->texts[i].text);
            return source_of_text(r->arena, name, r->part->texts[i].text);
        }
    return source_read(r->arena, r->diag, name);
}

static void add_source(Reader *r, const char *name) {
    Source *source = clang_source(r, name) ? NULL : read_source(r, name);
    if (source) array_push(r->arena, &r->files.sources, source);
}

static void include_seen(CXFile file, CXSourceLocation *stack, unsigned depth, CXClientData data) {
    (void)stack, (void)depth;
    Reader *r = data;
    const char *name = clang_file(r, file);
    if (!clang_Location_isInSystemHeader(clang_getLocationForOffset(r->tu, file, 0)))
        add_source(r, name);
}

static enum CXChildVisitResult find_library(CXCursor cursor, CXCursor parent, CXClientData data) {
    (void)parent;
    Reader *r = data;
    if (clang_getCursorKind(cursor) != CXCursor_FunctionDecl) return CXChildVisit_Continue;
    CXString name = clang_getCursorSpelling(cursor);
    bool found = !strcmp(clang_getCString(name), "ht_parameter");
    clang_disposeString(name);
    if (!found) return CXChildVisit_Continue;
    const char *file = clang_position(r, clang_getCursorLocation(cursor)).file;
    const char *slash = file ? strrchr(file, '/') : NULL;
    r->library = slash ? arena_substring(r->arena, file, (size_t)(slash - file) + 1) : NULL;
    return CXChildVisit_Break;
}

/* Reads all files but system headers, hetu's headers in any case, and finds their pragmas. */
static void read_sources(Reader *r) {
    clang_visitChildren(clang_getTranslationUnitCursor(r->tu), find_library, r);
    clang_getInclusions(r->tu, include_seen, r);
    for (int i = 0; i < r->files.names.count && r->library; i++)
        if (!strncmp(r->files.names.at[i], r->library, strlen(r->library)))
            add_source(r, r->files.names.at[i]);
    for (int i = 0; i < r->files.sources.count; i++)
        source_scan(r->arena, r->diag, r->files.sources.at[i]);
}

/* If a file uses `_Pragma`, parses again with each `_Pragma` as a _Static_assert of its text. */
static void reparse_pragma_operators(Reader *r) {
    bool used = false;
    for (int i = 0; i < r->files.sources.count; i++)
        used |= r->files.sources.at[i]->has_pragma_operator;
    if (!used) return;
    array_push(r->arena, &r->args, "-D_Pragma(x)=_Static_assert(1, x);");
    CXTranslationUnit tu = parse(r, r->args.count);
    if (tu && !count_errors(tu)) {
        clang_disposeTranslationUnit(r->tu);
        r->tu = tu;
        r->files.last = NULL;
        return;
    }
    clang_disposeTranslationUnit(tu);
}

static bool is_blank(const Source *source) {
    for (int i = 0; i < source->length; i++)
        if (!isspace((unsigned char)source->text[i])) return false;
    return true;
}

static bool open_unit(Reader *r) {
    Source *source = read_source(r, r->part->file);
    if (!source) return false;
    if (is_blank(source))
        return diag_error(r->diag, (Position){0}, "%s is empty", r->part->file), false;
    gather_args(r);
    r->index = clang_createIndex(0, 0);
    r->tu = parse(r, r->args.count);
    if (!r->tu) diag_error(r->diag, (Position){0}, "libclang could not parse %s", r->part->file);
    return r->tu;
}

/* Adds the files of the source, without hetu's headers, to the unit. */
static void note_files(Reader *r) {
    for (int i = 0; i < r->files.sources.count; i++) {
        const Source *source = r->files.sources.at[i];
        if (!r->library || strncmp(source->file, r->library, strlen(r->library)) != 0)
            array_push(r->arena, &r->unit->files, (UnitFile){source->file, source->text});
    }
}

/* Reads a source into the tree; false after errors. */
static bool read_part(Reader *r) {
    int before = diag_errors(r->diag);
    r->pragmas.first = r->unit->pragmas.count;
    if (!open_unit(r)) return false;
    if (count_errors(r->tu)) {
        report_errors(r);
        return false;
    }
    read_sources(r);
    clang_check_predefined(r);
    check_warnings(r);
    clang_note_rounding(r);
    reparse_pragma_operators(r);
    clang_types_begin(r);
    clang_declare_all(r);
    note_files(r);
    array_push(r->arena, &r->unit->parts, r->unit->names);
    return diag_errors(r->diag) == before;
}

CUnit *clang_read(Arena *arena, Diag *diag, const FrontendPart *part, Reader **reader) {
    Reader *r = *reader = arena_new(arena, Reader);
    *r = (Reader){.arena = arena, .diag = diag, .part = part, .unit = arena_new(arena, CUnit)};
    *r->unit = (CUnit){.arena = arena, .diag = diag, .file = part->file};
    read_part(r);
    r->unit->own_pragmas = r->unit->pragmas.count;
    return r->unit->parts.count ? r->unit : NULL;
}

bool clang_read_more(CUnit *unit, const FrontendPart *part) {
    void *names = unit->names;
    Reader r = {.arena = unit->arena, .diag = unit->diag, .part = part, .unit = unit};
    unit->names = NULL;
    unit->part = unit->parts.count;
    bool good = read_part(&r);
    clang_close(&r);
    unit->names = names;
    unit->part = 0;
    return good;
}

void clang_close(Reader *r) {
    HASH_CLEAR(hh, r->vars);
    HASH_CLEAR(hh, r->types);
    HASH_CLEAR(hh, r->qualified);
    HASH_CLEAR(hh, r->macros.seen);
    if (r->tu) clang_disposeTranslationUnit(r->tu);
    if (r->index) clang_disposeIndex(r->index);
}
