/* Common functions of the CPU kernels: reading views, scratch memory, code for several instruction
 * sets. session/core/cpu_threads.c sets the number of threads. */
#pragma once

#include "exchange/copy_boxes.h"

#include <hetu/kernel.h>
#include <hetu/product.h>
#include <hetu/vector_math.h>

#include <stddef.h>
#include <stdint.h>

enum { CPU_PARALLEL = 8192 }; // elements below which one thread is faster

/* Returns a view's f32 data; NULL if absent. Other types end the program, naming the operator. */
float *cpu_f32(const ht_view *view, const char *operator);

/* Returns element i of a view of i32 or i64. */
int64_t cpu_index(const ht_view *view, int64_t i);

/* Ends the program unless the view holds integers. */
void cpu_need_integers(const ht_view *view, const char *operator);

/* Returns how many elements a view has. */
int64_t cpu_count(const ht_view *view);

/* Computes y = scale * sum(x * w) + bias in f32, for ht_product. No axis of y is empty. */
void product_f32(float *y, const float *x, const float *w, const float *bias, int rank,
                 const ht_axis *axes, float scale);

/* Copies the bias to y, repeated along axes where its stride is 0; `bias` NULL: y becomes 0. */
void product_bias(float *y, const float *bias, int rank, const ht_axis *axes);

/* Returns the elements of a tensor of a product that its axes span, as one row; `field` is the
 * offset of the tensor's stride in ht_axis. */
ht_view product_view(const ht_product_call *call, const void *data, ht_dtype dtype, size_t field);

/* Allocates memory, which the caller frees by free(); ends the program when memory runs out. */
void *cpu_alloc(size_t bytes);
