/* Inside the reader: what the files of this folder share. */
#ifndef FRONTEND_CLANG_READER_H
#define FRONTEND_CLANG_READER_H

#include "frontend/clang/clang.h"
#include "frontend/source.h"

#include <clang-c/Index.h>
#include <uthash.h>

/* A declaration of clang's and what it became. */
typedef struct Seen {
    const void *decl;
    CVar *var;
    UT_hash_handle hh;
} Seen;

typedef struct SeenType {
    const char *key; // of CType
    CType *type;
    UT_hash_handle hh;
} SeenType;

/* The definitions of a macro, the last one first. */
typedef struct SeenMacro SeenMacro;
struct SeenMacro {
    const char *name;
    CXCursor cursor;
    const Macro *macro; // read when it is first used
    SeenMacro *earlier;
    UT_hash_handle hh;
};

/* A function whose body is to be read. */
typedef struct Definition {
    CFunction *function;
    CXCursor cursor;
} Definition;

/* A range of a file, in expansion offsets. */
typedef struct Extent {
    const char *file; // NULL: none
    int begin, end;
} Extent;

struct Reader {
    Arena *arena;
    Diag *diag;
    CUnit *unit;
    const FrontendPart *part;
    CXIndex index;
    CXTranslationUnit tu;
    Array(const char *) args;
    Array(Source *) sources;     // the file and what it includes, system headers aside
    Array(const char *) files;   // names, each once
    int first_pragma, first_var; // of this source among the unit's
    const char *library;         // the folder of hetu's headers with a slash; NULL: not included
    Seen *vars;
    SeenType *types;
    int variable_arrays; // types of variable length so far
    SeenMacro *macros;
    Array(int) open_lines; // where __LINE__ depends on the compiler (macro.c)
    Array(Definition) definitions;
    Array(CXCursor) decls; // at file scope, in order
    Array(Extent) decl_extents;
    CXFile last_file; // what clang_file was asked for last
    const char *last_name;
    Array(Pragma *) file_pragmas; // from `_Pragma` at file scope, by index in decls
    Array(int) file_pragma_at;
    StrategyLines strategy_lines;
    Array(Token) weak; // names that pragmas call weak
    /* the function that is being read */
    CFunction *function;
    CXCursor body_of;      // its definition
    const char *printed;   // its text behind the preprocessor; NULL: not asked for yet
    Array(CXCursor) loops; // its `for` statements, in order
    const Scope *scope;
    int slots;
};

typedef Array(CXCursor) Cursors;

/* clang.c */
Position clang_position(Reader *r, CXSourceLocation location);
Extent clang_extent(Reader *r, CXCursor cursor);
const char *clang_file(Reader *r, CXFile file);
const Source *clang_source(Reader *r, const char *file);
char *clang_string(Reader *r, CXString string);     // disposes of the string
Cursors clang_children(Reader *r, CXCursor cursor); // attributes aside

/* type.c */
const CType *clang_type(Reader *r, CXType type);
const void *clang_identity(CXCursor decl); // what all declarations of one thing share
const CType *clang_adjusted(Reader *r,
                            CXType type); // of a parameter: arrays and functions are pointers
const CType *clang_pointer_to(Reader *r, const CType *base, bool to_const);
void clang_types_begin(Reader *r);

/* decl.c */
CFunction *clang_function(Reader *r, CXCursor decl);
CVar *clang_variable(Reader *r, CXCursor decl);
void clang_declare_all(Reader *r);
bool clang_has_attribute(
    Reader *r, CXCursor cursor,
    const char *word); // for attributes of which libclang has no kind of its own

/* expr.c */
const CExpr *clang_expr(Reader *r, CXCursor cursor);
const CExpr *clang_initializer(Reader *r, CXCursor var);
char *clang_unquoted(Reader *r, const char *quoted, int64_t *length);

/* stmt.c */
const CStmt *clang_stmt(Reader *r, CXCursor cursor);
void clang_body(Reader *r, CFunction *function, CXCursor cursor);

/* pragma.c */
void clang_read_pragmas(Reader *r);
void clang_finish_pragmas(Reader *r);
Pragma *
clang_asserted(Reader *r,
               CXCursor cursor); // the pragma from `_Pragma` that a declaration keeps, or NULL

/* macro.c */
void clang_macro_seen(Reader *r, CXCursor cursor);
void clang_note_lines(Reader *r); // finds the lines of open_lines
bool clang_line_is_open(const Reader *r, int line);
/* The macro of the parser's own, whose text the preprocessor made a string of; NULL: none. */
const char *clang_spelled_otherwise(Reader *r, CXCursor string, const char *text);

/* predefined.c */
void clang_note_rounding(Reader *r); // notes what the C compiler may compute otherwise than C says
void clang_check_predefined(
    Reader *r); // reports the use of macros that the C compiler has otherwise

#endif
