/* Dispatch: assigns each sequence of a batch to a micro-batch of a pipeline.
 *
 * Each pipeline first gets a number of micro-batches. Then the sequences, the longest first, go to
 * the micro-batch that ends earliest with them (longest processing time first); the many short
 * sequences at the end even out the times. So the numbers of micro-batches determine a dispatch,
 * and the search improves these numbers.
 *
 *     lengths 8, 4, 2, 2 on two pipelines with 1 and 2 micro-batches
 *         -> pipeline 0: [8]    pipeline 1: [4], [2, 2]
 */
#pragma once

#include "planner/kinds/budget.h"
#include "planner/kinds/hydraulis/problem.h"

/* The pipelines of a strategy, and the number of micro-batches of each. */
typedef struct Dispatch {
    int count;
    int *schemes, *microbatches; // by pipeline: its scheme's index; its number of micro-batches
    double time;                 // ms of a step
} Dispatch;

/* Storage for dispatches of batches of up to `sequences` sequences on up to `gpus` devices. */
typedef struct Dispatcher Dispatcher;
Dispatcher *dispatcher_create(Arena *arena, const Schemes *schemes, int gpus, int sequences);

/* Searches for the dispatch of a batch under a strategy: a descent, and at most `kicks` restarts
 * from the best dispatch, changed at random. The time is INFINITY if the pipelines cannot hold the
 * sequences. The next call overwrites the result. */
const Dispatch *dispatch_find(Dispatcher *dispatcher, const Strategy *strategy, const Batch *batch,
                              Random *random, int kicks);

/* Returns how many sequences all searches so far have put into micro-batches: a measure of work. */
long dispatcher_work(const Dispatcher *dispatcher);

/* Returns the ms of a step if sequences could be divided at will; no dispatch is much faster. */
double dispatch_smooth(Dispatcher *dispatcher, const Strategy *strategy, const Batch *batch);

/* The pipeline and the micro-batch of each sequence, in the batch's order. */
typedef struct SequencePlaces {
    int *pipelines, *microbatches;
} SequencePlaces;

/* Writes to `places` the places of the batch's sequences in `dispatch`. */
void dispatch_places(Dispatcher *dispatcher, const Batch *batch, const Dispatch *dispatch,
                     SequencePlaces places);

/* ---- exchanges, which improve longest-first dispatches of small batches ---- */

/* Moves sequences of the slowest pipeline to other micro-batches, or swaps them with others, while
 * the step gets shorter. Updates `places` (dispatch_places). Returns the ms of the step. */
double moves_make(Arena *arena, const Schemes *schemes, const Batch *batch,
                  const Dispatch *dispatch, SequencePlaces places);
