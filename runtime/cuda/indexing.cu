/* Kernels that address elements by index: gather, scatter, cumulative sums, ranks (how many
 * elements precede an element in sorted order).
 *
 * A line is a run of elements along a dimension; there is one for each index of the other
 * dimensions. Scatter and rank first sort the entries of each line by merge sort. Each merge
 * doubles the length of sorted runs; a thread finds the new index of an entry by binary search. So
 * the work is n log^2 n in the length n of a line, and every sum has a fixed order. */
#include "operators/kernels.h"
#include "cuda/views.h"

#include <type_traits>

enum { PLACE_THREADS = 256 };

/* A tensor's lines along a dimension: element i of line (o, c) is (o * length + i) * inner + c. */
typedef struct Lines {
    int64_t length, inner;
} Lines;

static Lines lines_of(const ht_view *x, int dim) {
    return {x->extent[dim], ht_view_count(x, dim + 1, x->rank)};
}

/* ---- types ---- */

/* The type in which elements of T are computed: float for bf16, else T. */
template <typename T> struct Computed {
    typedef T type;
};
template <> struct Computed<uint16_t> {
    typedef float type;
};
template <typename T> static __device__ inline typename Computed<T>::type read(T stored) {
    if constexpr (std::is_same_v<T, uint16_t>) return ht_bf16_load(stored);
    else return stored;
}

/* Calls work.operator()<T>() with the type in which a view's elements are stored. */
template <typename Work> static void with_stored(const ht_view *x, Work work) {
    switch (x->dtype) {
    case HT_F32: work.template operator()<float>(); return;
    case HT_BF16: work.template operator()<uint16_t>(); return;
    case HT_F64: work.template operator()<double>(); return;
    case HT_I32: work.template operator()<int32_t>(); return;
    case HT_I64: work.template operator()<int64_t>(); return;
    }
}

/* ---- global and local indices ---- */

/* Sets *unordered to 1 unless the global indices ascend strictly. The caller has set it to 0. */
__global__ void order_device(int32_t *unordered, Indices places, int64_t count) {
    for (int64_t i = ht_thread() + 1; i < count; i += ht_threads())
        if (places.at(i) <= places.at(i - 1)) *unordered = 1;
}

/* Launches a check whether the global indices ascend, as binary search requires. */
static void look_at_order(int32_t *unordered, const Indices &places, int64_t count) {
    ht_launch(order_device, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0, unordered, places,
              count);
}

static int32_t *cleared(void *memory) {
    HT_CUDA(cudaMemsetAsync(memory, 0, sizeof(int32_t), ht_compute_stream()));
    return static_cast<int32_t *>(memory);
}

/* Returns how many of `count` ascending global indices are below `number`, by binary search. */
static __device__ inline int64_t places_before(const Indices &places, int64_t count,
                                               int64_t number) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (places.at(middle) < number) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Returns the local index of global index `number` among `count` distinct ones, or -1 if absent. */
static __device__ inline int64_t find_place(const Indices &places, int64_t count, int64_t number,
                                            bool unordered) {
    int64_t i = unordered ? 0 : places_before(places, count, number);
    while (unordered && i < count && places.at(i) != number) i++;
    return i < count && places.at(i) == number ? i : -1;
}

template <typename T>
__global__ void within_device(T *y, const T *x, int64_t count, int64_t end, CudaReport report) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        y[i] = x[i];
        if (x[i] < 0 || x[i] >= end) cuda_fault(report, x[i], i, end);
    }
}

/* Copies an integer tensor; reports a fault if an element is outside [0, end). Attribute: end. */
void ht_within_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0];
    const int64_t count = view_size(x), end = call->attr[0].i;
    const CudaReport report = cuda_report(
        "index %lld at element %lld is outside the %lld elements that it chooses from", x);
    const auto run = [&]<typename T>() {
        ht_launch(within_device<T>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0,
                  static_cast<T *>(call->result[0].data), static_cast<const T *>(x->data), count,
                  end, report);
    };
    if (indices_of(x, "within").wide) run.template operator()<int64_t>();
    else run.template operator()<int32_t>();
}

/* ---- gather and scatter ---- */

template <typename Unit>
__global__ void gather_device(Unit *y, int64_t count, Lines to, const Unit *x, Lines from,
                              Indices number, Indices places, const int32_t *unordered) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t at = find_place(places, from.length, number.at(i), *unordered);
        y[i] = at < 0
                   ? Unit()
                   : x[(i / (to.inner * to.length) * from.length + at) * from.inner + i % to.inner];
    }
}

