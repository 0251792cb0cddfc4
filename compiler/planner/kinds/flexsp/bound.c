/* Computes the costs of groups and sequences, and the lower bound of all plans. */
#include "planner/kinds/flexsp/flexsp.h"

#include <math.h>

double flexsp_work(const Flexsp *q, int sequence) {
    double s = (double)q->length[sequence];
    return q->a1 * s * s + q->a2 * s;
}

double flexsp_time(const Flexsp *q, int degree, double work, double tokens) {
    return work / q->degree[degree].size + q->b1 + q->degree[degree].exchange * tokens;
}

FlexspLeast flexsp_least(const Flexsp *q, int sequence) {
    double s = (double)q->length[sequence], work = flexsp_work(q, sequence);
    FlexspLeast least = {INFINITY, INFINITY};
    for (int d = 0; d < q->degree_count; d++) {
        if (s > q->degree[d].tokens) continue;
        double time = flexsp_time(q, d, work, s) - q->b1;
        least.area = fmin(least.area, time * q->degree[d].size);
        least.alone = fmin(least.alone, time);
    }
    return least;
}

double flexsp_tokens(const Flexsp *q) {
    double most = 0;
    for (int d = 0; d < q->degree_count; d++)
        most = fmax(most, q->degree[d].tokens / q->degree[d].size);
    return most * q->gpus;
}

/* Returns the bound. Each micro-batch takes b1 and the time of its sequences. All sequences
 * together take at least their area divided by the devices. Some micro-batch takes at least as long
 * as the longest sequence alone. */
FlexspBound flexsp_bound(const Flexsp *q) {
    FlexspBound bound = {0};
    double tokens = 0;
    for (int i = 0; i < q->length_count; i++) {
        FlexspLeast least = flexsp_least(q, i);
        tokens += (double)q->length[i];
        bound.area += least.area / q->gpus;
        bound.longest = fmax(bound.longest, least.alone);
    }
    bound.batches = (int)ceil(tokens / flexsp_tokens(q) * (1 - 1e-12));
    bound.value = bound.batches * q->b1 + fmax(bound.area, bound.longest);
    return bound;
}
