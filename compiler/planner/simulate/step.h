/* Turns a program's step into the engine's tasks: actors' computing and conversions, by table.
 *
 * An actor's computing between two conversions is one task. A transfer of a conversion is one task,
 * in which all its actors take part. Conversions inside a phase block their actors. Messages
 * between stages and gradient reductions overlap with computing, in streams of their own. Rows and
 * messages wait as in schedule/wait_graph.h. Gradient reductions begin in the same order on all
 * devices, each when the device's contribution of the last micro-batch is complete. The update
 * begins when the device's reductions have ended. */
#pragma once

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
    int step, run, stage, visit, microbatch; // -1: the task belongs to no run, stage, ...
    int edge;                                // messages: the edge of the pipeline's stage graph
    const Op *op;                            // the conversion; NULL: the task computes
    const ActorTransfer *transfer;
    int actor_count;
    const int *actors;
} ProgramTask;

/* An actor's first and last task in a row of its table, or in the step before or after it. */
typedef struct ProgramRow {
    int actor, step, run, stage, row; // row -1: before the table; -2: the update
    int first, last;                  // indices of Program.tasks
} ProgramRow;

typedef struct Program {
    Symmetry *fold;
    int steps;
    Array(ProgramTask) tasks;
    Array(EngineTask) engine; // by task
    Array(ProgramRow) rows;
    Array(int) step_ends; // by step: its last task
    const char *unknown;  // message with the rate that the cluster file lacks, or NULL
} Program;

/* Returns the tasks of `steps` steps. Requires all passes, and a cluster. */
Program tasks_of_steps(Arena *arena, Symmetry *fold, int steps);
