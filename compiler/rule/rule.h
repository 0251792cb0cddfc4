/* clang-format off: it would join the clauses. */

/* Operator rules: what an operator computes and how it may be cut, in factor notation.
 *
 *     y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]
 *     y[i..] = 0.5f * x[i..] * (1 + tanhf(0.7978845608f * (x[i..] + 0.044715f * x[i..] * x[i..] *
 *         x[i..])))
 *     loss[b..], lse[b..] = nll(logits[b.., v], t[b..])   reduction(+: v) offset(v) kernel(k)
 *                                                         grad(g)
 *
 * A factor is an index that stands for a dimension (`i`), for any number of them (`b..`), or for a
 * number given by an integer argument (`a..{n}`); `(g r)` merges factors into one dimension. A
 * factor that the results lack is contracted.
 *
 * The forms of a rule:
 *   RULE_BODY   the right side is an expression over accesses, arguments, size(f), numbers and the
 *               functions of math.h (of which fmaxf and fminf give NaN where either argument is
 *               NaN): it is the operator, one value an index; contracted factors are summed over (a
 *               term without them is added once). The compiler writes the kernel and the gradient.
 *   RULE_CALL   the right side is NAME(access, ...): a C kernel computes it (clause `kernel`), and
 *               the clause `grad` names its gradient.
 *   RULE_EQUATIONS   the same without `kernel`: the clause `body` says what is computed, and the
 *                    compiler writes the kernel.
 *   RULE_VIEW   y = NAME(x) without brackets: the same elements in row-major order in the shape
 *               that the argument of clause `shape` gives.
 *
 * Clauses:
 *   replicate(f, ...)         the factor may not be cut
 *   reduction(op: f, ...)     cutting f makes every result partial under op, `+` or `max`
 *   merge(f: g, ...)          the results of two pieces of a factor that some result lacks,
 *                             complete but for the other piece, are joined by the operator g, which
 *                             is associative: of all results of one piece, and then of the other,
 *                             it makes those of both. The factor is not cut; its pieces may come
 *                             one after the other (`turns` of a strategy)
 *   offset(f, ...)            the kernel uses where its pieces start and the global extent (they
 *                             are in the views that it gets)
 *   size(f: expr)             the extent of a factor that only results have, over integer arguments
 *                             and size(f); size(f: +m) adds up a variadic factor
 *   dtype(y: type, x: type)   the element type of a result or operand: an argument of type
 *                             ht_dtype; one of f32 bf16 f64 i32 i64; an operand, for its type; or
 *                             `wide`: f32 where the operator works in bf16, i64 for i32, else the
 *                             type that it works in; of an operand also `integer`: i32 or i64. The
 *                             operands without it have one type, unless the result has it. A result
 *                             without it is as the first operand. An operator works in the type of
 *                             its first floating-point operand without this clause. A value of a
 *                             `body` in front that is no result is rounded to its type, which must
 *                             be fixed; without it it is used as it was computed
 *   types(t, ...)             the types that the kernel of a RULE_CALL works in, all operands
 *                             without `dtype` in the same; without it a program of bf16 gives it
 *                             f32
 *   shape(argument)           RULE_VIEW: the argument of type ht_dims that gives the result's shape
 *   operations(expr)          how many operations a call of a RULE_CALL does, over integer
 *                             arguments and the sizes size(f) of its own piece; without it those of
 *                             its `body`, or one for each element that it reads or writes
 *   reads(x: expr, ...)       how many elements of the operand a call reads, over the same; without
 *                             it all, each once
 *   requires(condition, ...)  what a call keeps to, over arguments that are numbers and size(f);
 *                             one that does not is refused
 *   linear(x, y)              jointly linear: partial values pass when all of these operands are
 *                             partial alike
 *   causal(s, t: when)        where the expression over integer arguments is not 0, results at
 *                             place i of s depend on no element behind place i of t, and add
 *                             nothing to sums over s behind place i of t
 *   neutral(x: number, ...)   elements of the operand that are the number count for nothing along a
 *                             factor that results lack or that may not be cut; a result that is
 *                             named is its number where they stand: neutral(x: logf(0), y: 0)
 *   shift(n, i: start)        place i of the one is place start + i of the other, where `start` is
 *                             an expression over integer arguments: the operator copies what lies
 *                             there, and makes the rest of n, if it is a result's, 0
 *   place(y: i)               the result's elements are their places along i: 0, 1, 2, ...
 *   row(n)                    the result has the members of the variadic operand one behind the
 *                             other along n, which they have instead of their own factor
 *   pitch(x: s, y: s, ...)    the kernel takes the tensor in rows that lie apart: what stands
 *                             behind the factor s is a row, and rows are ht_view_pitch of the view
 *                             apart (<hetu/kernel.h>)
 *   inplace(y: x, ...)        the result takes the storage of the operand where that is not read
 *                             again; an optimizer's always
 *   plus(y: more, ...)        the operand `more`, which may be absent and has the indices of the
 *                             result, is added to it: the sum of the result and something else is
 *                             this operator with that operand, so that it takes no operator of its
 *                             own
 *   kernel(f) kernel(cuda: f) the C function that computes a RULE_CALL, and the one that does so on
 *       a back end, by its name
 *   body(v[i..] = ...; ...)   by equations, what a kernel computes, so that the compiler can
 *                             compute it together with its neighbours. An equation may use the
 *                             values of those before it; a value that is no result stays inside.
 *                             Its terms are summed over the factors that it lacks. A value has all
 *                             factors, or all but those of a row, which are then never cut
 *   tiles(op: dim, start)     the result is 0 but for the operand, which lies in dimension `dim`
 *                             from `start` on (integer arguments): the sum of results that fill a
 *                             tensor is what the operator `op` makes of their operands in a row,
 *                             with the arguments of the same names
 *   with(x: op, whole)        where the operand x is the result of the operator `op` of other
 *                             operands of this one, the operator `whole` makes of these operands, x
 *                             left out, the result of `op` and behind it those of this one
 *   epilogue(e)               y[i..] = f(x[i..]): a product can apply f to its result; e names it
 *                             in ht_epilogue of <hetu/product.h>
 *   grad(g), grad(none)       the gradient, a C function built from operators; none: no gradient
 *                             flows
 *
 * Names in accesses are those of the C function's tensor parameters, in any order; `?x` may be
 * absent (`?x[i] = 1`: and is 1 in a `body`, which otherwise leaves out the terms that have it, as
 * an expression does); `xs[]` before the indices takes any number of tensors (a factor that only a
 * variadic operand has is one a tensor). A C parameter of type int, int64_t, float, double, ht_dims
 * or ht_dtype is an argument.
 */

