/* views.h: access to the views of a call in CUDA kernels. C++ only. bf16 is stored as uint16_t, and
 * computed in f32 (ht_load, ht_store of <hetu/cuda_loops.h>). */
#pragma once

#include "cuda/cuda.h"

#include <hetu/cuda_loops.h>
#include <hetu/kernel.h>

#include <initializer_list>

/* Unrolls a loop over a thread's elements, which stay in registers only then. */
#ifdef __CUDACC__
#define CUDA_UNROLL _Pragma("unroll")
#else
#define CUDA_UNROLL
#endif

/* Returns a view's f32 data, or nullptr. Other types end the program, naming the operator. */
static inline float *view_f32(const ht_view *view, const char *name) {
    if (view->data && view->dtype != HT_F32)
        ht_fail("%s needs f32 here; cast the operand first", name);
    return static_cast<float *>(view->data);
}

static inline int64_t view_size(const ht_view *view) { return ht_view_count(view, 0, view->rank); }

/* Returns the number of rows of a view, whose last dimension holds the columns. */
static inline int64_t view_rows(const ht_view *view) {
    return ht_view_count(view, 0, view->rank - 1);
}
static inline int64_t view_columns(const ht_view *view) { return view->extent[view->rank - 1]; }

static inline int dtype_bytes(ht_dtype dtype) {
    return dtype == HT_BF16 ? 2 : dtype == HT_F32 || dtype == HT_I32 ? 4 : 8;
}

/* Returns whether all addresses are multiples of `bytes`. */
static inline bool aligned_to(int64_t bytes, std::initializer_list<const void *> data) {
    for (const void *address : data)
        if (reinterpret_cast<uintptr_t>(address) % (uintptr_t)bytes) return false;
    return true;
}

/* Calls work.operator()<T>() with the views' type of storage, f32 or bf16, which all share. */
template <typename Work>
static inline void with_float(const char *name, std::initializer_list<const ht_view *> views,
                              Work work) {
    const ht_view *first = *views.begin();
    for (const ht_view *view : views)
        if (view->data && view->dtype != first->dtype)
            ht_fail("%s takes operands of one type only; cast them", name);
    if (first->dtype != HT_F32 && first->dtype != HT_BF16)
        ht_fail("%s computes on f32 and bf16 only; cast the operand first", name);
    if (first->dtype == HT_F32) work.template operator()<float>();
    else work.template operator()<uint16_t>();
}

/* Elements of T in 16 bytes, which a thread loads at once. */
template <typename T> constexpr int VECTOR_OF = 16 / (int)sizeof(T);

/* A view of integers on the device. */
struct Indices {
    const void *data;
    int64_t wide; // 1: of i64, 0: of i32

    __device__ int64_t at(int64_t i) const {
        return wide ? static_cast<const int64_t *>(data)[i] : static_cast<const int32_t *>(data)[i];
    }
};

/* Returns the integers of a view; ends the program if a present view has another type. */
static inline Indices indices_of(const ht_view *view, const char *name) {
    if (view->data && view->dtype != HT_I32 && view->dtype != HT_I64)
        ht_fail("%s takes integers of type i32 or i64", name);
    return {view->data, view->dtype == HT_I64};
}

/* The position of a piece along one dimension of the whole tensor; `at` and `find` are
 * ht_view_place and ht_view_find in kernels. */
struct Places {
    int64_t extent, offset, fold, gap, global;

    __device__ int64_t at(int64_t i) const { return offset + i + (i >= fold ? gap : 0); }

    __device__ int64_t find(int64_t place) const {
        const int64_t i = place - offset, beyond = i - gap;
        return i < 0                               ? -1
               : i < fold || gap == 0              ? (i < extent ? i : -1)
               : beyond >= fold && beyond < extent ? beyond
                                                   : -1;
    }
};

static inline Places places_of(const ht_view *view, int d) {
    return {view->extent[d], view->offset[d], view->fold[d], view->gap[d], view->global[d]};
}

/* Calls work.operator()<Unit>() with the largest unit, of 2 to 16 bytes, that divides all of
 * `bytes` (numbers of bytes, and addresses). */
template <typename Work>
static inline void with_units(std::initializer_list<int64_t> bytes, Work work) {
    int64_t all = 0;
    for (int64_t number : bytes) all |= number;
    if (all % 16 == 0) work.template operator()<uint4>();
    else if (all % 8 == 0) work.template operator()<uint2>();
    else if (all % 4 == 0) work.template operator()<uint32_t>();
    else work.template operator()<uint16_t>();
}

static inline int64_t address_number(const void *data) {
    return (int64_t)reinterpret_cast<uintptr_t>(data);
}

enum { UNIT_THREADS = 256, MOST_GRID_ROWS = 1 << 15 };

/* Return a block of UNIT_THREADS threads, (units, rows), for rows of `units`, and the grid. */
static inline dim3 unit_block(int64_t units) {
    unsigned along = 1;
    while (along < UNIT_THREADS && along < units) along *= 2;
    return dim3(along, UNIT_THREADS / along);
}

static inline dim3 unit_grid(dim3 block, int64_t rows, int64_t units) {
    const int64_t blocks = (rows + block.y - 1) / block.y, most = MOST_GRID_ROWS;
    return dim3(ht_blocks(units, (int)block.x), (unsigned)(blocks < most ? blocks : most));
}
