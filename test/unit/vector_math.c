/* The functions of <hetu/vector_math.h> beside those of libm in f64: within 2 units in the last place on a sample of all floats, and on all of them with HETU_LONG=1. */
#include <hetu/vector_math.h>

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BLOCK = 1 << 16, SAMPLE = 251 };

/* Floats that a sample may miss, ahead of the first block. */
static const float EDGES[] = {-0.0f,      0,       -1,        1,          -INFINITY,
                              INFINITY,   NAN,     0x1p-149f, -0x1p-149f, 0x1p-126f,
                              -0x1p-126f, FLT_MAX, -FLT_MAX};

/* Returns the distance between y and the exact value in units of the last place of f32; infinity where one is NaN, infinite or negative and the other is not. */
static double distance(float y, double exact) {
    float rounded = (float)exact;
    if (isnan(rounded) || isnan(y)) return isnan(rounded) && isnan(y) ? 0 : (double)INFINITY;
    if (isinf(rounded) || isinf(y) || signbit(rounded) != signbit(y))
        return rounded == y && signbit(rounded) == signbit(y) ? 0 : (double)INFINITY;
    int exponent;
    frexp(exact, &exponent);
    return fabs(y - exact) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

/* Compares a function with libm's in f64, one block after another. */
static void check(const char *name, void (*fill)(float *restrict, const float *restrict),
                  double (*exact)(double)) {
    uint64_t step = getenv("HETU_LONG") ? 1 : SAMPLE,
             blocks = ((UINT64_C(1) << 32) / step + BLOCK) / BLOCK;
    double worst = 0;
    uint32_t at = 0;
#pragma omp parallel for schedule(dynamic)
    for (uint64_t b = 0; b < blocks; b++) {
        static _Thread_local float x[BLOCK], y[BLOCK];
        for (uint64_t i = 0; i < BLOCK; i++)
            x[i] = ht_float_of_bits((uint32_t)((b * BLOCK + i) * step));
        memcpy(x, EDGES, b == 0 ? sizeof EDGES : 0);
        fill(y, x);
        int furthest = 0;
        for (int i = 0; i < BLOCK; i++) y[i] = (float)distance(y[i], exact(x[i]));
        for (int i = 0; i < BLOCK; i++) furthest = y[i] > y[furthest] ? i : furthest;
#pragma omp critical
        if (y[furthest] > worst) {
            worst = y[furthest];
            at = ht_bits_of_float(x[furthest]);
        }
    }
    printf("%s: %.3f units at %a\n", name, worst, (double)ht_float_of_bits(at));
    assert_true(worst <= 2);
}

/* Defines the test of ht_NAMEf, in a loop that compilers vectorise. */
#define FUNCTION(name)                                                                             \
    HT_CLONES static void fill_##name(float *restrict y, const float *restrict x) {                \
        for (int i = 0; i < BLOCK; i++) y[i] = ht_##name##f(x[i]);                                 \
    }                                                                                              \
    static void test_##name(void **unused) {                                                       \
        (void)unused;                                                                              \
        check(#name, fill_##name, name);                                                           \
    }

FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(log)
FUNCTION(log1p)

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exp),  cmocka_unit_test(test_expm1),
                                       cmocka_unit_test(test_tanh), cmocka_unit_test(test_erf),
                                       cmocka_unit_test(test_log),  cmocka_unit_test(test_log1p)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
