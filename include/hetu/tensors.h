/* tensors.h: functions of tensors built from operators of <hetu/ops.h>: reductions over given
 * dimensions, shapes, indexing.
 *
 * Names and meanings are PyTorch's unless a comment says otherwise; a negative dimension counts
 * from the end. Arguments that PyTorch lets one leave out are named: ht_sum(x, .dim = ht_shape(0,
 * -1), .keepdim = true).
 */
#ifndef HETU_TENSORS_H
#define HETU_TENSORS_H

#include <hetu/ops.h>

/* A dimension counted from the front. */
static inline int ht_dim_of(ht_tensor x, int dim)
{
    assert(dim >= -ht_rank(x) && dim < ht_rank(x) && "a dimension of the tensor");
    return dim < 0 ? dim + ht_rank(x) : dim;
}

/* ---- shapes ---- */

/* x with a new dimension of extent 1. */
static inline ht_tensor ht_unsqueeze(ht_tensor x, int dim)
{
    ht_dims dims = ht_dims_of(x);
    int at = dim < 0 ? dim + dims.rank + 1 : dim;
    assert(at >= 0 && at <= dims.rank && "a new dimension stands before, between or behind those of the tensor");
    for (int d = dims.rank++; d > at; d--)
        dims.extent[d] = dims.extent[d - 1];
    dims.extent[at] = 1;
    return ht_reshape(x, dims);
}

/* x without a dimension, if that has extent 1. */
static inline ht_tensor ht_squeeze(ht_tensor x, int dim) { return ht_extent(x, dim) == 1 ? ht_squeeze_at(x, ht_dim_of(x, dim)) : x; }

/* Dimension d of the result is dimension dims[d] of x. */
static inline ht_tensor ht_permute(ht_tensor x, ht_dims dims)
{
    int from[HT_MAX_RANK];
    assert(dims.rank == ht_rank(x) && "ht_permute names every dimension");
    for (int d = 0; d < dims.rank; d++)
        from[d] = d;
    for (int d = 0; d < dims.rank; d++) {
        int wanted = ht_dim_of(x, (int)dims.extent[d]), at = d;
        while (at < dims.rank && from[at] != wanted)
            at++;
        assert(at < dims.rank && "ht_permute names every dimension once");
        x = ht_transpose(x, d, at);
        from[at] = from[d];
        from[d] = wanted;
    }
    return x;
}

/* The tensors along a new dimension. */
static inline ht_tensor ht_stack(ht_tensors xs, int dim)
{
    enum { MOST = 256 };
    ht_tensor parts[MOST];
    assert(xs.count > 0 && xs.count <= MOST && "ht_stack takes 1 to 256 tensors");
    for (int k = 0; k < xs.count; k++)
        parts[k] = ht_unsqueeze(xs.at[k], dim);
    return ht_concat_at((ht_tensors){xs.count, parts}, dim < 0 ? dim + ht_rank(parts[0]) : dim);
}

/* Writes pieces of `size` elements along a dimension into `parts`, the last perhaps smaller;
 * returns how many. */
static inline int ht_split(ht_tensor x, int64_t size, int dim, ht_tensor *parts)
{
    int count = 0;
    assert(size > 0 && "pieces have elements");
    for (int64_t start = 0, n = ht_extent(x, dim); start < n; start += size)
        parts[count++] = ht_slice(x, dim, start, start + size < n ? size : n - start);
    return count;
}

/* At most `chunks` pieces of one size, the last perhaps smaller, into `parts`; returns how many. */
static inline int ht_chunk(ht_tensor x, int chunks, int dim, ht_tensor *parts)
{
    assert(chunks > 0 && "chunks are counted from 1");
    return ht_split(x, (ht_extent(x, dim) + chunks - 1) / chunks, dim, parts);
}

/* Returns a tensor whose elements all are `value`. */
static inline ht_tensor ht_full(ht_dims dims, double value, ht_dtype dtype) { return ht_expand(ht_scalar_at(value, dtype), dims); }

/* PyTorch's constant padding: pads are {before, after} of the last dimension, then of the one in
 * front of it, ... */
static inline ht_tensor ht_pad(ht_tensor x, ht_dims pads, double value)
{
    assert(pads.rank % 2 == 0 && pads.rank <= 2 * ht_rank(x) && "pads come in pairs, one a dimension");
    for (int p = 0; p < pads.rank; p += 2) {
        int dim = ht_rank(x) - 1 - p / 2;
        int64_t before = pads.extent[p], after = pads.extent[p + 1], n = ht_extent(x, dim);
        assert(before >= 0 && after >= 0 && "pads are not negative; ht_slice cuts off");
        if (value == 0) {
            x = before + after > 0 ? ht_pad_at(x, dim, before, before + n + after) : x;
            continue;
        }
        ht_dims front = ht_dims_of(x), back = front;
        front.extent[dim] = before;
        back.extent[dim] = after;
        ht_tensor head = ht_full(front, value, ht_dtype_of(x)), tail = ht_full(back, value, ht_dtype_of(x));
        if (before > 0)
            x = ht_concat_at(ht_list(head, x), dim);
        if (after > 0)
            x = ht_concat_at(ht_list(x, tail), dim);
    }
    return x;
}

