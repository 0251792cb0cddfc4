/* The simulator: computes, event by event, when a cluster's devices run a program's tasks.
 *
 *     SimulateOptions options = {.steps = 1};
 *     SimulatedSteps *steps = steps_simulate(arena, module, &options);
 *     steps_table(&text, steps);
 *
 * The module must have come through all passes: it has the roles, schedules, plans and arenas that
 * hetucc would emit. A simulation has these parts: symmetry.h finds devices that do the same, so
 * that one of them (an actor) stands for all; transfers.h computes the loads of links; step.h turns
 * programs into tasks; schedule/engine.h runs them. cost/ computes a task's seconds by itself. */
#pragma once

#include "planner/simulate/changes.h"
#include "planner/simulate/step.h"
#include "planner/simulate/symmetry.h"
#include "support/text.h"

#include <jansson.h>

typedef struct SimulateOptions {
    int steps;              // number of steps, at least 1
    const Changes *changes; // NULL: there are none
    bool alone;             // every device is an actor of its own
} SimulateOptions;

/* The time of an actor in all steps, by what it does, in seconds. */
typedef struct ActorTime {
    double computing;
    double exposed; // communicating, and not computing
    double idle;    // neither computing nor communicating
    double hidden;  // communication while it computes
} ActorTime;

typedef struct MemoryPoint {
    double at;     // seconds from the start of the first step
    int64_t bytes; // bytes in use from then on
} MemoryPoint;

typedef struct ActorMemory {
    int64_t peak;  // bytes that the program reserves: parameters, states, inputs, arena, slots
    int64_t arena; // bytes of the arena and slots among these
    int64_t used;  // the most bytes in use at one time
    int point_count;
    const MemoryPoint *points; // the bytes in use over time
} ActorMemory;

typedef struct SimulatedSteps {
    Module *module;
    Symmetry fold;
    Program program;
    const EngineSpan *spans;   // by task
    const double *seconds;     // by step: its length
    const ActorTime *times;    // by actor
    const ActorMemory *memory; // by actor
    const char *error; // line with the rate that the cluster file lacks; NULL: there is a result
} SimulatedSteps;

SimulatedSteps *steps_simulate(Arena *arena, Module *module, const SimulateOptions *options);

/* Write simulated steps as a table, as JSON (keys: tools/manual/formats.md), and as a trace of
 * Chrome's format. */
void steps_table(Text *out, const SimulatedSteps *steps);
void steps_json(Text *out, SimulatedSteps *const *steps, int count);
void steps_trace(Text *out, SimulatedSteps *const *steps, int count);

/* Writes the page of the report (planner/report/report.h) with the first simulated step's times. */
void steps_page(Text *out, SimulatedSteps *const *steps, int count);

/* ---- use of time and memory (usage.c) ---- */

/* Returns the time of each actor, in all steps. */
ActorTime *usage_times(Arena *arena, const SimulatedSteps *steps);

/* Returns the memory of each actor, in the first step. */
ActorMemory *usage_memory(Arena *arena, const SimulatedSteps *steps);

/* ---- helpers for output ---- */

/* Writes a JSON value, with jansson's flags, and a new line; frees the value. */
void put_json(Text *out, json_t *top, size_t flags);

/* Returns the numbers of an actor's devices as ranges: "[0-3,6]". */
const char *actor_devices(Arena *arena, const Actor *actor);
