/* When the stages of each pipeline run what in a step, if what they do takes the times of
 * stage_seconds.h.
 *
 * Pipelines whose times are the same, those of one body with as many micro-batches on devices of
 * the same classes, form a group, of which the first pipeline stands for all. What comes before the
 * schedules' tables ends on all devices before one of these begins; sums of gradients go beside the
 * tables, one after the other on a stage, in the order in which the run-time library begins them;
 * the update begins when all of that has ended.
 */
#ifndef PLANNER_REPORT_SIMULATION_H
#define PLANNER_REPORT_SIMULATION_H

#include "planner/report/stage_seconds.h"
#include "schedule/timeline.h"

/* A stage of a group. */
typedef struct Lane {
    const Stage *stage; // of the strategy; NULL: there is none
    int device_count;   // of the first pipeline
    const int *devices;
    double *times;       // times_of_stage
    Span before, update; // what runs once, with what micro-batches do before their tables
    double busy;
} TimelineRow;

typedef struct PipelineGroup {
    int body, first_stage; // -1, STAGE_ALL: the batch runs as a whole
    int64_t microbatches, rows;
    Array(int) runs; // of module->templates
    StageGraph graph;
    const Schedule *schedule;
    const Timeline *timeline; // from `begin` on
    double begin;
    TimelineRow *lanes; // by stage
} PipelineGroup;

/* A sum of gradients that is under way beside the tables. */
typedef struct AsyncExchange {
    const Op *op;
    Span span;
} SimulatedMessage;

typedef struct Simulation {
    Module *module;
    Times times;
    Array(PipelineGroup) groups;
    Array(SimulatedMessage) collectives;
    double length; // in the unit of times
} Simulation;

/* Requires all passes. */
Simulation simulation_create(Arena *arena, Module *module);

/* The group of a run of the module's bodies; 0 where the batch runs as a whole. */
int simulation_group(const Simulation *simulation, int run);

/* Whether what an operator makes is on the lanes of a group and stage. */
bool op_on_lane(const Simulation *simulation, const Op *op, int group, int stage);

#endif
