/* Closed forms of a pipeline: each stage's layers, a step's seconds, and devices' bytes.
 *
 * Stage s takes t_s for the forward and backward parts of a micro-batch. A step of m micro-batches
 * takes sum t_s + (m - 1) max t_s. Added are the messages between stages, and the gradient
 * reductions and update of the slowest stage. Under 1F1B stage s of S keeps the activations of
 * min(m, S - s) micro-batches. On d data-parallel devices ZeRO 1 leaves 1/d of the optimizer's
 * states, ZeRO 2 also of gradients, ZeRO 3 also of parameters. */
#pragma once

#include "cluster/cluster.h"
#include "planner/search/candidate.h"

typedef struct Costs Costs;
typedef struct Profile Profile;

/* A stage to be filled with layers: its devices and mesh, and what layers cost on it. */
typedef struct StagePlan {
    SearchStage stage; // its layers are set by pipeline_fill
    const Costs *costs;
    double memory; // bytes that a device may use; INFINITY: not bounded
    Link link;     // slowest link along dp
    Link ahead;    // link to the next stage
} StagePlan;

typedef struct PipelinePlan {
    int stage_count;
    StagePlan stages[STAGE_MOST];
    int64_t microbatches;
    int zero;
} PipelinePlan;

/* The factors by which evaluated strategies exceeded closed forms in memory and time. */
typedef struct Correction {
    double memory, seconds;
} Correction;

/* Distributes the layers over the stages and chooses how each stage recomputes. If all layers fit,
 * the step becomes as short as possible; otherwise the largest ratio of needed to allowed memory
 * becomes as small as possible. Sets the *seconds of a step and this ratio (*need). Returns false
 * when there are more stages than layers. */
bool pipeline_fill(const Profile *profile, const Correction *correction, PipelinePlan *plan,
                   double *seconds, double *need);

/* Sets the *seconds of a step and the *need of a plan whose layers are already on stages. */
void pipeline_estimate(const Profile *profile, const Correction *correction,
                       const PipelinePlan *plan, double *seconds, double *need);
