#include "search/search.h"

#include "search/enumerate.h"
#include "search/reason.h"
#include "search/space.h"
#include "search/splits.h"

#include "passes/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEST = 5, ROUNDS = 3, LOOKS = 2, ENUMERATED = 400, SMALL = 40 };

typedef struct Search {
    Arena *arena;
    Workshop shop;
    SearchModel model;
    Fleet devices;
    int variant_count; // of what tensor parallelism cuts
    SplitList splits[SPLITS_MOST];
    Profile profiles[SPLITS_MOST];
    Correction corrections[SPLITS_MOST];
    const char *name;
    TriedList tried;
} Search;

/* ---- trying ---- */

static bool is_tried(const Search *search, const char *text)
{
    for (int i = 0; i < search->tried.count; i++)
        if (!strcmp(search->tried.at[i]->text, text))
            return true;
    return false;
}

/* What needs least of what hetucc takes; NULL: it takes nothing. */
static const TriedStrategy *least_need(const Search *search)
{
    const TriedStrategy *least = NULL;
    for (int i = 0; i < search->tried.count; i++) {
        const TriedStrategy *tried = search->tried.at[i];
        if (tried->good && (!least || tried->verdict.lack < least->verdict.lack))
            least = tried;
    }
    return least;
}

/* Compiles and simulates strategies, and takes what comes out. */
static void judge(Search *search, TriedStrategy *const *list, int count, bool rough)
{
    const char **texts = arena_array(search->arena, const char *, count + 1);
    Verdict *verdicts = arena_array(search->arena, Verdict, count + 1);
    bool *good = arena_array(search->arena, bool, count + 1);
    for (int i = 0; i < count; i++)
        texts[i] = list[i]->text;
    verdicts_find(search->arena, &search->shop, texts, count, rough, verdicts, good);
    for (int i = 0; i < count; i++) {
        list[i]->verdict = verdicts[i];
        list[i]->good = good[i] && !isnan(verdicts[i].seconds);
        list[i]->exact = !rough;
    }
}

/* Whether it may fit, or be what needs least, when its arenas are packed well. */
static bool is_close(const Search *search, const TriedStrategy *tried)
{
    const double most_gained = 0.15;
    double lack = (double)tried->verdict.lack - most_gained * (double)tried->verdict.peak;
    const TriedStrategy *least = least_need(search);
    return tried->good && !tried->exact && tried->verdict.lack > 0 && (lack <= 0 || (least && lack <= (double)least->verdict.lack));
}

/* Judges what is close to the byte. */
static void judge_close(Search *search, TriedStrategy *const *list, int count)
{
    TriedList close = {0};
    for (int i = 0; i < count; i++)
        if (is_close(search, list[i]))
            array_push(search->arena, &close, list[i]);
    judge(search, close.at, close.count, false);
}

/* Tries the first `most` of the candidates that were not tried; returns how many these were. */
static int try_candidates(Search *search, const CandidateList *list, int most)
{
    int first = search->tried.count;
    for (int i = 0; i < list->count && search->tried.count - first < most; i++) {
        Text text = {.arena = search->arena};
        candidate_print(&text, &list->at[i], &search->model, &search->devices, search->devices.count, search->name);
        if (is_tried(search, text_bytes(&text)))
            continue;
        TriedStrategy *tried = arena_new(search->arena, TriedStrategy);
        *tried = (TriedStrategy){.candidate = candidate_copy(search->arena, &list->at[i]), .text = text_bytes(&text)};
        array_push(search->arena, &search->tried, tried);
    }
    int count = search->tried.count - first;
    judge(search, search->tried.at + first, count, true);
    judge_close(search, search->tried.at + first, count);
    return count;
}

static bool fits(const TriedStrategy *tried) { return tried->good && tried->verdict.lack <= 0; }

static int compare_tried(const void *a, const void *b)
{
    const TriedStrategy *first = *(TriedStrategy *const *)a, *second = *(TriedStrategy *const *)b;
    double x = first->verdict.seconds, y = second->verdict.seconds;
    return x < y ? -1 : x > y ? 1 : strcmp(first->text, second->text);
}

/* Those that fit, by seconds; at most `most`. */
static TriedList best_of(const Search *search, int most)
{
    TriedList best = {0};
    for (int i = 0; i < search->tried.count; i++)
        if (fits(search->tried.at[i]))
            array_push(search->arena, &best, search->tried.at[i]);
    qsort(best.at, (size_t)best.count, sizeof *best.at, compare_tried);
    best.count = best.count < most ? best.count : most;
    return best;
}

