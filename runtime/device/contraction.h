/* The axes of ht_product sorted for a matrix product: what every backend begins with. Axes are
 * merged; one of each kind goes to the matrix product, the others are loops around it.
 */
#ifndef DEVICE_CONTRACTION_H
#define DEVICE_CONTRACTION_H

#include <hetu/product.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Contraction {
    int rank;
    ht_axis axes[HT_MAX_AXES]; // merged; none has extent 1
    int m, n, k; // axes that y and x, y and w, x and w alone have, for the matrix product; -1: none
    int outer_count, sum_count;
    ht_axis outer[HT_MAX_AXES],
        sum[HT_MAX_AXES]; // loops around it: over elements of y, and over further summed axes
    int64_t outer_total, sum_total;
} Contraction;

/* No axis is empty. The matrix product is the largest for which every matrix has one stride of 1
 * and another of at least the first axis's extent; m, n and k are all -1 when there is none beyond
 * dot products. Ends the program when there are more than HT_MAX_AXES axes. */
Contraction contraction_of(int rank, const ht_axis *axes);

/* An axis by its number, NULL for -1; and how many multiplications the matrix product has. */
const ht_axis *contraction_axis(const Contraction *c, int i);
double contraction_size(const Contraction *c);

/* Offsets of an element in each tensor. */
typedef struct Place {
    int64_t y, x, w, b;
} Place;

/* Where iteration `i` of nested loops over `axes` starts; the last axis runs fastest. */
Place place_of(int64_t i, int count, const ht_axis *axes);

/* The elements of y as `total` runs of `inner.extent` elements, along the axis in which y's stride
 * is smallest; run i begins at place_of(i, count, axes). */
typedef struct Runs {
    int count;
    ht_axis axes[HT_MAX_AXES], inner;
    int64_t total;
} Runs;
Runs runs_of(int rank, const ht_axis *axes);

#ifdef __cplusplus
}
#endif

#endif
