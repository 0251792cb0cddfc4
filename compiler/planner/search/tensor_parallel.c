/* Tries sets of dimensions that tp cuts. A degree need not divide a dimension (layout/region.c).
 * layer_costs.c finds the largest tp. passes/seed_layouts/grouped_query_heads.c allows fewer
 * key-value heads. */
#include "planner/search/tensor_parallel.h"

#include "planner/search/devices.h"
#include "planner/search/evaluate.h"
#include "planner/search/search_model.h"
#include "planner/search/probe.h"
#include "planner/search/layer_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MOST = 16, TRIED_DEGREE = 4, ORDERS = 10 };

#define PAYS_OFF 0.99     // factor of seconds * bytes below which a cut pays off
#define MUCH_FASTER 0.97  // factor of the seconds below which a list is much faster
#define AS_MANY_BYTES 1.3 // factor up to which the bytes of two lists are about equal
#define THRIFTY 1.5       // factor of the least bytes up to which a list is thrifty

/* The dimensions that are cut, as indices of the model's dimensions. */
typedef struct Set {
    int count, names[NAMES_MOST];
    double seconds, bytes; // seconds of a step, bytes of a device; INFINITY: hetucc refuses the set
} Set;

typedef Array(Set) SetList;

typedef struct Trier {
    Arena *arena;
    const EvaluationContext *context;
    int group, degree, zero;
    int64_t rows;
    int most;         // number of sets up to which all are tried
    bool bytes_alone; // sets are compared by bytes; at equal bytes more dimensions are better
    SetList tried;
} Trier;

static double score(const Trier *trier, const Set *set) {
    return trier->bytes_alone ? set->bytes : set->seconds * set->bytes;
}

static bool same_names(const Set *a, const Set *b) {
    return a->count == b->count && !memcmp(a->names, b->names, sizeof(int) * (size_t)a->count);
}

static const Set *find_tried(const Trier *trier, const Set *set) {
    for (int i = 0; i < trier->tried.count; i++)
        if (same_names(&trier->tried.at[i], set)) return &trier->tried.at[i];
    return NULL;
}

static SplitList list_of(Arena *arena, const SearchModel *model, const Set *set) {
    const char **dims = arena_array(arena, const char *, set->count + 1);
    for (int i = 0; i < set->count; i++) dims[i] = model->dims[set->names[i]].name;
    return (SplitList){set->count, dims};
}

/* Evaluates the sets that were not evaluated before, and fills in the results of all sets. */
static void try_sets(Trier *trier, SetList *sets) {
    const char **texts = arena_array(trier->arena, const char *, sets->count + 1);
    Probe *probes = arena_array(trier->arena, Probe, sets->count + 1);
    int first = trier->tried.count;
    for (int i = 0; i < sets->count; i++) {
        if (find_tried(trier, &sets->at[i])) continue;
        SplitList list = list_of(trier->arena, trier->context->model, &sets->at[i]);
        texts[trier->tried.count - first] = probe_text(
            trier->arena, trier->context, &list,
            &(ProbeShape){trier->group, list.count || trier->zero ? trier->degree : 1, trier->rows,
                          trier->bytes_alone ? RECOMPUTE_FULL : RECOMPUTE_NONE, trier->zero});
        array_push(trier->arena, &trier->tried, sets->at[i]);
    }
    probes_run(trier->arena, trier->context, texts, trier->tried.count - first, probes);
    for (int i = first; i < trier->tried.count; i++) {
        const Probe *probe = &probes[i - first];
        trier->tried.at[i].seconds = probe->good ? probe->seconds : (double)INFINITY;
        trier->tried.at[i].bytes = probe->good ? probe->peak : (double)INFINITY;
    }
    for (int i = 0; i < sets->count; i++) sets->at[i] = *find_tried(trier, &sets->at[i]);
}

/* ---- local search ---- */

static bool has_name(const Set *set, int name) {
    for (int i = 0; i < set->count; i++)
        if (set->names[i] == name) return true;
    return false;
}

/* Returns the set with one more dimension. A dimension of parameters is placed after the other
 * dimensions of parameters, any other dimension at the end. */
static Set with_name(const SearchDim *dims, const Set *set, int name) {
    Set larger = *set;
    int at = 0;
    while (at < set->count && (!dims[name].of_parameters || dims[set->names[at]].of_parameters))
        at++;
    memmove(larger.names + at + 1, set->names + at, sizeof(int) * (size_t)(set->count - at));
    larger.names[at] = name;
    larger.count++;
    return larger;
}

