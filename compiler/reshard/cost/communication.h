/* The cost of a plan's steps: bytes that devices move, and seconds by latency and bandwidth. */
#pragma once

#include "reshard/plan_builder.h"

/* Sets the plan's `received` and `sent` to the bytes of the steps from the planner's `first` on. */
void count_moves(PlanBuilder *planner);

/* Returns a link with the largest latency and the least bandwidth of the ring over a group. */
Link group_link(const Plan *plan, const Devices *group);

/* Adds to `loads` the bytes that a step sends through uplinks; `devices`: by slot of the plan. */
void load_uplinks(const Plan *plan, const Step *step, const int *devices, UplinkLoads *loads);

/* Prices the steps: sets `together` and `seconds` of each step, and returns the sum of seconds. */
double price_steps(PlanBuilder *planner);

/* ---- measured costs and shared processors (resources.c) ----
 *
 * Latency and bandwidth describe devices that share nothing. Measurements of a link correct both.
 * Devices of one host share its memory, and share processors if devices outnumber processors. A
 * processor serves its devices in turn; a step takes the seconds of the processor with most work.
 * A processor runs one step after another; steps on different processors overlap. */

typedef struct Resources Resources;

/* Returns the plan's processors, all free. Its steps, `received` and `sent` must be complete. */
Resources *resources_create(PlanBuilder *planner);

/* Runs the simultaneous steps [from, to) once their processors are free; `seconds` is their time by
 * latency and bandwidth. Returns the time at which all steps so far have ended. */
double resources_take(Resources *resources, int from, int to, double seconds);
