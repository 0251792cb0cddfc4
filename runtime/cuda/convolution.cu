/* Convolutions and their gradients as matrix products whose operands are gathered from the tensors
 * (implicit GEMM: Chetlur et al., cuDNN, 2014): no windows are stored. For each group:
 *
 *     result[o, (b h w)] = sum over (i p q) of weights[o, (i p q)] * images at (b h w)
 *     images[i, (b j k)] = sum over (o p q) of weights[o, i, p, q] * result that saw (b j k)
 *     weights[o, (i p q)] = sum over (b h w) of result[o, (b h w)] * images at (b h w)
 *
 * A block computes a tile of TILE x TILE sums, each thread SIDE x SIDE of them, DEPTH terms at a
 * time through shared memory. Sums have a fixed order. */
#include "operators/kernels.h"
#include "cuda/views.h"
#include "device/convolution.h"

enum { TILE = 64, DEPTH = 16, SIDE = 4, THREADS = (TILE / SIDE) * (TILE / SIDE) };

/* The type in which elements of type T are summed, and how they are read and written. */
template <typename T> struct Sum {
    typedef float type;
};
template <> struct Sum<double> {
    typedef double type;
};

template <typename T> static __device__ inline typename Sum<T>::type load(const T *at) {
    if constexpr (std::is_same_v<T, uint16_t>) return ht_bf16_load(*at);
    else return *at;
}

template <typename T> static __device__ inline void store(T *at, typename Sum<T>::type value) {
    if constexpr (std::is_same_v<T, uint16_t>) *at = ht_bf16_store(value);
    else *at = value;
}

/* An index split into the indices of three dimensions; the last two have extents e1 and e2. */
template <typename Index> struct Split {
    Index a, b, c;
    __device__ Split(Index i, Index e1, Index e2) : a(i / e2 / e1), b(i / e2 % e1), c(i % e2) {}
};

/* A convolution whose sizes are of type Index: 32 bits where all products fit, since GPUs divide
 * these faster. `at_...` give the number of an element in its tensor; -1 outside the images. */
template <typename Index> struct Sizes {
    Index batch, groups, inputs, outputs, image[2], result[2], window[2], stride[2], padding[2],
        dilation[2];

    explicit Sizes(const Convolution &c)
        : batch((Index)c.batch), groups((Index)c.groups), inputs((Index)c.inputs),
          outputs((Index)c.outputs) {
        for (int d = 0; d < 2; d++) {
            image[d] = (Index)c.image[d], result[d] = (Index)c.result[d];
            window[d] = (Index)c.window[d], stride[d] = (Index)c.stride[d];
            padding[d] = (Index)c.padding[d], dilation[d] = (Index)c.dilation[d];
        }
    }

    __device__ int64_t at_image(Index b, Index g, Index i, Index j, Index k) const {
        return ((((int64_t)b * groups + g) * inputs + i) * image[0] + j) * image[1] + k;
    }

    __device__ int64_t at_result(Index b, Index g, Index o, Index h, Index w) const {
        return ((((int64_t)b * groups + g) * outputs + o) * result[0] + h) * result[1] + w;
    }

    __device__ int64_t at_weight(Index g, Index o, Index i, Index p, Index q) const {
        return ((((int64_t)g * outputs + o) * inputs + i) * window[0] + p) * window[1] + q;
    }

    /* The image's element that result (h, w) meets at position (p, q) of the weights. */
    __device__ int64_t at_met(Index g, Index i, const Split<Index> &bhw,
                              const Split<Index> &ipq) const {
        const Index j = bhw.b * stride[0] + ipq.b * dilation[0] - padding[0],
                    k = bhw.c * stride[1] + ipq.c * dilation[1] - padding[1];
        return j < 0 || j >= image[0] || k < 0 || k >= image[1] ? -1 : at_image(bhw.a, g, i, j, k);
    }

    /* The result along dimension d that meets an image's index at a position; -1 if none does. */
    __device__ Index seen_by(int d, Index place, Index position) const {
        const Index from = place + padding[d] - position * dilation[d];
        return from < 0 || from % stride[d] != 0 || from / stride[d] >= result[d]
                   ? -1
                   : from / stride[d];
    }
};

