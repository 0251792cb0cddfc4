/* How the planner divides work among devices, and the shapes in which it travels.
 *
 * Reductions and copies leave choices: which of several holders sends, which device combines contributions, who passes a value on. Each
 * choice is a piece of Work that may be divided among devices; balance_works divides all of them so that no device does much more than an
 * even share where that can be avoided.
 */
#ifndef RESHARD_LOADS_H
#define RESHARD_LOADS_H

#include "reshard/build.h"

/* ---- positions ---- */

/* The places of devices in a list; a new list takes no time to begin. */
typedef struct Index {
    const Plan *plan;
    int *stamp, *place; // by slot; a place counts when its stamp is that of the list
    int list;
} Index;

Index *index_create(Builder *builder);

/* Forgets the devices of the last list. */
void index_clear(Index *index);

/* Makes `place` the place of a device. */
void index_set(Index *index, int device, int place);

/* The list becomes that of these devices. */
void index_devices(Index *index, const Devices *devices);

/* A device's place; -1 when it is not in the list. */
int index_find(const Index *index, int device);

/* ---- work ---- */

/* Work that may be divided among devices: units that the first of them do in any case, and indivisible grains of units that any of them may
 * do. The first are preferred: the others take only what would bring these above the cap. */
typedef struct Work {
    Devices devices;
    int first;       // how many of them are preferred
    int64_t unit;    // the load of a unit
    int64_t least;   // units that the first do together, divided at will
    int64_t grains;  // further work, in grains
    int64_t grain;   // units in each, at least 1
    int64_t *limits; // by preferred device: grains that it may do, where there is nothing to be done in any case; NULL: all
    int64_t *units;  // by device: what it does
} Work;

typedef Array(Work) Works;

/* The load that nobody shall exceed without need: somewhat above an even share of `total`. */
int64_t load_cap(const Plan *plan, int64_t total);

/* Divides the works so that, as far as they allow, no load is above the cap, and the loads above it are even. Adds them to `load`, which
 * has what else the devices do. After the first division there are so many sweeps at most in which works are divided anew. */
enum { FEW_SWEEPS = 4, MANY_SWEEPS = 64 };
void balance_works(Builder *builder, Works *works, int64_t cap, int sweeps, int64_t *load);

/* The load of all that a work consists of. */
int64_t work_load(const Work *work);

/* ---- trees ---- */

/* Arranges nodes as a forest whose first `roots` nodes are its roots, so that every node has `degree` children and no path is longer than
 * need be. The degrees sum to the number of nodes that are no roots. Fills the parent (-1: none) and the depth of every node. */
void tree_arrange(Builder *builder, int roots, int count, const int *degree, int *parent, int *depth);

/* ---- what is common to all ---- */

/* All that a task makes, as a segment of what the target stores or of the first contribution. */
Segment task_segment(const Plan *plan, int task);

/* The most elements of a segment that need not be divided when loads are up to a cap. */
int64_t fine_grain(const Plan *plan, const Segment *segment, int64_t cap);

/* The devices of two lists, one after the other; the second may be NULL. */
Devices join_devices(Builder *builder, const Devices *a, const Devices *b);

/* Whether these devices may act together in a collective. */
bool may_collect(const Builder *builder, const Devices *devices);

/* Makes the plan's steps once, in one tier or in two as the builder says. */
void plan_route(Builder *builder);

/* ---- reductions ---- */

/* A reduction that no collective does. */
typedef struct Sum {
    int task;
    Devices reducers; // those that want the value and hold a contribution, or else all that want it
    bool holds;       // the reducers hold contributions
    int64_t *roots;   // by reducer, if they hold contributions: elements that are complete there first
} Sum;

typedef Array(Sum) Sums;

typedef struct Merges Merges;

/* Numbers of tasks, stack by stack. */
typedef Array(int) Tasks;

/* Appends the collectives that reduce what these tasks make, and a gift for each value that must then be handed on. The reductions that are
 * left go to `sums`. */
void reduce_by_collectives(Builder *builder, const Tasks *tasks, Sums *sums);

/* Decides where each sum is made and in which steps, and appends empty exchanges for these; and a gift for each value that must be handed
 * on. */
Merges *merges_plan(Builder *builder, Sums *sums);

/* Adds the works of sending the contributions, and the sending that leaves no choice to the loads. */
void merges_add(Builder *builder, Merges *merges, Works *works);

/* Fills the exchanges with messages. */
void merges_send(Builder *builder, const Merges *merges, const Works *works);

/* Appends the gift of what lies at `device` to the others that want it. */
void hand_on(Builder *builder, Segment segment, int device);

/* ---- copies ---- */

/* How a gift travels: which work has its loads, and whether along a tree. */
typedef struct Route {
    Gift gift;
    bool tree;
    int work;
} Route;

typedef Array(Route) Routes;

/* Does by all-gathers, and broadcasts if these are wanted, what can be done so; the result has the gifts that are left. */
Gifts plan_gather(Builder *builder, const Gifts *gifts, bool broadcasts);

/* Adds the routes of the gifts and their works; the loads' cap says how fine they must be. */
void routes_add(Builder *builder, const Gifts *gifts, int64_t cap, Routes *routes, Works *works);

/* Appends the steps that bring the gifts to those who need them. */
void routes_send(Builder *builder, const Routes *routes, const Works *works);

#endif
