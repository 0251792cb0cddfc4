/* Copies, adds and fills strided boxes on the CPU. */
#include "exchange/copy_boxes.h"

#include <hetu/rt.h>

#include <string.h>

size_t ht_dtype_bytes(ht_dtype dtype) {
    static const size_t bytes[] = {
        [HT_F32] = 4, [HT_BF16] = 2, [HT_F64] = 8, [HT_I32] = 4, [HT_I64] = 8};
    return bytes[dtype];
}

/* The operation on the two innermost dimensions of a box; strides are in elements. */
typedef struct Sheet Sheet;
struct Sheet {
    void (*run)(const Sheet *sheet, char *to, const char *from);
    size_t size;
    ht_dtype dtype;
    ht_reduction reduction;
    ht_stride rows, row; // second innermost dimension, and innermost dimension
};

/* Runs `sheet` for each index of the dimensions outside the two innermost. */
static void for_each_sheet(const Sheet *sheet, const ht_stride *dim, int rank, char *to,
                           const char *from) {
    if (rank <= 2) {
        sheet->run(sheet, to, from);
        return;
    }
    for (int64_t i = 0; i < dim->extent; i++)
        for_each_sheet(sheet, dim + 1, rank - 1, to + i * dim->to * (int64_t)sheet->size,
                       from + i * dim->from * (int64_t)sheet->size);
}

static void run_sheets(Sheet sheet, const ht_move *move, char *to, const char *from) {
    sheet.row = move->rank > 0 ? move->dim[move->rank - 1] : (ht_stride){1, 1, 1};
    sheet.rows = move->rank > 1 ? move->dim[move->rank - 2] : (ht_stride){1, 0, 0};
    for_each_sheet(&sheet, move->dim, move->rank, to, from);
}

/* Copies a sheet's rows of `bytes` bytes. If that is a constant, the compiler calls no memcpy. */
static inline void copy_whole_rows(const Sheet *sheet, char *to, const char *from, size_t bytes) {
    int64_t to_step = sheet->rows.to * (int64_t)sheet->size,
            from_step = sheet->rows.from * (int64_t)sheet->size;
    for (int64_t i = 0; i < sheet->rows.extent; i++)
        memcpy(to + i * to_step, from + i * from_step, bytes);
}

/* Copies contiguous rows, which are often short: heads, or columns of a device. */
static void copy_contiguous(const Sheet *sheet, char *to, const char *from) {
    size_t bytes = (size_t)sheet->row.extent * sheet->size;
    switch (bytes) {
    case 8: copy_whole_rows(sheet, to, from, 8); break;
    case 16: copy_whole_rows(sheet, to, from, 16); break;
    case 32: copy_whole_rows(sheet, to, from, 32); break;
    case 64: copy_whole_rows(sheet, to, from, 64); break;
    case 128: copy_whole_rows(sheet, to, from, 128); break;
    default: copy_whole_rows(sheet, to, from, bytes);
    }
}

#define COPY_STRIDED(T)                                                                            \
    for (int64_t r = 0; r < sheet->rows.extent; r++)                                               \
        for (int64_t i = 0; i < sheet->row.extent; i++)                                            \
    ((T *)to)[r * sheet->rows.to + i * sheet->row.to] =                                            \
        ((const T *)from)[r * sheet->rows.from + i * sheet->row.from]

static void copy_sheet(const Sheet *sheet, char *to, const char *from) {
    if (sheet->row.from == 1 && sheet->row.to == 1) copy_contiguous(sheet, to, from);
    else if (sheet->size == 4) COPY_STRIDED(uint32_t);
    else if (sheet->size == 8) COPY_STRIDED(uint64_t);
    else COPY_STRIDED(uint16_t);
}

/* The larger of x and y; NaN if x or y is NaN. */
#define LARGER(x, y) ((x) <= (y) || (y) != (y) ? (y) : (x))

/* Elements that lie `stride` elements apart. */
typedef struct Strided {
    void *at;
    int64_t stride;
} Strided;

