/* Moves of boxes between buffers on the device: local steps of conversions, sums, fills.
 *
 * The moves of a step run in one launch, or few. A unit is a run of bytes that is read and written
 * at once. A span is at most 2048 units; a block of threads takes one span. If a sum writes memory
 * that an earlier move of the step reads or writes, the sum goes to a later launch. */
#include "exchange/copy_boxes.h"
#include "cuda/streams.h"

#include <hetu/rt.h>

#include <vector>

enum {
    THREADS = 256,
    UNITS_EACH = 8, // units of a thread in a span
    SPAN = THREADS * UNITS_EACH,
    MOVE_DIMS = 4, // dimensions of a move in a launch; outer dimensions become moves of their own
    BATCH = 30,    // most moves of a launch: CUDA 12 allows 4 KB of kernel arguments everywhere
    FEW = 4,       // most launches have at most FEW moves
    WIDEST = 16    // bytes of the largest unit
};

/* One dimension of a move; strides are in bytes. */
struct MoveDim {
    uint32_t extent;
    int64_t from, to;
};

struct DeviceMove {
    char *to;
    const char *from;
    uint32_t units, first_span; // number of units; number of the first span within the launch
    int32_t rank, unit;         // unit: bytes of a unit
    MoveDim dim[MOVE_DIMS];
};

template <int MOST> struct MoveBatch {
    int32_t count;
    ht_verb verb;
    ht_dtype dtype;
    ht_reduction reduction;
    DeviceMove move[MOST];
};

/* ---- on the device ---- */

template <typename T>
static __device__ inline void combine(char *to, const char *from, ht_reduction reduction) {
    T a = *(const T *)to, b = *(const T *)from;
    *(T *)to = reduction == HT_SUM ? (T)(a + b) : b <= a || a != a ? a : b;
}

static __device__ inline void combine_unit(char *to, const char *from, ht_dtype dtype,
                                           ht_reduction reduction) {
    switch (dtype) {
    case HT_F32: combine<float>(to, from, reduction); break;
    case HT_F64: combine<double>(to, from, reduction); break;
    case HT_I32: combine<int32_t>(to, from, reduction); break;
    case HT_I64: combine<int64_t>(to, from, reduction); break;
    case HT_BF16: {
        float a = ht_bf16_load(*(const uint16_t *)to), b = ht_bf16_load(*(const uint16_t *)from);
        *(uint16_t *)to = ht_bf16_store(reduction == HT_SUM ? a + b : b <= a || a != a ? a : b);
        break;
    }
    }
}

static __device__ inline void fill_unit(char *to, ht_dtype dtype, ht_reduction reduction) {
    bool lowest = reduction == HT_MAX;
    switch (dtype) {
    case HT_F32: *(float *)to = lowest ? -INFINITY : 0; break;
    case HT_F64: *(double *)to = lowest ? -INFINITY : 0; break;
    case HT_I32: *(int32_t *)to = lowest ? INT32_MIN : 0; break;
    case HT_I64: *(int64_t *)to = lowest ? INT64_MIN : 0; break;
    case HT_BF16: *(uint16_t *)to = lowest ? ht_bf16_store(-INFINITY) : 0; break;
    }
}

static __device__ inline void copy_unit(char *to, const char *from, int unit) {
    switch (unit) {
    case 16: *(int4 *)to = *(const int4 *)from; break;
    case 8: *(int2 *)to = *(const int2 *)from; break;
    case 4: *(int *)to = *(const int *)from; break;
    default: *(short *)to = *(const short *)from; break;
    }
}

/* Returns the index of the move that a span belongs to. */
template <int MOST>
static __device__ inline int find_move(const MoveBatch<MOST> &batch, uint32_t span) {
    int low = 0, high = batch.count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (batch.move[middle].first_span <= span) low = middle;
        else high = middle - 1;
    }
    return low;
}

template <int MOST>
static __global__ void __launch_bounds__(THREADS)
    move_device(const __grid_constant__ MoveBatch<MOST> batch) {
    const DeviceMove &move = batch.move[find_move(batch, blockIdx.x)];
    uint32_t begin = (blockIdx.x - move.first_span) * SPAN;
    uint32_t end = move.units - begin < SPAN ? move.units : begin + SPAN;
    for (uint32_t u = begin + threadIdx.x; u < end; u += THREADS) {
        uint32_t rest = u;
        const char *from = move.from;
        char *to = move.to;
        for (int d = move.rank - 1; d >= 0; d--) {
            uint32_t outer = rest / move.dim[d].extent, at = rest - outer * move.dim[d].extent;
            from += at * move.dim[d].from;
            to += at * move.dim[d].to;
            rest = outer;
        }
        if (batch.verb == HT_COPY) copy_unit(to, from, move.unit);
        else if (batch.verb == HT_COMBINE) combine_unit(to, from, batch.dtype, batch.reduction);
        else fill_unit(to, batch.dtype, batch.reduction);
    }
}

