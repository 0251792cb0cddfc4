#include "strategy/strategy.h"

#include "layout/layout.h"
#include "syntax/undone.h"

#include <stdlib.h>
#include <string.h>

typedef struct Checker {
    Diag *diag;
    const Strategy *strategy;
    const StrategyNames *names;
} Checker;

/* Calls `visit` for each stage of the strategy, in order. */
static void for_each_stage(const Checker *checker, void visit(const Checker *checker, const Stage *stage, void *to), void *to)
{
    const Strategy *strategy = checker->strategy;
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++)
            visit(checker, &strategy->pipelines.at[p].stages.at[s], to);
}

/* ---- devices ---- */

static void find_highest(const Checker *checker, const Stage *stage, void *to)
{
    (void)checker;
    int *highest = to;
    for (int i = 0; i < stage->devices.count; i++)
        *highest = stage->devices.at[i] > *highest ? stage->devices.at[i] : *highest;
}

int strategy_device_count(const Strategy *strategy)
{
    Checker checker = {.strategy = strategy};
    int highest = -1;
    for_each_stage(&checker, find_highest, &highest);
    for (int i = 0; i < strategy->idle.count; i++)
        highest = strategy->idle.at[i] > highest ? strategy->idle.at[i] : highest;
    return highest + 1;
}

/* Notes that `device` stands at `at`; reports it when it stands somewhere already. */
static void claim(const Checker *checker, Position *claimed, int device, Position at)
{
    if (!claimed[device].line) {
        claimed[device] = at;
        return;
    }
    diag_error(checker->diag, at, "device %d is used twice", device);
    diag_note(checker->diag, claimed[device], "it is used here already");
}

static void claim_stage(const Checker *checker, const Stage *stage, void *to)
{
    for (int i = 0; i < stage->devices.count; i++)
        claim(checker, to, stage->devices.at[i], stage->device_at.at[i]);
}

/* Every number below the highest must be in a stage or idle. */
static void check_gaps(const Checker *checker, const Position *claimed, int count)
{
    int missing = 0, first = -1, last = -1;
    for (int device = 0; device < count; device++)
        if (!claimed[device].line) {
            missing++;
            last = device;
            first = first < 0 ? device : first;
        }
    Position at = checker->strategy->at;
    if (missing == 1) {
        diag_error(checker->diag, at, "device %d is in no stage of the strategy \"%s\", and not idle", first, checker->strategy->name);
        diag_note(checker->diag, at, "if that is meant, add: idle devices(%d)", first);
    } else if (missing) {
        diag_error(checker->diag, at, "%d devices between %d and %d are in no stage of the strategy \"%s\", and not idle", missing, first,
                   last, checker->strategy->name);
        diag_note(checker->diag, at, "if that is meant, name them in: idle devices(...)");
    }
}

static void check_devices(const Checker *checker)
{
    const Strategy *strategy = checker->strategy;
    int count = strategy_device_count(strategy);
    Position *claimed = calloc((size_t)count + 1, sizeof *claimed);
    if (!claimed)
        BUG("no memory for %d devices", count);
    for_each_stage(checker, claim_stage, claimed);
    for (int i = 0; i < strategy->idle.count; i++)
        claim(checker, claimed, strategy->idle.at[i], strategy->idle_at.at[i]);
    check_gaps(checker, claimed, count);
    free(claimed);
}

/* ---- meshes ---- */

enum { MOST_WEIGHT = 1 << 20 };

static void check_weights(const Checker *checker, const MeshAxis *axis)
{
    int64_t sum = 0;
    bool good = true;
    for (int i = 0; i < axis->count && axis->weights && good; i++)
        good = axis->weights[i] >= 0 && axis->weights[i] <= MOST_WEIGHT && (sum += axis->weights[i]) >= 0;
    if (axis->weights && (!good || !sum))
        diag_error(checker->diag, axis->at, "the weights of the axis \"%s\" must be from 0 to %d, and not all 0", axis->name, MOST_WEIGHT);
}

/* Where several axes cut one dimension, the places are fractions whose denominators multiply. */
static void check_denominators(const Checker *checker, const Stage *stage)
{
    int64_t product = 1;
    for (int i = 0; i < stage->mesh.count; i++) {
        const MeshAxis *axis = &stage->mesh.at[i];
        int64_t own = layout_denominator(axis->weights, axis->count);
        if (product > LAYOUT_MOST_DENOMINATOR / own) {
            diag_error(checker->diag, axis->at, "the weights of this mesh are too large: the sums of its axes multiply to more than 2^62");
            diag_note(checker->diag, axis->at, "smaller weights that are nearly in proportion do as well");
            return;
        }
        product *= own;
    }
}

