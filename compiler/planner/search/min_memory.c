/* Searches for the strategy with the least memory when none fits. */
#include "planner/search/neighbours.h"

#include "planner/search/evaluated.h"
#include "planner/search/space.h"
#include "planner/search/tensor_parallel.h"

#include <string.h>
#include <math.h>

/* Returns the way in which all stages recompute; RECOMPUTES: the stages differ. */
static int mode_of(const Candidate *candidate) {
    const SearchPipeline *pipeline = &candidate->pipelines[0];
    for (int s = 1; s < pipeline->stage_count; s++)
        if (pipeline->stages[s].recompute != pipeline->stages[0].recompute) return RECOMPUTES;
    return (int)pipeline->stages[0].recompute;
}

static int kind_of(const Candidate *candidate) {
    bool single = candidate->pipelines[0].microbatches == 1;
    return ((single ? 4 : 0) + candidate->zero) * (RECOMPUTES + 1) + mode_of(candidate);
}

/* Returns the least ratios of real to closed-form need of the evaluated one-pipeline strategies. */
static OptimisticBound optimistic_bound_learn(Search *search) {
    const Correction none = {1, 1};
    OptimisticBound bound = {.lowest = 1};
    for (int k = 0; k < KINDS; k++) bound.least[k] = INFINITY;
    for (int i = 0; i < search->tried.count; i++) {
        Candidate plain = search->tried.at[i]->candidate;
        int variant = variant_of(search, plain.splits);
        if (!search->tried.at[i]->good || variant < 0 ||
            !candidate_estimate(&search->profiles[variant], &none, &plain) || plain.need <= 0)
            continue;
        double ratio = real_need(search, search->tried.at[i]) / plain.need;
        bound.least[kind_of(&plain)] = fmin(bound.least[kind_of(&plain)], ratio);
        bound.lowest = fmin(bound.lowest, ratio);
    }
    return bound;
}

/* Returns the least need (ratio of needed to allowed memory) that a candidate may have;
 * candidate->need must come from closed forms without a correction. */
static double optimistic_bound_of(const OptimisticBound *bound, const Candidate *candidate) {
    double least = bound->least[kind_of(candidate)];
    return candidate->need * (isinf(least) ? bound->lowest : least);
}

enum { SMALL = 40, THRIFTY_MOST = 16 };

/* ---- variants of the strategy that needs the least memory ---- */

/* The rows, the way to recompute of all stages, and the ZeRO level of a candidate's variant. */
typedef struct Variant {
    int64_t rows;
    Recompute mode;
    int zero;
} Variant;

static void add_variant(Search *search, CandidateList *list, const Candidate *candidate,
                        Variant variant) {
    int64_t rows = variant.rows;
    Candidate changed = candidate_copy(search->arena, candidate);
    SearchPipeline *pipeline = &changed.pipelines[0];
    for (int s = 0; s < pipeline->stage_count; s++) pipeline->stages[s].recompute = variant.mode;
    pipeline->rows = rows;
    pipeline->microbatches = rows ? search->model.batch / rows : 1;
    changed.zero = variant.zero;
    add_changed(search, list, &changed);
}

/* Adds all variants of a candidate: rows, ways to recompute and ZeRO levels. */
static void change_all(Search *search, CandidateList *list, const Candidate *candidate) {
    RowList rows = rows_all(search->arena, &search->profiles[0], search->model.batch);
    bool copies = false;
    for (int s = 0; s < candidate->pipelines[0].stage_count; s++)
        copies |= candidate->pipelines[0].stages[s].device_count > 1;
    for (int r = rows.count - 1; r >= 0 && candidate->pipeline_count == 1; r--)
        for (int mode = RECOMPUTES - 1; mode >= 0; mode--)
            for (int zero = copies ? 3 : 0; zero >= 0; zero--)
                if (profile_allows(&search->profiles[0], (Recompute)mode))
                    add_variant(search, list, candidate,
                                (Variant){rows.at[r], (Recompute)mode, zero});
}

/* Adds candidates with one dimension more or less cut along tp; with the same ZeRO and ZeRO 3. */
static void change_splits(Search *search, CandidateList *list, const Candidate *candidate) {
    SplitListArray near = splits_near(search->arena, &search->model, candidate->splits);
    bool cut = false;
    for (int s = 0; s < candidate->pipelines[0].stage_count; s++)
        cut |= candidate->pipelines[0].stages[s].tensor > 1;
    for (int i = 0; i < near.count && cut; i++)
        for (int most = 0; most <= search->model.trains; most++) {
            Candidate changed = candidate_copy(search->arena, candidate);
            changed.splits = near.at[i];
            changed.zero = most ? 3 : changed.zero;
            add_changed(search, list, &changed);
        }
}

/* Adds candidates and their variants in each way to recompute: with the whole batch at once
 * (without accumulated gradients), and with the candidate's rows. */
static void change_extremes(Search *search, CandidateList *list, const CandidateList *from) {
    RowList rows = rows_all(search->arena, &search->profiles[0], search->model.batch);
    for (int i = 0; i < from->count; i++)
        for (int mode = RECOMPUTES - 1; mode >= 0 && from->at[i].pipeline_count == 1; mode--) {
            array_push(search->arena, list, from->at[i]);
            if (!profile_allows(&search->profiles[0], (Recompute)mode)) continue;
            Variant variant = {rows.at[rows.count - 1], (Recompute)mode, from->at[i].zero};
            add_variant(search, list, &from->at[i], variant);
            variant.rows = from->at[i].pipelines[0].rows;
            add_variant(search, list, &from->at[i], variant);
        }
}

