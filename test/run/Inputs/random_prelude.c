/* What stands in front of random models: two operators of the model's own, a tensor with all names, made-up inputs, and output as text. */
#include <hetu/hetu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef DTYPE
#define DTYPE HT_F32
#endif

/* y = sin(x) */
void wave_kernel(const ht_call *call)
{
    const float *x = call->operand[0].data;
    float *y = call->result[0].data;
    for (int64_t i = 0; i < ht_view_count(&call->result[0], 0, call->result[0].rank); i++)
        y[i] = sinf(x[i]);
}

void wave_back_kernel(const ht_call *call)
{
    const float *dy = call->operand[0].data, *x = call->operand[1].data;
    float *dx = call->result[0].data;
    for (int64_t i = 0; i < ht_view_count(&call->result[0], 0, call->result[0].rank); i++)
        dx[i] = dy[i] * cosf(x[i]);
}

#pragma hspmd op dx[i..] = wave_back(dy[i..], x[i..]) linear(dy) kernel(wave_back_kernel) grad(none)
ht_tensor wave_back(ht_tensor dy, ht_tensor x)
{
    ht_tensor dx, operand[] = {dy, x};
    ht_apply(&(ht_application){.kernel = wave_back_kernel, .result_count = 1, .operand_count = 2, .result = {{HT_F32, ht_dims_of(x)}}, .operand = operand}, &dx);
    return dx;
}

static inline void wave_gradient(ht_grad *g) { g->dx[0] = wave_back(g->dy[0], g->x[0]); }

#pragma hspmd op y[i..] = wave(x[i..]) kernel(wave_kernel) grad(wave_gradient)
ht_tensor wave(ht_tensor x)
{
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = wave_kernel, .gradient = wave_gradient, .result_count = 1, .operand_count = 1,
                               .result = {{HT_F32, ht_dims_of(x)}}, .operand = &x}, &y);
    return y;
}

/* y = the sum over s of x[s] (s + 1) / extent of s */
void ramp_kernel(const ht_call *call)
{
    const ht_view *in = &call->operand[0];
    int64_t width = in->extent[in->rank - 1], rows = ht_view_count(in, 0, in->rank - 1);
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
        for (int64_t s = 0; s < width; s++)
            sum += ((const float *)in->data)[r * width + s] * (float)(ht_view_place(in, in->rank - 1, s) + 1) / (float)in->global[in->rank - 1];
        ((float *)call->result[0].data)[r] = sum;
    }
}

void ramp_back_kernel(const ht_call *call)
{
    const ht_view *out = &call->result[0];
    int64_t width = out->extent[out->rank - 1], rows = ht_view_count(out, 0, out->rank - 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < width; s++)
            ((float *)out->data)[r * width + s] =
                ((const float *)call->operand[0].data)[r] * (float)(ht_view_place(out, out->rank - 1, s) + 1) / (float)out->global[out->rank - 1];
}

#pragma hspmd op dx[b.., s] = ramp_back(dy[b..]) size(s: n) offset(s) linear(dy) kernel(ramp_back_kernel) grad(none)
ht_tensor ramp_back(ht_tensor dy, int64_t n)
{
    ht_tensor dx;
    ht_dims shape = ht_dims_of(dy);
    shape.extent[shape.rank++] = n;
    ht_apply(&(ht_application){.kernel = ramp_back_kernel, .result_count = 1, .operand_count = 1, .attr_count = 1, .result = {{HT_F32, shape}},
                               .operand = &dy, .attr = &(ht_attr){.i = n}}, &dx);
    return dx;
}

static inline void ramp_gradient(ht_grad *g) { g->dx[0] = ramp_back(g->dy[0], ht_extent(g->x[0], -1)); }

#pragma hspmd op y[b..] = ramp(x[b.., s]) reduction(+: s) offset(s) linear(x) kernel(ramp_kernel) grad(ramp_gradient)
ht_tensor ramp(ht_tensor x)
{
    ht_tensor y;
    ht_dims shape = ht_dims_of(x);
    shape.rank--;
    ht_apply(&(ht_application){.kernel = ramp_kernel, .gradient = ramp_gradient, .result_count = 1, .operand_count = 1,
                               .result = {{HT_F32, shape}}, .operand = &x}, &y);
    return y;
}

/* A tensor with every name, for a strategy may split no other. */
static ht_tensor anchor(void)
{
    ht_tensor names = ht_param(ht_shape(2, 2, 2, 2, 2, 2), ht_uniform(1), "names");
#pragma hspmd dims(names: n0, n1, n2, n3, n4, n5)
    return ht_mean(ht_mul(names, names));
}

static void fill_f(float *to, int count, unsigned draw)
{
    for (int i = 0; i < count; i++) {
        draw = draw * 1664525u + 1013904223u;
        to[i] = (float)(draw >> 8) / 8388608.0f - 1;
        if (getenv("NUDGE"))
            to[i] *= draw >> 7 & 1 ? 1 + 0x1p-23f : 1 - 0x1p-23f;
    }
}

/* Integers below `limit`; one in sixteen is -100 where that is allowed. */
static void fill_i(int32_t *to, int count, unsigned draw, int limit, int holes)
{
    for (int i = 0; i < count; i++) {
        draw = draw * 1664525u + 1013904223u;
        to[i] = holes && draw >> 28 == 3 ? -100 : (int)(draw >> 8) % limit;
    }
}

static void show(FILE *out, const char *kind, const char *name, const float *at, size_t count)
{
    fprintf(out, "%s %s", kind, name);
    for (size_t i = 0; i < count; i++)
        fprintf(out, " %.9g", (double)at[i]);
    fprintf(out, "\n");
}

static void show_params(FILE *out, ht_session *session, const char *kind)
{
    const char *name;
    size_t count;
    for (int i = 0; (name = ht_param_name(session, i, &count)); i++) {
        float *to = calloc(count + 1, sizeof *to);
        ht_get_param(session, name, to, count);
        show(out, kind, name, to, count);
        free(to);
    }
}
