/* strict_math.h: arithmetic as it is written, whatever the options of the compiler are.
 *
 *     y[i] += a * x[i];    gcc -O3 -march=native    vfmadd231ps: rounded once
 *                          and this header          vmulps, vaddps: rounded twice
 *
 * x * y + z rounds twice, also where the processor has an instruction that rounds once; gcc and
 * clang contract such expressions unless they are told not to. Options that let the compiler
 * reorder sums or assume that there are no infinities are an error. Files of kernels that hetucc
 * emits include this first: a program's losses do not depend on how its kernels are compiled.
 */
#ifndef HETU_STRICT_MATH_H
#define HETU_STRICT_MATH_H

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) \
    || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "emitted kernels give other results under -ffast-math or -Ofast: compile them without"
#endif

/* For the rest of the file: clang has the pragma of C, gcc reads an option. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#endif
