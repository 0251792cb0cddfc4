/* What the parts of the planner share while they make a plan. */
#ifndef LAYOUT_PLAN_BUILD_H
#define LAYOUT_PLAN_BUILD_H

#include "layout/plan.h"

/* A part of a value that lies at its holders and shall go to those that want it. */
typedef struct Gift {
    Segment segment;
    Devices holders, needers; // in the layout's order
} Gift;

typedef struct Builder {
    Arena *arena;
    Plan *plan;
    Array(Gift) gifts;
    int64_t *sent, *received; // the plan's counters; while it is made, loads that are to be balanced
    struct Pair *pairs;       // the messages so far, by step, sender and receiver
} Builder;

/* A device's index in plan->devices. */
int plan_slot(const Plan *plan, int device);

/* A device's position in a list, or -1. */
int devices_find(const Devices *devices, int device);

/* Makes the plan's tasks. */
void plan_tasks(Builder *builder);

/* Appends the steps that reduce, and a gift for each value that must then be handed on. */
void plan_reductions(Builder *builder);

/* Appends the steps that hand the gifts out. */
void plan_gifts(Builder *builder);

/* Appends an empty step. */
Step *plan_step(Builder *builder, ht_verb verb);

/* Appends the steps of a collective over `group`, whose first `holders` devices have `parts`: one step of kind `verb`; or, where there is one holder only or the tensor
 * is large, one of kind `rooted` for each of them. */
void plan_collective(Builder *builder, Devices group, Segments *parts, int holders, ht_verb verb, ht_verb rooted);

/* The devices that are connected by `sets`, as a number for each set: sets with the same number share devices, directly or through others. */
int *connect_sets(Builder *builder, const Devices *sets, int count, int *component_count);

/* The sets of each component, one after another, in their order; `begin`, of components + 1 entries that are zero, gets where each component begins. */
int *sort_by_component(Builder *builder, const int *component, int count, int components, int *begin);

/* Divides `amount` among the devices; adds what each gets times `cost` to its load. The least loaded devices take all that brings them up to `cap`; where that
 * is not enough for all, the loads end as even as they can. */
void spread_evenly(Builder *builder, const Devices *devices, int64_t amount, int64_t cost, int64_t cap, int64_t *load, int64_t *shares);

/* The elements of all segments. */
int64_t segments_volume(const Segments *segments);

/* Seconds that the plan's steps take by its cluster. */
double price_plan(Builder *builder);

/* The field's word for the plan's steps; see plan_name. */
const char *name_plan(Builder *builder);

/* Sets the loads to what the steps so far move. */
void plan_count(Builder *builder);

/* Adds a segment to the message between two devices in a step; `step` is an index of plan->steps. */
void step_send(Builder *builder, int step, int sender, int receiver, Segment segment);

/* Leaves out the exchanges that carry nothing; nothing may be added to the messages of the steps so far. */
void plan_drop_empty(Builder *builder);

#endif