/* Shifts the elements by `shift` along a dimension, cyclically. */
static inline ht_tensor ht_roll(ht_tensor x, int64_t shift, int dim)
{
    int64_t n = ht_extent(x, dim), by = n > 0 ? ((shift % n) + n) % n : 0;
    if (by == 0)
        return x;
    return ht_concat(ht_list(ht_slice(x, dim, n - by, by), ht_slice(x, dim, 0, n - by)), dim);
}

/* ---- places ---- */

/* start, start + step, ... before end. */
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

/* Checks indices along a dimension of x; an index out of range ends the program. */
static inline ht_tensor ht_index_of(ht_tensor x, int dim, ht_tensor index)
{
    assert(ht_is_integer(index) && "an index is of integers");
    return ht_within(index, ht_extent(x, dim));
}

/* Gathers elements of x by index along a dimension. In all other dimensions, index has the shape of
 * x. */
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

/* The elements along a dimension in reverse. */
static inline ht_tensor ht_flip(ht_tensor x, int dim)
{
    int64_t n = ht_extent(x, dim);
    return ht_index_select(x, dim, ht_arange_at(ht_iota(n, HT_I64), (double)(n - 1), -1, HT_I64));
}

/* Returns prefix sums along a dimension (each element included); sums of bf16 are in f32. */
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

/* The first k elements of the order along a dimension: the largest, or the smallest. Of equal ones
 * that in front comes first. */
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

/* PyTorch's sort with stable=True. */
static inline ht_sorted ht_sort(ht_tensor x, int dim, bool descending) { return ht_topk(x, ht_extent(x, dim), dim, descending); }

/* ---- reductions ---- */

/* Dimensions of a reduction: `dim`, empty: all; `keepdim` keeps them with extent 1. */
typedef struct ht_over {
    ht_dims dim;
    bool keepdim;
} ht_over;

/* Returns whether a reduction includes dimension d of x. */
static inline bool ht_goes_over(ht_tensor x, ht_over over, int d)
{
    bool goes = over.dim.rank == 0;
    for (int k = 0; k < over.dim.rank; k++)
        goes = goes || ht_dim_of(x, (int)over.dim.extent[k]) == d;
    return goes;
}

/* Returns how many elements of x are reduced to one element of the result. */
static inline int64_t ht_count_over(ht_tensor x, ht_over over)
{
    int64_t count = 1;
    for (int d = 0; d < ht_rank(x); d++)
        count *= ht_goes_over(x, over, d) ? ht_extent(x, d) : 1;
    return count;
}

/* Returns the shape of the dimensions that are not reduced. */
static inline ht_dims ht_dims_left(ht_tensor x, ht_over over)
{
    ht_dims dims = {0};
    for (int d = 0; d < ht_rank(x); d++)
        if (!ht_goes_over(x, over, d))
            dims.extent[dims.rank++] = ht_extent(x, d);
    return dims;
}

/* Reshapes the reduction y of x so that reduced dimensions stay with extent 1 (keepdim). */
static inline ht_tensor ht_keep_dims(ht_tensor x, ht_tensor y, ht_over over)
{
    ht_dims dims = ht_dims_of(x);
    for (int d = 0; d < dims.rank; d++)
        dims.extent[d] = ht_goes_over(x, over, d) ? 1 : dims.extent[d];
    return ht_reshape(y, dims);
}

static inline bool ht_over_all(ht_over over) { return over.dim.rank == 0 && !over.keepdim; }

static inline ht_tensor ht_sum_over(ht_tensor x, ht_over over)
{
    if (ht_over_all(over))
        return ht_sum(x);
    ht_tensor y = x;
    for (int d = ht_rank(x) - 1; d >= 0; d--) {
        int count = 0;
        for (; d >= 0 && ht_goes_over(x, over, d); d--)
            count++;
        if (count)
            y = ht_sum_at(y, d + 1, count);
    }
    return over.keepdim ? ht_keep_dims(x, y, over) : y;
}

static inline ht_tensor ht_mean_over(ht_tensor x, ht_over over)
{
    if (ht_over_all(over))
        return ht_mean(x);
    return ht_scale(ht_sum_over(x, over), (float)(1.0 / (double)ht_count_over(x, over)));
}

/* Moves the reduced dimensions to the end and merges them into one: (2, 3, 4) over dimension 0
 * becomes (3, 4, 2), over 0 and 1 (4, 6). */
