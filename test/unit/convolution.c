/* Convolutions and their gradients on the CPU against sums in double, in every type, by oneDNN and by matrix products: random sizes, strides,
 * paddings, holes and groups, and results with fewer windows than fit; equal bits in two runs. */
#include <hetu/rt.h>
#include <hetu/vector_math.h>

#include "operators/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 60, IMAGES, RESULTS, WEIGHTS };

typedef struct Sizes {
    int64_t batch, groups, inputs, outputs, image[2], result[2], window[2];
    int stride[2], padding[2], dilation[2];
} Sizes;

static uint64_t state = 7;

static int draw(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

static Sizes drawn_sizes(void)
{
    for (;;) {
        Sizes s = {.batch = 1 + draw(4), .groups = 1 + draw(3), .inputs = 1 + draw(20), .outputs = 1 + draw(20)};
        bool fits = true, pointwise = draw(3) == 0;
        for (int d = 0; d < 2; d++) {
            s.image[d] = 1 + draw(14);
            s.window[d] = pointwise ? 1 : 1 + draw(4);
            s.stride[d] = pointwise ? 1 : 1 + draw(3);
            s.padding[d] = pointwise ? 0 : draw(3);
            s.dilation[d] = 1 + draw(3);
            int64_t room = s.image[d] + 2 * s.padding[d] - (s.window[d] - 1) * s.dilation[d] - 1;
            s.result[d] = room / s.stride[d] + 1;
            s.result[d] -= s.result[d] > 1 && draw(4) == 0;
            fits &= room >= 0;
        }
        if (fits)
            return s;
    }
}

static ht_view view_of(const Sizes *s, int tensor, ht_dtype dtype)
{
    ht_view view = {.dtype = dtype, .rank = 5, .extent = {s->batch, s->groups, s->inputs, s->image[0], s->image[1]}};
    if (tensor == RESULTS)
        view = (ht_view){.dtype = dtype, .rank = 5, .extent = {s->batch, s->groups, s->outputs, s->result[0], s->result[1]}};
    if (tensor == WEIGHTS)
        view = (ht_view){.dtype = dtype, .rank = 5, .extent = {s->groups, s->outputs, s->inputs, s->window[0], s->window[1]}};
    return view;
}

static double element(const ht_view *view, int64_t i)
{
    return view->dtype == HT_F64 ? ((double *)view->data)[i] : view->dtype == HT_F32 ? ((float *)view->data)[i] : ht_bf16_load(((uint16_t *)view->data)[i]);
}

/* Gives the view memory with numbers that bf16 represents, so that every type computes the same sums. */
static void fill(ht_view *view)
{
    int64_t count = ht_view_count(view, 0, 5);
    view->data = malloc((size_t)count * 8);
    for (int64_t i = 0; i < count; i++) {
        float value = (float)(draw(255) - 127) / 64;
        if (view->dtype == HT_F64)
            ((double *)view->data)[i] = value;
        else if (view->dtype == HT_F32)
            ((float *)view->data)[i] = value;
        else
            ((uint16_t *)view->data)[i] = ht_bf16_store(value);
    }
}

/* Adds all products x z, y z or x y to the wanted tensor, which is 0, in double. */
static void reference(const Sizes *s, int wanted, double *sums, const ht_view *x, const ht_view *y, const ht_view *z)
{
    for (int64_t n = 0; n < s->batch * s->groups * s->outputs * s->result[0] * s->result[1]; n++) {
        int64_t w = n % s->result[1], h = n / s->result[1] % s->result[0], o = n / s->result[1] / s->result[0] % s->outputs;
        int64_t bg = n / s->result[1] / s->result[0] / s->outputs, g = bg % s->groups;
        for (int64_t m = 0; m < s->inputs * s->window[0] * s->window[1]; m++) {
            int64_t q = m % s->window[1], p = m / s->window[1] % s->window[0], i = m / s->window[1] / s->window[0];
            int64_t j = h * s->stride[0] + p * s->dilation[0] - s->padding[0], k = w * s->stride[1] + q * s->dilation[1] - s->padding[1];
            if (j < 0 || j >= s->image[0] || k < 0 || k >= s->image[1])
                continue;
            int64_t at = ((bg * s->inputs + i) * s->image[0] + j) * s->image[1] + k;
            int64_t weight = (((g * s->outputs + o) * s->inputs + i) * s->window[0] + p) * s->window[1] + q;
            if (wanted == RESULTS)
                sums[n] += element(x, at) * element(z, weight);
            else if (wanted == IMAGES)
                sums[at] += element(y, n) * element(z, weight);
            else
                sums[weight] += element(x, at) * element(y, n);
        }
    }
}

static void check_one(const Sizes *s, int wanted, ht_dtype dtype)
{
    static ht_kernel *const kernels[] = {[IMAGES] = ht_convolution_images_kernel, [RESULTS] = ht_convolution_kernel,
                                         [WEIGHTS] = ht_convolution_weights_kernel};
    ht_view x = view_of(s, IMAGES, dtype), y = view_of(s, RESULTS, dtype),
            z = view_of(s, WEIGHTS, dtype == HT_BF16 && wanted == WEIGHTS ? HT_F32 : dtype);
    fill(&x), fill(&y), fill(&z);
    ht_view *to = wanted == IMAGES ? &x : wanted == RESULTS ? &y : &z;
    ht_view operands[] = {wanted == IMAGES ? y : x, wanted == WEIGHTS ? y : z};
    ht_attr attr[8] = {{.i = to->extent[3]}, {.i = to->extent[4]}};
    for (int d = 0; d < 2; d++) {
        attr[2 + d].i = s->stride[d];
        attr[4 + d].i = s->padding[d];
        attr[6 + d].i = s->dilation[d];
    }
    ht_call call = {.result = to, .operand = operands, .result_count = 1, .operand_count = 2, .attr = attr};
    int64_t count = ht_view_count(to, 0, 5);
    double *sums = calloc((size_t)count, sizeof *sums);
    size_t bytes = (size_t)count * (dtype == HT_F64 ? 8 : to->dtype == HT_F32 ? 4 : 2);
    void *once = malloc(bytes);
    kernels[wanted](&call);
    memcpy(once, to->data, bytes);
    kernels[wanted](&call);
    assert_memory_equal(once, to->data, bytes);
    reference(s, wanted, sums, &x, &y, &z);
    /* Sums of multiples of 2^-12 below 2^12 are exact in f32; a result in bf16 is rounded once. */
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(element(to, i) - sums[i]);
        if (to->dtype == HT_BF16 ? error > fabs(sums[i]) / 256 : error != 0)
            fail_msg("tensor %d, element %lld: %.17g, not %.17g", wanted, (long long)i, element(to, i), sums[i]);
    }
    free(once), free(sums), free(x.data), free(y.data), free(z.data);
}

static void check_all(const char *engine, ht_dtype dtype)
{
    setenv("HETU_PRODUCTS", engine, 1);
    state = 7;
    for (int n = 0; n < CASES; n++) {
        Sizes s = drawn_sizes();
        for (int wanted = IMAGES; wanted <= WEIGHTS; wanted++)
            check_one(&s, wanted, dtype);
    }
    unsetenv("HETU_PRODUCTS");
}

static void f32_by_default(void **unused) { (void)unused, check_all("", HT_F32); }
static void f32_by_products(void **unused) { (void)unused, check_all("openblas", HT_F32); }
static void bf16_by_default(void **unused) { (void)unused, check_all("", HT_BF16); }
static void bf16_by_products(void **unused) { (void)unused, check_all("openblas", HT_BF16); }
static void f64_sums(void **unused) { (void)unused, check_all("", HT_F64); }

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(f32_by_default), cmocka_unit_test(f32_by_products), cmocka_unit_test(bf16_by_default),
                                       cmocka_unit_test(bf16_by_products), cmocka_unit_test(f64_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
