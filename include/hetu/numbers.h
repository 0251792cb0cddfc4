/* numbers.h: arithmetic that emitted code, kernels and the runtime share: maxima, minima and bf16.
 *
 *     ht_bf16_store(1.0f) == 0x3f80       ht_bf16_load(0x3f80) == 1.0f
 *     ht_fmaxf(1, NAN) is NaN             fmaxf(1, NAN) is 1
 */
#ifndef HETU_NUMBERS_H
#define HETU_NUMBERS_H

#include <math.h>
#include <stdint.h>

/* Declares a small function that host code and CUDA kernels call. */
#ifdef __CUDACC__
#define HT_INLINE static __host__ __device__ inline
#else
#define HT_INLINE static inline
#endif

/* Return the larger or the smaller argument, as max and min in rules do; NaN where an argument is
 * NaN (unlike fmaxf). */
HT_INLINE float ht_fmaxf(float a, float b) { return b <= a || a != a ? a : b; }

HT_INLINE float ht_fminf(float a, float b) { return b >= a || a != a ? a : b; }

HT_INLINE double ht_fmax(double a, double b) { return b <= a || a != a ? a : b; }

HT_INLINE double ht_fmin(double a, double b) { return b >= a || a != a ? a : b; }

/* Convert bf16, the upper half of an f32, to f32 and back (to the nearest, ties to even). */
HT_INLINE float ht_bf16_load(uint16_t bits)
{
    union {
        uint32_t i;
        float f;
    } u = {(uint32_t)bits << 16};
    return u.f;
}

HT_INLINE uint16_t ht_bf16_store(float value)
{
#ifdef __CUDA_ARCH__
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    union {
        float f;
        uint32_t i;
    } u = {value};
    if ((u.i & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u.i >> 16 | 0x40u);
    return (uint16_t)((u.i + 0x7fffu + (u.i >> 16 & 1u)) >> 16);
#endif
}

#endif
