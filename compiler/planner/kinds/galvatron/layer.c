/* The cost of a layer under a strategy: time, unhidden gradient synchronisation, memory. */
#include "planner/kinds/galvatron/galvatron.h"

#include <math.h>

static int log_of(int power_of_two) { return __builtin_ctz((unsigned)power_of_two); }

static int degree_of(const Strategy *s) { return s->tp * s->ulysses; }

/* Returns the samples of a micro-batch that one replica computes. */
static double samples_of(const Galvatron *q, const Pipeline *p, const Strategy *s) {
    // NOLINT(bugprone-integer-division): dp divides the micro-batch
    return (double)(q->batch / p->microbatches / s->dp);
}

/* Returns the milliseconds of a layer's exchange inside its group: 6 collectives of the size of an
 * all-gather for tensor parallelism, 4 all-to-alls for Ulysses; 1.5 times as many if recomputed. */
static double exchange_ms(const Galvatron *q, const Strategy *s, double samples) {
    int t = degree_of(s);
    if (t == 1) return 0;
    double calls = (s->ulysses > 1 ? 4 : 6) * (s->recompute ? 1.5 : 1),
           mb = (t - 1.0) / t * samples * q->hidden_mb;
    double one =
        s->ulysses > 1 ? mb / t / q->links.alltoall[log_of(t)] : mb / q->links.node[log_of(t)];
    return calls * (one + q->links.latency_ms);
}

/* Returns the ms of the all-reduce of a layer's gradients in a stage of `gpus` devices. */
static double sync_ms(const Galvatron *q, const Strategy *s, int gpus) {
    int g = s->dp * s->ulysses;
    if (g == 1) return 0;
    const double *links = gpus <= q->per_node ? q->links.node
                          : s->tp == 1        ? q->links.near
                                              : q->links.far;
    return (g - 1.0) / g * q->parameter_mb / s->tp / links[log_of(g)];
}

/* Returns the share of a layer's states that one of g devices keeps under ZeRO level `zero`, with m
 * micro-batches. */
static double zero_share(int zero, int g, int m) {
    double e = 1.0 / g + 0.003, gathered = m == 1 ? 1 : 0;
    if (zero == 0) return 1;
    return zero == 2 ? (6 + gathered) / 8 * e + (2 - gathered) / 8
                     : (7 + gathered) / 8 * e + (1 - gathered) / 8;
}

/* Sets `ms`, `left` and `mb` of a strategy in a stage. */
static void strategy_price(const Galvatron *q, const Pipeline *p, int stage, Strategy *s) {
    int t = degree_of(s), m = p->microbatches, behind = p->stages - stage;
    double samples = samples_of(q, p, s),
           forward = q->class[p->class[stage]].slow * q->forward_ms * samples / t;
    double backward = forward * (s->recompute ? 3 : 2), sync = sync_ms(q, s, p->gpus[stage]);
    double states = 4 * q->parameter_mb / s->tp * zero_share(s->zero, s->dp * s->ulysses, m);
    double active = (s->recompute ? q->recompute_mb / t : q->activation_mb[log_of(t)]) * samples;
    s->ms = forward + backward + exchange_ms(q, s, samples) + (s->zero == 3 ? sync / 2 : 0);
    s->left = (q->overlap - 1) * fmin(sync, backward) + fmax(0, sync - backward);
    s->mb = states + active * (behind < m ? behind : m);
}

/* Returns whether `a` has b's degree, and is no worse in tp, time, synchronisation and memory. */
static bool beats(const Strategy *a, const Strategy *b) {
    return degree_of(a) == degree_of(b) && a->tp >= b->tp && a->ms <= b->ms && a->left <= b->left &&
           a->mb <= b->mb;
}

const Strategy *galvatron_strategies(Arena *arena, const Galvatron *q, const Pipeline *p, int stage,
                                     int *count) {
    static const int zeros[] = {0, 2, 3};
    int n = p->gpus[stage], micro = q->batch / p->microbatches;
    Strategy *list = arena_array(arena, Strategy, GALVATRON_LOGS * 12);
    *count = 0;
    for (int t = 1; t <= n && t <= q->per_node; t *= 2)
        for (int way = 0; way < (t > 1 ? 12 : 6) && micro % (n / t) == 0; way++) {
            bool ulysses = way >= 6;
            Strategy new = {.tp = ulysses ? 1 : t,
                            .ulysses = ulysses ? t : 1,
                            .dp = n / t,
                            .zero = zeros[way % 3],
                            .recompute = way / 3 % 2};
            strategy_price(q, p, stage, &new);
            int kept = 0;
            bool beaten = false;
            for (int i = 0; i < *count; i++) beaten |= beats(&list[i], &new);
            for (int i = 0; i < *count; i++)
                if (beaten || !beats(&new, &list[i])) list[kept++] = list[i];
            *count = kept;
            if (!beaten) list[(*count)++] = new;
        }
    return list;
}

double galvatron_change(const Galvatron *q, const Pipeline *p, const Strategy *from,
                        const Strategy *to) {
    int a = degree_of(from), b = degree_of(to), n = a > b ? a : b;
    if (a == b) return 0;
    double rows = samples_of(q, p, from->dp < to->dp ? from : to);
    return 2 *
           ((n - 1.0) / n * rows * q->hidden_mb / q->links.node[log_of(n)] + q->links.latency_ms);
}

double galvatron_handover(const Galvatron *q, const Pipeline *p, const Strategy *first) {
    return p->stages > 1 ? 2 * samples_of(q, p, first) * q->hidden_mb / q->links.p2p[p->stages] : 0;
}

double galvatron_ends(const Galvatron *q, const Pipeline *p, int stage, const Strategy *first,
                      const Strategy *last) {
    return 4 * q->ends_mb *
           ((stage == 0 ? 1.0 / first->tp : 0) + (stage == p->stages - 1 ? 1.0 / last->tp : 0));
}
