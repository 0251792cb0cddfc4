/* Rebalances without changing the groups of devices: other layers on stages, other rows for
 * pipelines, other weights of a mesh axis. */
#include "planner/rebalance/candidates.h"

#include <math.h>

/* ---- layers on stages ---- */

/* The partition of a pipeline's layers into stages. `before` has prefix sums of the layers'
 * work; rate[stage] is a stage's time for one row of all layers. */
typedef struct Cutting {
    int layers, stages;
    const double *before, *rate;
    double *best; // by stage s and layer e: the least sum of times of stages 0 to s with [0, e)
    int *cut;     // by stage s and layer e: the first layer of stage s in that partition
} Cutting;

static double span(const Cutting *cutting, int stage, int from, int to) {
    return cutting->rate[stage] * (cutting->before[to] - cutting->before[from]);
}

/* Returns the least sum of stage times if each stage has a layer and takes at most `most`; INFINITY
 * if that is impossible. */
static double cut_below(Cutting *cutting, double most) {
    int wide = cutting->layers + 1;
    for (int s = 0; s < cutting->stages; s++)
        for (int end = 0; end < wide; end++) {
            double *best = &cutting->best[s * wide + end];
            *best = INFINITY;
            for (int from = end - 1; from >= s && span(cutting, s, from, end) <= most * (1 + 1e-9);
                 from--) {
                double before = s ? cutting->best[(s - 1) * wide + from] : from ? INFINITY : 0;
                if (before + span(cutting, s, from, end) < *best) {
                    *best = before + span(cutting, s, from, end);
                    cutting->cut[s * wide + end] = from;
                }
            }
        }
    return cutting->best[(cutting->stages - 1) * wide + cutting->layers];
}

/* Returns the least bottleneck of all partitions, or a little more, by bisection. */
static double least_bottleneck(Cutting *cutting) {
    double low = 0, high = 0;
    for (int s = 0; s < cutting->stages; s++)
        high = fmax(high, span(cutting, s, 0, cutting->layers));
    for (int turn = 0; turn < 40; turn++) {
        double middle = (low + high) / 2;
        *(isinf(cut_below(cutting, middle)) ? &low : &high) = middle;
    }
    return high;
}

static void take_cuts(const Cutting *cutting, ModelPipeline *pipeline) {
    for (int s = cutting->stages - 1, end = cutting->layers; s >= 0; s--) {
        int from = cutting->cut[s * (cutting->layers + 1) + end];
        pipeline->stages[s].layer_count = end - from;
        for (int l = from; l < end; l++) pipeline->stages[s].layers[l - from] = l;
        end = from;
    }
}

void pipeline_relayer(Arena *arena, const LayoutModel *laid, ModelPipeline *pipeline,
                      const double *rates) {
    enum { TRIES = 24 };
    int layers = laid->work->count, stages = pipeline->stage_count;
    if (stages < 2) return;
    double *before = arena_array(arena, double, layers + 1),
           *rate = arena_array(arena, double, stages), best = INFINITY, best_most = 0;
    for (int l = 0; l < layers; l++) before[l + 1] = before[l] + laid->work->work[l];
    for (int s = 0; s < stages; s++)
        rate[s] = layout_model_rate(laid, pipeline, &pipeline->stages[s], rates);
    Cutting cutting = {layers,
                       stages,
                       before,
                       rate,
                       arena_array(arena, double, (layers + 1) * stages),
                       arena_array(arena, int, (layers + 1) * stages)};
    double least = least_bottleneck(&cutting);
    for (int turn = 0; turn < TRIES; turn++) {
        double most = least * (1 + 0.02 * turn),
               time = ((double)pipeline->microbatches - laid->fill) * most +
                      laid->fill * cut_below(&cutting, most);
        if (time < best) {
            best = time;
            best_most = most;
        }
    }
    if (!isinf(cut_below(&cutting, best_most))) take_cuts(&cutting, pipeline);
}

/* ---- rows for pipelines ---- */

static bool can_share(const LayoutModel *laid) {
    for (int p = 0; p < laid->pipeline_count; p++)
        if (laid->pipelines[p].lengths.count ||
            (!laid->whole && laid->pipelines[p].rows != laid->pipelines[0].rows))
            return false;
    return laid->pipeline_count > 1;
}

/* Returns a pipeline's time with `count` micro-batches, or with one of `count` units of rows if
 * every pipeline has one stage and one micro-batch (laid->whole). */
static double time_of(const LayoutModel *laid, const ModelPipeline *pipeline, const double *rates,
                      int64_t count) {
    ModelPipeline tried = *pipeline;
    if (laid->whole) tried.rows = count * laid->work->unit;
    else tried.microbatches = count;
    return layout_model_pipeline_time(laid, &tried, rates, tried.microbatches);
}

/* Distributes the rows of the batch over the pipelines in micro-batches of unchanged size. If each
 * pipeline is one stage with one micro-batch, distributes units of rows (ModelWork). Changes
 * nothing if micro-batches are unequal or a pipeline has padding lengths. */
