/* The one model of a stage's seconds, which the report, the simulator and, through it, the search
 * read: how long a stage takes for each phase of a micro-batch, and a message between stages.
 *
 *     times_of_stage(...)[PHASE_FORWARD * visit_count + 0] = 0.012    forward of the first chunk
 *
 * Times are seconds on the module's cluster. Without a cluster file they are numbers of operations,
 * and conversions take no time. */
#ifndef COST_STAGE_SECONDS_H
#define COST_STAGE_SECONDS_H

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"

typedef struct Times {
    Arena *arena;
    Module *module;
    bool priced;       // times are seconds; false: operations
    bool known;        // no rate was missing so far
    double *converted; // by conversion number: its seconds; negative: not computed yet
} Times;

Times times_create(Arena *arena, Module *module, bool priced);

/* Returns the seconds of a conversion, computed once. */
double times_conversion(Times *times, const PlannedConversion *conversion);

/* Returns the time of each phase of a stage for a micro-batch, without messages between stages:
 * entry phase * visit_count + visit, where operators outside of visits count for visit 0. It is the
 * time of the slowest of `devices`, the stage's devices in one pipeline; `stage` is STAGE_ALL where
 * the batch runs as a whole. */
double *times_of_stage(Times *times, const int *devices, int device_count, int stage,
                       const StageGraph *graph);

/* Returns the edge of the stage graph whose message an operator is, and whether it goes backward;
 * -1: it is no message. */
int op_edge(const Module *module, const StageGraph *graph, const Op *op, bool *backward);

/* Returns, by edge of a template's graph, the seconds of its message; all tensors of an edge are
 * one message. */
double *times_of_edges(Times *times, int body, const StageGraph *graph, bool backward);

#endif
