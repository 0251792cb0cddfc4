/* Axes of a contraction as nested loops. */
#ifndef CPU_AXES_H
#define CPU_AXES_H

#include <hetu/product.h>

/* Offsets of an element in each tensor. */
typedef struct Place {
    int64_t y, x, w, b;
} Place;

/* Where iteration `i` of the nested loops over `axes` starts; the last axis runs fastest. */
static inline Place place_of(int64_t i, int count, const ht_axis *axes)
{
    Place at = {0, 0, 0, 0};
    for (int d = count - 1; d >= 0; d--) {
        int64_t c = i % axes[d].extent;
        i /= axes[d].extent;
        at.y += c * axes[d].y;
        at.x += c * axes[d].x;
        at.w += c * axes[d].w;
        at.b += c * axes[d].b;
    }
    return at;
}

/* The elements of y as `total` runs of `inner.extent` elements, along the axis in which y's stride is smallest; run i begins at
 * place_of(i, count, axes). */
typedef struct Runs {
    int count;
    ht_axis axes[HT_MAX_AXES], inner;
    int64_t total;
} Runs;
Runs runs_of(int rank, const ht_axis *axes);

/* y = scale * sum of x * w + bias in f32; no axis of y is empty. */
void product_f32(float *y, const float *x, const float *w, const float *bias, int rank, const ht_axis *axes, float scale);

#endif
