/* Cuts a batch of sequences into micro-batches by a dynamic program (FlexSP's blaster). */
#include "planner/kinds/flexsp/anneal_groups.h"

#include <math.h>

/* Prefix sums over the order: tokens[x] and area[x] are the tokens and least device-milliseconds of
 * the first x sequences. alone[x] is the least ms of the sequence at x. */
typedef struct Sums {
    double *tokens, *area, *alone;
} Sums;

static Sums sums_make(Arena *arena, const Flexsp *q, const int *order) {
    int n = q->length_count;
    Sums sums = {arena_array(arena, double, n + 1), arena_array(arena, double, n + 1),
                 arena_array(arena, double, n)};
    for (int x = 0; x < n; x++) {
        FlexspLeast least = flexsp_least(q, order[x]);
        sums.tokens[x + 1] = sums.tokens[x] + (double)q->length[order[x]];
        sums.area[x + 1] = sums.area[x] + least.area;
        sums.alone[x] = least.alone;
    }
    return sums;
}

/* Returns the estimated ms of micro-batch [from, to) of the order; INFINITY above `most` tokens. */
static double piece_time(const Flexsp *q, const Sums *sums, int from, int to, double most) {
    if (sums->tokens[to] - sums->tokens[from] > most) return INFINITY;
    return from == to
               ? 0
               : q->b1 + fmax((sums->area[to] - sums->area[from]) / q->gpus, sums->alone[from]);
}

/* Cuts the order into batches of about equal tokens. */
static void cut_evenly(const Sums *sums, int n, int batches, int *cut) {
    for (int k = 1; k < batches; k++)
        for (cut[k] = cut[k - 1];
             cut[k] < n && sums->tokens[cut[k]] < sums->tokens[n] * k / batches;)
            cut[k]++;
}

const int *flexsp_cuts(Arena *arena, const Flexsp *q, const int *order, int batches, double fill) {
    int n = q->length_count, *cut = arena_array(arena, int, batches + 1);
    double most = fill * flexsp_tokens(q);
    Sums sums = sums_make(arena, q, order);
    double *least = arena_array(arena, double, (batches + 1) * (n + 1)); // (batches + 1, n + 1)
    int *from = arena_array(arena, int, (batches + 1) * (n + 1));
    for (int to = 1; to <= n; to++) least[to] = INFINITY;
    for (int k = 1; k <= batches; k++)
        for (int to = 0; to <= n; to++) {
            double *value = &least[k * (n + 1) + to];
            *value = INFINITY;
            for (int x = to; x >= 0 && sums.tokens[to] - sums.tokens[x] <= most; x--) {
                double time = least[(k - 1) * (n + 1) + x] + piece_time(q, &sums, x, to, most);
                if (time < *value) *value = time, from[k * (n + 1) + to] = x;
            }
        }
    cut[batches] = n;
    if (isfinite(least[batches * (n + 1) + n]))
        for (int k = batches; k > 0; k--) cut[k - 1] = from[k * (n + 1) + cut[k]];
    else cut_evenly(&sums, n, batches, cut);
    return cut;
}
