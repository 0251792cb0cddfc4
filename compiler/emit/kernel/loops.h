/* Loop nests of a body, for all backends. The factors of a rule become loops, and neighbouring
 * loops that are contiguous in every tensor are merged:
 *
 *     y[b, o] = x[b, o] * w[b, o], b = 8, o = 256   ->  one loop i0 < 2048, all strides 1
 *     y[b, o] = x[b, o] + bias[o]                   ->  loops i0 < 8, i1 < 256
 *
 * This file writes elements and terms; cpu/loops.c and cuda/loops.c write the functions. */
#pragma once

#include "emit/kernel/kernel.h"

/* A loop over merged factors. */
typedef struct Loop {
    int64_t extent;
    int64_t stride[EMIT_MAX_TENSORS]; // in elements, by tensor
    char name[16];                    // name of the loop's index: "i0"
} Loop;

typedef struct Nest {
    int count;
    Loop loop[IR_MAX_FACTORS];
} Nest;

/* Return the loops over the result, and over contracted factors in the order of the operands. */
Nest nest_of_result(const LocalOp *local);
Nest nest_of_sum(const LocalOp *local, uint32_t contracted);

/* Returns the loops over bound factors in this order; their names begin with `letter`. */
Nest nest_of_factors(const LocalOp *local, const int *factors, int count, char letter);

/* Returns the product of the extents of the loops [first, last). */
int64_t nest_volume(const Nest *nest, int first, int last);

/* Returns the innermost loop; NULL when there is none. */
const Loop *nest_inner(const Nest *nest);

/* The context in which a term is written: its enclosing loops, the writer of operands, and
 * "at[$n]", the C text of a number that differs between devices. */
typedef struct Around {
    const Nest *outputs, *contracted;
    AccessWriter *access; // writer of operands, whose context is this struct
    const char *number;
    const void *more; // data of the backend
} Around;

/* Append the index of a tensor's element, "i0 * 768 + i1"; the element NAME[index], bf16 as f32. */
void text_index(Text *out, const Around *around, int tensor);
void text_tensor(Text *out, const LocalOp *local, int tensor, const Around *around);

/* Appends the element of an operand as text_tensor does. Implements AccessWriter. */
void text_element(Text *out, const LocalOp *local, int operand, void *around);

/* Append the text around a new element of the result: "y[i0] = ht_bf16_store(" and ");\n". */
void text_result(Text *out, const LocalOp *local, const Around *around);
void text_result_end(Text *out, const LocalOp *local);

/* Appends the sum of the terms over exactly the factors of `set`; `first`: no term has been written
 * yet. Returns whether a term has been written, before or by this call. */
bool text_terms(Text *out, const LocalOp *local, uint32_t set, const Around *around, bool first);

/* Appends a sum and the other terms, in the kernels' type of the result: "(float)(sum + z[i0])". */
void text_sum_value(Text *out, const LocalOp *local, const Around *around, const char *sum);

/* Returns the operands that terms summed over exactly these factors read, as a set. */
uint64_t terms_operands(const LocalOp *local, uint32_t set);

/* Writes to `sets` the distinct sets of contracted factors of terms, without the empty set and sets
 * with a factor that is empty on this device. Returns their number. */
int contracted_sets(const LocalOp *local, uint32_t *sets);

/* Returns whether the largest operand is contiguous only along the result's inner loop (>= 8). */
bool sums_columns(const LocalOp *local, const Nest *outputs, uint32_t set);

/* Returns the C type of the variable of a sum. */
const char *sum_type(const LocalOp *local);

/* Returns the C type in which kernels compute with an element: float for bf16. */
const char *value_type(DType dtype);

/* Append the blanks in front of a line, and a line that closes a brace. */
void indent(Text *out, int depth);
void close_bracket(Text *out, int depth);

/* Returns whether an expression calls a function. */
bool calls_functions(const Expr *expr);
