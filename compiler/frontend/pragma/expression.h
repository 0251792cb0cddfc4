/* Expressions in pragmas: C over the names in scope, as far as operands need it: no assignments,
 * casts, sizeof or addresses. */
#ifndef FRONTEND_PRAGMA_EXPRESSION_H
#define FRONTEND_PRAGMA_EXPRESSION_H

#include "frontend/ctree.h"
#include "syntax/tokens.h"

/* The variables in scope, the innermost first. */
typedef struct Scope Scope;
struct Scope {
    CVar *var;
    const Scope *outer;
};

/* An expression of C over names in scope, its calls with slots from *slots; NULL after an error was
 * reported. Stops at a `,`, `:` or `)` that is not its own. */
const CExpr *expression_read(CUnit *unit, Tokens *tokens, const Scope *scope, int *slots);

/* Whether a name stands for something in an expression: a variable, a function or a constant. */
bool expression_names(const CUnit *unit, const Scope *scope, const char *name);

#endif
