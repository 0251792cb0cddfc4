/* The candidates of rebalancing. rates[d] is device d's own slowness times that of its class. */
#pragma once

#include "planner/rebalance/layout_model.h"

/* Distributes the layers over the stages of a pipeline so that its micro-batches take the least
 * time. Stages and layers keep their order. */
void pipeline_relayer(Arena *arena, const LayoutModel *laid, ModelPipeline *pipeline,
                      const double *rates);

/* Distributes layers over stages (pipeline_relayer), then rows over pipelines; three times. */
void layout_model_settle_work(Arena *arena, LayoutModel *laid, const double *rates);

/* Returns the layout `now` with the same groups of devices and redistributed layers and rows. */
LayoutModel *candidate_same_groups(Arena *arena, const LayoutModel *now, const double *rates);

/* Returns the layout `now` with weights, in pipelines of one stage, along the axis that cuts the
 * batch. NULL: no pipeline gets unequal weights. */
LayoutModel *candidate_weighted(Arena *arena, const LayoutModel *now, const double *rates);

/* Returns a layout with other groups and `fewer` fewer pipelines, found by the planner malleus.
 * NULL: malleus has no plan, or its input cannot describe the strategy. */
LayoutModel *candidate_regrouped(Arena *arena, const LayoutModel *now, const double *rates,
                                 int fewer);

/* Swaps devices of equal rates, and stages of a pipeline, so that a switch from `now` moves few
 * bytes and the step gets no longer. */
void minimize_moves(Arena *arena, const LayoutModel *now, LayoutModel *laid, const double *rates);
