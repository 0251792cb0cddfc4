/* Random numbers from Philox4x32-10, and initial values of parameters (ht_init_box). */
#include "base/random.h"
#include "base/hash.h"

#include <math.h>
#include <string.h>

uint64_t random_stream_of_name(const char *name) { return hash_text(HASH_START, name); }

uint32_t random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
    return random_block(seed, stream, index / 4).at[index % 4];
}

void random_bits_fill(uint32_t *to, uint64_t seed, uint64_t stream, uint64_t first, int64_t count) {
    int64_t i = 0;
    for (; i < count && (first + (uint64_t)i) % 4 != 0; i++)
        to[i] = random_bits(seed, stream, first + (uint64_t)i);
    for (; i + 4 <= count; i += 4) {
        RandomBlock block = random_block(seed, stream, (first + (uint64_t)i) / 4);
        memcpy(to + i, block.at, sizeof block.at);
    }
    for (; i < count; i++) to[i] = random_bits(seed, stream, first + (uint64_t)i);
}

/* Returns a number in [0, 1) with 24 random bits. */
static float uniform_of_bits(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }

/* Sets to[0] and to[1] to normal numbers, from two times 32 random bits (Box and Muller). */
static void normal_pair(uint32_t first, uint32_t second, float *to) {
    float u = (float)(((double)first + 0.5) * 0x1p-32);
    float radius = sqrtf(-2.0f * logf(u)), angle = 6.28318530718f * uniform_of_bits(second);
    to[0] = radius * cosf(angle);
    to[1] = radius * sinf(angle);
}

/* Computes the initial values of the four elements that share a block. */
static void init_block(float *to, const ht_init *init, RandomBlock block) {
    if (init->kind == HT_INIT_NORMAL) {
        normal_pair(block.at[0], block.at[1], to);
        normal_pair(block.at[2], block.at[3], to + 2);
        for (int j = 0; j < 4; j++) to[j] *= (float)init->a;
        return;
    }
    for (int j = 0; j < 4; j++)
        to[j] = (float)init->a * (2.0f * uniform_of_bits(block.at[j]) - 1.0f);
}

/* The random stream of one parameter. */
typedef struct ParamStream {
    uint64_t seed, stream;
} ParamStream;

/* Fills `to` with the initial values of `count` elements from element `first` of the tensor on. */
static void init_run(float *to, const ht_init *init, ParamStream of, uint64_t first,
                     int64_t count) {
    float value[4];
    uint64_t have = UINT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        uint64_t element = first + (uint64_t)i;
        if (element / 4 != have) {
            have = element / 4;
            init_block(value, init, random_block(of.seed, of.stream, have));
        }
        to[i] = value[element % 4];
    }
}

/* Returns the index in the whole tensor at which row `row` of a box (last dimension) begins. */
static uint64_t row_start(int64_t row, const TensorBox *box) {
    int rank = box->rank;
    const int64_t *global = box->global, *lo = box->lo, *hi = box->hi;
    uint64_t start = rank > 0 ? (uint64_t)lo[rank - 1] : 0,
             pitch = rank > 0 ? (uint64_t)global[rank - 1] : 1;
    for (int d = rank - 2; d >= 0; d--) {
        start += pitch * (uint64_t)(lo[d] + row % (hi[d] - lo[d]));
        row /= hi[d] - lo[d];
        pitch *= (uint64_t)global[d];
    }
    return start;
}

void ht_init_box(float *to, const ht_init *init, uint64_t seed, const char *name,
                 const TensorBox *box) {
    int last = box->rank - 1;
    int64_t rows = 1, width = last >= 0 ? box->hi[last] - box->lo[last] : 1;
    for (int d = 0; d < last; d++) rows *= box->hi[d] - box->lo[d];
    ParamStream stream = {seed, random_stream_of_name(name)};
    bool drawn = init->kind == HT_INIT_NORMAL || init->kind == HT_INIT_UNIFORM;
    float fill = init->kind == HT_INIT_CONSTANT ? (float)init->a : 0.0f;
#pragma omp parallel for schedule(static) if (rows * width > 4096)
    for (int64_t row = 0; row < rows; row++) {
        if (drawn) init_run(to + row * width, init, stream, row_start(row, box), width);
        for (int64_t i = 0; !drawn && i < width; i++) to[row * width + i] = fill;
    }
}
