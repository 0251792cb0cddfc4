/* Moves of boxes, for every element type: copies with all strides against a loop over elements, and reductions, whose identity changes
 * nothing. */
#include "exchange/copy_boxes.h"

#include <hetu/rt.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const ht_dtype DTYPES[] = {HT_F32, HT_BF16, HT_F64, HT_I32, HT_I64};
enum { KINDS = 5, MOST = 4096, VALUES = 5 };

static void store(ht_dtype dtype, void *to, int i, double value)
{
    switch (dtype) {
    case HT_F32: ((float *)to)[i] = (float)value; break;
    case HT_BF16: ((uint16_t *)to)[i] = ht_bf16_store((float)value); break;
    case HT_F64: ((double *)to)[i] = value; break;
    case HT_I32: ((int32_t *)to)[i] = (int32_t)value; break;
    case HT_I64: ((int64_t *)to)[i] = (int64_t)value; break;
    }
}

static double load(ht_dtype dtype, const void *from, int i)
{
    switch (dtype) {
    case HT_F32: return ((const float *)from)[i];
    case HT_BF16: return ht_bf16_load(((const uint16_t *)from)[i]);
    case HT_F64: return ((const double *)from)[i];
    case HT_I32: return ((const int32_t *)from)[i];
    default: return (double)((const int64_t *)from)[i];
    }
}

/* Sums and maxima of every pair of values, and of the identity and every value. */
static void reductions(void **unused)
{
    (void)unused;
    static const double value[VALUES] = {-96, -1, 0, 3, 128};
    for (int t = 0; t < KINDS; t++)
        for (int max = 0; max < 2; max++) {
            char a[VALUES * VALUES * 8], b[VALUES * VALUES * 8], identity[VALUES * 8];
            for (int i = 0; i < VALUES * VALUES; i++) {
                store(DTYPES[t], a, i, value[i / VALUES]);
                store(DTYPES[t], b, i, value[i % VALUES]);
            }
            ht_combine(DTYPES[t], max ? HT_MAX : HT_SUM, a, b, VALUES * VALUES);
            ht_fill(DTYPES[t], max ? HT_MAX : HT_SUM, identity, VALUES);
            ht_combine(DTYPES[t], max ? HT_MAX : HT_SUM, identity, b, VALUES);
            for (int i = 0; i < VALUES * VALUES; i++) {
                double x = value[i / VALUES], y = value[i % VALUES];
                assert_true(load(DTYPES[t], a, i) == (!max ? x + y : x > y ? x : y));
            }
            for (int i = 0; i < VALUES; i++)
                assert_true(load(DTYPES[t], identity, i) == value[i]);
        }
}

/* A box of `rank` dimensions between two arrays: rows of `width` elements, packed on one side or both, or with gaps and elements apart. */
static void check_move(ht_dtype dtype, int rank, int64_t width, int64_t from_step, int64_t to_step)
{
    static char from[MOST * 8], to[MOST * 8];
    ht_stride dim[3] = {
        {2, 13 * width * from_step, 7 * width * to_step}, {3, 4 * width * from_step, width * to_step}, {width, from_step, to_step}};
    const ht_stride *used = dim + 3 - rank;
    int64_t planes = rank > 2 ? 2 : 1, rows = rank > 1 ? 3 : 1;
    for (int i = 0; i < MOST; i++) {
        store(dtype, from, i, i % 120);
        store(dtype, to, i, -1);
    }
    ht_move_copy(&(ht_move){.rank = rank, .dim = used}, ht_dtype_bytes(dtype), to, from);
    int64_t moved = 0;
    for (int64_t p = 0; p < planes; p++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < width; c++, moved++)
                assert_true(load(dtype, to, (int)(p * dim[0].to + r * dim[1].to + c * to_step)) ==
                            (double)((p * dim[0].from + r * dim[1].from + c * from_step) % 120));
    for (int i = 0; i < MOST; i++)
        moved -= load(dtype, to, i) != -1;
    assert_int_equal(moved, 0);
}

static void copies(void **unused)
{
    (void)unused;
    for (int t = 0; t < KINDS; t++)
        for (int rank = 1; rank <= 3; rank++)
            for (int64_t width = 1; width <= 66; width += width < 17 ? 1 : 7)
                for (int steps = 0; steps < 4; steps++)
                    check_move(DTYPES[t], rank, width, 1 + steps % 2, 1 + steps / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reductions), cmocka_unit_test(copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
