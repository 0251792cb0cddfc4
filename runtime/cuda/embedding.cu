/* Embedding: looks up rows of a table by token; backward adds gradients to these rows.
 *
 * Backward sorts the tokens by their rows (a stable counting sort: Knuth, The Art of Computer
 * Programming 3, 5.2). Backward then adds up runs of equal rows in that order. So no two threads
 * add to the same element, and every sum has a fixed order. */
#include "operators/kernels.h"
#include "cuda/team.h"

/* This device's piece of an embedding table, and the tokens to look up. */
typedef struct Tokens {
    Indices id;
    int64_t count, rows; // number of tokens; number of rows of the piece
    Places places;       // global indices of the rows of the piece
    CudaReport report;
} Tokens;

static Tokens tokens_of(const ht_view *table, const ht_view *id) {
    return {indices_of(id, "embedding"), view_size(id), table->extent[0], places_of(table, 0),
            cuda_report("token %lld at element %lld is outside the table's %lld rows", id)};
}

/* Returns the local row of token i, or -1 if another device has that row. */
static __device__ inline int64_t row_of(const Tokens &tokens, int64_t i) {
    const int64_t token = tokens.id.at(i);
    if (token < 0 || token >= tokens.places.global) {
        cuda_fault(tokens.report, token, i, tokens.places.global);
        return -1;
    }
    return tokens.places.find(token);
}

/* Computes y[i] = table[row of token i], or 0 for a row elsewhere; a row has `units` units. */
template <typename Unit>
__global__ void embedding_device(Unit *y, const Unit *table, int64_t units, Tokens tokens) {
    for (int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; i < tokens.count;
         i += (int64_t)gridDim.y * blockDim.y) {
        const int64_t row = row_of(tokens, i);
        for (int64_t u = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; u < units;
             u += (int64_t)gridDim.x * blockDim.x)
            y[i * units + u] = row < 0 ? Unit() : table[row * units + u];
    }
}

void ht_embedding_kernel(const ht_call *call) {
    const ht_view *table = &call->operand[0], *y = &call->result[0];
    const Tokens tokens = tokens_of(table, &call->operand[1]);
    const int64_t bytes = table->extent[1] * dtype_bytes(table->dtype);
    if (y->dtype != table->dtype)
        ht_fail("embedding gives rows of the table's type only; cast them");
    if (tokens.count == 0 || bytes == 0) return;
    with_units({address_number(y->data), address_number(table->data), bytes}, [&]<typename Unit>() {
        const int64_t units = bytes / (int64_t)sizeof(Unit);
        const dim3 block = unit_block(units);
        ht_launch(embedding_device<Unit>, unit_grid(block, tokens.count, units), block, 0,
                  static_cast<Unit *>(y->data), static_cast<const Unit *>(table->data), units,
                  tokens);
    });
}

/* ---- backward: sorting ---- */

enum {
    TILE = 256,            // tokens that a block ranks at once
    MOST_PARTS = 64,       // most parts of the tokens; one block sorts each part
    COUNT_BYTES = 1 << 26, // most bytes for the counts of all parts
    SCAN_THREADS = 1024,
    CHUNK = 32, // sorted tokens whose gradients one block sums
    GATHER_THREADS = 128,
    NO_ROW = -1
};

/* Result and scratch memory of the counting sort of tokens by row. */
typedef struct Sorted {
    int64_t parts;
    /* [part][row]: tokens of the part in the row; after step 2, tokens of earlier parts. */
    int32_t *count;
    int32_t *start; // [row]: index of the row's first token in sorted order; [rows]: token count
    int32_t *order; // by index in sorted order: the token
    int32_t *row;   // by index in sorted order: the row
    /* [chunk][2][n]: sum of the run from an earlier chunk, and of the run into a later chunk. */
    float *partial;
} Sorted;

/* Rank of this thread's token among the tokens of its tile with the same row. `before` counts
 * earlier tokens; `last` is true if there is no later token. */
typedef struct Rank {
    int32_t row; // NO_ROW: no token, or the row is on another device
    int32_t before;
    bool last;
} Rank;

static __device__ inline Rank rank_in_tile(const Tokens &tokens, int64_t token, int64_t end) {
    __shared__ int32_t rows[TILE];
    Rank rank = {token < end ? (int32_t)row_of(tokens, token) : NO_ROW, 0, true};
    __syncthreads();
    rows[threadIdx.x] = rank.row;
    __syncthreads();
    for (unsigned other = 0; other < TILE; other++)
        if (rows[other] == rank.row) {
            rank.before += other < threadIdx.x;
            rank.last = rank.last && other <= threadIdx.x;
        }
    return rank;
}

/* Returns the first token of a part. */
static __device__ inline int64_t part_begin(const Tokens &tokens, const Sorted &sorted,
                                            int64_t part) {
    return tokens.count * part / sorted.parts;
}

