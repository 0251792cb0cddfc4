/* Predicts the step time of a strategy at given rates, and the bytes that a switch moves. */
#include "planner/rebalance/layout_model.h"

#include <math.h>
#include <string.h>

/* ---- making a layout model from a strategy ---- */

static bool in_range(const LayerRange *range, const Layer *layer) {
    if (!layer || (range->tower != layer->tower &&
                   (!range->tower || !layer->tower || strcmp(range->tower, layer->tower))))
        return false;
    if (range->name || layer->name)
        return range->name && layer->name && !strcmp(range->name, layer->name);
    return layer->number >= range->first && layer->number <= range->last;
}

/* Sets the layers of a pipeline's stages by their lists. A layer that no list names joins the stage
 * of the layer before it, or the first stage. */
static void take_layers(const ModelWork *work, const Pipeline *pipeline, ModelPipeline *laid) {
    int last = 0;
    for (int l = 0; l < work->count; l++) {
        for (int s = 0; s < pipeline->stages.count; s++)
            for (int i = 0; i < pipeline->stages.at[s].layers.count; i++)
                if (in_range(&pipeline->stages.at[s].layers.at[i], work->layers[l])) last = s;
        ModelStage *stage = &laid->stages[last];
        stage->layers[stage->layer_count++] = l;
    }
}

static ModelStage take_stage(Arena *arena, const ModelWork *work, const Stage *stage) {
    ModelStage laid = {.count = stage->devices.count,
                       .recompute = stage->recompute,
                       .layers = arena_array(arena, int, work->count)};
    laid.devices = arena_copy(arena, stage->devices.at, sizeof(int) * (size_t)stage->devices.count);
    for (int a = 0; a < stage->mesh.count; a++) array_push(arena, &laid.mesh, stage->mesh.at[a]);
    return laid;
}

/* Returns the fraction of its rows' length that a pipeline reads. */
static double length_of(const Strategy *strategy, const Pipeline *pipeline) {
    double length = 1;
    for (int i = 0; i < pipeline->lengths.count; i++)
        for (int k = 0; k < strategy->shapes.count; k++)
            if (!strcmp(strategy->shapes.at[k].name, pipeline->lengths.at[i].name) &&
                strategy->shapes.at[k].value > 0)
                length *=
                    (double)pipeline->lengths.at[i].value / (double)strategy->shapes.at[k].value;
    return length;
}

static void take_pipeline(Arena *arena, const ModelWork *work, const Strategy *strategy,
                          const Pipeline *pipeline, ModelPipeline *laid) {
    *laid = (ModelPipeline){.microbatches = pipeline->microbatches,
                            .rows = pipeline->rows ? pipeline->rows
                                                   : work->batch / pipeline->microbatches,
                            .length = length_of(strategy, pipeline),
                            .lengths = pipeline->lengths,
                            .stage_count = pipeline->stages.count,
                            .stages = arena_array(arena, ModelStage, pipeline->stages.count)};
    for (int s = 0; s < pipeline->stages.count; s++)
        laid->stages[s] = take_stage(arena, work, &pipeline->stages.at[s]);
    take_layers(work, pipeline, laid);
}

/* Returns the number of ranges of layers of the stage that has most. */
static int most_ranges(const Strategy *strategy) {
    int most = 1;
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            int own = 0;
            for (int i = 0; i < strategy->pipelines.at[p].stages.at[s].layers.count; i++)
                own += !strategy->pipelines.at[p].stages.at[s].layers.at[i].name;
            most = own > most ? own : most;
        }
    return most;
}

static double fill_of(const ModelWork *work, const Strategy *strategy) {
    switch (strategy_schedule(strategy)) {
    case SCHEDULE_INTERLEAVED: return 1.0 / most_ranges(strategy);
    case SCHEDULE_ZERO_BUBBLE: return fmax(0, 1 - 2 * work->weights);
    default: return 1;
    }
}