static inline ht_tensor ht_rows_over(ht_tensor x, ht_over over)
{
    ht_dims order = {ht_rank(x), {0}}, dims = ht_dims_left(x, over);
    for (int part = 0, at = 0; part < 2; part++)
        for (int d = 0; d < order.rank; d++)
            if (ht_goes_over(x, over, d) == (part == 1))
                order.extent[at++] = d;
    dims.extent[dims.rank++] = ht_count_over(x, over);
    ht_tensor y = ht_permute(x, order);
    return dims.rank == order.rank ? y : ht_reshape(y, dims);
}

/* PyTorch's amax: the gradient is divided among equal largest elements. */
static inline ht_tensor ht_max_over(ht_tensor x, ht_over over)
{
    assert(ht_count_over(x, over) > 0 && "there is no largest element of none");
    ht_tensor y = ht_amax_at(ht_rows_over(x, over));
    return over.keepdim ? ht_keep_dims(x, y, over) : y;
}

static inline ht_tensor ht_min_over(ht_tensor x, ht_over over) { return ht_neg(ht_max_over(ht_neg(x), over)); }

/* Returns the index of the first largest element, i64: row-major over the reduced dimensions. */
static inline ht_tensor ht_argmax_over(ht_tensor x, ht_over over)
{
    assert(ht_count_over(x, over) > 0 && ht_count_over(x, over) <= 1 << 24 && "ht_argmax goes over 1 to 2^24 elements");
    ht_tensor rows = ht_rows_over(ht_detach(x), over);
    ht_tensor places = ht_peaks_at(rows, ht_amax_at(rows), ht_iota(ht_extent(rows, -1), HT_I64));
    ht_tensor y = ht_cast(ht_neg(ht_amax_single(ht_neg(places))), HT_I64);
    return over.keepdim ? ht_keep_dims(x, y, over) : y;
}

static inline ht_tensor ht_argmin_over(ht_tensor x, ht_over over) { return ht_argmax_over(ht_neg(x), over); }

/* PyTorch's max along one dimension: the whole gradient goes to the first largest element, the one
 * of ht_argmax. */
static inline ht_tensor ht_first_max(ht_tensor x, int dim)
{
    ht_tensor place = ht_argmax_over(x, (ht_over){ht_shape(dim), true});
    return ht_squeeze_at(ht_gather_at(x, place, ht_iota(ht_extent(x, dim), HT_I64), ht_dim_of(x, dim)), dim);
}

/* Returns log(sum(exp(x))); subtracts the largest element first where it is finite, so that exp
 * does not overflow. */
static inline ht_tensor ht_logsumexp_over(ht_tensor x, ht_over over)
{
    ht_over kept = {over.dim, true};
    ht_tensor shift = ht_finite(ht_max_over(ht_detach(x), kept));
    ht_tensor y = ht_add(ht_log(ht_sum_over(ht_exp(ht_sub(x, shift)), kept)), shift);
    return over.keepdim ? y : ht_reshape(y, ht_dims_left(x, over));
}

typedef struct ht_var_options {
    ht_dims dim;
    bool keepdim;
    int correction; // subtracted from the number of elements in the divisor
} ht_var_options;

/* Detaches the mean: its gradient is sum(x - mean) = 0. */
static inline ht_tensor ht_var_over(ht_tensor x, ht_var_options o)
{
    ht_over over = {o.dim, o.keepdim};
    int64_t freedom = ht_count_over(x, over) - o.correction;
    ht_tensor off = ht_sub(x, ht_mean_over(ht_detach(x), (ht_over){o.dim, true}));
    return ht_scale(ht_sum_over(ht_mul(off, off), over), (float)(1.0 / (double)(freedom > 0 ? freedom : 0)));
}

#define HT_OVER(...) ((ht_over){.keepdim = false __VA_OPT__(, ) __VA_ARGS__})
#define ht_sum(x, ...) ht_sum_over((x), HT_OVER(__VA_ARGS__))
#define ht_mean(x, ...) ht_mean_over((x), HT_OVER(__VA_ARGS__))
#define ht_max(x, ...) ht_max_over((x), HT_OVER(__VA_ARGS__))
#define ht_min(x, ...) ht_min_over((x), HT_OVER(__VA_ARGS__))
#define ht_argmax(x, ...) ht_argmax_over((x), HT_OVER(__VA_ARGS__))
#define ht_argmin(x, ...) ht_argmin_over((x), HT_OVER(__VA_ARGS__))
#define ht_logsumexp(x, ...) ht_logsumexp_over((x), HT_OVER(__VA_ARGS__))
#define ht_var(x, ...) ht_var_over((x), (ht_var_options){.correction = 1 __VA_OPT__(, ) __VA_ARGS__})

#endif
