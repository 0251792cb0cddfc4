/* Attention forward, with a running maximum and sum (Milakov and Gimelshein: Online normalizer
 * calculation for softmax, 2018). */
#include "cuda/attention_scores.h"
#include "cuda/attention_tile_sizes.h"
#include "cuda/attention_choice.h"

#include "operators/kernels.h"
#include "cuda/cuda.h"

#include <math.h>

/* ---- calls ---- */

/* Returns the positions of the rows of q or k in the whole tensor. */
static AttentionPlaces places_of(const ht_view *x) {
    int s = x->rank - 3;
    return {(int)x->offset[s], (int)(x->gap[s] ? x->fold[s] : x->extent[s]), (int)x->gap[s]};
}

static AttentionSegments segments_of(const ht_view *segments, int64_t rows) {
    if (segments->data && segments->dtype != HT_I32 && segments->dtype != HT_I64)
        ht_fail("attention needs segments that are integers");
    return {segments->data, (int)rows, segments->dtype == HT_I64};
}

AttentionShape attention_shape(const ht_view *in, const ht_view *segments, int causal) {
    const int64_t widest = 256;
    const ht_view *q = &in[0], *k = &in[1];
    int r = q->rank;
    AttentionShape a = {(int)ht_view_count(q, 0, r - 3),
                        (int)q->extent[r - 3],
                        (int)k->extent[r - 3],
                        (int)q->extent[r - 2],
                        (int)k->extent[r - 2],
                        (int)q->extent[r - 1],
                        causal,
                        1,
                        1.0f / sqrtf((float)q->extent[r - 1]),
                        (int)ht_view_pitch(q, r - 2),
                        (int)ht_view_pitch(k, r - 2),
                        (int)ht_view_pitch(&in[2], r - 2),
                        places_of(q),
                        places_of(k),
                        segments_of(&segments[0], q->extent[r - 3]),
                        segments_of(&segments[1], k->extent[r - 3])};
    if (q->dtype != HT_F32 && q->dtype != HT_BF16)
        ht_fail("attention needs operands of f32 or bf16");
    if (q->extent[r - 1] > widest)
        ht_fail("attention on a GPU takes heads of up to %ld numbers, not %ld", (long)widest,
                (long)q->extent[r - 1]);
    if (!a.segments.at != !a.key_segments.at)
        ht_fail("attention needs segments of both queries and keys, or of neither");
    if (a.groups > 0 && a.heads % a.groups != 0)
        ht_fail("attention: %d query heads are no multiple of %d key-value heads", a.heads,
                a.groups);
    for (int i = 0; i < 3; i++) attention_same_type(&a, &in[i], q);
    return a;
}

void attention_same_type(AttentionShape *a, const ht_view *view, const ht_view *like) {
    const int piece = 16,
              size = like->dtype == HT_BF16 ? (int)sizeof(__nv_bfloat16) : (int)sizeof(float);
    if (view->dtype != like->dtype)
        ht_fail("attention needs operands of one type: all f32, or all bf16");
    a->aligned = a->aligned && a->d * size % piece == 0 && view->pitch * size % piece == 0 &&
                 (uintptr_t)view->data % piece == 0;
}

AttentionResult attention_result(const ht_view *view) {
    if (view->dtype != HT_F32 && view->dtype != HT_BF16) ht_fail("attention writes f32 or bf16");
    const bool bf16 = view->dtype == HT_BF16;
    const size_t pair = 2 * (bf16 ? sizeof(__nv_bfloat16) : sizeof(float));
    const bool pairs = view->extent[view->rank - 1] % 2 == 0 && view->pitch % 2 == 0 &&
                       (uintptr_t)view->data % pair == 0;
    return {view->data, bf16, pairs, (int)ht_view_pitch(view, view->rank - 2)};
}

/* ---- one block of queries ---- */

/* Running maximum and sum of this thread's rows; the sum is over the thread's own columns. `peak`
 * only keeps exponentials in range: it stays the same until a score exceeds it by much, so most
 * tiles do not rescale the sums. */
template <typename E> struct RunningSoftmax {
    float peak[E::thread_rows], base[E::thread_rows], sum[E::thread_rows];

    __device__ __forceinline__ void begin() {
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++) {
            peak[r] = -INFINITY;
            sum[r] = 0;
        }
    }

    /* Updates the peaks for a tile of scores, and sets `base` to scale * peak. */
    template <typename Sums>
    __device__ __forceinline__ void take(const typename E::Scores &s, Sums &o, float scale) {
        const float slack = 8; // exponentials of scores above the peak are at most 2^slack
        float top[E::thread_rows];
        bool rises = false;
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++) {
            top[r] = s(r, 0);
#pragma unroll
            for (int c = 1; c < E::thread_columns; c++) top[r] = fmaxf(top[r], s(r, c));
            rises = rises || (top[r] - peak[r]) * scale > slack;
        }
        if (__any_sync(0xffffffffu, rises)) rise(top, o, scale);
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++)
            base[r] = peak[r] == -INFINITY ? 0.0f : peak[r] * scale;
    }

  private:
    /* Raises the peaks to the maximum of the rows so far, and rescales the sums to them. */
    template <typename Sums>
    __device__ __forceinline__ void rise(const float (&top)[E::thread_rows], Sums &o, float scale) {
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++) {
            float old = peak[r];
            peak[r] = E::row_max(fmaxf(old, top[r]));
            float factor = peak[r] == -INFINITY ? 1.0f : E::exp2((old - peak[r]) * scale);
            sum[r] *= factor;
#pragma unroll
            for (int c = 0; c < Sums::columns; c++) o(r, c) *= factor;
        }
    }
};

