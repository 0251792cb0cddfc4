/* tensors.h: functions of shapes, built from operators of <hetu/ops.h>; see indexing.h and
 * reductions.h for functions of elements.
 *
 * Names and meanings are PyTorch's unless a comment says otherwise; a negative dimension counts
 * from the end.
 */
#ifndef HETU_TENSORS_H
#define HETU_TENSORS_H

#include <hetu/ops.h>

/* Returns `dim` counted from the front: for rank 3, -1 becomes 2. */
static inline int ht_dim_of(ht_tensor x, int dim)
{
    assert(dim >= -ht_rank(x) && dim < ht_rank(x) && "a dimension of the tensor");
    return dim < 0 ? dim + ht_rank(x) : dim;
}

/* ---- shapes ---- */

/* Inserts a dimension of extent 1 at position `dim` of the result. */
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

/* Removes dimension `dim` if its extent is 1, else returns x. */
static inline ht_tensor ht_squeeze(ht_tensor x, int dim) { return ht_extent(x, dim) == 1 ? ht_squeeze_at(x, ht_dim_of(x, dim)) : x; }

/* Permutes dimensions: dimension d of the result is dimension dims.extent[d] of x. */
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

/* Joins tensors of the same shape along a new dimension, in groups where they are many. */
static inline ht_tensor ht_stack(ht_tensors xs, int dim)
{
    enum { MOST = 256 };
    ht_tensor parts[MOST];
    int each = 1, count = 0;
    assert(xs.count > 0 && "ht_stack takes at least one tensor");
    while ((int64_t)each * MOST < xs.count)
        each *= MOST;
    for (int k = 0; k < xs.count; k += each)
        parts[count++] = each == 1 ? ht_unsqueeze(xs.at[k], dim) : ht_stack((ht_tensors){xs.count - k < each ? xs.count - k : each, xs.at + k}, dim);
    return ht_concat_at((ht_tensors){count, parts}, dim < 0 ? dim + ht_rank(parts[0]) : dim);
}

/* Splits a dimension into pieces of `size` elements, the last perhaps smaller. Writes the pieces to
 * `parts`, which the caller provides, and returns their number. */
static inline int ht_split(ht_tensor x, int64_t size, int dim, ht_tensor *parts)
{
    int count = 0;
    assert(size > 0 && "pieces have elements");
    for (int64_t start = 0, n = ht_extent(x, dim); start < n; start += size)
        parts[count++] = ht_slice(x, dim, start, start + size < n ? size : n - start);
    return count;
}

/* Splits a dimension into at most `chunks` equal pieces, the last perhaps smaller, as ht_split. */
static inline int ht_chunk(ht_tensor x, int chunks, int dim, ht_tensor *parts)
{
    assert(chunks > 0 && "chunks are counted from 1");
    return ht_split(x, (ht_extent(x, dim) + chunks - 1) / chunks, dim, parts);
}

/* Returns a tensor whose elements all are `value`. */
static inline ht_tensor ht_full(ht_dims dims, double value, ht_dtype dtype) { return ht_expand(ht_scalar_at(value, dtype), dims); }

/* Pads with `value` (PyTorch's constant padding). `pads` has {before, after} for the last
 * dimension, then for the second last, and so on. */
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

/* Rotates the elements along a dimension by `shift`: element i moves to i + shift (mod n). */
static inline ht_tensor ht_roll(ht_tensor x, int64_t shift, int dim)
{
    int64_t n = ht_extent(x, dim), by = n > 0 ? ((shift % n) + n) % n : 0;
    if (by == 0)
        return x;
    return ht_concat(ht_list(ht_slice(x, dim, n - by, by), ht_slice(x, dim, 0, n - by)), dim);
}

#endif
