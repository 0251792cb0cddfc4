/* The CPU kernels beyond what the operators' tests reach: blocks of attention, results that must not depend on threads, empty pieces,
 * pieces with offsets. */
#include "operators/kernels.h"

#include <hetu/vector_math.h>

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state = 1;

static float draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(state >> 11) * 0x1p-53 * 2 - 1);
}

static float *draw_many(int64_t count)
{
    float *x = malloc((size_t)(count + 1) * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = draw();
    return x;
}

static ht_view view(void *data, ht_dtype dtype, int rank, const int64_t *extent)
{
    ht_view v = {.data = data, .dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++)
        v.extent[d] = v.global[d] = extent[d];
    return v;
}
#define VIEW(data, ...) view((data), HT_F32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#define IDS(data, ...) view((data), HT_I32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void run(ht_kernel *kernel, ht_view *result, int results, ht_view *operand, int operands, const ht_attr *attr)
{
    ht_call call = {
        .result = result, .operand = operand, .result_count = results, .operand_count = operands, .attr = attr, .training = 1, .seed = 5};
    kernel(&call);
}

/* ---- attention ---- */

/* Where the rows of a piece lie in the whole: the first `fold` from `offset` on, the others `gap` further. */
typedef struct Places {
    int64_t offset, fold, gap;
} Places;

typedef struct Size {
    int64_t b, s, t, heads, groups, d;
    int causal, segmented;
    Places query, key;
} Size;

static int64_t place(Places of, int64_t i) { return of.offset + i + (i >= of.fold ? of.gap : 0); }

static int32_t segment_at(int64_t place) { return (int32_t)(place / 37); }

static int sees(const Size *z, int64_t i, int64_t j)
{
    int64_t query = place(z->query, i), key = place(z->key, j);
    return (!z->causal || key <= query) && (!z->segmented || segment_at(query) == segment_at(key));
}

static ht_view placed(ht_view view, Places of)
{
    view.offset[1] = of.offset;
    view.fold[1] = of.fold;
    view.gap[1] = of.gap;
    return view;
}

/* The weighted sum of y and its gradients, for one query of one head, in double. */
static void reference_row(const Size *z, const float *q, const float *k, const float *v, const float *dy, const float *dlse, double *y,
                          double *dq, double *dk, double *dv, int64_t b, int64_t i, int64_t h)
{
    int64_t g = h / (z->heads / z->groups), at = ((b * z->s + i) * z->heads + h) * z->d;
    double scale = 1 / sqrt((double)z->d), sum = 0, delta = -dlse[at / z->d];
    double *p = calloc((size_t)z->t, sizeof *p), *dp = calloc((size_t)z->t, sizeof *dp);
    for (int64_t j = 0; j < z->t; j++) {
        const float *key = k + ((b * z->t + j) * z->groups + g) * z->d;
        double dot = 0;
        for (int64_t c = 0; c < z->d; c++)
            dot += (double)q[at + c] * key[c];
        sum += p[j] = sees(z, i, j) ? exp(dot * scale) : 0;
    }
    for (int64_t j = 0; j < z->t; j++) {
        const float *value = v + ((b * z->t + j) * z->groups + g) * z->d;
        p[j] /= sum > 0 ? sum : 1;
        for (int64_t c = 0; c < z->d; c++) {
            y[at + c] += p[j] * value[c];
            dp[j] += (double)dy[at + c] * value[c];
            dv[((b * z->t + j) * z->groups + g) * z->d + c] += p[j] * dy[at + c];
        }
        delta += p[j] * dp[j];
    }
    for (int64_t j = 0; j < z->t; j++)
        for (int64_t c = 0; c < z->d; c++) {
            int64_t key = ((b * z->t + j) * z->groups + g) * z->d + c;
            dq[at + c] += scale * p[j] * (dp[j] - delta) * k[key];
            dk[key] += scale * p[j] * (dp[j] - delta) * q[at + c];
        }
    free(p);
    free(dp);
}

static void near(const char *what, const float *x, const double *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(x[i] - expected[i]) <= 2e-5 * (1 + fabs(expected[i]))))
            fail_msg("%s, element %ld: %.9g instead of %.9g", what, (long)i, (double)x[i], expected[i]);
}

