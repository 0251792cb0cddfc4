/* clang-format off: it would join the clauses. */

/* Operator rules: what an operator computes and how it may be cut, in factor notation.
 *
 *     y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]
 *     y[i..] = 0.5f * x[i..] * (1 + tanhf(0.7978845608f * (x[i..] + 0.044715f * x[i..] * x[i..] *
 *         x[i..])))
 *     loss[b..], lse[b..] = nll(logits[b.., v], t[b..])   reduction(+: v) offset(v) kernel(k)
 *                                                         grad(g)
 *
 * A factor is an index. A factor stands for one dimension (`i`), for any number of dimensions
 * (`b..`), or for as many as an integer argument says (`a..{n}`). `(g r)` merges factors into one
 * dimension. A factor that no result has is contracted.
 *
 * Names in accesses are those of the C function's tensor parameters, in any order. Parameters of
 * type int, int64_t, float, double, ht_dims and ht_dtype are arguments. Two marks change an access:
 *   ?x, ?x[i] = 1   the tensor may be absent. Terms that have an absent tensor are left out; in
 *                   `body`, the number after `=` is used instead where one is given
 *   xs[][i]         any number of tensors. A factor that only this operand has differs by tensor
 *
 * The forms of a rule:
 *   RULE_BODY       the right side is an expression over accesses, arguments, size(f), numbers and
 *                   functions of math.h (fmaxf and fminf give NaN where either argument is NaN).
 *                   Each term is summed over the contracted factors that it has. The compiler
 *                   writes the kernel and the gradient
 *   RULE_CALL       the right side is NAME(access, ...). The clause `kernel` names the C function
 *                   that computes it, the clause `grad` the one that builds its gradient
 *   RULE_EQUATIONS  as RULE_CALL, but the clause `body` says what is computed, and the compiler
 *                   writes the kernel
 *   RULE_VIEW       y = NAME(x), without indices: the same elements in row-major order, in the
 *                   shape that the argument of the clause `shape` gives
 *
 * Clauses about cutting:
 *   replicate(f, ...)         the factor may not be cut
 *   reduction(op: f, ...)     cutting f makes every result partial under op, `+` or `max`
 *   merge(f: g, ...)          f may be computed piece by piece in a ring (`turns` of a strategy):
 *                             the associative operator g joins the results of two pieces. Operands
 *                             of g: all results of one piece, then all of the other. f is not cut
 *   offset(f, ...)            the kernel uses the start of its piece and the global extent, which
 *                             are in the views that it gets
 *   linear(x, y)              the operator is jointly linear in these operands: where all of them
 *                             are partial in the same way, its results are partial too
 *   causal(s, t: when)        if the expression `when` over integer arguments is not 0, index i
 *                             of s and index j > i of t never meet: results at i depend on no
 *                             element at j, and a sum over s at j has no term from i
 *
 * Clauses about sizes and types:
 *   size(f: expr)             the extent of a factor that only results have, over integer arguments
 *                             and size(f); size(f: +m) sums m over the tensors of its operand
 *   dtype(y: type, x: type)   the element type of a result or operand: an argument of type
 *                             ht_dtype; f32, bf16, f64, i32 or i64; an operand, for its type;
 *                             `wide`: the type that accumulates (f32 for bf16, i64 for i32, else
 *                             the operator's own); for operands also `integer`: i32 or i64. All
 *                             operands without this clause have one type, unless a result has the
 *                             clause. A result without it has the type of the first operand. An
 *                             operator works in the type of its first floating-point operand
 *                             without this clause. A local value of `body` is rounded to the type
 *                             given here, which must be fixed; without the clause it is not rounded
 *   types(t, ...)             the types in which the kernel of a RULE_CALL works; all operands
 *                             without `dtype` have the same one. Without this clause a program of
 *                             bf16 converts them to f32
 *   shape(argument)           RULE_VIEW: the argument of type ht_dims with the result's shape
 *   requires(condition, ...)  a call is refused unless these hold, over arguments that are numbers
 *                             and size(f)
 *
 * Clauses about what a kernel computes:
 *   kernel(f), kernel(cuda: f) the C function that computes a RULE_CALL, on all back ends or on one
 *   body(v[i..] = ...; ...)   equations, so that the compiler can write the kernel and fuse it with
 *                             its neighbours. An equation may use the values of those before it; a
 *                             value that is not a result is local. Terms are summed over factors
 *                             that the value lacks. A value has all factors, or all but those along
 *                             a row, which are then never cut
 *   grad(g), grad(none)       a C function that builds the gradient; none: no gradient flows
 *   operations(expr)          the number of arithmetic operations of a call, over integer arguments
 *                             and size(f) of a device's piece. Without it they are counted in
 *                             `body`, else as one for each element that is read or written
 *   reads(x: expr, ...)       how many elements of x a call reads, an expression as that of
 *                             `operations`. Without the clause every element is read once
 *   neutral(x: number, ...)   elements of operand x that equal the number count for nothing along a
 *                             factor that results lack or that may not be cut. For a result: its
 *                             value where all those elements are neutral: neutral(x: logf(0), y: 0)
 *   shift(n, i: start)        the operator copies: index i of the one tensor is index start + i of
 *                             the other's n. `start` is an expression over integer arguments. If
 *                             the result has n, its other elements are 0
 *   place(y: i)               the result's elements are their own indices along i: 0, 1, 2, ...
 *   row(n)                    the result concatenates the tensors of the variadic operand along n,
 *                             which stands for the factor that only that operand has
 *   pitch(x: s, y: s, ...)    the kernel takes strided rows: the dimensions after s are a row, and
 *                             rows begin ht_view_pitch of the view apart (<hetu/kernel.h>)
 *   inplace(y: x, ...)        the result reuses the operand's storage where no later operator reads
 *                             the operand; an optimizer's result always does
 *
 * Clauses about neighbours, for passes that fuse or rewrite:
 *   plus(y: more, ...)        the kernel adds the optional operand `more`, of the result's indices,
 *                             to the result: an addition after the operator needs no kernel
 *   tiles(op: dim, start)     the result is 0 outside the operand, which lies in dimension `dim`
 *                             from `start` on. A sum of results that fill a tensor is the operator
 *                             `op` of all these operands, with the arguments of the same names
 *   with(x: op, whole)        where `op` computes operand x from other operands of this operator,
 *                             the operator `whole` computes the result of `op` and then those of
 *                             this operator, from the operands without x
 *   epilogue(e)               y[i..] = f(x[i..]): a matrix product can apply f to its result; e is
 *                             f's name in ht_epilogue of <hetu/product.h>
 */

