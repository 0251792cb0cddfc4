/* A user's operators in turns: what joins results of pieces is a sum, a maximum, or the operator of a clause `merge`.
 *
 * blend: each query's mean of the values, a key weighing 1 / (1 + its squared distance); a query sees keys up to two behind it. Its kernel divides
 * by what the keys weigh, so it must not be called without any; the results of two pieces are joined by blend_join, a kernel, too. Beside it stands
 * attention over packed sequences.
 */
#include <hetu/hetu.h>
#include <hetu/kernel.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef SEQ
#define SEQ 13
#endif
#ifndef ROWS
#define ROWS 6
#endif
enum { INNER = 4, WIDTH = 6, AHEAD = 2 };

/* Rows of the batch, queries, keys, and numbers of each, of a call whose views begin with q and k. */
typedef struct Sizes {
    int64_t b, s, t, i, e, query, key; // query, key: where the pieces begin
    const float *q, *k, *v;
} Sizes;

static Sizes sizes_of(const ht_view *q, const ht_view *k, const ht_view *v)
{
    return (Sizes){q->extent[0], q->extent[1], k->extent[1], q->extent[2], v->extent[2], q->offset[1], k->offset[1], q->data, k->data, v->data};
}

/* What key t of row b weighs for query s. */
static float weigh(const Sizes *z, int64_t b, int64_t s, int64_t t)
{
    float distance = 0;
    for (int64_t i = 0; i < z->i; i++) {
        float off = z->q[(b * z->s + s) * z->i + i] - z->k[(b * z->t + t) * z->i + i];
        distance += off * off;
    }
    return z->key + t <= z->query + s + AHEAD ? 1 / (1 + distance) : 0;
}

void blend_kernel(const ht_call *call)
{
    Sizes z = sizes_of(&call->operand[0], &call->operand[1], &call->operand[2]);
    float *y = call->result[0].data, *weight = call->result[1].data;
    if (!z.t)
        ht_fail("blend is called without keys");
    for (int64_t row = 0; row < z.b * z.s; row++) {
        int64_t b = row / z.s;
        weight[row] = 0;
        for (int64_t e = 0; e < z.e; e++)
            y[row * z.e + e] = 0;
        for (int64_t t = 0; t < z.t; t++) {
            float w = weigh(&z, b, row % z.s, t);
            weight[row] += w;
            for (int64_t e = 0; e < z.e; e++)
                y[row * z.e + e] += w * z.v[(b * z.t + t) * z.e + e];
        }
        for (int64_t e = 0; e < z.e; e++)
            y[row * z.e + e] /= weight[row] > 0 ? weight[row] : 1;
    }
}

void blend_join_kernel(const ht_call *call)
{
    const float *y1 = call->operand[0].data, *w1 = call->operand[1].data, *y2 = call->operand[2].data, *w2 = call->operand[3].data;
    float *y = call->result[0].data, *w = call->result[1].data;
    int64_t rows = ht_view_count(&call->result[1], 0, 2), width = call->result[0].extent[2];
    for (int64_t r = 0; r < rows; r++) {
        w[r] = w1[r] + w2[r];
        for (int64_t e = 0; e < width; e++)
            y[r * width + e] = (w1[r] * y1[r * width + e] + w2[r] * y2[r * width + e]) / (w[r] > 0 ? w[r] : 1);
    }
}

void blend_backward_kernel(const ht_call *call)
{
    Sizes z = sizes_of(&call->operand[1], &call->operand[2], &call->operand[3]);
    const float *dy = call->operand[0].data, *y = call->operand[4].data, *weight = call->operand[5].data;
    float *dq = call->result[0].data, *dk = call->result[1].data, *dv = call->result[2].data;
    for (int k = 0; k < 3; k++)
        for (int64_t n = 0; n < ht_view_count(&call->result[k], 0, 3); n++)
            ((float *)call->result[k].data)[n] = 0;
    for (int64_t row = 0; row < z.b * z.s; row++)
        for (int64_t t = 0; t < z.t; t++) {
            int64_t key = row / z.s * z.t + t;
            float w = weigh(&z, row / z.s, row % z.s, t), to_weight = 0;
            for (int64_t e = 0; e < z.e; e++) {
                to_weight += dy[row * z.e + e] * (z.v[key * z.e + e] - y[row * z.e + e]) / weight[row];
                dv[key * z.e + e] += w / weight[row] * dy[row * z.e + e];
            }
            for (int64_t i = 0; i < z.i; i++) {
                float off = -2 * w * w * to_weight * (z.q[row * z.i + i] - z.k[key * z.i + i]);
                dq[row * z.i + i] += off;
                dk[key * z.i + i] -= off;
            }
        }
}