/* ---- closed forms against what came out ---- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
    return count ? numbers[count / 2] : 1;
}

/* What a device needs over what it may have, as hetucc counts. */
static double real_need(const Search *search, const TriedStrategy *tried)
{
    int64_t most = devices_memory(&search->devices, tried->verdict.worst);
    return most ? (double)tried->verdict.peak / (double)most : 0;
}

/* Takes the middle of what closed forms were off by, of what was tried since `first`. */
static void correct(Search *search, int variant, int first)
{
    int count = search->tried.count - first, used = 0;
    double *memory = arena_array(search->arena, double, count + 1), *seconds = arena_array(search->arena, double, count + 1);
    for (int i = first; i < search->tried.count; i++) {
        const TriedStrategy *tried = search->tried.at[i];
        if (!tried->good || tried->candidate.seconds <= 0 || tried->candidate.splits != &search->splits[variant])
            continue;
        memory[used] = tried->candidate.need > 0 && real_need(search, tried) > 0 ? real_need(search, tried) / tried->candidate.need : 1;
        seconds[used++] = tried->verdict.seconds / tried->candidate.seconds;
    }
    search->corrections[variant].memory *= median(memory, used);
    search->corrections[variant].seconds *= median(seconds, used);
}

/* How many strategies are compiled in a round: fewer of large models, so that a plan does not take minutes. */
static int round_size(const Search *search)
{
    int size = 24000 / (search->model.op_count + 1);
    return size < 6 ? 6 : size > 16 ? 16 : size;
}

/* Tries the best of each variant by closed form. Returns how many were new. */
static int try_round(Search *search, int most)
{
    int first = search->tried.count, count = 0;
    for (int v = 0; v < search->variant_count; v++) {
        Arena *scratch = arena_create();
        CandidateList list = enumerate(scratch, &search->profiles[v], &search->corrections[v], ENUMERATED);
        count += try_candidates(search, &list, (most + v) / search->variant_count);
        arena_destroy(scratch);
    }
    for (int v = 0; v < search->variant_count; v++)
        correct(search, v, first);
    return count;
}

static void try_best(Search *search)
{
    for (int round = 0; round < ROUNDS; round++)
        if (!try_round(search, round_size(search)))
            return;
}

/* ---- around the best ---- */

static void add_changed(Search *search, CandidateList *list, const Candidate *changed)
{
    array_push(search->arena, list, candidate_copy(search->arena, changed));
}

/* More and fewer rows in a micro-batch. */
static void change_rows(Search *search, CandidateList *list, const Candidate *candidate)
{
    for (int up = 0; up < 2 && candidate->pipeline_count == 1 && candidate->pipelines[0].rows; up++) {
        Candidate changed = candidate_copy(search->arena, candidate);
        SearchPipeline *pipeline = &changed.pipelines[0];
        int64_t rows = pipeline->rows;
        do
            rows += up ? search->model.unit : -search->model.unit;
        while (rows > 0 && rows <= search->model.batch && search->model.batch % rows);
        if (rows <= 0 || rows > search->model.batch || !search->profiles[0].cuts)
            continue;
        pipeline->rows = rows;
        pipeline->microbatches = search->model.batch / rows;
        add_changed(search, list, &changed);
    }
}

/* A layer from each stage to its neighbours. */
static void change_layers(Search *search, CandidateList *list, const Candidate *candidate)
{
    for (int s = 0; s + 1 < candidate->pipelines[0].stage_count; s++)
        for (int way = -1; way <= 1; way += 2) {
            Candidate changed = candidate_copy(search->arena, candidate);
            SearchStage *stage = &changed.pipelines[0].stages[s];
            stage[0].end += way;
            stage[1].first += way;
            if (stage[0].end > stage[0].first && stage[1].end > stage[1].first)
                add_changed(search, list, &changed);
        }
}

static void change_modes(Search *search, CandidateList *list, const Candidate *candidate)
{
    for (int mode = 0; mode < RECOMPUTES; mode++) {
        Candidate changed = candidate_copy(search->arena, candidate);
        for (int p = 0; p < changed.pipeline_count; p++)
            for (int s = 0; s < changed.pipelines[p].stage_count; s++)
                changed.pipelines[p].stages[s].recompute = (Recompute)mode;
        if (profile_allows(&search->profiles[0], (Recompute)mode))
            add_changed(search, list, &changed);
    }
    for (int zero = 0; zero <= 3; zero++) {
        Candidate changed = candidate_copy(search->arena, candidate);
        changed.zero = zero;
        add_changed(search, list, &changed);
    }
}