LayoutModel *layout_model_of(Arena *arena, const ModelWork *work, const Strategy *strategy,
                             const char **why) {
    LayoutModel *laid = arena_new(arena, LayoutModel);
    *laid =
        (LayoutModel){.like = strategy,
                      .work = work,
                      .fill = fill_of(work, strategy),
                      .ranges = strategy_schedule(strategy) == SCHEDULE_INTERLEAVED,
                      .whole = true,
                      .pipeline_count = strategy->pipelines.count,
                      .pipelines = arena_array(arena, ModelPipeline, strategy->pipelines.count)};
    if (!work->batch || strategy->optimizer) {
        *why = strategy->optimizer ? "states that lie as under another strategy stay there"
                                   : "the model has no input with rows";
        return NULL;
    }
    for (int p = 0; p < laid->pipeline_count; p++) {
        take_pipeline(arena, work, strategy, &strategy->pipelines.at[p], &laid->pipelines[p]);
        laid->whole &= laid->pipelines[p].stage_count == 1 && laid->pipelines[p].microbatches == 1;
    }
    return laid;
}

LayoutModel *layout_model_copy(Arena *arena, const LayoutModel *laid) {
    LayoutModel *copy = arena_copy(arena, laid, sizeof *laid);
    copy->pipelines =
        arena_copy(arena, laid->pipelines, sizeof *laid->pipelines * (size_t)laid->pipeline_count);
    for (int p = 0; p < copy->pipeline_count; p++) {
        ModelPipeline *pipeline = &copy->pipelines[p];
        pipeline->stages = arena_copy(arena, pipeline->stages,
                                      sizeof *pipeline->stages * (size_t)pipeline->stage_count);
        for (int s = 0; s < pipeline->stage_count; s++) {
            ModelStage *stage = &pipeline->stages[s];
            stage->devices = arena_copy(arena, stage->devices, sizeof(int) * (size_t)stage->count);
            stage->layers =
                arena_copy(arena, stage->layers, sizeof(int) * (size_t)laid->work->count);
        }
    }
    return copy;
}

/* ---- making a strategy from a layout model ---- */

/* Appends a layer to a stage's list: extends the last range where the layer continues it. */
static void add_layer(Arena *arena, Stage *stage, const Layer *layer) {
    LayerRange *last = stage->layers.count ? &stage->layers.at[stage->layers.count - 1] : NULL;
    bool same = last && !last->name && !layer->name &&
                (last->tower == layer->tower ||
                 (last->tower && layer->tower && !strcmp(last->tower, layer->tower)));
    if (same && layer->number == last->last + 1) last->last++;
    else
        array_push(arena, &stage->layers,
                   (LayerRange){.tower = layer->tower,
                                .name = layer->name,
                                .first = layer->number,
                                .last = layer->number});
}

static Stage make_stage(Arena *arena, const LayoutModel *laid, const ModelPipeline *pipeline,
                        const ModelStage *from) {
    Stage stage = {.recompute = from->recompute};
    for (int i = 0; i < from->count; i++) {
        array_push(arena, &stage.devices, from->devices[i]);
        array_push(arena, &stage.device_class, NULL);
    }
    for (int a = 0; a < from->mesh.count; a++) array_push(arena, &stage.mesh, from->mesh.at[a]);
    for (int l = 0; l < from->layer_count && pipeline->stage_count > 1; l++)
        add_layer(arena, &stage, laid->work->layers[from->layers[l]]);
    return stage;
}

static void list_idle(Arena *arena, Strategy *strategy, int device_count) {
    bool *used = arena_array(arena, bool, device_count);
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++)
            for (int i = 0; i < strategy->pipelines.at[p].stages.at[s].devices.count; i++)
                used[strategy->pipelines.at[p].stages.at[s].devices.at[i]] = true;
    for (int d = 0; d < device_count; d++)
        if (!used[d]) {
            array_push(arena, &strategy->idle, d);
            array_push(arena, &strategy->idle_class, NULL);
        }
}

