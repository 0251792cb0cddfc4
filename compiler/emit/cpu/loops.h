/* Loops in C for CPUs, for bodies (loops.c) and equations (rows.c). Threads share the outer loops
 * if that is faster in spite of their start-up time; the innermost loop is vectorised. For example,
 * y[b, o] = x[b, o] + bias[o] with 8 rows of 256:
 *
 *     #pragma omp parallel for
 *     for (long i0 = 0; i0 < 8; i0++)
 *     #pragma omp simd
 *         for (long i1 = 0; i1 < 256; i1++)
 */
#pragma once

#include "emit/kernel/loops.h"

/* Returns the fewest elements for which threads share a loop. `calls`: elements call functions. */
int64_t cpu_parallel_from(bool calls);

/* Appends `for (long i0 = 0; i0 < 8; i0++)`, then the text `end`. */
void cpu_for(Text *out, int depth, const Loop *loop, const char *end);

/* Appends `#pragma omp parallel for` over the next `loops` loops; 0: appends nothing. */
void cpu_parallel(Text *out, int loops);

/* Appends the loops of a nest, shared by threads if that is faster, and the head of the innermost
 * loop. The caller appends its statement at *depth. Returns how many braces are open. */
int cpu_vector_loops(Text *out, const Nest *nest, bool calls, int *depth);