void ht_gather_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const Lines from = lines_of(x, (int)call->attr[0].i), to = lines_of(y, (int)call->attr[0].i);
    const Indices number = indices_of(&call->operand[1], "gather"),
                  places = indices_of(&call->operand[2], "gather");
    const int64_t count = view_size(y);
    int32_t *unordered = cleared(cuda_scratch(sizeof *unordered));
    look_at_order(unordered, places, from.length);
    const auto run = [&]<typename Unit>() {
        ht_launch(gather_device<Unit>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0,
                  static_cast<Unit *>(y->data), count, to, static_cast<const Unit *>(x->data), from,
                  number, places, unordered);
    };
    if (dtype_bytes(x->dtype) == 2) run.template operator()<uint16_t>();
    else if (dtype_bytes(x->dtype) == 4) run.template operator()<uint32_t>();
    else run.template operator()<uint64_t>();
}

/* ---- entries in order ---- */

enum { SORT_TILE = 32 }; // entries of a tile, which is sorted by counting

/* Sort entry: ordered by `number`, then by `place`, an index along the line. */
typedef struct Entry {
    int64_t number, place;
} Entry;

static __device__ inline bool is_before(const Entry &a, const Entry &b) {
    return a.number < b.number || (a.number == b.number && a.place < b.place);
}

/* Returns how many of `count` sorted entries come before `one`, by binary search. */
static __device__ inline int64_t entries_before(const Entry *entry, int64_t count,
                                                const Entry &one) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (is_before(entry[middle], one)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Sorts each tile of SORT_TILE entries: an entry's new index is the number of smaller entries. */
__global__ void sort_tiles_device(Entry *to, const Entry *from, int64_t count, int64_t length) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t line = i / length * length, tile = line + (i - line) / SORT_TILE * SORT_TILE,
                      end = tile + SORT_TILE < line + length ? tile + SORT_TILE : line + length;
        int64_t before = 0;
        for (int64_t k = tile; k < end; k++) before += is_before(from[k], from[i]);
        to[tile + before] = from[i];
    }
}

/* Merges pairs of sorted runs of `run` entries. An entry's new index is its index in its own run
 * plus the number of entries before it in the other run. */
__global__ void merge_runs_device(Entry *to, const Entry *from, int64_t count, int64_t length,
                                  int64_t run) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t line = i / length * length, end = line + length,
                      first = line + (i - line) / (2 * run) * 2 * run,
                      middle = first + run < end ? first + run : end,
                      last = middle + run < end ? middle + run : end;
        const bool left = i < middle;
        const int64_t other = left ? entries_before(from + middle, last - middle, from[i])
                                   : entries_before(from + first, middle - first, from[i]);
        to[left ? i + other : first + (i - middle) + other] = from[i];
    }
}

/* Returns scratch memory for 2 * count entries: the merge sort uses two buffers. */
static Entry *entries_of(int64_t count) {
    return static_cast<Entry *>(cuda_scratch(2 * count * (int64_t)sizeof(Entry)));
}

/* Sorts each line of `length` entries by merge sort. `entry` holds `count` entries, which differ
 * within a line, and has room for 2 * count. Returns the half that holds the result. */
static const Entry *sort_lines(Entry *entry, int64_t count, int64_t length) {
    Entry *from = entry, *to = entry + count;
    const unsigned blocks = ht_blocks(count, PLACE_THREADS);
    ht_launch(sort_tiles_device, blocks, PLACE_THREADS, 0, to, from, count, length);
    for (int64_t run = SORT_TILE; run < length; run *= 2) {
        Entry *sorted = to;
        to = from;
        from = sorted;
        ht_launch(merge_runs_device, blocks, PLACE_THREADS, 0, to, from, count, length, run);
    }
    return to;
}

static __device__ inline int64_t element_of(const Lines &lines, int64_t line, int64_t k) {
    return (line / lines.inner * lines.length + k) * lines.inner + line % lines.inner;
}

/* ---- scatter ---- */

/* Writes one entry per element: the global index that receives it, and its index in the line. */
__global__ void scatter_entries_device(Entry *entry, int64_t count, Lines from, Indices number) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads())
        entry[i] = {number.at(element_of(from, i / from.length, i % from.length)), i % from.length};
}

/* Computes each element of y as the sum of the elements of x with its index. The sum is in the
 * order of x, so results are deterministic. */