Strategy *layout_model_strategy(Arena *arena, const LayoutModel *laid, const char *name) {
    Strategy *strategy = arena_copy(arena, laid->like, sizeof *laid->like);
    strategy->name = name;
    strategy->schedule = laid->ranges ? NULL : laid->like->schedule;
    memset(&strategy->pipelines, 0, sizeof strategy->pipelines);
    memset(&strategy->idle, 0, sizeof strategy->idle);
    memset(&strategy->idle_class, 0, sizeof strategy->idle_class);
    for (int p = 0; p < laid->pipeline_count; p++) {
        const ModelPipeline *from = &laid->pipelines[p];
        Pipeline pipeline = {
            .microbatches = from->microbatches, .rows = from->rows, .lengths = from->lengths};
        for (int s = 0; s < from->stage_count; s++)
            array_push(arena, &pipeline.stages, make_stage(arena, laid, from, &from->stages[s]));
        array_push(arena, &strategy->pipelines, pipeline);
    }
    list_idle(arena, strategy, laid->work->device_count);
    return strategy;
}

/* ---- a device's shares of work and parameters ---- */

static double weight_of(const MeshAxis *axis, int first, int end) {
    double sum = 0;
    for (int i = first; i < end; i++) sum += axis->weights ? (double)axis->weights[i] : 1;
    return sum;
}

/* Returns the fraction of an axis that coordinate c has; if `rows` > 0, in whole rows of `rows`. */
static double part_of(const MeshAxis *axis, int c, int64_t rows) {
    double all = weight_of(axis, 0, axis->count), low = weight_of(axis, 0, c) / all,
           high = weight_of(axis, 0, c + 1) / all;
    if (!rows) return high - low;
    return (floor((double)rows * high + 1e-9) - floor((double)rows * low + 1e-9)) / (double)rows;
}

/* Returns the coordinate of device `index` of a stage along axis number `axis`. */
static int coordinate(const ModelStage *stage, int index, int axis) {
    for (int a = stage->mesh.count - 1; a > axis; a--) index /= stage->mesh.at[a].count;
    return index % stage->mesh.at[axis].count;
}

/* Returns the part of a stage's work that its device `index` does, at `rows` rows a micro-batch. */
static double layout_model_share(const LayoutModel *laid, const ModelStage *stage, int64_t rows,
                                 int index) {
    double share = 1;
    bool cut = false;
    for (int a = 0; a < stage->mesh.count; a++) {
        const MeshAxis *axis = &stage->mesh.at[a];
        bool own = !cut && model_cuts_rows(laid->work, laid->like, axis->name);
        int c = coordinate(stage, index, a);
        share *= own ? part_of(axis, c, rows)
                 : model_cuts_rows(laid->work, laid->like, axis->name)
                     ? part_of(axis, c, 0)
                     : model_part(laid->work, laid->like, axis, c);
        cut |= own;
    }
    return share;
}

/* Sets the slice [*low, *high) of [0, 1) that device `index` of a stage holds of a parameter. */
static void layout_model_slice(const LayoutModel *laid, const ModelStage *stage, int index,
                               double *low, double *high) {
    *low = 0;
    *high = 1;
    for (int a = 0; a < stage->mesh.count; a++) {
        const MeshAxis *axis = &stage->mesh.at[a];
        if (model_cuts_rows(laid->work, laid->like, axis->name)) continue;
        int c = coordinate(stage, index, a);
        double all = weight_of(axis, 0, axis->count), wide = *high - *low;
        *high = *low + wide * weight_of(axis, 0, c + 1) / all;
        *low += wide * weight_of(axis, 0, c) / all;
    }
}

/* ---- times of pipelines and steps ---- */

static double layers_work(const LayoutModel *laid, const ModelStage *stage) {
    double sum = 0;
    for (int l = 0; l < stage->layer_count; l++) sum += laid->work->work[stage->layers[l]];
    return sum;
}