/* ---- on the host ---- */

/* The bytes at addresses in [low, high). */
struct Reach {
    const char *low, *high;
};

static bool overlap(Reach a, Reach b) { return a.low < b.high && b.low < a.high; }

/* Collects moves of a step, and launches them together. */
class Launch {
  public:
    Launch(cudaStream_t target, ht_verb verb, ht_dtype dtype, ht_reduction reduction)
        : stream(target) {
        batch.verb = verb;
        batch.dtype = dtype;
        batch.reduction = reduction;
    }

    void set_type(ht_dtype dtype, ht_reduction reduction) {
        if (batch.dtype != dtype || batch.reduction != reduction) run();
        batch.dtype = dtype;
        batch.reduction = reduction;
    }

    void add(const DeviceMove &move);
    void run();

  private:
    bool must_wait(Reach from, Reach to) const;

    cudaStream_t stream;
    uint32_t spans = 0;
    std::vector<Reach> read, written;
    MoveBatch<BATCH> batch = {};
};

/* Returns a batch of at most FEW moves as a smaller kernel argument. */
static MoveBatch<FEW> first_few(const MoveBatch<BATCH> &batch) {
    MoveBatch<FEW> few = {batch.count, batch.verb, batch.dtype, batch.reduction, {}};
    for (int i = 0; i < batch.count; i++) few.move[i] = batch.move[i];
    return few;
}

void Launch::run() {
    if (batch.count > FEW) ht_launch_on(stream, move_device<BATCH>, spans, THREADS, 0, batch);
    else if (batch.count)
        ht_launch_on(stream, move_device<FEW>, spans, THREADS, 0, first_few(batch));
    batch.count = 0;
    spans = 0;
    read.clear();
    written.clear();
}

/* Returns whether a move must run after a collected one, in a later launch. Boxes that a step
 * copies or fills are disjoint, so only sums depend on the order. */
bool Launch::must_wait(Reach from, Reach to) const {
    if (batch.verb != HT_COMBINE) return false;
    for (Reach w : written)
        if (overlap(w, to) || overlap(w, from)) return true;
    for (Reach r : read)
        if (overlap(r, to)) return true;
    return false;
}

/* Returns the memory that a move writes (`to`) or reads. */
static Reach reach_of(const DeviceMove &move, bool to) {
    int64_t bytes = move.unit;
    for (int d = 0; d < move.rank; d++)
        bytes += (int64_t)(move.dim[d].extent - 1) * (to ? move.dim[d].to : move.dim[d].from);
    const char *low = to ? move.to : move.from;
    return {low, low + bytes};
}

void Launch::add(const DeviceMove &move) {
    Reach from = reach_of(move, false), to = reach_of(move, true);
    if (batch.count == BATCH || must_wait(from, to)) run();
    batch.move[batch.count] = move;
    batch.move[batch.count++].first_span = spans;
    spans += (move.units + SPAN - 1) / SPAN;
    if (batch.verb == HT_COMBINE) {
        read.push_back(from);
        written.push_back(to);
    }
}

/* A box of elements of `size` bytes that is moved; strides in elements. */
struct MovedBox {
    const ht_stride *dim;
    int rank;
    int64_t size;
    char *to;
    const char *from;
};

/* Returns the bytes of the widest unit that divides all addresses, strides and the innermost row.
 * The unit is one element if the innermost row has gaps, or the move is not a copy. */
static int unit_of(ht_verb verb, const MovedBox &box) {
    const ht_stride *dim = box.dim;
    const int rank = box.rank;
    const int64_t size = box.size;
    if (verb != HT_COPY || (rank && (dim[rank - 1].from != 1 || dim[rank - 1].to != 1)))
        return (int)size;
    int64_t bits = (int64_t)(intptr_t)box.to | (int64_t)(intptr_t)box.from |
                   (rank ? dim[rank - 1].extent * size : size);
    for (int d = 0; d < rank - 1; d++) bits |= dim[d].from * size | dim[d].to * size;
    int unit = WIDEST;
    while (bits % unit) unit /= 2;
    return unit;
}

