/* Attention without a matrix of scores: scores exist for one block of queries and keys at a time,
 * and a running maximum keeps the sums exact (Milakov and Gimelshein: Online normalizer calculation
 * for softmax, 2018; Dao: FlashAttention-2, 2023). Backward recomputes the blocks of scores, and
 * their probabilities from lse.
 *
 * Packed sequences: a query sees keys of its own segment alone (operand `segments` in ops.h).
 *
 * q, y: [b.., s, h, d]; k, v: [b.., t, g, d]; lse: [b.., s, h]; query head h reads key-value head h
 * / (heads / groups). */
#include "cpu/cpu.h"
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <hetu/vector_math.h>

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 64, KEYS = 128 }; // rows and columns of a block of scores

typedef struct Attention {
    int64_t batch, s, t, heads, groups, d; // groups: key-value heads
    const float *q, *k, *v;
    int64_t q_pitch, k_pitch, v_pitch;      // elements from one row of all heads to the next
    const ht_view *query, *key;             // q and k, with the positions of their rows
    const ht_view *segments, *key_segments; // segment numbers; `data` NULL: no segments
    int causal;
    float scale;
} Attention;

/* Initializes `a` from the views `in` (q, k, v) and `segments` (segment numbers of queries and
 * keys). f32 copies of bf16 views are added to `copies`. Ends the program on invalid views. */
static void take_views(Attention *a, const ht_view *in, const ht_view *segments, int causal,
                       Copies *copies) {
    const ht_view *q = &in[0], *k = &in[1], *v = &in[2];
    int r = q->rank;
    *a = (Attention){.batch = ht_view_count(q, 0, r - 3),
                     .s = q->extent[r - 3],
                     .t = k->extent[r - 3],
                     .heads = q->extent[r - 2],
                     .groups = k->extent[r - 2],
                     .d = q->extent[r - 1],
                     .query = q,
                     .key = k,
                     .segments = &segments[0],
                     .key_segments = &segments[1],
                     .causal = causal,
                     .scale = 1.0f / sqrtf((float)q->extent[r - 1])};
    a->q = view_load_rows(q, r - 2, "attention", copies, &a->q_pitch);
    a->k = view_load_rows(k, r - 2, "attention", copies, &a->k_pitch);
    a->v = view_load_rows(v, r - 2, "attention", copies, &a->v_pitch);
    cpu_need_integers(a->segments, "attention");
    cpu_need_integers(a->key_segments, "attention");
    if (!a->segments->data != !a->key_segments->data)
        ht_fail("attention needs segments of both queries and keys, or of neither");
    if (a->groups > 0 && a->heads % a->groups != 0)
        ht_fail("attention: %ld query heads are no multiple of %ld key-value heads", (long)a->heads,
                (long)a->groups);
}

/* Return the offset of query i, head h in a tensor like q, and of key j, key-value head g in a
 * tensor like k. */
static int64_t query_at(const Attention *a, int64_t pitch, int64_t b, int64_t i, int64_t h) {
    return (b * a->s + i) * pitch + h * a->d;
}

static int64_t key_at(const Attention *a, int64_t pitch, int64_t b, int64_t j, int64_t g) {
    return (b * a->t + j) * pitch + g * a->d;
}

/* Returns how many of this device's keys query i sees, from the first on; all unless causal. */
static int64_t visible_keys(const Attention *a, int64_t i) {
    int s = a->query->rank - 3;
    return a->causal ? ht_view_before(a->key, s, ht_view_place(a->query, s, i) + 1) : a->t;
}

/* A block of scores of one head: `rows` queries from `query` on, `columns` keys from `key` on. */
typedef struct Block {
    int64_t b, h, g, query, key, rows, columns;
} Block;

/* Computes scores = scale * q kᵀ, or minus infinity where a query does not see a key. */
static void fill_scores(const Attention *a, const Block *k, float *scores) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)k->rows, (blasint)k->columns,
                (blasint)a->d, a->scale, a->q + query_at(a, a->q_pitch, k->b, k->query, k->h),
                (blasint)a->q_pitch, a->k + key_at(a, a->k_pitch, k->b, k->key, k->g),
                (blasint)a->k_pitch, 0, scores, KEYS);
    for (int64_t i = 0; i < k->rows; i++) {
        float *row = scores + i * KEYS;
        int64_t visible = visible_keys(a, k->query + i) - k->key;
        for (int64_t j = visible < 0 ? 0 : visible; j < k->columns; j++) row[j] = -INFINITY;
        if (!a->segments->data) continue;
        int64_t mine = cpu_index(a->segments, k->b * a->s + k->query + i);
        for (int64_t j = 0; j < k->columns; j++)
            if (cpu_index(a->key_segments, k->b * a->t + k->key + j) != mine) row[j] = -INFINITY;
    }
}

/* Returns the number of keys, from the first on, that any query of a block sees. */
static int64_t key_end(const Attention *a, int64_t query, int64_t rows) {
    return visible_keys(a, query + rows - 1);
}

