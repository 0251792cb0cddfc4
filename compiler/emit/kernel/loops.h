/* Loop nests: what the loops of a body are, whichever back end spells them.
 *
 * loops.c turns the factors of a rule into loops, merges neighbours that are contiguous in every tensor, and writes elements and terms;
 * loops_cpu.c and loops_cuda.c write the functions.
 */
#ifndef EMIT_KERNEL_LOOPS_H
#define EMIT_KERNEL_LOOPS_H

#include "emit/emitter.h"

/* A loop over merged factors; strides in elements, of the results first, then of each operand. */
typedef struct Loop {
    int64_t extent;
    int64_t stride[IR_MAX_RESULTS + EMIT_MAX_TENSORS];
    char name[16];
} Loop;

typedef struct Nest {
    int count;
    Loop loop[EMIT_MAX_FACTORS];
} Nest;

/* The loops over the elements of the result, and over contracted factors in the order in which the operands have them. */
Nest nest_of_result(const LocalOp *local);
Nest nest_of_sum(const LocalOp *local, uint32_t contracted);

/* The loops over bound factors in this order; their names begin with `letter`. */
Nest nest_of_factors(const LocalOp *local, const int *factors, int count, char letter);

/* The product of the extents of loops first to before last. */
int64_t nest_volume(const Nest *nest, int first, int last);

/* The innermost loop; NULL when there is none. */
const Loop *nest_inner(const Nest *nest);

/* What the text of a term needs: the loops around it, how an operand is spelled there, and how a number of the device is: "at[$n]". */
typedef struct Around {
    const Nest *outputs, *contracted;
    AccessWriter *access; // its context is this struct
    const char *number;
    const void *more; // the back end's own
} Around;

/* Appends the index of an element: "i0 * 768 + i1". The tensors are the results, then the operands. */
void text_index(Text *out, const Around *around, int tensor);

/* Appends NAME[index]; an operand as it is computed with, bf16 as f32. An AccessWriter. */
void text_element(Text *out, const LocalOp *local, int operand, void *around);

/* Appends what stands before and behind a new element of the result: "y[i0] = ht_bf16_store(" and ");\n". */
void text_result(Text *out, const LocalOp *local, const Around *around);
void text_result_end(Text *out, const LocalOp *local);

/* Appends the sum of the terms over exactly the factors of `set`; `first`: nothing stands before it. Returns whether something stands there
 * now. */
bool text_terms(Text *out, const LocalOp *local, uint32_t set, const Around *around, bool first);

/* Appends a sum and the terms that are not summed, in the type in which the result is computed with: "(float)(sum + z[i0])". */
void text_sum_value(Text *out, const LocalOp *local, const Around *around, const char *sum);

/* Whether some term is summed over exactly these factors, and the operands that such terms read, as a set. */
bool has_terms(const LocalOp *local, uint32_t set);
uint64_t terms_operands(const LocalOp *local, uint32_t set);

/* The distinct sets of contracted factors, without the empty one and those that are empty on this device; how many. */
int contracted_sets(const LocalOp *local, uint32_t *sets);

/* Whether the largest operand is contiguous along the innermost loop of the result rather than along a contracted one. */
bool sums_columns(const LocalOp *local, const Nest *outputs, uint32_t set);

/* The type in which a sum is added up. */
const char *sum_type(const LocalOp *local);

/* The type of an element while it is computed with: bf16 as float. */
const char *value_type(DType dtype);

void indent(Text *out, int depth);

/* ---- C for the CPU ---- */

/* Elements from which threads pay; fewer where functions are called. */
int64_t cpu_parallel_from(bool calls);

/* Whether any function is called. */
bool calls_functions(const Expr *expr);

/* Appends `for (long i0 = 0; i0 < 8; i0++)` and `end`. */
void cpu_for(Text *out, int depth, const Loop *loop, const char *end);

/* Appends `#pragma omp parallel for` over the next `loops` loops. */
void cpu_parallel(Text *out, int loops);

/* Appends the loops around the vectors of a nest, and the head of the innermost loop; what it repeats follows at *depth. Threads share them where that
 * pays. Returns how many brackets are open. */
int cpu_vector_loops(Text *out, const Nest *nest, bool calls, int *depth);

#endif