template <typename T>
__global__ void scatter_device(T *y, int64_t count, Lines to, const T *x, Lines from,
                               const Entry *entry, Indices places) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t line = i / (to.inner * to.length) * to.inner + i % to.inner,
                      place = places.at(i / to.inner % to.length);
        const Entry *own = entry + line * from.length;
        typename Computed<T>::type sum = 0;
        for (int64_t k = entries_before(own, from.length, {place, -1});
             k < from.length && own[k].number == place; k++)
            sum += read(x[element_of(from, line, own[k].place)]);
        if constexpr (std::is_same_v<T, uint16_t>) y[i] = ht_bf16_store(sum);
        else y[i] = sum;
    }
}

void ht_scatter_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const Lines from = lines_of(x, (int)call->attr[0].i), to = lines_of(y, (int)call->attr[0].i);
    const Indices number = indices_of(&call->operand[1], "scatter"),
                  places = indices_of(&call->operand[2], "scatter");
    const int64_t count = view_size(y), elements = view_size(x);
    Entry *entry = entries_of(elements);
    const Entry *sorted = entry;
    if (elements) {
        ht_launch(scatter_entries_device, ht_blocks(elements, PLACE_THREADS), PLACE_THREADS, 0,
                  entry, elements, from, number);
        sorted = sort_lines(entry, elements, from.length);
    }
    with_stored(x, [&]<typename T>() {
        ht_launch(scatter_device<T>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0,
                  static_cast<T *>(y->data), count, to, static_cast<const T *>(x->data), from,
                  sorted, places);
    });
}

/* ---- cumulative sums ---- */

enum { SUM_THREADS = 256 };

/* Accumulator type: f64 for floating-point elements, int64_t for integers. */
template <typename T>
using Total = std::conditional_t<std::is_integral_v<typename Computed<T>::type>, int64_t, double>;

/* One line of a cumulative sum: elements with global indices `places`, results at `wanted`. For
 * suffix sums (not `forward`) the accessors reverse and negate, so that indices always ascend. */
template <typename T> struct Passed {
    const T *x;
    Lines from, to;
    Indices places, wanted;
    bool forward;
    int64_t line;

    __device__ int64_t at(int64_t i) const { return forward ? i : from.length - 1 - i; }
    __device__ int64_t place(int64_t i) const { return forward ? places.at(i) : -places.at(at(i)); }
    __device__ Total<T> value(int64_t i) const { return read(x[element_of(from, line, at(i))]); }
    __device__ int64_t to_at(int64_t k) const { return forward ? k : to.length - 1 - k; }
    __device__ int64_t wanted_at(int64_t k) const {
        return forward ? wanted.at(k) : -wanted.at(to_at(k));
    }

    /* Returns how many elements have a global index of at most `number`. */
    __device__ int64_t until(int64_t number) const {
        int64_t low = 0, high = from.length;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (place(middle) <= number) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};

/* Returns the index of the first of `count` items that thread t of the block handles. */
static __device__ inline int64_t share_begin(int64_t count, unsigned t) {
    return count * t / SUM_THREADS;
}

/* Sets sums[t] to the sum of the elements before thread t's share (exclusive scan of the block). */
template <typename T>
static __device__ inline void sums_before(Total<T> *sums, const Passed<T> &passed) {
    const int64_t end = share_begin(passed.from.length, threadIdx.x + 1);
    Total<T> own = 0;
    for (int64_t i = share_begin(passed.from.length, threadIdx.x); i < end; i++)
        own += passed.value(i);
    sums[threadIdx.x] = own;
    for (unsigned distance = 1; distance < SUM_THREADS; distance *= 2) {
        __syncthreads();
        const Total<T> other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
    }
    __syncthreads();
    const Total<T> before = threadIdx.x ? sums[threadIdx.x - 1] : 0;
    __syncthreads();
    sums[threadIdx.x] = before;
    __syncthreads();
}

/* Returns the sum of the line's first `count` elements, from the scan and at most one share. */
template <typename T>
static __device__ inline Total<T> sum_until(const Total<T> *sums, const Passed<T> &passed,
                                            int64_t count) {
    unsigned t = SUM_THREADS - 1;
    while (t > 0 && share_begin(passed.from.length, t) > count) t--;
    Total<T> sum = sums[t];
    for (int64_t i = share_begin(passed.from.length, t); i < count; i++) sum += passed.value(i);
    return sum;
}

/* Computes the cumulative sums of lines, one line a block at a time. Each thread sums its share of
 * elements; after a scan it writes its share of results. */
template <typename T>
__global__ void __launch_bounds__(SUM_THREADS)
    cumsum_device(T *y, int64_t lines, Passed<T> passed) {
    __shared__ Total<T> sums[SUM_THREADS];
    for (passed.line = blockIdx.x; passed.line < lines; passed.line += gridDim.x) {
        sums_before(sums, passed);
        const int64_t first = share_begin(passed.to.length, threadIdx.x),
                      end = share_begin(passed.to.length, threadIdx.x + 1);
        int64_t next = first < end ? passed.until(passed.wanted_at(first)) : 0;
        Total<T> sum = first < end ? sum_until(sums, passed, next) : 0;
        for (int64_t k = first; k < end; k++) {
            for (; next < passed.from.length && passed.place(next) <= passed.wanted_at(k); next++)
                sum += passed.value(next);
            T *to = y + element_of(passed.to, passed.line, passed.to_at(k));
            if constexpr (std::is_same_v<T, uint16_t>) *to = ht_bf16_store((float)sum);
            else *to = (T)sum;
        }
        __syncthreads();
    }
}

/* Computes inclusive prefix sums along a dimension if `forward`, else inclusive suffix sums. */
static void add_lines(const ht_call *call, bool forward) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const int dim = (int)call->attr[0].i;
    const Lines from = lines_of(x, dim), to = lines_of(y, dim);
    const Indices wanted = indices_of(&call->operand[1], "cumsum"),
                  places = indices_of(&call->operand[2], "cumsum");
    const int64_t lines = ht_view_count(y, 0, dim) * to.inner, most = 1 << 16;
    with_stored(x, [&]<typename T>() {
        const Passed<T> passed = {
            static_cast<const T *>(x->data), from, to, places, wanted, forward, 0};
        ht_launch(cumsum_device<T>, (unsigned)(lines < most ? lines : most), SUM_THREADS, 0,
                  static_cast<T *>(y->data), lines, passed);
    });
}

