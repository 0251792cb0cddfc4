/* The model of a stage's seconds: how long each phase of a micro-batch and each message between
 * stages takes. The report, the simulator and, through the simulator, the search use this model.
 *
 *     times_of_stage(...)[PHASE_FORWARD * visit_count + 0] = 0.012    forward of the first chunk
 *
 * Times are seconds on the module's cluster. Without a cluster file they are numbers of operations,
 * and conversions take no time. Only schedule/engine.h has slowdown by overlap. */
#pragma once

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"

/* What a conversion sends through the uplink that it keeps busy longest. */
typedef struct Burst {
    double busy, bucket; // seconds at the uplink's rate: of the bytes, of the uplink's burst
} Burst;

typedef struct Times {
    Arena *arena;
    Module *module;
    bool priced;       // times are seconds; false: operations
    bool known;        // false: a rate was missing, and its time counted as 0
    double *converted; // by conversion number: its seconds; negative: not computed yet
    Burst *bursts;     // by conversion number; `busy` negative: not computed yet
} Times;

Times times_create(Arena *arena, Module *module, bool priced);

/* Returns the seconds of a conversion, 0 without prices; computes them at the first call only. */
double times_conversion(Times *times, const PlannedConversion *conversion);

/* Returns what a conversion sends through its busiest uplink; zeros if no uplink has a burst. */
Burst times_burst(Times *times, const PlannedConversion *conversion);

/* Returns the time of each phase of a stage for a micro-batch, without messages between stages, at
 * entry phase * visit_count + visit. Operators outside of visits count for visit 0. Each entry is
 * the time of the slowest of `devices`, the stage's devices in one pipeline. `stage` is STAGE_ALL
 * when the batch is not divided into stages. */
double *times_of_stage(Times *times, const int *devices, int device_count, int stage,
                       const StageGraph *graph);

/* Returns, by operator of the module, the share of its phase's time that a device of a stage spends
 * after it, from 0 to 1; 0 where the device does not run the operator.
 *
 *     backward of three equal layers: 0.67, 0.33, 0 */
double *times_behind(Times *times, int device, int stage, const StageGraph *graph);

/* Returns the edge of the stage graph along which an operator sends its message, and sets *backward
 * to whether the message goes backward; -1: the operator is not a message. */
int op_edge(const Module *module, const StageGraph *graph, const Op *op, bool *backward);

/* Returns, by edge of the graph of template `body`, the seconds of its forward or backward message;
 * all tensors of an edge are one message. */
double *times_of_edges(Times *times, int body, const StageGraph *graph, bool backward);
