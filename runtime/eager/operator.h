/* The operators of <hetu/ops.h> on one device. The build generates a table and a function for each
 * operator from its rule (tools/hetu-operators):
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
 * Operands are in the rule's order everywhere. Floating-point loops compute in float, or in double
 * if a tensor of the call is f64. Integer loops compute in int64_t and wrap around. An ellipsis is
 * one factor here; its extent is the product of its dimensions' extents. */
#pragma once

#include "binding/binding.h"
#include "eager/tape.h"

#include <hetu/product.h>

enum { OPERATOR_FACTORS = 16 };

/* An expression over a call's arguments and factor extents; 128 bits, so that nothing overflows. */
typedef __int128 Wide;
typedef Wide OperatorNumber(const ht_attr *attr, const int64_t *size);

/* Returns the number of operations of a call; bit k of `present`: the call has operand k. */
typedef double OperatorWork(const ht_attr *attr, const int64_t *size, uint32_t present);

typedef struct OperatorFactor {
    const char *name;
    bool ellipsis;
    bool contracted, maximum; // no result has the factor; its reduction is a maximum, not a sum
    bool each; // each member of the variadic operand has its own extent; their sum counts
    OperatorNumber *count, *size; // number of dimensions; extent (size clause); NULL: by operands
    uint32_t size_of;             // bit mask of the factors that `size` reads
} OperatorFactor;

typedef struct OperatorAccess {
    const char *name, *text; // "x", "x[b.., i]"
    bool optional;
    Element element;
    int dim_count;
    const RuleDim *dims;
    OperatorNumber *reads; // elements of an operand that a call reads; NULL: all
} OperatorAccess;

typedef struct OperatorRequirement {
    bool (*holds)(const ht_attr *attr, const int64_t *size);
    const char *text;
} OperatorRequirement;

/* Arguments of generated loops: `size` is the extent by factor; `to` and `from` are results and
 * operands in the working type (absent: NULL); half[k]: result k is rounded to bf16. Gradient loops
 * have the result dx, and dy as last operand. */
typedef struct OperatorData {
    const int64_t *size;
    const ht_attr *attr;
    void *const *to;
    const void *const *from;
    const bool *half;
} OperatorData;
typedef void OperatorLoops(const OperatorData *data);

/* Loops for one combination of integer and other tensors. Bit i of `integers`: tensor i is integer;
 * tensors are the operands, then the results. */
typedef struct OperatorVariant {
    uint32_t integers;
    OperatorLoops *f32, *f64;
    const char *refusal; // why this combination has no loops; NULL: there are loops
} OperatorVariant;

typedef struct OperatorVariants {
    int count;
    const OperatorVariant *at;
} OperatorVariants;

/* The gradient of one operand; there is none if `same` is false and there are no loops. */
typedef struct OperatorGradient {
    bool same; // dx is dy if operand and result have the same shape
    OperatorVariants loops;
} OperatorGradient;

/* The backward pass of an operator. */
typedef struct OperatorBackward {
    bool exists;
    void (*function)(ht_grad *g);      // NULL: `gradients` of the rule apply
    const OperatorGradient *gradients; // by operand; NULL: there are none
} OperatorBackward;

/* Types and values of tensors. Open types are those that the rule leaves open. */
typedef struct OperatorValues {
    unsigned types; // bit mask of the ht_dtypes that operands of open type may have; 0: any
    bool alike;     // operands of open type must have equal types
    bool integral;  // integer operands may give an integer result
    bool endless;   // results may be infinite though all operands are finite
} OperatorValues;

typedef enum OperatorKind {
    OPERATOR_LOOPS,
    OPERATOR_KERNEL,
    OPERATOR_VIEW,  // the operand, reshaped to argument number `shape`
    OPERATOR_UPDATE // optimizer kernel, in place; models cannot call it
} OperatorKind;

typedef struct Operator {
    const char *name;
    OperatorKind kind;
    int factor_count, result_count, operand_count, attr_count, requirement_count, group_count,
        shape;
    const OperatorFactor *factors;
    const OperatorAccess *results, *operands;
    const OperatorRequirement *requirements;
    OperatorValues values;
    /* Bit mask of operands that equal the result if all other operands are zero (x in x + 0). */
    uint32_t passes;
    /* Bit masks of operands in which results are jointly linear: all of these 0 give results 0. */
    const uint32_t *groups;
    OperatorVariants loops;
    OperatorWork *operations; // NULL: one operation per element read or written
    ht_kernel *kernel;
    OperatorBackward backward;
} Operator;

/* Calls an operator: checks the call, computes the results, and records the call on the tape for
 * backward. Ends the program with hetucc's message if the call breaks the rule. `operands` has one
 * entry per operand of the rule. */
void operator_call(const Operator *op, const ht_tensors *operands, const ht_attr *attr,
                   ht_tensor *results);

/* A call of an operator. */
typedef struct Call {
    const Operator *op;
    const ht_attr *attr;
    int count;                     // number of operands, each member of a variadic operand counted
    ht_node **operand;             // NULL: absent
    const OperatorAccess **access; // operand of the rule, by operand of the call
    int64_t size[OPERATOR_FACTORS];
} Call;

/* Checks a call against its rule and sets call->size (extents by factor) and the results' types and
 * shapes. Ends the program if the call breaks the rule. */
void call_bind(Call *call, ht_dtype *types, ht_dims *shapes);

/* ---- functions that the loops of operators call ---- */

/* Computes y = x * w, summed over axes that y lacks, plus the bias. Does nothing if y is empty. */
void operator_product(float *y, const float *x, const float *w, const float *bias, int rank,
                      const ht_axis *axes);

/* Round values to bf16, in place. */
void operator_round_float(float *values, int64_t count);
void operator_round_double(double *values, int64_t count);
