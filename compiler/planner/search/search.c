/* Runs the rounds of the search, and decides when it ends. enumerate.h has the space. */
#include "planner/search/search.h"

#include "planner/search/evaluated.h"
#include "planner/search/neighbours.h"
#include "planner/search/tensor_parallel.h"

enum { BEST = 5, ROUNDS = 3, LOOKS = 2, SMALL_FLEET = 8 };

/* Evaluates each variant's candidates that closed forms rank best. Returns how many were new. */
static int try_round(Search *search, int most) {
    int first = search->tried.count, count = 0;
    for (int v = 0; v < search->variant_count; v++) {
        Arena *scratch = arena_create();
        CandidateList list =
            enumerate(scratch, &search->profiles[v], &search->corrections[v], ENUMERATED);
        count += try_candidates(search, &list, (most + v) / search->variant_count);
        arena_destroy(scratch);
    }
    correct_all(search, first);
    return count;
}

/* Evaluates the baselines, and then the candidates that closed forms rank best. */
static void try_best(Search *search) {
    search_baselines(search);
    for (int round = 0; round < ROUNDS; round++)
        if (!try_round(search, round_size(search))) return;
}

/* Evaluates the neighbours of the best strategy; repeats this if a neighbour is better. */
static void look_around(Search *search) {
    const TriedStrategy *around = NULL;
    for (int look = 0; look < LOOKS; look++) {
        TriedList best = best_of(search, 1);
        CandidateList list = {0};
        if (!best.count || best.at[0] == around) return;
        around = best.at[0];
        change_rows(search, &list, &around->candidate);
        change_modes(search, &list, &around->candidate);
        change_layers(search, &list, &around->candidate);
        try_candidates(search, &list, round_size(search));
    }
}

static bool prepare(Search *search, const SearchOptions *options) {
    Frontend *frontend = search->context.frontend;
    const char *text = arena_format(
        search->arena, "strategy %s\n  stage devices(0)\nend strategy\n", options->name);
    Unit *unit = frontend_under(frontend, text);
    if (unit && !unit->modules.count)
        diag_error(search->context.diag, (Position){0}, "%s trains or runs no model", unit->file);
    if (!unit || !unit->modules.count) return false;
    search->model = model_begin(unit);
    PassOptions passes = {
        .compile = search->context.compile, .stop_after = "factor_dims", .out = stdout};
    for (int m = 0; m < unit->modules.count; m++)
        unit->modules.at[m]->devices->target = search->context.target;
    if (!passes_run(unit, &passes)) return false;
    model_survey(search->arena, &search->model);
    return true;
}

/* Returns whether `memory` (--memory) is the limit of every device. */
static bool bounded_alike(const Search *search, int64_t memory) {
    for (int d = 0; d < search->devices.count; d++)
        if (devices_memory(&search->devices, d) != memory) return false;
    return memory > 0;
}

/* Sets another memory limit and recomputes the bytes that evaluated strategies lack. */
static void bound_by(Search *search, int64_t memory) {
    search->devices = devices_of(search->arena, search->devices.cluster, memory);
    for (int i = 0; i < search->tried.count; i++) {
        Verdict *verdict = &search->tried.at[i]->verdict;
        verdict->lack = verdict->peak - devices_memory(&search->devices, verdict->worst);
    }
}

/* Searches for the fastest strategy as if no strategy had been evaluated, with the first `variants`
 * lists of cut dimensions. Returns whether a strategy fits. Keeps all evaluations. */
static bool find_anew(Search *search, int variants) {
    Search anew = *search;
    anew.tried = (TriedList){0};
    anew.variant_count = variants;
    for (int v = 0; v < variants; v++) anew.corrections[v] = (Correction){1, 1};
    try_best(&anew);
    look_around(&anew);
    for (int i = 0; i < anew.tried.count; i++)
        array_push(search->arena, &search->tried, anew.tried.at[i]);
    return anything_fits(&anew);
}

/* Lowers the memory limit below the least need found, step by step, while the search for fast
 * strategies still finds one that fits. So a search with the reported least bytes succeeds, and a
 * search with fewer bytes fails. */
static void lower(Search *search, int64_t memory, int variants) {
    enum { TURNS = 4 };
    bool lower = bounded_alike(search, memory);
    for (int turn = 0; turn < TURNS && lower; turn++) {
        TriedList settled = {0};
        array_push(search->arena, &settled, (TriedStrategy *)least_need(search));
        tries_settle(search, &settled);
        bound_by(search, least_need(search)->verdict.peak - 1);
        lower = find_anew(search, variants);
        bound_by(search, memory);
    }
}

/* Carries out search_plan. In a small cluster tensors may be cut across hosts and classes from the
 * start. So a larger memory limit never leads to a worse plan. */
static bool find(Search *search, const SearchOptions *options, Text *strategy, Text *reason) {
    if (!prepare(search, options)) return false;
    int variants = search->variant_count =
        splits_find(search->arena, &search->context, search->splits);
    for (int v = 0; v < search->variant_count; v++) {
        search->corrections[v] = (Correction){1, 1};
        if (!profile_run(search->arena, &search->context, &search->splits[v],
                         search->devices.count <= SMALL_FLEET, &search->profiles[v]))
            return false;
    }
    try_best(search);
    look_around(search);
    if (!anything_fits(search)) {
        search_min_memory(search);
        look_around(search);
        if (!anything_fits(search) && least_need(search)) lower(search, options->memory, variants);
    }
    TriedList best = best_kinds(search, BEST);
    tries_settle(search, &best);
    if (best.count) {
        explain_comment(strategy, &search->context, best.at[0], search->model.module->source->file);
        text_string(strategy, best.at[0]->text);
        explain_print(reason, &search->context, &best, search->tried.count);
        return true;
    }
    const TriedStrategy *least = least_need(search);
    if (!least)
        BUG("hetucc takes none of %d strategies of %s", search->tried.count,
            search->model.module->name);
    explain_report(search->context.diag, &search->context, least, search->tried.count);
    return false;
}

bool search_plan(Arena *arena, Diag *diag, const SearchOptions *options, Text *strategy,
                 Text *reason) {
    Search search = {.arena = arena, .name = options->name};
    search.devices = devices_of(arena, options->frontend->cluster, options->memory);
    search.context = (EvaluationContext){.arena = arena,
                                         .diag = diag,
                                         .target = options->target,
                                         .compile = options->compile,
                                         .no_fuse = options->no_fuse,
                                         .model = &search.model,
                                         .devices = &search.devices};
    search.context.frontend = frontend_open(arena, diag, options->frontend);
    if (!search.context.frontend) return false;
    bool found = find(&search, options, strategy, reason);
    frontend_close(search.context.frontend);
    return found;
}