/* Updates the running maximum and sum of a row (online softmax), and replaces scores by exp(score -
 * maximum). Returns the factor that rescales earlier sums. */
HT_CLONES static float online_row(float *row, int64_t n, float *peak, float *sum) {
    float top = *peak;
#pragma omp simd reduction(max : top)
    for (int64_t j = 0; j < n; j++) top = row[j] > top ? row[j] : top;
    float base = top == -INFINITY ? 0.0f : top, add = 0;
#pragma omp simd reduction(+ : add)
    for (int64_t j = 0; j < n; j++) {
        row[j] = ht_expf(row[j] - base);
        add += row[j];
    }
    float factor = ht_expf(*peak - base);
    *sum = *sum * factor + add;
    *peak = top;
    return factor;
}

HT_CLONES static void scale_row(float *x, int64_t n, float factor) {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/* Computes y and lse of one block of queries of one head, over all blocks of keys. */
static void forward_block(const Attention *a, Block k, float *y, float *lse, float *scores) {
    float peak[QUERIES], sum[QUERIES];
    int64_t pitch = a->heads * a->d, end = key_end(a, k.query, k.rows);
    float *out = y + query_at(a, pitch, k.b, k.query, k.h);
    for (int64_t i = 0; i < k.rows; i++) {
        peak[i] = -INFINITY;
        sum[i] = 0;
        memset(out + i * pitch, 0, (size_t)a->d * sizeof(float));
    }
    for (k.key = 0; k.key < end; k.key += KEYS) {
        k.columns = end - k.key < KEYS ? end - k.key : KEYS;
        fill_scores(a, &k, scores);
        for (int64_t i = 0; i < k.rows; i++) {
            float factor = online_row(scores + i * KEYS, k.columns, &peak[i], &sum[i]);
            if (k.key > 0) scale_row(out + i * pitch, a->d, factor);
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)k.rows, (blasint)a->d,
                    (blasint)k.columns, 1, scores, KEYS,
                    a->v + key_at(a, a->v_pitch, k.b, k.key, k.g), (blasint)a->v_pitch, k.key > 0,
                    out, (blasint)pitch);
    }
    for (int64_t i = 0; i < k.rows; i++) {
        scale_row(out + i * pitch, a->d, sum[i] > 0 ? 1.0f / sum[i] : 0.0f);
        lse[(k.b * a->s + k.query + i) * a->heads + k.h] = peak[i] + logf(sum[i]);
    }
}

void ht_attention_kernel(const ht_call *call) {
    Attention a;
    Copies copies = {0};
    const ht_view *in = call->operand;
    take_views(&a, &in[0], &in[3], call->attr[0].i != 0, &copies);
    float *y = view_target(&call->result[0], "attention", &copies),
          *lse = cpu_f32(&call->result[1], "attention");
    int64_t blocks = (a.s + QUERIES - 1) / QUERIES, tasks = a.batch * a.heads * blocks;
#pragma omp parallel if (tasks > 1)
    {
        float *scores = cpu_alloc((size_t)QUERIES * KEYS * sizeof(float));
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            int64_t h = task / blocks % a.heads, query = task % blocks * QUERIES;
            Block k = {task / blocks / a.heads,
                       h,
                       h / (a.heads / a.groups),
                       query,
                       0,
                       a.s - query < QUERIES ? a.s - query : QUERIES,
                       0};
            forward_block(&a, k, y, lse, scores);
        }
        free(scores);
    }
    view_store(&call->result[0], y);
    copies_free(&copies);
}

/* ---- backward ---- */

typedef struct Backward {
    Attention a;
    const float *dy, *y, *lse;
    float *dq, *dk, *dv;
    int64_t dq_pitch, dk_pitch, dv_pitch;
    const float *dlse; // NULL: zeros
    float *delta;      // [b.., s, h]: the dot product of dy and y, less dlse
} Backward;

