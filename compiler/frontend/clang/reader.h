/* The state of the reader, and the functions that its files share.
 *
 *     clang.c ─▶ decl.c ─▶ type.c, expr.c ◀─▶ stmt.c
 *                macro.c, pragma.c, predefined.c, rounding.c, hints.c */
#pragma once

#include "frontend/clang/clang.h"
#include "frontend/source.h"

#include <clang-c/Index.h>
#include <uthash.h>

/* A declaration of clang's and the variable that stands for it. */
typedef struct Seen {
    const void *decl;
    CVar *var;
    UT_hash_handle hh;
} Seen;

typedef struct SeenType {
    const char *key; // CType.key
    CType *type;
    UT_hash_handle hh;
} SeenType;

/* The type that was made of one of clang's types. */
typedef struct SeenQualified {
    const void *clang; // clang's address of the canonical type without qualifiers
    const CType *type;
    UT_hash_handle hh;
} SeenQualified;

/* A macro whose body gcc spells unlike clang, such as NULL (macro.c). */
typedef struct OwnMacro {
    const char *name, *word; // `word`: the longest word of the macro's body
} OwnMacro;

typedef Array(OwnMacro) OwnMacros;

/* A definition of a macro, with a link to the earlier definition. */
typedef struct SeenMacro SeenMacro;
struct SeenMacro {
    const char *name;
    CXCursor cursor;
    const Macro *macro; // read at its first use
    SeenMacro *earlier;
    int walk;      // number of the last walk that visited this macro (macro.c)
    bool walked;   // `own` is filled
    OwnMacros own; // the macros in its expansion that the C compiler spells differently
    UT_hash_handle hh;
};

/* A function whose body is still to be read. */
typedef struct Definition {
    CFunction *function;
    CXCursor cursor;
} Definition;

/* A range [begin, end) of byte offsets in a file. Code from a macro has the range of its use. */
typedef struct Extent {
    const char *file; // NULL: in no file
    int begin, end;
} Extent;

typedef Array(CXCursor) Cursors;

/* The files of the translation unit. */
typedef struct ReaderFiles {
    Array(Source *) sources;   // the source and the files that it includes, without system headers
    Array(const char *) names; // names that clang_file has returned, each once
    CXFile last;               // the last argument of clang_file
    const char *last_name;
} ReaderFiles;

/* The pragmas of the translation unit. */
typedef struct ReaderPragmas {
    int first;            // index of the source's first pragma in CUnit.pragmas
    Array(Pragma *) file; // pragmas from `_Pragma` at file scope
    Array(int) file_at;   // for each of `file`, the index in Reader.decls of the next declaration
    StrategyLines strategy_lines;
    Array(Token) weak; // names in pragmas `weak`
} ReaderPragmas;

/* A macro call over several lines whose expansion has __LINE__. gcc replaces __LINE__ by the number
 * of the first line, clang by that of the last. */
typedef struct OpenCall {
    const Source *source;
    int begin, end, last_line; // offsets in the source; number of the last line
} OpenCall;

/* The macros of the translation unit (macro.c). */
typedef struct ReaderMacros {
    SeenMacro *seen;
    int walks; // number of walks through macros so far
    Array(OpenCall) open_calls;
} ReaderMacros;

/* The function that is being read. */
typedef struct ReaderBody {
    CFunction *function;
    CXCursor cursor;     // the function's definition
    const char *printed; // the function's text after the preprocessor; NULL: not asked for yet
    Cursors loops;       // the function's `for` statements, in order
    const Scope *scope;
    int slots;
} ReaderBody;

struct Reader {
    Arena *arena;
    Diag *diag;
    CUnit *unit;
    const FrontendPart *part;
    CXIndex index;
    CXTranslationUnit tu;
    Array(const char *) args;
    ReaderFiles files;
    ReaderPragmas pragmas;
    const char *library; // the folder of hetu's headers with a slash; NULL: they are not included
    Seen *vars;
    SeenType *types;
    SeenQualified *qualified;
    int variable_arrays; // number of variable-length array types so far
    ReaderMacros macros;
    Array(Definition) definitions;
    Cursors decls; // declarations at file scope, in order
    Array(Extent) decl_extents;
    ReaderBody body;
};

/* ---- clang.c ---- */

Position clang_position(Reader *r, CXSourceLocation location);
Extent clang_extent(Reader *r, CXCursor cursor);
const char *clang_file(Reader *r, CXFile file);
const Source *clang_source(Reader *r, const char *file);

/* Returns a copy of a string of clang, and frees the string. */
char *clang_string(Reader *r, CXString string);

/* Returns the children of a cursor, except attributes. */
Cursors clang_children(Reader *r, CXCursor cursor);

/* Adds notes to an error of clang that help to mend it (hints.c). */
void clang_hint(Reader *r, const char *text, Position at);

/* ---- type.c ---- */

const CType *clang_type(Reader *r, CXType type);
const CType *clang_pointer_to(Reader *r, const CType *base, bool to_const);
void clang_types_begin(Reader *r);

/* Returns a parameter's type: arrays and functions become pointers. */
const CType *clang_adjusted(Reader *r, CXType type);

/* Returns a key that is the same for all declarations of one entity. */
const void *clang_identity(CXCursor decl);

/* ---- decl.c ---- */

CFunction *clang_function(Reader *r, CXCursor decl);
CVar *clang_variable(Reader *r, CXCursor decl);
void clang_declare_all(Reader *r);

/* Returns whether a declaration has an attribute that libclang does not expose, called `word`. */
bool clang_has_attribute(Reader *r, CXCursor cursor, const char *word);

/* ---- expr.c, stmt.c ---- */

const CExpr *clang_expr(Reader *r, CXCursor cursor);
const CExpr *clang_initializer(Reader *r, CXCursor var);
char *clang_unquoted(Reader *r, const char *quoted, int64_t *length);
const CStmt *clang_stmt(Reader *r, CXCursor cursor);
void clang_body(Reader *r, CFunction *function, CXCursor cursor);

/* ---- pragma.c ---- */

void clang_read_pragmas(Reader *r);
void clang_finish_pragmas(Reader *r);

/* Returns the pragma in a _Static_assert made of `_Pragma("hspmd ...")`; NULL for any other. */
Pragma *clang_asserted(Reader *r, CXCursor cursor);

/* ---- macro.c ---- */

void clang_macro_seen(Reader *r, CXCursor cursor);
void clang_note_lines(Reader *r);                              // fills ReaderMacros.open_calls
bool clang_line_is_open(Reader *r, CXCursor cursor, int line); // `line` ends an OpenCall there
/* Returns a macro whose expansion in `text`, made by `#`, gcc spells unlike clang; NULL: none. */
const char *clang_spelled_otherwise(Reader *r, CXCursor string, const char *text);

/* ---- rounding.c, predefined.c ---- */

/* Sets CUnit.arithmetic: how options of the C compiler permit arithmetic that differs from C. */
void clang_note_rounding(Reader *r);

/* Reports uses of macros that clang and the C compiler define differently. */
void clang_check_predefined(Reader *r);
