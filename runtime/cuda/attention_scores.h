/* Masks of attention: hides scores by causality and segments; stores rows of results. C++ only. */
#pragma once

#include "cuda/attention.h"

/* Returns the segment of row i; beyond the last row, the segment of the last row. */
static __device__ __forceinline__ int64_t attention_segment(const AttentionSegments &of, int b,
                                                            int i) {
    int64_t at = (int64_t)b * of.rows + (i < of.rows ? i : of.rows - 1);
    return of.wide ? ((const int64_t *)of.at)[at] : ((const int *)of.at)[at];
}

/* Returns whether a tile from `row` and `column` on is in one segment. All lanes call it. */
template <typename E>
static __device__ __forceinline__ bool attention_one_segment(const AttentionSegments &rows,
                                                             const AttentionSegments &columns,
                                                             int b, int row, int column) {
    int64_t first = attention_segment(rows, b, row);
    bool other = false;
    for (int i = (int)threadIdx.x % warpSize; i < E::ROWS; i += warpSize)
        other = other || attention_segment(rows, b, row + i) != first;
    for (int i = (int)threadIdx.x % warpSize; i < E::COLUMNS; i += warpSize)
        other = other || attention_segment(columns, b, column + i) != first;
    return !__any_sync(0xffffffffu, other);
}

/* Sets scores between different segments to minus infinity. */
template <typename E>
static __device__ __forceinline__ void
attention_hide_segments(const AttentionSegments &rows, const AttentionSegments &columns, int b,
                        int row, int column, typename E::Scores &s) {
    int64_t of_row[E::thread_rows];
#pragma unroll
    for (int r = 0; r < E::thread_rows; r++)
        of_row[r] = attention_segment(rows, b, row + E::row(r));
#pragma unroll
    for (int c = 0; c < E::thread_columns; c++) {
        int64_t of_column = attention_segment(columns, b, column + E::column(c));
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++)
            if (of_row[r] != of_column) s(r, c) = -INFINITY;
    }
}

/* Sets scores to minus infinity for keys beyond the last one and, under `causal`, for keys after
 * the query. If sums run over queries (`keys_in_rows`), also for queries beyond the last one:
 * elements of such queries are 0, but a product with a key may be NaN. */
template <typename E, bool keys_in_rows>
static __device__ __forceinline__ void attention_hide_edges(const AttentionShape &a, int row,
                                                            int column, typename E::Scores &s) {
#pragma unroll
    for (int r = 0; r < E::thread_rows; r++) {
        int i = row + E::row(r), until = keys_in_rows ? 0 : attention_visible(a, i),
            from = keys_in_rows ? (i < a.t ? attention_first(a, i) : a.s) : 0;
#pragma unroll
        for (int c = 0; c < E::thread_columns; c++) {
            int j = column + E::column(c);
            if (keys_in_rows ? j < from || j >= a.s : j >= until) s(r, c) = -INFINITY;
        }
    }
}

/* Sets scores to minus infinity where a query does not see a key. The tile begins at `row` and
 * `column`; its rows are keys if `keys_in_rows`, else queries. */
template <typename E, bool keys_in_rows>
static __device__ __forceinline__ void attention_hide(const AttentionShape &a, int b, int row,
                                                      int column, typename E::Scores &s) {
    int query = keys_in_rows ? column : row, key = keys_in_rows ? row : column,
        end = key + (keys_in_rows ? E::ROWS : E::COLUMNS);
    const AttentionSegments &rows = keys_in_rows ? a.key_segments : a.segments,
                            &columns = keys_in_rows ? a.segments : a.key_segments;
    if (end > attention_visible(a, query) || (keys_in_rows && query + E::COLUMNS > a.s))
        attention_hide_edges<E, keys_in_rows>(a, row, column, s);
    if (rows.at && !attention_one_segment<E>(rows, columns, b, row, column))
        attention_hide_segments<E>(rows, columns, b, row, column, s);
}

static __device__ __forceinline__ void attention_store(const AttentionResult &to, int64_t at,
                                                       float value) {
    if (to.bf16) ((__nv_bfloat16 *)to.data)[at] = __float2bfloat16(value);
    else ((float *)to.data)[at] = value;
}

/* Stores two neighbours; requires to.pairs. */
static __device__ __forceinline__ void attention_store(const AttentionResult &to, int64_t at,
                                                       float value, float next) {
    if (to.bf16) *(uint32_t *)((__nv_bfloat16 *)to.data + at) = tensor_pack(value, next);
    else *(float2 *)((float *)to.data + at) = make_float2(value, next);
}

/* Stores this thread's part of the rows that a block owns, times `factor(row of the thread)`. `at`
 * is the element of the result at which the block's first row begins. `rows` has the number of
 * rows. `first` is the column of the first sum. */
template <typename E, typename Sums, typename Factor>
static __device__ __forceinline__ void
attention_store_rows(const AttentionResult &to, int64_t at, const Rows<typename E::T> &rows,
                     int first, const Sums &sums, Factor factor) {
#pragma unroll
    for (int r = 0; r < E::thread_rows; r++) {
        if (E::row(r) >= rows.valid) continue;
        float by = factor(r);
#pragma unroll
        for (int c = 0; c < Sums::columns; c += E::pairs ? 2 : 1) {
            int column = first + Sums::column(c);
            int64_t place = at + (int64_t)E::row(r) * to.pitch + column;
            if (E::pairs && to.pairs && column < rows.d) {
                attention_store(to, place, sums(r, c) * by, sums(r, c + 1) * by);
                continue;
            }
            for (int i = 0; i < (E::pairs ? 2 : 1); i++)
                if (column + i < rows.d) attention_store(to, place + i, sums(r, c + i) * by);
        }
    }
}
