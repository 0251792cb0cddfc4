#include "frontend/choose.h"
#include "frontend/clang/clang.h"
#include "frontend/eval/eval.h"
#include "frontend/models.h"

#include <pthread.h>
#include <string.h>

typedef struct Run {
    Arena *arena;
    Diag *diag;
    const FrontendOptions *options;
    Reader *reader;
    CUnit *cunit;
    Unit *unit;
    bool shared; // the strategy stands in a file, which may serve several models
} Run;

/* ---- strategies ---- */

/* An integer constant for strategies: an enumerator, or a macro that expands to an integer expression. */
static bool constant_value(void *state, const char *name, int64_t *value)
{
    Run *run = state;
    CName what = cunit_lookup(run->cunit, name);
    Macros macros = clang_macros(run->reader);
    if (what.constant) {
        *value = what.constant->value;
        return true;
    }
    const Macro *macro = macros.lookup(macros.context, NULL, name);
    if (!macro || macro->takes_arguments || macro->body.count == 1)
        return false;
    Tokens tokens = {.arena = run->arena, .diag = run->diag, .token = macros_expand(run->arena, macros, NULL, &macro->body).at, .found = true};
    int slots = 0;
    for (const Token *token = tokens.token; !token_ends(token); token++)
        if (token->kind == TOKEN_STRING || token->kind == TOKEN_CHARACTER ||
            (token->kind == TOKEN_NAME && !cunit_lookup(run->cunit, token->text).constant))
            return false;
    const CExpr *expr = expression_read(run->cunit, &tokens, NULL, &slots);
    if (!expr)
        return false;
    Eval *ev = eval_create(run->cunit, NULL);
    bool good = eval_integer(ev, expr, slots, value);
    eval_destroy(ev);
    return good;
}

/* Whether a `shard` or `reshard` of the source names the axis, or may do so in a pragma that could not be read. */
static bool axis_used(void *state, const char *axis)
{
    Run *run = state;
    if (diag_errors(run->diag))
        return true;
    for (int i = 0; i < run->cunit->pragmas.count; i++) {
        const Pragma *pragma = run->cunit->pragmas.at[i];
        if (pragma->layout && written_names(pragma->layout, axis))
            return true;
    }
    return false;
}

static void read_strategies(Run *run)
{
    StrategyNames names = {.state = run, .value = constant_value, .axis_used = axis_used};
    StrategyChoice choice = {0};
    strategy_choose(run->cunit, run->options, &names, &choice);
    run->unit->chosen = choice.chosen;
    run->shared = choice.shared;
    for (int i = 0; i < choice.list.count; i++)
        array_push(run->arena, &run->unit->strategies, choice.list.at[i]);
}

/* ---- shape variables ---- */

static void check_shape_value(Run *run, const ShapeValue *value)
{
    Array(const char *) names = {0};
    for (int i = 0; i < run->cunit->shapes.count; i++) {
        CVar *var = run->cunit->shapes.at[i];
        array_push(run->arena, &names, var->name);
        if (strcmp(var->name, value->name))
            continue;
        var->given = true;
        var->given_value = value->value;
        return;
    }
    const char *closest = diag_closest(value->name, names.at, names.count);
    diag_error(run->diag, value->at, "\"%s\" is no shape variable; \"#pragma hspmd shape(%s)\" makes it one", value->name, value->name);
    if (closest)
        diag_note(run->diag, value->at, "did you mean \"%s\"?", closest);
}

static void add_shape_variable(Run *run, CVar *var)
{
    Eval *ev = eval_create(run->cunit, NULL);
    CExpr *expr = arena_new(run->arena, CExpr);
    *expr = (CExpr){.kind = C_VAR, .type = var->type, .at = var->at, .var = var, .slot = -1};
    ShapeVariable shape = {.name = var->name, .type = var->type->name, .at = var->at};
    if (eval_integer(ev, expr, 0, &shape.value))
        array_push(run->arena, &run->unit->shapes, shape);
    eval_destroy(ev);
}

