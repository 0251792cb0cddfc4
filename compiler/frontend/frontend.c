/* Runs the steps of frontend.h on a source, and evaluates its models under each strategy. */
#include "frontend/clang/clang.h"
#include "frontend/eval/eval.h"
#include "frontend/models.h"
#include "frontend/strategies.h"
#include "ir/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct Frontend {
    Arena *arena;
    Diag *diag;
    const FrontendOptions *options;
    const char *text; // text of the strategy; NULL: the options name the strategies
    bool surveys;     // frontend_survey: lists all strategies, evaluates models under none
    Reader *reader;
    CUnit *cunit;
    Unit *unit; // NULL after an error
    StrategyChoice strategy;
};

static void add_shape_variable(Frontend *run, CVar *var) {
    Eval *ev = eval_create(run->cunit, NULL);
    CExpr *expr = cexpr_new(run->arena, C_VAR, var->type, var->at);
    expr->var = var;
    ShapeVariable shape = {.name = var->name, .type = var->type->name, .at = var->at};
    if (eval_integer(ev, expr, 0, &shape.value)) array_push(run->arena, &run->unit->shapes, shape);
    eval_destroy(ev);
}

/* Adds to unit->bodiless the user's operators without a body here. libhetu has hetu's bodies. */
static void find_bodiless(Frontend *run) {
    for (int i = 0; i < run->cunit->operators.count; i++) {
        const CFunction *function = run->cunit->operators.at[i]->function;
        if (!function->body && !function->library)
            array_push(run->arena, &run->unit->bodiless, function->name);
    }
}

static const char *standard(const FrontendPart *part) {
    const char *std = "gnu17";
    for (int i = 0; i < part->arg_count; i++)
        if (!strncmp(part->args[i], "-std=", 5)) std = part->args[i] + 5;
    return std;
}

/* Sets run->cunit to the file and the sources that its models need; to NULL after errors. */
static void *read_file(void *data) {
    Frontend *run = data;
    CUnit *cunit = run->cunit =
        clang_read(run->arena, run->diag, &run->options->part, &run->reader);
    if (!cunit) return NULL;
    operators_check(cunit, run->options->backends);
    if (!diag_errors(run->diag) && !linkage_read(cunit, run->options)) run->cunit = NULL;
    return NULL;
}

/* Sets the unit's files, `defined`, `absent` and `linked`: the models needed other sources. */
static void note_linkage(Frontend *run) {
    Unit *unit = run->unit;
    LinkNames defined = {0}, absent = {0};
    linkage_defined(run->cunit, &defined);
    linkage_absent(run->cunit, &absent);
    for (int i = 0; i < defined.count; i++) array_push(run->arena, &unit->defined, defined.at[i]);
    for (int i = 0; i < absent.count; i++) array_push(run->arena, &unit->absent, absent.at[i]);
    for (int i = 0; i < run->cunit->files.count; i++)
        array_push(run->arena, &unit->files, run->cunit->files.at[i]);
    unit->linked = run->cunit->parts.count > 1;
}

static void note_strategies(Frontend *run) {
    for (int i = 0; i < run->strategy.count; i++)
        array_push(run->arena, &run->unit->strategies, run->strategy.at[i].strategy);
}

static bool waits(const Frontend *run) { return run->options->waits && run->unit->absent.count; }

/* Begins run->unit: its linkage and, unless its models wait, its strategies and shape variables. */
static void begin_unit(Frontend *run) {
    CUnit *cunit = run->cunit;
    Unit *unit = run->unit = arena_new(run->arena, Unit);
    *unit = (Unit){.arena = run->arena,
                   .diag = run->diag,
                   .file = run->options->part.file,
                   .std = standard(&run->options->part)};
    if (!cunit) return;
    run->strategy = (StrategyChoice){0};
    note_linkage(run);
    find_bodiless(run);
    if (waits(run)) {
        // Linking chooses the strategies, which may be in sources that are missing here.
        strategies_check_waiting(cunit, clang_macros(run->reader), run->options);
        return;
    }
    if (run->surveys)
        strategies_find(cunit, clang_macros(run->reader), run->options, &run->strategy);
    else
        strategies_choose(cunit, clang_macros(run->reader), run->options, run->text,
                          &run->strategy);
    if (diag_errors(run->diag)) return;
    if (!run->surveys) note_strategies(run);
    strategies_give_shapes(cunit, unit->strategies.count ? unit->strategies.at[0] : NULL);
    for (int i = 0; i < cunit->shapes.count && models_exist(cunit); i++)
        add_shape_variable(run, cunit->shapes.at[i]);
}

