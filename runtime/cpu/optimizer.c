/* Optimizer kernels: AdamW, SGD, Lion, gradient clipping. Results may lie in operands. */
#include "cpu/cpu.h"
#include "operators/kernels.h"

#include <math.h>
#include <stdbool.h>
#include <hetu/rt.h>

enum { CHUNK = 16384 }; // elements that one thread updates at a time

/* Returns the gradient clipping factor min(1, clip / (norm + 1e-6)); `norm` holds the square of the
 * global gradient norm. Returns 1 if there is no norm or clip is 0, and NaN for a NaN norm. */
static float clip_factor(const ht_view *norm, float clip) {
    if (!norm->data || clip == 0) return 1.0f;
    float factor = clip / (sqrtf(*(const float *)norm->data) + 1e-6f);
    return factor > 1.0f ? 1.0f : factor;
}

typedef struct AdamW {
    float rate, beta1, beta2, eps, shrink; // shrink: 1 - rate * decay for AdamW, 1 for Adam
    float decay;                           // decay added to the gradient (Adam); 0 for AdamW
    float correct1, correct2;              // 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t)
    float factor;
} AdamW;

HT_CLONES static void adamw_chunk(float *const to[3], const float *const from[4], int64_t first,
                                  int64_t last, const AdamW *a) {
    float *p1 = to[0], *m1 = to[1], *v1 = to[2];
    const float *p = from[0], *g = from[1], *m = from[2], *v = from[3];
    AdamW c = *a;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float grad = g[i] * c.factor + (c.decay == 0 ? 0 : c.decay * p[i]);
        float mean = c.beta1 * m[i] + (1.0f - c.beta1) * grad;
        float square = c.beta2 * v[i] + (1.0f - c.beta2) * grad * grad;
        m1[i] = mean;
        v1[i] = square;
        p1[i] =
            p[i] * c.shrink - c.rate * (mean * c.correct1) / (sqrtf(square) * c.correct2 + c.eps);
    }
}

void ht_adamw_kernel(const ht_call *call) {
    const ht_view *in = call->operand;
    const float *hyper = call->hyper + call->attr[1].i;
    double t = (double)call->step + 1;
    float decay = call->attr[0].i ? hyper[4] : 0.0f;
    AdamW a = {hyper[0],
               hyper[1],
               hyper[2],
               hyper[3],
               hyper[6] != 0 ? 1.0f : 1.0f - hyper[0] * decay,
               hyper[6] != 0 ? decay : 0.0f,
               (float)(1.0 / (1.0 - pow(hyper[1], t))),
               (float)(1.0 / sqrt(1.0 - pow(hyper[2], t))),
               clip_factor(&in[4], hyper[5])};
    float *to[3] = {cpu_f32(&call->result[0], "adamw"), call->result[1].data, call->result[2].data};
    const float *from[4] = {in[0].data, cpu_f32(&in[1], "adamw"), in[2].data, in[3].data};
    int64_t count = cpu_count(&in[0]), chunks = (count + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (int64_t c = 0; c < chunks; c++)
        adamw_chunk(to, from, c * CHUNK, (c + 1) * CHUNK < count ? (c + 1) * CHUNK : count, &a);
}

typedef struct Sgd {
    float rate, momentum, decay, factor;
    bool nesterov;
} Sgd;

HT_CLONES static void sgd_chunk(float *const to[2], const float *const from[3], int64_t first,
                                int64_t last, const Sgd *s) {
    float *p1 = to[0], *m1 = to[1];
    const float *p = from[0], *g = from[1], *m = from[2];
    Sgd c = *s;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float grad = g[i] * c.factor + (c.decay == 0 ? 0 : c.decay * p[i]);
        float velocity = (c.momentum == 0 ? 0 : c.momentum * m[i]) + grad;
        m1[i] = velocity;
        p1[i] = p[i] - c.rate * (c.nesterov ? grad + c.momentum * velocity : velocity);
    }
}

