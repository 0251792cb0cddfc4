/* What rows of a table wait for, as a graph of events: rows that run, and transfers that carry what
 * a row made to one that needs it.
 *
 * A row waits for the row in front of it, for its part in the micro-batch before, for the part
 * before it of its own visit and micro-batch, for the transfers to it, and, where it takes over a
 * slot, for the transfers out of that slot. A transfer waits for the row that gives, for its own in
 * the micro-batch before, and for place: for the last row, in front of the one that takes, which
 * has that one's slot, and for the transfers out of that slot. So no transfer ends before its
 * receiver is ready for it.
 */
#ifndef SCHEDULE_WAIT_H
#define SCHEDULE_WAIT_H

#include "schedule/schedule.h"

/* What schedules ask of a graph of visits: who is next to whom, and how far the ends are. */

/* The edges of each visit v: list[first[v]] to list[first[v + 1] - 1]. */
typedef struct GraphSide {
    int *first, *list;
} GraphSide;

typedef struct GraphLinks {
    GraphSide in, out;
    int *order;  // visits, each behind those that it needs
    int *before; // by visit: the most edges on a way that ends there
    int *after;  // by visit: the most edges on a way that begins there
} GraphLinks;

GraphLinks graph_links(Arena *arena, const StageGraph *graph);

typedef struct Waits {
    const StageGraph *graph;
    const Schedule *schedule;
    GraphLinks links;
    int microbatches;
    int row_count, event_count; // rows come first, stage by stage, then transfers: forward ones by
                                // edge and micro-batch, then backward ones
    int *first_row;             // by stage: its first row
    int *stage_of;              // by row
    int *row_of;                // by part, visit, micro-batch: the row
    int *slot_before;           // by row: the last one in front of it with its slot; -1: none
} Waits;

typedef struct WaitFor {
    int event;
    WaitKind kind;
} WaitFor;

/* Of a table that has every row once. */
Waits waits_create(Arena *arena, const StageGraph *graph, const Schedule *schedule);

static inline const ScheduleRow *wait_row(const Waits *waits, int row) {
    int stage = waits->stage_of[row];
    return &waits->schedule->rows[stage][row - waits->first_row[stage]];
}

/* Returns the events that an event waits for; `to` has room for waits_most. How many. */
int waits_of(const Waits *waits, int event, WaitFor *to);
int waits_most(const Waits *waits);

/* Returns the edge of a transfer, and whether it goes backward. */
int wait_edge(const Waits *waits, int transfer, bool *backward);

/* Calls `ends` for every event, those that it waits for first. NULL, or the rows that wait for each
 * other. */
const ScheduleCycle *
waits_visit(Arena *arena, const Waits *waits,
            void ends(void *state, int event, const WaitFor *waited, int count), void *state);

#endif
