/* How the planner divides job among devices, and the shapes in which it travels.
 *
 * Reductions and copies leave choices: which of several holders sends, which device combines contributions, who passes a value on. Each
 * choice is a piece of Job that may be divided among devices; balance_jobs divides all of them so that no device does much more than an
 * even share where that can be avoided.
 */
#ifndef RESHARD_LOADS_H
#define RESHARD_LOADS_H

#include "reshard/planner.h"

/* ---- positions ---- */

/* The places of devices in a list; a new list takes no time to begin. */
typedef struct Index {
    const Plan *plan;
    int *stamp, *place; // by slot; a place counts when its stamp is that of the list
    int list;
} Index;

Index *index_create(Planner *planner);

/* Forgets the devices of the last list. */
void index_clear(Index *index);

/* Makes `place` the place of a device. */
void index_set(Index *index, int device, int place);

/* The list becomes that of these devices. */
void index_devices(Index *index, const Devices *devices);

/* A device's place; -1 when it is not in the list. */
int index_find(const Index *index, int device);

/* ---- job ---- */

/* Job that may be divided among devices: units that the first of them do in any case, and indivisible grains of units that any of them may
 * do. The first are preferred: the others take only what would bring these above the cap. */
typedef struct Job {
    Devices devices;
    int first;       // how many of them are preferred
    int64_t unit;    // the load of a unit
    int64_t least;   // units that the first do together, divided at will
    int64_t grains;  // further job, in grains
    int64_t grain;   // units in each, at least 1
    int64_t *limits; // by preferred device: grains that it may do, where there is nothing to be done in any case; NULL: all
    int64_t *units;  // by device: what it does
} Job;

typedef Array(Job) Jobs;

/* The load that nobody shall exceed without need: somewhat above an even share of `total`. */
int64_t load_cap(const Plan *plan, int64_t total);

/* Divides the jobs so that, as far as they allow, no load is above the cap, and the loads above it are even. Adds them to `load`, which
 * has what else the devices do. After the first division there are so many sweeps at most in which jobs are divided anew. */
enum { FEW_SWEEPS = 4, MANY_SWEEPS = 64 };
void balance_jobs(Planner *planner, Jobs *jobs, int64_t cap, int sweeps, int64_t *load);

/* The load of all that a job consists of. */
int64_t job_load(const Job *job);

/* ---- trees ---- */

/* Arranges nodes as a forest whose first `roots` nodes are its roots, so that every node has `degree` children and no path is longer than
 * need be. The degrees reduction to the number of nodes that are no roots. Fills the parent (-1: none) and the depth of every node. */
void tree_arrange(Planner *planner, int roots, int count, const int *degree, int *parent, int *depth);

/* ---- what is common to all ---- */

/* All that a task makes, as a segment of what the target stores or of the first contribution. */
Segment task_segment(const Plan *plan, int task);

/* The most elements of a segment that need not be divided when loads are up to a cap. */
int64_t fine_grain(const Plan *plan, const Segment *segment, int64_t cap);

/* The devices of two lists, one after the other; the second may be NULL. */
Devices join_devices(Planner *planner, const Devices *a, const Devices *b);

/* Whether these devices may act together in a collective. */
bool may_collect(const Planner *planner, const Devices *devices);

/* Makes the plan's steps once, in one tier or in two as the planner says. */
void plan_route(Planner *planner);

/* ---- reductions ---- */

/* A reduction that no collective does. */
typedef struct Reduction {
    int task;
    Devices reducers; // those that want the value and hold a contribution, or else all that want it
    bool holds;       // the reducers hold contributions
    int64_t *roots;   // by reducer, if they hold contributions: elements that are complete there first
} Reduction;

typedef Array(Reduction) Reductions;

typedef struct Combining Combining;

/* Numbers of tasks, bucket by bucket. */
typedef Array(int) Tasks;

/* Appends the collectives that reduce what these tasks make, and a transfer for each value that must then be handed on. The reductions that are
 * left go to `reductions`. */
void reduce_by_collectives(Planner *planner, const Tasks *tasks, Reductions *reductions);

/* Decides where each reduction is made and in which steps, and appends empty exchanges for these; and a transfer for each value that must be handed
 * on. */
Combining *combining_plan(Planner *planner, Reductions *reductions);

/* Adds the jobs of sending the contributions, and the sending that leaves no choice to the loads. */
void combining_add(Planner *planner, Combining *combining, Jobs *jobs);

/* Fills the exchanges with messages. */
void combining_send(Planner *planner, const Combining *combining, const Jobs *jobs);

/* Appends the transfer of what lies at `device` to the others that want it. */
void transfer_result(Planner *planner, Segment segment, int device);

/* ---- copies ---- */

/* How a transfer travels: which job has its loads, and whether along a tree. */
typedef struct Route {
    Transfer transfer;
    bool tree;
    int job;
} Route;

typedef Array(Route) Routes;

/* Does by all-gathers, and broadcasts if these are targets, what can be done so; the result has the transfers that are left. */
Transfers plan_gather(Planner *planner, const Transfers *transfers, bool broadcasts);

/* Adds the routes of the transfers and their jobs; the loads' cap says how fine they must be. */
void routes_add(Planner *planner, const Transfers *transfers, int64_t cap, Routes *routes, Jobs *jobs);

/* Appends the steps that bring the transfers to those who need them. */
void routes_send(Planner *planner, const Routes *routes, const Jobs *jobs);

#endif