static void layout_model_share_rows(LayoutModel *laid, const double *rates) {
    if (!can_share(laid)) return;
    int64_t left = 0, given[laid->pipeline_count];
    for (int p = 0; p < laid->pipeline_count; p++) {
        left += laid->whole ? laid->pipelines[p].rows / laid->work->unit
                            : laid->pipelines[p].microbatches;
        given[p] = 1;
    }
    for (left -= laid->pipeline_count; left > 0; left--) {
        int next = 0;
        for (int p = 1; p < laid->pipeline_count; p++)
            if (time_of(laid, &laid->pipelines[p], rates, given[p] + 1) <
                time_of(laid, &laid->pipelines[next], rates, given[next] + 1))
                next = p;
        given[next]++;
    }
    for (int p = 0; p < laid->pipeline_count; p++)
        *(laid->whole ? &laid->pipelines[p].rows : &laid->pipelines[p].microbatches) =
            given[p] * (laid->whole ? laid->work->unit : 1);
}

void layout_model_settle_work(Arena *arena, LayoutModel *laid, const double *rates) {
    for (int turn = 0; turn < 3; turn++) {
        for (int p = 0; p < laid->pipeline_count; p++)
            pipeline_relayer(arena, laid, &laid->pipelines[p], rates);
        layout_model_share_rows(laid, rates);
    }
}

LayoutModel *candidate_same_groups(Arena *arena, const LayoutModel *now, const double *rates) {
    LayoutModel *laid = layout_model_copy(arena, now);
    layout_model_settle_work(arena, laid, rates);
    return laid;
}

/* ---- weights of a mesh axis ---- */

/* Returns the index of the first mesh axis that cuts the batch and nothing else; -1: none. */
static int axis_of_rows(const LayoutModel *laid, const ModelStage *stage) {
    for (int a = 0; a < stage->mesh.count; a++)
        if (stage->mesh.at[a].count > 1 &&
            model_cuts_rows(laid->work, laid->like, stage->mesh.at[a].name))
            return a;
    return -1;
}

/* Returns the largest rate of the devices at coordinate c of an axis. */
static double rate_at(const ModelStage *stage, int axis, int c, const double *rates) {
    int inner = 1;
    double most = 0;
    for (int a = stage->mesh.count - 1; a > axis; a--) inner *= stage->mesh.at[a].count;
    for (int i = 0; i < stage->count; i++)
        if (i / inner % stage->mesh.at[axis].count == c)
            most = fmax(most, rates[stage->devices[i]]);
    return most;
}

/* Removes from a stage the devices whose coordinate got no rows; these devices become idle. */
static void drop_coordinates(ModelStage *stage, int axis, const int64_t *units) {
    MeshAxis *own = &stage->mesh.at[axis];
    int inner = 1, kept = 0, count = 0;
    for (int a = stage->mesh.count - 1; a > axis; a--) inner *= stage->mesh.at[a].count;
    for (int i = 0; i < stage->count; i++)
        if (units[i / inner % own->count]) stage->devices[kept++] = stage->devices[i];
    for (int c = 0; c < own->count; c++) count += units[c] > 0;
    stage->count = kept;
    own->count = count;
}

/* Sets the weights of an axis to units of rows, `left` in all, that minimize the time of the
 * slowest coordinate. Drops coordinates without rows. Returns false if all units are equal. */
static bool weigh_axis(Arena *arena, int64_t left, ModelStage *stage, int axis,
                       const double *rates) {
    MeshAxis *own = &stage->mesh.at[axis];
    int64_t *units = arena_array(arena, int64_t, own->count),
            *weights = arena_array(arena, int64_t, own->count);
    int kept = 0;
    bool unequal = false;
    for (; left > 0; left--) {
        int next = 0;
        for (int c = 1; c < own->count; c++)
            if ((double)(units[c] + 1) * rate_at(stage, axis, c, rates) <
                (double)(units[next] + 1) * rate_at(stage, axis, next, rates))
                next = c;
        units[next]++;
    }
    for (int c = 0; c < own->count; c++) {
        unequal |= units[c] != units[0];
        if (units[c]) weights[kept++] = units[c];
    }
    drop_coordinates(stage, axis, units);
    own->weights = unequal ? weights : NULL;
    return unequal;
}

LayoutModel *candidate_weighted(Arena *arena, const LayoutModel *now, const double *rates) {
    LayoutModel *laid = layout_model_copy(arena, now);
    bool found = false;
    for (int p = 0; p < laid->pipeline_count; p++) {
        ModelPipeline *pipeline = &laid->pipelines[p];
        ModelStage *stage = &pipeline->stages[0];
        int axis = pipeline->stage_count == 1 ? axis_of_rows(laid, stage) : -1;
        if (axis < 0) continue;
        stage->mesh.at =
            arena_copy(arena, stage->mesh.at, sizeof *stage->mesh.at * (size_t)stage->mesh.count);
        found |= weigh_axis(arena, pipeline->rows / laid->work->unit, stage, axis, rates);
    }
    layout_model_share_rows(laid, rates);
    return found ? laid : NULL;
}
