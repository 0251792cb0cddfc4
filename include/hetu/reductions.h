/* reductions.h: sums, means, largest elements and variances over given dimensions.
 *
 * Names and meanings are PyTorch's. Optional arguments are named: ht_sum(x,
 * .dim = ht_shape(0, -1), .keepdim = true). Included by hetu.h.
 */
#ifndef HETU_REDUCTIONS_H
#define HETU_REDUCTIONS_H

#include <hetu/tensors.h>

/* ---- reductions ---- */

/* Dimensions `dim` of a reduction (empty: all); `keepdim` keeps them with extent 1. The last member
 * makes ht_argmax(x, -1) an error in every compiler. */
typedef struct ht_over {
    ht_dims dim;
    bool keepdim;
    char options_have_names[];
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

/* Returns the largest elements (PyTorch's amax); equal largest elements share the gradient. */
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

/* Returns the largest elements along one dimension (PyTorch's max). The whole gradient goes to the
 * first largest element, as ht_argmax finds it. */
static inline ht_tensor ht_first_max(ht_tensor x, int dim)
{
    ht_tensor place = ht_argmax_over(x, (ht_over){ht_shape(dim), true});
    return ht_squeeze_at(ht_gather_at(x, place, ht_iota(ht_extent(x, dim), HT_I64), ht_dim_of(x, dim)), dim);
}

/* Returns log(sum(exp(x))). Subtracts the largest element first, if it is finite, so that exp does
 * not overflow. */
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
    int correction; // the divisor is the number of elements minus `correction`
} ht_var_options;

/* Returns the variance. Detaches the mean, since its gradient, sum(x - mean), is 0. */
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
