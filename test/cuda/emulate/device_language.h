/* device_language.h: the words of CUDA C++ inside kernels, for a compiler that knows C++ alone.
 *
 * A thread of a block is a fiber. It runs until it waits for others (a barrier, a shuffle, a matrix product); a thread that never waits
 * costs a call. Everything that threads do together is one mechanism, ht_emulated_together: the last lane to arrive works for all.
 */
#ifndef HETU_EMULATE_DEVICE_LANGUAGE_H
#define HETU_EMULATE_DEVICE_LANGUAGE_H

#include <assert.h>
#include <math.h>
#include <source_location>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
/* A declaration in front of which its function says that a block uses what it keeps in shared memory. */
#define __shared__ HT_EMULATED_SHARED(__COUNTER__)
#define HT_EMULATED_SHARED(number) HT_EMULATED_SHARED_NUMBERED(number)
#define HT_EMULATED_SHARED_NUMBERED(number)                                                                                                \
    static ht_emulated_shared_use ht_emulated_use_##number;                                                                                \
    ht_emulated_use_shared(&ht_emulated_use_##number);                                                                                     \
    static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__

/* ---- shared memory with a size known at compile time ---- */

/* A place where a function begins to keep such memory, and the last launch that has counted it. */
struct ht_emulated_shared_use {
    uint64_t launch;
};

extern uint64_t ht_emulated_launches; // grids that have begun

/* Adds the bytes that the use's function keeps to those of the block at work; ends the program where a GPU would refuse the launch. */
void ht_emulated_add_shared(ht_emulated_shared_use *use);

static inline void ht_emulated_use_shared(ht_emulated_shared_use *use)
{
    if (use->launch != ht_emulated_launches)
        ht_emulated_add_shared(use);
}

/* ---- vectors ---- */

#define HT_EMULATED_VECTORS(type, name, aligned2, aligned4)                                                                                \
    struct name##1 { type x; };                                                                                                            \
    struct alignas(aligned2) name##2 { type x, y; };                                                                                       \
    struct name##3 { type x, y, z; };                                                                                                      \
    struct alignas(aligned4) name##4 { type x, y, z, w; };                                                                                 \
    static inline name##1 make_##name##1(type x) { return {x}; }                                                                           \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                                                \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                                     \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

HT_EMULATED_VECTORS(signed char, char, 2, 4)
HT_EMULATED_VECTORS(unsigned char, uchar, 2, 4)
HT_EMULATED_VECTORS(short, short, 4, 8)
HT_EMULATED_VECTORS(unsigned short, ushort, 4, 8)
HT_EMULATED_VECTORS(int, int, 8, 16)
HT_EMULATED_VECTORS(unsigned, uint, 8, 16)
HT_EMULATED_VECTORS(float, float, 8, 16)
HT_EMULATED_VECTORS(double, double, 16, 16)
HT_EMULATED_VECTORS(long long, longlong, 16, 16)
HT_EMULATED_VECTORS(unsigned long long, ulonglong, 16, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1) : x(width), y(height), z(depth) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

/* ---- the place of a thread ---- */

extern uint3 ht_emulated_thread, ht_emulated_block;
extern dim3 ht_emulated_block_extent, ht_emulated_grid_extent;
#define threadIdx ht_emulated_thread
#define blockIdx ht_emulated_block
#define blockDim ht_emulated_block_extent
#define gridDim ht_emulated_grid_extent
static const int warpSize = 32;

/* The dynamic shared memory of the block that runs. */
void *ht_emulated_shared(void);

/* ---- waiting ---- */

using ht_emulated_place = std::source_location;

/* What a warp does together. `argument` has one entry a lane, NULL for those outside `mask`. */
typedef void ht_emulated_operation(void *const argument[32], unsigned mask);

/* Waits until all lanes of `mask` are here with the same operation; the last one runs it, then all go on. */
void ht_emulated_together(ht_emulated_operation *operation, const char *name, unsigned mask, void *argument, ht_emulated_place where);

/* Waits for all threads of the block. Adds up `predicate` over them. */
int ht_emulated_barrier(int predicate, ht_emulated_place where);

/* This thread's number in its warp. */
unsigned ht_emulated_lane(void);

static inline void __syncthreads(ht_emulated_place where = ht_emulated_place::current()) { ht_emulated_barrier(0, where); }

static inline int __syncthreads_count(int predicate, ht_emulated_place where = ht_emulated_place::current())
{
    return ht_emulated_barrier(predicate != 0, where);
}

static inline int __syncthreads_or(int predicate, ht_emulated_place where = ht_emulated_place::current())
{
    return ht_emulated_barrier(predicate != 0, where) != 0;
}

static inline int __syncthreads_and(int predicate, ht_emulated_place where = ht_emulated_place::current())
{
    return ht_emulated_barrier(predicate == 0, where) == 0;
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, ht_emulated_place where = ht_emulated_place::current())
{
    ht_emulated_together([](void *const *, unsigned) {}, "__syncwarp", mask, nullptr, where);
}

static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}
static inline void __threadfence_system(void) {}
static inline void __nanosleep(unsigned) {}
[[noreturn]] static inline void __trap(void) { abort(); }

