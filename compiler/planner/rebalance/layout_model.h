/* A strategy as numbers that rebalancing changes, and the time of a step under this strategy.
 *
 *     stage devices(0-3) mesh(tp:4) layers(0-9)     before: device 3 takes twice as long
 *     stage devices(0-3) mesh(tp:4) layers(0-5)     after, with the other layers on other stages
 *
 * A stage of a pipeline takes t = rows x work of its layers x the largest (share of a device x its
 * rate) for a micro-batch; the unit is one row of the whole model on one healthy device of the
 * fastest class. m micro-batches take m max t + fill (sum t - max t); fill is 1 for gpipe and 1f1b,
 * and less if stages have several model chunks, or if parameters' gradients fill the bubble. A step
 * takes as long as the slowest pipeline. Conversions are left out: all strategies have them. */
#pragma once

#include "planner/rebalance/layer_work.h"

typedef struct ModelStage {
    int count, *devices;
    Array(MeshAxis) mesh;
    const char *recompute;    // what the stage recomputes, as Stage.recompute
    int layer_count, *layers; // indices of the model's layers, ascending
} ModelStage;

typedef struct ModelPipeline {
    int64_t microbatches, rows; // rows are those of one micro-batch
    double length;              // the fraction of rows that the pipeline reads (padding lengths)
    ShapeValues lengths;
    int stage_count;
    ModelStage *stages;
} ModelPipeline;

typedef struct LayoutModel {
    const Strategy *like; // the strategy that supplies all clauses that are not listed here
    const ModelWork *work;
    double fill; // time of a pipeline: microbatches * most + fill * (sum of stage times - most)
    bool ranges; // some stage has several ranges of layers (model chunks)
    bool whole; // every pipeline is one stage with one micro-batch; rows are then shared one by one
    int pipeline_count;
    ModelPipeline *pipelines;
} LayoutModel;

/* Returns the layout model of a strategy; NULL, with the reason in *why, if it has none. */
LayoutModel *layout_model_of(Arena *arena, const ModelWork *work, const Strategy *strategy,
                             const char **why);

/* Returns a copy with its own pipelines, stages and lists of layers. */
LayoutModel *layout_model_copy(Arena *arena, const LayoutModel *laid);

/* Returns the layout model as a strategy with a name. */
Strategy *layout_model_strategy(Arena *arena, const LayoutModel *laid, const char *name);

/* Returns the time that a stage would take for one row of a micro-batch if it had all layers. */
double layout_model_rate(const LayoutModel *laid, const ModelPipeline *pipeline,
                         const ModelStage *stage, const double *rates);

/* Returns the time of a pipeline for `microbatches` micro-batches. */
double layout_model_pipeline_time(const LayoutModel *laid, const ModelPipeline *pipeline,
                                  const double *rates, int64_t microbatches);

/* Returns the time of a step; `rates` are by device, as in candidates.h. */
double layout_model_time(const LayoutModel *laid, const double *rates);

/* Returns, by device, the time of its computing in a step if it is healthy, in the unit above. */
double *layout_model_work(Arena *arena, const LayoutModel *laid);

/* Returns the bytes of parameters and states that devices hold under `to` but not under `from`. */
double layout_model_moves(const LayoutModel *from, const LayoutModel *to);
