/* Checks a strategy without its model: meshes, axes, splits, `turns`, layers, rows, lengths. */
#include "strategy/parser.h"

#include "layout/layout.h"

#include <string.h>

typedef struct Checker {
    Diag *diag;
    const Strategy *strategy;
    const StrategyNames *names;
} Checker;

/* Calls `visit` for each stage of the strategy, in order. */
static void for_each_stage(const Checker *checker,
                           void visit(const Checker *checker, const Stage *stage, void *to),
                           void *to) {
    const Strategy *strategy = checker->strategy;
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++)
            visit(checker, &strategy->pipelines.at[p].stages.at[s], to);
}

/* ---- meshes ---- */

enum { MOST_WEIGHT = 1 << 20 };

static void check_weights(const Checker *checker, const MeshAxis *axis) {
    int64_t sum = 0;
    bool good = true;
    for (int i = 0; i < axis->count && axis->weights && good; i++)
        good = axis->weights[i] >= 0 && axis->weights[i] <= MOST_WEIGHT &&
               (sum += axis->weights[i]) >= 0;
    if (axis->weights && (!good || !sum))
        diag_error(checker->diag, axis->at,
                   "the weights of the axis \"%s\" must be from 0 to %d, and not all 0", axis->name,
                   MOST_WEIGHT);
}

/* Reports a mesh if the layout_denominators of its axes multiply to more than
 * LAYOUT_MOST_DENOMINATOR: bounds of pieces would not be exact if all axes cut one dimension. */
static void check_denominators(const Checker *checker, const Stage *stage) {
    int64_t product = 1;
    for (int i = 0; i < stage->mesh.count; i++) {
        const MeshAxis *axis = &stage->mesh.at[i];
        int64_t own = layout_denominator(axis->weights, axis->count);
        if (product > LAYOUT_MOST_DENOMINATOR / own) {
            diag_error(checker->diag, axis->at,
                       "the weights of this mesh are too large: the sums of its axes multiply to "
                       "more than 2^62");
            diag_note(checker->diag, axis->at,
                      "smaller weights that are nearly in proportion do as well");
            return;
        }
        product *= own;
    }
}

static void check_mesh(const Checker *checker, const Stage *stage, void *to) {
    (void)to;
    int before = diag_errors(checker->diag);
    double product = 1; // a double, since the product may be too large for an int
    for (int i = 0; i < stage->mesh.count; i++) {
        const MeshAxis *axis = &stage->mesh.at[i];
        check_weights(checker, axis);
        product *= axis->count;
        for (int j = 0; j < i; j++)
            if (!strcmp(axis->name, stage->mesh.at[j].name)) {
                diag_error(checker->diag, axis->at,
                           "the axis \"%s\" stands in this mesh a second time", axis->name);
                diag_note(checker->diag, stage->mesh.at[j].at, "the first one is here");
            }
    }
    if (diag_errors(checker->diag) == before) check_denominators(checker, stage);
    if (product == stage->devices.count) return;
    if (!stage->mesh.count) {
        diag_error(checker->diag, stage->mesh_at,
                   "this stage has %d devices, but no mesh that says how they share the work",
                   stage->devices.count);
        diag_note(checker->diag, stage->mesh_at, "for example: mesh(dp:%d)", stage->devices.count);
    } else {
        diag_error(checker->diag, stage->mesh_at,
                   "the axes of this mesh multiply to %.0f, but its stage has %d device%s", product,
                   stage->devices.count, stage->devices.count == 1 ? "" : "s");
    }
}

/* ---- axes ---- */

typedef struct AxisSearch {
    const char *name;
    bool found;
    const char *names[64]; // names of the first 64 axes, for suggestions
    int count;
} AxisSearch;

static void search_mesh(const Checker *checker, const Stage *stage, void *to) {
    (void)checker;
    AxisSearch *search = to;
    for (int i = 0; i < stage->mesh.count; i++) {
        search->found |= !strcmp(stage->mesh.at[i].name, search->name);
        if (search->count < 64) search->names[search->count++] = stage->mesh.at[i].name;
    }
}

/* Reports an axis, written at `at`, that no mesh of the strategy has. */
static void check_axis_exists(const Checker *checker, const char *axis, Position at) {
    AxisSearch search = {.name = axis};
    for_each_stage(checker, search_mesh, &search);
    if (search.found) return;
    diag_error(checker->diag, at, "no stage of the strategy \"%s\" has a mesh with an axis \"%s\"",
               checker->strategy->name, axis);
    diag_suggest(checker->diag, at, axis, search.names, search.count);
}

