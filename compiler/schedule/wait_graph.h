/* The dependences of a schedule's table, as a graph of events: rows, and transfers that carry a
 * row's result to a row that needs it.
 *
 * A row waits for: the row before it in its stage; the same phase of the previous micro-batch; the
 * previous phase of its visit and micro-batch; the transfers to it; and, when it takes over a slot,
 * the transfers out of that slot. A transfer waits for: the sending row; the transfer of the
 * previous micro-batch along the same edge; and a free slot at the receiver, that is, for the last
 * row with this slot before the receiving row, and the transfers out of that slot. So no transfer
 * ends before its receiver is ready.
 *
 *     F of stage 0, micro-batch 1 -> transfer forward, micro-batch 1 -> F of stage 1, micro-batch 1
 */
#pragma once

#include "schedule/schedule.h"

/* ---- edges, order and distances of visits ---- */

/* The edges into each visit v, or out of it: list[first[v]] to list[first[v + 1] - 1]. */
typedef struct GraphSide {
    int *first, *list;
} GraphSide;

typedef struct GraphLinks {
    GraphSide in, out;
    int *order;  // the visits in topological order
    int *before; // by visit: edges of the longest path that ends at the visit
    int *after;  // by visit: edges of the longest path that begins at the visit
} GraphLinks;

GraphLinks graph_links(Arena *arena, const StageGraph *graph);

typedef struct Waits {
    const StageGraph *graph;
    const Schedule *schedule;
    GraphLinks links;
    int microbatches;
    int row_count, event_count; // events: rows stage by stage, then forward transfers by edge and
                                // micro-batch, then backward transfers
    int *first_row;             // by stage: the number of its first row
    int *stage_of;              // by row: its stage
    int *row_of;                // by phase, visit and micro-batch, in this order: the row's number
    int *slot_before;           // by row: the last row before it with the same slot; -1: none
} Waits;

typedef struct WaitFor {
    int event;
    WaitKind kind;
} WaitFor;

/* Returns the graph of events of a table, which must have every row once. */
Waits waits_create(Arena *arena, const StageGraph *graph, const Schedule *schedule);

static inline const ScheduleRow *wait_row(const Waits *waits, int row) {
    int stage = waits->stage_of[row];
    return &waits->schedule->rows[stage][row - waits->first_row[stage]];
}

/* Returns the edge of event `transfer`; writes to *backward whether the transfer goes backward. */
int wait_edge(const Waits *waits, int transfer, bool *backward);

/* Calls `ends` for each event after all events for which it waits, which `waited` lists. Stops at a
 * deadlock and returns the rows in it; NULL: there is no deadlock. */
const ScheduleCycle *
waits_visit(Arena *arena, const Waits *waits,
            void ends(void *state, int event, const WaitFor *waited, int count), void *state);
