/* Elements by the numbers of their places, and how many come before an element in order: one thread an element of the result. */
#include "operators/kernels.h"
#include "cuda/views.h"

#include <type_traits>

enum { PLACE_THREADS = 256 };

/* A tensor's lines along a dimension: element i of line (o, c) is number (o * length + i) * inner + c. */
typedef struct Lines {
    int64_t length, inner;
} Lines;

static Lines lines_of(const ht_view *x, int dim) { return {x->extent[dim], ht_view_count(x, dim + 1, x->rank)}; }

/* Where a number stands among `count` ones that are all different and ascend as a rule; -1: nowhere. */
static __device__ inline int64_t find_place(const Indices &places, int64_t count, int64_t number)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (places.at(middle) < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && places.at(low) == number)
        return low;
    for (int64_t i = 1; i < count; i++)
        if (places.at(i) < places.at(i - 1))
            for (int64_t k = 0; k < count; k++)
                if (places.at(k) == number)
                    return k;
    return -1;
}

template <typename T> __global__ void within_device(T *y, const T *x, int64_t count, int64_t end, CudaReport report)
{
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        y[i] = x[i];
        if (x[i] < 0 || x[i] >= end)
            cuda_fault(report, x[i], i, end);
    }
}

/* Operand: integers, which are copied; attribute: where they end. */
void ht_within_kernel(const ht_call *call)
{
    const ht_view *x = &call->operand[0];
    const int64_t count = view_size(x), end = call->attr[0].i;
    const CudaReport report = cuda_report("index %lld at element %lld is outside the %lld elements that it chooses from", x);
    const auto run = [&]<typename T>() {
        ht_launch(within_device<T>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0, static_cast<T *>(call->result[0].data), static_cast<const T *>(x->data), count, end, report);
    };
    if (indices_of(x, "within").wide)
        run.template operator()<int64_t>();
    else
        run.template operator()<int32_t>();
}

/* ---- gather and scatter ---- */

template <typename Unit>
__global__ void gather_device(Unit *y, int64_t count, Lines to, const Unit *x, Lines from, Indices number, Indices places)
{
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t at = find_place(places, from.length, number.at(i));
        y[i] = at < 0 ? Unit() : x[(i / (to.inner * to.length) * from.length + at) * from.inner + i % to.inner];
    }
}

void ht_gather_kernel(const ht_call *call)
{
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const Lines from = lines_of(x, (int)call->attr[0].i), to = lines_of(y, (int)call->attr[0].i);
    const Indices number = indices_of(&call->operand[1], "gather"), places = indices_of(&call->operand[2], "gather");
    const int64_t count = view_size(y);
    const auto run = [&]<typename Unit>() {
        ht_launch(gather_device<Unit>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0, static_cast<Unit *>(y->data), count, to,
                  static_cast<const Unit *>(x->data), from, number, places);
    };
    if (dtype_bytes(x->dtype) == 2)
        run.template operator()<uint16_t>();
    else if (dtype_bytes(x->dtype) == 4)
        run.template operator()<uint32_t>();
    else
        run.template operator()<uint64_t>();
}

/* Elements as they are computed with: bf16 as f32. */
template <typename T> struct Computed {
    typedef T type;
};
template <> struct Computed<uint16_t> {
    typedef float type;
};
template <typename T> static __device__ inline typename Computed<T>::type read(T stored)
{
    if constexpr (std::is_same_v<T, uint16_t>)
        return ht_bf16_load(stored);
    else
        return stored;
}

/* Calls work.operator()<T>() with the type in which a view's elements are stored. */
template <typename Work> static void with_stored(const ht_view *x, Work work)
{
    switch (x->dtype) {
    case HT_F32: work.template operator()<float>(); return;
    case HT_BF16: work.template operator()<uint16_t>(); return;
    case HT_F64: work.template operator()<double>(); return;
    case HT_I32: work.template operator()<int32_t>(); return;
    case HT_I64: work.template operator()<int64_t>(); return;
    }
}

/* Elements are added up in their order, so that sums have one. */
template <typename T> __global__ void scatter_device(T *y, int64_t count, Lines to, const T *x, Lines from, Indices number, Indices places)
{
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t place = places.at(i / to.inner % to.length),
                      first = i / (to.inner * to.length) * from.length * from.inner + i % to.inner;
        typename Computed<T>::type sum = 0;
        for (int64_t k = 0; k < from.length; k++)
            if (number.at(first + k * from.inner) == place)
                sum += read(x[first + k * from.inner]);
        if constexpr (std::is_same_v<T, uint16_t>)
            y[i] = ht_bf16_store(sum);
        else
            y[i] = sum;
    }
}

void ht_scatter_kernel(const ht_call *call)
{
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const Lines from = lines_of(x, (int)call->attr[0].i), to = lines_of(y, (int)call->attr[0].i);
    const Indices number = indices_of(&call->operand[1], "scatter"), places = indices_of(&call->operand[2], "scatter");
    const int64_t count = view_size(y);
    with_stored(x, [&]<typename T>() {
        ht_launch(scatter_device<T>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0, static_cast<T *>(y->data), count, to,
                  static_cast<const T *>(x->data), from, number, places);
    });
}

/* ---- order ---- */

/* Whether a comes before b: NaN is the largest of all. */
template <typename T> static __device__ inline bool is_before(T a, T b, bool descending)
{
    if (descending)
        return a > b || (a != a && b == b);
    return a < b || (a == a && b != b);
}

template <typename T>
__global__ void rank_device(int32_t *y, int64_t count, const T *x, Lines all, const T *z, Lines own, Indices at, Indices from,
                            bool descending)
{
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t first = i / (own.inner * own.length) * all.length * all.inner + i % own.inner,
                      place = at.at(i / own.inner % own.length);
        const auto one = read(z[i]);
        int32_t before = 0;
        for (int64_t k = 0; k < all.length; k++) {
            const auto other = read(x[first + k * all.inner]);
            before += is_before(other, one, descending) || (!is_before(one, other, descending) && from.at(k) < place);
        }
        y[i] = before;
    }
}

void ht_rank_kernel(const ht_call *call)
{
    const ht_view *x = &call->operand[0], *z = &call->operand[1], *y = &call->result[0];
    const Lines all = lines_of(x, (int)call->attr[0].i), own = lines_of(z, (int)call->attr[0].i);
    const Indices at = indices_of(&call->operand[2], "rank"), from = indices_of(&call->operand[3], "rank");
    const bool descending = call->attr[1].i != 0;
    const int64_t count = view_size(y);
    with_stored(x, [&]<typename T>() {
        ht_launch(rank_device<T>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0, static_cast<int32_t *>(y->data), count,
                  static_cast<const T *>(x->data), all, static_cast<const T *>(z->data), own, at, from, descending);
    });
}
