/* Random numbers: the generator's published values, and initial values that do not depend on how a parameter is cut. */
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Known answers of Philox4x32-10 from Random123 (kat_vectors). */
static void known_answers(void **unused)
{
    (void)unused;
    RandomBlock zero = random_block(0, 0, 0), ones = random_block(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    const uint32_t a[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, b[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    assert_memory_equal(zero.at, a, sizeof a);
    assert_memory_equal(ones.at, b, sizeof b);
}

static void fill_is_element_by_element(void **unused)
{
    (void)unused;
    uint32_t bits[23];
    for (uint64_t first = 0; first < 9; first++) {
        random_bits_fill(bits, 7, 8, first, 23);
        for (uint64_t i = 0; i < 23; i++)
            assert_int_equal(bits[i], random_bits(7, 8, first + i));
    }
}

/* Boxes hold the elements of the whole. */
static void boxes(ht_init init)
{
    enum { A = 3, B = 5, C = 7 };
    const int64_t global[] = {A, B, C}, none[] = {0, 0, 0}, lo[] = {1, 2, 3}, hi[] = {3, 5, 6};
    float whole[A * B * C], box[2 * 3 * 3];
    ht_init_box(whole, &init, 5, "w", &(TensorBox){3, global, none, global});
    ht_init_box(box, &init, 5, "w", &(TensorBox){3, global, lo, hi});
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                assert_true(box[(i * 3 + j) * 3 + k] == whole[((i + 1) * B + j + 2) * C + k + 3]);
}

static void boxes_of_every_kind(void **unused)
{
    (void)unused;
    boxes(ht_zeros());
    boxes(ht_ones());
    boxes(ht_normal(0.5));
    boxes(ht_uniform(0.5));
}

static void moments(void **unused)
{
    (void)unused;
    enum { N = 200000 };
    const int64_t global[] = {N}, none[] = {0};
    float *x = malloc(N * sizeof *x);
    ht_init normal = ht_normal(2), uniform = ht_uniform(3);
    double mean = 0, square = 0, low = 9, high = -9;
    ht_init_box(x, &normal, 1, "n", &(TensorBox){1, global, none, global});
    for (int i = 0; i < N; i++) {
        mean += x[i] / N;
        square += (double)x[i] * x[i] / N;
    }
    assert_true(fabs(mean) < 0.02 && fabs(square - 4) < 0.05);
    ht_init_box(x, &uniform, 1, "n", &(TensorBox){1, global, none, global});
    for (int i = 0; i < N; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    assert_true(low >= -3 && low < -2.99 && high < 3 && high > 2.99);
    free(x);
}

/* Every step and every stream draws other numbers. */
static void streams_differ(void **unused)
{
    (void)unused;
    enum { STEPS = 40, STREAMS = 25, ALL = STEPS * STREAMS };
    static uint64_t drawn[ALL];
    for (int i = 0; i < ALL; i++) {
        drawn[i] = random_stream_of_step(i % STREAMS, i / STREAMS);
        for (int k = 0; k < i; k++)
            assert_true(drawn[i] != drawn[k]);
    }
    for (int i = 1; i < ALL; i++)
        assert_true(random_bits(1, drawn[i], 0) != random_bits(1, drawn[i - 1], 0));
}

static void scalars_and_empty_boxes(void **unused)
{
    (void)unused;
    const int64_t global[] = {4, 4}, lo[] = {2, 0}, hi[] = {2, 4};
    float x[1] = {9};
    ht_init one = ht_ones();
    ht_init_box(x, &one, 1, "w", &(TensorBox){2, global, lo, hi});
    assert_true(x[0] == 9);
    ht_init_box(x, &one, 1, "w", &(TensorBox){0, NULL, NULL, NULL});
    assert_true(x[0] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_answers),       cmocka_unit_test(fill_is_element_by_element),
                                       cmocka_unit_test(boxes_of_every_kind), cmocka_unit_test(moments),
                                       cmocka_unit_test(streams_differ),      cmocka_unit_test(scalars_and_empty_boxes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