/* clang-format on */
#ifndef RULE_RULE_H
#define RULE_RULE_H

#include "rule/dtype.h"
#include "rule/expr.h"
#include "support/array.h"

enum { IR_MAX_RESULTS = 8 }; // of an operator

/* A parameter of the operator's C function. */
typedef enum ParamKind {
    PARAM_TENSOR,
    PARAM_TENSORS,
    PARAM_INT,
    PARAM_FLOAT,
    PARAM_SHAPE,
    PARAM_DTYPE
} ParamKind;
typedef struct OpParam {
    const char *name;
    ParamKind kind;
} OpParam;

typedef enum FactorReduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MAX } FactorReduction;

typedef struct Factor {
    const char *name;
    Position at;
    bool ellipsis;
    const Expr *count; // `a..{count}`; NULL where matching decides
    const Expr *size;  // clause size; NULL where an operand gives it
    bool replicate, offset;
    bool contracted;           // no result has it
    FactorReduction reduction; // clause reduction; of a contracted factor of a RULE_BODY REDUCE_SUM
    const char *merge;         // clause merge: the operator; NULL: none
    Position merge_at;         // of this name
} Factor;

/* A written dimension: one factor, or several merged, the first major. */
typedef struct RuleDim {
    int count;
    const int *factors;
} RuleDim;

/* Where the element type of an operand or result comes from: clause dtype. */
typedef enum ElementKind {
    ELEMENT_FOLLOWS,  // results: as the first operand; operands: any
    ELEMENT_FIXED,    // DType `index`
    ELEMENT_ARGUMENT, // argument `index` (into the attributes)
    ELEMENT_OPERAND,  // as operand `index`
    ELEMENT_WIDE,     // the type in which sums over the type that the operator works in are kept
    ELEMENT_INTEGER   // operands: i32 or i64
} ElementKind;
typedef struct Element {
    ElementKind kind;
    int index;
} Element;

typedef struct Access {
    const char *name;
    Position at;
    bool optional, variadic;
    int dim_count;
    const RuleDim *dims;
    int linear;  // operands: the linear group (1, 2, ...) that this one belongs to; 0 none
    int inplace; // results: the operand whose storage is taken; -1 none
    int pitch;   // clause pitch: the factor behind which rows begin; -1 none
    int plus;    // results: clause plus: the operand that is added; -1 none
    Element element;
    const Expr *reads;   // operands: elements that a call reads; NULL: all
    int place;           // results: clause place: the factor; -1 none
    const Expr *neutral; // clause neutral; NULL: not given
    const Expr *absent;  // operands: the number that stands for an absent one in equations; NULL:
                         // terms with it are left out
} Access;

/* An equation of the clause `body`. */
typedef struct RuleEquation {
    int value; // a result, or behind the results a local value
    const Expr *expr;
} RuleEquation;

/* Of the clause kernel: the C function that computes a RULE_CALL. */
typedef struct RuleKernel {
    const char *backend; // NULL: on the host, and on every back end whose runtime has the function
    const char *function;
    Position backend_at, at; // of these names
} RuleKernel;

