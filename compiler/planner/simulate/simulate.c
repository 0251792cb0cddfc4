/* Builds the simulator's tasks (step.c) and runs them event by event (engine.c). */
#include "planner/simulate/simulate.h"

#include <math.h>

/* Adds the changes of uplinks; an uplink that stands for others is changed once. */
static void add_uplink_changes(const Symmetry *fold, const Change *change, Arena *arena,
                               EngineChange *list, int *count) {
    const Cluster *cluster = fold->module->devices->target.cluster;
    bool *known = arena_array(arena, bool, fold->uplink_count);
    for (int d = 0; d < uplink_directions(cluster); d++) {
        int own = fold->uplink_of[d];
        if (known[own] || !change_of_uplink(cluster, change, d / 2)) continue;
        known[own] = true;
        list[(*count)++] = (EngineChange){change->at, symmetry_uplink(fold, own), change->rate};
    }
}

static void add_changes(const Symmetry *fold, const Change *change, Arena *arena,
                        EngineChange *list, int *count) {
    bool *known = arena_array(arena, bool, fold->actor_count);
    for (int i = 0; i < change->device_count; i++) {
        int device = change->devices[i],
            actor = device < fold->device_span ? fold->actor_of[device] : -1;
        if (actor < 0 || known[actor]) continue;
        known[actor] = true;
        if (change->computing)
            list[(*count)++] =
                (EngineChange){change->at, symmetry_computing(fold, actor), change->rate};
        for (int port = 0; !change->computing && port < fold->ports; port++)
            if (change->kind < 0 || change->kind == port / 2)
                list[(*count)++] =
                    (EngineChange){change->at, symmetry_port(fold, actor, port), change->rate};
    }
}

/* Returns the seconds of a burst through a port of an actor, which passes the actor's uplinks. */
static double port_bucket(const Symmetry *fold, int actor, int port) {
    const Cluster *cluster = fold->module->devices->target.cluster;
    int kind = port / 2;
    if (port < 0 || kind == LINK_LOCAL || !uplink_directions(cluster)) return 0;
    const Link *link =
        kind == LINK_REMOTE ? &cluster->remote : &cluster->pairs[kind - LINK_PAIRS].link;
    return device_burst(cluster, fold->actors[actor].devices[0]) / link->bandwidth;
}

/* Returns the seconds of a burst through an uplink that stands for others. */
static double folded_bucket(const Symmetry *fold, int uplink) {
    const Cluster *cluster = fold->module->devices->target.cluster;
    for (int d = 0; d < uplink_directions(cluster); d++)
        if (fold->uplink_of[d] == uplink) return uplink_bucket(cluster, d);
    return 0;
}

static EngineProblem problem_of(Arena *arena, const Program *program, const Changes *changes) {
    const Symmetry *fold = program->fold;
    int per_actor = fold->ports + 1, own = fold->actor_count * per_actor,
        most = own + fold->uplink_count, change_count = changes ? changes->count : 0;
    EngineResource *resources = arena_array(arena, EngineResource, most);
    double *overlap = arena_array(arena, double, fold->actor_count);
    EngineChange *list = arena_array(arena, EngineChange, (size_t)change_count * (size_t)most);
    EngineProblem problem = {program->tasks.count,
                             most,
                             0,
                             fold->actor_count,
                             program->engine.at,
                             resources,
                             list,
                             overlap,
                             NULL,
                             NULL};
    for (int r = 0; r < most; r++)
        resources[r] = r >= own
                           ? (EngineResource){1, -1, false, folded_bucket(fold, r - own)}
                           : (EngineResource){1, r / per_actor, r % per_actor == 0,
                                              port_bucket(fold, r / per_actor, r % per_actor - 1)};
    for (int a = 0; a < fold->actor_count; a++)
        overlap[a] = fold->actors[a].class ? fold->actors[a].class->overlap : 1;
    for (int c = 0; c < change_count; c++) {
        add_changes(fold, &changes->at[c], arena, list, &problem.change_count);
        add_uplink_changes(fold, &changes->at[c], arena, list, &problem.change_count);
    }
    return problem;
}

SimulatedSteps *steps_simulate(Arena *arena, Module *module, const SimulateOptions *options) {
    static const Changes none;
    SimulatedSteps *steps = arena_new(arena, SimulatedSteps);
    *steps = (SimulatedSteps){.module = module};
    steps->fold =
        symmetry_create(arena, module, options->changes ? options->changes : &none, options->alone);
    steps->program = tasks_of_steps(arena, &steps->fold, options->steps);
    steps->error = steps->program.unknown;
    if (steps->error) return steps;
    Arena *scratch = arena_create();
    EngineProblem problem = problem_of(scratch, &steps->program, options->changes);
    steps->spans = engine_run(arena, &problem);
    arena_destroy(scratch);
    double *seconds = arena_array(arena, double, options->steps);
    for (int s = 0; s < options->steps; s++)
        seconds[s] = steps->spans[steps->program.step_ends.at[s]].end -
                     (s ? steps->spans[steps->program.step_ends.at[s - 1]].end : 0);
    steps->seconds = seconds;
    steps->times = usage_times(arena, steps);
    steps->memory = usage_memory(arena, steps);
    return steps;
}
