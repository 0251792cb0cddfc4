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
    int job;        // which divides the sending among the holders; -1: the first does all
} Contribution;

/* A partial reduction that is sent on. */
typedef struct Forwarded {
    int sender, receiver, depth;
    Segment segment;
} Forwarded;

typedef struct Reduced {
    Reducing reducing;
    int depth;
} Reduced;

struct Combining {
    Planner *planner;
    Index *reducers; // of the reduction at hand
    Index *source;   // by device: the contribution to the reduction at hand that it holds
    Array(Contribution) contributions;
    Array(Leaf) leaves;
    Array(Forwarded) forwarded;
    Array(Reduced) reduced;
    int first;         // of the reduction at hand, in contributions
    int deepest, step; // the depth of the first of the exchanges, and its number
};

/* The task of a reduction. */
static inline const Task *task_of(const Combining *combining, const Reduction *reduction) { return &combining->planner->plan->tasks.at[reduction->task]; }

/* Contributions that are taken in beyond the one receipt of the value that every device which wants it has in any case, by element. */
int64_t extra_receipts(const Combining *combining, const Reduction *reduction);

/* Decides which parts of the reductions are complete first at which of the reducers that hold contributions: these then send them to the others.
 */
void choose_roots(Combining *combining, Reductions *reductions);

/* What the devices receive however the reductions are divided: all that they want and do not hold as it shall be. The result is all that is
 * received, with what remains to be divided. */
int64_t count_receipts(Combining *combining, const Reductions *reductions);

#endif
