/* A user's own operators: a rule, a kernel and a gradient in C, on one device and on many.
 *
 *     hetucc --strategy=sp4 custom.c ../common/[a-z]*.c -o custom -lm
 *     ./custom
 *
 * custom.cu has the kernels for CUDA: hetucc --backend=cuda --strategy=sp4 custom.c custom.cu ../common/[a-z]*.c -o custom -lm
 *
 * quartic_norm divides each row by the fourth root of its mean fourth power; a row may not be cut. tent_pool sums a sequence with weights that
 * rise to its middle and fall again: cut along the sequence, it gives partial sums, and its kernel asks where its piece starts.
 * The model finds the frequency of a noisy wave with these operators.
 */
#include "../common/train.h"

#include <math.h>
#include <stdlib.h>

#ifndef BATCH
#define BATCH 15
#endif
#ifndef SEQ
#define SEQ 30
#endif
#ifndef HIDDEN
#define HIDDEN 42
#endif
#ifndef CLIP
#define CLIP 1.0f
#endif
enum { CLASSES = 7, CHANNELS = 3 };

int batch = BATCH;
#pragma hspmd shape(batch)

#pragma hspmd strategy dp4
#pragma hspmd   split batch:dp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy

#pragma hspmd strategy sp4
#pragma hspmd   split seq:sp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(sp:4)
#pragma hspmd end strategy

#pragma hspmd strategy dp2tp2
#pragma hspmd   split batch:dp  hidden:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

/* ---- y = x / s with s = mean(x^4)^(1/4) over the last dimension ---- */

void quartic_norm_kernel(const ht_call *call)
{
    const float *x = call->operand[0].data;
    float *y = call->result[0].data, *scale = call->result[1].data;
    int64_t rows = ht_view_count(&call->result[1], 0, call->result[1].rank), width = call->operand[0].extent[call->operand[0].rank - 1];
    for (int64_t r = 0; r < rows; r++) {
        double sum = 1e-12;
        for (int64_t c = 0; c < width; c++)
            sum += pow(x[r * width + c], 4);
        scale[r] = (float)pow(sum / (double)width, 0.25);
        for (int64_t c = 0; c < width; c++)
            y[r * width + c] = x[r * width + c] / scale[r];
    }
}

/* dx = (dy - y^3 mean(dy y)) / s */
void quartic_norm_backward_kernel(const ht_call *call)
{
    const float *dy = call->operand[0].data, *y = call->operand[1].data, *scale = call->operand[2].data;
    float *dx = call->result[0].data;
    int64_t rows = ht_view_count(&call->operand[2], 0, call->operand[2].rank), width = call->operand[0].extent[call->operand[0].rank - 1];
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < width; c++)
            sum += (double)dy[r * width + c] * y[r * width + c];
        float mean = (float)(sum / (double)width);
        for (int64_t c = 0; c < width; c++) {
            float v = y[r * width + c];
            dx[r * width + c] = (dy[r * width + c] - v * v * v * mean) / scale[r];
        }
    }
}

#pragma hspmd op dx[r.., c] = quartic_norm_backward(dy[r.., c], y[r.., c], scale[r..])  replicate(c)  kernel(quartic_norm_backward_kernel)  kernel(cuda: quartic_norm_backward_cuda)  grad(none)
ht_tensor quartic_norm_backward(ht_tensor dy, ht_tensor y, ht_tensor scale)
{
    ht_tensor dx, operand[] = {dy, y, scale};
    ht_apply(&(ht_application){.kernel = quartic_norm_backward_kernel, .result_count = 1, .operand_count = 3,
                               .result = {{HT_F32, ht_dims_of(dy)}}, .operand = operand}, &dx);
    return dx;
}

static inline void quartic_norm_gradient(ht_grad *g)
{
    g->dx[0] = quartic_norm_backward(g->dy[0], g->y[0], g->y[1]);
}

typedef struct Quartic {
    ht_tensor y, scale;
} Quartic;

#pragma hspmd op y[r.., c], scale[r..] = quartic_norm(x[r.., c])  replicate(c)  kernel(quartic_norm_kernel)  kernel(cuda: quartic_norm_cuda)  grad(quartic_norm_gradient)
Quartic quartic_norm(ht_tensor x)
{
    ht_dims shape = ht_dims_of(x), rows = shape;
    ht_tensor result[2];
    rows.rank--;
    ht_apply(&(ht_application){.kernel = quartic_norm_kernel, .gradient = quartic_norm_gradient, .result_count = 2, .operand_count = 1,
                               .result = {{HT_F32, shape}, {HT_F32, rows}}, .operand = &x}, result);
    return (Quartic){result[0], result[1]};
}

/* ---- y(b, e) = sum over s of w(s) x(b, s, e), where w rises to the middle of the sequence and falls again, and adds up to about 1 ---- */

static float tent(int64_t at, int64_t length)
{
    return (1 - fabsf((float)(2 * at + 1 - length) / (float)length)) * 2 / (float)length;
}

void tent_pool_kernel(const ht_call *call)
{
    const ht_view *in = &call->operand[0];
    const float *x = in->data;
    float *y = call->result[0].data;
    int64_t rows = in->extent[0], length = in->extent[1], width = in->extent[2];
    for (int64_t i = 0; i < rows * width; i++)
        y[i] = 0;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t s = 0; s < length; s++)
            for (int64_t e = 0; e < width; e++)
                y[b * width + e] += tent(ht_view_place(in, 1, s), in->global[1]) * x[(b * length + s) * width + e];
}

