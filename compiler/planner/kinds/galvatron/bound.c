/* A lower bound of the time of a pipeline, by a relaxed problem.
 *
 * The relaxed problem allows more: a layer may be divided among strategies; a change of degree is
 * free; embedding and head have their smallest share; only the first stage leaves gradient
 * synchronisation unhidden. A stage with l layers is then a linear program of two rows, layers and
 * memory, and its optimum mixes at most two strategies. A dynamic program over layers combines
 * the stages in two ways: with the mean of all stages in place of the longest; and, for every time
 * that the longest can have, with stages that take no more. The larger of both bounds counts. */
#include "planner/kinds/galvatron/galvatron.h"

#include <math.h>
#include <stdlib.h>

/* Bounds for each stage and number of layers, of shape (stages, layers + 1): the least time in ms;
 * `sum`, with unhidden synchronisation added; `mean`, like `sum` with mean_weight times the time.
 * INFINITY: the layers do not fit. */
typedef struct Relaxed {
    Arena *arena;
    const Galvatron *q;
    const Pipeline *p;
    double *ms, *sum, *mean;
} Relaxed;

/* Returns the least cost of a layer within `each` MB: weight * time, plus unhidden synchronisation
 * if `left`. Tries strategies, and mixtures of two that use all of the memory. */
static double mixture_least(const Strategy *s, int count, double each, double weight, bool left) {
    double least = INFINITY;
    for (int a = 0; a < count; a++) {
        double cost = weight * s[a].ms + (left ? s[a].left : 0);
        if (s[a].mb > each) continue;
        least = fmin(least, cost);
        for (int b = 0; b < count; b++)
            if (s[b].mb > each) {
                double part = (each - s[a].mb) / (s[b].mb - s[a].mb);
                least = fmin(least, (1 - part) * cost +
                                        part * (weight * s[b].ms + (left ? s[b].left : 0)));
            }
    }
    return least;
}

/* Returns the factor of a stage's time in the bound that replaces the longest stage by the mean. */
static double mean_weight(const Pipeline *p) { return 1 + (p->microbatches - 1.0) / p->stages; }

/* Sets the entries of one stage in `ms`, `sum` and `mean`. */
static void stage_relax(Relaxed *r, int stage) {
    int count, width = r->q->layers + 1;
    double handover = INFINITY, ends = INFINITY, weight = mean_weight(r->p);
    const Strategy *s = galvatron_strategies(r->arena, r->q, r->p, stage, &count);
    for (int i = 0; i < count; i++) {
        handover = fmin(handover, galvatron_handover(r->q, r->p, &s[i]));
        ends = fmin(ends, galvatron_ends(r->q, r->p, stage, &s[i], &s[i]));
    }
    r->ms[stage * width] = r->sum[stage * width] = r->mean[stage * width] = INFINITY;
    for (int l = 1; l < width; l++) {
        double room = r->q->class[r->p->class[stage]].memory_mb * (1 + 1e-9) - ends,
               each = room / l;
        r->ms[stage * width + l] = handover + mixture_least(s, count, each, 1, false) * l;
        r->sum[stage * width + l] = handover + mixture_least(s, count, each, 1, stage == 0) * l;
        r->mean[stage * width + l] =
            handover * weight + mixture_least(s, count, each, weight, stage == 0) * l;
    }
}

/* Returns the least sum of `cost` over stages of at most `cap` ms; INFINITY: there is none. Sets
 * `layers`, by stage, unless NULL. */
static double stages_least(const Relaxed *r, const double *cost, double cap, int *layers) {
    int width = r->q->layers + 1, stages = r->p->stages;
    Arena *scratch = arena_create();
    double *least = arena_array(scratch, double, (stages + 1) * width); // (stages + 1, layers + 1)
    int *chosen = arena_array(scratch, int, (stages + 1) * width);
    for (int j = 0; j < (stages + 1) * width; j++) least[j] = j ? INFINITY : 0;
    for (int i = 0; i < stages; i++)
        for (int l = 1; l < width && r->ms[i * width + l] <= cap; l++)
            for (int j = l; j < width; j++) {
                double with = least[i * width + j - l] + cost[i * width + l];
                if (with < least[(i + 1) * width + j])
                    least[(i + 1) * width + j] = with, chosen[(i + 1) * width + j] = l;
            }
    double value = least[stages * width + width - 1];
    for (int i = stages, j = width - 1; layers && isfinite(value) && i > 0; j -= layers[--i])
        layers[i - 1] = chosen[i * width + j];
    arena_destroy(scratch);
    return value;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the bound by the longest stage: the minimum, over its possible times t, of the least sum
 * of stages of at most t each, plus t for each micro-batch but the first. Sets `layers`. */
static double longest_bound(const Relaxed *r, int *layers) {
    int count = r->p->stages * (r->q->layers + 1), low = 0, high = count, at[GALVATRON_STAGES];
    double *caps = arena_copy(r->arena, r->ms, sizeof *caps * (size_t)count),
           free = stages_least(r, r->sum, INFINITY, NULL), best = INFINITY;
    qsort(caps, (size_t)count, sizeof *caps, ascending);
    while (low < high && isfinite(free)) {
        int middle = (low + high) / 2;
        if (isfinite(stages_least(r, r->ms, caps[middle], NULL))) high = middle;
        else low = middle + 1;
    }
    for (int c = low;
         isfinite(free) && c < count && free + (r->p->microbatches - 1) * caps[c] < best; c++) {
        double value = stages_least(r, r->sum, caps[c], at) + (r->p->microbatches - 1) * caps[c];
        if (value >= best) continue;
        best = value;
        for (int i = 0; i < r->p->stages; i++) layers[i] = at[i];
    }
    return best;
}

double pipeline_bound(const Galvatron *q, const Pipeline *p, int *layers) {
    int by_mean[GALVATRON_STAGES] = {0}, by_longest[GALVATRON_STAGES] = {0},
        size = p->stages * (q->layers + 1);
    Relaxed r = {.arena = arena_create(), .q = q, .p = p};
    r.ms = arena_array(r.arena, double, size);
    r.sum = arena_array(r.arena, double, size);
    r.mean = arena_array(r.arena, double, size);
    for (int i = 0; i < p->stages; i++) stage_relax(&r, i);
    double mean = stages_least(&r, r.mean, INFINITY, by_mean),
           longest = longest_bound(&r, by_longest);
    for (int i = 0; i < p->stages; i++) layers[i] = longest > mean ? by_longest[i] : by_mean[i];
    arena_destroy(r.arena);
    return fmax(mean, longest);
}

GalvatronBound galvatron_bound(Arena *arena, const Galvatron *q) {
    GalvatronBound bound = {.value = INFINITY};
    const Pipeline *pipelines = galvatron_pipelines(arena, q, &bound.pipelines);
    for (int i = 0; i < bound.pipelines; i++) {
        int layers[GALVATRON_STAGES];
        double value = pipeline_bound(q, &pipelines[i], layers);
        if (value >= bound.value) continue;
        bound.value = value;
        bound.pipeline = pipelines[i];
        for (int k = 0; k < pipelines[i].stages; k++) bound.layers[k] = layers[k];
    }
    return bound;
}
