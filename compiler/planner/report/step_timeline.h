/* The timeline of a step: when stages run their phases, by the seconds of cost/stage_seconds.h.
 *
 * Pipelines with equal times form a group, and the first one stands for all: they share a template,
 * the number of micro-batches and the classes of their devices. A step has three parts. First, all
 * devices end the phases before the schedules' tables. Then the tables run, and beside them
 * gradient reductions, one after another on each stage, in the order of the run-time library. The
 * update begins when tables and reductions have ended.
 *
 *     stage 0   F0 F1 F2 .  .  B0 .  B1 B2  | update
 *     stage 1   .  F0 F1 F2 B0 B1 B2 reduce | update
 */
#pragma once

#include "cost/stage_seconds.h"
#include "schedule/timeline.h"

/* The row of the timeline that shows one stage of a group. */
typedef struct TimelineRow {
    const Stage *stage; // stage of the strategy; NULL: the batch runs as a whole
    int device_count;   // devices of the stage in the group's first pipeline
    const int *devices;
    double *times;       // seconds by phase and visit, as times_of_stage returns them
    double *behind;      // by operator: share of its phase after it; NULL: no reduction is async
    Span before, update; // the parts of the step before the table and after it
    double busy;         // seconds that the stage runs phases, without messages and reductions
} TimelineRow;

typedef struct PipelineGroup {
    int body, first_stage; // template and its first stage; -1, STAGE_ALL: the batch runs as a whole
    int64_t microbatches, rows;
    Array(int) runs; // indices of module->templates->runs
    StageGraph graph;
    const Schedule *schedule;
    const Timeline *timeline; // its spans count from `begin`
    double begin;             // of the table, in the unit of Simulation.length
    TimelineRow *lanes;       // by stage
} PipelineGroup;

/* An asynchronous gradient reduction, which overlaps with the schedules' tables. */
typedef struct SimulatedMessage {
    const Op *op;
    Span span;
} SimulatedMessage;

typedef struct Simulation {
    Module *module;
    Times times;
    Array(PipelineGroup) groups;
    Array(SimulatedMessage) collectives;
    double length; // length of the step, in the unit of `times`
} Simulation;

/* Returns the timeline of a step, in operations if a rate is unknown. Requires all passes. */
Simulation simulation_create(Arena *arena, Module *module);

/* Returns the index of the group of a run (an index of module->templates->runs); 0 where the batch
 * runs as a whole. */
int simulation_group(const Simulation *simulation, int run);

/* Returns whether the stage of a group runs an operator. */
bool op_on_lane(const Simulation *simulation, const Op *op, int group, int stage);

/* ---- conversions (conversions.c) ----
 *
 * A row of the list of conversions. Conversions that differ in scope alone are one row. */

typedef struct ConversionRow {
    const Op *op;               // the first conversion of the row
    const Plan *plan;           // the plan of its last conversion
    int64_t runs;               // number of runs of all conversions of the row in a step
    int64_t bytes;              // bytes that all devices receive in a step
    int64_t received;           // sum over the runs of the most bytes that one device receives
    double seconds;             // seconds of all runs in a step
    Array(const char *) scopes; // by conversion; NULL: it has no scope
} ConversionRow;

typedef struct ConversionRows {
    Array(ConversionRow) at; // in the program's order
} ConversionRows;

ConversionRows conversion_rows(Arena *arena, Simulation *simulation);