/* Step 1 of the sort: counts the tokens of each part by row. The caller has zeroed the counts. */
__global__ void __launch_bounds__(TILE) count_rows_device(Sorted sorted, Tokens tokens) {
    const int64_t end = part_begin(tokens, sorted, blockIdx.x + 1);
    int32_t *count = sorted.count + blockIdx.x * tokens.rows;
    for (int64_t first = part_begin(tokens, sorted, blockIdx.x); first < end; first += TILE) {
        const Rank rank = rank_in_tile(tokens, first + threadIdx.x, end);
        if (rank.row != NO_ROW && rank.last) count[rank.row] += rank.before + 1;
    }
}

/* Step 2: replaces counts by sums over earlier parts, and sets start[row] to the row's total. */
__global__ void add_parts_device(Sorted sorted, int64_t rows) {
    for (int64_t row = ht_thread(); row < rows; row += ht_threads()) {
        int32_t total = 0;
        for (int64_t part = 0; part < sorted.parts; part++) {
            int32_t mine = sorted.count[part * rows + row];
            sorted.count[part * rows + row] = total;
            total += mine;
        }
        sorted.start[row] = total;
    }
}

/* Step 3: one block replaces `start` by exclusive prefix sums; start[rows] gets the token count. */
__global__ void __launch_bounds__(SCAN_THREADS) scan_rows_device(Sorted sorted, int64_t rows) {
    __shared__ int32_t sums[SCAN_THREADS];
    const int64_t first = rows * threadIdx.x / SCAN_THREADS,
                  end = rows * (threadIdx.x + 1) / SCAN_THREADS;
    int32_t total = 0;
    for (int64_t row = first; row < end; row++) total += sorted.start[row];
    sums[threadIdx.x] = total;
    for (unsigned distance = 1; distance < SCAN_THREADS; distance *= 2) {
        __syncthreads();
        const int32_t other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
    }
    int32_t at = sums[threadIdx.x] - total;
    for (int64_t row = first; row < end; row++) {
        const int32_t mine = sorted.start[row];
        sorted.start[row] = at;
        at += mine;
    }
    if (threadIdx.x == SCAN_THREADS - 1) sorted.start[rows] = at;
}

/* Step 4: writes each token and its row to the token's index in the sorted order. */
__global__ void __launch_bounds__(TILE) place_tokens_device(Sorted sorted, Tokens tokens) {
    const int64_t end = part_begin(tokens, sorted, blockIdx.x + 1);
    int32_t *count = sorted.count + blockIdx.x * tokens.rows;
    for (int64_t first = part_begin(tokens, sorted, blockIdx.x); first < end; first += TILE) {
        const int64_t token = first + threadIdx.x;
        const Rank rank = rank_in_tile(tokens, token, end);
        if (rank.row != NO_ROW) {
            const int32_t place = sorted.start[rank.row] + count[rank.row] + rank.before;
            sorted.order[place] = (int32_t)token;
            sorted.row[place] = rank.row;
        }
        __syncthreads();
        if (rank.row != NO_ROW && rank.last) count[rank.row] += rank.before + 1;
    }
}

/* ---- backward: adding up ---- */

/* Returns whether the run of equal rows at `first` begins in an earlier chunk. */
static __device__ inline bool begins_before(const Sorted &sorted, int64_t first) {
    return first > 0 && sorted.row[first - 1] == sorted.row[first];
}

static __device__ inline bool goes_on(const Sorted &sorted, int64_t end, int64_t count) {
    return end < count && sorted.row[end] == sorted.row[end - 1];
}

/* Adds V columns of a row's sum to the table. */
template <int V> static __device__ inline void add_to_row(float *to, const float (&sum)[V]) {
    float own[V];
    ht_load(own, to);
    CUDA_UNROLL
    for (int v = 0; v < V; v++) own[v] += sum[v];
    ht_store(to, own);
}

/* Sums the rows of dy over each run of equal table rows in one chunk, V columns per thread.
 * Complete runs are added to the table; runs that cross a chunk boundary go to `partial`. */
template <typename T, int V>
__global__ void __launch_bounds__(GATHER_THREADS)
    add_runs_device(float *table, const T *dy, int64_t n, Sorted sorted, int64_t rows) {
    const int64_t count = sorted.start[rows], first = (int64_t)blockIdx.x * CHUNK,
                  end = first + CHUNK < count ? first + CHUNK : count;
    const int64_t column = ((int64_t)blockIdx.y * GATHER_THREADS + threadIdx.x) * V;
    if (first >= count || column >= n) return;
    float sum[V] = {};
    bool before = begins_before(sorted, first);
    for (int64_t place = first; place < end; place++) {
        const int32_t row = sorted.row[place];
        float vector[V];
        ht_load(vector, dy + sorted.order[place] * n + column);
        CUDA_UNROLL
        for (int v = 0; v < V; v++) sum[v] += vector[v];
        if (place + 1 < end && sorted.row[place + 1] == row) continue;
        const bool after = place + 1 == end && goes_on(sorted, end, count);
        float *partial = sorted.partial + (blockIdx.x * 2 + (before ? 0 : 1)) * n;
        if (before || after) ht_store(partial + column, sum);
        else add_to_row(table + row * n + column, sum);
        before = false;
        CUDA_UNROLL
        for (int v = 0; v < V; v++) sum[v] = 0;
    }
}