static bool split_has(const SplitRule *split, const char *axis) {
    return split && text_find(split->axes, split->axis_count, axis) >= 0;
}

static bool axis_is_used(const Checker *checker, const char *axis) {
    const Strategy *strategy = checker->strategy;
    for (int i = 0; i < strategy->splits.count; i++)
        if (split_has(&strategy->splits.at[i], axis)) return true;
    if (text_find(strategy->zero_axes.at, strategy->zero_axes.count, axis) >= 0) return true;
    return checker->names && checker->names->axis_used &&
           checker->names->axis_used(checker->names->state, axis);
}

static void check_axes_used(const Checker *checker, const Stage *stage, void *to) {
    (void)to;
    for (int i = 0; i < stage->mesh.count; i++)
        if (!axis_is_used(checker, stage->mesh.at[i].name)) {
            diag_error(checker->diag, stage->mesh.at[i].at,
                       "nothing is split along the axis \"%s\"", stage->mesh.at[i].name);
            diag_note(checker->diag, stage->mesh.at[i].at,
                      "say which dimension it cuts, as in: split batch:%s", stage->mesh.at[i].name);
        }
}

SplitRule *strategy_split(const Strategy *strategy, const char *dim) {
    for (int i = 0; i < strategy->splits.count; i++)
        if (!strcmp(strategy->splits.at[i].dim, dim)) return &strategy->splits.at[i];
    return NULL;
}

bool shapes_same(const ShapeValues *a, const ShapeValues *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = !strcmp(a->at[i].name, b->at[i].name) && a->at[i].value == b->at[i].value;
    return same;
}

bool strategy_turns(const Strategy *strategy, const char *dim, const char *axis) {
    for (int i = 0; i < strategy->turns.count; i++)
        if (!strcmp(strategy->turns.at[i].dim, dim) && split_has(&strategy->turns.at[i], axis))
            return true;
    return false;
}

static void check_splits(const Checker *checker) {
    const Strategy *strategy = checker->strategy;
    for (int i = 0; i < strategy->splits.count; i++) {
        const SplitRule *rule = &strategy->splits.at[i];
        for (int j = 0; j < rule->axis_count; j++)
            check_axis_exists(checker, rule->axes[j], rule->axis_at[j]);
        for (int j = 0; j < i; j++)
            if (!strcmp(strategy->splits.at[j].dim, rule->dim)) {
                diag_error(checker->diag, rule->at, "the dimension \"%s\" is split a second time",
                           rule->dim);
                diag_note(checker->diag, strategy->splits.at[j].at,
                          "it is split here already; several axes are written %s:a*b", rule->dim);
            }
    }
    for (int i = 0; i < strategy->zero_axes.count; i++)
        check_axis_exists(checker, strategy->zero_axes.at[i], strategy->zero_axis_at.at[i]);
}

/* Checks `turns` (ring attention): one rule a dimension, whose axes all are in the `split` rule. */
static void check_turns(const Checker *checker) {
    const Strategy *strategy = checker->strategy;
    for (int i = 0; i < strategy->turns.count; i++) {
        const SplitRule *rule = &strategy->turns.at[i],
                        *split = strategy_split(strategy, rule->dim);
        for (int j = 0; j < rule->axis_count; j++)
            if (!split_has(split, rule->axes[j])) {
                diag_error(checker->diag, rule->axis_at[j],
                           "the dimension \"%s\" is not split along the axis \"%s\", so nothing "
                           "could move on in turns",
                           rule->dim, rule->axes[j]);
                diag_note(checker->diag, split->at,
                          "it is split here; several axes are written %s:a*b", rule->dim);
            }
        for (int j = 0; j < i; j++)
            if (!strcmp(strategy->turns.at[j].dim, rule->dim)) {
                diag_error(checker->diag, rule->at, "the dimension \"%s\" has turns a second time",
                           rule->dim);
                diag_note(checker->diag, strategy->turns.at[j].at,
                          "it has them here already; several axes are written %s:a*b", rule->dim);
            }
    }
}

/* ---- pipelines ---- */

