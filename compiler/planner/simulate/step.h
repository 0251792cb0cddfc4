/* A step of a program as tasks of the engine: what each actor computes and converts, in the order
 * of its table.
 *
 * What an actor computes between two conversions is one task; a hop of a conversion is one, in
 * which all its actors take part. Conversions inside a part hold their actors up; messages between
 * parts, and sums of gradients, are under way beside computing, in streams of their own. Rows and
 * messages wait as schedule/wait.h says. Sums of gradients begin in one order on all devices, each
 * as soon as all that a device has of it is made in the last micro-batch; the update begins when a
 * device's sums have come.
 */
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

/* What a task is. */
typedef struct ProgramTask {
    Stream stream;
    Phase phase;
    int step, run, stage, visit, microbatch; // -1: of none
    int edge;                                // of messages: of the pipeline's graph
    const Op *op;                            // of a conversion; NULL: computing
    // of a conversion; NULL: what it moves in an actor's own memory, and computing
    const ActorTransfer *hop;
    int actor_count;
    const int *actors;
} ProgramTask;

/* A row of a table, or what comes before or behind it, on an actor: its first and its last task. */
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
    Array(int) step_ends; // by step: the task with which it ends
    const char *unknown;  // what the cluster does not say and the program needs; NULL: nothing
} Program;

/* Requires all passes, and a cluster. */
Program program_create(Arena *arena, Symmetry *fold, int steps);

#endif