/* Evaluates the neighbours of the strategy with the least real need. Returns how many were new. */
static int look_around_least(Search *search, int most) {
    const TriedStrategy *least = least_need(search);
    CandidateList list = {0};
    if (!least) return 0;
    change_layers(search, &list, &least->candidate);
    change_splits(search, &list, &least->candidate);
    change_all(search, &list, &least->candidate);
    return try_candidates(search, &list, most);
}

/* Evaluates the candidates of least closed-form need and variants. Returns how many were new. */
static int try_least_round(Search *search, int most) {
    int count = 0, first = search->tried.count;
    for (int v = 0; v < search->variant_count; v++) {
        CandidateList list = {0}, best = enumerate(search->arena, &search->profiles[v],
                                                   &search->corrections[v], ENUMERATED);
        change_extremes(search, &list, &best);
        count += try_candidates(search, &list, (most + v) / search->variant_count);
    }
    correct_all(search, first);
    return count;
}

/* ---- lists of dimensions that tensor parallelism cuts ---- */

static bool same_splits(const SplitList *a, const SplitList *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++) same = !strcmp(a->dims[i], b->dims[i]);
    return same;
}

/* Allows tensors to be cut across hosts and classes: slow, but devices need less memory. */
static void widen(Search *search) {
    for (int v = 0; v < search->variant_count; v++) {
        Profile wide;
        if (!search->profiles[v].wide &&
            profile_run(search->arena, &search->context, &search->splits[v], true, &wide))
            search->profiles[v] = wide;
    }
}

/* Adds a list of cut dimensions as a variant, unless it is known or its probes fail. */
static void add_splits(Search *search, const SplitList *list) {
    int at = search->variant_count;
    for (int v = 0; v < at; v++)
        if (same_splits(list, &search->splits[v])) return;
    if (at == VARIANTS_MOST) return;
    search->splits[at] = *list;
    search->corrections[at] = (Correction){1, 1};
    if (profile_run(search->arena, &search->context, &search->splits[at], true,
                    &search->profiles[at]))
        search->variant_count++;
}

/* The lists of cut dimensions that need the least memory, without ZeRO and with ZeRO 3. */
typedef struct Thrifty {
    int counts[2];
    SplitList lists[2][THRIFTY_MOST];
} Thrifty;

static void find_thrifty(Search *search, Thrifty *thrifty) {
    *thrifty = (Thrifty){0};
    for (int z = 0; z <= search->model.trains; z++)
        thrifty->counts[z] = splits_find_thrifty(search->arena, &search->context, 3 * z,
                                                 thrifty->lists[z], round_size(search));
}

/* Adds the lists [from, to) of both kinds, without ZeRO and with ZeRO 3, as variants. */
static void add_thrifty(Search *search, const Thrifty *thrifty, int from, int to) {
    for (int i = from; i < to; i++)
        for (int z = 0; z < 2; z++)
            if (i < thrifty->counts[z]) add_splits(search, &thrifty->lists[z][i]);
}

/* ---- the search for the least memory ---- */

/* Evaluates candidates in ascending order of memory, and neighbours of the strategy that needs the
 * least. Ends when a strategy fits, or several rounds in a row find none that needs less memory. */
static void try_rounds(Search *search) {
    enum { MOST = 16, IN_VAIN = 4 };
    const int a_round = 3 * round_size(search);
    for (int round = 0, vain = 0; round < MOST && vain < IN_VAIN && !anything_fits(search);
         round++) {
        const TriedStrategy *least = least_need(search);
        int around = look_around_least(search, a_round),
            others = anything_fits(search) ? 0 : try_least_round(search, a_round);
        if (!around && !others) return;
        vain = least == least_need(search) ? vain + 1 : 0;
    }
}

/* Returns the one-pipeline candidates whose optimistic bound of need is below the least real need,
 * sorted by this bound (Candidate.need). */
static CandidateList hopeful(Search *search, Arena *scratch) {
    const Correction none = {1, 1};
    const OptimisticBound bound = optimistic_bound_learn(search);
    double least = real_need(search, least_need(search));
    CandidateList list = {0};
    for (int v = 0; v < search->variant_count; v++) {
        CandidateList small =
            enumerate_small(scratch, &search->profiles[v], &none, least / bound.lowest);
        for (int i = 0; i < small.count; i++) {
            small.at[i].need = optimistic_bound_of(&bound, &small.at[i]);
            if (small.at[i].need < least) array_push(scratch, &list, small.at[i]);
        }
    }
    candidates_sort_by_need(scratch, &list);
    return list;
}

/* Evaluates candidates whose optimistic bound is below the least real need, lowest bound first, and
 * updates the bounds after each round. */
static void try_small(Search *search) {
    const int a_round = 3 * round_size(search);
    for (int left = SMALL * round_size(search), count = 1;
         left > 0 && count && least_need(search) && !anything_fits(search); left -= count) {
        Arena *scratch = arena_create();
        CandidateList list = hopeful(search, scratch);
        count = try_candidates(search, &list, a_round < left ? a_round : left);
        arena_destroy(scratch);
    }
}

void search_min_memory(Search *search) {
    Thrifty thrifty;
    widen(search);
    find_thrifty(search, &thrifty);
    add_thrifty(search, &thrifty, 0, 1);
    try_rounds(search);
    if (anything_fits(search)) return;
    add_thrifty(search, &thrifty, 1, THRIFTY_MOST);
    try_small(search);
    for (const TriedStrategy *around = NULL;
         around != least_need(search) && !anything_fits(search);) {
        around = least_need(search);
        look_around_least(search, 3 * round_size(search));
    }
}
