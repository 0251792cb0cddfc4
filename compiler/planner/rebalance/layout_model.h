/* A model as it is laid over devices, and how long a step takes so: what a strategy says, in
 * numbers that a planner changes.
 *
 * A stage of a pipeline takes t = rows x work of its layers x the largest (share of a device x its
 * rate) for a micro-batch, where the whole batch on one healthy device of the fastest class takes
 * as many units as it has rows. m micro-batches take m max t + fill (sum t - max t); fill is 1 for
 * gpipe and 1f1b, less where a stage has several ranges of layers, or gradients of parameters fill
 * what is left of the waiting. A step takes as long as the slowest pipeline. Conversions of layouts
 * are left out: they are in both sides of a comparison.
 */
#ifndef PLANNER_REBALANCE_LAYOUT_MODEL_H
#define PLANNER_REBALANCE_LAYOUT_MODEL_H

#include "planner/rebalance/layer_work.h"

typedef struct ModelStage {
    int count, *devices;
    Array(MeshAxis) mesh;
    const char *recompute;    // as in Stage
    int layer_count, *layers; // of the model, ascending
} ModelStage;

typedef struct ModelPipeline {
    int64_t microbatches, rows; // rows of one micro-batch
    double length;              // what it reads of its rows: 1 all
    ShapeValues lengths;
    int stage_count;
    ModelStage *stages;
} ModelPipeline;

typedef struct LayoutModel {
    const Strategy *like; // all that is not here
    const ModelWork *work;
    double fill;
    bool ranges; // some stage has several ranges of layers
    bool whole;  // every pipeline has one stage and one micro-batch: rows are shared out one by one
    int pipeline_count;
    ModelPipeline *pipelines;
} LayoutModel;

/* NULL where the strategy is of a kind that cannot be described so: *why says it. */
LayoutModel *layout_model_of(Arena *arena, const ModelWork *work, const Strategy *strategy,
                             const char **why);

/* A copy whose pipelines, stages and lists of layers are its own. */
LayoutModel *layout_model_copy(Arena *arena, const LayoutModel *laid);

/* The strategy under a name. */
Strategy *layout_model_strategy(Arena *arena, const LayoutModel *laid, const char *name);

/* The share that device number `index` of a stage has of its work with so many rows. */
double layout_model_share(const LayoutModel *laid, const ModelStage *stage, int64_t rows,
                          int index);

/* The part of each parameter that it has: from *low to *high of 0 to 1. */
void layout_model_slice(const LayoutModel *laid, const ModelStage *stage, int index, double *low,
                        double *high);

/* What a stage takes for one row and all of the model's work. */
double layout_model_rate(const LayoutModel *laid, const ModelPipeline *pipeline,
                         const ModelStage *stage, const double *rates);

/* A pipeline's m micro-batches; *most is the time of its slowest stage for one. */
double layout_model_pipeline_time(const LayoutModel *laid, const ModelPipeline *pipeline,
                                  const double *rates, int64_t microbatches);

/* A step; `rates` are those of the devices times their classes' slowness. */
double layout_model_time(const LayoutModel *laid, const double *rates);

/* What each device computes in a step, in the same unit, healthy. */
double *layout_model_work(Arena *arena, const LayoutModel *laid);

/* Bytes of parameters and states that devices have under `to` and not under `from`. */
double layout_model_moves(const LayoutModel *from, const LayoutModel *to);

#endif
