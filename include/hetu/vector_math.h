/* vector_math.h: attributes that compile a function for several instruction sets, and float
 * versions of math.h functions without calls or branches, which compilers vectorize in loops.
 *
 * Errors are at most 2 units in the last place over the whole range, infinities and NaN included.
 * Sources of the polynomials: Cephes (Moshier), expf.c and tanhf.c.
 */
#ifndef HETU_VECTOR_MATH_H
#define HETU_VECTOR_MATH_H

#include <stdint.h>
#include <string.h>

/* Attributes of a function with hot loops: GCC compiles it for several instruction sets, and the
 * loader chooses the machine's best. GCC clones the bodies of OpenMP regions, too. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define HT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
/* HT_CLONES for functions that are not to be cloned for constant arguments (HT_SHARED_BODY). */
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
    y = x == x ? y : x;
    return x < 0 ? -y : y;
}

#endif
