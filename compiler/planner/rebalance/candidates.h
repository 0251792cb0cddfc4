/* What balance tries, and what it makes of it. Rates are those of the devices times their classes'
 * slowness. */
#ifndef PLANNER_REBALANCE_CANDIDATES_H
#define PLANNER_REBALANCE_CANDIDATES_H

#include "planner/rebalance/layout_model.h"

/* Gives the stages of a pipeline, in their order, the layers with which its micro-batches take the
 * least time. */
void pipeline_relayer(Arena *arena, const LayoutModel *laid, ModelPipeline *pipeline,
                      const double *rates);

/* Shares the rows of the batch out to the pipelines, in micro-batches of as many rows as they have;
 * where each pipeline is one stage with one micro-batch, row by row. Pipelines of unequal rows, or
 * with lengths of their own, keep what they have. */
void layout_model_share_rows(LayoutModel *laid, const double *rates);

/* Both, as long as it helps. */
void layout_model_settle_work(Arena *arena, LayoutModel *laid, const double *rates);

/* The same groups of devices. */
LayoutModel *candidate_same_groups(Arena *arena, const LayoutModel *now, const double *rates);

/* The same groups; pipelines of one stage with weights along the axis that cuts the batch. NULL:
 * there is none. */
LayoutModel *candidate_weighted(Arena *arena, const LayoutModel *now, const double *rates);

/* Other groups, and `fewer` pipelines less, by the planner malleus. NULL where it has no plan, or
 * the strategy is not of its kind. */
LayoutModel *candidate_regrouped(Arena *arena, const LayoutModel *now, const double *rates,
                                 int fewer);

/* Has devices of equal rates change places, and stages of a pipeline, so that a switch from `now`
 * moves little; it takes no longer then. */
void minimize_moves(Arena *arena, const LayoutModel *now, LayoutModel *laid, const double *rates);

#endif
