/* A batch over the pipelines of a strategy: which micro-batch a sequence is in.
 *
 * Each pipeline is given a number of micro-batches, and then the sequences go, the longest first,
 * where they end earliest (longest processing time first); the many short ones at the end level
 * what the long ones leave. So a dispatch follows from its numbers of micro-batches, which a search
 * improves.
 */
#ifndef PLANNER_KINDS_HYDRAULIS_DISPATCH_H
#define PLANNER_KINDS_HYDRAULIS_DISPATCH_H

#include "planner/kinds/budget.h"
#include "planner/kinds/hydraulis/problem.h"
#include "planner/kinds/random.h"

/* The pipelines of a strategy and what they are given. */
typedef struct Dispatch {
    int count;
    int *schemes, *microbatches; // [pipeline]
    double time;                 // ms of a step
} Dispatch;

/* Storage for dispatches of batches up to `sequences` on up to `gpus` devices. */
typedef struct Dispatcher Dispatcher;
Dispatcher *dispatcher_create(Arena *arena, const Schemes *schemes, int gpus, int sequences);

/* A dispatch for a strategy that a descent finds, over at most `kicks` restarts from a changed best
 * one; the time is INFINITY when the pipelines cannot hold the sequences. Valid until the next
 * call, which reuses it. */
const Dispatch *dispatch_find(Dispatcher *dispatcher, const Strategy *strategy, const Batch *batch,
                              Random *random, int kicks);

/* How many sequences have been put into micro-batches so far: what all searches count as work. */
long dispatcher_work(const Dispatcher *dispatcher);

/* The time of a step as if sequences were sand: what no dispatch is much below. */
double dispatch_smooth(Dispatcher *dispatcher, const Strategy *strategy, const Batch *batch);

/* Where each sequence of the last dispatch that was found stands: pipeline and micro-batch in it,
 * by the batch's order. */
void dispatch_places(Dispatcher *dispatcher, const Batch *batch, const Dispatch *dispatch,
                     int *pipelines, int *microbatches);

#endif
