/* Expressions of rules: printing as C, evaluation over arguments and sizes, symbolic derivatives
 * over the functions of math.h.
 *
 * Expressions are never changed in place. The constructors simplify what is certain (0 + x, 1 * x,
 * -(-x)), so that derivatives stay readable.
 */
#ifndef RULE_EXPR_H
#define RULE_EXPR_H

#include "support/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Text Text;
typedef struct Tokens Tokens;

/* The value of an argument that is no tensor: known at compile time. */
typedef struct Attr {
    int64_t i;           // PARAM_INT, PARAM_DTYPE
    double f;            // PARAM_FLOAT
    int count;           // PARAM_SHAPE
    const int64_t *ints; // PARAM_SHAPE
} Attr;

/* clang-format off: it would give each operator a line. */
typedef enum ExprKind {
    EXPR_NUMBER, // number
    EXPR_ACCESS, // operand `index` at the rule's own indices
    EXPR_ATTR,   // argument `index` (into the attributes)
    EXPR_SIZE,   // global extent of factor `index` (a product for an ellipsis)
    EXPR_RESULT, // in equations: result `index`, or behind the results local value `index`
    EXPR_NEG,
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV,
    EXPR_MOD,
    EXPR_LT,
    EXPR_LE,
    EXPR_GT,
    EXPR_GE,
    EXPR_EQ,
    EXPR_NE,
    EXPR_SELECT, // a ? b : c
    EXPR_CALL    // function of math.h `name`
} ExprKind;
/* clang-format on */
typedef struct Expr Expr;
struct Expr {
    ExprKind kind;
    int index;
    double number;
    const char *spelling; // EXPR_NUMBER: as written; EXPR_CALL: the function
    int arg_count;
    const Expr *arg[3];
};

/* Prints a leaf (EXPR_ACCESS, EXPR_RESULT, EXPR_ATTR, EXPR_SIZE), or the name of what an EXPR_CALL
 * calls, for expr_print. */
typedef void ExprLeaf(Text *out, const Expr *leaf, void *context);

/* Appends `expr` as C, with the brackets that precedence asks for and no others. */
void expr_print(Text *out, const Expr *expr, ExprLeaf *leaf, void *context);

/* The value of an integer expression over arguments and sizes: `size` has one entry a factor, -1
 * where it is not known. False where something is not known, or where a division by zero or an
 * overflow comes up. */
bool expr_integer(const Expr *expr, const Attr *attrs, const int64_t *size, int64_t *value);

/* What an operator of two operands makes of numbers, as C does with doubles, and fmod for %. */
double expr_apply(ExprKind kind, double a, double b);

bool expr_equal(const Expr *a, const Expr *b);

/* Whether a leaf of `kind` with `index` occurs (index -1: any). */
bool expr_mentions(const Expr *expr, ExprKind kind, int index);

/* `expr` with every part that equals `pattern` replaced. */
const Expr *expr_replace(Arena *arena, const Expr *expr, const Expr *pattern, const Expr *with);

/* `expr` with every leaf (an expression without arguments) replaced by what `leaf` gives for it; a
 * minus is simplified as in what is read. */
typedef const Expr *ExprLeafMap(const Expr *leaf, void *context);
const Expr *expr_mapped(Arena *arena, const Expr *expr, ExprLeafMap *leaf, void *context);

/* An expression of one to three arguments, those behind them NULL; nothing is simplified. */
const Expr *expr_node(Arena *arena, ExprKind kind, const Expr *a, const Expr *b, const Expr *c);

/* Constructors that simplify. `spelling` NULL: made up from the number. */
const Expr *expr_number(Arena *arena, double number, const char *spelling);
const Expr *expr_leaf(Arena *arena, ExprKind kind, int index);
const Expr *expr_negative(Arena *arena, const Expr *a);
const Expr *expr_binary(Arena *arena, ExprKind kind, const Expr *a, const Expr *b);
const Expr *expr_select(Arena *arena, const Expr *condition, const Expr *a, const Expr *b);
const Expr *expr_call(Arena *arena, const char *name, const Expr *const *args, int count);

/* A body is a sum of terms; each is summed over the contracted factors that it has. */
typedef struct ExprTerm {
    const Expr *expr;
    bool negative;
} ExprTerm;

/* The terms of a body, left to right, into `terms`; how many there are, at most `most` are
 * written. */
int expr_terms(const Expr *body, ExprTerm *terms, int most);

/* Operations of an expression at one index. */
int expr_operations(const Expr *expr);

/* A term that is a product of two operands of the rule, and perhaps of a number or an argument, in
 * any order. */
typedef struct ProductTerm {
    int count, operand[2]; // 2 when the term is read
    const Expr *scale;     // NULL: none
} ProductTerm;

/* Adds the factors of a term to those of `product`, which begins empty; false when it is something
 * else. */
bool expr_is_product(const Expr *term, ProductTerm *product);

/* The expression with numbers and functions of float turned to double. */
const Expr *expr_widened(Arena *arena, const Expr *expr);

/* How many arguments the function of math.h takes; 0 when rules cannot call it. The names end with
 * NULL. */
int expr_function_arity(const char *name);
const char *const *expr_function_names(void);

/* How C writes the operators of two arguments, and how tightly they bind: from 2 to 5; 0 for all
 * other kinds. */
typedef struct ExprOperator {
    const char *sign;
    int level;
} ExprOperator;
extern const ExprOperator expr_operators[];

/* Reads an expression. `primary` is asked for what begins with a name that is no function of
 * math.h, or with `?`; it reports what it does not know and gives NULL. NULL after an error was
 * reported. */
typedef const Expr *ExprPrimary(Tokens *tokens, void *context);
const Expr *expr_parse(Tokens *tokens, ExprPrimary *primary, void *context);

#endif
