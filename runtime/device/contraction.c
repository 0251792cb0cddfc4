/* Merges the axes of a contraction and chooses m, n and k. A transposed operand has other strides,
 * from which the BLAS flags follow: matrix_form (cpu/product.c), matrix_of (cuda/product.cu). */
#include "device/contraction.h"

#include <stddef.h>

/* The tensors that have an axis, as bits. */
enum {
    IN_Y = 1,
    IN_X = 2,
    IN_W = 4,
    KIND_M = IN_Y | IN_X,
    KIND_N = IN_Y | IN_W,
    KIND_K = IN_X | IN_W
};

static int axis_kind(const ht_axis *a) {
    return (a->y ? IN_Y : 0) | (a->x ? IN_X : 0) | (a->w ? IN_W : 0);
}

/* Returns whether outer axis a and inner axis b can be one axis in every tensor. */
static int axes_merge(const ht_axis *a, const ht_axis *b) {
    return a->y == b->y * b->extent && a->x == b->x * b->extent && a->w == b->w * b->extent &&
           a->b == b->b * b->extent;
}

/* Merges one pair of axes. Returns 1, or 0 if no pair can be merged. */
static int merge_once(Contraction *c) {
    for (int i = 0; i < c->rank; i++)
        for (int j = 0; j < c->rank; j++)
            if (i != j && axes_merge(&c->axes[i], &c->axes[j])) {
                int64_t extent = c->axes[i].extent * c->axes[j].extent;
                c->axes[i] = c->axes[j];
                c->axes[i].extent = extent;
                c->axes[j] = c->axes[--c->rank];
                return 1;
            }
    return 0;
}

static void take_axes(Contraction *c, int rank, const ht_axis *axes) {
    if (rank > HT_MAX_AXES) ht_fail("a product over %d axes, more than %d", rank, HT_MAX_AXES);
    c->rank = 0;
    for (int i = 0; i < rank; i++)
        if (axes[i].extent != 1) c->axes[c->rank++] = axes[i];
    while (merge_once(c)) continue;
}

/* Returns whether sgemm accepts a matrix with these strides along its two axes: one stride is 1,
 * and the other is at least the extent. Any vector is accepted. */
static int matrix_fits(const ht_axis *a, int64_t sa, const ht_axis *b, int64_t sb) {
    if (!a || !b) return 1;
    return (sb == 1 && sa >= b->extent) || (sa == 1 && sb >= a->extent);
}

const ht_axis *contraction_axis(const Contraction *c, int i) { return i < 0 ? NULL : &c->axes[i]; }

static int choice_fits(const Contraction *c, int im, int in, int ik) {
    const ht_axis *m = contraction_axis(c, im), *n = contraction_axis(c, in),
                  *k = contraction_axis(c, ik);
    return matrix_fits(m, m ? m->y : 0, n, n ? n->y : 0) &&
           matrix_fits(m, m ? m->x : 0, k, k ? k->x : 0) &&
           matrix_fits(k, k ? k->w : 0, n, n ? n->w : 0);
}

static double extent_of(const Contraction *c, int i) {
    return i < 0 ? 1 : (double)c->axes[i].extent;
}

static int is_kind(const Contraction *c, int i, int kind) {
    return i < 0 || axis_kind(&c->axes[i]) == kind;
}

/* Sets m, n and k to the axes whose matrix product is largest. */
static void choose_axes(Contraction *c) {
    double best = 1;
    c->m = c->n = c->k = -1;
    for (int m = -1; m < c->rank; m++)
        for (int n = -1; n < c->rank; n++)
            for (int k = -1; k < c->rank; k++) {
                double size = extent_of(c, m) * extent_of(c, n) * extent_of(c, k);
                if (size <= best || !is_kind(c, m, KIND_M) || !is_kind(c, n, KIND_N) ||
                    !is_kind(c, k, KIND_K) || !choice_fits(c, m, n, k))
                    continue;
                best = size;
                c->m = m;
                c->n = n;
                c->k = k;
            }
    if (c->m < 0 && c->n < 0) c->k = -1;
}

double contraction_size(const Contraction *c) {
    return extent_of(c, c->m) * extent_of(c, c->n) * extent_of(c, c->k);
}

static void split_loops(Contraction *c) {
    c->outer_count = c->sum_count = 0;
    c->outer_total = c->sum_total = 1;
    for (int i = 0; i < c->rank; i++) {
        const ht_axis *a = &c->axes[i];
        if (i == c->m || i == c->n || i == c->k) continue;
        if (a->y) {
            c->outer[c->outer_count++] = *a;
            c->outer_total *= a->extent;
        } else {
            c->sum[c->sum_count++] = *a;
            c->sum_total *= a->extent;
        }
    }
}

Contraction contraction_of(int rank, const ht_axis *axes) {
    Contraction c;
    take_axes(&c, rank, axes);
    choose_axes(&c);
    split_loops(&c);
    return c;
}

Place place_of(int64_t i, int count, const ht_axis *axes) {
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

Runs runs_of(int rank, const ht_axis *axes) {
    Runs runs = {.inner = {1, 1, 0, 0, 0}, .total = 1};
    for (int i = 0; i < rank; i++)
        if (axes[i].y && axes[i].extent != 1) runs.axes[runs.count++] = axes[i];
    for (int i = 1; i < runs.count; i++) // the smallest stride last
        if (runs.axes[i].y > runs.axes[i - 1].y) {
            ht_axis swap = runs.axes[i];
            runs.axes[i] = runs.axes[i - 1];
            runs.axes[i - 1] = swap;
        }
    if (runs.count > 0) runs.inner = runs.axes[--runs.count];
    for (int i = 0; i < runs.count; i++) runs.total *= runs.axes[i].extent;
    return runs;
}
