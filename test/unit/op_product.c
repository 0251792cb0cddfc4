/* ht_product against plain loops in double, over many kinds of axes, sizes, storage orders and types. */
#include <hetu/rt.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IN_Y = 1, IN_X = 2, IN_W = 4, IN_B = 8, AXES = 5, ROOM = 1 << 15 };

static uint64_t state = 1;

/* A product of f32 without an epilogue. */
static void multiply(float *y, const float *x, const float *w, const float *bias, int rank, const ht_axis *axes, float scale)
{
    const ht_product_call call = {.y = y, .x = x, .w = w, .bias = bias, .scale = scale, .rank = rank, .axes = axes};
    ht_product(&call);
}

static int draw(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

static void fill(float *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = (float)(draw(2001) - 1000) / 1000;
}

/* Gives the axes of one tensor strides in a random order of storage; returns the number of elements. */
static int64_t store(ht_axis *axes, const int *kind, int rank, int bit, size_t field)
{
    int order[AXES] = {0};
    int64_t stride = 1;
    for (int i = 0; i < rank; i++) {
        int j = draw(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < rank; i++) {
        int64_t *to = (int64_t *)((char *)&axes[order[i]] + field);
        *to = kind[order[i]] & bit ? stride : 0;
        stride *= kind[order[i]] & bit ? axes[order[i]].extent : 1;
    }
    return stride;
}

/* y in double; `scale` sums of products of magnitude at most 1. */
static void reference(double *y, const float *x, const float *w, const float *bias, int rank, const ht_axis *axes, float scale)
{
    int64_t total = 1;
    for (int i = 0; i < rank; i++)
        total *= axes[i].extent;
    memset(y, 0, ROOM * sizeof *y);
    for (int64_t e = 0; e < total; e++) {
        int64_t rest = e, at[4] = {0};
        int first = 1; // the first of the elements that are summed
        for (int i = 0; i < rank; i++) {
            int64_t c = rest % axes[i].extent;
            rest /= axes[i].extent;
            at[0] += c * axes[i].y;
            at[1] += c * axes[i].x;
            at[2] += c * axes[i].w;
            at[3] += c * axes[i].b;
            first &= axes[i].y != 0 || axes[i].extent == 1 || c == 0;
        }
        y[at[0]] += (double)scale * x[at[1]] * w[at[2]] + (first && bias ? bias[at[3]] : 0);
    }
}

/* Rounds elements to bf16, in place and into storage. */
static void *stored(float *x, uint16_t *half, ht_dtype dtype)
{
    for (int i = 0; dtype == HT_BF16 && i < ROOM; i++)
        x[i] = ht_bf16_load(half[i] = ht_bf16_store(x[i]));
    return dtype == HT_BF16 ? (void *)half : x;
}

static double loaded(const void *data, ht_dtype dtype, int64_t i)
{
    return dtype == HT_BF16 ? ht_bf16_load(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

static double activated(double x, ht_epilogue epilogue)
{
    if (epilogue == HT_GELU)
        return 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
    return epilogue == HT_RELU && x < 0 ? 0 : x;
}

static void near(int round, const char *what, double value, double expected, ht_dtype dtype)
{
    double rounding = dtype == HT_BF16 ? 0x1p-8 : 0;
    if (!(fabs(value - expected) <= 1e-3 + rounding * fabs(expected)))
        fail_msg("round %d, %s: %g instead of %g", round, what, value, expected);
}

/* Random axes of all kinds. */
static int draw_axes(ht_axis *axes, int *kind)
{
    static const int kinds[] = {IN_Y | IN_X, IN_Y | IN_W, IN_X | IN_W, IN_Y | IN_X | IN_W, IN_Y | IN_X, IN_Y | IN_W,
                                IN_X | IN_W, IN_X,        IN_W};
    int rank = draw(AXES + 1);
    for (int i = 0; i < rank; i++) {
        kind[i] = kinds[draw((int)(sizeof kinds / sizeof kinds[0]))];
        kind[i] |= kind[i] & IN_Y && draw(2) ? IN_B : 0;
        axes[i].extent = 1 + draw(7);
    }
    store(axes, kind, rank, IN_X, offsetof(ht_axis, x));
    store(axes, kind, rank, IN_W, offsetof(ht_axis, w));
    store(axes, kind, rank, IN_B, offsetof(ht_axis, b));
    return rank;
}

static void check_random(int round)
{
    static float y[ROOM], aux[ROOM], x[ROOM], w[ROOM], b[ROOM];
    static uint16_t halves[3][ROOM];
    static double expected[ROOM];
    ht_axis axes[AXES] = {{0}};
    int kind[AXES], rank = draw_axes(axes, kind);
    int64_t count = store(axes, kind, rank, IN_Y, offsetof(ht_axis, y));
    fill(x, ROOM);
    fill(w, ROOM);
    fill(b, ROOM);
    ht_product_call call = {.y = y, .y_dtype = draw(2) ? HT_BF16 : HT_F32, .dtype = draw(2) ? HT_BF16 : HT_F32};
    call.bias_dtype = draw(2) ? HT_BF16 : HT_F32;
    call.x = stored(x, halves[0], call.dtype);
    call.w = stored(w, halves[1], call.dtype);
    call.bias = draw(2) ? stored(b, halves[2], call.bias_dtype) : NULL;
    call.scale = draw(2) ? 1.0f : -0.5f;
    call.epilogue = (ht_epilogue)draw(3);
    call.aux = draw(2) ? aux : NULL;
    call.rank = rank;
    call.axes = axes;
    for (int64_t i = 0; i < count; i++)
        y[i] = aux[i] = NAN;
    ht_product(&call);
    reference(expected, x, w, call.bias ? b : NULL, rank, axes, call.scale);
    for (int64_t i = 0; i < count; i++) {
        near(round, "an element", loaded(y, call.y_dtype, i), activated(expected[i], call.epilogue), call.y_dtype);
        if (call.aux)
            near(round, "an element of aux", loaded(aux, call.y_dtype, i), expected[i], call.y_dtype);
    }
}

static void random_axes(void **unused)
{
    (void)unused;
    for (int round = 0; round < 2000; round++)
        check_random(round);
}

/* The sums of an operand over what the product adds up, beside the product. */
static void check_sums(int round)
{
    static float y[ROOM], x[ROOM], w[ROOM], sums[ROOM];
    static uint16_t halves[2][ROOM];
    static double expected[ROOM];
    ht_axis axes[AXES] = {{0}};
    int kind[AXES], rank = draw_axes(axes, kind), of_w = draw(2), own = of_w ? IN_W : IN_X;
    for (int i = 0; i < rank; i++)
        kind[i] = (kind[i] & ~IN_B) | ((kind[i] & IN_Y) && (kind[i] & own) ? IN_B : 0);
    store(axes, kind, rank, IN_Y, offsetof(ht_axis, y));
    int64_t count = store(axes, kind, rank, IN_B, offsetof(ht_axis, b));
    fill(x, ROOM);
    fill(w, ROOM);
    ht_product_call call = {.y = y, .dtype = draw(2) ? HT_BF16 : HT_F32, .sums = sums, .sums_of_w = of_w, .scale = -0.5f};
    call.x = stored(x, halves[0], call.dtype);
    call.w = stored(w, halves[1], call.dtype);
    call.rank = rank;
    call.axes = axes;
    ht_product(&call);
    memset(expected, 0, sizeof expected);
    int64_t total = 1;
    for (int i = 0; i < rank; i++)
        total *= (of_w ? axes[i].w : axes[i].x) ? axes[i].extent : 1;
    for (int64_t n = 0; n < total; n++) {
        int64_t rest = n, from = 0, to = 0;
        for (int i = 0; i < rank; i++) {
            int64_t stride = of_w ? axes[i].w : axes[i].x, c = stride ? rest % axes[i].extent : 0;
            rest /= stride ? axes[i].extent : 1;
            from += c * stride;
            to += c * axes[i].b;
        }
        expected[to] += (of_w ? w : x)[from];
    }
    for (int64_t i = 0; i < count; i++)
        near(round, "a sum", sums[i], expected[i], HT_F32);
}

static void random_sums(void **unused)
{
    (void)unused;
    for (int round = 0; round < 1000; round++)
        check_sums(round);
}

static void empty_sum_is_the_bias(void **unused)
{
    (void)unused;
    const ht_axis axes[] = {{3, 1, 0, 0, 1}, {0, 0, 1, 1, 0}};
    float y[3] = {7, 7, 7}, b[3] = {1, 2, 3};
    multiply(y, b, b, b, 2, axes, 1);
    assert_memory_equal(y, b, sizeof y);
    multiply(y, b, b, NULL, 2, axes, 1);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
}

static void empty_result_is_left_alone(void **unused)
{
    (void)unused;
    const ht_axis axes[] = {{0, 1, 1, 0, 0}, {3, 0, 1, 1, 0}};
    float y[1] = {7}, x[3] = {1, 2, 3};
    multiply(y, x, x, NULL, 2, axes, 1);
    assert_true(y[0] == 7);
}

/* A linear layer larger than BLAS's blocks. */
static void large(void **unused)
{
    (void)unused;
    enum { ROWS = 201, IN = 77, OUT = 150 };
    static float y[ROOM], x[ROOM], w[ROOM], b[ROOM];
    static double expected[ROOM];
    const ht_axis axes[] = {{ROWS, OUT, IN, 0, 0}, {OUT, 1, 0, IN, 1}, {IN, 0, 1, 1, 0}};
    fill(x, ROOM);
    fill(w, ROOM);
    fill(b, ROOM);
    multiply(y, x, w, b, 3, axes, 1);
    reference(expected, x, w, b, 3, axes, 1);
    for (int i = 0; i < ROWS * OUT; i++)
        assert_true(fabs(y[i] - expected[i]) <= 1e-4);
}

/* Rows that overlap, as a convolution reads them: no matrix for BLAS, on either side. */
static void overlapping_rows(void **unused)
{
    (void)unused;
    enum { ROWS = 9, IN = 5, OUT = 4 };
    float y[ROWS * OUT], x[ROWS + IN], w[IN * OUT];
    static double expected[ROOM];
    const ht_axis sides[][3] = {{{ROWS, OUT, 1, 0, 0}, {OUT, 1, 0, 1, 0}, {IN, 0, 1, OUT, 0}},
                                {{OUT, 1, 1, 0, 0}, {ROWS, OUT, 0, 1, 0}, {IN, 0, OUT, 1, 0}}};
    fill(x, ROWS + IN);
    fill(w, IN * OUT);
    for (int side = 0; side < 2; side++) {
        const float *left = side ? w : x, *right = side ? x : w;
        multiply(y, left, right, NULL, 3, sides[side], 1);
        reference(expected, left, right, NULL, 3, sides[side], 1);
        for (int i = 0; i < ROWS * OUT; i++)
            near(side, "an element of overlapping rows", y[i], expected[i], HT_F32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_axes),
                                       cmocka_unit_test(empty_sum_is_the_bias),
                                       cmocka_unit_test(empty_result_is_left_alone),
                                       cmocka_unit_test(overlapping_rows),
                                       cmocka_unit_test(large),
                                       cmocka_unit_test(random_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
