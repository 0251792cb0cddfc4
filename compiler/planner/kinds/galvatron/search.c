/* Finds the best plan of one pipeline. For each stage it tries all pairs of strategies; a dynamic
 * program over the stages has a cap on the longest stage's time. */
#include "planner/kinds/galvatron/galvatron.h"

#include "support/array.h"

#include <math.h>
#include <stdlib.h>

/* A Pareto front: stage plans none of which beats another in time and unhidden synchronisation. */
typedef Array(StagePlan) Front;

typedef struct Search {
    Arena *arena;
    const Galvatron *q;
    const Pipeline *p;
    Front *front; // by stage and number of layers, stages * (layers + 1) entries
} Search;

static Front *front_of(const Search *s, int stage, int layers) {
    return &s->front[stage * (s->q->layers + 1) + layers];
}

/* Adds a plan to a front unless one there is as good; removes plans that the new one beats. */
static void front_add(const Search *s, Front *front, const StagePlan *plan) {
    for (int i = 0; i < front->count; i++)
        if (front->at[i].ms <= plan->ms && front->at[i].left <= plan->left) return;
    int kept = 0;
    for (int i = 0; i < front->count; i++)
        if (front->at[i].ms < plan->ms || front->at[i].left < plan->left)
            front->at[kept++] = front->at[i];
    front->count = kept;
    array_push(s->arena, front, *plan);
}

/* Adds the stage plans with layers of strategy a first, then of b, that fit the memory. */
static void pair_add(const Search *s, int stage, const Strategy *a, const Strategy *b) {
    double room = s->q->class[s->p->class[stage]].memory_mb * (1 + 1e-9) -
                  galvatron_ends(s->q, s->p, stage, a, b);
    double fixed = galvatron_handover(s->q, s->p, a) + galvatron_change(s->q, s->p, a, b);
    int most = s->q->layers - s->p->stages + 1;
    for (int first = 1; first <= most; first++)
        for (int second = a == b ? 0 : 1; first + second <= (a == b ? first : most); second++) {
            if (first * a->mb + second * b->mb > room) break;
            StagePlan plan = {.ms = fixed + first * a->ms + second * b->ms,
                              .left = first * a->left + second * b->left,
                              .count = {first, second},
                              .strategy = {*a, *b}};
            front_add(s, front_of(s, stage, first + second), &plan);
        }
}

static void fronts_make(Search *s) {
    s->front = arena_array(s->arena, Front, s->p->stages * (s->q->layers + 1));
    for (int stage = 0; stage < s->p->stages; stage++) {
        int count;
        const Strategy *strategies = galvatron_strategies(s->arena, s->q, s->p, stage, &count);
        for (int a = 0; a < count; a++)
            for (int b = 0; b < count; b++) pair_add(s, stage, &strategies[a], &strategies[b]);
    }
}

/* A state of the dynamic program, for the first stages with some layers: their time and unhidden
 * synchronisation, and the last stage's number of layers and plan. */
typedef struct Label {
    double ms, left;
    int layers;
    const StagePlan *last;
} Label;

/* Runs the dynamic program. Returns, by numbers of stages and layers, the state with the least time
 * plus unhidden synchronisation whose stages take at most `cap` ms each. */
static const Label *labels_make(const Search *s, Arena *arena, double cap) {
    int width = s->q->layers + 1, stages = s->p->stages;
    Label *label = arena_array(arena, Label, (stages + 1) * width);
    for (int i = 0; i < (stages + 1) * width; i++) label[i].ms = i ? INFINITY : 0;
    for (int i = 0; i < stages; i++)
        for (int l = 1; l <= s->q->layers - stages + 1; l++)
            for (int c = 0; c < front_of(s, i, l)->count; c++) {
                const StagePlan *plan = &front_of(s, i, l)->at[c];
                for (int j = l; plan->ms <= cap && j < width; j++) {
                    const Label *before = &label[i * width + j - l];
                    Label *now = &label[(i + 1) * width + j],
                          with = {before->ms + plan->ms,
                                  fmax(before->left, plan->left - before->ms), l, plan};
                    if (with.ms + with.left < now->ms + now->left) *now = with;
                }
            }
    return label;
}

