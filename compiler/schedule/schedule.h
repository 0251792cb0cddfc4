/* Pipeline schedules as tables: the order of phases and micro-batches on each stage's devices.
 *
 * A visit (model chunk, virtual pipeline stage) is a run of layers on one stage with no other stage
 * between. For each micro-batch a visit has a forward phase. In training it also has a backward
 * phase and a weight-gradient phase. No phase needs weight gradients, but the slot is free only
 * after them. A table lists, for each stage, its phases in order, each with a slot. A slot holds
 * the values that pass from one phase to a later phase, or that are received or sent.
 *
 *     StageGraph graph = {.stage_count = 2, .visit_count = 2, .stage_of = (int[]){0, 1},
 *         .edge_count = 1, .edge = (int[][2]){{0, 1}}, .trains = true};
 *     const Schedule *schedule = schedule_create(arena, SCHEDULE_1F1B, &graph, 4);
 *
 *     stage 0: F0 F1 B0 W0 F2 B1 W1 F3 B2 W2 B3 W3     F forward, B backward, W weight gradients
 *     stage 1: F0 B0 W0 F1 B1 W1 F2 B2 W2 F3 B3 W3
 *
 * gpipe_1f1b_zero_bubble.c makes the tables, wait_graph.c finds which rows wait for which.
 * find_deadlocks.c refuses tables that block. text.c writes and reads tables. timeline.h computes
 * when rows run. */
#pragma once

#include "strategy/strategy.h"

typedef enum SchedulePhase { SCHEDULE_FORWARD, SCHEDULE_BACKWARD, SCHEDULE_WGRAD } SchedulePhase;
enum { SCHEDULE_PHASES = SCHEDULE_WGRAD + 1 };

typedef struct ScheduleRow {
    SchedulePhase phase;
    // visit: its number in the graph; slot: the same for all phases of the visit and micro-batch
    int visit, microbatch, slot;
} ScheduleRow;

/* The data flow between visits. An edge carries values forward between visits, of one stage or two,
 * and in training gradients backward. There is no cycle (strategy_check_order). */
typedef struct StageGraph {
    int stage_count, visit_count;
    const int *stage_of; // by visit: its stage
    int edge_count;
    const int (*edge)[2]; // from visit edge[e][0] to visit edge[e][1]
    bool trains;          // false: visits have only forward phases
} StageGraph;

typedef struct Schedule {
    int stage_count;
    int *row_count;     // by stage: number of its rows
    ScheduleRow **rows; // by stage: its rows
    int *slot_count;    // by stage: number of its slots
    Position **at;      // by stage and row: its position in the text; NULL: made by schedule_create
} Schedule;

/* Returns the table of a schedule. Micro-batches pass each phase in ascending order. The kind
 * limits how many pairs of visit and micro-batch a stage has between forward and backward. Let d(v)
 * be the number of edges of the longest path from visit v, and `first` and `last` the stage's
 * visits with the largest and the smallest d. The limits of a stage are:
 *
 *     gpipe        all pairs
 *     1f1b         d(first) + 1 pairs; stage s of a chain of S stages has the limit S - s
 *     interleaved  d(first) + 1 + d(last) pairs; (V - 1) S + 2 (S - s - 1) + 1 for stage s if a
 *                  chain passes S stages V times
 *     zero_bubble  as 1f1b. Weight gradients wait for the cool-down, or until L pairs are between
 *                  forward and weight gradients. L is the number of visits of the longest path
 *                  through the stage (ZB-H1 of Qi and others, "Zero Bubble Pipeline Parallelism")
 *
 * A stage has a slot for each pair that may be in flight. Without training it has two slots: a
 * phase computes in one during transfers of the other. Where stages would block, they get more. */
const Schedule *schedule_create(Arena *arena, ScheduleKind kind, const StageGraph *graph,
                                int64_t microbatches);

/* The kind of the row for which a row R waits. */
typedef enum WaitKind {
    WAIT_ROW,   // the row before R in the stage
    WAIT_DATA,  // the row that makes the data of R
    WAIT_ORDER, // the row of the same phase and visit for the previous micro-batch
    WAIT_SLOT   // the row after which the slot of R is free
} WaitKind;

typedef struct ScheduleWait {
    int stage, row;
    WaitKind kind; // why this row waits for the next row of the cycle
} ScheduleWait;

typedef struct ScheduleCycle {
    int count;
    const ScheduleWait *waits; // each row waits for the next, the last for the first
} ScheduleCycle;

/* Returns a cycle of rows that wait for each other (a deadlock), or NULL when there is none. Data
 * is received as soon as its slot is free, and a send ends when its data is received. The table
 * must have passed the other checks of schedule_check. */
const ScheduleCycle *schedule_cycle(Arena *arena, const StageGraph *graph,
                                    const Schedule *schedule);

/* Reports a wrong number of stages, wrong, missing and double rows, slots with two users at a time,
 * and a deadlock with its cycle. Errors are at the row in the schedule's text, or at `at` if
 * schedule_create made the schedule. Returns whether there is no error. */
bool schedule_check(Diag *diag, Position at, const StageGraph *graph, const Schedule *schedule,
                    int64_t microbatches);

/* Prints a schedule as text that schedule_parse reads: for each stage, its rows as a phase, a visit
 * and `:MICROBATCH`. Forward rows also have `/SLOT`, for all phases. Lines begin with `indent`.
 *
 *     stage 0 slots 2: F0:0/0 F0:1/1 B0:0 W0:0 ...
 */
void schedule_print(Text *out, const Schedule *schedule, const char *indent);

/* Reads a schedule's stages. Returns NULL after a syntax error; schedule_check checks the table. */
const Schedule *schedule_parse(Tokens *tokens);
