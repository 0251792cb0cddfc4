/* Kernels that move or make elements: slice, pad, concat, iota. */
#include "operators/kernels.h"
#include "cuda/views.h"

/* Rows of units; consecutive rows begin `pitch` units apart. */
template <typename Unit> struct Pitched {
    Unit *at;
    int64_t pitch;
};

/* Copies `rows` rows of `units` units. Blocks are two-dimensional: (units of a row, rows). */
template <typename Unit>
__global__ void copy_rows_device(Pitched<Unit> to, Pitched<const Unit> from, int64_t rows,
                                 int64_t units) {
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows;
         r += (int64_t)gridDim.y * blockDim.y)
        for (int64_t u = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; u < units;
             u += (int64_t)gridDim.x * blockDim.x)
            to.at[r * to.pitch + u] = from.at[r * from.pitch + u];
}

static void copy_rows(Pitched<char> to, Pitched<const char> from, int64_t rows, int64_t bytes) {
    if (rows == 0 || bytes == 0) return;
    with_units({address_number(to.at), address_number(from.at), to.pitch, from.pitch, bytes},
               [&]<typename Unit>() {
                   const int64_t size = sizeof(Unit), units = bytes / size;
                   const dim3 block = unit_block(units);
                   ht_launch(copy_rows_device<Unit>, unit_grid(block, rows, units), block, 0,
                             Pitched<Unit>{reinterpret_cast<Unit *>(to.at), to.pitch / size},
                             Pitched<const Unit>{reinterpret_cast<const Unit *>(from.at),
                                                 from.pitch / size},
                             rows, units);
               });
}

/* Returns the bytes that one index along `dim` spans: those of all inner dimensions. */
static int64_t inner_bytes(const ht_view *x, int dim) {
    return ht_view_count(x, dim + 1, x->rank) * dtype_bytes(x->dtype);
}

/* Copies a range of one dimension. Attributes: dim, start, length. */
void ht_slice_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const int dim = (int)call->attr[0].i;
    const int64_t start = call->attr[1].i, length = y->extent[dim], inner = inner_bytes(x, dim);
    if (start < 0 || start + length > x->extent[dim])
        ht_fail("slice %ld to %ld is outside the extent %ld of dimension %d", (long)start,
                (long)(start + length), (long)x->extent[dim], dim);
    copy_rows({static_cast<char *>(y->data), length * inner},
              {static_cast<const char *>(x->data) + start * inner, x->extent[dim] * inner},
              ht_view_count(x, 0, dim), length * inner);
}

/* Pads one dimension with zeros. Attributes: dim, start, extent. */
void ht_pad_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const int dim = (int)call->attr[0].i;
    const int64_t start = call->attr[1].i, length = x->extent[dim], inner = inner_bytes(x, dim);
    if (start < 0 || start + length > y->extent[dim])
        ht_fail("pad: %ld to %ld is outside the extent %ld of dimension %d", (long)start,
                (long)(start + length), (long)y->extent[dim], dim);
    HT_CUDA(cudaMemsetAsync(y->data, 0, (size_t)(view_size(y) * dtype_bytes(y->dtype)),
                            ht_compute_stream()));
    copy_rows({static_cast<char *>(y->data) + start * inner, y->extent[dim] * inner},
              {static_cast<const char *>(x->data), length * inner}, ht_view_count(x, 0, dim),
              length * inner);
}

/* Concatenates all operands along one dimension. Attribute: dim. */
void ht_concat_kernel(const ht_call *call) {
    const ht_view *y = &call->result[0];
    const int dim = (int)call->attr[0].i;
    const int64_t inner = inner_bytes(y, dim);
    int64_t at = 0;
    for (int k = 0; k < call->operand_count; k++) {
        const ht_view *x = &call->operand[k];
        const int64_t length = x->extent[dim];
        copy_rows({static_cast<char *>(y->data) + at * inner, y->extent[dim] * inner},
                  {static_cast<const char *>(x->data), length * inner}, ht_view_count(x, 0, dim),
                  length * inner);
        at += length;
    }
}

/* Sets each element to its index in the whole tensor; bf16 is stored as uint16_t. */
template <typename T> __global__ void iota_device(T *y, Places places) {
    for (int64_t i = ht_thread(); i < places.extent; i += ht_threads()) y[i] = (T)places.at(i);
}

template <> __global__ void iota_device<uint16_t>(uint16_t *y, Places places) {
    for (int64_t i = ht_thread(); i < places.extent; i += ht_threads())
        y[i] = ht_bf16_store((float)places.at(i));
}

template <typename T> static void iota(const ht_view *y) {
    ht_launch(iota_device<T>, ht_blocks(y->extent[0], UNIT_THREADS), UNIT_THREADS, 0,
              static_cast<T *>(y->data), places_of(y, 0));
}

void ht_iota_kernel(const ht_call *call) {
    const ht_view *y = &call->result[0];
    switch (y->dtype) {
    case HT_F32: return iota<float>(y);
    case HT_BF16: return iota<uint16_t>(y);
    case HT_F64: return iota<double>(y);
    case HT_I32: return iota<int32_t>(y);
    case HT_I64: return iota<int64_t>(y);
    }
}
