/* Forms other groups of devices, by the planner malleus (planner/kinds/malleus).
 *
 * Malleus expects groups of a power of two of equal units, each on one host, and equal
 * micro-batches. A stage whose mesh has a data-parallel axis, one that cuts rows alone, stands for
 * several pipelines. A smaller group drops the outer axes of its mesh first. Malleus decides which
 * devices form which stages; layers and rows are then shared out by the model's work. */
#include "planner/rebalance/candidates.h"
#include "planner/kinds/input.h"
#include "planner/kinds/malleus/malleus.h"

#include <math.h>

/* The input of malleus, and the layout model from which the input is made. */
typedef struct Regrouping {
    Arena *arena;
    const LayoutModel *now;
    const double *rates;
    int unit, tp; // devices of a unit; units of a whole group
    int pipelines;
    int64_t rows, microbatches; // rows of a micro-batch; micro-batches of the step
    bool whole;                 // every pipeline is one stage with one micro-batch
    ModelStage like; // a stage with the mesh of a whole group, without axes that cut rows
    int stages;      // the most stages of a pipeline in the layout `now`
} Regrouping;

static bool is_rows(const LayoutModel *laid, const MeshAxis *axis) {
    return model_cuts_rows(laid->work, laid->like, axis->name);
}

/* Returns how many pipelines a stage stands for. */
static int count_copies(const LayoutModel *laid, const ModelStage *stage) {
    int count = 1;
    for (int a = 0; a < stage->mesh.count; a++)
        count *= is_rows(laid, &stage->mesh.at[a]) ? stage->mesh.at[a].count : 1;
    return count;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* Sets r->like to the mesh of a stage if its group or its number of axes is the largest so far.
 * Axes that cut rows stay with a count of one, since split rules of the strategy name them. */
static void take_mesh(Regrouping *r, const ModelStage *stage) {
    ModelStage like = {.recompute = stage->recompute, .count = 1};
    for (int a = 0; a < stage->mesh.count; a++) {
        MeshAxis axis = stage->mesh.at[a];
        axis.weights = NULL;
        axis.count = is_rows(r->now, &axis) ? 1 : axis.count;
        array_push(r->arena, &like.mesh, axis);
        like.count *= axis.count;
    }
    if (like.count > r->like.count || like.mesh.count > r->like.mesh.count) r->like = like;
}

/* Reads a pipeline's groups, rows and micro-batches. Returns false if malleus cannot plan them. */
static bool take_pipeline(Regrouping *r, const ModelPipeline *pipeline) {
    int copies = count_copies(r->now, &pipeline->stages[0]);
    for (int s = 0; s < pipeline->stage_count; s++) {
        if (count_copies(r->now, &pipeline->stages[s]) != copies) return false;
        take_mesh(r, &pipeline->stages[s]);
    }
    if (pipeline->rows % copies || pipeline->lengths.count) return false;
    r->pipelines += copies;
    r->rows = common_divisor(pipeline->rows / copies, r->rows);
    r->microbatches += pipeline->rows * pipeline->microbatches;
    r->stages = pipeline->stage_count > r->stages ? pipeline->stage_count : r->stages;
    return true;
}

/* Finds the unit of groups: the odd factor of the largest group's size. Returns false unless the
 * unit is 1 and the size of each group is a power of two. */
static bool find_unit(Regrouping *r) {
    r->unit = r->like.count;
    while (r->unit % 2 == 0) r->unit /= 2;
    r->tp = r->like.count / r->unit;
    for (int p = 0; p < r->now->pipeline_count; p++)
        for (int s = 0; s < r->now->pipelines[p].stage_count; s++) {
            int own = r->now->pipelines[p].stages[s].count /
                      count_copies(r->now, &r->now->pipelines[p].stages[s]);
            if (own % r->unit || (own / r->unit & (own / r->unit - 1))) return false;
        }
    return r->unit == 1; // a unit of several devices with different rates is not supported
}

static bool describe(Regrouping *r) {
    const LayoutModel *now = r->now;
    bool copies = false;
    for (int p = 0; p < now->pipeline_count; p++) {
        if (!take_pipeline(r, &now->pipelines[p])) return false;
        copies |= count_copies(now, &now->pipelines[p].stages[0]) > 1;
    }
    if (!find_unit(r) || (copies && now->like->zero > 1)) return false;
    r->whole = now->whole;
    r->rows = r->whole ? now->work->unit : r->rows;
    r->microbatches /= r->rows;
    return r->rows > 0 && r->rows % now->work->unit == 0 && r->microbatches >= r->pipelines;
}

/* ---- the input of malleus ---- */

/* Returns the devices' rates by node: by host if each holds a whole group, else in one node. */
static json_t *rates_json(const Regrouping *r) {
    int devices = r->now->work->device_count,
        hosts = r->tp <= devices / r->now->work->hosts ? r->now->work->hosts : 1;
    json_t *nodes = json_array();
    for (int h = 0; h < hosts; h++) {
        json_t *node = json_array();
        for (int d = h * (devices / hosts); d < (h + 1) * (devices / hosts); d++)
            json_array_append_new(node, json_real(r->rates[d]));
        json_array_append_new(nodes, node);
    }
    return nodes;
}

static json_t *slowdown_json(const Regrouping *r) {
    json_t *list = json_array();
    for (int size = r->tp; size; size /= 2)
        json_array_append_new(list, json_real((double)r->tp / size));
    return list;
}

/* Returns memory numbers without a bound; hetucc itself checks the devices' memory. */
static json_t *memory_json(int stages) {
    json_t *per_layer = json_array();
    for (int s = 0; s < stages; s++) json_array_append_new(per_layer, json_real(1));
    return json_pack("{s:o,s:f,s:f,s:f,s:f}", "per_layer", per_layer, "ends", 0.0, "extra", 0.0,
                     "bound", 1e12, "gap", 0.0);
}

/* Returns the most stages that a new pipeline may have: 1 if all pipelines of `now` have 1; else
 * one more than the longest pipeline of `now`, but at most one for each layer. */
static int most_stages(const Regrouping *r) {
    int layers = r->now->work->count;
    return r->stages == 1 ? 1 : r->stages + 1 < layers ? r->stages + 1 : layers;
}

static json_t *input_json(const Regrouping *r) {
    return json_pack("{s:o,s:i,s:o,s:i,s:i,s:i,s:o}", "rates", rates_json(r), "tp", r->tp,
                     "slowdown", slowdown_json(r), "pipelines", r->pipelines, "layers",
                     r->now->work->count, "microbatches", (int)r->microbatches, "memory",
                     memory_json(most_stages(r)));
}

/* Returns a budget of the steps that take 1/40 s for each device. The clock allows 60 s more. */
static Budget search_budget(const Regrouping *r) {
    Budget budget = budget_begin(0.025 * r->now->work->device_count);
    budget.begin.tv_sec += 60;
    return budget;
}

/* ---- the layout of malleus's plan ---- */

/* Sets the mesh of a group of `count` devices; a smaller group drops the outer axes first. */
static void shrink_mesh(const Regrouping *r, ModelStage *stage, int count) {
    int left = count;
    stage->recompute = r->like.recompute;
    for (int a = r->like.mesh.count - 1; a >= 0; a--) {
        int own = (int)common_divisor(left, r->like.mesh.at[a].count);
        MeshAxis axis = r->like.mesh.at[a];
        axis.count = own;
        left /= own;
        array_push(r->arena, &stage->mesh, axis);
    }
    for (int i = 0, k = stage->mesh.count - 1; i < k; i++, k--) {
        MeshAxis swap = stage->mesh.at[i];
        stage->mesh.at[i] = stage->mesh.at[k];
        stage->mesh.at[k] = swap;
    }
}

static ModelStage stage_from(const Regrouping *r, const json_t *plan) {
    const json_t *devices = json_object_get(plan, "devices");
    ModelStage stage = {.count = (int)json_array_size(devices),
                        .layers = arena_array(r->arena, int, r->now->work->count)};
    stage.devices = arena_array(r->arena, int, stage.count);
    for (int i = 0; i < stage.count; i++)
        stage.devices[i] = (int)json_integer_value(json_array_get(devices, (size_t)i));
    shrink_mesh(r, &stage, stage.count);
    return stage;
}

static ModelPipeline pipeline_from(const Regrouping *r, const json_t *plan) {
    const json_t *stages = json_object_get(plan, "stages");
    int64_t microbatches = json_integer_value(json_object_get(plan, "microbatches"));
    ModelPipeline pipeline = {.microbatches = r->whole ? 1 : microbatches,
                              .rows = r->whole ? microbatches * r->rows : r->rows,
                              .length = 1,
                              .stage_count = (int)json_array_size(stages)};
    pipeline.stages = arena_array(r->arena, ModelStage, pipeline.stage_count);
    int layer = 0;
    for (int s = 0; s < pipeline.stage_count; s++) {
        const json_t *stage = json_array_get(stages, (size_t)s);
        pipeline.stages[s] = stage_from(r, stage);
        pipeline.stages[s].layer_count = (int)json_integer_value(json_object_get(stage, "layers"));
        for (int l = 0; l < pipeline.stages[s].layer_count; l++)
            pipeline.stages[s].layers[l] = layer++;
    }
    return pipeline;
}

static LayoutModel *laid_from(const Regrouping *r, const json_t *plan) {
    const json_t *pipelines = json_object_get(plan, "pipelines");
    LayoutModel *laid = arena_copy(r->arena, r->now, sizeof *r->now);
    laid->pipeline_count = (int)json_array_size(pipelines);
    laid->pipelines = arena_array(r->arena, ModelPipeline, laid->pipeline_count);
    laid->fill = r->now->ranges ? 1 : r->now->fill;
    laid->whole = r->whole;
    for (int p = 0; p < laid->pipeline_count; p++)
        laid->pipelines[p] = pipeline_from(r, json_array_get(pipelines, (size_t)p));
    layout_model_settle_work(r->arena, laid, r->rates);
    return laid;
}

LayoutModel *candidate_regrouped(Arena *arena, const LayoutModel *now, const double *rates,
                                 int fewer) {
    Regrouping r = {.arena = arena, .now = now, .rates = rates};
    if (!describe(&r) || r.pipelines <= fewer) return NULL;
    r.pipelines -= fewer;
    Budget budget = search_budget(&r);
    Field input = input_of(arena, input_json(&r), "malleus");
    json_t *plan = malleus_plan(arena, input, &budget);
    LayoutModel *laid = plan && !input_error(input) ? laid_from(&r, plan) : NULL;
    json_decref(plan);
    input_close(input);
    return laid;
}
