/* The simulator: what the devices of a cluster do in steps of a program, event by event.
 *
 *     SimulateOptions options = {.steps = 1};
 *     SimulatedSteps *steps = steps_simulate(arena, module, &options);
 *     steps_table(&text, steps);
 *
 * It takes a module that has come through all passes: the very roles, tables, plans and arenas that
 * hetucc would emit. symmetry.h finds devices that do the same, so that one stands for all;
 * transfers.h says how conversions load links; step.h makes tasks of what the roles do, and
 * engine.h says when each of them runs. What a task takes by itself is said by cost/cost.h alone.
 */
#ifndef PLANNER_SIMULATE_SIMULATE_H
#define PLANNER_SIMULATE_SIMULATE_H

#include "planner/simulate/step.h"
#include "support/text.h"

typedef struct SimulateOptions {
    int steps;              // one after the other; 1 at least
    const Changes *changes; // NULL: none
    bool alone;             // every device is simulated
} SimulateOptions;

/* Where the time of an actor goes, in seconds of all steps. */
typedef struct ActorTime {
    double computing;
    double exposed; // not computing, while something of its communication is under way
    double idle;    // neither
    double hidden;  // communication while it computes
} ActorTime;

typedef struct MemoryPoint {
    double at;     // seconds
    int64_t bytes; // from then on
} MemoryPoint;

typedef struct ActorMemory {
    int64_t peak;  // what the program reserves: parameters, states, inputs, its arena and slots
    int64_t arena; // of that the arena and slots
    int64_t used;  // the most that is in use at a time
    int point_count;
    const MemoryPoint *points; // what is in use
} ActorMemory;

typedef struct SimulatedSteps {
    Module *module;
    Symmetry fold;
    Program program;
    const EngineSpan *spans; // by task
    const double *seconds;   // by step
    const ActorTime *times;  // by actor
    const ActorMemory *memory;
    const char *error; // a line: what the cluster does not say; then there is nothing else
} SimulatedSteps;

SimulatedSteps *steps_simulate(Arena *arena, Module *module, const SimulateOptions *options);

/* As a table, as JSON (its keys are in README.md: an object with the list "models"), and as a trace
 * of Chrome's format. */
void steps_table(Text *out, const SimulatedSteps *steps);
void steps_json(Text *out, SimulatedSteps *const *steps, int count);
void steps_trace(Text *out, SimulatedSteps *const *steps, int count);

/* The page of the report (planner/report/report.h), with the times of the first simulated step. */
void steps_page(Text *out, SimulatedSteps *const *steps, int count);

#endif