/* Computes prefix sums along `dim`. Operands: x, ascending global indices of y and x along dim. */
void ht_cumsum_kernel(const ht_call *call) { add_lines(call, true); }

void ht_cumsum_back_kernel(const ht_call *call) { add_lines(call, false); }

/* ---- order ---- */

/* Returns a key in the elements' order, reversed if `descending`; NaN is largest, -0 equals 0. */
template <typename T> static __device__ inline int64_t order_of(T stored, bool descending) {
    int64_t order;
    if constexpr (std::is_integral_v<typename Computed<T>::type>) {
        order = stored;
    } else {
        const double value = read(stored), number = value == 0 ? 0 : value;
        memcpy(&order, &number, sizeof order);
        order = value != value ? INT64_MAX : order < 0 ? order ^ INT64_MAX : order;
    }
    return descending ? ~order : order;
}

template <typename T>
__global__ void rank_entries_device(Entry *entry, int64_t count, const T *x, Lines all,
                                    Indices from, bool descending) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads())
        entry[i] = {order_of(x[element_of(all, i / all.length, i % all.length)], descending),
                    from.at(i % all.length)};
}

template <typename T>
__global__ void rank_device(int32_t *y, int64_t count, const Entry *entry, int64_t length,
                            const T *z, Lines own, Indices at, bool descending) {
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        const int64_t line = i / (own.inner * own.length) * own.inner + i % own.inner;
        const Entry one = {order_of(z[i], descending), at.at(i / own.inner % own.length)};
        y[i] = (int32_t)entries_before(entry + line * length, length, one);
    }
}

void ht_rank_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *z = &call->operand[1], *y = &call->result[0];
    const Lines all = lines_of(x, (int)call->attr[0].i), own = lines_of(z, (int)call->attr[0].i);
    const Indices at = indices_of(&call->operand[2], "rank"),
                  from = indices_of(&call->operand[3], "rank");
    const bool descending = call->attr[1].i != 0;
    const int64_t count = view_size(y), elements = view_size(x);
    Entry *entry = entries_of(elements);
    with_stored(x, [&]<typename T>() {
        const Entry *sorted = entry;
        if (elements) {
            ht_launch(rank_entries_device<T>, ht_blocks(elements, PLACE_THREADS), PLACE_THREADS, 0,
                      entry, elements, static_cast<const T *>(x->data), all, from, descending);
            sorted = sort_lines(entry, elements, all.length);
        }
        ht_launch(rank_device<T>, ht_blocks(count, PLACE_THREADS), PLACE_THREADS, 0,
                  static_cast<int32_t *>(y->data), count, sorted, all.length,
                  static_cast<const T *>(z->data), own, at, descending);
    });
}
