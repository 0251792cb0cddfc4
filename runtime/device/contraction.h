/* Reduces the axes of ht_product to one matrix product (m, n, k) and loops around it; every backend
 * starts with this reduction. Axes that can be merged are merged first. */
#pragma once

#include <hetu/product.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Contraction {
    int rank;
    ht_axis axes[HT_MAX_AXES]; // `rank` axes after merging; no axis has extent 1
    int m, n, k; // indices of axes: m in y and x, n in y and w, k in x and w; -1: none
    int outer_count, sum_count;
    /* Axes of the loops around the matrix product: `outer` is in y, `sum` is summed over. */
    ht_axis outer[HT_MAX_AXES], sum[HT_MAX_AXES];
    int64_t outer_total, sum_total; // iterations of these loops
} Contraction;

/* Returns the contraction of the axes, none of which is empty. m, n and k form the largest matrix
 * product that BLAS can take. Each matrix has a stride of 1 and a leading dimension that is large
 * enough. m, n and k are -1 if only dot products remain. Ends the program if there are more than
 * HT_MAX_AXES axes. */
Contraction contraction_of(int rank, const ht_axis *axes);

/* contraction_axis returns axis i, NULL for -1; contraction_size returns extent m * n * k. */
const ht_axis *contraction_axis(const Contraction *c, int i);
double contraction_size(const Contraction *c);

/* Offsets of an element in each tensor. */
typedef struct Place {
    int64_t y, x, w, b;
} Place;

/* Returns the offsets at iteration `i` of nested loops over `axes`, the last one innermost. */
Place place_of(int64_t i, int count, const ht_axis *axes);

/* The elements of y as `total` runs of `inner.extent` elements each. `inner` is the axis with y's
 * smallest stride; run i begins at place_of(i, count, axes). */
typedef struct Runs {
    int count;
    ht_axis axes[HT_MAX_AXES], inner;
    int64_t total;
} Runs;
Runs runs_of(int rank, const ht_axis *axes);

#ifdef __cplusplus
}
#endif