/* Adds the partial sums of a run that begins in this chunk and ends in a later one to the table. */
template <int V>
__global__ void __launch_bounds__(GATHER_THREADS)
    join_runs_device(float *table, int64_t n, Sorted sorted, int64_t rows) {
    const int64_t count = sorted.start[rows], first = (int64_t)blockIdx.x * CHUNK,
                  end = first + CHUNK;
    const int64_t column = ((int64_t)blockIdx.y * GATHER_THREADS + threadIdx.x) * V;
    if (first >= count || column >= n || !goes_on(sorted, end, count)) return;
    const int32_t row = sorted.row[end];
    if (begins_before(sorted, first) && sorted.row[first] == row) return;
    float sum[V], vector[V];
    ht_load(sum, sorted.partial + (blockIdx.x * 2 + 1) * n + column);
    for (int64_t chunk = blockIdx.x + 1; chunk * CHUNK < count && sorted.row[chunk * CHUNK] == row;
         chunk++) {
        ht_load(vector, sorted.partial + chunk * 2 * n + column);
        CUDA_UNROLL
        for (int v = 0; v < V; v++) sum[v] += vector[v];
    }
    add_to_row(table + row * n + column, sum);
}

/* Initializes the table's gradient with `more`, or with zeros if `more` is NULL. */
static void begin_table(float *table, const float *more, int64_t count) {
    const size_t bytes = (size_t)count * sizeof(float);
    if (!more) HT_CUDA(cudaMemsetAsync(table, 0, bytes, ht_compute_stream()));
    else if (more != table)
        HT_CUDA(cudaMemcpyAsync(table, more, bytes, cudaMemcpyDeviceToDevice, ht_compute_stream()));
}

/* Allocates the scratch memory of the sort and chooses the number of parts. */
static Sorted sorted_of(const Tokens &tokens, int64_t n) {
    const int64_t most = COUNT_BYTES / (int64_t)sizeof(int32_t) / tokens.rows,
                  tiles = (tokens.count + TILE - 1) / TILE;
    int64_t parts = MOST_PARTS;
    parts = tiles < parts ? tiles : parts;
    parts = most < parts ? most : parts;
    parts = parts < 1 ? 1 : parts;
    const int64_t chunks = (tokens.count + CHUNK - 1) / CHUNK,
                  counts = cuda_aligned(parts * tokens.rows * (int64_t)sizeof(int32_t)),
                  starts = cuda_aligned((tokens.rows + 1) * (int64_t)sizeof(int32_t)),
                  places = cuda_aligned(tokens.count * (int64_t)sizeof(int32_t));
    char *at = static_cast<char *>(cuda_scratch(
        counts + starts + 2 * places + cuda_aligned(2 * chunks * n * (int64_t)sizeof(float))));
    char *start = at + counts, *order = start + starts, *row = order + places,
         *partial = row + places;
    return {parts,
            reinterpret_cast<int32_t *>(at),
            reinterpret_cast<int32_t *>(start),
            reinterpret_cast<int32_t *>(order),
            reinterpret_cast<int32_t *>(row),
            reinterpret_cast<float *>(partial)};
}

static void sort_tokens(const Sorted &sorted, const Tokens &tokens) {
    const unsigned parts = (unsigned)sorted.parts;
    HT_CUDA(cudaMemsetAsync(sorted.count, 0, (size_t)(sorted.parts * tokens.rows) * sizeof(int32_t),
                            ht_compute_stream()));
    ht_launch(count_rows_device, parts, TILE, 0, sorted, tokens);
    ht_launch(add_parts_device, ht_blocks(tokens.rows, TILE), TILE, 0, sorted, tokens.rows);
    ht_launch(scan_rows_device, 1, SCAN_THREADS, 0, sorted, tokens.rows);
    ht_launch(place_tokens_device, parts, TILE, 0, sorted, tokens);
}

void ht_embedding_backward_kernel(const ht_call *call) {
    const ht_view *dy = &call->operand[0], *table = &call->result[0];
    const Tokens tokens = tokens_of(table, &call->operand[1]);
    const int64_t n = table->extent[1], chunks = (tokens.count + CHUNK - 1) / CHUNK;
    float *to = view_f32(table, "embedding");
    if (tokens.rows == 0 || n == 0) return;
    begin_table(to, view_f32(&call->operand[2], "embedding"), tokens.rows * n);
    if (tokens.count == 0) return;
    const Sorted sorted = sorted_of(tokens, n);
    sort_tokens(sorted, tokens);
    with_vectors("embedding", n, {dy}, {to}, [&]<typename T, int V>() {
        const dim3 grid((unsigned)chunks, ht_blocks((n + V - 1) / V, GATHER_THREADS));
        ht_launch(add_runs_device<T, V>, grid, GATHER_THREADS, 0, to,
                  static_cast<const T *>(dy->data), n, sorted, tokens.rows);
        ht_launch(join_runs_device<V>, grid, GATHER_THREADS, 0, to, n, sorted, tokens.rows);
    });
}
