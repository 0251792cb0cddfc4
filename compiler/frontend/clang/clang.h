/* The reader of translation units: libclang's tree as a C tree. Only this folder knows libclang. */
#ifndef FRONTEND_CLANG_CLANG_H
#define FRONTEND_CLANG_CLANG_H

#include "frontend/ctree.h"
#include "frontend/frontend.h"
#include "frontend/pragma/pragma.h"

typedef struct Reader Reader;

/* Parses the file and builds the tree with its pragmas resolved. What stands in system headers is
 * declared only. Errors are reported, those of C in the words of clang; the tree is complete when
 * there were none. NULL when nothing could be read. */
CUnit *clang_read(Arena *arena, Diag *diag, const FrontendPart *part, Reader **reader);

/* Reads another source into the tree, as a linker joins objects: what has external linkage is one
 * thing in all of them, what is static is each source's own. False after errors. */
bool clang_read_more(CUnit *unit, const FrontendPart *part);

/* Frees what belongs to libclang; the tree lives on. */
void clang_close(Reader *reader);

/* Looks up the macros of the unit, for strategies: those defined anywhere. */
Macros clang_macros(Reader *reader);

#endif