void closest_kernel(const ht_call *call)
{
    Sizes z = sizes_of(&call->operand[0], &call->operand[1], &call->operand[1]);
    float *y = call->result[0].data;
    for (int64_t row = 0; row < z.b * z.s; row++) {
        y[row] = -INFINITY;
        for (int64_t t = 0; t < z.t; t++)
            y[row] = fmaxf(y[row], weigh(&z, row / z.s, row % z.s, t));
    }
}

void crowd_kernel(const ht_call *call)
{
    Sizes z = sizes_of(&call->operand[0], &call->operand[1], &call->operand[1]);
    float *y = call->result[0].data;
    for (int64_t row = 0; row < z.b * z.s; row++) {
        y[row] = 0;
        for (int64_t t = 0; t < z.t; t++)
            y[row] += weigh(&z, row / z.s, row % z.s, t);
    }
}

typedef struct Blend {
    ht_tensor y, weight;
} Blend;

#pragma hspmd op y[b, s, e], weight[b, s] = join(y1[b, s, e], weight1[b, s], y2[b, s, e], weight2[b, s])  kernel(blend_join_kernel)  grad(none)
Blend blend_join(ht_tensor y1, ht_tensor weight1, ht_tensor y2, ht_tensor weight2)
{
    ht_tensor result[2], operand[] = {y1, weight1, y2, weight2};
    ht_apply(&(ht_application){.kernel = blend_join_kernel, .result_count = 2, .operand_count = 4,
                               .result = {{HT_F32, ht_dims_of(y1)}, {HT_F32, ht_dims_of(weight1)}}, .operand = operand}, result);
    return (Blend){result[0], result[1]};
}

typedef struct BlendGradient {
    ht_tensor dq, dk, dv;
} BlendGradient;

#pragma hspmd op dq[b, s, i], dk[b, t, i], dv[b, t, e] = back(dy[b, s, e], q[b, s, i], k[b, t, i], v[b, t, e], y[b, s, e], weight[b, s]) \
    replicate(i) reduction(+: s, t, e) offset(s, t) kernel(blend_backward_kernel) grad(none)
BlendGradient blend_backward(ht_tensor dy, ht_tensor q, ht_tensor k, ht_tensor v, ht_tensor y, ht_tensor weight)
{
    ht_tensor result[3], operand[] = {dy, q, k, v, y, weight};
    ht_apply(&(ht_application){.kernel = blend_backward_kernel, .result_count = 3, .operand_count = 6,
                               .result = {{HT_F32, ht_dims_of(q)}, {HT_F32, ht_dims_of(k)}, {HT_F32, ht_dims_of(v)}}, .operand = operand}, result);
    return (BlendGradient){result[0], result[1], result[2]};
}

void blend_gradient(ht_grad *g)
{
    BlendGradient d = blend_backward(g->dy[0], g->x[0], g->x[1], g->x[2], g->y[0], g->y[1]);
    g->dx[0] = d.dq;
    g->dx[1] = d.dk;
    g->dx[2] = d.dv;
}

#pragma hspmd op y[b, s, e], weight[b, s] = blend(q[b, s, i], k[b, t, i], v[b, t, e]) \
    replicate(i) merge(t: blend_join) offset(s, t) kernel(blend_kernel) grad(blend_gradient)
Blend blend(ht_tensor q, ht_tensor k, ht_tensor v)
{
    ht_tensor result[2], operand[] = {q, k, v};
    ht_dims shape = ht_dims_of(q), rows = ht_shape((int)shape.extent[0], (int)shape.extent[1]);
    shape.extent[2] = ht_extent(v, 2);
    ht_apply(&(ht_application){.kernel = blend_kernel, .gradient = blend_gradient, .result_count = 2, .operand_count = 3,
                               .result = {{HT_F32, shape}, {HT_F32, rows}}, .operand = operand}, result);
    return (Blend){result[0], result[1]};
}

