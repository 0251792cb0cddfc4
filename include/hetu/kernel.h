/* kernel.h: the interface of kernels, for operators of <hetu/ops.h> and a user's own operators, on
 * one device and on many.
 *
 *     void my_softmax(const ht_call *call)
 *     {
 *         const ht_view *x = &call->operand[0], *y = &call->result[0];
 *         ...
 *     }
 *
 * A view describes the piece of a tensor that this device holds, contiguous and row-major. A view
 * has one dimension for each index of the rule. Merged factors `(g r)` are one dimension; an
 * ellipsis is as many dimensions as it stands for. Where the rule's `offset` names the ellipsis, a
 * dimension appears as one dimension for each factor into which reshapes split it. Rows of a tensor
 * in the rule's `pitch` clause may be padded. A kernel is not called when a result or a contracted
 * operand is empty; members of a variadic operand may be empty.
 */
#ifndef HETU_KERNEL_H
#define HETU_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
#define HT_NORETURN [[noreturn]]
extern "C" {
#else
#define HT_NORETURN _Noreturn
#endif

/* Declares a function that kernels on CPUs and on GPUs call. */
#ifdef __CUDACC__
#define HT_ANYWHERE __host__ __device__
#else
#define HT_ANYWHERE
#endif

typedef enum ht_dtype { HT_F32, HT_BF16, HT_F64, HT_I32, HT_I64 } ht_dtype;

enum { HT_MAX_RANK = 12 };

/* A tensor's shape as written in a model: ht_shape(2, 3). */
typedef struct ht_dims {
    int rank;
    int64_t extent[HT_MAX_RANK];
} ht_dims;

typedef struct ht_view {
    void *data; // NULL: an optional operand that is absent
    ht_dtype dtype;
    int rank;
    int64_t extent[HT_MAX_RANK]; // extents of this piece

    int64_t offset[HT_MAX_RANK]; // first index of the piece in the whole tensor; set only for factors in the rule's `offset`
    int64_t fold[HT_MAX_RANK];   // zigzag (a piece of two ranges): length of the first range
    int64_t gap[HT_MAX_RANK];    // zigzag: number of indices between the two ranges in the whole tensor; 0: the piece is one range
    int64_t global[HT_MAX_RANK]; // extents of the whole tensor
    int64_t pitch;               // elements from one row to the next (ht_view_pitch); 0: the piece is contiguous
} ht_view;

/* An attribute: an argument of an operator that is not a tensor. */
typedef struct ht_attr {
    int64_t i;    // integers and dtypes
    double f;     // floating point
    ht_dims dims; // shapes
} ht_attr;

typedef struct ht_call {
    const ht_view *result;  // in the rule's order
    const ht_view *operand; // in the rule's order; the members of a variadic operand follow each other
    int result_count, operand_count;
    const ht_attr *attr; // the operator's arguments that are not tensors, in order
    const float *hyper;  // optimizers: the hyper-parameters of this step (ht_optimizer.hyper); NULL elsewhere
    int64_t step;        // training steps begun before this one
    int training;        // 0 under ht_infer
    uint64_t seed;       // the session's seed, for counter-based random numbers
} ht_call;

typedef void ht_kernel(const ht_call *call);

/* Returns the product of the extents of the dimensions in [first, last). */
static inline int64_t ht_view_count(const ht_view *view, int first, int last)
{
    int64_t count = 1;
    for (int d = first; d < last; d++)
        count *= view->extent[d];
    return count;
}

/* Returns the number of elements from one row to the next (the leading dimension of BLAS); a row
 * consists of the dimensions from `first` on. Only rows of tensors in the rule's `pitch` clause may
 * be padded. */
static inline int64_t ht_view_pitch(const ht_view *view, int first)
{
    return view->pitch ? view->pitch : ht_view_count(view, first, view->rank);
}

/* Converts index i of dimension d of a piece to the index in the whole tensor. The rule's `offset`
 * must name d. */
HT_ANYWHERE static inline int64_t ht_view_place(const ht_view *view, int d, int64_t i)
{
    return view->offset[d] + i + (i >= view->fold[d] ? view->gap[d] : 0);
}

/* Counts the indices of dimension d of a piece that are below index `place` of the whole tensor. */
HT_ANYWHERE static inline int64_t ht_view_before(const ht_view *view, int d, int64_t place)
{
    int64_t extent = view->extent[d], fold = view->gap[d] ? view->fold[d] : extent;
    int64_t near = place - view->offset[d], far = near - fold - view->gap[d];
    near = near < 0 ? 0 : near < fold ? near : fold;
    far = far < 0 ? 0 : far < extent - fold ? far : extent - fold;
    return near + far;
}

/* Returns the index in dimension d of a piece for index `place` of the whole tensor; -1 when the
 * piece does not have that index. */
HT_ANYWHERE static inline int64_t ht_view_find(const ht_view *view, int d, int64_t place)
{
    int64_t i = ht_view_before(view, d, place);
    return i < view->extent[d] && ht_view_place(view, d, i) == place ? i : -1;
}

/* Returns the row-major index, in the whole tensor, of element i of a piece. The rule's `offset`
 * must name all dimensions. */
static inline int64_t ht_view_element(const ht_view *view, int64_t i)
{
    int64_t number = 0, pitch = 1;
    for (int d = view->rank; d-- > 0; pitch *= view->global[d]) {
        number += pitch * ht_view_place(view, d, i % view->extent[d]);
        i /= view->extent[d];
    }
    return number;
}

/* Ends the program with a message that names the rank, such as "token 300 at element 17 is outside
 * the table's 256 rows". */
HT_NORETURN void ht_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
