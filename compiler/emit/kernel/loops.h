/* Loop nests: what the loops of a body are, whichever back end spells them. The factors of a rule
 * become loops, neighbours that are contiguous in every tensor are merged, and elements and terms
 * are written here; cpu/loops.c and cuda/loops.c write the functions. */
#ifndef EMIT_KERNEL_LOOPS_H
#define EMIT_KERNEL_LOOPS_H

#include "emit/kernel/kernel.h"

/* A loop over merged factors; strides in elements, by tensor. */
typedef struct Loop {
    int64_t extent;
    int64_t stride[EMIT_MAX_TENSORS];
    char name[16];
} Loop;

typedef struct Nest {
    int count;
    Loop loop[IR_MAX_FACTORS];
} Nest;

/* The loops over the elements of the result, and over contracted factors in the order in which the
 * operands have them. */
Nest nest_of_result(const LocalOp *local);
Nest nest_of_sum(const LocalOp *local, uint32_t contracted);

/* The loops over bound factors in this order; their names begin with `letter`. */
Nest nest_of_factors(const LocalOp *local, const int *factors, int count, char letter);

/* The product of the extents of loops first to before last. */
int64_t nest_volume(const Nest *nest, int first, int last);

/* The innermost loop; NULL when there is none. */
const Loop *nest_inner(const Nest *nest);

/* What the text of a term needs: the loops around it, how an operand is spelled there, and how a
 * number of the device is: "at[$n]". */
typedef struct Around {
    const Nest *outputs, *contracted;
    AccessWriter *access; // its context is this struct
    const char *number;
    const void *more; // the back end's own
} Around;

/* Appends the index of a tensor's element, "i0 * 768 + i1", and NAME[index], as it is computed
 * with: bf16 as f32. */
void text_index(Text *out, const Around *around, int tensor);
void text_tensor(Text *out, const LocalOp *local, int tensor, const Around *around);

/* The same of an operand. An AccessWriter. */
void text_element(Text *out, const LocalOp *local, int operand, void *around);

/* Appends what stands before and behind a new element of the result: "y[i0] = ht_bf16_store(" and
 * ");\n". */
void text_result(Text *out, const LocalOp *local, const Around *around);
void text_result_end(Text *out, const LocalOp *local);

/* Appends the sum of the terms over exactly the factors of `set`; `first`: nothing stands before
 * it. Returns whether something stands there now. */
bool text_terms(Text *out, const LocalOp *local, uint32_t set, const Around *around, bool first);

/* Appends a sum and the terms that are not summed, in the type in which the result is computed
 * with: "(float)(sum + z[i0])". */
void text_sum_value(Text *out, const LocalOp *local, const Around *around, const char *sum);

/* Whether some term is summed over exactly these factors, and the operands that such terms read, as
 * a set. */
bool has_terms(const LocalOp *local, uint32_t set);
uint64_t terms_operands(const LocalOp *local, uint32_t set);

/* The distinct sets of contracted factors, without the empty one and those that are empty on this
 * device; how many. */
int contracted_sets(const LocalOp *local, uint32_t *sets);

/* Whether the largest operand is contiguous along the innermost loop of the result rather than
 * along a contracted one. */
bool sums_columns(const LocalOp *local, const Nest *outputs, uint32_t set);

/* The type in which a sum is added up. */
const char *sum_type(const LocalOp *local);

/* The type of an element while it is computed with: bf16 as float. */
const char *value_type(DType dtype);

/* Blanks in front of a line, and a line that closes a bracket. */
void indent(Text *out, int depth);
void close_bracket(Text *out, int depth);

/* Whether any function is called. */
bool calls_functions(const Expr *expr);

#endif