/* ---- shuffles and votes ---- */

template <typename T> struct ht_emulated_shuffle {
    T value;
    int source; // the lane to read; outside 0 to 31 its own
    T result;
};

template <typename T> static inline T ht_emulated_read(unsigned mask, T value, int source, ht_emulated_place where)
{
    ht_emulated_shuffle<T> mine = {value, source, value};
    auto exchange = [](void *const argument[32], unsigned lanes) {
        for (unsigned lane = 0; lane < 32; lane++) {
            auto *to = (ht_emulated_shuffle<T> *)argument[lane];
            if (to && (lanes >> (to->source & 31) & 1) && argument[to->source & 31])
                to->result = ((const ht_emulated_shuffle<T> *)argument[to->source & 31])->value;
        }
    };
    ht_emulated_together(exchange, "a shuffle", mask, &mine, where);
    return mine.result;
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, ht_emulated_place where = ht_emulated_place::current())
{
    int lane = (int)ht_emulated_lane();
    return ht_emulated_read(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), where);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32,
                                ht_emulated_place where = ht_emulated_place::current())
{
    int lane = (int)ht_emulated_lane(), source = lane ^ distance;
    return ht_emulated_read(mask, value, source < (lane & ~(width - 1)) + width ? source : lane, where);
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                               ht_emulated_place where = ht_emulated_place::current())
{
    int lane = (int)ht_emulated_lane(), source = lane - (int)distance;
    return ht_emulated_read(mask, value, source >= (lane & ~(width - 1)) ? source : lane, where);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                                 ht_emulated_place where = ht_emulated_place::current())
{
    int lane = (int)ht_emulated_lane(), source = lane + (int)distance;
    return ht_emulated_read(mask, value, source < (lane & ~(width - 1)) + width ? source : lane, where);
}

/* Folds all lanes' values into one that all get. */
template <typename T, typename Fold>
static inline T ht_emulated_fold(unsigned mask, T value, Fold, const char *name, ht_emulated_place where)
{
    auto work = [](void *const argument[32], unsigned) {
        T all{};
        bool any = false;
        for (int lane = 0; lane < 32; lane++)
            if (argument[lane]) {
                all = any ? Fold{}(all, *(T *)argument[lane]) : *(T *)argument[lane];
                any = true;
            }
        for (int lane = 0; lane < 32; lane++)
            if (argument[lane])
                *(T *)argument[lane] = all;
    };
    ht_emulated_together(work, name, mask, &value, where);
    return value;
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, ht_emulated_place where = ht_emulated_place::current())
{
    unsigned mine = predicate ? 1u << ht_emulated_lane() : 0;
    return ht_emulated_fold(
        mask, mine, [](unsigned a, unsigned b) { return a | b; }, "__ballot_sync", where);
}

static inline int __any_sync(unsigned mask, int predicate, ht_emulated_place where = ht_emulated_place::current())
{
    return __ballot_sync(mask, predicate, where) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, ht_emulated_place where = ht_emulated_place::current())
{
    return __ballot_sync(mask, !predicate, where) == 0;
}