static Set without(const Set *set, int at) {
    Set smaller = *set;
    smaller.count--;
    memmove(smaller.names + at, set->names + at + 1, sizeof(int) * (size_t)(smaller.count - at));
    return smaller;
}

/* Evaluates sets that differ from *set in one dimension, and sets *set to the best if it is better.
 * Returns whether *set has changed. With `others`, only adds dimensions that no parameter has. */
static bool step(Trier *trier, Set *set, bool others) {
    const SearchModel *model = trier->context->model;
    SetList near = {0};
    for (int name = 0; name < model->dim_count && name < NAMES_MOST; name++)
        if (!has_name(set, name) && set->count < NAMES_MOST &&
            model->dims[name].of_parameters != others)
            array_push(trier->arena, &near, with_name(model->dims, set, name));
    for (int i = 0; i < set->count && set->count > 1 && !others; i++)
        array_push(trier->arena, &near, without(set, i));
    try_sets(trier, &near);
    const Set *best = NULL;
    for (int i = 0; i < near.count; i++)
        if (!isinf(near.at[i].seconds) && (!best || score(trier, &near.at[i]) < score(trier, best)))
            best = &near.at[i];
    bool more = best && trier->bytes_alone && best->count > set->count &&
                score(trier, best) <= score(trier, set);
    if (!best || (!more && score(trier, best) >= PAYS_OFF * score(trier, set))) return false;
    *set = *best;
    return true;
}

/* Returns the fastest evaluated set with about the bytes of `best`; NULL: none is much faster. */
static const Set *find_faster(const Trier *trier, const Set *best) {
    const Set *faster = NULL;
    for (int i = 0; i < trier->tried.count; i++) {
        const Set *set = &trier->tried.at[i];
        if (set->count && set->bytes <= AS_MANY_BYTES * best->bytes &&
            set->seconds < MUCH_FASTER * best->seconds &&
            (!faster || set->seconds < faster->seconds))
            faster = set;
    }
    return faster;
}

/* Returns the group of several devices with the most devices on a host. If each class has one
 * device, returns the group of all devices; -1: there is one device. */
static int group_of_trials(const Fleet *fleet) {
    int best = -1;
    for (int g = 0; g < fleet->group_count; g++)
        if (fleet->groups[g].count > 1 &&
            (best < 0 || fleet->groups[g].host_most > fleet->groups[best].host_most))
            best = g;
    return best < 0 && fleet->group_count > 1 ? fleet->group_count : best;
}

/* Returns the degree at which sets are evaluated, at most TRIED_DEGREE: the number of devices of a
 * host or, if hosts have one device, of the group. */
static int degree_of_trials(const DeviceGroup *group) {
    int most = group->host_most > 1 ? group->host_most : group->count;
    return most < TRIED_DEGREE ? most : TRIED_DEGREE;
}

/* Finds *best by local search. Returns false when there is one device or no named dimension. */
static bool search_sets(Trier *trier, Set *best) {
    const EvaluationContext *context = trier->context;
    int64_t rows[2] = {0, 0};
    SetList none = {0};
    trier->group = group_of_trials(context->devices);
    if (trier->group < 0 || !context->model->dim_count) return false;
    trier->degree = degree_of_trials(&context->devices->groups[trier->group]);
    trier->rows = probe_rows(context->model, rows) ? rows[trier->bytes_alone ? 0 : 1] : 0;
    array_push(trier->arena, &none, (Set){0});
    try_sets(trier, &none);
    *best = none.at[0];
    for (int steps = 0; steps < 2 * NAMES_MOST; steps++)
        if (!step(trier, best, false) && !step(trier, best, true)) break;
    return true;
}

int splits_find(Arena *arena, const EvaluationContext *context, SplitList lists[SPLITS_FAST]) {
    Trier trier = {.arena = arena, .context = context};
    Set best;
    lists[0] = (SplitList){0, NULL};
    if (!search_sets(&trier, &best)) return 1;
    const Set *faster = find_faster(&trier, &best);
    lists[0] = list_of(arena, context->model, &best);
    if (faster) lists[1] = list_of(arena, context->model, faster);
    return faster ? 2 : 1;
}

