#include "comm/moves.h"

#include <hetu/rt.h>

#include <string.h>

size_t ht_dtype_bytes(ht_dtype dtype)
{
    static const size_t bytes[] = {[HT_F32] = 4, [HT_BF16] = 2, [HT_F64] = 8, [HT_I32] = 4, [HT_I64] = 8};
    return bytes[dtype];
}

/* What is done to the innermost dimension. */
typedef struct Row Row;
struct Row {
    void (*run)(const Row *row, char *to, const char *from);
    size_t size;
    ht_dtype dtype;
    ht_reduction reduction;
    int64_t count, from_stride, to_stride;
};

/* Runs `row` for each position of the dimensions before the innermost. */
static void for_each_row(const Row *row, const ht_stride *dim, int rank, char *to, const char *from)
{
    if (rank <= 1) {
        row->run(row, to, from);
        return;
    }
    for (int64_t i = 0; i < dim->extent; i++)
        for_each_row(row, dim + 1, rank - 1, to + i * dim->to * (int64_t)row->size, from + i * dim->from * (int64_t)row->size);
}

static void run_rows(Row row, const ht_move *move, char *to, const char *from)
{
    row.count = move->rank ? move->dim[move->rank - 1].extent : 1;
    row.from_stride = move->rank ? move->dim[move->rank - 1].from : 1;
    row.to_stride = move->rank ? move->dim[move->rank - 1].to : 1;
    for_each_row(&row, move->dim, move->rank, to, from);
}

#define COPY_STRIDED(T)                                                                                                                    \
    for (int64_t i = 0; i < row->count; i++)                                                                                               \
    ((T *)to)[i * row->to_stride] = ((const T *)from)[i * row->from_stride]

static void copy_row(const Row *row, char *to, const char *from)
{
    if (row->from_stride == 1 && row->to_stride == 1)
        memcpy(to, from, (size_t)row->count * row->size);
    else if (row->size == 4)
        COPY_STRIDED(uint32_t);
    else if (row->size == 8)
        COPY_STRIDED(uint64_t);
    else
        COPY_STRIDED(uint16_t);
}

#define COMBINE(T)                                                                                                                         \
    do {                                                                                                                                   \
        T *y = to;                                                                                                                         \
        const T *x = from;                                                                                                                 \
        if (reduction == HT_MAX)                                                                                                           \
            for (int64_t i = 0; i < count; i++)                                                                                            \
                y[i * to_stride] = x[i * from_stride] > y[i * to_stride] ? x[i * from_stride] : y[i * to_stride];                          \
        else                                                                                                                               \
            for (int64_t i = 0; i < count; i++)                                                                                            \
                y[i * to_stride] += x[i * from_stride];                                                                                    \
    } while (0)

static void combine_bf16(ht_reduction reduction, uint16_t *to, int64_t to_stride, const uint16_t *from, int64_t from_stride, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float x = ht_bf16_load(from[i * from_stride]), y = ht_bf16_load(to[i * to_stride]);
        to[i * to_stride] = ht_bf16_store(reduction == HT_SUM ? y + x : x > y ? x : y);
    }
}

static void combine_strided(ht_dtype dtype, ht_reduction reduction, void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t count)
{
    switch (dtype) {
    case HT_F32: COMBINE(float); break;
    case HT_F64: COMBINE(double); break;
    case HT_I32: COMBINE(int32_t); break;
    case HT_I64: COMBINE(int64_t); break;
    case HT_BF16: combine_bf16(reduction, to, to_stride, from, from_stride, count); break;
    }
}

void ht_combine(ht_dtype dtype, ht_reduction reduction, void *to, const void *from, int64_t count)
{
    combine_strided(dtype, reduction, to, 1, from, 1, count);
}

static void combine_row(const Row *row, char *to, const char *from)
{
    combine_strided(row->dtype, row->reduction, to, row->to_stride, from, row->from_stride, row->count);
}

static void fill_row(const Row *row, char *to, const char *from)
{
    (void)from;
    for (int64_t i = 0; i < row->count; i++)
        ht_fill_identity(to + i * row->to_stride * (int64_t)row->size, row->dtype, 1, row->reduction == HT_MAX);
}

void ht_move_copy(const ht_move *move, size_t size, char *to, const char *from)
{
    if (to != from)
        run_rows((Row){.run = copy_row, .size = size}, move, to, from);
}

void ht_move_combine(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to, const char *from)
{
    run_rows((Row){.run = combine_row, .size = ht_dtype_bytes(dtype), .dtype = dtype, .reduction = reduction}, move, to, from);
}

void ht_move_fill(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to)
{
    run_rows((Row){.run = fill_row, .size = ht_dtype_bytes(dtype), .dtype = dtype, .reduction = reduction}, move, to, to);
}