static void check_mesh(const Checker *checker, const Stage *stage, void *to)
{
    (void)to;
    int before = diag_errors(checker->diag);
    int64_t product = 1;
    for (int i = 0; i < stage->mesh.count; i++) {
        const MeshAxis *axis = &stage->mesh.at[i];
        check_weights(checker, axis);
        if (product <= stage->devices.count)
            product *= axis->count;
        for (int j = 0; j < i; j++)
            if (!strcmp(axis->name, stage->mesh.at[j].name)) {
                diag_error(checker->diag, axis->at, "the axis \"%s\" stands in this mesh a second time", axis->name);
                diag_note(checker->diag, stage->mesh.at[j].at, "the first one is here");
            }
    }
    if (diag_errors(checker->diag) == before)
        check_denominators(checker, stage);
    if (product == stage->devices.count)
        return;
    if (!stage->mesh.count) {
        diag_error(checker->diag, stage->mesh_at, "this stage has %d devices, but no mesh that says how they share the work",
                   stage->devices.count);
        diag_note(checker->diag, stage->mesh_at, "for example: mesh(dp:%d)", stage->devices.count);
    } else {
        diag_error(checker->diag, stage->mesh_at, "the axes of this mesh do not multiply to the %d device%s of its stage",
                   stage->devices.count, stage->devices.count == 1 ? "" : "s");
    }
}

/* ---- axes ---- */

typedef struct AxisSearch {
    const char *name;
    bool found;
    const char *names[64]; // of all meshes, for suggestions
    int count;
} AxisSearch;

static void search_mesh(const Checker *checker, const Stage *stage, void *to)
{
    (void)checker;
    AxisSearch *search = to;
    for (int i = 0; i < stage->mesh.count; i++) {
        search->found |= !strcmp(stage->mesh.at[i].name, search->name);
        if (search->count < 64)
            search->names[search->count++] = stage->mesh.at[i].name;
    }
}

/* Some mesh must have the axis that stands at `at`. */
static void check_axis_exists(const Checker *checker, const char *axis, Position at)
{
    AxisSearch search = {.name = axis};
    for_each_stage(checker, search_mesh, &search);
    if (search.found)
        return;
    diag_error(checker->diag, at, "no stage of the strategy \"%s\" has a mesh with an axis \"%s\"", checker->strategy->name, axis);
    diag_suggest(checker->diag, at, axis, search.names, search.count);
}

static bool axis_is_used(const Checker *checker, const char *axis)
{
    const Strategy *strategy = checker->strategy;
    for (int i = 0; i < strategy->splits.count; i++)
        for (int j = 0; j < strategy->splits.at[i].axis_count; j++)
            if (!strcmp(strategy->splits.at[i].axes[j], axis))
                return true;
    for (int i = 0; i < strategy->zero_axes.count; i++)
        if (!strcmp(strategy->zero_axes.at[i], axis))
            return true;
    return checker->names && checker->names->axis_used && checker->names->axis_used(checker->names->state, axis);
}

static void check_axes_used(const Checker *checker, const Stage *stage, void *to)
{
    (void)to;
    for (int i = 0; i < stage->mesh.count; i++)
        if (!axis_is_used(checker, stage->mesh.at[i].name)) {
            diag_error(checker->diag, stage->mesh.at[i].at, "nothing is split along the axis \"%s\"", stage->mesh.at[i].name);
            diag_note(checker->diag, stage->mesh.at[i].at, "say which dimension it cuts, as in: split batch:%s", stage->mesh.at[i].name);
        }
}

static void check_splits(const Checker *checker)
{
    const Strategy *strategy = checker->strategy;
    for (int i = 0; i < strategy->splits.count; i++) {
        const SplitRule *rule = &strategy->splits.at[i];
        for (int j = 0; j < rule->axis_count; j++)
            check_axis_exists(checker, rule->axes[j], rule->axis_at[j]);
        for (int j = 0; j < i; j++)
            if (!strcmp(strategy->splits.at[j].dim, rule->dim)) {
                diag_error(checker->diag, rule->at, "the dimension \"%s\" is split a second time", rule->dim);
                diag_note(checker->diag, strategy->splits.at[j].at, "it is split here already; several axes are written %s:a*b", rule->dim);
            }
    }
    for (int i = 0; i < strategy->zero_axes.count; i++)
        check_axis_exists(checker, strategy->zero_axes.at[i], strategy->zero_axis_at.at[i]);
}

/* ---- pipelines ---- */

/* The value that the strategy gives the shape variable "batch"; 0 when it gives none. */
static int64_t batch_value(const Strategy *strategy)
{
    for (int i = 0; i < strategy->shapes.count; i++)
        if (!strcmp(strategy->shapes.at[i].name, "batch"))
            return strategy->shapes.at[i].value;
    return 0;
}

/* Rows of all micro-batches of all pipelines are the batch. */
static void check_rows(const Checker *checker)
{
    const Strategy *strategy = checker->strategy;
    int64_t sum = 0, batch = batch_value(strategy);
    const Pipeline *silent = NULL;
    for (int i = 0; i < strategy->pipelines.count; i++) {
        const Pipeline *pipeline = &strategy->pipelines.at[i];
        silent = pipeline->rows ? silent : pipeline;
        sum += pipeline->rows * pipeline->microbatches;
    }
    if (silent && strategy->pipelines.count > 1)
        diag_error(checker->diag, silent->at, "where there are several pipelines, each says its rows(...)");
    else if (!silent && batch && sum != batch)
        diag_error(checker->diag, strategy->pipelines.at[0].at,
                   "the rows of the pipelines' micro-batches add up to %lld, but the batch is %lld", (long long)sum, (long long)batch);
}

