/* Pragmas: `#pragma hspmd ...` lines, and `_Pragma("hspmd ...")` from macros.
 *
 *     dims(x: batch, seq)     layer(l)     shape(seq, batch)     strategy NAME ... end strategy
 *     shard(x: LAYOUT)        recompute    op RULE
 *     reshard(x: LAYOUT)   padding(targets: -100)
 *
 * pragma_read makes one from the tokens of its line, macros expanded (macro.h), each token at the
 * place where the user wrote it. Those inside functions are finished by pragma_resolve, when the
 * scope is known. Micro-batches, stages and placement are no pragmas but statements of a strategy
 * (strategy/strategy.h).
 */
#ifndef FRONTEND_PRAGMA_PRAGMA_H
#define FRONTEND_PRAGMA_PRAGMA_H

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
    PRAGMA_STRATEGY, // a line of a strategy, from `strategy` to `end strategy`
    PRAGMA_BAD       // an error was reported
} PragmaKind;

struct Pragma {
    PragmaKind kind;
    PragmaLine line;
    bool used;   // it found its place
    Position at; // of the directive
    const char *directive;
    Tokens tokens;                 // behind the directive, macros expanded
    const Token *first;            // of them
    Array(const CExpr *) operands; // dims, shard, reshard
    Array(const char *) names;     // shape: the variables; padding: the inputs
    const double *padding;         // padding: the value
    Array(Dim) dims;               // dims
    Array(Position) name_at;       // of each of these
    const UserLayout *layout;      // shard, reshard
    const char *tower;             // layer; NULL the default
    const char *layer_name;        // layer; NULL: `layer`
    const CExpr *layer;
};

/* ---- macros in pragmas (macro.c), which C's preprocessor leaves alone ---- */

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

/* ---- expressions in pragmas (expression.c): no assignments, casts, sizeof or addresses ---- */

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

/* ---- pragmas (pragma.c) ---- */

/* Whether the lines of a strategy are being read, or those of one whose first line was refused: of
 * these only the first is reported. */
typedef enum StrategyLines { LINES_NONE, LINES_INSIDE, LINES_REFUSED } StrategyLines;

/* A pragma from its line. An unknown directive is reported and gives PRAGMA_BAD. *lines says, and
 * is set to, whether a strategy is open, to which every line then belongs. */
Pragma *pragma_read(CUnit *unit, Macros macros, const PragmaLine *line, StrategyLines *lines);

/* Reports a pragma that is not ours, but was meant to be: its words are misplaced, missing or
 * misspelled. `ours` says whether the file has pragmas of hetucc. */
void pragma_check_stray(Diag *diag, const PragmaLine *line, bool ours);

/* Reads the operands of a pragma that stands in a function, where the variables of `scope` are
 * visible; expressions get slots from *slots. Errors are reported and turn it into PRAGMA_BAD. */
void pragma_resolve(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots);

/* Whether the kind belongs to the next statement (layer, recompute), and whether it is a statement
 * itself. */
bool pragma_marks(const Pragma *pragma);
bool pragma_acts(const Pragma *pragma);

/* ---- functions under `#pragma hspmd op` (operators.c) ---- */

/* Reads the rule of a function, which becomes an operator of the unit. Errors are reported. */
void operator_make(CUnit *unit, Pragma *pragma, CFunction *function);

/* Checks that the kernels and gradients that rules name are there, and that the bodies of operators
 * name the same. `backends` are those that a rule may name a kernel for, the first the one that
 * runs plain C; NULL at the end. */
void operators_check(CUnit *unit, const char *const *backends);

#endif
