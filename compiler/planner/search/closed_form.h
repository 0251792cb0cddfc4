/* Closed forms: layers over the stages of a pipeline, what a step of it takes, and what its devices
 * need.
 *
 * Stage s takes t_s for the forward and backward parts of a micro-batch. A step of m micro-batches
 * takes sum t_s + (m - 1) max t_s, what goes from stage to stage, the sums of gradients of the
 * slowest stage and its update. Under 1F1B stage s of S keeps min(m, S - s) micro-batches. ZeRO of
 * d devices leaves 1/d of the optimizer's states, at 2 of gradients, at 3 of parameters.
 */
#ifndef PLANNER_SEARCH_CLOSED_FORM_H
#define PLANNER_SEARCH_CLOSED_FORM_H

#include "planner/search/layer_costs.h"

/* What is to be filled with layers: devices, mesh and costs of a stage. Where devices along dp are
 * unequal, `parts` has the others. */
typedef struct StagePlan {
    SearchStage stage; // without layers
    const Costs *costs;
    double memory; // bytes that a device may have; INFINITY: not bounded
    Link link;     // along dp
    Link ahead;    // to the next stage
} StagePlan;

typedef struct PipelinePlan {
    int stage_count;
    StagePlan stages[STAGE_MOST];
    int64_t microbatches;
    int zero;
} PipelinePlan;

/* By how much what was tried needed more, or took longer, than closed forms said. */
typedef struct Correction {
    double memory, seconds;
} Correction;

/* Gives the stages their layers and ways to recompute, so that a step is as short as it may be
 * within `room` times the memory; or where that does not do, so that the most that a device needs
 * over what it may have is the least. False: there are more stages than layers. Fills in stages,
 * *seconds of a step and *need, the most over what devices may have. */
bool pipeline_fill(const Profile *profile, const Correction *correction, PipelinePlan *plan,
                   double *seconds, double *need);

/* Returns the bytes that a device of stage `number` needs with layers [first, end). */
double stage_bytes(const Profile *profile, const PipelinePlan *plan, int number, int first, int end,
                   Recompute recompute);

/* Returns the seconds of a micro-batch on it. */
double stage_seconds(const Profile *profile, const PipelinePlan *plan, int number, int first,
                     int end, Recompute recompute);

/* What both say of a plan that has its layers. */
void pipeline_estimate(const Profile *profile, const Correction *correction,
                       const PipelinePlan *plan, double *seconds, double *need);

#endif
