/* Engines of ht_product against plain loops in double, and HETU_PRODUCTS, which chooses between
 * them.
 *
 *     unit_products print    prints which types oneDNN takes, and a hash of a product's bits
 */
#include <hetu/rt.h>

#include "base/hash.h"
#include "cpu/onednn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state = 1;
static const char *self;

static int draw(int below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

/* The tensors of a product, all elements as floats; `bits` has the operands as bf16. */
typedef struct Tensors {
    int64_t count[4]; // elements of y, x, w and the bias
    float *values[4];
    uint16_t *bits[4];
} Tensors;

static const size_t FIELDS[4] = {offsetof(ht_axis, y), offsetof(ht_axis, x), offsetof(ht_axis, w),
                                 offsetof(ht_axis, b)};

static int64_t stride_of(const ht_axis *axis, int tensor) {
    return *(const int64_t *)((const char *)axis + FIELDS[tensor]);
}

/* Fills the operands with values of bf16 between -1 and 1. */
static Tensors fill(const ht_axis *axes, int rank) {
    Tensors t;
    for (int i = 0; i < 4; i++) {
        t.count[i] = 1;
        for (int a = 0; a < rank; a++)
            if (axes[a].extent > 0) t.count[i] += (axes[a].extent - 1) * stride_of(&axes[a], i);
        t.values[i] = malloc((size_t)t.count[i] * sizeof(float));
        t.bits[i] = malloc((size_t)t.count[i] * sizeof(uint16_t));
        for (int64_t e = 0; e < t.count[i]; e++) {
            t.bits[i][e] = ht_bf16_store((float)(draw(2001) - 1000) / 1000);
            t.values[i][e] = ht_bf16_load(t.bits[i][e]);
        }
    }
    return t;
}

static void release(Tensors *t) {
    for (int i = 0; i < 4; i++) {
        free(t->values[i]);
        free(t->bits[i]);
    }
}

/* Adds scale * x * w and the bias to y and the magnitudes of all terms to `size`; marks the
 * elements that the axes reach. */
static void reference(const ht_axis *axes, int rank, const Tensors *t, double scale, bool biased,
                      double *y, double *size, char *reached) {
    int64_t total = 1;
    for (int i = 0; i < rank; i++) total *= axes[i].extent;
    for (int64_t e = 0; e < total; e++) {
        int64_t rest = e, at[4] = {0};
        bool first = true; // whether this is the first term of its sum
        for (int i = 0; i < rank; i++) {
            int64_t c = rest % axes[i].extent;
            rest /= axes[i].extent;
            for (int k = 0; k < 4; k++) at[k] += c * stride_of(&axes[i], k);
            first = first && (axes[i].y || c == 0);
        }
        double term = scale * t->values[1][at[1]] * t->values[2][at[2]],
               add = first && biased ? t->values[3][at[3]] : 0;
        y[at[0]] += term + add;
        size[at[0]] += fabs(term) + fabs(add);
        reached[at[0]] = 1;
    }
}

/* Returns data of a tensor in a type. */
static void *data_of(const Tensors *t, int tensor, ht_dtype dtype) {
    return dtype == HT_BF16 ? (void *)t->bits[tensor] : t->values[tensor];
}

/* Computes a call in one combination of types and compares every element of y with the reference,
 * whose terms have the sum of magnitudes `size`. Elements that the axes do not reach keep 77. */
static void check_types(const char *what, ht_product_call call, Tensors *t, int kind,
                        const double *y, const double *size, const char *reached) {
    call.dtype = kind & 1 ? HT_BF16 : HT_F32;
    call.y_dtype = kind & 2 ? HT_BF16 : HT_F32;
    call.bias_dtype = kind & 4 ? HT_BF16 : HT_F32;
    call.y = data_of(t, 0, call.y_dtype);
    call.x = data_of(t, 1, call.dtype);
    call.w = data_of(t, 2, call.dtype);
    if (call.bias) call.bias = data_of(t, 3, call.bias_dtype);
    for (int64_t i = 0; i < t->count[0]; i++)
        t->values[0][i] = 77, t->bits[0][i] = ht_bf16_store(77);
    ht_product(&call);
    for (int64_t i = 0; i < t->count[0]; i++) {
        double value = call.y_dtype == HT_BF16 ? ht_bf16_load(t->bits[0][i]) : t->values[0][i];
        double near = 2e-6 * size[i] + (call.y_dtype == HT_BF16 ? 0x1p-8 * fabs(y[i]) : 0);
        if (!reached[i] ? value != 77 : !(fabs(value - y[i]) <= near))
            fail_msg("%s, kind %d, element %d: %g instead of %g", what, kind, (int)i, value,
                     reached[i] ? y[i] : 77);
    }
}

/* Checks a product in every combination of types, with and without a bias. */
static void check(const char *what, int rank, const ht_axis *axes, float scale) {
    Tensors t = fill(axes, rank);
    for (int biased = 0; biased < 2; biased++) {
        double *y = calloc((size_t)t.count[0], sizeof *y),
               *size = calloc((size_t)t.count[0], sizeof *size);
        char *reached = calloc((size_t)t.count[0], 1);
        const ht_product_call call = {
            .bias = biased ? t.values[3] : NULL, .scale = scale, .rank = rank, .axes = axes};
        reference(axes, rank, &t, scale, biased, y, size, reached);
        for (int kind = 0; kind < 8; kind++) check_types(what, call, &t, kind, y, size, reached);
        free(y);
        free(size);
        free(reached);
    }
    release(&t);
}

/* Odd sizes, each operand in both orders of storage, with gaps between rows; y also transposed. */
static void matrices(void **unused) {
    (void)unused;
    static const int64_t sizes[][3] = {{1, 1, 3},    {1, 37, 65},  {37, 1, 65},    {65, 33, 1},
                                       {17, 31, 67}, {64, 64, 64}, {129, 130, 131}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int order = 0; order < 8; order++)
            for (int gap = 0; gap < 10; gap += 9) {
                int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                ht_axis axes[] = {
                    {m, n + gap, k + gap, 0, 0}, {n, 1, 0, 1, 1}, {k, 0, 1, n + gap, 0}};
                if (order & 1) axes[0].x = 1, axes[2].x = m + gap;
                if (order & 2) axes[2].w = 1, axes[1].w = k + gap;
                if (order & 4) axes[0].y = 1, axes[1].y = m + gap;
                char what[80];
                snprintf(what, sizeof what, "%dx%dx%d, order %d, gap %d", (int)m, (int)n, (int)k,
                         order, gap);
                check(what, 3, axes, 1);
                if (s == 4) check(what, 3, axes, -0.75f);
            }
}

/* Batches that are dense, of heads between rows, that share an operand, and that overlap. */
static void batches(void **unused) {
    (void)unused;
    enum { B = 3, H = 5, M = 19, N = 23, K = 29 };
    static const ht_axis dense[] = {
        {B, M * N, M * K, K * N, 0}, {M, N, K, 0, 0}, {N, 1, 0, 1, 1}, {K, 0, 1, N, 0}};
    static const ht_axis heads[] = {{B, M * H * N, M * H * K, N * H * K, 0},
                                    {H, N, K, K, N},
                                    {M, H * N, H * K, 0, 0},
                                    {N, 1, 0, H * K, 1},
                                    {K, 0, 1, 1, 0}};
    static const ht_axis shared[] = {{B, H * M * N, M * K, 0, 0},
                                     {H, M * N, 0, K * N, N},
                                     {M, N, K, 0, 0},
                                     {N, 1, 0, 1, 1},
                                     {K, 0, 1, N, 0}};
    static const ht_axis windows[] = {
        {H, M * N, 2, K * N, 0}, {M, N, K, 0, 1}, {N, 1, 0, 1, 0}, {K, 0, 1, N, 0}};
    check("dense batches", 4, dense, 1);
    check("heads", 5, heads, 0.125f);
    check("shared operands", 5, shared, 1);
    check("windows", 4, windows, 1);
}

/* Sums over an axis beside the products' own: each product is added to the ones before. */
static void accumulated(void **unused) {
    (void)unused;
    enum { S = 4, H = 3, M = 21, N = 35, K = 13 };
    static const ht_axis summed[] = {
        {S, 0, 1, K * N, 0}, {M, N, S * K, 0, 0}, {N, 1, 0, 1, 1}, {K, 0, S, N, 0}};
    static const ht_axis apart[] = {
        {S, 0, 2 * M * K, 3 * K * N, 0}, {M, N, K, 0, N}, {N, 1, 0, 1, 1}, {K, 0, 1, N, 0}};
    static const ht_axis both[] = {{S, 0, 2 * H * M * K, 3 * H * K * N, 0},
                                   {H, M * N, M * K, K * N, 0},
                                   {M, N, K, 0, 1},
                                   {N, 1, 0, 1, 0},
                                   {K, 0, 1, N, 0}};
    check("summed between columns", 4, summed, 1);
    check("summed blocks", 4, apart, 1);
    check("summed batches", 5, both, 2);
}

static void empty(void **unused) {
    (void)unused;
    static const ht_axis no_terms[] = {{3, 5, 0, 0, 0}, {5, 1, 0, 1, 1}, {0, 0, 1, 5, 0}};
    static const ht_axis no_rows[] = {{0, 5, 4, 0, 0}, {5, 1, 0, 1, 1}, {4, 0, 1, 5, 0}};
    for (int kind = 0; kind < 4; kind++) {
        uint16_t bits[15], from[20] = {0};
        float values[15], bias[5] = {1, 2, 3, 4, 5};
        for (int i = 0; i < 15; i++) values[i] = 7, bits[i] = ht_bf16_store(7);
        ht_product_call call = {.y = kind & 1 ? (void *)bits : values,
                                .y_dtype = kind & 1 ? HT_BF16 : HT_F32,
                                .x = from,
                                .w = from,
                                .dtype = HT_BF16,
                                .bias = kind & 2 ? bias : NULL,
                                .bias_dtype = HT_F32,
                                .scale = 1,
                                .rank = 3,
                                .axes = no_rows};
        ht_product(&call);
        for (int i = 0; i < 15; i++)
            assert_true((kind & 1 ? ht_bf16_load(bits[i]) : values[i]) == 7);
        call.axes = no_terms;
        ht_product(&call);
        for (int i = 0; i < 15; i++)
            assert_true((kind & 1 ? ht_bf16_load(bits[i]) : values[i]) ==
                        (kind & 2 ? bias[i % 5] : 0));
    }
}

/* ---- engines ---- */

/* Prints "TAKES_BF16 TAKES_F32 TAKES_FEW HASH": whether oneDNN takes each type, and f32 of few rows,
 * and a hash of the bits of products in both types. */
static int print_engines(void) {
    enum { M = 170, N = 515, K = 2049, FEW = 70 };
    static const ht_axis axes[] = {{M, N, K, 0, 0}, {N, 1, 0, 1, 1}, {K, 0, 1, N, 0}};
    Tensors t = fill(axes, 3);
    ht_product_call half = {.y = t.values[0],
                            .x = t.bits[1],
                            .w = t.bits[2],
                            .dtype = HT_BF16,
                            .scale = 1,
                            .rank = 3,
                            .axes = axes};
    ht_product_call full = half;
    full.x = t.values[1];
    full.w = t.values[2];
    full.dtype = HT_F32;
    ht_axis fewer[] = {axes[0], axes[1], axes[2]};
    ht_product_call few = full;
    fewer[0].extent = FEW;
    few.axes = fewer;
    bool takes_half = onednn_product(&half, NULL), takes_full = onednn_product(&full, NULL),
         takes_few = onednn_product(&few, NULL);
    uint64_t hash = HASH_START;
    ht_product(&half);
    hash = hash_bytes(hash, t.values[0], (size_t)t.count[0] * sizeof(float));
    ht_product(&full);
    hash = hash_bytes(hash, t.values[0], (size_t)t.count[0] * sizeof(float));
    printf("%d %d %d %llx\n", takes_half, takes_full, takes_few, (unsigned long long)hash);
    release(&t);
    return 0;
}

typedef struct Engines {
    int status, takes_half, takes_full, takes_few;
    unsigned long long hash;
    char said[200]; // first line of the output
} Engines;

/* Runs print_engines in a process with these variables. */
static Engines engines_with(const char *variables) {
    Engines got = {0};
    char command[1000];
    snprintf(command, sizeof command, "env -u HETU_PRODUCTS -u ONEDNN_MAX_CPU_ISA %s %s print 2>&1",
             variables, self);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(got.said, sizeof got.said, pipe));
    sscanf(got.said, "%d %d %d %llx", &got.takes_half, &got.takes_full, &got.takes_few, &got.hash);
    while (fgetc(pipe) != EOF) continue;
    got.status = pclose(pipe);
    return got;
}

