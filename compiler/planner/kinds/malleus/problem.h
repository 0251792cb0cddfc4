/* The input of Malleus, and its lower level: how long one pipeline of given groups takes at best.
 * `search.c` is the upper level, the choice of groups and pipelines. */
#pragma once

#include "planner/kinds/input.h"
#include "planner/kinds/budget.h"

enum { MOST_STAGES = 64, MOST_TRADES = 24 };

/* A node's devices from the fastest to the slowest. */
typedef struct MalleusNode {
    int *devices;  // the devices' numbers in the cluster
    double *rates; // by entry of `devices`, ascending
} MalleusNode;

typedef struct Malleus {
    int node_count, per_node;
    MalleusNode *nodes;
    int tp, sizes;    // the most devices of a group; group sizes are tp >> 0 .. tp >> (sizes - 1)
    double *slowdown; // by k, for a group of tp >> k devices: its time over that of tp devices
    int pipelines, layers, microbatches;
    int most_stages;   // the most stages of a pipeline: the memory table's length
    int *holds;        // by stage count, stage and size: the most layers that fit (malleus_holds)
    int *least, *most; // by stage count and size: the least and the most of `holds` over the stages
} Malleus;

/* A stage of a pipeline: a group of devices with its layers. */
typedef struct MalleusStage {
    double rate; // y: time of one layer for one micro-batch
    int size;    // the group has tp >> size devices
    int group;   // the caller's number of the group
    int layers;  // set by pipeline_arrange
} MalleusStage;

/* A way to lay the layers over a pipeline: its slowest stage takes `most`, all stages together take
 * `sum`; m micro-batches take (m - 1) most + sum. */
typedef struct Trade {
    double most, sum;
} Trade;

/* The trades of a pipeline, sorted by `most`, that are best for some number of micro-batches;
 * numbers below a quarter of an equal share are left out. Without any trade the stages cannot hold
 * the layers, and `lacking` layers do not fit. */
typedef struct Pipeline {
    int stage_count, trade_count, lacking;
    Trade trades[MOST_TRADES];
} Pipeline;

/* Reads an input; NULL after an error. */
Malleus *malleus_read(Arena *arena, Field input);

/* Returns the most layers that fit into stage `stage` of `count`, a group of tp >> size devices. */
static inline int malleus_holds(const Malleus *malleus, int count, int stage, int size) {
    return malleus->holds[((count - 1) * malleus->most_stages + stage) * malleus->sizes + size];
}

/* Return malleus_holds at the stage position with the least memory, and at that with the most. */
static inline int malleus_holds_anywhere(const Malleus *malleus, int count, int size) {
    return malleus->least[(count - 1) * malleus->sizes + size];
}
static inline int malleus_holds_somewhere(const Malleus *malleus, int count, int size) {
    return malleus->most[(count - 1) * malleus->sizes + size];
}

/* Returns y of a group of tp >> size devices of a node, from `first` on in the order of rates. */
double malleus_rate(const Malleus *malleus, int node, int first, int size);

/* Sets the trades of a pipeline of these stages; sorts the stages by rate. */
void pipeline_weigh(const Malleus *malleus, MalleusStage *stages, int count, Pipeline *pipeline);

/* Orders and fills stages for the least (microbatches - 1) most + sum, and returns that time. */
double pipeline_arrange(const Malleus *malleus, MalleusStage *stages, int count, int microbatches);

/* Returns the least time in which `count` pipelines finish all micro-batches; each gets at least
 * one for each stage. Writes their numbers to `microbatches` unless NULL; to *smooth the time with
 * divisible micro-batches. INFINITY: a pipeline lacks memory, or the micro-batches are too few. */
double pipelines_share(const Malleus *malleus, const Pipeline *pipelines, int count,
                       int *microbatches, double *smooth);

/* The upper level: which devices form groups, and which groups a pipeline has (search.c). */

/* A group of tp >> size devices of a node: from index `first` on in the node's order of rates. */
typedef struct Group {
    int node, first, size;
    int owner; // the pipeline's number; the number of pipelines: the group is idle
} Group;

/* A division of all devices into groups, by node and then by `first`. */
typedef struct Grouping {
    int count;
    Group *groups;
} Grouping;

/* Returns the groups of the least step time found; *time is INFINITY if none hold all layers. */
Grouping malleus_search(Arena *arena, const Malleus *malleus, const Budget *budget, double *time);

/* Writes a pipeline's groups as stages to `stages` (at most MOST_STAGES). Returns how many. */
int grouping_stages(const Malleus *malleus, const Grouping *grouping, int owner,
                    MalleusStage *stages);
