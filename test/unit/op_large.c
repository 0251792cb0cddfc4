/* Kernels on more elements than they work on at a time: what one call gives, calls for single pieces give. */
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <hetu/rt.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ht_view view_of(void *data, ht_dtype dtype, int64_t rows, int64_t columns)
{
    return (ht_view){.data = data, .dtype = dtype, .rank = 2, .extent = {rows, columns}, .global = {rows, columns}};
}

static float *draw(int64_t count)
{
    float *x = malloc(sizeof *x * (size_t)count);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((i * 7919 + 13) % 1021) / 512;
    return x;
}

/* Elements in bf16, read as f32 and stored again. */
static void views_in_bf16(void **unused)
{
    (void)unused;
    static const int64_t counts[] = {1, 4095, 4096, 4097, 8192, 9001};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int64_t count = counts[c];
        uint16_t *half = calloc((size_t)count, sizeof *half), *back = calloc((size_t)count, sizeof *back);
        for (int64_t i = 0; i < count; i++)
            half[i] = ht_bf16_store((float)(i % 250 + 1));
        ht_view from = view_of(half, HT_BF16, 1, count), to = view_of(back, HT_BF16, 1, count);
        Copies copies = {0};
        const float *wide = view_load(&from, "test", &copies);
        for (int64_t i = 0; i < count; i++)
            assert_true(wide[i] == (float)(i % 250 + 1));
        view_store(&to, wide);
        assert_memory_equal(half, back, sizeof *half * (size_t)count);
        copies_free(&copies);
        free(half);
        free(back);
    }
}

/* An update of all elements, and of each thousand by itself. */
static void check_update(ht_kernel *kernel, int states)
{
    enum { PARTS = 41, PART = 1000, ALL = PARTS * PART };
    const float hyper[8] = {0.1f, 0.9f, 0.95f, 1e-3f, 0.1f, 1};
    const ht_attr attr[] = {{.i = 1}, {.i = 0}};
    float *data[4], *copy[4];
    for (int k = 0; k < 2 + states; k++) {
        data[k] = draw(ALL);
        copy[k] = draw(ALL);
    }
    for (int part = -1; part < PARTS; part++) {
        float **at = part < 0 ? data : copy;
        int64_t first = part < 0 ? 0 : part * PART, count = part < 0 ? ALL : PART;
        ht_view operand[5] = {{0}}, result[3];
        for (int k = 0; k < 2 + states; k++)
            operand[k] = view_of(at[k] + first, HT_F32, 1, count);
        result[0] = operand[0];
        for (int s = 0; s < states; s++)
            result[1 + s] = operand[2 + s];
        kernel(&(ht_call){
            .operand_count = 3 + states, .result_count = 1 + states, .operand = operand, .result = result, .attr = attr, .hyper = hyper});
    }
    for (int k = 0; k < 2 + states; k++) {
        for (int i = 0; i < ALL; i++)
            assert_true(data[k][i] - copy[k][i] < 1e-6f && copy[k][i] - data[k][i] < 1e-6f);
        free(data[k]);
        free(copy[k]);
    }
}

static void updates(void **unused)
{
    (void)unused;
    check_update(ht_sgd_kernel, 1);
    check_update(ht_adamw_kernel, 2);
}

enum { ROWS = 331, WIDTH = 3 };

/* Runs the gradient of a table; `more`, numbers that are there before, may be the table itself, or NULL. */
static void table_gradient(float *table, float *dy, int32_t *id, int count, float *more)
{
    ht_view operand[] = {view_of(dy, HT_F32, count, WIDTH),
                         {.data = id, .dtype = HT_I32, .rank = 1, .extent = {count}, .global = {count}},
                         view_of(more, HT_F32, ROWS, WIDTH)},
            result[] = {view_of(table, HT_F32, ROWS, WIDTH)};
    ht_embedding_backward_kernel(&(ht_call){.operand_count = 3, .result_count = 1, .operand = operand, .result = result});
}

/* The gradient of a table with many rows, each of which is named as often as its number modulo 3 says; onto nothing, onto another table,
 * and in place. */
static void tables(void **unused)
{
    (void)unused;
    int32_t id[ROWS];
    float dy[ROWS * WIDTH], table[ROWS * WIDTH], more[ROWS * WIDTH];
    int count = 0;
    for (int row = 0; row < ROWS && count + 2 < ROWS; row++)
        for (int times = 0; times < (ROWS - 1 - row) % 3; times++)
            id[count++] = ROWS - 1 - row;
    for (int i = 0; i < count * WIDTH; i++)
        dy[i] = 1;
    int least = id[count - 1];
    for (int way = 0; way < 3; way++) {
        float *before = way == 0 ? NULL : way == 1 ? more : table;
        for (int i = 0; i < ROWS * WIDTH; i++)
            more[i] = table[i] = (float)(i + 1);
        table_gradient(table, dy, id, count, before);
        for (int row = 0; row < ROWS; row++)
            for (int c = 0; c < WIDTH; c++)
                assert_true(row == least ||
                            table[row * WIDTH + c] == (float)(row > least ? row % 3 : 0) + (before ? more[row * WIDTH + c] : 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_in_bf16), cmocka_unit_test(updates), cmocka_unit_test(tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
