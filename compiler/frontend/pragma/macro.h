/* Macros in pragmas: their tokens are expanded as C's preprocessor would, which leaves pragmas
 * alone. */
#ifndef FRONTEND_PRAGMA_MACRO_H
#define FRONTEND_PRAGMA_MACRO_H

#include "frontend/ctree.h"
#include "syntax/lex.h"

/* A macro; body is its replacement. */
typedef struct Macro {
    const char *name;
    bool takes_arguments, variadic;
    Array(const char *) params;
    TokenList body;
} Macro;

/* How macros are looked up; NULL when there is no such macro where the pragma (NULL: anywhere)
 * stands. */
typedef const Macro *MacroLookup(void *context, const Pragma *pragma, const char *name);
typedef struct Macros {
    MacroLookup *lookup;
    void *context;
} Macros;

/* The tokens with macros expanded: what comes out of one stands where the macro is used. */
TokenList macros_expand(Arena *arena, Macros macros, const Pragma *pragma, const TokenList *tokens);

#endif
