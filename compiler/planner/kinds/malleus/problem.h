/* What there is to plan, and how long a pipeline takes at best: the part of Malleus below the
 * choice of groups and pipelines. */
#ifndef PLANNER_KINDS_MALLEUS_PROBLEM_H
#define PLANNER_KINDS_MALLEUS_PROBLEM_H

#include "planner/kinds/input.h"

enum { MOST_STAGES = 64, MOST_TRADES = 24 };

/* A node's devices from the fastest to the slowest. */
typedef struct MalleusNode {
    int *devices;  // numbers in the cluster
    double *rates; // ascending
} MalleusNode;

typedef struct Malleus {
    int node_count, per_node;
    MalleusNode *nodes;
    int tp, sizes;    // the most devices of a group; sizes of groups: tp >> 0 .. tp >> sizes - 1
    double *slowdown; // of size tp >> k
    int pipelines, layers, microbatches;
    int most_stages;   // of a pipeline: the memory table's length
    int *holds;        // most layers: [stage count][stage][size]; see malleus_holds
    int *least, *most; // the least and the most of them: [stage count][size]
} Malleus;

/* A group of devices in a pipeline. */
typedef struct Stage {
    double rate; // y: time of a layer and micro-batch
    int size;    // the group has tp >> size devices
    int group;   // whatever the caller calls it
    int layers;  // set by pipeline_arrange
} MalleusStage;

/* What a pipeline can trade: a bottleneck of `most` with a sum of all stages of `sum`; m
 * micro-batches take (m - 1) most + sum. */
typedef struct Trade {
    double most, sum;
} Trade;

/* All trades that are best for some number of micro-batches from a quarter of an equal share on, by
 * rising `most`; with none of them the stages cannot hold the layers, and `lacking` of them find no
 * room. */
typedef struct Pipeline {
    int stage_count, trade_count, lacking;
    Trade trades[MOST_TRADES];
} Pipeline;

/* Reads an input; NULL after an error. */
Malleus *malleus_read(Arena *arena, Field input);

/* The most layers that stage `stage` of `count`, a group of tp >> size devices, has memory for. */
static inline int malleus_holds(const Malleus *malleus, int count, int stage, int size) {
    return malleus->holds[((count - 1) * malleus->most_stages + stage) * malleus->sizes + size];
}

/* The same of the stage of `count` that has the least room, and of the one that has the most. */
static inline int malleus_holds_anywhere(const Malleus *malleus, int count, int size) {
    return malleus->least[(count - 1) * malleus->sizes + size];
}
static inline int malleus_holds_somewhere(const Malleus *malleus, int count, int size) {
    return malleus->most[(count - 1) * malleus->sizes + size];
}

/* The rate of a group of tp >> size devices that are number `first` and the next ones of a node, by
 * rate. */
double malleus_rate(const Malleus *malleus, int node, int first, int size);

/* What a pipeline of these stages can trade; it sorts the stages by rate. */
void pipeline_weigh(const Malleus *malleus, MalleusStage *stages, int count, Pipeline *pipeline);

/* Puts the stages into the order and gives them the layers that take (microbatches - 1) most + sum
 * at best; that time. */
double pipeline_arrange(const Malleus *malleus, MalleusStage *stages, int count, int microbatches);

/* The least time of so many micro-batches. */
double pipeline_time(const Pipeline *pipeline, int microbatches);

/* The least time in which `count` pipelines do all micro-batches, each at least as many as it has
 * stages; what each does into `microbatches` unless it is NULL; *smooth is the time with parts of
 * micro-batches. INFINITY when a pipeline cannot hold the layers. */
double pipelines_share(const Malleus *malleus, const Pipeline *pipelines, int count,
                       int *microbatches, double *smooth);

#endif
