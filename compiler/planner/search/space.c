/* Lists the shapes of one pipeline: numbers of stages, orders of classes, degrees, rows. */
#include "planner/search/space.h"
#include "planner/search/layers_on_stages.h"
#include "planner/search/devices.h"
#include "planner/search/evaluate.h"
#include "planner/search/layer_costs.h"
#include "planner/search/search_model.h"

#include <math.h>

/* ANY_OF_ONE: most devices of a cluster of one class for which strategies may use any number of
 * devices. ANY_OF_MORE: the same for clusters of several classes. */
enum { ANY_OF_ONE = 16, ANY_OF_MORE = 6 };

/* ---- shapes ---- */

typedef struct Shaper {
    Arena *arena;
    const Profile *profile;
    int group_count;
    const int *groups; // the groups in the order of the pipeline
    ArrangementList list;
    bool whole; // all devices of each group are used
    bool any;   // any number of each group's devices may be used
} Shaper;

static int power_below(int count) {
    int power = 1;
    while (power * 2 < count) power *= 2;
    return power;
}

/* Adds the shapes that complete `shape` by choices for the classes from groups[at] on. */
static void add_shapes(Shaper *shaper, Arrangement *shape, int at) {
    const Fleet *devices = shaper->profile->context->devices;
    int layers = shaper->profile->context->model->layer_count, any = 0;
    if (at >= shaper->group_count || at >= GROUPS_MOST) {
        for (int i = 0; i < shape->count; i++) any += shape->used[shape->order[i]];
        if (any) array_push(shaper->arena, &shaper->list, *shape);
        return;
    }
    int group = shaper->groups[at], count = devices->groups[group].count, half = power_below(count);
    shape->order[at] = group;
    shape->count = shaper->group_count;
    for (int used = count; used >= 0; used = shaper->any                     ? used - 1
                                             : used == count && half < count ? half
                                             : used                          ? 0
                                                                             : -1) {
        if (shaper->whole && used != count) break;
        shape->used[group] = used;
        for (int stages = 1; stages <= (used ? used : 1) && (stages == 1 || stages <= layers);
             stages++)
            for (int tensor = 1; tensor <= (used ? profile_most_tensor(shaper->profile, group) : 1);
                 tensor++) {
                if (used % (stages * tensor)) continue;
                shape->stages[group] = stages;
                shape->tensor[group] = tensor;
                add_shapes(shaper, shape, at + 1);
            }
    }
}

/* Returns whether a shape has the order of classes that is kept among equivalent orders: idle
 * classes are at the end, in ascending order. */
static bool is_canonical(const Arrangement *shape) {
    for (int i = 0; i + 1 < shape->count; i++) {
        int a = shape->order[i], b = shape->order[i + 1];
        if (!shape->used[a] && (shape->used[b] || a > b)) return false;
    }
    return true;
}

/* Adds the shapes of every order of `count` classes that begins with order[0] to order[at - 1]. */
static void add_orders(Shaper *shaper, int *order, int at, int count) {
    if (at == count) {
        Arrangement shape = {.count = 0};
        shaper->groups = order;
        shaper->group_count = count;
        add_shapes(shaper, &shape, 0);
        return;
    }
    for (int i = at; i < count; i++) {
        int kept = order[at];
        order[at] = order[i];
        order[i] = kept;
        add_orders(shaper, order, at + 1, count);
        order[i] = order[at];
        order[at] = kept;
    }
}

ArrangementList shapes_all(Arena *arena, const Profile *profile) {
    int count = profile->context->devices->group_count, order[GROUPS_MOST], kept = 0;
    Shaper shaper = {.arena = arena, .profile = profile};
    count = count < GROUPS_MOST ? count : GROUPS_MOST;
    shaper.any = profile->context->devices->count <= (count == 1 ? ANY_OF_ONE : ANY_OF_MORE);
    for (int g = 0; g < count; g++) order[g] = g;
    add_orders(&shaper, order, 0, count);
    for (int i = 0; i < shaper.list.count; i++)
        if (is_canonical(&shaper.list.at[i])) shaper.list.at[kept++] = shaper.list.at[i];
    shaper.list.count = kept;
    if (profile->context->devices->group_count > 1) {
        ArrangementList pooled =
            shapes_of_group(arena, profile, profile->context->devices->group_count);
        for (int i = 0; i < pooled.count && profile->context->devices->group_count <= GROUPS_MOST;
             i++)
            array_push(arena, &shaper.list, pooled.at[i]);
    }
    return shaper.list;
}

ArrangementList shapes_of_group(Arena *arena, const Profile *profile, int group) {
    Shaper shaper = {.arena = arena, .profile = profile, .group_count = 1, .groups = &group};
    shaper.any = group == profile->context->devices->group_count &&
                 profile->context->devices->count <= ANY_OF_ONE;
    shaper.whole = !shaper.any;
    Arrangement shape = {.count = 0};
    add_shapes(&shaper, &shape, 0);
    return shaper.list;
}

/* ---- rows of micro-batches ---- */

RowList rows_all(Arena *arena, const Profile *profile, int64_t batch) {
    const SearchModel *model = profile->context->model;
    RowList list = {0};
    if (!model->trains || !model->batch) {
        array_push(arena, &list, (int64_t)0);
        return list;
    }
    for (int64_t rows = profile->cuts ? model->unit : batch; rows <= batch; rows += model->unit)
        if (batch % rows == 0) array_push(arena, &list, rows);
    return list;
}

