/* Malleus (Li et al. 2025, "Malleus: straggler-resilient hybrid parallel training via malleable
 * data and model parallelization") plans for slow devices: which devices form tensor-parallel
 * groups, which groups form a pipeline, and how many layers and micro-batches each gets.
 *
 *     input   {rates [[x of device] of node], tp, slowdown[k] of a group of tp / 2^k, pipelines,
 *              layers, microbatches,
 *              memory {per_layer[K], ends, extra, bound, gap}}
 *     plan    {pipelines [{microbatches, stages [{devices[], layers}]}], idle[], objective}
 *
 * For example, when device 3 of 0-7 takes twice as long, tp 2, two pipelines, 12 layers:
 *
 *     before  pipeline: devices(0,1) 6 layers, devices(2,3) 6 layers   4 micro-batches
 *             pipeline: devices(4,5) 6 layers, devices(6,7) 6 layers   4 micro-batches
 *     after   pipeline: devices(0,1) 8 layers, devices(2,3) 4 layers   3 micro-batches
 *             pipeline: devices(4,5) 6 layers, devices(6,7) 6 layers   5 micro-batches
 *
 * A device takes x times as long as a healthy one. A stage is a group of 2^k <= tp devices of a
 * node; it takes y = slowdown * max x for a layer and a micro-batch, in units of a healthy group of
 * tp. A pipeline takes (m - 1) max t + sum t for m micro-batches, where t = y l for a stage of l
 * layers; the step takes as long as the slowest pipeline. Stage j of S stages, on n devices, holds
 * (per_layer[K - S + j] l + ends, at either end) tp / n + extra MB, at most bound - gap. */
#pragma once

#include "planner/kinds/kinds.h"

json_t *malleus_plan(Arena *arena, Field input, Budget *budget);
json_t *malleus_certify(Arena *arena, Field input, Budget *budget);
