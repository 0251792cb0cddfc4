/* Galvatron decides how a pipeline's stages are laid over device classes and, for every layer, its
 * parallelism: tensor or Ulysses, data parallelism, ZeRO, recomputation.
 *
 *     16 GPUs, 24 layers -> 2 stages of 8; stage 0: 12 layers tp 2 dp 4 zero 2; stage 1: 10 layers
 *         tp 2 dp 4 zero 2, then 2 layers tp 4 dp 2 with recomputation
 *
 *     Galvatron problem = ...;
 *     GalvatronPlan *plan = galvatron_plan(arena, &problem);        NULL: nothing fits
 *     GalvatronBound bound = galvatron_bound(arena, &problem);
 *
 * Times are milliseconds, sizes MB (2^20 bytes). A plan takes
 *
 *     sum of the stages' times + (microbatches - 1) * the longest + unhidden gradient sums
 *
 * (1F1B), where the stages before a stage hide its gradient synchronisation. Search: every pipeline
 * and number of micro-batches has a lower bound (bound.c). Pipelines are solved in the order
 * of their bounds, until the next bound is no better than the best plan: a stage by all pairs of
 * strategies, the stages together by a dynamic program over layers under a cap of the longest time
 * (search.c). */
#pragma once

#include "planner/kinds/kinds.h"

#include <stdbool.h>

enum { GALVATRON_CLASSES = 4, GALVATRON_STAGES = 16, GALVATRON_LOGS = 16 };

typedef struct GalvatronClass {
    const char *name;
    int gpus, first;        // number of devices; number of the first device
    double slow, memory_mb; // factor of forward_ms on this class; MB of a device
} GalvatronClass;

/* Bandwidths in GB/s by the binary logarithm of the number of devices; 0: the input has none. */
typedef struct GalvatronLinks {
    double latency_ms, node[GALVATRON_LOGS], near[GALVATRON_LOGS], far[GALVATRON_LOGS],
        alltoall[GALVATRON_LOGS];
    double p2p[GALVATRON_STAGES + 1]; // GB/s between stages, by the number of stages
} GalvatronLinks;

typedef struct Galvatron {
    int class_count, per_node, layers, batch;
    GalvatronClass class[GALVATRON_CLASSES];
    double forward_ms, parameter_mb, hidden_mb, recompute_mb, ends_mb, overlap;
    double activation_mb[GALVATRON_LOGS]; // by log2 of the degree of tensor or Ulysses parallelism
    GalvatronLinks links;
} Galvatron;

/* A pipeline: the classes in some order, each of them cut into stages of equal size. */
typedef struct Pipeline {
    int microbatches, stages;
    int class[GALVATRON_STAGES];                         // by stage: its class
    int gpus[GALVATRON_STAGES], first[GALVATRON_STAGES]; // by stage: device count, first device
} Pipeline;

/* The strategy of a layer, and its costs in a stage. */
typedef struct Strategy {
    int tp, ulysses, dp, zero;
    bool recompute;
    double ms;   // time of a micro-batch in the layer
    double left; // ms of gradient synchronisation that the layer's own backward pass does not hide
    double mb;   // MB of model states and of the activations of all micro-batches in flight
} Strategy;

/* A stage: `count[0]` layers of strategy[0], then `count[1]` of strategy[1]. */
typedef struct StagePlan {
    double ms, left;
    int count[2];
    Strategy strategy[2];
} StagePlan;

typedef struct GalvatronPlan {
    double milliseconds;
    Pipeline pipeline;
    StagePlan stage[GALVATRON_STAGES];
} GalvatronPlan;

/* The lower bound of all plans, the pipeline that has it, and the layers of its relaxed stages. */
typedef struct GalvatronBound {
    double value;  // ms; INFINITY: no plan fits
    int pipelines; // the number of pipelines that were bounded
    Pipeline pipeline;
    int layers[GALVATRON_STAGES];
} GalvatronBound;

/* Returns all pipelines, each with every possible number of micro-batches; sets *count. */
const Pipeline *galvatron_pipelines(Arena *arena, const Galvatron *q, int *count);

/* Returns the strategies that a stage's layers can have. Leaves out a strategy that another of its
 * degree equals or beats in tp, time, unhidden synchronisation and memory. Sets *count. */
const Strategy *galvatron_strategies(Arena *arena, const Galvatron *q, const Pipeline *pipeline,
                                     int stage, int *count);

/* Returns the ms to redistribute activations between layers of two strategies and back. */
double galvatron_change(const Galvatron *q, const Pipeline *pipeline, const Strategy *from,
                        const Strategy *to);

/* Returns the ms to pass activations to a stage that begins with `first`; 0: the only stage. */
double galvatron_handover(const Galvatron *q, const Pipeline *pipeline, const Strategy *first);

/* Returns the MB of the embedding if the stage is the first, and of the head if it is the last. */
double galvatron_ends(const Galvatron *q, const Pipeline *pipeline, int stage,
                      const Strategy *first, const Strategy *last);

/* Returns a lower bound in ms of a pipeline's plans (INFINITY: none fits); sets stages' layers. */
double pipeline_bound(const Galvatron *q, const Pipeline *pipeline, int *layers);

GalvatronPlan *galvatron_plan(Arena *arena, const Galvatron *q);
GalvatronBound galvatron_bound(Arena *arena, const Galvatron *q);

/* ---- the functions of the table of kinds (kinds.c) ---- */
json_t *galvatron_answer(Arena *arena, Field input, Budget *budget);
json_t *galvatron_certify(Arena *arena, Field input, Budget *budget);
