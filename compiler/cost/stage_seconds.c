/* Adds up the seconds of a stage's operators by phase, on its slowest device.
 * schedule/engine.h adds the slowdown by overlap. */
#include "cost/stage_seconds.h"

#include "ir/analysis/async_collectives.h"
#include "ir/programs/device_programs.h"
#include "cost/cost.h"
#include "schedule/engine.h"

#include <math.h>

Times times_create(Arena *arena, Module *module, bool priced) {
    Times times = {.arena = arena, .module = module, .priced = priced, .known = true};
    times.converted = arena_array(arena, double, module->devices->conversions.count + 1);
    times.bursts = arena_array(arena, Burst, module->devices->conversions.count + 1);
    for (int i = 0; i < module->devices->conversions.count; i++)
        times.converted[i] = times.bursts[i].busy = -1;
    return times;
}

/* Returns a time; for an unknown time clears times->known and returns 0. */
static double noted(Times *times, double time) {
    times->known &= isfinite(time) != 0;
    return isfinite(time) ? time : 0;
}

double times_conversion(Times *times, const PlannedConversion *conversion) {
    double *own = &times->converted[conversion->number];
    if (!times->priced) return 0;
    if (*own < 0)
        *own = noted(times,
                     conversion_seconds(times->module->devices->target.cluster, conversion->plan));
    return *own;
}

/* Returns whether an uplink of the cluster has a burst. */
static bool any_burst(const Cluster *cluster) {
    for (int u = 0; cluster && u < cluster->uplinks.count; u++)
        if (cluster->uplinks.at[u].burst > 0) return true;
    return false;
}

Burst times_burst(Times *times, const PlannedConversion *conversion) {
    const Cluster *cluster = times->module->devices->target.cluster;
    Burst *own = &times->bursts[conversion->number];
    if (own->busy >= 0) return *own;
    *own = (Burst){0};
    if (!times->priced || !any_burst(cluster)) return *own;
    Arena *scratch = arena_create();
    UplinkLoads loads = uplink_loads(scratch, cluster);
    conversion_load_uplinks(conversion, &loads);
    for (int i = 0; i < loads.passed_count; i++) {
        int direction = loads.passed[i];
        double busy = loads.bytes[direction] / uplink_rate(cluster, direction);
        if (busy > own->busy) *own = (Burst){busy, uplink_bucket(cluster, direction)};
    }
    arena_destroy(scratch);
    own->busy = fmin(own->busy, times_conversion(times, conversion));
    return *own;
}

static double op_time(Times *times, const Op *op, int device) {
    if (op->convert.plan) return op->convert.tensor ? 0 : times_conversion(times, op->convert.plan);
    Work work = op_device_work(times->module, op, device);
    return noted(
        times,
        times->priced
            ? work_seconds(cluster_class(times->module->devices->target.cluster, device), &work)
            : work.operations);
}

static const Role *role_of(const Module *module, int device) {
    return &module->devices->roles
                ->at[module->devices->roles->role_of[roles_index(module->devices->roles, device)]];
}

/* Returns whether an earlier device of the list has the same role and class. */
static bool known_alike(const Module *module, const int *devices, int index) {
    for (int i = index - 1; i >= 0; i--)
        if (role_of(module, devices[i]) == role_of(module, devices[index]) &&
            cluster_class(module->devices->target.cluster, devices[i]) ==
                cluster_class(module->devices->target.cluster, devices[index]))
            return true;
    return false;
}

int op_edge(const Module *module, const StageGraph *graph, const Op *op, bool *backward) {
    if (!op_crosses_stages(module, op) || !loop_repeats(op->loop) || op->loop == LOOP_COUNT)
        return -1;
    *backward = op_phase(module, op) != PHASE_FORWARD;
    int maker = op->operands[0]->def->visit, from = *backward ? op->visit : maker,
        to = *backward ? maker : op->visit;
    for (int e = 0; e < graph->edge_count; e++)
        if (graph->edge[e][0] == from && graph->edge[e][1] == to) return e;
    return -1;
}

/* Returns whether an operator's seconds belong to a phase of the stage. Views, messages between
 * stages and asynchronous collectives do not. */
static bool is_of_part(const Module *module, const StageGraph *graph, const Op *op, int stage) {
    bool backward;
    return op->def->rule->kind != RULE_VIEW && (op->stage == STAGE_ALL || op->stage == stage) &&
           op_edge(module, graph, op, &backward) < 0 && !op_is_async(module, op);
}

/* Returns the entry of an operator's seconds in the result of times_of_stage. */
static int entry_of(const Module *module, const StageGraph *graph, const Op *op) {
    Phase phase = op_phase(module, op);
    int visit = phase_loops(phase) && op->stage != STAGE_ALL ? op->visit : 0;
    return (int)phase * graph->visit_count + visit;
}

/* Returns the seconds of a conversion at `now` that its uplink's burst saves; see engine_free. */
static double saved(Times *times, const Op *op, double *due, double now) {
    if (!op->convert.plan || op->convert.tensor) return 0;
    Burst burst = times_burst(times, op->convert.plan);
    return engine_free(burst.bucket, due, now, burst.busy);
}

/* Adds the seconds of a device's operators, by phase and visit. A phase begins with full bursts. */
static void add_device(Times *times, int device, int stage, const StageGraph *graph, double *own) {
    Module *module = times->module;
    double *due = arena_array(times->arena, double, PHASES * graph->visit_count);
    const Role *role = role_of(module, device);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (!is_of_part(module, graph, op, stage) || !role_runs(module, role, op)) continue;
        int entry = entry_of(module, graph, op);
        double free = saved(times, op, &due[entry], own[entry]);
        own[entry] += op_time(times, op, device) - free;
    }
}

double *times_behind(Times *times, int device, int stage, const StageGraph *graph) {
    Module *module = times->module;
    const Role *role = role_of(module, device);
    int count = module->ops.count;
    double *behind = arena_array(times->arena, double, count + 1),
           *sums = arena_array(times->arena, double, PHASES * graph->visit_count);
    for (int i = count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        if (!is_of_part(module, graph, op, stage) || !role_runs(module, role, op)) continue;
        behind[i] = sums[entry_of(module, graph, op)];
        sums[entry_of(module, graph, op)] += op_time(times, op, device);
    }
    for (int i = 0; i < count; i++) {
        const Op *op = module->ops.at[i];
        if (behind[i] > 0) behind[i] /= sums[entry_of(module, graph, op)];
    }
    return behind;
}

double *times_of_stage(Times *times, const int *devices, int device_count, int stage,
                       const StageGraph *graph) {
    int count = PHASES * graph->visit_count;
    double *slowest = arena_array(times->arena, double, count);
    for (int d = 0; d < device_count; d++) {
        if (known_alike(times->module, devices, d)) continue;
        double *own = arena_array(times->arena, double, count);
        add_device(times, devices[d], stage, graph, own);
        for (int i = 0; i < count; i++) slowest[i] = fmax(slowest[i], own[i]);
    }
    return slowest;
}

double *times_of_edges(Times *times, int body, const StageGraph *graph, bool backward) {
    const Module *module = times->module;
    double *time = arena_array(times->arena, double, graph->edge_count + 1);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bool back;
        if (op->stage == STAGE_ALL || op->convert.tensor ||
            module->templates->stages.at[op->stage].template_index != body)
            continue;
        int edge = op_edge(module, graph, op, &back);
        if (edge < 0 || back != backward) continue;
        double due = 0;
        time[edge] += times_conversion(times, op->convert.plan) - saved(times, op, &due, 0);
    }
    return time;
}