/* Of the clause requires. */
typedef struct Requirement {
    const Expr *condition;
    const char *text; // as written
} Requirement;
typedef Array(Requirement) Requirements;

typedef enum RuleKind { RULE_BODY, RULE_CALL, RULE_EQUATIONS, RULE_VIEW } RuleKind;

/* What an operator does with its elements, as far as its rule says so by an expression. */
typedef enum RuleForm {
    RULE_OTHER,     // no RULE_BODY
    RULE_MAP,       // each element of the result by itself: no factor is contracted
    RULE_REDUCTION, // a sum over contracted factors
    RULE_PRODUCT    // a sum of products of two operands, and perhaps a term that may be absent
} RuleForm;

typedef struct Rule {
    RuleKind kind;
    RuleForm form;
    const char *text; // as written, blanks normalised; parses back
    int factor_count, result_count, operand_count;
    const Factor *factors;
    const Access *results, *operands;
    const Expr *body;                // RULE_BODY
    int local_count, equation_count; // clause body
    const Access *locals;
    const RuleEquation *equations;
    Requirements requirements;
    const Expr *operations; // NULL: not given
    int shape_attr;         // RULE_VIEW
    unsigned types;         // clause types: a bit a DType; 0 when it is not given
    int kernel_count;       // clauses kernel
    const RuleKernel *kernels;
    const Expr *causal;          // clause causal: when; NULL: never
    int causal_from, causal_to;  // its factors s and t
    const Expr *shift;           // clause shift: start; NULL: none
    int shift_whole, shift_part; // its factors n and i
    int row;                     // clause row: its factor; -1 none
    const char *tiles;           // NULL: none
    int tiles_dim, tiles_start;  // arguments
    const char *with, *whole;    // clause with: the operators; NULL: none
    int with_operand;
    const char *epilogue; // NULL: none. Of RULE_EQUATIONS: the first is a product, and the second
                          // applies this to it
    const char *grad;     // NULL: none given; "none": no gradient flows
    Position grad_at;     // of this name
} Rule;

/* An operator: a C function with a rule. Attributes are the parameters that are no tensors, in
 * order. */
typedef struct OpDef {
    const char *name;
    Position at;
    int param_count, attr_count;
    const OpParam *params; // tensors and attributes, in the C function's order
    const Rule *rule;
} OpDef;

/* Reads a rule with its clauses, up to the end of the line. The parameters resolve names. NULL
 * after errors were reported. */
const Rule *rule_parse(Tokens *tokens, const OpParam *params, int param_count);

/* The operator `name` with a rule that the compiler itself inserts; parameters are made up from the
 * text: every operand a tensor, and no attributes. */
const OpDef *rule_inserted(Arena *arena, const char *name, const char *text);

/* The operator that gives the same values in another floating-point type. */
const OpDef *rule_convert(Arena *arena, DType dtype);

/* The clause that says what computes a RULE_CALL on a back end: its own, or else the one for all;
 * NULL: none does. */
const RuleKernel *rule_kernel(const Rule *rule, const char *backend);

/* Appends an access as the rule writes it: "x[b.., (g r)]", "xs[][i]". */
void rule_print_access(Text *out, const Rule *rule, const Access *access);

/* Whether a factor stands in some dimension. */
bool access_has(const Access *access, int factor);

/* Whether a rule gives its one operand as it is, perhaps in another element type. */
bool rule_is_copy(const Rule *rule);

/* Whether a rule adds up its two operands, element by element. */
bool rule_is_sum(const Rule *rule);

/* The operands that partial sums may pass through together: fills `group` (operand_count entries;
 * 0: none). From clause `linear`, or from the body. */
void rule_linear(const Rule *rule, int *group);

/* The parameter that attribute `index` of an operator is. */
ParamKind opdef_attr_kind(const OpDef *def, int index);

/* Whether operands whose type the rule leaves open have one type: unless the rule says what the
 * result's is; for a kernel, where it says in which types it works. */
bool rule_of_one_type(const Rule *rule);

/* Whether an operator makes integers of integers: its expression neither divides nor has parts that
 * are none. */
bool opdef_is_integral(const OpDef *def);

/* The float in what C computes in integers alone: NULL where an expression has none. `integers` has
 * a bit for each operand whose elements are integers, or that is absent. */
const Expr *opdef_float_in(const OpDef *def, const Expr *expr, uint64_t integers);

/* Whether results may be infinite though no operand is: an infinite number stands in the rule's
 * expressions, such as logf(0), or the operator says by one what it makes of nothing: a maximum of
 * no elements, or the result of a piece (clause merge) that a row sees nothing of. */
bool rule_has_infinity(const Rule *rule);

/* Why the operator's remainders are none of integers, as C has them; NULL where they are. */
const char *opdef_remainder(Arena *arena, const OpDef *def, uint64_t integers);

#endif