/* Tries the neighbours of the best, and of what is better then. */
static void look_around(Search *search)
{
    const TriedStrategy *around = NULL;
    for (int look = 0; look < LOOKS; look++) {
        TriedList best = best_of(search, 1);
        CandidateList list = {0};
        if (!best.count || best.at[0] == around)
            return;
        around = best.at[0];
        change_rows(search, &list, &around->candidate);
        change_modes(search, &list, &around->candidate);
        change_layers(search, &list, &around->candidate);
        try_candidates(search, &list, round_size(search));
    }
}

/* ---- what needs least ---- */

/* With so many rows in a micro-batch, and one way to recompute for all stages. */
static void add_variant(Search *search, CandidateList *list, const Candidate *candidate, int64_t rows, Recompute mode, int zero)
{
    Candidate changed = candidate_copy(search->arena, candidate);
    SearchPipeline *pipeline = &changed.pipelines[0];
    for (int s = 0; s < pipeline->stage_count; s++)
        pipeline->stages[s].recompute = mode;
    pipeline->rows = rows;
    pipeline->microbatches = rows ? search->model.batch / rows : 1;
    changed.zero = zero;
    add_changed(search, list, &changed);
}

/* All rows, ways to recompute and levels of ZeRO on the stages of a candidate. */
static void change_all(Search *search, CandidateList *list, const Candidate *candidate)
{
    RowList rows = rows_all(search->arena, &search->profiles[0], search->model.batch);
    bool copies = false;
    for (int s = 0; s < candidate->pipelines[0].stage_count; s++)
        copies |= candidate->pipelines[0].stages[s].device_count > 1;
    for (int r = rows.count - 1; r >= 0 && candidate->pipeline_count == 1; r--)
        for (int mode = RECOMPUTES - 1; mode >= 0; mode--)
            for (int zero = copies ? 3 : 0; zero >= 0; zero--)
                if (profile_allows(&search->profiles[0], (Recompute)mode))
                    add_variant(search, list, candidate, rows.at[r], (Recompute)mode, zero);
}

