/* Pragmas: `#pragma hspmd ...` lines, and `_Pragma("hspmd ...")` from macros.
 *
 * pragma_read makes one from its text; it is lexed with macros expanded, each token at the place where the user wrote it. Those
 * inside functions are finished by pragma_resolve, when the scope is known.
 */
#ifndef FRONTEND_PRAGMA_PRAGMA_H
#define FRONTEND_PRAGMA_PRAGMA_H

#include "frontend/ctree.h"

typedef enum PragmaKind {
    PRAGMA_DIMS,
    PRAGMA_LAYER,
    PRAGMA_RECOMPUTE,
    PRAGMA_SHARD,
    PRAGMA_RESHARD,
    PRAGMA_SHAPE,
    PRAGMA_OP,
    PRAGMA_STRATEGY, // a line of a strategy, from `strategy` to `end strategy`
    PRAGMA_BAD       // an error was reported
} PragmaKind;

typedef enum TokenKind { TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_PUNCTUATION, TOKEN_END } TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text;
    Position at;
    int begin, end; // offsets in the pragma's text; of the macro's name where it was expanded
    bool expanded;  // it came out of a macro
} Token;

/* Tokens, the last one TOKEN_END; `next` is the reader's place. */
typedef struct Tokens {
    Array(Token) list;
    int next;
} Tokens;

struct Pragma {
    PragmaKind kind;
    const char *file;       // of a line: where it stands, from `begin` to `end`; NULL from `_Pragma`
    int begin, end;
    bool used;              // it found its place
    Position at;            // of the directive
    const char *text;       // all of it, after `hspmd`, without comments
    const char *raw;        // the same as written
    Position text_at;
    bool fixed;             // every position is text_at (`_Pragma`)
    const char *directive;
    Tokens tokens;          // behind the directive
    Array(const CExpr *) operands;       // dims, shard, reshard
    Array(const char *) names;           // dims: NULL for `_`, "three heads _" for factors; shape: the variables
    Array(Position) name_at;
    const char *layout;                  // shard, reshard
    Position layout_at;
    int rule_begin;                      // op: where the rule begins in text
    const char *tower;                   // layer; NULL the default
    const CExpr *layer;
};

/* The variables in scope, the innermost first. */
typedef struct Scope Scope;
struct Scope {
    CVar *var;
    const Scope *outer;
};

/* A macro; body is its replacement. */
typedef struct Macro {
    const char *name;
    bool takes_arguments, variadic;
    Array(const char *) params;
    const char *body;
} Macro;

/* How pragmas look up macros; NULL when there is no such macro where the pragma stands. */
typedef const Macro *MacroLookup(void *context, const Pragma *pragma, const char *name);
typedef struct Macros {
    MacroLookup *lookup;
    void *context;
} Macros;

/* What follows `hspmd`. */
typedef struct PragmaText {
    const char *text, *raw; // without comments, and as written
    Position at;
    bool fixed;             // from `_Pragma`
    const char *file;       // of a line: where it stands
    int begin, end;
} PragmaText;

/* Whether the lines of a strategy are being read, or those of one whose first line was refused: of these only the first is reported. */
typedef enum StrategyLines { LINES_NONE, LINES_INSIDE, LINES_REFUSED } StrategyLines;

/* A pragma from its text. An unknown directive is reported and gives PRAGMA_BAD. *lines says, and is set to, whether a
 * strategy is open, to which every line then belongs. */
Pragma *pragma_read(CUnit *unit, Macros macros, const PragmaText *text, StrategyLines *lines);

/* Reports a pragma that is not ours, but was meant to be: its words are misplaced, missing or misspelled. `ours` says whether the file has pragmas of hetucc. */
void pragma_check_stray(Diag *diag, Arena *arena, Position at, const char *text, bool ours);

/* Reads the operands of a pragma that stands in a function, where the variables of `scope` are visible; expressions get slots from *slots.
 * Errors are reported and turn it into PRAGMA_BAD. */
void pragma_resolve(CUnit *unit, Pragma *pragma, const Scope *scope, int *slots);

/* Whether the kind belongs to the next statement (layer, recompute), and whether it is a statement itself. */
bool pragma_marks(const Pragma *pragma);
bool pragma_acts(const Pragma *pragma);

/* The position of an offset in a pragma's text. */
Position pragma_position(const Pragma *pragma, int offset);

/* The text of the tokens from `first` to before `last`, as written where no macro was expanded. */
const char *tokens_text(Arena *arena, const Pragma *pragma, int first, int last);

/* Splits the text of a pragma from `begin` on into tokens and expands macros. */
void tokens_read(CUnit *unit, Macros macros, const Pragma *pragma, int begin, Tokens *tokens);

/* An expression of C over names in scope; NULL after an error was reported. Stops at a `,`, `:` or `)` that is not its own. */
const CExpr *pexpr_read(CUnit *unit, Tokens *tokens, const Scope *scope, int *slots);

#endif
