/* Rotary position embedding. Without operand `position`, positions count in the whole sequence,
 * also where devices have parts of it. */
#include "cpu/cpu.h"
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <math.h>
#include <stdlib.h>

/* Rotates the pairs (x[i], x[i + half]) by the angles whose cosines and sines are given. */
HT_CLONES static void turn_row(float *restrict y, const float *restrict x,
                               const float *restrict cosine, const float *restrict sine,
                               int64_t half) {
    for (int64_t i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        y[i] = a * cosine[i] - b * sine[i];
        y[i + half] = b * cosine[i] + a * sine[i];
    }
}

/* Computes cosines and sines of one position in double, since positions may be large. */
static void fill_angles(float *cosine, float *sine, const double *frequency, int64_t half,
                        double position) {
    for (int64_t i = 0; i < half; i++) {
        cosine[i] = (float)cos(position * frequency[i]);
        sine[i] = (float)sin(position * frequency[i]);
    }
}

/* Rotates all rows. Attributes: base, direction. Operand 1, if present, holds the positions. */
void ht_rope_kernel(const ht_call *call) {
    const ht_view *in = &call->operand[0], *position = &call->operand[1];
    int s = in->rank - 3;
    int64_t length = in->extent[s], heads = in->extent[s + 1], d = in->extent[s + 2], half = d / 2;
    int64_t places = ht_view_count(in, 0, s) * length;
    if (d % 2 != 0) ht_fail("rope needs an even number of columns a head, not %ld", (long)d);
    Rows x = rows_of(in, "rope"), y = rows_of(&call->result[0], "rope");
    cpu_need_integers(position, "rope");
    double *frequency = cpu_alloc((size_t)half * sizeof(double));
    for (int64_t i = 0; i < half; i++)
        frequency[i] = (double)call->attr[1].i * pow(call->attr[0].f, -2.0 * (double)i / (double)d);
#pragma omp parallel if (places * heads * d > CPU_PARALLEL)
    {
        float *cosine = cpu_alloc((size_t)(3 * d) * sizeof(float)), *sine = cosine + half,
              *scratch = cosine + d;
#pragma omp for schedule(static)
        for (int64_t p = 0; p < places; p++) {
            int64_t at = position->data ? cpu_index(position, p) : ht_view_place(in, s, p % length);
            fill_angles(cosine, sine, frequency, half, (double)at);
            for (int64_t r = p * heads; r < (p + 1) * heads; r++) {
                float *to = row_target(&y, r, scratch);
                turn_row(to, row_load(&x, r, scratch + d), cosine, sine, half);
                row_store(&y, r, to);
            }
        }
        free(cosine);
    }
    free(frequency);
}
