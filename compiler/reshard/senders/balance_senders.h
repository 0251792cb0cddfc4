/* How the planner divides work among devices.
 *
 * Reductions and transfers leave choices: which of several holders sends, which device combines
 * contributions, who passes a value on. Each choice is a job that may be divided among devices; all
 * jobs are divided so that no device does much more than an even share where that can be avoided.
 */
#ifndef RESHARD_SENDERS_BALANCE_SENDERS_H
#define RESHARD_SENDERS_BALANCE_SENDERS_H

#include "reshard/plan_builder.h"

/* Work that may be divided among devices: units that the first of them do in any case, and
 * indivisible grains of units that any of them may do. The first are preferred: the others take
 * only what would bring these above the cap. */
typedef struct Job {
    Devices devices;
    int first;       // how many of them are preferred
    int64_t unit;    // the load of a unit
    int64_t least;   // units that the first do together, divided at will
    int64_t grains;  // further work, in grains
    int64_t grain;   // units in each, at least 1
    int64_t *limits; // by preferred device: grains that it may do, where there is nothing to be
                     // done in any case; NULL: all
    int64_t *units;  // by device: what it does
} Job;

typedef Array(Job) Jobs;

/* Appends a job of which nobody does anything yet; the result is its number. */
int add_job(PlanBuilder *planner, Jobs *jobs, Job job);

/* Returns the load of all that a job consists of. */
int64_t job_load(const Job *job);

/* Returns the load that nobody shall exceed without need: somewhat above an even share of
 * `total`. */
int64_t load_cap(const Plan *plan, int64_t total);

/* Returns the most elements of a segment that need not be divided when loads are up to a cap. */
int64_t fine_grain(const Plan *plan, const Segment *segment, int64_t cap);

/* Divides the jobs so that, as far as they allow, no load is above the cap, and the loads above it
 * are even. Adds them to `load`, which has what else the devices do. After the first division there
 * are so many sweeps at most in which jobs are divided anew. */
enum { FEW_SWEEPS = 4, MANY_SWEEPS = 64 };
void balance_jobs(PlanBuilder *planner, Jobs *jobs, int64_t cap, int sweeps, int64_t *load);

/* Trees: the ways of values that are passed on, and of contributions that are combined, in several
 * rounds. */

/* Arranges nodes as a forest whose first `tops` nodes have no parent, so that every node has
 * `degree` children and no path is longer than need be. The degrees add up to the number of the
 * other nodes. Fills the parent (-1: none) and the depth of every node. */
void tree_arrange(PlanBuilder *planner, int tops, int count, const int *degree, int *parent,
                  int *depth);

#endif
