/* Reductions by messages: what their parts share. */
#ifndef RESHARD_MERGE_H
#define RESHARD_MERGE_H

#include "reshard/loads.h"

/* A stretch of a contribution that a device takes in, `depth` steps before the last. */
typedef struct Leaf {
    int contribution, receiver, depth;
    int64_t lo, hi;
} Leaf;

/* What becomes of a contribution. */
typedef struct Contribution {
    const Devices *holders;
    Segment segment; // all of it
    int64_t volume;  // of its leaves
    int work;        // which divides the sending among the holders; -1: the first does all
} Contribution;

/* A partial reduction that is sent on. */
typedef struct Passed {
    int sender, receiver, depth;
    Segment segment;
} Passed;

typedef struct Reduced {
    Reducing reducing;
    int depth;
} Reduced;

struct Merges {
    Builder *builder;
    Index *reducers; // of the sum at hand
    Index *source;   // by device: the contribution to the sum at hand that it holds
    Array(Contribution) contributions;
    Array(Leaf) leaves;
    Array(Passed) passed;
    Array(Reduced) reduced;
    int first;         // of the sum at hand, in contributions
    int deepest, step; // the depth of the first of the exchanges, and its number
};

/* The task of a sum. */
static inline const Task *task_of(const Merges *merges, const Sum *sum) { return &merges->builder->plan->tasks.at[sum->task]; }

/* Contributions that are taken in beyond the one receipt of the value that every device which wants it has in any case, by element. */
int64_t extra_receipts(const Merges *merges, const Sum *sum);

/* Decides which parts of the sums are complete first at which of the reducers that hold contributions: these then send them to the others.
 */
void choose_roots(Merges *merges, Sums *sums);

/* What the devices receive however the sums are divided: all that they want and do not hold as it shall be. The result is all that is
 * received, with what remains to be divided. */
int64_t count_receipts(Merges *merges, const Sums *sums);

#endif