void tent_spread_kernel(const ht_call *call)
{
    const ht_view *out = &call->result[0];
    const float *dy = call->operand[0].data;
    float *dx = out->data;
    int64_t rows = out->extent[0], length = out->extent[1], width = out->extent[2];
    for (int64_t b = 0; b < rows; b++)
        for (int64_t s = 0; s < length; s++)
            for (int64_t e = 0; e < width; e++)
                dx[(b * length + s) * width + e] = tent(ht_view_place(out, 1, s), out->global[1]) * dy[b * width + e];
}

#pragma hspmd op dx[b, s, e] = tent_spread(dy[b, e])  size(s: length)  offset(s)  linear(dy)  kernel(tent_spread_kernel)  kernel(cuda: tent_spread_cuda)  grad(none)
ht_tensor tent_spread(ht_tensor dy, int64_t length)
{
    ht_tensor dx;
    ht_apply(&(ht_application){.kernel = tent_spread_kernel, .result_count = 1, .operand_count = 1, .attr_count = 1,
                               .result = {{HT_F32, ht_shape(ht_extent(dy, 0), length, ht_extent(dy, 1))}},
                               .operand = &dy, .attr = (ht_attr[]){{.i = length}}}, &dx);
    return dx;
}

static inline void tent_pool_gradient(ht_grad *g)
{
    g->dx[0] = tent_spread(g->dy[0], ht_extent(g->x[0], 1));
}

#pragma hspmd op y[b, e] = tent_pool(x[b, s, e])  reduction(+: s)  offset(s)  linear(x)  kernel(tent_pool_kernel)  kernel(cuda: tent_pool_cuda)  grad(tent_pool_gradient)
ht_tensor tent_pool(ht_tensor x)
{
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = tent_pool_kernel, .gradient = tent_pool_gradient, .result_count = 1, .operand_count = 1,
                               .result = {{HT_F32, ht_shape(ht_extent(x, 0), ht_extent(x, 2))}}, .operand = &x}, &y);
    return y;
}

/* ---- the model ---- */

ht_tensor wave_loss(void)
{
    ht_tensor wave = ht_input("wave", HT_F32, ht_shape(batch, SEQ, CHANNELS));
    ht_tensor class = ht_input("class", HT_I32, ht_shape(batch));
    ht_tensor up = ht_param(ht_shape(HIDDEN, CHANNELS), ht_normal(0.5), "up.w");
    ht_tensor up_b = ht_param(ht_shape(HIDDEN), ht_uniform(1), "up.b");
    ht_tensor mix = ht_param(ht_shape(HIDDEN, HIDDEN), ht_normal(0.15), "mix.w");
    ht_tensor head = ht_param(ht_shape(CLASSES, HIDDEN), ht_normal(0.15), "head.w");
    ht_tensor head_b = ht_param(ht_shape(CLASSES), ht_zeros(), "head.b");
#pragma hspmd dims(wave: batch, seq)
#pragma hspmd dims(up: hidden)
    ht_tensor h = ht_gelu(ht_linear(wave, up, up_b));
#pragma hspmd dims(h: batch, seq, hidden)
    ht_tensor y = quartic_norm(ht_linear(h, mix, HT_NONE)).y;
#pragma hspmd dims(y: batch, seq)
    return ht_mean(ht_cross_entropy(ht_linear(tent_pool(y), head, head_b), class));
}

/* Draws a batch of noisy waves: samples (batch, SEQ, CHANNELS), and the number of the frequency, below CLASSES, as `class`. */
static void waves_draw(uint64_t *draw, float *wave, int32_t *class)
{
    for (int b = 0; b < batch; b++) {
        double phase = 6.28 * draw_uniform(draw);
        class[b] = (int32_t)(draw_bits(draw) % CLASSES);
        for (int i = 0; i < SEQ * CHANNELS; i++)
            wave[b * SEQ * CHANNELS + i] = (float)(sin(phase + i * (0.2 + 0.15 * class[b])) + 0.1 * draw_normal(draw));
    }
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    Options options = options_read(argc, argv, (Options){.steps = 300, .rate = 3e-3f, .every = 30});
    ht_seed(session, options.seed);
#ifdef SGD
    ht_program *program = ht_train(session, wave_loss, ht_sgd(.lr = options.rate, .momentum = 0.9f));
#else
    ht_program *program = ht_train(session, wave_loss, ht_adamw(.lr = options.rate, .clip = CLIP));
#endif
    float *wave = memory((size_t)batch * SEQ * CHANNELS, sizeof *wave);
    int32_t *class = memory((size_t)batch, sizeof *class);
    uint64_t draw = options.seed;
    Progress progress = progress_start(&options, batch, "rows");
    for (int step = progress_resume(&progress, session, &draw); step < options.steps && !progress_ended(&progress); step++) {
        waves_draw(&draw, wave, class);
        progress_step(&progress, ht_step(program, ht_feed("wave", wave), ht_feed("class", class)));
    }
    progress_end(&progress, session);
    ht_close(session);
    return 0;
}
