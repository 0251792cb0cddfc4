/* The candidates of rebalancing. In all functions `rates` are by device: its own slowness times
 * that of its class. */
#ifndef PLANNER_REBALANCE_CANDIDATES_H
#define PLANNER_REBALANCE_CANDIDATES_H

#include "planner/rebalance/layout_model.h"

/* Distributes the layers over the stages of a pipeline so that its micro-batches take the least
 * time; the stages keep their order. */
void pipeline_relayer(Arena *arena, const LayoutModel *laid, ModelPipeline *pipeline,
                      const double *rates);

/* Distributes the rows of the batch over the pipelines in micro-batches of unchanged size, or row
 * by row where each pipeline is one stage with one micro-batch. Pipelines of unequal micro-batches,
 * or with lengths of their own, keep their rows. */
void layout_model_share_rows(LayoutModel *laid, const double *rates);

/* Alternates pipeline_relayer and layout_model_share_rows as long as the step gets shorter. */
void layout_model_settle_work(Arena *arena, LayoutModel *laid, const double *rates);

/* Returns the layout with the same groups of devices and other layers and rows. */
LayoutModel *candidate_same_groups(Arena *arena, const LayoutModel *now, const double *rates);

/* Returns the layout with the same groups, in which pipelines of one stage get weights along the
 * axis that cuts the batch. NULL: there is none. */
LayoutModel *candidate_weighted(Arena *arena, const LayoutModel *now, const double *rates);

/* Returns a layout with other groups and `fewer` pipelines less, found by the planner malleus. NULL
 * where malleus has no plan, or cannot describe the strategy. */
LayoutModel *candidate_regrouped(Arena *arena, const LayoutModel *now, const double *rates,
                                 int fewer);

/* Swaps devices of equal rates, and stages of a pipeline, so that a switch from `now` moves few
 * bytes and the step gets no longer. */
void minimize_moves(Arena *arena, const LayoutModel *now, LayoutModel *laid, const double *rates);

#endif