/* Writes the plan that the last state describes. Returns its time, INFINITY when there is none. */
static double labels_plan(const Search *s, const Label *label, GalvatronPlan *plan) {
    int width = s->q->layers + 1;
    const Label *end = &label[s->p->stages * width + s->q->layers];
    double longest = 0, total = end->ms + end->left;
    if (!isfinite(end->ms)) return INFINITY;
    plan->pipeline = *s->p;
    for (int i = s->p->stages, j = s->q->layers; i > 0; i--) {
        const Label *at = &label[i * width + j];
        plan->stage[i - 1] = *at->last;
        longest = fmax(longest, at->last->ms);
        j -= at->layers;
    }
    return plan->milliseconds = total + (s->p->microbatches - 1) * longest;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the times that a stage can have, ascending. */
static const double *caps_make(const Search *s, int *count) {
    Array(double) caps = {0};
    for (int stage = 0; stage < s->p->stages; stage++)
        for (int l = 1; l <= s->q->layers; l++)
            for (int c = 0; c < front_of(s, stage, l)->count; c++)
                array_push(s->arena, &caps, front_of(s, stage, l)->at[c].ms);
    if (caps.count) qsort(caps.at, (size_t)caps.count, sizeof *caps.at, ascending);
    *count = caps.count;
    return caps.at;
}

/* Finds the plan under a cap; copies it to *plan if it is faster. Returns false if none fits. */
static bool cap_try(const Search *s, double cap, GalvatronPlan *plan) {
    GalvatronPlan new;
    Arena *scratch = arena_create();
    double ms = labels_plan(s, labels_make(s, scratch, cap), &new);
    arena_destroy(scratch);
    if (ms < plan->milliseconds) *plan = new;
    return isfinite(ms);
}

/* Returns the index of the least cap with a plan (`count`: none); keeps the best plan in *plan. */
static int cap_least(const Search *s, const double *caps, int count, GalvatronPlan *plan) {
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (cap_try(s, caps[middle], plan)) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* Returns the least sum of time and unhidden synchronisation without a cap; INFINITY: none fits. */
static double sum_least(const Search *s) {
    Arena *scratch = arena_create();
    const Label *end =
        &labels_make(s, scratch, INFINITY)[s->p->stages * (s->q->layers + 1) + s->q->layers];
    double least = end->ms + end->left;
    arena_destroy(scratch);
    return least;
}

/* Finds the best plan of one pipeline that takes less than `below`. Returns false if no plan does.
 *
 * Tries all caps that may lead to a better plan. Of caps that differ only by rounding, tries the
 * last, which allows all plans that the others allow. */
static bool pipeline_plan(const Galvatron *q, const Pipeline *p, double below,
                          GalvatronPlan *plan) {
    Search search = {.arena = arena_create(), .q = q, .p = p};
    int count;
    plan->milliseconds = below;
    fronts_make(&search);
    const double *caps = caps_make(&search, &count), least = sum_least(&search);
    if (isfinite(least))
        for (int c = cap_least(&search, caps, count, plan);
             c < count && least + (p->microbatches - 1) * caps[c] < plan->milliseconds; c++)
            if (c == count - 1 || caps[c + 1] > caps[c] * (1 + 1e-9))
                cap_try(&search, caps[c], plan);
    arena_destroy(search.arena);
    return plan->milliseconds < below;
}

typedef struct Candidate {
    double bound;
    int pipeline;
} Candidate;

static int by_bound(const void *a, const void *b) {
    const Candidate *x = a, *y = b;
    return x->bound != y->bound ? (x->bound > y->bound) - (x->bound < y->bound)
                                : x->pipeline - y->pipeline;
}

GalvatronPlan *galvatron_plan(Arena *arena, const Galvatron *q) {
    int count;
    const Pipeline *pipelines = galvatron_pipelines(arena, q, &count);
    Candidate *order = arena_array(arena, Candidate, count);
    GalvatronPlan *best = arena_new(arena, GalvatronPlan), new = {0};
    for (int i = 0; i < count; i++) {
        int layers[GALVATRON_STAGES];
        order[i] = (Candidate){pipeline_bound(q, &pipelines[i], layers), i};
    }
    if (count) qsort(order, (size_t)count, sizeof *order, by_bound);
    best->milliseconds = INFINITY;
    for (int i = 0; i < count && order[i].bound < best->milliseconds; i++)
        if (pipeline_plan(q, &pipelines[order[i].pipeline], best->milliseconds, &new)) *best = new;
    return isfinite(best->milliseconds) ? best : NULL;
}