#define HT_EMULATED_REDUCE(name, type, expression)                                                                                         \
    static inline type name(unsigned mask, type value, ht_emulated_place where = ht_emulated_place::current())                             \
    {                                                                                                                                      \
        return ht_emulated_fold(                                                                                                           \
            mask, value, [](type a, type b) -> type { return expression; }, #name, where);                                                 \
    }
HT_EMULATED_REDUCE(__reduce_add_sync, unsigned, a + b)
HT_EMULATED_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
HT_EMULATED_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
HT_EMULATED_REDUCE(__reduce_and_sync, unsigned, a &b)
HT_EMULATED_REDUCE(__reduce_or_sync, unsigned, a | b)
HT_EMULATED_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
HT_EMULATED_REDUCE(__reduce_add_sync, int, (int)((unsigned)a + (unsigned)b))
HT_EMULATED_REDUCE(__reduce_min_sync, int, a < b ? a : b)
HT_EMULATED_REDUCE(__reduce_max_sync, int, a > b ? a : b)

/* ---- atomics: one thread runs at a time ---- */

template <typename T, typename U> static inline T ht_emulated_exchange(T *at, U value)
{
    T old = *at;
    *at = (T)value;
    return old;
}

template <typename T> static inline T atomicAdd(T *at, std::type_identity_t<T> v) { return ht_emulated_exchange(at, *at + v); }
template <typename T> static inline T atomicSub(T *at, std::type_identity_t<T> v) { return ht_emulated_exchange(at, *at - v); }
template <typename T> static inline T atomicExch(T *at, std::type_identity_t<T> v) { return ht_emulated_exchange(at, v); }
template <typename T> static inline T atomicMax(T *at, std::type_identity_t<T> v) { return ht_emulated_exchange(at, *at > v ? *at : v); }
template <typename T> static inline T atomicMin(T *at, std::type_identity_t<T> v) { return ht_emulated_exchange(at, *at < v ? *at : v); }
template <typename T> static inline T atomicOr(T *at, std::type_identity_t<T> v) { return ht_emulated_exchange(at, *at | v); }
template <typename T> static inline T atomicAnd(T *at, std::type_identity_t<T> v) { return ht_emulated_exchange(at, *at & v); }

static inline unsigned atomicInc(unsigned *at, unsigned last) { return ht_emulated_exchange(at, *at >= last ? 0 : *at + 1); }

template <typename T> static inline T atomicCAS(T *at, std::type_identity_t<T> expected, std::type_identity_t<T> value)
{
    return ht_emulated_exchange(at, *at == expected ? value : *at);
}

/* ---- loads and stores with hints ---- */

template <typename T> static inline T __ldg(const T *at) { return *at; }
template <typename T> static inline T __ldcs(const T *at) { return *at; }
template <typename T> static inline T __ldcg(const T *at) { return *at; }
template <typename T> static inline T __ldca(const T *at) { return *at; }
template <typename T> static inline void __stcs(T *at, std::type_identity_t<T> value) { *at = value; }
template <typename T> static inline void __stcg(T *at, std::type_identity_t<T> value) { *at = value; }

/* ---- arithmetic ---- */

/* As macros: the C library keeps these names for itself. */
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __saturatef(float x) { return x >= 0 ? x <= 1 ? x : 1.0f : 0.0f; }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
static inline float fdividef(float x, float y) { return x / y; }

static inline int min(int x, int y) { return x < y ? x : y; }
static inline int max(int x, int y) { return x > y ? x : y; }
static inline unsigned min(unsigned x, unsigned y) { return x < y ? x : y; }
static inline unsigned max(unsigned x, unsigned y) { return x > y ? x : y; }
static inline long min(long x, long y) { return x < y ? x : y; }
static inline long max(long x, long y) { return x > y ? x : y; }
static inline unsigned long min(unsigned long x, unsigned long y) { return x < y ? x : y; }
static inline unsigned long max(unsigned long x, unsigned long y) { return x > y ? x : y; }
static inline long long min(long long x, long long y) { return x < y ? x : y; }
static inline long long max(long long x, long long y) { return x > y ? x : y; }
static inline float min(float x, float y) { return fminf(x, y); }
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }

template <typename To, typename From> static inline To ht_emulated_bits(From value)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline int __float_as_int(float x) { return ht_emulated_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return ht_emulated_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return ht_emulated_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return ht_emulated_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return ht_emulated_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return ht_emulated_bits<double>(x); }
static inline int __float2int_rn(float x) { return (int)rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
__extension__ typedef unsigned __int128 ht_emulated_wide;
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((ht_emulated_wide)x * y >> 64);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int i = 0; i < 32; i++)
        y |= (x >> i & 1) << (31 - i);
    return y;
}

#endif
