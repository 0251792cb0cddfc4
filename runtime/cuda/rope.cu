/* Rotary position embedding. */
#include "operators/kernels.h"
#include "cuda/views.h"

#include <math.h>
#include <vector>

enum {
    ROPE_THREADS = 256,
    ROPE_HEADS = 8 // heads for which a thread reuses the angles that it has computed
};

typedef struct Rope {
    /* places: positions in all batches; length: positions in a sequence; half: pairs of a head. */
    int64_t places, length, heads, half;
    const double *frequency; // by pair: the angle at position 1
    Indices position;        // data NULL: the position is the index along the sequence
    Places sequence;
} Rope;

/* Rotates V neighbouring pairs (x[i], x[i + half]) of up to ROPE_HEADS heads at one position.
 * Angles are computed in double, since positions may be large. */
template <typename T, int V>
__global__ void __launch_bounds__(ROPE_THREADS) rope_device(T *y, const T *x, Rope rope) {
    const int64_t vectors = rope.half / V, place = ht_thread() / vectors,
                  i = ht_thread() % vectors * V;
    if (place >= rope.places) return;
    const double position = (double)(rope.position.data ? rope.position.at(place)
                                                        : rope.sequence.at(place % rope.length));
    float cosine[V], sine[V], a[V], b[V], turned_a[V], turned_b[V];
    CUDA_UNROLL
    for (int e = 0; e < V; e++) {
        cosine[e] = (float)cos(position * rope.frequency[i + e]);
        sine[e] = (float)sin(position * rope.frequency[i + e]);
    }
    const int64_t first = (int64_t)blockIdx.y * ROPE_HEADS,
                  end = first + ROPE_HEADS < rope.heads ? first + ROPE_HEADS : rope.heads;
    for (int64_t h = first; h < end; h++) {
        const int64_t at = (place * rope.heads + h) * 2 * rope.half + i;
        ht_load(a, x + at);
        ht_load(b, x + at + rope.half);
        CUDA_UNROLL
        for (int e = 0; e < V; e++) {
            turned_a[e] = a[e] * cosine[e] - b[e] * sine[e];
            turned_b[e] = b[e] * cosine[e] + a[e] * sine[e];
        }
        ht_store(y + at, turned_a);
        ht_store(y + at + rope.half, turned_b);
    }
}

/* Returns the angle of each pair for position 1, in device memory. Attributes: base, direction. */
static const double *frequencies(const ht_call *call, int64_t half) {
    std::vector<double> frequency((size_t)half);
    for (int64_t i = 0; i < half; i++)
        frequency[(size_t)i] =
            (double)call->attr[1].i * pow(call->attr[0].f, -2.0 * (double)i / (double)(2 * half));
    return static_cast<const double *>(
        cuda_constant(frequency.data(), half * (int64_t)sizeof(double)));
}

template <typename T, int V> static void run(const ht_view *y, const ht_view *x, const Rope &rope) {
    const dim3 grid((unsigned)((rope.places * (rope.half / V) + ROPE_THREADS - 1) / ROPE_THREADS),
                    (unsigned)((rope.heads + ROPE_HEADS - 1) / ROPE_HEADS));
    ht_launch(rope_device<T, V>, grid, ROPE_THREADS, 0, static_cast<T *>(y->data),
              static_cast<const T *>(x->data), rope);
}

/* Rotates all rows. Operand 1, if present, has the position of each index along s. */
void ht_rope_kernel(const ht_call *call) {
    const ht_view *y = &call->result[0], *x = &call->operand[0];
    const int s = x->rank - 3;
    const int64_t d = x->extent[s + 2];
    if (d % 2 != 0) ht_fail("rope needs an even number of columns a head, not %ld", (long)d);
    if (view_size(x) == 0) return;
    const Rope rope = {ht_view_count(x, 0, s + 1),
                       x->extent[s],
                       x->extent[s + 1],
                       d / 2,
                       frequencies(call, d / 2),
                       indices_of(&call->operand[1], "rope"),
                       places_of(x, s)};
    with_float("rope", {y, x}, [&]<typename T>() {
        if (rope.half % VECTOR_OF<T> == 0 && aligned_to(16, {y->data, x->data}))
            run<T, VECTOR_OF<T>>(y, x, rope);
        else run<T, 1>(y, x, rope);
    });
}
