/* cuda_bf16.h: bfloat16, the upper half of a float, rounded to nearest even; for emulation. */
#ifndef HETU_EMULATE_CUDA_BF16_H
#define HETU_EMULATE_CUDA_BF16_H

#include "device_language.h"

struct alignas(2) __nv_bfloat16 {
    unsigned short bits;

    __nv_bfloat16() = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>> __nv_bfloat16(T value) : bits(rounded((float)value)) {}
    operator float() const { return __uint_as_float((unsigned)bits << 16); }

  private:
    static unsigned short rounded(float value)
    {
        unsigned u = __float_as_uint(value);
        return value != value ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
static inline float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
static inline __nv_bfloat162 __float2bfloat162_rn(float x) { return {__nv_bfloat16(x), __nv_bfloat16(x)}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
static inline float __low2float(__nv_bfloat162 v) { return (float)v.x; }
static inline float __high2float(__nv_bfloat162 v) { return (float)v.y; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 x;
    x.bits = bits;
    return x;
}

#endif