static void *make_unit(void *data) {
    Frontend *run = data;
    int before = diag_errors(run->diag);
    begin_unit(run);
    bool whole = run->cunit && diag_errors(run->diag) == before && !waits(run);
    if (whole) models_read(run->cunit, run->unit, run->options);
    if (whole && run->surveys) {
        note_strategies(run);
    } else if (whole && diag_errors(run->diag) == before) {
        strategies_check_splits(run->cunit, &run->strategy);
        strategies_check_layers(run->unit);
        linkage_check(run->cunit, run->unit);
        feeds_check(run->cunit, run->unit);
    }
    if (diag_errors(run->diag) != before) run->unit = NULL;
    return NULL;
}

static void *read_all(void *data) {
    Frontend *run = data;
    int before = diag_errors(run->diag);
    read_file(run);
    make_unit(run);
    clang_close(run->reader);
    if (diag_errors(run->diag) != before) run->unit = NULL;
    return NULL;
}

/* Runs `work` on a thread with a stack of 1 GiB, for models of deep recursion and sums of 100,000
 * terms. libclang parses on this thread, not on its own thread, whose stack has 8 MiB. */
static void with_deep_stack(void *(*work)(void *), void *data) {
    pthread_attr_t attributes;
    pthread_t thread;
    setenv("LIBCLANG_NOTHREADS", "1", 0);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)1 << 30) ||
        pthread_create(&thread, &attributes, work, data))
        work(data);
    else pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

static void *scan_file(void *data) {
    Frontend *run = data;
    run->cunit = clang_read(run->arena, run->diag, &run->options->part, &run->reader);
    clang_close(run->reader);
    return NULL;
}

bool frontend_scan(Arena *arena, Diag *diag, const FrontendOptions *options, FrontendPart *part) {
    Frontend run = {.arena = arena, .diag = diag, .options = options};
    int before = diag_errors(diag);
    LinkNames names = {0};
    with_deep_stack(scan_file, &run);
    if (!run.cunit || diag_errors(diag) != before) return false;
    linkage_defined(run.cunit, &names);
    part->defined = names.at;
    part->defined_count = names.count;
    return true;
}

Unit *frontend_read(Arena *arena, Diag *diag, const FrontendOptions *options) {
    Frontend run = {.arena = arena, .diag = diag, .options = options};
    with_deep_stack(read_all, &run);
    return run.unit;
}

/* ---- one file under several strategies ---- */

Frontend *frontend_open(Arena *arena, Diag *diag, const FrontendOptions *options) {
    Frontend *frontend = arena_new(arena, Frontend);
    int before = diag_errors(diag);
    *frontend = (Frontend){.arena = arena, .diag = diag, .options = options};
    with_deep_stack(read_file, frontend);
    if (frontend->cunit && diag_errors(diag) == before) return frontend;
    frontend_close(frontend);
    return NULL;
}

bool frontend_has_models(const Frontend *frontend) { return models_exist(frontend->cunit); }

Unit *frontend_under(Frontend *frontend, const char *text) {
    frontend->text = text;
    with_deep_stack(make_unit, frontend);
    return frontend->unit;
}

Unit *frontend_survey(Frontend *frontend) {
    frontend->surveys = true;
    with_deep_stack(make_unit, frontend);
    return frontend->unit;
}

void frontend_close(Frontend *frontend) { clang_close(frontend->reader); }
