/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
 * CPU code and CUDA kernels share it, so they draw the same numbers. `element` counts in the whole
 * tensor, so no layout changes a number (random.h, cpu/dropout.c). */
#pragma once

#include <hetu/rt.h>

#include <stdint.h>

/* Four 32-bit numbers, made from a 128-bit counter (element, stream) and a 64-bit key. */
typedef struct RandomBlock {
    uint32_t at[4];
} RandomBlock;

HT_INLINE void philox_round(RandomBlock *c, uint32_t k0, uint32_t k1) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c->at[0], p1 = (uint64_t)0xCD9E8D57u * c->at[2];
    c->at[0] = (uint32_t)(p1 >> 32) ^ c->at[1] ^ k0;
    c->at[1] = (uint32_t)p1;
    c->at[2] = (uint32_t)(p0 >> 32) ^ c->at[3] ^ k1;
    c->at[3] = (uint32_t)p0;
}

HT_INLINE RandomBlock random_block(uint64_t seed, uint64_t stream, uint64_t element) {
    RandomBlock c = {
        {(uint32_t)element, (uint32_t)(element >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        philox_round(&c, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* Mixes the bits of a number (the finaliser of SplitMix64). */
HT_INLINE uint64_t random_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Mixes the numbers of a stream and of a step into one, the `stream` of random_block. */
HT_INLINE uint64_t random_stream_of_step(int64_t stream, int64_t step) {
    return random_mix((uint64_t)step + random_mix((uint64_t)stream + 0x9e3779b97f4a7c15u));
}

/* Dropout: elements whose random bits are below `below` become 0; the rest is scaled by `scale`. */
typedef struct RandomDrop {
    uint32_t below;
    float scale;
} RandomDrop;

static inline RandomDrop random_drop(double p) {
    RandomDrop all = {UINT32_MAX, 0.0f},
               some = {(uint32_t)(p * 4294967296.0), (float)(1 / (1 - p))};
    return p >= 1 ? all : some;
}
