/* indexing.h: functions of tensors by index: ranges, gathers, scatters, sums of prefixes, sorting.
 *
 * Names and meanings are PyTorch's; a negative dimension counts from the end. Included by hetu.h.
 */
#ifndef HETU_INDEXING_H
#define HETU_INDEXING_H

#include <hetu/tensors.h>

/* ---- indices ---- */

/* Returns the vector (start, start + step, ...), up to but not including `end`. */
static inline ht_tensor ht_arange(double start, double end, double step, ht_dtype dtype)
{
    assert(step != 0 && (end - start) / step >= 0 && "ht_arange goes from start towards end");
    double steps = (end - start) / step;
    int64_t n = (int64_t)steps;
    return ht_arange_at(ht_iota((double)n < steps ? n + 1 : n, HT_I64), start, step, dtype);
}

/* Returns i64 one-hot vectors along a new last dimension. An id outside the classes gives zeros,
 * where PyTorch fails. */
static inline ht_tensor ht_one_hot(ht_tensor id, int64_t classes) { return ht_one_hot_at(id, ht_iota(classes, HT_I64)); }

static inline ht_tensor ht_tril(ht_tensor x, int64_t diagonal)
{
    return ht_triangle_at(x, ht_iota(ht_extent(x, -1), HT_I64), ht_iota(ht_extent(x, -2), HT_I64), diagonal, false);
}

static inline ht_tensor ht_triu(ht_tensor x, int64_t diagonal)
{
    return ht_triangle_at(x, ht_iota(ht_extent(x, -1), HT_I64), ht_iota(ht_extent(x, -2), HT_I64), diagonal, true);
}

/* Returns `index`; an index outside dimension dim of x ends the program. */
static inline ht_tensor ht_index_of(ht_tensor x, int dim, ht_tensor index)
{
    assert(ht_is_integer(index) && "an index is of integers");
    return ht_within(index, ht_extent(x, dim));
}

/* Gathers elements of x by index along dimension dim. In all other dimensions, `index` has the
 * extents of x. */
static inline ht_tensor ht_gather(ht_tensor x, int dim, ht_tensor index)
{
    return ht_gather_at(x, ht_index_of(x, dim, index), ht_iota(ht_extent(x, dim), HT_I64), ht_dim_of(x, dim));
}

/* Returns x plus the elements of source, added at the indices along a dimension. */
static inline ht_tensor ht_scatter_add(ht_tensor x, int dim, ht_tensor index, ht_tensor source)
{
    return ht_add(x, ht_scatter_at(source, ht_index_of(x, dim, index), ht_iota(ht_extent(x, dim), HT_I64), ht_dim_of(x, dim)));
}

/* Returns the slices of x along a dimension at the given indices. */
static inline ht_tensor ht_index_select(ht_tensor x, int dim, ht_tensor index)
{
    int at = ht_dim_of(x, dim);
    ht_tensor front = ht_transpose(x, 0, at);
    ht_dims dims = ht_dims_of(front);
    int64_t rest = 1;
    for (int d = 1; d < dims.rank; d++)
        rest *= dims.extent[d];
    dims.extent[0] = ht_extent(index, 0);
    ht_tensor rows = ht_embedding(ht_reshape(front, ht_shape(ht_extent(front, 0), rest)), index);
    return ht_transpose(ht_reshape(rows, dims), 0, at);
}

/* Reverses the elements along a dimension. */
static inline ht_tensor ht_flip(ht_tensor x, int dim)
{
    int64_t n = ht_extent(x, dim);
    return ht_index_select(x, dim, ht_arange_at(ht_iota(n, HT_I64), (double)(n - 1), -1, HT_I64));
}

/* Returns prefix sums along a dimension, each including its own element; bf16 is summed in f32. */
static inline ht_tensor ht_cumsum(ht_tensor x, int dim)
{
    ht_tensor at = ht_iota(ht_extent(x, dim), HT_I64);
    bool narrow = ht_dtype_of(x) == HT_BF16;
    ht_tensor y = ht_cumsum_at(narrow ? ht_cast(x, HT_F32) : x, at, at, ht_dim_of(x, dim));
    return narrow ? ht_cast(y, HT_BF16) : y;
}

/* Sorted elements, and their indices in the input. */
typedef struct ht_sorted {
    ht_tensor values, indices;
} ht_sorted;

/* Returns the k largest or smallest elements along a dimension, in sorted order. Among equal
 * elements, the one with the lower index comes first. */
static inline ht_sorted ht_topk(ht_tensor x, int64_t k, int dim, bool largest)
{
    int at_dim = ht_dim_of(x, dim);
    assert(k >= 0 && k <= ht_extent(x, dim) && "there are so many elements");
    ht_tensor at = ht_iota(ht_extent(x, dim), HT_I64), first = ht_iota(k, HT_I64), place = at;
    ht_tensor rank = ht_rank_at(x, x, at, at, at_dim, largest);
    for (int d = 0; d < ht_rank(x); d++)
        if (d != at_dim)
            place = ht_repeat_at(place, d, ht_extent(x, d));
    return (ht_sorted){ht_scatter_at(x, rank, first, at_dim), ht_scatter_at(place, rank, first, at_dim)};
}

/* Sorts along a dimension, as PyTorch's sort with stable=True. */
static inline ht_sorted ht_sort(ht_tensor x, int dim, bool descending) { return ht_topk(x, ht_extent(x, dim), dim, descending); }

#endif