double layout_model_rate(const LayoutModel *laid, const ModelPipeline *pipeline,
                         const ModelStage *stage, const double *rates) {
    double most = 0;
    for (int i = 0; i < stage->count; i++)
        most = fmax(most,
                    layout_model_share(laid, stage, pipeline->rows, i) * rates[stage->devices[i]]);
    return most * pipeline->length;
}

double layout_model_pipeline_time(const LayoutModel *laid, const ModelPipeline *pipeline,
                                  const double *rates, int64_t microbatches) {
    double sum = 0, most = 0;
    for (int s = 0; s < pipeline->stage_count; s++) {
        double own = (double)pipeline->rows * layers_work(laid, &pipeline->stages[s]) *
                     layout_model_rate(laid, pipeline, &pipeline->stages[s], rates);
        sum += own;
        most = fmax(most, own);
    }
    return (double)microbatches * most + laid->fill * (sum - most);
}

double layout_model_time(const LayoutModel *laid, const double *rates) {
    double slowest = 0;
    for (int p = 0; p < laid->pipeline_count; p++)
        slowest = fmax(slowest, layout_model_pipeline_time(laid, &laid->pipelines[p], rates,
                                                           laid->pipelines[p].microbatches));
    return slowest;
}

double *layout_model_work(Arena *arena, const LayoutModel *laid) {
    double *work = arena_array(arena, double, laid->work->device_count);
    for (int p = 0; p < laid->pipeline_count; p++) {
        const ModelPipeline *pipeline = &laid->pipelines[p];
        for (int s = 0; s < pipeline->stage_count; s++)
            for (int i = 0; i < pipeline->stages[s].count; i++) {
                int device = pipeline->stages[s].devices[i];
                work[device] = (double)(pipeline->rows * pipeline->microbatches) *
                               pipeline->length * layers_work(laid, &pipeline->stages[s]) *
                               layout_model_share(laid, &pipeline->stages[s], pipeline->rows, i) *
                               laid->work->slow[device];
            }
    }
    return work;
}

/* ---- bytes that a switch moves ---- */

/* Returns a device's stage, sets *index to the device's index in the stage; NULL: it is idle. */
static const ModelStage *stage_of(const LayoutModel *laid, int device, int *index) {
    for (int p = 0; p < laid->pipeline_count; p++)
        for (int s = 0; s < laid->pipelines[p].stage_count; s++)
            for (int i = 0; i < laid->pipelines[p].stages[s].count; i++)
                if (laid->pipelines[p].stages[s].devices[i] == device) {
                    *index = i;
                    return &laid->pipelines[p].stages[s];
                }
    return NULL;
}

/* Returns the bytes of the layers that both stages have. */
static double common_bytes(const LayoutModel *laid, const ModelStage *a, const ModelStage *b) {
    double sum = 0;
    for (int i = 0, k = 0; i < a->layer_count && k < b->layer_count;) {
        if (a->layers[i] == b->layers[k]) sum += laid->work->bytes[a->layers[i]];
        int step = a->layers[i] - b->layers[k];
        i += step <= 0;
        k += step >= 0;
    }
    return sum;
}

double layout_model_moves(const LayoutModel *from, const LayoutModel *to) {
    double moved = 0;
    for (int p = 0; p < to->pipeline_count; p++)
        for (int s = 0; s < to->pipelines[p].stage_count; s++) {
            const ModelStage *stage = &to->pipelines[p].stages[s];
            for (int i = 0; i < stage->count; i++) {
                double low, high, old_low, old_high;
                int index = 0;
                const ModelStage *old = stage_of(from, stage->devices[i], &index);
                layout_model_slice(to, stage, i, &low, &high);
                moved += common_bytes(to, stage, stage) * (high - low);
                if (!old) continue;
                layout_model_slice(from, old, index, &old_low, &old_high);
                moved -= common_bytes(to, stage, old) *
                         fmax(0, fmin(high, old_high) - fmax(low, old_low));
            }
        }
    return moved;
}
