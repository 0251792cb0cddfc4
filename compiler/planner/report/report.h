/* The report: what hetucc --report shows of a program.
 *
 * Devices by pipeline and stage, a step as a timeline, the memory of every role and every
 * conversion, as JSON (its keys are in README.md) or as a page of HTML that holds the same JSON and
 * draws it without a network.
 *
 * simulation.c simulates a step by the times of stage_seconds.c, conversions.c lists conversions,
 * json.c writes the JSON; page.html is the page, which the build puts into page.c.
 */
#ifndef PLANNER_REPORT_REPORT_H
#define PLANNER_REPORT_REPORT_H

#include "planner/report/simulation.h"

/* Of modules that have come through all passes. */
void report_json(Text *out, Module *const *modules, int count);
void report_page(Text *out, Module *const *modules, int count);

/* The same of simulations, which may have other spans than simulation_create gives them. */
void report_simulations(Text *out, Simulation *simulations, int count);
void report_simulations_page(Text *out, Simulation *simulations, int count);

#endif
