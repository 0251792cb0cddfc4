/* What the CPU kernels share: reading views, scratch memory, and code for several instruction
 * sets. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include <hetu/kernel.h>
#include <hetu/vector_math.h>

#include <stddef.h>
#include <stdint.h>

enum { CPU_PARALLEL = 8192 }; // elements below which one thread is faster

/* The data of a view as f32, or NULL where the operand is absent; any other type ends the program
 * with the operator's name. */
float *cpu_f32(const ht_view *view, const char *operator);

/* Element i of a view of i32 or i64. */
int64_t cpu_index(const ht_view *view, int64_t i);

/* Ends the program unless the view holds integers. */
void cpu_need_integers(const ht_view *view, const char *operator);

int64_t cpu_count(const ht_view *view);
int cpu_size(ht_dtype dtype);

/* Memory that the caller frees; running out ends the program. */
void *cpu_alloc(size_t bytes);

#endif