/* A name more or less that is cut along tp, with ZeRO as it is and where it cuts most. */
static void change_splits(Search *search, CandidateList *list, const Candidate *candidate)
{
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

/* Of the candidates that need least the whole batch at once, whose gradients need not be kept together, and as few rows as there are. */
static void change_extremes(Search *search, CandidateList *list, const CandidateList *from)
{
    RowList rows = rows_all(search->arena, &search->profiles[0], search->model.batch);
    for (int i = 0; i < from->count; i++)
        for (int mode = RECOMPUTES - 1; mode >= 0 && from->at[i].pipeline_count == 1; mode--) {
            array_push(search->arena, list, from->at[i]);
            if (!profile_allows(&search->profiles[0], (Recompute)mode))
                continue;
            add_variant(search, list, &from->at[i], rows.at[rows.count - 1], (Recompute)mode, from->at[i].zero);
            add_variant(search, list, &from->at[i], from->at[i].pipelines[0].rows, (Recompute)mode, from->at[i].zero);
        }
}

/* Tries the neighbours of what needs least really. Returns how many were new. */
static int look_around_least(Search *search, int most)
{
    const TriedStrategy *least = least_need(search);
    CandidateList list = {0};
    if (!least)
        return 0;
    change_layers(search, &list, &least->candidate);
    change_splits(search, &list, &least->candidate);
    change_all(search, &list, &least->candidate);
    return try_candidates(search, &list, most);
}

/* Tries what needs least by closed form, and what is like it. */
static int try_least_round(Search *search, int most)
{
    int count = 0, first = search->tried.count;
    for (int v = 0; v < search->variant_count; v++) {
        CandidateList list = {0}, best = enumerate(search->arena, &search->profiles[v], &search->corrections[v], ENUMERATED);
        change_extremes(search, &list, &best);
        count += try_candidates(search, &list, (most + v) / search->variant_count);
    }
    for (int v = 0; v < search->variant_count; v++)
        correct(search, v, first);
    return count;
}

static bool same_splits(const SplitList *a, const SplitList *b)
{
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = !strcmp(a->dims[i], b->dims[i]);
    return same;
}

/* Lets tensors be cut across hosts and classes: slow, but a device needs less. */
static void widen(Search *search)
{
    for (int v = 0; v < search->variant_count; v++) {
        Profile wide;
        if (profile_run(search->arena, &search->shop, &search->splits[v], true, &wide))
            search->profiles[v] = wide;
    }
}

/* Takes in what makes bytes least under a level of ZeRO, where that is something else. */
static void add_thrifty_splits(Search *search, int zero)
{
    SplitList *list = &search->splits[search->variant_count];
    *list = splits_find_least(search->arena, &search->shop, zero);
    for (int v = 0; v < search->variant_count; v++)
        if (same_splits(list, &search->splits[v]))
            return;
    search->corrections[search->variant_count] = (Correction){1, 1};
    if (profile_run(search->arena, &search->shop, list, true, &search->profiles[search->variant_count]))
        search->variant_count++;
}

/* Where nothing has fitted: tries what needs least by closed form, and around what needs least really, until some rounds in a row bring
 * nothing that needs less. */
static void try_least(Search *search)
{
    enum { MOST = 16, IN_VAIN = 4 };
    const int a_round = 3 * round_size(search);
    for (int round = 0, vain = 0; round < MOST && vain < IN_VAIN && !best_of(search, 1).count; round++) {
        const TriedStrategy *least = least_need(search);
        int around = look_around_least(search, a_round), others = best_of(search, 1).count ? 0 : try_least_round(search, a_round);
        if (!around && !others)
            return;
        vain = least == least_need(search) ? vain + 1 : 0;
    }
}

/* Tries what could need less than what needs least really, if closed forms say up to a third too much of it. */
static void try_small(Search *search)
{
    const double too_much = 4.0 / 3;
    const TriedStrategy *least = least_need(search);
    for (int v = 0; v < search->variant_count && least; v++) {
        Arena *scratch = arena_create();
        CandidateList list = enumerate_small(scratch, &search->profiles[v], &search->corrections[v], too_much * real_need(search, least),
                                             SMALL * round_size(search));
        try_candidates(search, &list, list.count);
        arena_destroy(scratch);
    }
}

/* ---- all of it ---- */

static bool prepare(Search *search, const SearchOptions *options)
{
    Frontend *frontend = search->shop.frontend;
    const char *text = arena_format(search->arena, "strategy %s\n  stage devices(0)\nend strategy\n", options->name);
    Unit *unit = frontend_under(frontend, text);
    if (unit && !unit->modules.count)
        diag_error(search->shop.diag, (Position){0}, "%s trains or runs no model", unit->file);
    if (!unit || !unit->modules.count)
        return false;
    search->model = model_begin(unit);
    PassOptions passes = {.stop_after = "refine", .out = stdout};
    for (int m = 0; m < unit->modules.count; m++)
        unit->modules.at[m]->options = search->shop.compile;
    if (!passes_run(unit, &passes))
        return false;
    model_survey(search->arena, &search->model);
    return true;
}

static bool find(Search *search, const SearchOptions *options, Text *strategy, Text *reason)
{
    if (!prepare(search, options))
        return false;
    search->variant_count = splits_find(search->arena, &search->shop, search->splits);
    for (int v = 0; v < search->variant_count; v++) {
        search->corrections[v] = (Correction){1, 1};
        if (!profile_run(search->arena, &search->shop, &search->splits[v], false, &search->profiles[v]))
            return false;
    }
    try_best(search);
    look_around(search);
    if (!best_of(search, 1).count) {
        widen(search);
        for (int zero = 0; zero <= (search->model.trains ? 3 : 0); zero += 3)
            add_thrifty_splits(search, zero);
        try_least(search);
        if (!best_of(search, 1).count)
            try_small(search);
        look_around(search);
    }
    TriedList best = best_of(search, BEST);
    judge(search, best.at, best.count, false);
    if (best.count) {
        reason_comment(strategy, &search->shop, best.at[0], search->model.module->source);
        text_string(strategy, best.at[0]->text);
        reason_print(reason, &search->shop, &best, search->tried.count);
        return true;
    }
    const TriedStrategy *least = least_need(search);
    if (!least)
        BUG("hetucc takes none of %d strategies of %s", search->tried.count, search->model.module->name);
    reason_report(search->shop.diag, &search->shop, least, search->tried.count);
    return false;
}

bool search_plan(Arena *arena, Diag *diag, const SearchOptions *options, Text *strategy, Text *reason)
{
    Search search = {.arena = arena, .name = options->name};
    search.devices = devices_of(arena, options->frontend->cluster, options->memory);
    search.shop = (Workshop){.arena = arena,
                             .diag = diag,
                             .compile = options->compile,
                             .no_fuse = options->no_fuse,
                             .model = &search.model,
                             .devices = &search.devices};
    search.shop.frontend = frontend_open(arena, diag, options->frontend);
    if (!search.shop.frontend)
        return false;
    bool found = find(&search, options, strategy, reason);
    frontend_close(search.shop.frontend);
    return found;
}
