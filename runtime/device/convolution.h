/* convolution.h: sizes of a convolution, for the kernels of both back ends.
 *
 * Images are (batch, groups, inputs, height, width), results (batch, groups, outputs, height,
 * width), weights (groups, outputs, inputs, height, width). Entry 0 of a pair is for the height.
 * Element (h, w) of the result is a sum over positions (p, q) of the weights; it reads row
 * h * stride[0] + p * dilation[0] - padding[0] of the images. */
#pragma once

#include <hetu/kernel.h>

typedef struct Convolution {
    int64_t batch, groups, inputs, outputs;     // channels are those of one group
    int64_t image[2], result[2], window[2];     // extents: of images, results and weights
    int64_t stride[2], padding[2], dilation[2]; // in elements of the images
} Convolution;

/* Returns the sizes of a call of an operator ht_convolution_at, ..._images_at or ..._weights_at.
 * Attributes: height and width of the operator's result, then stride, padding and dilation. */
static inline Convolution convolution_of(const ht_call *call, const ht_view *images,
                                         const ht_view *results, const ht_view *weights) {
    Convolution c;
    c.batch = images->extent[0];
    c.groups = images->extent[1];
    c.inputs = images->extent[2];
    c.outputs = results->extent[2];
    for (int d = 0; d < 2; d++) {
        c.image[d] = images->extent[3 + d];
        c.result[d] = results->extent[3 + d];
        c.window[d] = weights->extent[3 + d];
        c.stride[d] = call->attr[2 + d].i;
        c.padding[d] = call->attr[4 + d].i;
        c.dilation[d] = call->attr[6 + d].i;
    }
    return c;
}
