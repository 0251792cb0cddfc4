/* Load balancing of conversions: how the planner divides work among devices.
 *
 * Reductions and transfers leave choices: which of several holders sends, which device combines
 * contributions, which receiver passes a value on. Each choice is a job that may be divided among
 * devices. All jobs are divided so that, if possible, no device does much more than its share. */
#pragma once

#include "reshard/plan_builder.h"

/* A job: units of work that the preferred devices (the first ones) always do, and indivisible
 * grains of units that any device may do. The other devices do only grains that would raise the
 * loads of preferred devices above the cap. */
typedef struct Job {
    Devices devices;
    int first;       // number of preferred devices
    int64_t unit;    // bytes of a unit
    int64_t least;   // units that the preferred devices do together, divided at will
    int64_t grains;  // number of grains
    int64_t grain;   // units of a grain, at least 1
    int64_t *limits; // by preferred device: the most grains that it may do, if `least` is 0; NULL:
                     // any number
    int64_t *units;  // by device: the units that it does
} Job;

typedef Array(Job) Jobs;

/* Appends an undivided job; allocates `units` if they are NULL. Returns the job's index. */
int add_job(PlanBuilder *planner, Jobs *jobs, Job job);

/* Returns the bytes of a whole job. */
int64_t job_load(const Job *job);

/* Returns the load cap: somewhat above an even share of `total`. */
int64_t load_cap(const Plan *plan, int64_t total);

/* Returns the most elements of a segment that need not be divided further under a cap. */
int64_t fine_grain(const Plan *plan, const Segment *segment, int64_t cap);

enum { FEW_SWEEPS = 4, MANY_SWEEPS = 64 };
/* Fills each job's `units` so that, if possible, no load exceeds `cap` bytes, and loads above it
 * are even. `load` has, by slot, the bytes of other work; the jobs' bytes are added. After the
 * first division there are at most `sweeps` sweeps of improvements. */
void balance_jobs(PlanBuilder *planner, Jobs *jobs, int64_t cap, int sweeps, int64_t *load);

/* ---- trees along which values are passed on, or contributions combined, in several rounds ---- */

/* The parent (-1: none) and the depth of each node. */
typedef struct Tree {
    int *parent, *depth;
} Tree;

/* Arranges nodes as a forest of least depth: the first `tops` nodes are roots, and node i has
 * degree[i] children. The degrees must add up to the number of other nodes. */
Tree tree_arrange(PlanBuilder *planner, int tops, int count, const int *degree);