static void read_shapes(Run *run)
{
    for (int i = 0; run->unit->chosen && i < run->unit->chosen->shapes.count; i++)
        check_shape_value(run, &run->unit->chosen->shapes.at[i]);
    for (int i = 0; i < run->cunit->shapes.count; i++)
        add_shape_variable(run, run->cunit->shapes.at[i]);
}

/* Operators of the user's that have no body here; those of hetu's headers have theirs in the library. */
static void find_bodiless(Run *run)
{
    for (int i = 0; i < run->cunit->operators.count; i++) {
        const CFunction *function = run->cunit->operators.at[i]->function;
        if (!function->body && !function->library)
            array_push(run->arena, &run->unit->bodiless, function->name);
    }
}

/* ---- names of dimensions ---- */

typedef Array(const char *) NameList;

static void add_names(Arena *arena, NameList *list, const Dim *dim)
{
    for (int i = 0; i < dim->count; i++)
        if (dim->names[i].name)
            array_push(arena, list, dim->names[i].name);
}

static void add_pragma_names(Run *run, NameList *list)
{
    for (int i = 0; i < run->cunit->pragmas.count; i++) {
        const Pragma *pragma = run->cunit->pragmas.at[i];
        for (int k = 0; k < pragma->dims.count; k++)
            add_names(run->arena, list, &pragma->dims.at[k]);
    }
}

static bool is_named(const NameList *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->at[i], name))
            return true;
    return false;
}

/* Reports a strategy that splits a dimension which no pragma names. A strategy file may serve several models: there it is a warning. */
static void check_splits(Run *run)
{
    NameList names = {0};
    add_pragma_names(run, &names);
    for (int i = 0; run->unit->chosen && i < run->unit->chosen->splits.count; i++) {
        const SplitRule *split = &run->unit->chosen->splits.at[i];
        if (is_named(&names, split->dim))
            continue;
        const char *closest = diag_closest(split->dim, names.at, names.count);
        (run->shared ? diag_warning : diag_error)(run->diag, split->at, "the dimension \"%s\" is named nowhere in the model", split->dim);
        if (closest)
            diag_note(run->diag, split->at, "did you mean \"%s\"?", closest);
    }
}

/* ---- the whole ---- */

static const char *standard(const FrontendOptions *options)
{
    const char *std = "gnu17";
    for (int i = 0; i < options->arg_count; i++)
        if (!strncmp(options->args[i], "-std=", 5))
            std = options->args[i] + 5;
    return std;
}

static void *read_all(void *data)
{
    Run *run = data;
    int before = diag_errors(run->diag);
    run->cunit = clang_read(run->arena, run->diag, run->options, &run->reader);
    Unit *unit = run->unit;
    *unit = (Unit){.arena = run->arena, .diag = run->diag, .file = run->options->file, .std = standard(run->options)};
    if (run->cunit) {
        models_check_operators(run->cunit, run->options->backends);
        read_strategies(run);
        read_shapes(run);
        find_bodiless(run);
    }
    if (run->cunit && diag_errors(run->diag) == before)
        models_read(run->cunit, unit, run->options);
    if (run->cunit && diag_errors(run->diag) == before)
        check_splits(run);
    clang_close(run->reader);
    if (diag_errors(run->diag) != before)
        run->unit = NULL;
    return NULL;
}

/* Runs with a stack that deep recursion of the model fits in. */
static void with_deep_stack(void *(*work)(void *), void *data)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)1 << 30) || pthread_create(&thread, &attributes, work, data))
        work(data);
    else
        pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

Unit *frontend_read(Arena *arena, Diag *diag, const FrontendOptions *options)
{
    Run run = {.arena = arena, .diag = diag, .options = options, .unit = arena_new(arena, Unit)};
    with_deep_stack(read_all, &run);
    return run.unit;
}
