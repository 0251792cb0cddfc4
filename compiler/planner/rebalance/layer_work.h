/* What a model computes and keeps, layer by layer, by the operators of a module that has come
 * through pass specialize. */
#ifndef PLANNER_REBALANCE_LAYER_WORK_H
#define PLANNER_REBALANCE_LAYER_WORK_H

#include "ir/module.h"

typedef struct ModelWork {
    int count; // layers, in the order in which the model runs them; one, NULL, where it has none
    const Layer *const *layers;
    double *work;   // of each: its part of a step's computing, forward and backward; the sum is 1
    double weights; // of that, what gradients of parameters take
    double *bytes;  // of each: parameters and what the optimizer keeps of them
    int64_t batch, unit;    // rows of the batch, 0: it has none; rows that belong together
    const char *batch_name; // of the dimension; NULL: it has none
    int dim_count;          // named dimensions, and the least extent of each
    const char **dims;
    int64_t *extents;
    int device_count;
    double *slow; // by device: how many times as long its class takes as the fastest one
    int hosts; // of as many devices each, one host's after the other's; 1: they are not told apart
    bool limited;     // the cluster says how much memory devices have
    double bandwidth; // bytes a second of the slowest link between devices
} ModelWork;

ModelWork *model_work(Arena *arena, Module *module);

/* The part that coordinate `c` of a mesh axis has of what it cuts: the mean over the dimensions
 * that the strategy has it cut, whose pieces are whole elements. */
double model_part(const ModelWork *work, const Strategy *strategy, const MeshAxis *axis, int c);

/* Whether a mesh axis cuts nothing but rows of the batch. */
bool model_cuts_rows(const ModelWork *work, const Strategy *strategy, const char *axis);

#endif
