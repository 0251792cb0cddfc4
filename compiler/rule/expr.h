/* Expressions of rules: immutable trees, printed as C, evaluated, and differentiated (gradient.h)
 *
 *     size(v) * 2 + n    EXPR_ADD(EXPR_MUL(EXPR_SIZE v, 2), EXPR_ATTR n)
 *
 * Constructors simplify 0 + x, 1 * x and -(-x), which keeps derivatives readable. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Arena Arena;
typedef struct Text Text;
typedef struct Tokens Tokens;

/* The value of an attribute (an argument that is not a tensor), known at compile time. */
typedef struct Attr {
    int64_t i;           // PARAM_INT, PARAM_DTYPE
    double f;            // PARAM_FLOAT
    int count;           // PARAM_SHAPE
    const int64_t *ints; // PARAM_SHAPE
} Attr;

/* clang-format off: it would put each operator on its own line. */
typedef enum ExprKind {
    EXPR_NUMBER, // number
    EXPR_ACCESS, // operand `index` at the rule's indices
    EXPR_ATTR,   // attribute `index`
    EXPR_SIZE,   // global extent of factor `index`; for an ellipsis the product of its extents
    EXPR_RESULT, // in equations: result `index`, or local value `index` - (number of results)
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
    EXPR_CALL    // function of math.h, called `spelling`
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

/* Prints a leaf (EXPR_ACCESS, EXPR_RESULT, EXPR_ATTR or EXPR_SIZE), or an EXPR_CALL's function. */
typedef void ExprLeaf(Text *out, const Expr *leaf, void *context);

/* Appends an expression as C, with only the brackets that precedence requires. */
void expr_print(Text *out, const Expr *expr, ExprLeaf *leaf, void *context);

/* Evaluates an integer expression over arguments and sizes to *value. `size` has an entry for each
 * factor; -1: unknown. Returns false for an unknown size, undefined operation, call or fraction. */
bool expr_integer(const Expr *expr, const Attr *attrs, const int64_t *size, int64_t *value);

/* Applies an operator of two operands to numbers, as C does with doubles; fmod for %. */
double expr_apply(ExprKind kind, double a, double b);

bool expr_equal(const Expr *a, const Expr *b);

/* Returns whether an expression contains a node of `kind` with an index; -1: any index. */
bool expr_mentions(const Expr *expr, ExprKind kind, int index);

/* Returns the expression with every part that equals `pattern` replaced by `with`. */
const Expr *expr_replace(Arena *arena, const Expr *expr, const Expr *pattern, const Expr *with);

typedef const Expr *ExprLeafMap(const Expr *leaf, void *context);
/* Returns the expression with leaf(e) in place of each leaf e; simplifies negations. */
const Expr *expr_mapped(Arena *arena, const Expr *expr, ExprLeafMap *leaf, void *context);

/* Makes an expression of one to three arguments without simplifying it; unused ones are NULL. */
const Expr *expr_node(Arena *arena, ExprKind kind, const Expr *a, const Expr *b, const Expr *c);

/* Make simplified expressions. `spelling` NULL: the number is printed. */
const Expr *expr_number(Arena *arena, double number, const char *spelling);
const Expr *expr_leaf(Arena *arena, ExprKind kind, int index);
const Expr *expr_negative(Arena *arena, const Expr *a);
const Expr *expr_binary(Arena *arena, ExprKind kind, const Expr *a, const Expr *b);
const Expr *expr_select(Arena *arena, const Expr *condition, const Expr *a, const Expr *b);
const Expr *expr_call(Arena *arena, const char *name, const Expr *const *args, int count);

/* A term of a body, which is a sum. Each term is summed over the contracted factors that it has. */
typedef struct ExprTerm {
    const Expr *expr;
    bool negative;
} ExprTerm;

/* Writes the first `most` terms of a body, left to right. Returns the number of all terms. */
int expr_terms(const Expr *body, ExprTerm *terms, int most);

/* Returns the number of operators, selections (a ? b : c) and calls in an expression. */
int expr_operations(const Expr *expr);

/* A term that is a product of two operands, perhaps with a number or an argument, in any order. */
typedef struct ProductTerm {
    int count, operand[2]; // operands so far; 2 in a complete product
    const Expr *scale;     // the number or argument; NULL: none
} ProductTerm;

/* Adds the factors of a term to `product`, which the caller zeroes. Returns false if the term is
 * not such a product. */
bool expr_is_product(const Expr *term, ProductTerm *product);

/* Returns an expression with its numbers and functions converted from float to double. */
const Expr *expr_widened(Arena *arena, const Expr *expr);

/* Returns how many arguments a function of math.h takes; 0: rules cannot call it. */
int expr_function_arity(const char *name);
const char *const *expr_function_names(void);

/* A binary operator's sign in C, and precedence from 2 to 5; 0 for other kinds of expression. */
typedef struct ExprOperator {
    const char *sign;
    int level;
} ExprOperator;
extern const ExprOperator expr_operators[];

typedef const Expr *ExprPrimary(Tokens *tokens, void *context);
/* Reads an expression; NULL after an error. `primary` reads leaves that begin with `?`, with a name
 * that no bracket follows, or with `size`; it returns NULL after it reported an error. */
const Expr *expr_parse(Tokens *tokens, ExprPrimary *primary, void *context);