template <typename E>
static __global__ void __launch_bounds__(E::threads, 1)
    attention_device(AttentionShape a, const typename E::T *q, const typename E::T *k,
                     const typename E::T *v, AttentionResult y, float *lse) {
    using T = typename E::T;
    constexpr int D = E::D, tile = E::COLUMNS * D;
    HT_SHARED(T, q_tile);
    T *k_tiles = q_tile + E::ROWS * D, *v_tiles = k_tiles + E::buffers * tile,
      *scratch = v_tiles + E::buffers * tile;
    const QueryBlock<E> &at = attention_known<QueryBlock<E>>(
        [&] { return QueryBlock<E>(a, {0, a.batch * a.groups, 0, a.s}); });
    const Rows<T> queries = attention_query_rows(a, q, a.q_pitch, at.b, at.query, at.h);
    auto load = [&](int it, int buffer) {
        at.load(a, k_tiles + buffer * tile, k, a.k_pitch, it);
        at.load(a, v_tiles + buffer * tile, v, a.v_pitch, it);
    };
    tile_load<E, E::ROWS>(q_tile, queries);
    tile_begin<E::buffers>(at.count, load);

    const float scale = a.scale * log2_e;
    typename E::template Sums<D> o;
    RunningSoftmax<E> softmax;
    E::clear(o);
    softmax.begin();
    for (int it = 0; it < at.count; it++) {
        int buffer = tile_next<E::buffers>(it, at.count, load), key = it * E::COLUMNS;
        typename E::Scores s;
        E::score(s, q_tile, k_tiles + buffer * tile);
        attention_hide<E, false>(a, at.b, at.query, key, s);
        softmax.take(s, o, scale);
        E::add(o, s, v_tiles + buffer * tile, 0, scratch, [&](int r, int c) {
            s(r, c) = E::exp2(s(r, c) * scale - softmax.base[r]);
            softmax.sum[r] += s(r, c);
        });
    }

    int64_t first = attention_query(a, at.b, at.query, at.h);
#pragma unroll
    for (int r = 0; r < E::thread_rows; r++) {
        softmax.sum[r] = E::row_sum(softmax.sum[r]);
        if (E::column(0) == 0 && E::row(r) < queries.valid)
            lse[first / a.d + (int64_t)E::row(r) * a.heads] =
                softmax.peak[r] * a.scale + logf(softmax.sum[r]);
    }
    attention_store_rows<E>(y, first, queries, 0, o, [&](int r) {
        return softmax.sum[r] > 0 ? 1.0f / softmax.sum[r] : 0.0f;
    });
}

/* Returns the bytes of dynamic shared memory of a block. */
template <typename E> static constexpr size_t shared_of() {
    return (size_t)(E::ROWS + 2 * E::buffers * E::COLUMNS) * E::D * sizeof(typename E::T) +
           E::scratch_bytes;
}

/* Returns the bytes of all shared memory of a block. */
template <typename E> static constexpr size_t whole_of() {
    return attention_shared<QueryBlock<E>>(shared_of<E>());
}

template <typename E> static void launch(const AttentionShape *a, const ht_call *call) {
    using T = typename E::T;
    const ht_view *in = call->operand, *out = call->result;
    unsigned blocks = (unsigned)(a->batch * a->heads * attention_blocks(a->s, E::ROWS));
    if (blocks > 0)
        ht_launch(attention_device<E>, blocks, E::threads, shared_of<E>(), *a,
                  (const T *)in[0].data, (const T *)in[1].data, (const T *)in[2].data,
                  attention_result(&out[0]), (float *)out[1].data);
}

/* Launches with engine E, or with `Small` if E needs more shared memory than a block can have. */
template <typename E, typename Small>
static void launch_fitting(const AttentionShape *a, const ht_call *call) {
    static_assert(whole_of<Small>() <= attention_least_shared, "it runs on every GPU");
    if ((int64_t)whole_of<E>() <= cuda_shared_bytes()) launch<E>(a, call);
    else launch<Small>(a, call);
}

template <typename E> static void launch_fitting(const AttentionShape *a, const ht_call *call) {
    static_assert(whole_of<E>() <= attention_least_shared, "it runs on every GPU");
    launch<E>(a, call);
}

void ht_attention_kernel(const ht_call *call) {
    static void (*const launches[2][3])(const AttentionShape *, const ht_call *) = {
        {FORWARD_TILES_F32(launch_fitting)},
        {FORWARD_TILES_BF16(launch_fitting)},
    };
    const ht_view *in = call->operand;
    AttentionShape a = attention_shape(&in[0], &in[3], call->attr[0].i != 0);
    if (attention_elsewhere(a, call)) return;
    launches[in[0].dtype == HT_BF16][attention_width(&a)](&a, call);
}