/* Returns whether the processor has one of two instruction sets. */
static bool processor_has(const char *one, const char *other) {
    static char line[1 << 14];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !found && fgets(line, sizeof line, file))
        found = strstr(line, one) || strstr(line, other);
    if (file) fclose(file);
    return found;
}

/* Returns whether the processor has instructions for products of bf16. */
static bool multiplies_bf16(void) { return processor_has(" avx512_bf16", " amx_bf16"); }

static void forced(void **unused) {
    (void)unused;
    Engines blas = engines_with("HETU_PRODUCTS=openblas"), usual = engines_with(""),
            forced_on = engines_with("HETU_PRODUCTS=onednn"),
            wrong = engines_with("HETU_PRODUCTS=mkl"),
            older = engines_with("ONEDNN_MAX_CPU_ISA=AVX2");
    assert_true(blas.status == 0 && usual.status == 0 && older.status == 0);
    assert_true(!blas.takes_half && !blas.takes_full && !usual.takes_full);
    assert_true(!older.takes_half && !older.takes_full && !older.takes_few && !blas.takes_few);
    assert_true(older.hash == blas.hash);
    assert_true(wrong.status != 0);
    assert_string_equal(wrong.said, "hetu: HETU_PRODUCTS=mkl: it is onednn or openblas\n");
    if (forced_on.status != 0) { // libhetu was built without oneDNN
        assert_non_null(strstr(forced_on.said, "libhetu was built without oneDNN"));
        assert_true(!usual.takes_half && usual.hash == blas.hash);
        skip();
    }
    assert_true(usual.takes_half == multiplies_bf16());
    assert_true(usual.takes_few == processor_has(" avx512vl", " avx512vl"));
    assert_true(forced_on.takes_half == multiplies_bf16() && forced_on.takes_full &&
                forced_on.takes_few);
    assert_true(forced_on.hash != blas.hash);
}

static void same_bits(void **unused) {
    (void)unused;
    static const char *const variables[] = {"", "HETU_PRODUCTS=openblas", "OMP_NUM_THREADS=1",
                                            "OMP_NUM_THREADS=3"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        Engines first = engines_with(variables[i]), second = engines_with(variables[i]);
        assert_true(first.status == 0 && first.hash != 0);
        assert_true(first.hash == second.hash);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrices),    cmocka_unit_test(batches),
                                       cmocka_unit_test(accumulated), cmocka_unit_test(empty),
                                       cmocka_unit_test(forced),      cmocka_unit_test(same_bits)};
    self = argv[0];
    return argc > 1 ? print_engines() : cmocka_run_group_tests(tests, NULL, NULL);
}
