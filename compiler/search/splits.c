#include "search/splits.h"

#include "search/profile.h"

#include <math.h>
#include <stdlib.h>

enum { NAMES_MOST = 16, TRIED_DEGREE = 2 };

#define PAYS_OFF 0.99 // of seconds times bytes

typedef struct Trier {
    Arena *arena;
    const Workshop *shop;
    int group;
    int64_t rows;
} Trier;

typedef struct Tried {
    const char *name;
    bool of_parameters;
    double score; // seconds times bytes; INFINITY: hetucc refuses it
} Tried;

static double score_of(const Probe *probe) { return probe->good ? probe->seconds * probe->peak : (double)INFINITY; }

/* The scores of lists of names, on TRIED_DEGREE devices. */
static void try_lists(const Trier *trier, const SplitList *lists, int count, double *score)
{
    const char **texts = arena_array(trier->arena, const char *, count + 1);
    Probe *probes = arena_array(trier->arena, Probe, count + 1);
    for (int i = 0; i < count; i++)
        texts[i] = probe_text(trier->arena, trier->shop, &lists[i], trier->group, TRIED_DEGREE, trier->rows, RECOMPUTE_NONE);
    probes_run(trier->arena, trier->shop, texts, count, probes);
    for (int i = 0; i < count; i++)
        score[i] = score_of(&probes[i]);
}

/* Those of parameters before others, and of these what pays off most; then as the model has them. */
static int compare(const void *a, const void *b)
{
    const Tried *first = *(const Tried *const *)a, *second = *(const Tried *const *)b;
    if (first->of_parameters != second->of_parameters)
        return first->of_parameters ? -1 : 1;
    return first->score < second->score ? -1 : first->score > second->score ? 1 : first < second ? -1 : first > second;
}

/* Adds name after name, each where it pays off beside those before. Returns the score. */
static double add_in_turn(const Trier *trier, Tried *const *sorted, int count, double score, const char **names, int *kept)
{
    for (int i = 0; i < count; i++) {
        double own;
        names[*kept] = sorted[i]->name;
        SplitList list = {*kept + 1, names};
        if (isinf(sorted[i]->score))
            continue;
        if (*kept)
            try_lists(trier, &list, 1, &own);
        else
            own = sorted[i]->score;
        if (own < PAYS_OFF * score) {
            score = own;
            ++*kept;
        }
    }
    return score;
}

/* The group with most devices that may work together on a tensor; -1: none has several. */
static int group_of_trials(const Fleet *devices)
{
    int best = -1;
    for (int g = 0; g < devices->group_count; g++)
        if (devices->groups[g].count >= TRIED_DEGREE && (best < 0 || devices->groups[g].host_most > devices->groups[best].host_most))
            best = g;
    return best;
}

SplitList splits_find(Arena *arena, const Workshop *shop)
{
    const SearchModel *model = shop->model;
    Trier trier = {.arena = arena, .shop = shop, .group = group_of_trials(shop->devices)};
    int64_t rows[2] = {0, 0};
    int count = model->dim_count < NAMES_MOST ? model->dim_count : NAMES_MOST, kept = 0;
    if (trier.group < 0 || !count)
        return (SplitList){0, NULL};
    trier.rows = probe_rows(model, rows) ? rows[1] : 0;
    Tried *tried = arena_array(arena, Tried, count), **sorted = arena_array(arena, Tried *, count);
    SplitList *lists = arena_array(arena, SplitList, count);
    double *score = arena_array(arena, double, count);
    const char **alone = arena_array(arena, const char *, count), **names = arena_array(arena, const char *, count + 1);
    for (int i = 0; i < count; i++) {
        alone[i] = model->dims[i].name;
        lists[i] = (SplitList){1, &alone[i]};
    }
    try_lists(&trier, lists, count, score);
    for (int i = 0; i < count; i++) {
        tried[i] = (Tried){model->dims[i].name, model->dims[i].of_parameters, score[i]};
        sorted[i] = &tried[i];
    }
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    Probe whole;
    const char *text = probe_text(arena, shop, &(SplitList){0, NULL}, trier.group, 1, trier.rows, RECOMPUTE_NONE);
    probes_run(arena, shop, &text, 1, &whole);
    add_in_turn(&trier, sorted, count, score_of(&whole), names, &kept);
    return (SplitList){kept, names};
}