double device_rows(const SearchModel *model, int64_t rows, int data) {
    double units = (double)(rows ? rows : model->batch) / (double)model->unit;
    return ceil(units / data) * (double)model->unit;
}

/* ---- pipeline plans and estimates ---- */

/* Finds the slowest link along dp and the link to the next stage, for each stage. */
static void find_links(const Profile *profile, PipelinePlan *plan) {
    const Fleet *devices = profile->context->devices;
    for (int s = 0; s < plan->stage_count; s++) {
        SearchStage *stage = &plan->stages[s].stage;
        int list[256], count = 0;
        for (int i = 0; i < stage->device_count && count < 256; i += stage->tensor)
            list[count++] = stage->devices[i];
        plan->stages[s].link = uplinks_shared(devices->cluster, devices_link(devices, list, count),
                                              stage->devices, stage->device_count, stage->tensor);
        if (s + 1 < plan->stage_count)
            plan->stages[s].ahead =
                cluster_link(devices->cluster, stage->devices[stage->device_count - 1],
                             plan->stages[s + 1].stage.devices[0]);
    }
}

/* Adds the stages of one class to a plan. Returns false for too many stages or too few rows. */
static bool add_stages(Profile *profile, const Choice *choice, int group, PipelinePlan *plan) {
    const SearchModel *model = profile->context->model;
    const DeviceGroup *devices = &profile->context->devices->groups[group];
    int stages = choice->shape.stages[group], count = choice->shape.used[group] / stages,
        tensor = choice->shape.tensor[group];
    int64_t rows = choice->rows ? choice->rows : model->batch;
    if (plan->stage_count + stages > STAGE_MOST) return false;
    if (count / tensor > 1 && (!model->batch_dim || rows / model->unit < count / tensor))
        return false;
    const Costs *costs =
        profile_costs(profile, group, tensor, device_rows(model, choice->rows, count / tensor));
    for (int s = 0; s < stages; s++)
        plan->stages[plan->stage_count++] =
            (StagePlan){.stage = {.device_count = count,
                                  .devices = devices->devices + s * count,
                                  .data = count / tensor,
                                  .tensor = tensor},
                        .costs = costs,
                        .memory = devices->memory ? (double)devices->memory : (double)INFINITY};
    return true;
}

bool choice_plan(Profile *profile, const Correction *correction, Choice *choice,
                 PipelinePlan *plan) {
    plan->stage_count = 0;
    plan->zero = choice->zero;
    plan->microbatches = choice->rows ? choice->batch / choice->rows : 1;
    bool copies = false;
    for (int i = 0; i < choice->shape.count; i++) {
        int group = choice->shape.order[i];
        if (choice->shape.used[group] && !add_stages(profile, choice, group, plan)) return false;
    }
    for (int s = 0; s < plan->stage_count; s++)
        copies |=
            plan->stages[s].stage.data > 1 || (profile->wide && plan->stages[s].stage.tensor > 1);
    if (!plan->stage_count || (choice->zero && !copies)) return false;
    find_links(profile, plan);
    return pipeline_fill(profile, correction, plan, &choice->seconds, &choice->need);
}

/* Returns the group of a stage's devices; for a stage of several classes, that of all devices. */
static int group_of_stage(const Fleet *devices, const SearchStage *stage) {
    int group = devices_group(devices, stage->devices[0]);
    for (int i = 1; i < stage->device_count; i++)
        if (devices_group(devices, stage->devices[i]) != group) return devices->group_count;
    return group;
}

/* Sets *plan to the only pipeline. Returns false if there are several pipelines, or weights. */
static bool candidate_plan(Profile *profile, const Candidate *candidate, PipelinePlan *plan) {
    const SearchPipeline *pipeline = &candidate->pipelines[0];
    const SearchModel *model = profile->context->model;
    if (candidate->pipeline_count != 1) return false;
    *plan = (PipelinePlan){.stage_count = pipeline->stage_count,
                           .microbatches = pipeline->microbatches,
                           .zero = candidate->zero};
    for (int s = 0; s < pipeline->stage_count; s++) {
        const SearchStage *stage = &pipeline->stages[s];
        int group = group_of_stage(profile->context->devices, stage);
        int64_t memory = profile->context->devices->groups[group].memory;
        if (stage->data_weights || stage->tensor_weights) return false;
        plan->stages[s] =
            (StagePlan){.stage = *stage, .memory = memory ? (double)memory : (double)INFINITY};
        plan->stages[s].costs = profile_costs(profile, group, stage->tensor,
                                              device_rows(model, pipeline->rows, stage->data));
    }
    find_links(profile, plan);
    return true;
}

bool candidate_estimate(Profile *profile, const Correction *correction, Candidate *candidate) {
    PipelinePlan plan;
    candidate->seconds = candidate->need = 0;
    if (!candidate_plan(profile, candidate, &plan)) return false;
    pipeline_estimate(profile, correction, &plan, &candidate->seconds, &candidate->need);
    return true;
}

SearchPipeline plan_pipeline(Arena *arena, const PipelinePlan *plan, int64_t rows) {
    SearchPipeline pipeline = {
        .microbatches = plan->microbatches, .rows = rows, .stage_count = plan->stage_count};
    pipeline.stages = arena_array(arena, SearchStage, plan->stage_count);
    for (int s = 0; s < plan->stage_count; s++) pipeline.stages[s] = plan->stages[s].stage;
    return pipeline;
}