/* clang-format on */
#pragma once

#include "rule/access.h"
#include "support/array.h"

/* One equation of the clause `body`. */
typedef struct RuleEquation {
    int value; // index of the result; from result_count on, result_count + index of a local value
    const Expr *expr;
} RuleEquation;

typedef struct RuleEquations {
    int count, local_count;
    const RuleEquation *at;
    const Access *locals; // values that are no results
} RuleEquations;

/* Clause kernel: the C function that computes a RULE_CALL. */
typedef struct RuleKernel {
    const char *backend; // NULL: on the host, and on every back end whose runtime has the function
    const char *function;
    Position backend_at, at; // positions of these names
} RuleKernel;

/* Clauses kernel, types and operations: how a RULE_CALL is computed. */
typedef struct RuleCall {
    int kernel_count;
    const RuleKernel *kernels;
    unsigned types;         // bit t: the kernel works in DType t; 0: no clause
    const Expr *operations; // NULL: no clause
} RuleCall;

/* Clause requires. */
typedef struct Requirement {
    const Expr *condition;
    const char *text; // as written
} Requirement;
typedef Array(Requirement) Requirements;

/* Clause causal(from, to: when). */
typedef struct RuleCausal {
    const Expr *when; // NULL: no clause
    int from, to;     // numbers of factors
} RuleCausal;

/* Clauses shift(whole, part: shift) and row(row): where copied elements lie. */
typedef struct RuleCopy {
    const Expr *shift; // NULL: no clause
    int whole, part;   // factors
    int row;           // factor; -1: no clause
} RuleCopy;

/* Clause tiles(op: dim, start). */
typedef struct RuleTiles {
    const char *op; // NULL: no clause
    int dim, start; // indices of attributes
} RuleTiles;

/* Clause with(operand: op, whole). */
typedef struct RuleWith {
    const char *op, *whole; // operators; NULL: no clause
    int operand;
} RuleWith;

/* Clause grad(function). */
typedef struct RuleGrad {
    const char *function; // NULL: no clause; "none": no gradient flows
    Position at;          // position of this name
} RuleGrad;
