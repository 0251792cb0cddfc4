/* The sum of the squares of all elements: what the norm of all gradients is made of. */
#include "cpu/cpu.h"

#include <hetu/rt.h>

enum { SQUARES_CHUNK = 16384, SQUARES_PARTS = 64 };

HT_CLONES static double squares_of(const float *g, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) sum += g[i] * g[i];
    return sum;
}

/* Operands: g, and perhaps a number that is added. In parts of fixed borders, so that the sum does
 * not depend on the threads. */
void ht_square_sum_kernel(const ht_call *call) {
    const float *g = cpu_f32(&call->operand[0], "square_sum"),
                *more = cpu_f32(&call->operand[1], "square_sum");
    int64_t count = cpu_count(&call->operand[0]),
            parts = (count + SQUARES_CHUNK - 1) / SQUARES_CHUNK;
    double part[SQUARES_PARTS], sum = more ? *more : 0;
    parts = parts > SQUARES_PARTS ? SQUARES_PARTS : parts;
#pragma omp parallel for schedule(static) if (parts > 1)
    for (int64_t c = 0; c < parts; c++)
        part[c] = squares_of(g + count * c / parts, count * (c + 1) / parts - count * c / parts);
    for (int64_t c = 0; c < parts; c++) sum += part[c];
    *(float *)call->result[0].data = (float)sum;
}
