/* vector_math.h: attributes that compile a function for several instruction sets, and float
 * versions of math.h functions without calls or branches, which compilers vectorize in loops.
 *
 * Errors are at most 2 units in the last place over the whole range, infinities and NaN included.
 * Sources of the polynomials: Cephes (Moshier), expf.c, tanhf.c and logf.c. Those of erf and expm1
 * are minimax fits of our own.
 */
#ifndef HETU_VECTOR_MATH_H
#define HETU_VECTOR_MATH_H

#include <stdint.h>
#include <string.h>

/* Attributes of a function with hot loops: GCC compiles it for several instruction sets, and the
 * loader chooses the machine's best. GCC clones the bodies of OpenMP regions, too. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define HT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
/* HT_SHARED_BODY (rt.h) with HT_CLONES: not inlined, nor specialized for constant arguments. */
#define HT_SHARED_CLONES static __attribute__((noinline)) HT_CLONES
#else
#define HT_CLONES
#define HT_SHARED_CLONES HT_SHARED_BODY
#endif

static inline float ht_float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t ht_bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

#define HT_INFINITY ht_float_of_bits(0x7f800000u)
#define HT_NAN ht_float_of_bits(0x7fc00000u)

/* Returns e^x: 0 for x below -103.9, infinity for x above 88.72. */
static inline float ht_expf(float x)
{
    const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float shifted = c * 1.44269504088896341f + magic;
    float n = shifted - magic;
    float r = c - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t whole = (int32_t)n, half = whole >> 1;
    float y = p * ht_float_of_bits((uint32_t)(half + 127) << 23) * ht_float_of_bits((uint32_t)(whole - half + 127) << 23);
    return x == x ? y : x;
}

/* Returns an odd function at x, whose value at |x| is y. Returns a NaN or a zero as it is. */
static inline float ht_odd_at(float x, float y)
{
    y = x == x ? y : x;
    return x < 0 ? -y : x == 0 ? x : y;
}

static inline float ht_tanhf(float x)
{
    float a = x < 0 ? -x : x;
    float z = a * a;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = a + a * z * p;
    float far = 1.0f - 2.0f / (ht_expf(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
    float y = a < 0.625f ? near : far;
    return ht_odd_at(x, y);
}

/* Returns the error function: x + x * p(x^2) for small x, else 1 - exp(q(x)); q fits log(erfc). */
static inline float ht_erff(float x)
{
    float a = x < 0 ? -x : x;
    float z = a * a;
    float p = -5.919416007e-4f;
    p = p * z + 4.979129963e-3f;
    p = p * z - 2.675703470e-2f;
    p = p * z + 1.128155248e-1f;
    p = p * z - 3.761246864e-1f;
    p = p * z + 1.283791458e-1f;
    float near = a + a * p;
    float t = a > 4.0f ? 4.0f : a;
    float q = -2.136270550e-5f;
    q = q * t + 4.375512994e-4f;
    q = q * t - 4.186004007e-3f;
    q = q * t + 2.515871701e-2f;
    q = q * t - 1.083407799e-1f;
    q = q * t - 6.332918032e-1f;
    q = q * t - 1.129542178f;
    q = q * t + 1.803495922e-4f;
    float far = 1.0f - ht_expf(q);
    float y = a < 0.9375f ? near : far;
    return ht_odd_at(x, y);
}

/* Returns log(1 + f) + n * log(2), with f in [sqrt(1/2) - 1, sqrt(2) - 1]. */
static inline float ht_log_of_parts(float f, float n)
{
    float z = f * f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float y = f * z * p - n * 2.12194440e-4f - 0.5f * z;
    return f + y + n * 0.693359375f;
}

/* Returns the exponent n for which x is 2^n * m, with m in [sqrt(1/2), sqrt(2)]. */
static inline int32_t ht_exponent_near(float x)
{
    return (int32_t)(ht_bits_of_float(x) - 0x3f3504f3u) >> 23;
}

static inline float ht_logf(float x)
{
    int small = x < 1.17549435e-38f; // subnormal, 0 or negative
    float c = small ? x * 8388608.0f : x;
    int32_t n = ht_exponent_near(c);
    float m = ht_float_of_bits(ht_bits_of_float(c) - ((uint32_t)n << 23));
    float y = ht_log_of_parts(m - 1.0f, (float)(small ? n - 23 : n));
    y = x <= 3.40282347e38f ? y : x;
    y = x == 0 ? -HT_INFINITY : y;
    return x < 0 ? HT_NAN : y;
}

/* Returns log(1 + x). The rounding error of 1 + x goes into the fraction. */
static inline float ht_log1pf(float x)
{
    float u = 1.0f + x;
    int32_t n = ht_exponent_near(u);
    float scale = ht_float_of_bits((uint32_t)(n < 126 ? 127 - n : 1) << 23);
    float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
    float m = ht_float_of_bits(ht_bits_of_float(u) - ((uint32_t)n << 23));
    float f = n == 0 ? x : (m - 1.0f) + lost * scale;
    float y = ht_log_of_parts(f, (float)n);
    y = x <= 3.40282347e38f ? y : x;
    y = x == 0 ? x : y;
    y = x == -1.0f ? -HT_INFINITY : y;
    return x < -1.0f ? HT_NAN : y;
}

/* Returns e^x - 1: 2^n * expm1(r) + (2^n - 1), with n = 0 for |x| below 0.5. */
static inline float ht_expm1f(float x)
{
    const float magic = 12582912.0f;
    float c = x < -20.0f ? -20.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float n = (c * 1.44269504088896341f + magic) - magic;
    n = c * c < 0.25f ? 0.0f : n;
    float r = c - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    float p = 1.984980700e-4f;
    p = p * r + 1.399617716e-3f;
    p = p * r + 8.333579050e-3f;
    p = p * r + 4.166535857e-2f;
    p = p * r + 1.666666399e-1f;
    p = p * r + 5.000000385e-1f;
    p = p * r * r + r;
    float half = ht_float_of_bits((uint32_t)((int32_t)n + 126) << 23);
    float y = 2.0f * (p * half + (half - 0.5f));
    y = n == 0 ? p : y;
    y = x == 0 ? x : y;
    return x == x ? y : x;
}

#endif
