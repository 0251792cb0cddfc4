/* The operators' test cases: for each its operands and the shape of its result. The model (operators.c) builds them from operators, the reference
 * (reference.c) computes them in double with plain loops.
 *
 * Sizes divide by little on purpose, and some are smaller than the number of devices. X(name, result, operands...) lists a case; an operand is f(...) for a
 * parameter or i(below, ...) for integers of 0 to before `below` that are fed.
 */
#ifndef OPERATORS_CASES_H
#define OPERATORS_CASES_H

#include <stdint.h>

enum { OPERANDS = 5, RANK = 4 };

typedef struct Shape {
    int rank;
    int64_t extent[RANK];
} Shape;

typedef struct Operand {
    int below; // integers; 0: floating point
    Shape shape;
} Operand;

typedef struct Case {
    const char *name;
    Shape result;
    int count;
    Operand operand[OPERANDS];
} Case;

#define SHAPE(...) {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}
#define F(...) {0, SHAPE(__VA_ARGS__)}
#define I(below, ...) {below, SHAPE(__VA_ARGS__)}
#define SCALAR {0}

#define OPERATOR_CASES(X) \
    X(linear, 3, SHAPE(3, 5, 7), F(3, 5, 9), F(7, 9), F(7)) \
    X(linear_wide, 2, SHAPE(5, 3, 4), F(5, 6), F(3, 4, 6)) \
    X(matmul, 2, SHAPE(3, 5, 7), F(3, 5, 6), F(3, 6, 7)) \
    X(matmul_flat, 2, SHAPE(7, 5), F(7, 9), F(9, 5)) \
    X(add, 2, SHAPE(3, 5, 7), F(3, 5, 7), F(5, 7)) \
    X(add_same, 2, SHAPE(5, 7), F(5, 7), F(5, 7)) \
    X(sub, 2, SHAPE(3, 5, 7), F(3, 5, 7), F(7)) \
    X(mul, 2, SHAPE(3, 5, 7), F(3, 5, 7), F(5, 7)) \
    X(div, 2, SHAPE(3, 5, 7), F(3, 5, 7), F(5, 7)) \
    X(scale, 1, SHAPE(5, 7), F(5, 7)) \
    X(relu, 1, SHAPE(5, 7), F(5, 7)) \
    X(gelu, 1, SHAPE(5, 7), F(5, 7)) \
    X(silu, 1, SHAPE(5, 7), F(5, 7)) \
    X(exp, 1, SHAPE(5, 7), F(5, 7)) \
    X(detach, 2, SHAPE(5, 7), F(5, 7), F(5, 7)) \
    X(cast, 1, SHAPE(5, 7), F(5, 7)) \
    X(cast_bf16, 1, SHAPE(5, 7), F(5, 7)) \
    X(sum, 1, SCALAR, F(3, 5, 7)) \
    X(mean, 1, SCALAR, F(3, 5, 7)) \
    X(softmax, 1, SHAPE(3, 5, 7), F(3, 5, 7)) \
    X(layer_norm, 3, SHAPE(3, 5, 7), F(3, 5, 7), F(7), F(7)) \
    X(layer_norm_bare, 1, SHAPE(5, 7), F(5, 7)) \
    X(rms_norm, 2, SHAPE(3, 5, 7), F(3, 5, 7), F(7)) \
    X(rms_norm_bare, 1, SHAPE(5, 7), F(5, 7)) \
    X(l2_norm, 1, SHAPE(3, 5, 7), F(3, 5, 7)) \
    X(layer_norm_stats, 4, SHAPE(3, 5), F(3, 5, 7), F(7), F(7), F(7)) \
    X(layer_norm_mean, 1, SHAPE(3, 5), F(3, 5, 7)) \
    X(rms_norm_stats, 3, SHAPE(3, 5), F(3, 5, 7), F(7), F(7)) \
    X(l2_norm_stats, 2, SHAPE(3, 5), F(3, 5, 7), F(7)) \
    X(embedding, 2, SHAPE(3, 5, 7), F(11, 7), I(11, 3, 5)) \
    X(rope, 1, SHAPE(3, 5, 3, 6), F(3, 5, 3, 6)) \
    X(rope_positions, 2, SHAPE(3, 5, 3, 6), F(3, 5, 3, 6), I(9, 3, 5)) \
    X(attention, 3, SHAPE(3, 5, 6, 4), F(3, 5, 6, 4), F(3, 5, 6, 4), F(3, 5, 6, 4)) \
    X(attention_cross, 3, SHAPE(3, 5, 3, 4), F(3, 5, 3, 4), F(3, 7, 3, 4), F(3, 7, 3, 4)) \
    X(attention_grouped, 3, SHAPE(3, 5, 6, 4), F(3, 5, 6, 4), F(3, 5, 2, 4), F(3, 5, 2, 4)) \
    X(attention_lse, 4, SHAPE(3, 5, 6), F(3, 5, 6, 4), F(3, 5, 2, 4), F(3, 5, 2, 4), F(4)) \
    X(attention_packed, 4, SHAPE(3, 7, 3, 4), F(3, 7, 3, 4), F(3, 7, 3, 4), F(3, 7, 3, 4), I(2, 3, 7)) \
    X(attention_segments, 5, SHAPE(3, 5, 3, 4), F(3, 5, 3, 4), F(3, 9, 3, 4), F(3, 9, 3, 4), I(2, 3, 5), I(2, 3, 9)) \
    X(cross_entropy, 2, SHAPE(3, 5), F(3, 5, 11), I(11, 3, 5)) \
    X(cross_entropy_ignored, 2, SHAPE(7), F(7, 5), I(5, 7)) \
    X(reshape_split, 1, SHAPE(5, 3, 4), F(5, 12)) \
    X(reshape_merge, 1, SHAPE(15, 4), F(5, 3, 4)) \
    X(transpose, 1, SHAPE(7, 5, 3), F(3, 5, 7)) \
    X(transpose_inner, 1, SHAPE(3, 5, 4, 7), F(3, 4, 5, 7)) \
    X(slice, 1, SHAPE(3, 4, 7), F(3, 9, 7)) \
    X(concat, 3, SHAPE(3, 9, 7), F(3, 2, 7), F(3, 4, 7), F(3, 3, 7)) \
    X(iota, 1, SHAPE(7), F(7)) \
    X(tied, 1, SHAPE(5, 5), F(5, 7))

enum {
#define X(name, ...) CASE_##name,
    OPERATOR_CASES(X)
#undef X
    CASE_COUNT
};

/* The model reads the table at compile time, the reference when it runs. */
static const Case case_table[CASE_COUNT] = {
#define X(name, count, result, ...) [CASE_##name] = {#name, result, count, {__VA_ARGS__}},
    OPERATOR_CASES(X)
#undef X
};

/* The result of a case in double. x[k] are the operands' elements; `fixed` are the same before any of them is changed, for operands that no gradient reaches. */
void reference_run(int which, const double *const *x, const double *const *fixed, double *y);

static inline int64_t shape_count(const Shape *shape)
{
    int64_t count = 1;
    for (int d = 0; d < shape->rank; d++)
        count *= shape->extent[d];
    return count;
}

#endif