static void check_attention(Size z)
{
    int64_t nq = z.b * z.s * z.heads * z.d, nk = z.b * z.t * z.groups * z.d;
    float *q = draw_many(nq), *k = draw_many(nk), *v = draw_many(nk), *dy = draw_many(nq), *y = draw_many(nq), *lse = draw_many(nq),
          *dlse = draw_many(nq);
    float *dq = draw_many(nq), *dk = draw_many(nk), *dv = draw_many(nk);
    double *e = calloc((size_t)(2 * nq + 2 * nk), sizeof *e), *edq = e + nq, *edk = edq + nq, *edv = edk + nk;
    int32_t *segment = malloc((size_t)(z.b * (z.s + z.t)) * sizeof *segment), *key_segment = segment + z.b * z.s;
    for (int64_t i = 0; i < z.b * z.s; i++)
        segment[i] = segment_at(place(z.query, i % z.s));
    for (int64_t i = 0; i < z.b * z.t; i++)
        key_segment[i] = segment_at(place(z.key, i % z.t));
    for (int64_t r = 0; r < z.b * z.s * z.heads; r++)
        reference_row(&z, q, k, v, dy, dlse, e, edq, edk, edv, r / z.heads / z.s, r / z.heads % z.s, r % z.heads);
    ht_attr causal = {.i = z.causal};
    ht_view marks = IDS(z.segmented ? segment : NULL, z.b, z.s), key_marks = IDS(z.segmented ? key_segment : NULL, z.b, z.t);
    ht_view in[] = {placed(VIEW(q, z.b, z.s, z.heads, z.d), z.query), placed(VIEW(k, z.b, z.t, z.groups, z.d), z.key),
                    VIEW(v, z.b, z.t, z.groups, z.d), marks, key_marks};
    ht_view out[] = {VIEW(y, z.b, z.s, z.heads, z.d), VIEW(lse, z.b, z.s, z.heads)};
    run(ht_attention_kernel, out, 2, in, 5, &causal);
    near("y", y, e, nq);
    ht_view back[] = {VIEW(dy, z.b, z.s, z.heads, z.d), in[0], in[1], in[2], out[0], out[1], marks, key_marks,
                      VIEW(dlse, z.b, z.s, z.heads)};
    ht_view gradients[] = {VIEW(dq, z.b, z.s, z.heads, z.d), VIEW(dk, z.b, z.t, z.groups, z.d), VIEW(dv, z.b, z.t, z.groups, z.d)};
    run(ht_attention_backward_kernel, gradients, 3, back, 9, &causal);
    near("dq", dq, edq, nq);
    near("dk", dk, edk, nk);
    near("dv", dv, edv, nk);
    void *all[] = {q, k, v, dy, y, lse, dq, dk, dv, e, segment};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void attention(void **unused)
{
    (void)unused;
    check_attention((Size){1, 1, 1, 1, 1, 1, 0, 0, {0}, {0}});
    check_attention((Size){2, 150, 150, 4, 2, 8, 1, 0, {0}, {0}});
    check_attention((Size){1, 67, 300, 3, 1, 5, 0, 0, {0}, {0}});
    check_attention((Size){1, 300, 67, 2, 2, 20, 1, 0, {0}, {0}});
    check_attention((Size){2, 150, 150, 2, 1, 8, 1, 1, {0}, {0}});
    check_attention((Size){1, 150, 150, 3, 3, 7, 0, 1, {0}, {0}});
    check_attention((Size){1, 40, 150, 2, 1, 8, 1, 1, {60, 0, 0}, {0, 0, 0}});
    check_attention((Size){2, 100, 300, 4, 2, 8, 1, 0, {30, 51, 149}, {0, 0, 0}});
    check_attention((Size){1, 133, 140, 2, 2, 8, 1, 1, {0, 70, 160}, {0, 70, 160}});
    check_attention((Size){1, 133, 90, 2, 2, 8, 1, 0, {70, 66, 20}, {0, 45, 210}});
    check_attention((Size){1, 133, 90, 2, 2, 8, 1, 0, {0, 70, 100}, {90, 45, 0}});
}

/* ---- threads ---- */

/* Runs layer norm's backward, whose sums over rows are the risk, with some number of threads. */
static float *norm_gradient(int threads, int64_t rows, int64_t n)
{
    state = 9;
    float *dy = draw_many(rows * n), *x = draw_many(rows * n), *mean = draw_many(rows), *rstd = draw_many(rows), *w = draw_many(n);
    float *out = malloc((size_t)(rows * n + 2 * n) * sizeof *out);
    ht_view in[] = {VIEW(dy, rows, n), VIEW(x, rows, n), VIEW(mean, rows), VIEW(rstd, rows), VIEW(w, n), {0}};
    ht_view result[] = {VIEW(out + 2 * n, rows, n), VIEW(out, n), VIEW(out + n, n)};
    omp_set_num_threads(threads);
    run(ht_layer_norm_backward_kernel, result, 3, in, 6, NULL);
    void *all[] = {dy, x, mean, rstd, w};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    return out;
}

static void threads_change_no_bit(void **unused)
{
    (void)unused;
    int64_t rows = 333, n = 65;
    float *one = norm_gradient(1, rows, n);
    for (int threads = 2; threads <= 5; threads++) {
        float *many = norm_gradient(threads, rows, n);
        assert_memory_equal(one, many, (size_t)(rows * n + 2 * n) * sizeof(float));
        free(many);
    }
    omp_set_num_threads(2);
    free(one);
}

/* ---- empty pieces ---- */

static void empty_pieces(void **unused)
{
    (void)unused;
    float none[1] = {3}, w[4] = {1, 1, 1, 1}, sums[8];
    int32_t id[1] = {0};
    ht_attr attr[3] = {{.f = 1e-5}, {.i = 1}, {.i = 0}};
    ht_view empty = VIEW(none, 0, 4), rows = VIEW(none, 0);
    ht_view norm_in[] = {empty, VIEW(w, 4), VIEW(w, 4)}, norm_out[] = {empty, rows, rows};
    run(ht_layer_norm_kernel, norm_out, 3, norm_in, 3, attr);
    ht_view back_in[] = {empty, empty, rows, rows, VIEW(w, 4), {0}}, back_out[] = {empty, VIEW(sums, 4), VIEW(sums + 4, 4)};
    run(ht_layer_norm_backward_kernel, back_out, 3, back_in, 6, attr);
    for (int i = 0; i < 8; i++)
        assert_true(sums[i] == 0);
    ht_view soft_in[] = {empty}, soft_out[] = {empty};
    run(ht_softmax_kernel, soft_out, 1, soft_in, 1, NULL);
    ht_view scatter_in[] = {empty, IDS(id, 0), {0}}, scatter_out[] = {VIEW(sums, 2, 4)};
    run(ht_embedding_backward_kernel, scatter_out, 1, scatter_in, 3, attr);
    ht_view q = VIEW(none, 1, 0, 2, 4), lse = VIEW(none, 1, 0, 2), marks = IDS(NULL, 0);
    ht_view attention_in[] = {q, q, q, marks, marks}, attention_out[] = {q, lse};
    run(ht_attention_kernel, attention_out, 2, attention_in, 5, attr);
    ht_view attention_back[] = {q, q, q, q, q, lse, marks, marks, lse}, attention_gradients[] = {q, q, q};
    run(ht_attention_backward_kernel, attention_gradients, 3, attention_back, 9, attr);
    ht_view drop_in[] = {empty}, drop_out[] = {empty};
    run(ht_dropout_kernel, drop_out, 1, drop_in, 1, attr);
    assert_true(none[0] == 3);
}

/* ---- pieces ---- */

/* Dropout of a piece drops what dropout of the whole drops there. */
static void dropout_by_pieces(void **unused)
{
    (void)unused;
    enum { ROWS = 5, N = 19, LOW = 7, HIGH = 16 };
    float x[ROWS * N], whole[ROWS * N], piece[ROWS * (HIGH - LOW)];
    ht_attr attr[2] = {{.f = 0.5}, {.i = 3}};
    for (int i = 0; i < ROWS * N; i++)
        x[i] = 1;
    ht_view in[] = {VIEW(x, ROWS, N)}, out[] = {VIEW(whole, ROWS, N)};
    run(ht_dropout_kernel, out, 1, in, 1, attr);
    ht_view part_in[] = {VIEW(x, ROWS, HIGH - LOW)}, part_out[] = {VIEW(piece, ROWS, HIGH - LOW)};
    part_in[0].offset[1] = LOW;
    part_in[0].global[1] = N;
    run(ht_dropout_kernel, part_out, 1, part_in, 1, attr);
    int dropped = 0;
    for (int r = 0; r < ROWS; r++)
        for (int i = LOW; i < HIGH; i++) {
            assert_true(piece[r * (HIGH - LOW) + i - LOW] == whole[r * N + i]);
            dropped += whole[r * N + i] == 0;
        }
    assert_in_range(dropped, 10, 35);
}

/* A piece of a sequence is turned by the angles of its own places, forward and back. */
static void rope_by_pieces(void **unused)
{
    (void)unused;
    enum { B = 2, S = 9, LOW = 3, HIGH = 8, ROW = 2 * 6 };
    for (int direction = 1; direction >= -1; direction -= 2) {
        float *x = draw_many(B * S * ROW), whole[B * S * ROW], part[B * (HIGH - LOW) * ROW], piece[B * (HIGH - LOW) * ROW];
        ht_attr attr[2] = {{.f = 10000}, {.i = direction}};
        for (int b = 0; b < B; b++)
            memcpy(part + b * (HIGH - LOW) * ROW, x + (b * S + LOW) * ROW, sizeof(float) * (HIGH - LOW) * ROW);
        ht_view in[] = {VIEW(x, B, S, 2, 6), IDS(NULL, 0)}, out[] = {VIEW(whole, B, S, 2, 6)};
        ht_view part_in[] = {VIEW(part, B, HIGH - LOW, 2, 6), IDS(NULL, 0)}, part_out[] = {VIEW(piece, B, HIGH - LOW, 2, 6)};
        part_in[0].offset[1] = LOW;
        part_in[0].global[1] = S;
        run(ht_rope_kernel, out, 1, in, 2, attr);
        run(ht_rope_kernel, part_out, 1, part_in, 2, attr);
        for (int b = 0; b < B; b++)
            assert_memory_equal(piece + b * (HIGH - LOW) * ROW, whole + (b * S + LOW) * ROW, sizeof(float) * (HIGH - LOW) * ROW);
        free(x);
    }
}

/* The same step drops the same elements, the next one others. */
static void dropout_by_steps(void **unused)
{
    (void)unused;
    enum { N = 64, STEPS = 6 };
    float x[N], y[STEPS][N], again[N];
    ht_attr attr[2] = {{.f = 0.5}, {.i = 3}};
    for (int i = 0; i < N; i++)
        x[i] = 1;
    for (int step = 0; step <= STEPS; step++) {
        ht_view in[] = {VIEW(x, N)}, out[] = {VIEW(step < STEPS ? y[step] : again, N)};
        ht_call call = {.result_count = 1,
                        .operand_count = 1,
                        .result = out,
                        .operand = in,
                        .attr = attr,
                        .training = 1,
                        .step = step % STEPS,
                        .seed = 1};
        ht_dropout_kernel(&call);
    }
    assert_memory_equal(again, y[0], sizeof again);
    for (int a = 0; a < STEPS; a++)
        for (int b = 0; b < a; b++)
            assert_memory_not_equal(y[a], y[b], sizeof again);
}

static void dropout_rate(void **unused)
{
    (void)unused;
    enum { N = 100000 };
    float *x = malloc(N * sizeof *x);
    ht_attr attr[2] = {{.f = 0.1}, {.i = 3}};
    for (int i = 0; i < N; i++)
        x[i] = 9;
    ht_view in[] = {VIEW(x, N)};
    run(ht_dropout_kernel, in, 1, in, 1, attr);
    int dropped = 0;
    for (int i = 0; i < N; i++) {
        assert_true(x[i] == 0 || fabsf(x[i] - 10) < 1e-5f);
        dropped += x[i] == 0;
    }
    assert_in_range(dropped, 9600, 10400);
    free(x);
}

/* The pieces of a cut vocabulary add up to the whole. */
static void mass_by_pieces(void **unused)
{
    (void)unused;
    enum { ROWS = 4, V = 11, CUT = 4 };
    float *x = draw_many(ROWS * V), left[ROWS * CUT], right[ROWS * (V - CUT)], peak[ROWS] = {1, 1, 1, 1}, m[3][ROWS], h[3][ROWS];
    int32_t target[ROWS] = {0, 10, 4, -100};
    for (int r = 0; r < ROWS; r++) {
        memcpy(left + r * CUT, x + r * V, sizeof(float) * CUT);
        memcpy(right + r * (V - CUT), x + r * V + CUT, sizeof(float) * (V - CUT));
    }
    float *data[3] = {x, left, right};
    const int64_t width[3] = {V, CUT, V - CUT}, offset[3] = {0, 0, CUT};
    for (int i = 0; i < 3; i++) {
        ht_view in[] = {VIEW(data[i], ROWS, width[i]), IDS(target, ROWS), VIEW(peak, ROWS)}, out[] = {VIEW(m[i], ROWS), VIEW(h[i], ROWS)};
        in[0].offset[1] = offset[i];
        in[0].global[1] = V;
        run(ht_mass_kernel, out, 2, in, 3, NULL);
    }
    for (int r = 0; r < ROWS; r++) {
        assert_true(fabsf(m[0][r] - m[1][r] - m[2][r]) < 1e-5f);
        assert_true(h[0][r] == h[1][r] + h[2][r]);
    }
    assert_true(h[0][0] == x[0] && h[0][1] == x[V + 10] && h[0][3] == 0);
    free(x);
}

/* ---- functions ---- */

static void vector_functions(void **unused)
{
    (void)unused;
    for (double x = -100; x < 88.7; x += 0.0137) {
        double e = exp((float)x), t = tanh((float)x);
        assert_true(fabs(ht_expf((float)x) - e) <= 2.5e-7 * e + 1e-44);
        assert_true(fabs(ht_tanhf((float)x) - t) <= 2.5e-7 * fabs(t));
    }
    assert_true(ht_expf(-INFINITY) == 0 && isinf(ht_expf(200)) && isinf(ht_expf(INFINITY)) && ht_expf(0) == 1);
    assert_true(isnan(ht_expf(NAN)) && isnan(ht_tanhf(NAN)) && ht_tanhf(1e30f) == 1 && ht_tanhf(-INFINITY) == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention),         cmocka_unit_test(threads_change_no_bit), cmocka_unit_test(empty_pieces),
        cmocka_unit_test(dropout_by_pieces), cmocka_unit_test(dropout_rate),          cmocka_unit_test(dropout_by_steps),
        cmocka_unit_test(rope_by_pieces),    cmocka_unit_test(mass_by_pieces),        cmocka_unit_test(vector_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