/* Adds a box that has at most MOVE_DIMS dimensions, and fewer than 2^31 elements. */
static void add_box(Launch &launch, ht_verb verb, const MovedBox &box) {
    DeviceMove move = {};
    move.to = box.to;
    move.from = box.from;
    move.rank = box.rank;
    move.unit = unit_of(verb, box);
    move.units = 1;
    for (int d = 0; d < box.rank; d++) {
        const ht_stride &dim = box.dim[d];
        bool row = d == box.rank - 1 && move.unit > box.size;
        move.dim[d].extent = (uint32_t)(row ? dim.extent * box.size / move.unit : dim.extent);
        move.dim[d].from = row ? move.unit : dim.from * box.size;
        move.dim[d].to = row ? move.unit : dim.to * box.size;
        move.units *= move.dim[d].extent;
    }
    launch.add(move);
}

/* Adds a box. Cuts the box along its outermost dimension until add_box can take the parts. */
static void add_boxes(Launch &launch, ht_verb verb, const MovedBox &box) {
    const int64_t most = (int64_t)1 << 31, size = box.size;
    const ht_stride *dim = box.dim;
    const int rank = box.rank;
    int64_t inner = 1;
    for (int d = 1; d < rank; d++) inner *= dim[d].extent;
    if (rank && (inner == 0 || dim[0].extent == 0)) return;
    int64_t rows = rank > MOVE_DIMS || inner >= most ? 0 : rank ? most / inner : 1;
    if (rank > MOVE_DIMS || rows == 0) {
        for (int64_t i = 0; i < dim[0].extent; i++)
            add_boxes(launch, verb,
                      {dim + 1, rank - 1, size, box.to + i * dim[0].to * size,
                       box.from + i * dim[0].from * size});
        return;
    }
    for (int64_t at = 0; rank && at < dim[0].extent; at += rows) {
        ht_stride part[MOVE_DIMS];
        for (int d = 0; d < rank; d++) part[d] = dim[d];
        part[0].extent = dim[0].extent - at < rows ? dim[0].extent - at : rows;
        add_box(
            launch, verb,
            {part, rank, size, box.to + at * dim[0].to * size, box.from + at * dim[0].from * size});
    }
    if (!rank) add_box(launch, verb, box);
}

void cuda_move(const ChannelRun *run, const ht_reshard_step *step, cudaStream_t stream) {
    Launch launch(stream, step->verb, HT_F32, HT_NO_REDUCTION);
    for (int i = 0; i < step->move_count; i++) {
        const ht_move *move = &step->move[i];
        const ht_reshard_tensor *tensor = &run->plan->tensor[move->tensor];
        char *to = channel_address(run, move->to, move->tensor, move->to_offset, tensor->dtype);
        const char *from =
            step->verb == HT_FILL
                ? to
                : channel_address(run, move->from, move->tensor, move->from_offset, tensor->dtype);
        if (step->verb == HT_COPY && to == from) continue;
        if (step->verb != HT_COPY) launch.set_type(tensor->dtype, tensor->reduction);
        add_boxes(launch, step->verb,
                  {move->dim, move->rank, (int64_t)ht_dtype_bytes(tensor->dtype), to, from});
    }
    launch.run();
}

/* ---- functions that emitted code calls ---- */

/* Runs one move on the compute stream. */
static void run_move(ht_verb verb, ht_reduction reduction, ht_dtype dtype, const MovedBox &box) {
    Launch launch(ht_compute_stream(), verb, dtype, reduction);
    add_boxes(launch, verb, box);
    launch.run();
}

extern "C" void ht_copy(void *to, const void *from, size_t bytes) {
    if (to != from && bytes)
        HT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, ht_compute_stream()));
}

extern "C" void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count,
                              ht_dtype dtype) {
    const ht_stride row = {count, 1, 1};
    const int64_t size = (int64_t)ht_dtype_bytes(dtype);
    if (r->microbatch)
        run_move(HT_COMBINE, HT_SUM, dtype, {&row, 1, size, (char *)to, (const char *)from});
    else ht_copy(to, from, (size_t)(count * size));
}

extern "C" void ht_fill_identity(void *to, ht_dtype dtype, int64_t count, bool maximum) {
    const ht_stride row = {count, 1, 1};
    const int64_t size = (int64_t)ht_dtype_bytes(dtype);
    run_move(HT_FILL, maximum ? HT_MAX : HT_SUM, dtype, {&row, 1, size, (char *)to, (char *)to});
}