/* Adds `set` and the sets that extend it, until there are more than trier->most. Dimensions of
 * parameters come in any order, since the first rule that applies counts; others in one order. */
static void add_orders(Trier *trier, const Set *set, bool others, int from, SetList *sets) {
    const SearchModel *model = trier->context->model;
    array_push(trier->arena, sets, *set);
    for (int name = from; name < model->dim_count && sets->count <= trier->most; name++) {
        if (has_name(set, name) || (others && model->dims[name].of_parameters)) continue;
        Set larger = with_name(model->dims, set, name);
        bool other = !model->dims[name].of_parameters;
        add_orders(trier, &larger, other, other ? name + 1 : 0, sets);
    }
}

/* Evaluates all sets in all orders, if there are at most trier->most. */
static void try_all(Trier *trier) {
    SetList sets = {0};
    if (trier->context->model->dim_count < NAMES_MOST)
        add_orders(trier, &(Set){0}, false, 0, &sets);
    if (sets.count <= trier->most) try_sets(trier, &sets);
}

/* Compares sets by bytes, then by seconds, then by the order in which they were evaluated. */
static int compare_bytes(const void *a, const void *b) {
    const Set *first = *(const Set *const *)a, *second = *(const Set *const *)b;
    bool alike = first->bytes == second->bytes;
    double x = alike ? first->seconds : first->bytes, y = alike ? second->seconds : second->bytes;
    return x < y ? -1 : x > y ? 1 : first < second ? -1 : first > second;
}

/* Returns whether two sets cost the same, as when an additional dimension cuts no value. */
static bool same_numbers(const Set *a, const Set *b) {
    return a->bytes == b->bytes && a->seconds == b->seconds;
}

/* Writes, after lists[0], the sets that need little more memory than the best set. Keeps one of the
 * sets with equal bytes and seconds. Returns the number of lists. */
static int list_thrifty(Trier *trier, const Set *best, SplitList *lists, int most) {
    const Set **sorted = arena_array(trier->arena, const Set *, trier->tried.count + 1),
              *last = best;
    int count = 1;
    for (int i = 0; i < trier->tried.count; i++) sorted[i] = &trier->tried.at[i];
    qsort(sorted, (size_t)trier->tried.count, sizeof *sorted, compare_bytes);
    for (int i = 0;
         i < trier->tried.count && count < most && sorted[i]->bytes <= THRIFTY * best->bytes; i++) {
        if (same_numbers(sorted[i], last) || same_numbers(sorted[i], best)) continue;
        lists[count++] = list_of(trier->arena, trier->context->model, sorted[i]);
        last = sorted[i];
    }
    return count;
}

int splits_find_thrifty(Arena *arena, const EvaluationContext *context, int zero, SplitList *lists,
                        int most) {
    Trier trier = {.arena = arena,
                   .context = context,
                   .bytes_alone = true,
                   .zero = zero,
                   .most = ORDERS * most};
    Set best;
    lists[0] = (SplitList){0, NULL};
    if (!search_sets(&trier, &best)) return 1;
    lists[0] = list_of(arena, context->model, &best);
    try_all(&trier);
    return list_thrifty(&trier, &best, lists, most);
}

/* ---- neighbours of a list ---- */

static Set set_of(const SearchModel *model, const SplitList *list) {
    Set set = {0};
    for (int i = 0; i < list->count; i++)
        for (int name = 0; name < model->dim_count && name < NAMES_MOST; name++)
            if (!strcmp(model->dims[name].name, list->dims[i])) set.names[set.count++] = name;
    return set;
}

static void add_list(Arena *arena, const SearchModel *model, const Set *set,
                     SplitListArray *lists) {
    SplitList list = list_of(arena, model, set);
    array_push(arena, lists, arena_copy(arena, &list, sizeof list));
}

SplitListArray splits_near(Arena *arena, const SearchModel *model, const SplitList *list) {
    SplitListArray near = {0};
    Set set = set_of(model, list), changed;
    for (int i = 0; i < set.count; i++) {
        changed = without(&set, i);
        add_list(arena, model, &changed, &near);
    }
    for (int name = 0; name < model->dim_count && name < NAMES_MOST && set.count < NAMES_MOST;
         name++) {
        if (has_name(&set, name)) continue;
        changed = with_name(model->dims, &set, name);
        add_list(arena, model, &changed, &near);
    }
    return near;
}