#define COMBINE(T)                                                                                 \
    do {                                                                                           \
        T *y = to.at;                                                                              \
        const T *x = from.at;                                                                      \
        if (reduction == HT_MAX)                                                                   \
            for (int64_t i = 0; i < count; i++)                                                    \
                y[i * to.stride] = LARGER(x[i * from.stride], y[i * to.stride]);                   \
        else                                                                                       \
            for (int64_t i = 0; i < count; i++) y[i * to.stride] += x[i * from.stride];            \
    } while (0)

static void combine_bf16(ht_reduction reduction, Strided to, Strided from, int64_t count) {
    uint16_t *results = to.at;
    const uint16_t *operands = from.at;
    for (int64_t i = 0; i < count; i++) {
        float x = ht_bf16_load(operands[i * from.stride]), y = ht_bf16_load(results[i * to.stride]);
        results[i * to.stride] = ht_bf16_store(reduction == HT_SUM ? y + x : LARGER(x, y));
    }
}

static inline __attribute__((always_inline)) void
combine_strided(ht_dtype dtype, ht_reduction reduction, Strided to, Strided from, int64_t count) {
    switch (dtype) {
    case HT_F32: COMBINE(float); break;
    case HT_F64: COMBINE(double); break;
    case HT_I32: COMBINE(int32_t); break;
    case HT_I64: COMBINE(int64_t); break;
    case HT_BF16: combine_bf16(reduction, to, from, count); break;
    }
}

void ht_combine(ht_dtype dtype, ht_reduction reduction, void *to, const void *from, int64_t count) {
    combine_strided(dtype, reduction, (Strided){to, 1}, (Strided){(void *)from, 1}, count);
}

static void combine_sheet(const Sheet *sheet, char *to, const char *from) {
    int64_t to_step = sheet->rows.to * (int64_t)sheet->size,
            from_step = sheet->rows.from * (int64_t)sheet->size;
    for (int64_t r = 0; r < sheet->rows.extent; r++)
        combine_strided(sheet->dtype, sheet->reduction, (Strided){to + r * to_step, sheet->row.to},
                        (Strided){(char *)from + r * from_step, sheet->row.from},
                        sheet->row.extent);
}

/* Sets `count` elements, `stride` apart, to a value. */
#define FILL(T, value)                                                                             \
    for (int64_t i = 0; i < count; i++) ((T *)to)[i * stride] = (value)

static inline __attribute__((always_inline)) void
fill_strided(ht_dtype dtype, ht_reduction reduction, void *to, int64_t stride, int64_t count) {
    bool maximum = reduction == HT_MAX;
    switch (dtype) {
    case HT_F32: FILL(float, maximum ? -INFINITY : 0); break;
    case HT_F64: FILL(double, maximum ? -INFINITY : 0); break;
    case HT_I32: FILL(int32_t, maximum ? INT32_MIN : 0); break;
    case HT_I64: FILL(int64_t, maximum ? INT64_MIN : 0); break;
    case HT_BF16: FILL(uint16_t, maximum ? ht_bf16_store(-INFINITY) : 0); break;
    }
}

void ht_fill(ht_dtype dtype, ht_reduction reduction, void *to, int64_t count) {
    fill_strided(dtype, reduction, to, 1, count);
}

static void fill_sheet(const Sheet *sheet, char *to, const char *from) {
    (void)from;
    for (int64_t r = 0; r < sheet->rows.extent; r++)
        fill_strided(sheet->dtype, sheet->reduction, to + r * sheet->rows.to * (int64_t)sheet->size,
                     sheet->row.to, sheet->row.extent);
}

void ht_move_copy(const ht_move *move, size_t size, char *to, const char *from) {
    if (to != from) run_sheets((Sheet){.run = copy_sheet, .size = size}, move, to, from);
}

void ht_move_combine(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to,
                     const char *from) {
    run_sheets((Sheet){.run = combine_sheet,
                       .size = ht_dtype_bytes(dtype),
                       .dtype = dtype,
                       .reduction = reduction},
               move, to, from);
}

void ht_move_fill(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to) {
    run_sheets((Sheet){.run = fill_sheet,
                       .size = ht_dtype_bytes(dtype),
                       .dtype = dtype,
                       .reduction = reduction},
               move, to, to);
}
