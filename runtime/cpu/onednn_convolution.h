/* Convolutions by oneDNN, which chooses how tensors lie inside (channels in blocks, mostly).
 * Operands are converted before, results afterwards; HETU_PRODUCTS (cpu/onednn.h) forbids it. */
#pragma once

#include "device/convolution.h"

#include <stdbool.h>

typedef enum ConvolutionTensor { IMAGES, RESULTS, WEIGHTS, TENSORS } ConvolutionTensor;

/* The three tensors of a convolution, and which of them is computed from the others. */
typedef struct ConvolutionViews {
    const ht_view *view[TENSORS];
    ConvolutionTensor wanted;
} ConvolutionViews;

/* Computes the wanted tensor. Returns false, before anything is written, if another engine must
 * compute it, and always in a build without oneDNN. */
bool onednn_convolve(const Convolution *sizes, const ConvolutionViews *views);
