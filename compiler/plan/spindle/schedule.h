/* From an order of pieces to a schedule. Every operator has PIECES pieces, each with layers (some have none) and an allotment; a piece
 * becomes a slice. Pieces are placed in an order, those first that no other one must precede, each at the earliest time at which an island
 * (or enough whole ones) has enough devices free; among devices that are free then, those that have waited least.
 */
#ifndef PLAN_SPINDLE_SCHEDULE_H
#define PLAN_SPINDLE_SCHEDULE_H

#include "plan/spindle/spindle.h"

enum { PIECES = 2 };

/* A piece's layers, and the index of its allotment. */
typedef struct Piece {
    int layers, allotment;
} Piece;

/* Choices that make a schedule: pieces by operator, (operators * PIECES), and the order of their numbers. */
typedef struct Choices {
    Piece *piece;
    int *order;
} Choices;

typedef struct Scheduler Scheduler;

/* `penalty`: how often the objective counts the share of a device's memory that states have too much. */
Scheduler *scheduler_create(Arena *arena, const Spindle *q, double penalty);

/* How much work a schedule is, about 5 ns each. */
int64_t schedule_work(const Scheduler *scheduler);

/* The end of the last slice; *objective is that and a little of when devices are done on average, and of states that fit nowhere. Sets
 * *fits: all states do. INFINITY, and so the objective, once it is sure to be more than `most`. */
double schedule_make(Scheduler *scheduler, const Choices *choices, double most, double *objective, bool *fits);

/* The slices of the last schedule made. */
SpindlePlan *schedule_plan(Arena *arena, const Scheduler *scheduler, const Choices *choices);

#endif
