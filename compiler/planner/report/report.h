/* The report of a compiled program: hetucc --report.
 *
 * The report lists the devices of each pipeline and stage, one step as a timeline, the memory of
 * each role and all conversions. The output is JSON (keys: tools/manual/formats.md) or an HTML page
 * that contains the JSON and draws it without a network.
 *
 * step_timeline.c computes when each stage runs what, by the seconds of cost/stage_seconds.c;
 * conversions.c lists conversions; json.c writes the JSON and puts it into page.html; tables.c
 * prints tables for the terminal. */
#pragma once

#include "planner/report/step_timeline.h"
#include "ir/unit.h"
#include "support/text.h"

/* Write the report of modules that have come through all passes, as JSON or as an HTML page. */
void report_json(Text *out, Module *const *modules, int count);
void report_page(Text *out, Module *const *modules, int count);

/* Writes the page of simulations, such as those whose spans the simulator computed. */
void report_simulations_page(Text *out, Simulation *simulations, int count);

/* ---- tables for the terminal: -Rmemory, -Rsharding, -Rcomm (tables.c) ---- */

/* Prints the bytes of each device by kind, and its ten largest values. This function and the next
 * ones take a module that has come through all passes. */
void table_memory(Text *out, Module *module);

/* Prints the bytes of each device when one session runs all programs of a strategy (NULL: the
 * programs for one device); prints nothing for fewer than two programs. */
void table_session(Text *out, const Unit *unit, const Strategy *strategy);

/* Prints the layout of each parameter, state, input and named value, and its stage's devices. */
void table_sharding(Text *out, Module *module);

/* Prints the bytes that all devices together receive in a step, by layer and by reason. */
void table_comm(Text *out, Module *module);