HT_CLONES static float dot_row(const float *x, const float *y, int64_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* The logsumexp of a row of scores, and delta (Backward.delta). */
typedef struct RowStatistics {
    float lse, delta;
} RowStatistics;

/* Replaces scores in `p` by probabilities, `dp` by their gradient, scale * p * (dp - delta). */
HT_CLONES static void score_gradient_row(float *restrict p, float *restrict dp, int64_t n,
                                         RowStatistics row, float scale) {
    float base = row.lse == -INFINITY ? 0.0f : row.lse, delta = row.delta;
    for (int64_t j = 0; j < n; j++) {
        p[j] = ht_expf(p[j] - base);
        dp[j] = scale * p[j] * (dp[j] - delta);
    }
}

/* Adds the gradients of one block of queries and keys to dq, dk, dv. */
static void backward_block(const Backward *w, const Block *k, float *p, float *dp) {
    const Attention *a = &w->a;
    const float *dy = w->dy + query_at(a, a->heads * a->d, k->b, k->query, k->h),
                *q = a->q + query_at(a, a->q_pitch, k->b, k->query, k->h);
    const float *key = a->k + key_at(a, a->k_pitch, k->b, k->key, k->g),
                *v = a->v + key_at(a, a->v_pitch, k->b, k->key, k->g);
    float *dq = w->dq + query_at(a, w->dq_pitch, k->b, k->query, k->h),
          *dk = w->dk + key_at(a, w->dk_pitch, k->b, k->key, k->g);
    float *dv = w->dv + key_at(a, w->dv_pitch, k->b, k->key, k->g);
    blasint rows = (blasint)k->rows, columns = (blasint)k->columns, d = (blasint)a->d,
            dy_pitch = (blasint)(a->heads * a->d);
    fill_scores(a, k, p);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, d, 1, dy, dy_pitch, v,
                (blasint)a->v_pitch, 0, dp, KEYS);
    for (int64_t i = 0; i < k->rows; i++) {
        int64_t row = (k->b * a->s + k->query + i) * a->heads + k->h;
        score_gradient_row(p + i * KEYS, dp + i * KEYS, k->columns,
                           (RowStatistics){w->lse[row], w->delta[row]}, a->scale);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, columns, d, rows, 1, p, KEYS, dy, dy_pitch,
                1, dv, (blasint)w->dv_pitch);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, columns, d, rows, 1, dp, KEYS, q,
                (blasint)a->q_pitch, 1, dk, (blasint)w->dk_pitch);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, d, columns, 1, dp, KEYS, key,
                (blasint)a->k_pitch, 1, dq, (blasint)w->dq_pitch);
}

/* Adds the gradients of one query head, over all its keys. */
static void backward_head(const Backward *w, int64_t b, int64_t h, int64_t g, float *scratch) {
    const Attention *a = &w->a;
    for (int64_t query = 0; query < a->s; query += QUERIES) {
        Block k = {b, h, g, query, 0, a->s - query < QUERIES ? a->s - query : QUERIES, 0};
        int64_t end = key_end(a, query, k.rows);
        for (k.key = 0; k.key < end; k.key += KEYS) {
            k.columns = end - k.key < KEYS ? end - k.key : KEYS;
            backward_block(w, &k, scratch, scratch + QUERIES * KEYS);
        }
    }
}

static void fill_delta(const Backward *w) {
    int64_t rows = w->a.batch * w->a.s * w->a.heads, d = w->a.d;
#pragma omp parallel for schedule(static) if (rows * d > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++)
        w->delta[r] = dot_row(w->dy + r * d, w->y + r * d, d) - (w->dlse ? w->dlse[r] : 0);
}

/* Computes all heads' gradients, a task for each key-value head: tasks never add to the same dk. */
static void backward_all(const Backward *w) {
    int64_t groups = w->a.groups, tasks = w->a.batch * groups,
            shared = groups > 0 ? w->a.heads / groups : 0;
#pragma omp parallel if (tasks > 1)
    {
        float *scratch = cpu_alloc((size_t)2 * QUERIES * KEYS * sizeof(float));
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++)
            for (int64_t r = 0; r < shared; r++)
                backward_head(w, task / groups, task % groups * shared + r, task % groups, scratch);
        free(scratch);
    }
}

/* Zeroes all rows (all heads of a position), which are `pitch` elements apart. */
static void clear_rows(float *to, const ht_view *view, int64_t pitch) {
    int64_t rows = ht_view_count(view, 0, view->rank - 2),
            n = ht_view_count(view, view->rank - 2, view->rank);
    for (int64_t r = 0; r < rows; r++) memset(to + r * pitch, 0, (size_t)n * sizeof(float));
}

void ht_attention_backward_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Copies copies = {0};
    Backward w = {.dy = view_load(&in[0], "attention", &copies),
                  .y = view_load(&in[4], "attention", &copies),
                  .lse = cpu_f32(&in[5], "attention"),
                  .dlse = in[8].data ? cpu_f32(&in[8], "attention") : NULL};
    int row = out[0].rank - 2;
    w.dq = view_target_rows(&out[0], row, "attention", &copies, &w.dq_pitch);
    w.dk = view_target_rows(&out[1], row, "attention", &copies, &w.dk_pitch);
    w.dv = view_target_rows(&out[2], row, "attention", &copies, &w.dv_pitch);
    take_views(&w.a, &in[1], &in[6], call->attr[0].i != 0, &copies);
    clear_rows(w.dq, &out[0], w.dq_pitch);
    clear_rows(w.dk, &out[1], w.dk_pitch);
    clear_rows(w.dv, &out[2], w.dv_pitch);
    w.delta = cpu_alloc((size_t)(w.a.batch * w.a.s * w.a.heads) * sizeof(float));
    fill_delta(&w);
    backward_all(&w);
    view_store_rows(&out[0], row, w.dq);
    view_store_rows(&out[1], row, w.dk);
    view_store_rows(&out[2], row, w.dv);
    free(w.delta);
    copies_free(&copies);
}
