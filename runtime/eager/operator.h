/* The operators of <hetu/ops.h> on one device: what the build writes of each from its rule
 * (tools/hetu-operators), and how it is called.
 *
 *     static const Operator ht_relu_operator = {.name = "ht_relu", .kind = OPERATOR_LOOPS, ...};
 *
 *     ht_tensor ht_relu(ht_tensor x)
 *     {
 *         ht_tensor y;
 *         operator_call(&ht_relu_operator, (const ht_tensors[]){{1, &x}}, NULL, &y);
 *         return y;
 *     }
 *
 * Operands stand in the rule's order everywhere. Numbers of floating point are computed with in
 * float, or in double where a tensor of the call is of f64; integers in int64_t, and they wrap
 * around. An ellipsis is one index here, as long as its dimensions together.
 */
#ifndef EAGER_OPERATOR_H
#define EAGER_OPERATOR_H

#include "eager/tape.h"

#include <hetu/product.h>

enum { OPERATOR_FACTORS = 16 };

/* A number over arguments and the factors' extents. Its parts do not overflow. */
typedef __int128 Wide;
typedef Wide OperatorNumber(const ht_attr *attr, const int64_t *size);

/* How many operations a call does that has some of the rule's operands, a bit each. */
typedef double OperatorWork(const ht_attr *attr, const int64_t *size, uint32_t present);

typedef struct OperatorFactor {
    const char *name;
    bool ellipsis;
    bool contracted, maximum; // no result has it; it reduces by the maximum
    bool each; // every member of the variadic operand has its own, and the extent is their sum
    OperatorNumber *count, *size; // of dimensions, and the clause size; NULL: the operands tell
    uint32_t size_of;             // the factors that `size` reads, as bits
} OperatorFactor;

/* As Element and Access of compiler/rule/rule.h. */
typedef enum OperatorElement {
    ELEMENT_FOLLOWS,
    ELEMENT_FIXED,
    ELEMENT_ARGUMENT,
    ELEMENT_OPERAND,
    ELEMENT_WIDE,
    ELEMENT_INTEGER
} OperatorElement;

typedef struct OperatorDim {
    int count;
    const int *factors;
} OperatorDim;

typedef struct OperatorAccess {
    const char *name, *text; // "x", "x[b.., i]"
    bool optional;
    OperatorElement element;
    int of; // the type, argument or operand
    int dim_count;
    const OperatorDim *dims;
} OperatorAccess;

typedef struct OperatorRequirement {
    bool (*holds)(const ht_attr *attr, const int64_t *size);
    const char *text;
} OperatorRequirement;

/* What loops compute with: extents by factor; results and operands in the types that are computed
 * in, absent ones NULL; whether a result is rounded to bf16. The loops of a gradient have one
 * result, dx, and dy behind the operands. */
typedef struct OperatorData {
    const int64_t *size;
    const ht_attr *attr;
    void *const *to;
    const void *const *from;
    const bool *half;
} OperatorData;
typedef void OperatorLoops(const OperatorData *data);

/* The loops for a choice of tensors that are of integers: the operands, and behind them the
 * results, a bit each. */
typedef struct OperatorVariant {
    uint32_t integers;
    OperatorLoops *f32, *f64;
    const char *refusal; // NULL, or why there are none
} OperatorVariant;

typedef struct OperatorVariants {
    int count;
    const OperatorVariant *at;
} OperatorVariants;

/* How the gradient flows back to an operand: not at all, where there is nothing here. */
typedef struct OperatorGradient {
    bool same; // it is that of the result where both have one shape
    OperatorVariants loops;
} OperatorGradient;

typedef enum OperatorKind {
    OPERATOR_LOOPS,
    OPERATOR_KERNEL,
    OPERATOR_VIEW,  // the operand in the shape that argument `shape` gives
    OPERATOR_UPDATE // in place: for optimizers, which run its kernel
} OperatorKind;

typedef struct Operator {
    const char *name;
    OperatorKind kind;
    int factor_count, result_count, operand_count, attr_count, requirement_count, group_count,
        shape;
    const OperatorFactor *factors;
    const OperatorAccess *results, *operands;
    const OperatorRequirement *requirements;
    unsigned types;  // that the operands without a type of their own may have, a bit each; 0: any
    bool alike;      // those operands have one type
    bool integral;   // of integers it makes integers
    bool endless;    // results may be infinite though no operand is, by its rule
    uint32_t passes; // operands, as bits, that are the result where all others are zero
    const uint32_t *groups; // of operands in which the results are linear together, as bits
    OperatorVariants loops;
    OperatorWork *operations; // NULL: one an element that it touches
    ht_kernel *kernel;
    bool grows;                        // a gradient flows
    void (*gradient)(ht_grad *g);      // NULL: by the rule
    const OperatorGradient *gradients; // by operand; NULL: there are none
} Operator;

/* Calls an operator: checks the call, makes the results, computes them, and remembers what the
 * gradient needs. A call that does not keep to the rule ends the program with the words that hetucc
 * has for it. `operands` has an entry an operand of the rule. */
void operator_call(const Operator *op, const ht_tensors *operands, const ht_attr *attr,
                   ht_tensor *results);

/* A call at work. */
typedef struct Call {
    const Operator *op;
    const ht_attr *attr;
    int count;                     // of operands: the members of a variadic one stand in a row
    ht_node **operand;             // NULL: absent
    const OperatorAccess **access; // the operand of the rule that each one is
    int64_t size[OPERATOR_FACTORS];
} Call;

/* Checks a call and sets its sizes; `types` and `shapes` are those of the results. */
void call_bind(Call *call, ht_dtype *types, ht_dims *shapes);

/* ---- for loops ---- */

/* y = x * w summed over the axes that y lacks, plus the bias. */
void operator_product(float *y, const float *x, const float *w, const float *bias, int rank,
                      const ht_axis *axes);

/* Rounds values to bf16. */
void operator_round_float(float *values, int64_t count);
void operator_round_double(double *values, int64_t count);

#endif
