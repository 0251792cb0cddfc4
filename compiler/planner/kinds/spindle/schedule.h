/* From an order of pieces to a schedule. Every operator has PIECES pieces, each with layers (some
 * have none) and an allotment; a piece becomes a slice. Pieces are scheduled in their order, each
 * at the earliest time at which an island (or enough whole islands) has enough free devices. Of the
 * devices that are free then, the piece takes those that have waited least.
 *
 * A search changes the choices a little at a time. The scheduler keeps the devices' times before
 * each place (index) of one order. A schedule that differs from place p on is made from p on:
 *
 *     schedule_make(scheduler, &choices, (Places){0, pieces}, INFINITY);
 *     schedule_keep(scheduler, &choices);
 *     ... choices change at places 17 to 20 of the order ...
 *     schedule_make(scheduler, &choices, (Places){17, 20}, most);
 */
#pragma once

#include "planner/kinds/spindle/spindle.h"

enum { PIECES = 2 };

/* The layers of a piece, and the index of its allotment. */
typedef struct Piece {
    int layers, allotment;
} StackedPiece;

/* The choices that a schedule is made from. In the order, an operator's pieces come after the
 * pieces of the operators that it follows. */
typedef struct Choices {
    StackedPiece *piece; // (operators * PIECES), by operator
    int count;           // number of pieces that have layers
    int *order;          // (count): indices of `piece`, in the order of scheduling
    int *place;          // (operators * PIECES): a piece's index in `order`; -1: it has no layers
} Choices;

typedef struct Scheduler Scheduler;

/* The weights of the terms of a search's objective besides the end of the last slice. */
typedef struct Weights {
    double mean;    // weight of the mean end of the devices
    double penalty; // weight of the states that fit nowhere, as a fraction of a device's memory
} Weights;

Scheduler *scheduler_create(Arena *arena, const Spindle *q, Weights weights);

/* The changed range of an order: first and last index at which the piece or its choice differs. */
typedef struct Places {
    int first, last;
} Places;

/* Returns the work that all schedules made so far took, in units of about 7 ns. */
int64_t schedule_work(const Scheduler *scheduler);

/* The times of a schedule. */
typedef struct ScheduleTimes {
    double ms;        // end of the last slice; INFINITY: some states fit nowhere
    double objective; // the end, plus weighted terms for the devices' mean end and for states that
                      // fit nowhere (Weights)
} ScheduleTimes;

/* Makes the schedule of choices that equal those of the schedule kept, except at places `changed`.
 * Both times are INFINITY if the objective is sure to exceed `most`. */
ScheduleTimes schedule_make(Scheduler *scheduler, const Choices *choices, Places changed,
                            double most);

/* Keeps the last schedule, which was made of `choices`. The next schedules are made from it. */
void schedule_keep(Scheduler *scheduler, const Choices *choices);

/* Returns when each piece ends in the schedule kept: (operators * PIECES). */
const double *schedule_ends(const Scheduler *scheduler);

/* Returns the schedule of the choices as a plan. */
SpindlePlan *schedule_plan(Arena *arena, Scheduler *scheduler, const Choices *choices);