#pragma hspmd op y[b, s] = closest(q[b, s, i], k[b, t, i])  replicate(i) reduction(max: t) offset(s, t) kernel(closest_kernel) grad(none)
ht_tensor closest(ht_tensor q, ht_tensor k)
{
    ht_tensor y, operand[] = {q, k};
    ht_apply(&(ht_application){.kernel = closest_kernel, .result_count = 1, .operand_count = 2,
                               .result = {{HT_F32, ht_shape((int)ht_extent(q, 0), (int)ht_extent(q, 1))}}, .operand = operand}, &y);
    return y;
}

#pragma hspmd op y[b, s] = crowd(q[b, s, i], k[b, t, i])  replicate(i) reduction(+: t) offset(s, t) kernel(crowd_kernel) grad(none)
ht_tensor crowd(ht_tensor q, ht_tensor k)
{
    ht_tensor y, operand[] = {q, k};
    ht_apply(&(ht_application){.kernel = crowd_kernel, .result_count = 1, .operand_count = 2,
                               .result = {{HT_F32, ht_shape((int)ht_extent(q, 0), (int)ht_extent(q, 1))}}, .operand = operand}, &y);
    return y;
}

/* ---- the model ---- */

/* Attention over packed sequences, by two heads. */
static ht_tensor packed(ht_tensor q, ht_tensor k, ht_tensor x)
{
    ht_dims heads = ht_shape(ROWS, SEQ, 2, INNER / 2);
    ht_tensor v = ht_linear(x, ht_param(ht_shape(INNER, WIDTH), ht_normal(0.5f), "packed.v"), HT_NONE);
    ht_tensor segment = ht_input("segment", HT_I32, ht_shape(ROWS, SEQ));
#pragma hspmd dims(segment: batch, seq)
    ht_tensor y = ht_attention(ht_reshape(q, heads), ht_reshape(k, heads), ht_reshape(v, heads), segment, true);
    return ht_linear(ht_reshape(y, ht_shape(ROWS, SEQ, INNER)), ht_param(ht_shape(WIDTH, INNER), ht_normal(0.5f), "packed.out"), HT_NONE);
}

static ht_tensor model(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, SEQ, WIDTH));
#pragma hspmd dims(x: batch, seq, width)
    ht_tensor first = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.5f), "first");
    x = ht_tanh(ht_linear(x, first, HT_NONE));
    ht_tensor q = ht_linear(x, ht_param(ht_shape(INNER, WIDTH), ht_normal(0.5f), "q"), HT_NONE);
    ht_tensor k = ht_linear(x, ht_param(ht_shape(INNER, WIDTH), ht_normal(0.5f), "k"), HT_NONE);
    ht_tensor v = ht_linear(x, ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.5f), "v"), HT_NONE);
#pragma hspmd dims(q, k: batch, seq, _)
#pragma hspmd dims(v: batch, seq, width)
    ht_tensor scale = ht_add(closest(q, k), crowd(q, k)), y = ht_add(blend(q, k, v).y, packed(q, k, x));
    return ht_mul(y, ht_reshape(scale, ht_shape(ROWS, SEQ, 1)));
}

static ht_tensor loss(void)
{
    ht_tensor error = ht_sub(model(), ht_input("wanted", HT_F32, ht_shape(ROWS, SEQ, WIDTH)));
    return ht_mean(ht_mul(error, error));
}

int main(int argc, char **argv)
{
    enum { COUNT = ROWS * SEQ * WIDTH, STEPS = 4 };
    static float x[COUNT], wanted[COUNT], y[COUNT], k[INNER * WIDTH];
    static int segment[ROWS * SEQ];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1e-2f)), *forward = ht_infer(session, model);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i * 7 % 13 - 6) / 6;
        wanted[i] = (float)(i * 5 % 11 - 5) / 5;
    }
    for (int i = 0; i < ROWS * SEQ; i++)
        segment[i] = (i % SEQ + i / SEQ) / 5;
    for (int step = 0; step < STEPS; step++) {
        printf("%.9g\n", ht_step(program, ht_feed("x", x), ht_feed("wanted", wanted), ht_feed("segment", segment)));
        ht_run(forward, ht_feed("x", x), ht_feed("segment", segment));
        ht_fetch(forward, "", y);
        ht_get_param(session, "k", k, INNER * WIDTH);
        printf("%.9g %.9g %.9g\n", y[step], y[COUNT - 1 - step], k[step]);
    }
    return 0;
}
