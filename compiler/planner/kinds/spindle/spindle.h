/* Spindle: several tasks and modalities. Operators (towers of equal layers) in a directed acyclic
 * graph are cut into slices; a slice runs some consecutive layers on some devices without a break.
 *
 *     Spindle problem = ...;
 *     SpindlePlan *plan = spindle_plan(arena, &problem, work, usual, seed);
 *     SpindleBound bound = spindle_bound(arena, &problem);
 *
 * The plan is NULL when none was found in which all states fit. From the usual work on,
 * more work never gives a worse plan.
 *
 * Times are milliseconds, sizes MB (2^20 bytes). The objective is the end of the last slice.
 * Devices form islands with fast links: a slice has devices of one island, or whole islands. A
 * device holds the states of its layers; layers of equal number and `weights` share states. */
#pragma once

#include "planner/kinds/kinds.h"

/* A number of devices, and the milliseconds in which they run a layer. */
typedef struct Allotment {
    int devices;
    double ms;
} Allotment;

typedef struct Operator {
    const char *name;
    int layers, after_count, allotment_count;
    int weights;                // operators of equal number share the states of their layers
    const int *after;           // operators that end before this one starts
    const Allotment *allotment; // sorted by number of devices, ascending
    double state_mb;            // MB of a layer's states
} Operator;

typedef struct Spindle {
    int gpus, island, operator_count, weights_count, layers_most; // layers_most: of an operator
    double memory_mb;                                             // MB of a device
    const Operator *operator; // each operator comes after the operators in its `after`
} Spindle;

typedef struct Slice {
    int operator, layers, device_count;
    double start; // ms
    const int *devices;
} Slice;

typedef struct SpindlePlan {
    double milliseconds;
    int slice_count;
    const Slice *slices;
} SpindlePlan;

/* A lower bound of all plans, and its proof: the duals of the linear program's rows. */
typedef struct SpindleBound {
    double value;      // ms
    double area;       // dual of the row of the devices' time
    const double *end; // (operators): dual of the row that makes the operator end before the plan
} SpindleBound;

SpindlePlan *spindle_plan(Arena *arena, const Spindle *q, int64_t work, int64_t usual,
                          uint64_t seed);
SpindleBound spindle_bound(Arena *arena, const Spindle *q);

/* The functions of kind spindle in the table of kinds. */
json_t *spindle_answer(Arena *arena, Field input, Budget *budget);
json_t *spindle_certify(Arena *arena, Field input, Budget *budget);
