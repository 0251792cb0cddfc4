/* Pragmas: lines `#pragma hspmd ...`, and `_Pragma("hspmd ...")` from macros.
 *
 *     dims(x: batch, seq)     layer(l)      shape(seq, batch)     strategy NAME ... end strategy
 *     shard(x: LAYOUT)        recompute     op RULE
 *     reshard(x: LAYOUT)      padding(targets: -100)
 *
 * pragma_read parses the tokens of a line, with macros expanded; tokens keep the user's positions.
 * pragma_resolve finishes pragmas inside functions when their scope is known. Statements of a
 * strategy are parsed in strategy/strategy.h. */
#pragma once

#include "frontend/ctree.h"
#include "frontend/source.h"
#include "syntax/tokens.h"

typedef struct Dim Dim;               // ir/dim.h
typedef struct UserLayout UserLayout; // layout/user_layout.h

typedef enum PragmaKind {
    PRAGMA_DIMS,
    PRAGMA_LAYER,
    PRAGMA_RECOMPUTE,
    PRAGMA_SHARD,
    PRAGMA_RESHARD,
    PRAGMA_SHAPE,
    PRAGMA_PADDING,
    PRAGMA_OP,
    PRAGMA_STRATEGY, // a line from `strategy` to `end strategy`
    PRAGMA_BAD       // reported already
} PragmaKind;

struct Pragma {
    PragmaKind kind;
    PragmaLine line;
    bool used;   // attached to a statement or declaration
    Position at; // position of the directive
    const char *directive;
    Tokens tokens;                 // tokens after the directive, with macros expanded
    const Token *first;            // the first of these tokens
    Array(const CExpr *) operands; // of dims, shard and reshard
    Array(const char *) names;     // of shape: the variables; of padding: the inputs
    const double *padding;         // of padding: the value
    Array(Dim) dims;               // of dims
    Array(Position) name_at;       // position of each of `dims` or `names`
    const UserLayout *layout;      // of shard and reshard
    const char *tower;             // of layer; NULL: the default tower
    const char *layer_name;        // of layer; NULL: it has the number `layer`
    const CExpr *layer;
};

/* ---- macros in pragmas (macro.c); C's preprocessor does not expand them ---- */

/* A macro and its replacement, `body`, which TOKEN_END ends. */
typedef struct Macro {
    const char *name;
    bool takes_arguments, variadic;
    Array(const char *) params;
    TokenList body;
} Macro;

/* Returns a macro; NULL when it is not defined at the pragma or, without a pragma, anywhere. */
typedef const Macro *MacroLookup(void *context, const Pragma *pragma, const char *name);
typedef struct Macros {
    MacroLookup *lookup;
    void *context;
} Macros;

/* Returns the tokens with macros expanded; tokens from a macro get the position of its use. */
TokenList macros_expand(Arena *arena, Macros macros, const Pragma *pragma, const TokenList *tokens);

/* ---- expressions in pragmas (expression.c): no assignments, casts, sizeof, addresses ---- */

/* The variables in scope, the innermost first. */
typedef struct Scope Scope;
struct Scope {
    CVar *var;
    const Scope *outer;
};

/* Reads an expression over the names in scope, and stops past it. Calls in the expression take
 * frame slots from *slots. Returns NULL after an error. */
const CExpr *expression_read(CUnit *unit, Tokens *tokens, const Scope *scope, int *slots);

/* Returns whether a name is a variable, function or constant that an expression may use. */
bool expression_names(const CUnit *unit, const Scope *scope, const char *name);

/* ---- pragmas (pragma.c) ---- */

/* Whether the next pragma lines belong to a strategy. LINES_REFUSED: the first line of their
 * strategy was refused, so its other lines are not reported. */
typedef enum StrategyLines { LINES_NONE, LINES_INSIDE, LINES_REFUSED } StrategyLines;

/* Returns the pragma of a line; its kind is PRAGMA_BAD after an error, as for an unknown directive.
 * Reads and updates *lines, since every line inside a strategy belongs to that strategy. */
Pragma *pragma_read(CUnit *unit, Macros macros, const PragmaLine *line, StrategyLines *lines);

/* Reports a pragma that is probably meant for hetucc, but has misplaced, missing or misspelled
 * words. `ours` is whether the file has pragmas of hetucc. */
void pragma_check_stray(Diag *diag, const PragmaLine *line, bool ours);

/* Reads the operands of a pragma in a function, over the variables of `scope`; expressions take
 * frame slots from *slots. After an error the pragma becomes PRAGMA_BAD. */
void pragma_resolve(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots);

/* Return whether a pragma marks the next statement (layer, recompute), or acts as a statement. */
bool pragma_marks(const Pragma *pragma);
bool pragma_acts(const Pragma *pragma);

/* ---- functions under `#pragma hspmd op` (operators.c) ---- */

/* Reads the rule of a function and adds the operator to the unit. Reports errors. */
void operator_make(CUnit *unit, Pragma *pragma, CFunction *function);

/* Checks that kernels, gradients and `merge` operators of rules are declared, and that bodies of
 * operators name the same kernels and gradients. `backends` is FrontendOptions.backends. */
void operators_check(CUnit *unit, const char *const *backends);
