/* Loops in C for CPUs, for bodies (loops.c) and equations (rows.c). */
#ifndef EMIT_CPU_LOOPS_H
#define EMIT_CPU_LOOPS_H

#include "emit/kernel/loops.h"

/* Elements from which threads pay; fewer where functions are called. */
int64_t cpu_parallel_from(bool calls);

/* Appends `for (long i0 = 0; i0 < 8; i0++)` and `end`. */
void cpu_for(Text *out, int depth, const Loop *loop, const char *end);

/* Appends `#pragma omp parallel for` over the next `loops` loops. */
void cpu_parallel(Text *out, int loops);

/* Appends the loops around the vectors of a nest, and the head of the innermost loop; what it
 * repeats follows at *depth. Threads share them where that pays. Returns how many brackets are
 * open. */
int cpu_vector_loops(Text *out, const Nest *nest, bool calls, int *depth);

#endif