void ht_sgd_kernel(const ht_call *call) {
    const ht_view *in = call->operand;
    const float *hyper = call->hyper + call->attr[1].i;
    Sgd s = {hyper[0], hyper[1], call->attr[0].i ? hyper[2] : 0.0f, clip_factor(&in[3], hyper[3]),
             hyper[4] != 0};
    float *to[2] = {cpu_f32(&call->result[0], "sgd"), call->result[1].data};
    const float *from[3] = {in[0].data, cpu_f32(&in[1], "sgd"), in[2].data};
    int64_t count = cpu_count(&in[0]), chunks = (count + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (int64_t c = 0; c < chunks; c++)
        sgd_chunk(to, from, c * CHUNK, (c + 1) * CHUNK < count ? (c + 1) * CHUNK : count, &s);
}

typedef struct Lion {
    float rate, beta1, beta2, shrink, factor; // shrink: 1 - rate * decay
} Lion;

HT_CLONES static void lion_chunk(float *const to[2], const float *const from[3], int64_t first,
                                 int64_t last, const Lion *l) {
    float *p1 = to[0], *m1 = to[1];
    const float *p = from[0], *g = from[1], *m = from[2];
    Lion c = *l;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float grad = g[i] * c.factor, ahead = c.beta1 * m[i] + (1.0f - c.beta1) * grad;
        m1[i] = c.beta2 * m[i] + (1.0f - c.beta2) * grad;
        p1[i] = p[i] * c.shrink - c.rate * (ahead > 0 ? 1.0f : ahead < 0 ? -1.0f : ahead);
    }
}

void ht_lion_kernel(const ht_call *call) {
    const ht_view *in = call->operand;
    const float *hyper = call->hyper + call->attr[1].i;
    Lion l = {hyper[0], hyper[1], hyper[2], call->attr[0].i ? 1.0f - hyper[0] * hyper[3] : 1.0f,
              clip_factor(&in[3], hyper[4])};
    float *to[2] = {cpu_f32(&call->result[0], "lion"), call->result[1].data};
    const float *from[3] = {in[0].data, cpu_f32(&in[1], "lion"), in[2].data};
    int64_t count = cpu_count(&in[0]), chunks = (count + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (int64_t c = 0; c < chunks; c++)
        lion_chunk(to, from, c * CHUNK, (c + 1) * CHUNK < count ? (c + 1) * CHUNK : count, &l);
}

/* Returns one hyperparameter of the step as a scalar. Attribute: its index. */
void ht_hyper_kernel(const ht_call *call) {
    *(float *)call->result[0].data = call->hyper[call->attr[0].i];
}

void ht_steps_kernel(const ht_call *call) { *(float *)call->result[0].data = (float)call->step; }

/* ---- global gradient norm: sums of squares ---- */

enum { SQUARES_CHUNK = 16384, SQUARES_PARTS = 64 };

HT_CLONES static double squares_of(const float *g, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) sum += g[i] * g[i];
    return sum;
}

/* Computes result = sum(g[i]^2) + more. Operands: g; more, a scalar, may be absent. Chunks have
 * fixed borders, so the sum does not depend on the number of threads. */
void ht_square_sum_kernel(const ht_call *call) {
    const float *g = cpu_f32(&call->operand[0], "square_sum"),
                *more = cpu_f32(&call->operand[1], "square_sum");
    int64_t count = cpu_count(&call->operand[0]),
            parts = (count + SQUARES_CHUNK - 1) / SQUARES_CHUNK;
    double part[SQUARES_PARTS], sum = more ? *more : 0;
    parts = parts > SQUARES_PARTS ? SQUARES_PARTS : parts;
#pragma omp parallel for schedule(static) if (parts > 1)
    for (int64_t c = 0; c < parts; c++)
        part[c] = squares_of(g + count * c / parts, count * (c + 1) / parts - count * c / parts);
    for (int64_t c = 0; c < parts; c++) sum += part[c];
    *(float *)call->result[0].data = (float)sum;
}
