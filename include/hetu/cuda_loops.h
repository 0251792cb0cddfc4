/* cuda_loops.h: vectorized loads and stores for the kernels that hetucc generates from rules;
 * cuda_sums.h has their sums over threads. C++ only.
 *
 *     float x_v[4];
 *     ht_load(x_v, x + i0);               // x + i0 is a multiple of 16 bytes
 */
#ifndef HETU_CUDA_LOOPS_H
#define HETU_CUDA_LOOPS_H

#include <hetu/cuda_sums.h>
#include <hetu/rt.h>

#include <stdlib.h>
#include <string.h>

/* ---- neighbours ---- */

/* N elements, read by vector loads of at most 16 bytes. */
template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) ht_lanes {
    T at[N];
};

template <typename T, int N> static __device__ inline void ht_load(T (&to)[N], const T *from)
{
    const ht_lanes<T, N> lanes = *reinterpret_cast<const ht_lanes<T, N> *>(from);
    for (int e = 0; e < N; e++)
        to[e] = lanes.at[e];
}

/* Reads N elements of bf16 and converts them to f32, the type that kernels compute in. */
template <int N> static __device__ inline void ht_load(float (&to)[N], const uint16_t *from)
{
    const ht_lanes<uint16_t, N> lanes = *reinterpret_cast<const ht_lanes<uint16_t, N> *>(from);
    for (int e = 0; e < N; e++)
        to[e] = ht_bf16_load(lanes.at[e]);
}

/* An unsigned integer type for vector stores of BYTES bytes; 16 bytes for larger vectors. */
template <int BYTES> struct ht_unit_of {
    typedef uint4 type;
};
template <> struct ht_unit_of<8> {
    typedef uint2 type;
};
template <> struct ht_unit_of<4> {
    typedef unsigned type;
};
template <> struct ht_unit_of<2> {
    typedef unsigned short type;
};

/* Writes a unit of 2 to 16 bytes by one store instruction; nvcc may split an assignment of a CUDA
 * vector type into one store for each element. */
#ifdef HT_EMULATED
template <typename Unit> static inline void ht_store_unit(Unit *to, Unit unit)
{
    if (reinterpret_cast<uintptr_t>(to) % sizeof unit)
        abort();
    memcpy(to, &unit, sizeof unit);
}
#else
template <typename Unit> static __device__ inline void ht_store_unit(Unit *to, Unit unit) { *to = unit; }

static __device__ inline void ht_store_unit(uint4 *to, uint4 unit)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(unit.x), "r"(unit.y), "r"(unit.z), "r"(unit.w) : "memory");
}

static __device__ inline void ht_store_unit(uint2 *to, uint2 unit)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(unit.x), "r"(unit.y) : "memory");
}
#endif

/* Writes N elements by vector stores of at most 16 bytes; `to` must be in global memory. */
template <typename T, int N> static __device__ inline void ht_store(T *to, const T (&from)[N])
{
    typedef typename ht_unit_of<N *(int)sizeof(T)>::type Unit;
    constexpr int UNITS = N * (int)sizeof(T) / (int)sizeof(Unit);
    Unit unit[UNITS];
    memcpy(unit, from, sizeof from);
    for (int u = 0; u < UNITS; u++)
        ht_store_unit(reinterpret_cast<Unit *>(to) + u, unit[u]);
}

/* Rounds two floats to bf16 and packs them: `low` in the lower half, first in memory. */
static __device__ inline uint32_t ht_bf16_pair(float low, float high)
{
#ifdef __CUDA_ARCH__
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return (uint32_t)ht_bf16_store(low) | (uint32_t)ht_bf16_store(high) << 16;
#endif
}

template <int N> static __device__ inline void ht_store(uint16_t *to, const float (&from)[N])
{
    if constexpr (N % 2) {
        uint16_t half[N];
        for (int e = 0; e < N; e++)
            half[e] = ht_bf16_store(from[e]);
        ht_store(to, half);
    } else {
        uint32_t pair[N / 2];
        for (int e = 0; e < N; e += 2)
            pair[e / 2] = ht_bf16_pair(from[e], from[e + 1]);
        ht_store(reinterpret_cast<uint32_t *>(to), pair);
    }
}

/* ---- functions whose results are rounded to bf16 ---- */

/* Return approximations of tanhf and expf with fewer instructions: the relative error is at most
 * 2^-13, and subnormal numbers become 0. */
#ifdef __CUDA_ARCH__
static __device__ inline float ht_half_exp2f(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ inline float ht_half_expf(float x) { return ht_half_exp2f(x * 1.442695041f); }

/* Computes tanh(x) as 1 - 2 / (e^2x + 1); near 0, where the difference cancels, returns x. */
static __device__ inline float ht_half_tanhf(float x)
{
    const float sum = ht_half_exp2f(x * 2.885390082f) + 1;
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(sum));
    const float y = 1 - 2 * inverse;
    return fabsf(x) < 0x1p-9f ? x : y;
}
#else
static __device__ inline float ht_half_expf(float x) { return expf(x); }
static __device__ inline float ht_half_tanhf(float x) { return tanhf(x); }
#endif

#endif
