/* The dependences of a schedule's table, as a graph of events: rows, and transfers that carry a
 * row's result to a row that needs it.
 *
 * A row waits for: the row before it in its stage; its phase in the micro-batch before; the phase
 * before it of its visit and micro-batch; the transfers to it; and, where it takes over a slot, the
 * transfers out of that slot. A transfer waits for: the sending row; its own in the micro-batch
 * before; and its place at the receiver, that is the last row in front of the receiving one with
 * the same slot, and the transfers out of that slot. So no transfer ends before its receiver is
 * ready.
 *
 *     F of stage 0, micro-batch 1 -> transfer forward, micro-batch 1 -> F of stage 1, micro-batch 1
 */
#ifndef SCHEDULE_WAIT_H
#define SCHEDULE_WAIT_H

#include "schedule/schedule.h"

/* ---- distances in the graph of visits ---- */

/* The edges of each visit v: list[first[v]] to list[first[v + 1] - 1]. */
typedef struct GraphSide {
    int *first, *list;
} GraphSide;

typedef struct GraphLinks {
    GraphSide in, out;
    int *order;  // the visits in topological order
    int *before; // by visit: edges of the longest path that ends there
    int *after;  // by visit: edges of the longest path that begins there
} GraphLinks;

GraphLinks graph_links(Arena *arena, const StageGraph *graph);

typedef struct Waits {
    const StageGraph *graph;
    const Schedule *schedule;
    GraphLinks links;
    int microbatches;
    int row_count, event_count; // events: rows stage by stage, then transfers, forward ones by edge
                                // and micro-batch, then backward ones
    int *first_row;             // by stage: its first row
    int *stage_of;              // by row
    int *row_of;                // by phase, visit and micro-batch: the row
    int *slot_before;           // by row: the last row before it with the same slot; -1: none
} Waits;

typedef struct WaitFor {
    int event;
    WaitKind kind;
} WaitFor;

/* Makes the graph of events. The table must have every row once. */
Waits waits_create(Arena *arena, const StageGraph *graph, const Schedule *schedule);

static inline const ScheduleRow *wait_row(const Waits *waits, int row) {
    int stage = waits->stage_of[row];
    return &waits->schedule->rows[stage][row - waits->first_row[stage]];
}

/* Writes the events that an event waits for to `to`, which has room for waits_most. Returns how
 * many. */
int waits_of(const Waits *waits, int event, WaitFor *to);
int waits_most(const Waits *waits);

/* Returns the edge of a transfer, and whether it goes backward. */
int wait_edge(const Waits *waits, int transfer, bool *backward);

/* Calls `ends` for each event after those that it waits for. Returns NULL, or the rows of a
 * deadlock. */
const ScheduleCycle *
waits_visit(Arena *arena, const Waits *waits,
            void ends(void *state, int event, const WaitFor *waited, int count), void *state);

#endif
