/* Schedules: in which order the devices of each stage of a pipeline run their parts of a step,
 * micro-batch by micro-batch, as tables.
 *
 * A step of a pipeline is a graph of visits: layers that a stage has without another in between.
 * Each visit has, for each micro-batch, a part forward, and in training a part backward and one for
 * the gradients of its parameters, which nothing waits for but the slot. A table lists for a stage
 * the parts that it runs, and in which slot a visit keeps what lives from one of its parts to a
 * later one, is received or is sent.
 *
 *     StageGraph graph = {.stage_count = 2, .visit_count = 2, .stage_of = (int[]){0, 1},
 *         .edge_count = 1, .edge = (int[][2]){{0, 1}},
 * .trains = true}; const Schedule *schedule = schedule_create(arena, SCHEDULE_1F1B, &graph, 8);
 *
 * graph.c has the distances in a graph, create.c makes the tables, wait.c says what waits for what,
 * check.c refuses tables that would not end, text.c writes and reads them, timeline.h says when
 * which row runs.
 */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include "strategy/strategy.h"

typedef enum SchedulePhase { SCHEDULE_FORWARD, SCHEDULE_BACKWARD, SCHEDULE_WGRAD } SchedulePhase;
enum { SCHEDULE_PHASES = SCHEDULE_WGRAD + 1 };

typedef struct ScheduleRow {
    SchedulePhase phase;
    int visit, microbatch,
        slot; // the visit's number in the graph; the parts of a visit and micro-batch have one slot
} ScheduleRow;

/* Stages as the data flows. An edge is what goes from a visit to another, of the same stage or not:
 * values forward, in training their gradients backward. There is no way from a visit back to itself
 * (strategy_check_order). */
typedef struct StageGraph {
    int stage_count, visit_count;
    const int *stage_of; // by visit
    int edge_count;
    const int (*edge)[2];
    bool trains; // else there are forward parts alone
} StageGraph;

typedef struct Schedule {
    int stage_count;
    int *row_count;     // by stage
    ScheduleRow **rows; // by stage
    int *slot_count;    // by stage
    Position **at;      // of each row in the text that it was read from; NULL: it was made
} Schedule;

/* Returns the table of a schedule. Micro-batches go through each part in ascending order. At
 * most so many are between a stage's forward and backward parts, d(v) being the most edges from
 * visit v to one that nothing follows, `first` and `last` the stage's visits with the most and
 * the fewest: gpipe all 1f1b d(first) + 1: S - s at stage s of a chain of S stages interleaved
 * d(first) + 1 + d(last): (V - 1) S + 2 (S - s - 1) + 1 where a chain goes V times round S
 * stages zero_bubble as 1f1b, but gradients of parameters wait until as many micro-batches as
 * the graph has visits on the longest way through the stage are in flight; this is ZB-H1 of Qi
 * and others, "Zero Bubble Pipeline Parallelism" (2023) and there are as many slots. Without
 * training there are two, so that one is sent and received while the other is at work. Graphs in
 * which that stands still get more. */
const Schedule *schedule_create(Arena *arena, ScheduleKind kind, const StageGraph *graph,
                                int64_t microbatches);

/* Why a row waits for another. */
typedef enum WaitKind {
    WAIT_ROW,   // it stands behind it
    WAIT_DATA,  // it needs what that makes
    WAIT_ORDER, // micro-batches go through a part in order
    WAIT_SLOT // it takes a slot of which something is sent to where the slot is free once that has
              // run
} WaitKind;

typedef struct ScheduleWait {
    int stage, row;
    WaitKind kind; // why this row waits for the next of the list
} ScheduleWait;

typedef struct ScheduleCycle {
    int count;
    const ScheduleWait *waits; // each row for the next, the last for the first
} ScheduleCycle;

/* NULL, or the rows of a cycle of waits: the table stands still though all that is sent is received
 * as soon as there is a place for it. A send is taken to end when it is received. Of a table that
 * schedule_check finds whole. */
const ScheduleCycle *schedule_cycle(Arena *arena, const StageGraph *graph,
                                    const Schedule *schedule);

/* Reports a table of which rows are missing, stand there twice, or share a slot at one time, or
 * that stands still, with the cycle. Errors are at the rows where the schedule was read from a
 * text, else at `at`. Returns whether it may run. */
bool schedule_check(Diag *diag, Position at, const StageGraph *graph, const Schedule *schedule,
                    int64_t microbatches);

/* The text form, which schedule_parse reads back: a line or more a stage, rows as part, visit,
 * micro-batch, and in front the slot.
 *
 *     stage 0 slots 2: F0:0/0 F0:1/1 B0:0 W0:0 ...
 */
void schedule_print(Text *out, const Schedule *schedule, const char *indent);

/* Reads lines of stages as long as there are some; NULL after an error. Whether the table may run
 * is schedule_check's. */
const Schedule *schedule_parse(Tokens *tokens);

/* Returns how messages call a row: "forward of visit 0, micro-batch 3". */
const char *schedule_row_shown(Arena *arena, const ScheduleRow *row);

#endif
