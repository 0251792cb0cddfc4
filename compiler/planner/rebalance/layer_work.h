/* The work and bytes of a model's layers, by the operators of a module after pass specialize. */
#pragma once

#include "ir/module.h"

typedef struct ModelWork {
    int count; // number of `layers`, in the model's order; without layers, one NULL
    const Layer *const *layers;
    double *work;        // by layer: its fraction of a step's computation, forward and backward
    double weights;      // the fraction of the work that computes parameters' gradients (wgrad)
    double *bytes;       // by layer: bytes of parameters and of their optimizer states
    int64_t batch, unit; // rows of the batch (0: none); least number of rows that may be split off
    const char *batch_name; // name of the batch's dimension; NULL: it has none
    int dim_count;          // number of named dimensions; their names; the least extent of each
    const char **dims;
    int64_t *extents;
    int device_count;
    double *slow;     // by device: the time of its class over that of the fastest class
    int hosts;        // hosts with equally many consecutive devices; 1: not distinguished
    bool limited;     // the cluster file limits the memory of devices
    double bandwidth; // bandwidth of the slowest link between devices, bytes a second
} ModelWork;

ModelWork *model_work(Arena *arena, Module *module);

/* Returns the fraction of the work at coordinate `c` of a mesh axis. The fraction is the mean over
 * the dimensions that only this axis cuts; each fraction is rounded to whole elements. */
double model_part(const ModelWork *work, const Strategy *strategy, const MeshAxis *axis, int c);

/* Returns whether a mesh axis cuts the batch and no other dimension. */
bool model_cuts_rows(const ModelWork *work, const Strategy *strategy, const char *axis);
