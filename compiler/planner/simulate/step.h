/* Turns a step of a program into tasks of the engine: what each actor computes and converts, in the
 * order of its table.
 *
 * All that an actor computes between two conversions is one task; a transfer of a conversion is one
 * task in which all its actors take part. Conversions inside a phase block their actors. Messages
 * between stages and gradient reductions run beside computing, in streams of their own. Rows and
 * messages wait as schedule/wait.h says. Gradient reductions begin in one order on all devices,
 * each as soon as the device's contribution is complete in the last micro-batch; the update begins
 * when the device's reductions have ended. */
#ifndef PLANNER_SIMULATE_STEP_H
#define PLANNER_SIMULATE_STEP_H

#include "hetu/trace.h"
#include "ir/analysis/phases.h"
#include "planner/simulate/symmetry.h"

typedef enum Stream {
    STREAM_COMPUTING = HT_STREAM_COMPUTING,
    STREAM_COLLECTIVES = HT_STREAM_COLLECTIVES,
    STREAM_MESSAGES = HT_STREAM_MESSAGES,
    STREAM_SUMS = HT_STREAM_SUMS,
    STREAMS
} Stream;

const char *stream_name(Stream stream);

/* The meaning of a task. */
typedef struct ProgramTask {
    Stream stream;
    Phase phase;
    int step, run, stage, visit, microbatch; // -1: of none
    int edge;                                // of a message: the edge of the pipeline's stage graph
    const Op *op;                            // the conversion; NULL: the task computes
    const ActorTransfer *hop;
    int actor_count;
    const int *actors;
} ProgramTask;

/* A row of a table on an actor, or what comes before or behind the table: its first and its last
 * task. */
typedef struct ProgramRow {
    int actor, step, run, stage, row; // row -1: before the table; -2: the update
    int first, last;
} ProgramRow;

typedef struct Program {
    Symmetry *fold;
    int steps;
    Array(ProgramTask) tasks;
    Array(EngineTask) engine; // by task
    Array(ProgramRow) rows;
    Array(int) step_ends; // by step: its last task
    const char *unknown;  // which rate the cluster file lacks; NULL: none
} Program;

/* Makes the tasks of so many steps. Requires all passes, and a cluster. */
Program program_create(Arena *arena, Symmetry *fold, int steps);

#endif
