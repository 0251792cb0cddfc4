/* Kernels that move or make elements: slice, pad, concat, iota. */
#include "cpu/cpu.h"
#include "operators/kernels.h"

#include <hetu/rt.h>

/* Rows of bytes; consecutive rows begin `pitch` bytes apart. */
typedef struct Pitched {
    char *at;
    int64_t pitch;
} Pitched;

static void copy_rows(Pitched to, Pitched from, int64_t rows, int64_t bytes) {
#pragma omp parallel for schedule(static) if (rows * bytes > 4 * CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++)
        memcpy(to.at + r * to.pitch, from.at + r * from.pitch, (size_t)bytes);
}

/* Returns the bytes that one index along `dim` spans: those of all dimensions after `dim`. */
static int64_t inner_bytes(const ht_view *x, int dim) {
    return ht_view_count(x, dim + 1, x->rank) * (int)ht_dtype_bytes(x->dtype);
}

/* Copies a range of one dimension. Attributes: dim, start, length. */
void ht_slice_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    int dim = (int)call->attr[0].i;
    int64_t start = call->attr[1].i, length = y->extent[dim], inner = inner_bytes(x, dim);
    if (start < 0 || start + length > x->extent[dim])
        ht_fail("slice %ld to %ld is outside the extent %ld of dimension %d", (long)start,
                (long)(start + length), (long)x->extent[dim], dim);
    copy_rows((Pitched){y->data, length * inner},
              (Pitched){(char *)x->data + start * inner, x->extent[dim] * inner},
              ht_view_count(x, 0, dim), length * inner);
}

/* Pads one dimension with zeros. Attributes: dim, start, extent. */
void ht_pad_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    int dim = (int)call->attr[0].i;
    int64_t start = call->attr[1].i, length = x->extent[dim], inner = inner_bytes(x, dim);
    if (start < 0 || start + length > y->extent[dim])
        ht_fail("pad: %ld to %ld is outside the extent %ld of dimension %d", (long)start,
                (long)(start + length), (long)y->extent[dim], dim);
    memset(y->data, 0, (size_t)(cpu_count(y) * (int)ht_dtype_bytes(y->dtype)));
    copy_rows((Pitched){(char *)y->data + start * inner, y->extent[dim] * inner},
              (Pitched){x->data, length * inner}, ht_view_count(x, 0, dim), length * inner);
}

/* Concatenates all operands along one dimension. Attribute: dim. */
void ht_concat_kernel(const ht_call *call) {
    const ht_view *y = &call->result[0];
    int dim = (int)call->attr[0].i;
    int64_t inner = inner_bytes(y, dim), at = 0;
    for (int k = 0; k < call->operand_count; k++) {
        const ht_view *x = &call->operand[k];
        int64_t length = x->extent[dim];
        copy_rows((Pitched){(char *)y->data + at * inner, y->extent[dim] * inner},
                  (Pitched){x->data, length * inner}, ht_view_count(x, 0, dim), length * inner);
        at += length;
    }
}

/* Sets element i of a view of any type; converts to integers as C does. */
static void store(const ht_view *y, int64_t i, double value) {
    switch (y->dtype) {
    case HT_F32: ((float *)y->data)[i] = (float)value; return;
    case HT_F64: ((double *)y->data)[i] = value; return;
    case HT_I32: ((int32_t *)y->data)[i] = (int32_t)value; return;
    case HT_I64: ((int64_t *)y->data)[i] = (int64_t)value; return;
    case HT_BF16: ((uint16_t *)y->data)[i] = ht_bf16_store((float)value); return;
    }
}

void ht_iota_kernel(const ht_call *call) {
    const ht_view *y = &call->result[0];
    for (int64_t i = 0; i < y->extent[0]; i++) store(y, i, (double)ht_view_place(y, 0, i));
}
