/* Times: how long what a stage does takes, in seconds of the module's cluster, or, where these are
 * not known, in operations. */
#ifndef COST_STAGE_SECONDS_H
#define COST_STAGE_SECONDS_H

#include "ir/analysis/phases.h"
#include "ir/programs/device_programs.h"

typedef struct Times {
    Arena *arena;
    Module *module;
    bool priced;       // in seconds; else in operations, and conversions take no time
    bool known;        // all that was asked for so far is
    double *converted; // by number of the conversion: its seconds; negative: not asked for yet
} Times;

Times times_create(Arena *arena, Module *module, bool priced);

/* Returns a conversion, once. */
double times_conversion(Times *times, const PlannedConversion *conversion);

/* Returns what a stage does with each run of its parts, transfers aside: by phase and visit,
 * phase * visit_count + visit, where what is of no visit has visit 0. Of the slowest of
 * `devices`, which are those of a stage of a pipeline; `stage` is that of their operators,
 * STAGE_ALL where the batch runs as a whole. */
double *times_of_stage(Times *times, const int *devices, int device_count, int stage,
                       const StageGraph *graph);

/* Returns the message that an operator is: its edge in the graph of its body, and whether it
 * goes backward; -1: it is none, but a part of the phase that runs it. */
int op_edge(const Module *module, const StageGraph *graph, const Op *op, bool *backward);

/* Returns what goes from a visit to another of a body, by edge; the tensors of a message go
 * together. */
double *times_of_edges(Times *times, int body, const StageGraph *graph, bool backward);

#endif