/* Reports the pipelines without rows(...) of a strategy with several pipelines. */
static void check_rows_said(const Checker *checker) {
    const Strategy *strategy = checker->strategy;
    for (int i = 0; i < strategy->pipelines.count && strategy->pipelines.count > 1; i++)
        if (!strategy->pipelines.at[i].rows) {
            diag_error(checker->diag, strategy->pipelines.at[i].at,
                       "where there are several pipelines, each says its rows(...)");
            diag_note(checker->diag, strategy->pipelines.at[i].at,
                      "of one micro-batch, as in: pipeline microbatches(8) rows(4)");
        }
}

static bool ranges_meet(const LayerRange *a, const LayerRange *b) {
    if (!text_same(a->tower, b->tower) || !a->name != !b->name) return false;
    return a->name ? !strcmp(a->name, b->name) : a->first <= b->last && b->first <= a->last;
}

static void check_layers_meet(const Checker *checker, const LayerRange *first,
                              const LayerRange *second) {
    if (!ranges_meet(first, second)) return;
    if (second->name)
        diag_error(checker->diag, second->at, "the layer \"%s\" is claimed twice", second->name);
    else
        diag_error(checker->diag, second->at, "layer %lld is claimed twice",
                   (long long)(first->first > second->first ? first->first : second->first));
    diag_note(checker->diag, first->at, "it is claimed here already");
}

/* Reports layers of item `end` of a stage's list that an earlier item of the pipeline has, too. */
static void check_range(const Checker *checker, const Pipeline *pipeline, int stage, int end) {
    const LayerRange *range = &pipeline->stages.at[stage].layers.at[end];
    for (int s = 0; s <= stage; s++)
        for (int i = 0; i < (s < stage ? pipeline->stages.at[s].layers.count : end); i++)
            check_layers_meet(checker, &pipeline->stages.at[s].layers.at[i], range);
}

static void check_pipeline(const Checker *checker, const Pipeline *pipeline) {
    if (!pipeline->stages.count)
        diag_error(checker->diag, pipeline->at, "this pipeline has no stage");
    for (int s = 0; s < pipeline->stages.count; s++) {
        const Stage *stage = &pipeline->stages.at[s];
        if (!stage->layers.count && pipeline->stages.count > 1)
            diag_error(checker->diag, stage->at,
                       "where a pipeline has several stages, each says its layers(...)");
        for (int i = 0; i < stage->layers.count; i++) check_range(checker, pipeline, s, i);
    }
}

static void check_zero(const Checker *checker) {
    const Strategy *strategy = checker->strategy;
    if (!strategy->zero && strategy->zero_axes.count)
        diag_error(checker->diag, strategy->zero_axis_at.at[0],
                   "zero 0 cuts nothing, and so names no axes");
}

bool strategy_has_lengths(const Strategy *strategy) {
    bool has = false;
    for (int i = 0; i < strategy->pipelines.count; i++)
        has |= strategy->pipelines.at[i].lengths.count > 0;
    return has;
}

/* Reports a pipeline with padding lengths in a strategy with `turns` (ring attention). */
static void check_lengths(const Checker *checker) {
    for (int i = 0; i < checker->strategy->pipelines.count && checker->strategy->turns.count; i++) {
        const Pipeline *pipeline = &checker->strategy->pipelines.at[i];
        if (!pipeline->lengths.count) continue;
        diag_error(checker->diag, pipeline->lengths.at[0].at,
                   "pipelines of a strategy with \"turns\" have no lengths of their own");
        diag_note(checker->diag, checker->strategy->turns.at[0].at,
                  "the turns are here; \"split\" alone gathers the pieces instead");
        return;
    }
}

bool strategy_check(Diag *diag, const Strategy *strategy, const StrategyNames *names) {
    Checker checker = {diag, strategy, names};
    int before = diag_errors(diag);
    check_splits(&checker);
    check_turns(&checker);
    // after an error, an axis may seem unused only because a split misspells it
    if (diag_errors(diag) == before) for_each_stage(&checker, check_axes_used, NULL);
    for_each_stage(&checker, check_mesh, NULL);
    if (!strategy_has_classes(strategy)) strategy_check_devices(diag, strategy);
    for (int i = 0; i < strategy->pipelines.count; i++)
        check_pipeline(&checker, &strategy->pipelines.at[i]);
    check_rows_said(&checker);
    check_zero(&checker);
    check_lengths(&checker);
    return diag_errors(diag) == before;
}