/* The three products: extents of rows, columns and terms, and the numbers of elements. */
template <typename Index> struct Results {
    Sizes<Index> s;
    __host__ __device__ Index rows() const { return s.outputs; }
    __host__ __device__ Index columns() const { return s.batch * s.result[0] * s.result[1]; }
    __host__ __device__ Index terms() const { return s.inputs * s.window[0] * s.window[1]; }
    __device__ int64_t left(Index g, Index row, Index term) const {
        return (int64_t)(g * s.outputs + row) * terms() + term;
    }
    __device__ int64_t right(Index g, Index term, Index column) const {
        const Split<Index> ipq(term, s.window[0], s.window[1]);
        return s.at_met(g, ipq.a, Split<Index>(column, s.result[0], s.result[1]), ipq);
    }
    __device__ int64_t to(Index g, Index row, Index column) const {
        const Split<Index> bhw(column, s.result[0], s.result[1]);
        return s.at_result(bhw.a, g, row, bhw.b, bhw.c);
    }
};

template <typename Index> struct Images {
    Sizes<Index> s;
    __host__ __device__ Index rows() const { return s.inputs; }
    __host__ __device__ Index columns() const { return s.batch * s.image[0] * s.image[1]; }
    __host__ __device__ Index terms() const { return s.outputs * s.window[0] * s.window[1]; }
    __device__ int64_t left(Index g, Index row, Index term) const {
        const Split<Index> opq(term, s.window[0], s.window[1]);
        return s.at_weight(g, opq.a, row, opq.b, opq.c);
    }
    __device__ int64_t right(Index g, Index term, Index column) const {
        const Split<Index> opq(term, s.window[0], s.window[1]), bjk(column, s.image[0], s.image[1]);
        const Index h = s.seen_by(0, bjk.b, opq.b), w = s.seen_by(1, bjk.c, opq.c);
        return h < 0 || w < 0 ? -1 : s.at_result(bjk.a, g, opq.a, h, w);
    }
    __device__ int64_t to(Index g, Index row, Index column) const {
        const Split<Index> bjk(column, s.image[0], s.image[1]);
        return s.at_image(bjk.a, g, row, bjk.b, bjk.c);
    }
};

template <typename Index> struct Weights {
    Sizes<Index> s;
    __host__ __device__ Index rows() const { return s.outputs; }
    __host__ __device__ Index columns() const { return s.inputs * s.window[0] * s.window[1]; }
    __host__ __device__ Index terms() const { return s.batch * s.result[0] * s.result[1]; }
    __device__ int64_t left(Index g, Index row, Index term) const {
        const Split<Index> bhw(term, s.result[0], s.result[1]);
        return s.at_result(bhw.a, g, row, bhw.b, bhw.c);
    }
    __device__ int64_t right(Index g, Index term, Index column) const {
        const Split<Index> ipq(column, s.window[0], s.window[1]);
        return s.at_met(g, ipq.a, Split<Index>(term, s.result[0], s.result[1]), ipq);
    }
    __device__ int64_t to(Index g, Index row, Index column) const {
        return (int64_t)(g * s.outputs + row) * columns() + column;
    }
};

/* Numbers of tiles of one group's product. */
struct Tiles {
    unsigned down, across;
};

