/* Reads translation units with libclang and makes C trees of them. Only this folder uses libclang.
 *
 *     int n = 2 * sizeof x;      CXCursor_VarDecl ─clang_read─▶ CVar "n"
 *                                  init: C_BINARY OP_MUL of C_CAST of C_INT 2, C_INT 4
 */
#pragma once

#include "frontend/ctree.h"
#include "frontend/frontend.h"
#include "frontend/pragma/pragma.h"

typedef struct Reader Reader;

/* Parses a file and builds its tree, with pragmas resolved; system headers give it declarations, no
 * definitions. Reports errors, those of C in clang's words. Returns the tree, incomplete after an
 * error, or NULL when nothing could be read. Sets *reader, for clang_close. */
CUnit *clang_read(Arena *arena, Diag *diag, const FrontendPart *part, Reader **reader);

/* Reads another source into the tree, as a linker joins objects. All sources share the names of
 * external linkage; a static name belongs to one source. Returns false after errors. */
bool clang_read_more(CUnit *unit, const FrontendPart *part);

/* Frees libclang's data; the tree stays valid. */
void clang_close(Reader *reader);

/* Returns a lookup of the source's macros, for pragmas and strategies. */
Macros clang_macros(Reader *reader);
