/* oneDNN's engine for the CPU, and what versions 2 and 3 of its C interface spell differently.
 *
 *     HETU_PRODUCTS    bf16                                     f32
 *     not set          oneDNN if the processor has AVX512-BF16  oneDNN: convolutions and, with
 *                      or AMX, else OpenBLAS, in f32            AVX-512, products of few rows,
 *                                                              columns or terms; else OpenBLAS
 *     openblas         OpenBLAS, in f32                         OpenBLAS
 *     onednn           as if not set                            oneDNN
 */
#pragma once

#include "device/convolution.h"

#include <hetu/product.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum Engine { ENGINE_BY_TYPE, ENGINE_OPENBLAS, ENGINE_ONEDNN } Engine;

/* Returns the engine that HETU_PRODUCTS names; ends the program for another name, and for `onednn`
 * in a build without oneDNN. */
Engine onednn_choice(void);

/* Computes scale * sum(x * w) + bias by oneDNN: into `sums`, f32 with the strides of y, or into y
 * itself if `sums` is NULL. Returns false if another engine must compute the call, and always in a
 * build without oneDNN; y and `sums` may then have been overwritten. No axis of y is empty. */
bool onednn_product(const ht_product_call *call, float *sums);

/* ---- convolutions (onednn_convolution.c) ---- */

typedef enum ConvolutionTensor {
    CONV_IMAGES,
    CONV_RESULTS,
    CONV_WEIGHTS,
    CONV_TENSORS
} ConvolutionTensor;

/* The three tensors of a convolution, and which of them is computed from the others. */
typedef struct ConvolutionViews {
    const ht_view *view[CONV_TENSORS];
    ConvolutionTensor wanted;
} ConvolutionViews;

/* Computes the wanted tensor. oneDNN chooses how tensors lie inside (channels in blocks, mostly);
 * operands are converted before, results afterwards. Returns false, before anything is written, if
 * another engine must compute it, and always in a build without oneDNN. */
bool onednn_convolve(const Convolution *sizes, const ConvolutionViews *views);

/* ---- oneDNN's objects ---- */

#ifdef HETU_ONEDNN

#include <oneapi/dnnl/dnnl.h>

/* A description of a tensor: its extents, strides and type. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t OnednnDesc;
#else
typedef const dnnl_memory_desc_t *OnednnDesc;
#endif

/* oneDNN's objects for this processor, opened by the first caller. */
typedef struct Onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
} Onednn;

const Onednn *onednn_open(void);

/* Ends the program unless oneDNN's function `what` succeeded. */
void onednn_need(dnnl_status_t status, const char *what);

/* Returns whether the processor multiplies bf16, and oneDNN may use that (ONEDNN_MAX_CPU_ISA). */
bool onednn_has_bf16(void);

/* Returns whether the processor has AVX-512, and oneDNN may use that. */
bool onednn_has_avx512(void);

dnnl_data_type_t onednn_type(ht_dtype dtype);

/* Describes a tensor; without strides (NULL) oneDNN chooses how it lies. Returns NULL if oneDNN
 * does not take these. onednn_forget frees the description. */
OnednnDesc onednn_describe(int rank, const int64_t *extent, const int64_t *stride,
                           dnnl_data_type_t type);
void onednn_forget(OnednnDesc desc);

/* Returns how the chosen code wants its tensor `what` to lie; `chosen` owns the result. */
OnednnDesc onednn_wanted(const_dnnl_primitive_desc_t chosen, dnnl_query_t what);

/* Executes a primitive and waits for it. */
void onednn_run(dnnl_primitive_t primitive, int count, const dnnl_exec_arg_t *arguments);

/* Creates a primitive. Returns NULL, without an error, where oneDNN has only reference code. */
dnnl_primitive_t onednn_create(dnnl_primitive_desc_t chosen);

#endif
