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
    int64_t *sent, *received; // bytes: the plan's counters; while it is made, loads that are to be balanced
    struct Pair *pairs;       // the messages so far, by step, sender and receiver
} Builder;

/* A device's index in plan->devices. */
int plan_slot(const Plan *plan, int device);

/* A device's position in a list, or -1. */
int devices_find(const Devices *devices, int device);

/* Makes the plan's stacks of the conversions, and their tasks. */
void plan_stacks(Builder *builder, const Conversion *conversions, int count);
void plan_tasks(Builder *builder);

/* Bytes of an element of what a task makes. */
int task_element(const Plan *plan, int task);

/* Appends the steps that reduce, and a gift for each value that must then be handed on. */
void plan_reductions(Builder *builder);

/* Appends the steps that hand the gifts out. */
void plan_gifts(Builder *builder);

/* Appends an empty step. */
Step *plan_step(Builder *builder, ht_verb verb);

/* Appends the steps of a collective over `group`, whose first `holders` devices have `parts`: one step of kind `verb`; or, where there is one holder only or more
 * elements than an int counts, one of kind `rooted` for each of them. */
void plan_collective(Builder *builder, Devices group, Segments *parts, int holders, ht_verb verb, ht_verb rooted);

/* The devices that are connected by `sets`, as a number for each set: sets with the same number share devices, directly or through others. Sets of different
 * `kinds` are not connected; equal kinds stand together. NULL: all are of one kind. */
int *connect_sets(Builder *builder, const Devices *sets, const int *kinds, int count, int *component_count);

/* The sets of each component, one after another, in their order; `begin`, of components + 1 entries that are zero, gets where each component begins. */
int *sort_by_component(Builder *builder, const int *component, int count, int components, int *begin);

/* Divides `amount` elements among the devices; adds what each gets times `cost`, in bytes an element, to its load. The least loaded devices take all that brings them up to `cap`; where that
 * is not enough for all, the loads end as even as they can. */
void spread_evenly(Builder *builder, const Devices *devices, int64_t amount, int64_t cost, int64_t cap, int64_t *load, int64_t *shares);

/* The size of the smallest elements among `count` lists of segments; 8 where all are empty. */
int segments_element(const Plan *plan, const Segments *lists, int count);

/* Whether an int counts the elements of a collective in which these parts are moved. */
bool parts_countable(const Plan *plan, const Segments *parts, int count);

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