static bool same_name(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool ranges_meet(const LayerRange *a, const LayerRange *b)
{
    if (!same_name(a->tower, b->tower) || !a->name != !b->name)
        return false;
    return a->name ? !strcmp(a->name, b->name) : a->first <= b->last && b->first <= a->last;
}

static void check_layers_meet(const Checker *checker, const LayerRange *first, const LayerRange *second)
{
    if (!ranges_meet(first, second))
        return;
    if (second->name)
        diag_error(checker->diag, second->at, "the layer \"%s\" is claimed twice", second->name);
    else
        diag_error(checker->diag, second->at, "layer %lld is claimed twice",
                   (long long)(first->first > second->first ? first->first : second->first));
    diag_note(checker->diag, first->at, "it is claimed here already");
}

/* Whether a stage of the pipeline has the layer, or every stage has all layers. */
static bool layer_is_claimed(const Pipeline *pipeline, const char *tower, int64_t layer)
{
    for (int s = 0; s < pipeline->stages.count; s++)
        for (int i = 0; i < pipeline->stages.at[s].layers.count; i++) {
            const LayerRange *range = &pipeline->stages.at[s].layers.at[i];
            if (!range->name && same_name(range->tower, tower) && range->first <= layer && layer <= range->last)
                return true;
        }
    return false;
}

/* No layer below the first of a range may be left out. */
static void check_layer_gap(const Checker *checker, const Pipeline *pipeline, const LayerRange *range)
{
    if (!range->name && range->first > 0 && !layer_is_claimed(pipeline, range->tower, range->first - 1))
        diag_error(checker->diag, range->at, "layer %lld is in no stage of this pipeline", (long long)range->first - 1);
}

/* Calls `visit` for each layer range of the pipeline that stands before range `end` of stage `stage`. */
static void check_range(const Checker *checker, const Pipeline *pipeline, int stage, int end)
{
    const LayerRange *range = &pipeline->stages.at[stage].layers.at[end];
    for (int s = 0; s <= stage; s++)
        for (int i = 0; i < (s < stage ? pipeline->stages.at[s].layers.count : end); i++)
            check_layers_meet(checker, &pipeline->stages.at[s].layers.at[i], range);
    check_layer_gap(checker, pipeline, range);
}

static void check_pipeline(const Checker *checker, const Pipeline *pipeline)
{
    if (!pipeline->stages.count)
        diag_error(checker->diag, pipeline->at, "this pipeline has no stage");
    for (int s = 0; s < pipeline->stages.count; s++) {
        const Stage *stage = &pipeline->stages.at[s];
        if (!stage->layers.count && pipeline->stages.count > 1)
            diag_error(checker->diag, stage->at, "where a pipeline has several stages, each says its layers(...)");
        for (int i = 0; i < stage->layers.count; i++)
            check_range(checker, pipeline, s, i);
    }
}

bool strategy_check(Diag *diag, const Strategy *strategy, const StrategyNames *names)
{
    Checker checker = {diag, strategy, names};
    int before = diag_errors(diag);
    check_splits(&checker);
    if (diag_errors(diag) == before) // else an axis that looks unused may be misspelled where it is used
        for_each_stage(&checker, check_axes_used, NULL);
    for_each_stage(&checker, check_mesh, NULL);
    check_devices(&checker);
    for (int i = 0; i < strategy->pipelines.count; i++)
        check_pipeline(&checker, &strategy->pipelines.at[i]);
    check_rows(&checker);
    return diag_errors(diag) == before;
}

/* ---- what this version does not do ---- */

static void check_stage_done(const Checker *checker, const Stage *stage, void *to)
{
    (void)to;
    if (stage->layers.count)
        undone_error(checker->diag, stage->layers_at, UNDONE_LAYERS);
    if (stage->recompute)
        undone_error(checker->diag, stage->recompute_at, UNDONE_STAGE_RECOMPUTE);
}

bool strategy_check_done(Diag *diag, const Strategy *strategy)
{
    Checker checker = {.diag = diag, .strategy = strategy};
    int before = diag_errors(diag);
    if (strategy->pipelines.count != 1)
        undone_error(diag, strategy->pipelines.at[1].at, UNDONE_PIPELINES);
    else if (strategy->pipelines.at[0].stages.count != 1)
        undone_error(diag, strategy->pipelines.at[0].at, UNDONE_STAGES);
    else
        for_each_stage(&checker, check_stage_done, NULL);
    if (!strategy->zero && strategy->zero_axes.count)
        diag_error(diag, strategy->zero_axis_at.at[0], "zero 0 cuts nothing, and so names no axes");
    if (strategy->schedule)
        undone_error(diag, strategy->schedule_at, UNDONE_SCHEDULE);
    return diag_errors(diag) == before;
}