/* Computes a tile of to = left * right for one group. T: type of the operands; R: of the result. */
template <typename T, typename R, typename Product, typename Index>
__global__ void __launch_bounds__(THREADS)
    convolution_device(R *to, const T *left, const T *right, Product p, Tiles tiles) {
    typedef typename Sum<T>::type S;
    __shared__ S l[DEPTH][TILE + 1], r[DEPTH][TILE + 1];
    const unsigned tile = blockIdx.x % (tiles.down * tiles.across);
    const Index g = (Index)(blockIdx.x / (tiles.down * tiles.across)),
                first_row = (Index)(tile / tiles.across) * TILE,
                first_column = (Index)(tile % tiles.across) * TILE;
    const Index rows = p.rows(), columns = p.columns(), terms = p.terms();
    const int own_row = threadIdx.x / (TILE / SIDE) * SIDE,
              own_column = threadIdx.x % (TILE / SIDE);
    S sum[SIDE][SIDE] = {};
    for (Index first = 0; first < terms; first += DEPTH) {
        for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
            /* Neighbouring threads read neighbouring terms of `left`, and columns of `right`. */
            const Index row = first_row + e / DEPTH, term = first + e % DEPTH;
            const bool inside = row < rows && term < terms;
            l[e % DEPTH][e / DEPTH] = inside ? load(left + p.left(g, row, term)) : (S)0;
            const Index column = first_column + e % TILE, other = first + e / TILE;
            const int64_t at = column < columns && other < terms ? p.right(g, other, column) : -1;
            r[e / TILE][e % TILE] = at < 0 ? (S)0 : load(right + at);
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; k++) CUDA_UNROLL
        for (int a = 0; a < SIDE; a++) CUDA_UNROLL
        for (int b = 0; b < SIDE; b++)
            sum[a][b] += l[k][own_row + a] * r[k][own_column + b * (TILE / SIDE)];
        __syncthreads();
    }
    for (int a = 0; a < SIDE; a++)
        for (int b = 0; b < SIDE; b++) {
            const Index row = first_row + own_row + a,
                        column = first_column + own_column + b * (TILE / SIDE);
            if (row < rows && column < columns) store(to + p.to(g, row, column), sum[a][b]);
        }
}

/* ---- kernels ---- */

template <typename T, typename R, typename Product>
static void launch(const ht_view *to, const ht_view *left, const ht_view *right, Product p) {
    const Tiles tiles = {(unsigned)((p.rows() + TILE - 1) / TILE),
                         (unsigned)((p.columns() + TILE - 1) / TILE)};
    ht_launch(convolution_device<T, R, Product, decltype(p.rows())>,
              (unsigned)p.s.groups * tiles.down * tiles.across, THREADS, 0,
              static_cast<R *>(to->data), static_cast<const T *>(left->data),
              static_cast<const T *>(right->data), p, tiles);
}

/* Launches a product in the operands' type; the result has their type, or f32 for bf16. */
template <template <typename> typename Product, typename Index>
static void launch_typed(const ht_view *to, const ht_view *left, const ht_view *right,
                         const Convolution &c) {
    const Product<Index> p = {Sizes<Index>(c)};
    if (left->dtype == HT_F64) launch<double, double>(to, left, right, p);
    else if (left->dtype == HT_F32) launch<float, float>(to, left, right, p);
    else if (to->dtype == HT_F32) launch<uint16_t, float>(to, left, right, p);
    else launch<uint16_t, uint16_t>(to, left, right, p);
}

template <template <typename> typename Product>
static void convolve(const ht_view *to, const ht_view *left, const ht_view *right,
                     const Convolution &c) {
    const int64_t channels = c.groups * (c.inputs > c.outputs ? c.inputs : c.outputs),
                  area = c.image[0] * c.image[1] + c.result[0] * c.result[1];
    const int64_t most = (c.batch * area + channels * c.window[0] * c.window[1]) +
                         c.result[0] * c.stride[0] + c.window[0] * c.dilation[0] + c.padding[0] +
                         c.result[1] * c.stride[1] + c.window[1] * c.dilation[1] + c.padding[1];
    if (most < INT32_MAX / 2) launch_typed<Product, int32_t>(to, left, right, c);
    else launch_typed<Product, int64_t>(to, left, right, c);
}

void ht_convolution_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *z = &call->operand[1], *y = &call->result[0];
    convolve<Results>(y, z, x, convolution_of(call, x, y, z));
}

void ht_convolution_images_kernel(const ht_call *call) {
    const ht_view *y = &call->operand[0], *z = &call->operand[1], *x = &call->result[0];
    convolve<Images>(x, z, y, convolution_of(call, x, y, z));
}

void ht_convolution_weights_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->operand[1], *z = &call->result[0];
    convolve<Weights>(z, y, x, convolution_of(call, x, y, z));
}
