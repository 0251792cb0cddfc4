/* Computes a step's timeline from schedules and seconds; contention of links and slowdown by
 * overlap are in planner/simulate alone. */
#include "planner/report/step_timeline.h"

#include "ir/analysis/async_collectives.h"
#include "ir/programs/device_programs.h"
#include "schedule/engine.h"

#include <math.h>
#include <stdlib.h>

/* ---- groups of pipelines ---- */

/* Returns whether the devices of two pipelines of one template have the same classes. */
static bool same_classes(const Module *module, const Pipeline *a, const Pipeline *b) {
    for (int s = 0; s < a->stages.count; s++)
        for (int i = 0; i < a->stages.at[s].devices.count; i++)
            if (cluster_class(module->devices->target.cluster, a->stages.at[s].devices.at[i]) !=
                cluster_class(module->devices->target.cluster, b->stages.at[s].devices.at[i]))
                return false;
    return true;
}

/* Returns the first pipeline of a group, which stands for the group. */
static const Pipeline *group_pipeline(const Module *module, const PipelineGroup *group) {
    return &module->strategy->pipelines.at[module->templates->runs.at[group->runs.at[0]].pipeline];
}

/* Returns the group of pipelines with the same times as a pipeline; NULL: none yet. */
static PipelineGroup *group_of_run(Simulation *simulation, const PipelineRun *run) {
    const Pipeline *pipeline = &simulation->module->strategy->pipelines.at[run->pipeline];
    for (int g = 0; g < simulation->groups.count; g++) {
        PipelineGroup *group = &simulation->groups.at[g];
        if (group->body == run->template_index && group->microbatches == run->microbatches &&
            same_classes(simulation->module, pipeline, group_pipeline(simulation->module, group)))
            return group;
    }
    return NULL;
}

static void set_lanes(Arena *arena, const Module *module, PipelineGroup *group) {
    const Pipeline *pipeline = group_pipeline(module, group);
    group->lanes = arena_array(arena, TimelineRow, group->graph.stage_count);
    for (int s = 0; s < group->graph.stage_count; s++) {
        const Stage *stage = &pipeline->stages.at[s];
        group->lanes[s] = (TimelineRow){
            .stage = stage, .device_count = stage->devices.count, .devices = stage->devices.at};
    }
}

static void add_run(Arena *arena, Simulation *simulation, int number) {
    Module *module = simulation->module;
    const PipelineRun *run = &module->templates->runs.at[number];
    PipelineGroup *group = group_of_run(simulation, run);
    bool known = group != NULL;
    if (!known) {
        array_push(arena, &simulation->groups,
                   (PipelineGroup){.body = run->template_index,
                                   .microbatches = run->microbatches,
                                   .schedule = run->schedule});
        group = &simulation->groups.at[simulation->groups.count - 1];
        group->first_stage = module->templates->at.at[run->template_index].first_stage;
        group->rows = module->templates->at.at[run->template_index].rows;
        group->graph = template_graph(arena, module, run->template_index);
    }
    array_push(arena, &group->runs, number);
    if (!known) set_lanes(arena, module, group);
}

/* Adds a group of one stage with all devices, for a program whose batch runs as a whole. */
static void add_whole(Arena *arena, Simulation *simulation) {
    static const int zero[] = {0};
    const Module *module = simulation->module;
    const Strategy *strategy = module->strategy;
    PipelineGroup group = {.body = -1, .first_stage = STAGE_ALL, .microbatches = 1};
    group.graph = (StageGraph){1, 1, zero, 0, NULL, module->kind == MODULE_TRAIN};
    group.schedule = schedule_create(arena, SCHEDULE_1F1B, &group.graph, 1);
    group.lanes = arena_new(arena, TimelineRow);
    *group.lanes = (TimelineRow){.stage = strategy ? &strategy->pipelines.at[0].stages.at[0] : NULL,
                                 .device_count = module->devices->roles->device_count,
                                 .devices = module->devices->roles->devices};
    array_push(arena, &simulation->groups, group);
}

int simulation_group(const Simulation *simulation, int run) {
    for (int g = 0; g < simulation->groups.count; g++)
        for (int i = 0; i < simulation->groups.at[g].runs.count; i++)
            if (simulation->groups.at[g].runs.at[i] == run) return g;
    return 0;
}

bool op_on_lane(const Simulation *simulation, const Op *op, int group, int stage) {
    return op->stage == STAGE_ALL || op->stage == simulation->groups.at[group].first_stage + stage;
}

/* ---- times of a group ---- */

static double lane_time(const PipelineGroup *group, const TimelineRow *lane, Phase phase,
                        int visit) {
    return lane->times[(int)phase * group->graph.visit_count + visit];
}

/* Returns the seconds of a stage before its table begins. */
static double before_time(const PipelineGroup *group, const TimelineRow *lane) {
    double counting = 0;
    for (int v = 0; v < group->graph.visit_count; v++)
        counting += lane_time(group, lane, PHASE_COUNTING, v);
    return (double)group->microbatches * counting + lane_time(group, lane, PHASE_BEFORE, 0);
}

static void run_table(Simulation *simulation, Arena *arena, PipelineGroup *group) {
    static const Phase phases[] = {[SCHEDULE_FORWARD] = PHASE_FORWARD,
                                   [SCHEDULE_BACKWARD] = PHASE_BACKWARD,
                                   [SCHEDULE_WGRAD] = PHASE_WGRAD};
    const StageGraph *graph = &group->graph;
    double *part = arena_array(arena, double, SCHEDULE_PHASES * graph->visit_count);
    for (int p = 0; p < SCHEDULE_PHASES; p++)
        for (int v = 0; v < graph->visit_count; v++)
            part[p * graph->visit_count + v] =
                lane_time(group, &group->lanes[graph->stage_of[v]], phases[p], v);
    const double *forward =
        graph->edge_count ? times_of_edges(&simulation->times, group->body, graph, false) : NULL;
    const double *backward =
        graph->edge_count ? times_of_edges(&simulation->times, group->body, graph, true) : NULL;
    group->timeline =
        timeline_create(arena, graph, group->schedule, &(TimelineCosts){part, {forward, backward}});
}

/* ---- gradient reductions ---- */

/* Returns when the last micro-batch of a group has ended a phase of a visit; the start of the table
 * if no row of the table runs the phase. */
static double part_end(const PipelineGroup *group, Phase phase, int visit) {
    if (!phase_loops(phase) || phase == PHASE_COUNTING) return group->begin;
    SchedulePhase part = phase == PHASE_FORWARD    ? SCHEDULE_FORWARD
                         : phase == PHASE_BACKWARD ? SCHEDULE_BACKWARD
                                                   : SCHEDULE_WGRAD;
    int stage = group->graph.stage_of[visit];
    double end = group->begin;
    for (int i = 0; i < group->schedule->row_count[stage]; i++) {
        const ScheduleRow *row = &group->schedule->rows[stage][i];
        if (row->phase == part && row->visit == visit)
            end = fmax(end, group->begin + group->timeline->rows[stage][i].end);
    }
    return end;
}

/* Returns when a stage has run an operator for the last micro-batch of its group. */
static double op_end(const PipelineGroup *group, const TimelineRow *lane, const Module *module,
                     const Op *op) {
    Phase phase = op_phase(module, op);
    double end = part_end(group, phase, op->visit);
    if (end <= group->begin || !lane->behind) return end;
    return end - lane->behind[op->index] * lane_time(group, lane, phase, op->visit);
}

/* Returns the time when the result of an operator is complete on all stages that run it. */
static double made_at(const Simulation *simulation, const Op *maker) {
    double end = 0;
    for (int g = 0; g < simulation->groups.count; g++)
        for (int s = 0; s < simulation->groups.at[g].graph.stage_count; s++)
            if (op_on_lane(simulation, maker, g, s))
                end =
                    fmax(end, op_end(&simulation->groups.at[g], &simulation->groups.at[g].lanes[s],
                                     simulation->module, maker));
    return end;
}

typedef Array(const Op *) Makers;

/* Returns the operators whose results an asynchronous collective reduces; for a fused collective,
 * the operators of all its operands. */
static Makers makers(Arena *arena, const Module *module, const AsyncCollective *collective) {
    Makers made = {0};
    for (int t = 0; t < collective->count; t++) {
        const Op *def = collective->ops[t]->operands[0]->def;
        for (int k = 0; def->def == module->builtin->stage_union && k < def->operand_count; k++)
            array_push(arena, &made, def->operands[k]->def);
        if (def->def != module->builtin->stage_union) array_push(arena, &made, def);
    }
    return made;
}

/* Sets `behind` of each stage: by operator, the fraction of its phase that runs after it. */
static void set_behind(Simulation *simulation) {
    ir_number(simulation->module);
    for (int g = 0; g < simulation->groups.count; g++) {
        PipelineGroup *group = &simulation->groups.at[g];
        for (int s = 0; s < group->graph.stage_count; s++)
            group->lanes[s].behind =
                times_behind(&simulation->times, group->lanes[s].devices[0],
                             group->body < 0 ? STAGE_ALL : group->first_stage + s, &group->graph);
    }
}

/* The gradient reductions as tasks of the engine. Reduction f is task 2 f + 1, which waits for task
 * 2 f, the time when its operands are made, and for the reductions before it on its stages. */
typedef struct Reductions {
    Arena *arena;
    int count;
    EngineTask *tasks;
    EngineResource *resources; // by direction of the cluster's uplinks
    int **last; // by group and stage: the task of the last reduction so far; -1: there is none
    UplinkLoads loads; // scratch
} Reductions;

static Reductions reductions_create(Arena *arena, const Simulation *simulation, int count) {
    const Cluster *cluster = simulation->module->devices->target.cluster;
    Reductions reductions = {.arena = arena, .count = count};
    reductions.tasks = arena_array(arena, EngineTask, 2 * count);
    reductions.resources = arena_array(arena, EngineResource, uplink_directions(cluster));
    for (int d = 0; d < uplink_directions(cluster); d++)
        reductions.resources[d] =
            (EngineResource){.rate = 1, .device = -1, .bucket = uplink_bucket(cluster, d)};
    reductions.last = arena_array(arena, int *, simulation->groups.count);
    for (int g = 0; g < simulation->groups.count; g++) {
        int stages = simulation->groups.at[g].graph.stage_count;
        reductions.last[g] = arena_array(arena, int, stages);
        for (int s = 0; s < stages; s++) reductions.last[g][s] = -1;
    }
    if (uplink_directions(cluster)) reductions.loads = uplink_loads(arena, cluster);
    return reductions;
}

/* Sets the uses of a reduction's task: the uplinks that its bytes pass. It works for the seconds of
 * the busiest one, which it uses whole; the other seconds are latency. */
static void use_uplinks(Reductions *reductions, EngineTask *task, double seconds,
                        const PlannedConversion *conversion) {
    UplinkLoads *loads = &reductions->loads;
    double most = 0;
    *task = (EngineTask){.latency = seconds};
    if (!loads->cluster || seconds <= 0) return;
    conversion_load_uplinks(conversion, loads);
    EngineUse *uses = arena_array(reductions->arena, EngineUse, loads->passed_count);
    for (int i = 0; i < loads->passed_count; i++) {
        int direction = loads->passed[i];
        double busy = loads->bytes[direction] / uplink_rate(loads->cluster, direction);
        most = fmax(most, busy);
        uses[i] = (EngineUse){direction, busy};
    }
    for (int i = 0; i < loads->passed_count; i++) uses[i].share /= most;
    task->work = fmin(most, seconds);
    task->latency = seconds - task->work;
    task->use_count = loads->passed_count;
    task->uses = uses;
    uplink_loads_clear(loads);
}

/* Makes reduction `number` wait for the last reduction of each stage that makes its operands, and
 * stand for it. */
static void follow(const Simulation *simulation, Reductions *reductions, int number,
                   const Makers *made) {
    Array(int) waits = {0};
    array_push(reductions->arena, &waits, 2 * number);
    for (int g = 0; g < simulation->groups.count; g++)
        for (int s = 0; s < simulation->groups.at[g].graph.stage_count; s++) {
            int *last = &reductions->last[g][s];
            bool makes = false, known = *last < 0;
            for (int k = 0; k < made->count; k++)
                makes |= op_on_lane(simulation, made->at[k], g, s);
            for (int w = 0; w < waits.count; w++) known |= waits.at[w] == *last;
            if (makes && !known) array_push(reductions->arena, &waits, *last);
            if (makes) *last = 2 * number + 1;
        }
    reductions->tasks[2 * number + 1].wait_count = waits.count;
    reductions->tasks[2 * number + 1].waits = waits.at;
}

/* Finds the spans of the asynchronous reductions; those at once share uplinks (schedule/engine.h).
 */
static void let_fly(Arena *arena, Simulation *simulation) {
    AsyncCollectives collectives = module_async_collectives(arena, simulation->module);
    if (!collectives.count) return;
    set_behind(simulation);
    Reductions reductions = reductions_create(arena, simulation, collectives.count);
    for (int f = 0; f < collectives.count; f++) {
        const PlannedConversion *conversion = collectives.at[f].op->convert.plan;
        Makers made = makers(arena, simulation->module, &collectives.at[f]);
        EngineTask *made_task = &reductions.tasks[2 * f];
        for (int k = 0; k < made.count; k++)
            made_task->latency = fmax(made_task->latency, made_at(simulation, made.at[k]));
        use_uplinks(&reductions, &reductions.tasks[2 * f + 1],
                    times_conversion(&simulation->times, conversion), conversion);
        follow(simulation, &reductions, f, &made);
    }
    EngineSpan *spans =
        engine_run(arena, &(EngineProblem){.task_count = 2 * collectives.count,
                                           .resource_count = uplink_directions(
                                               simulation->module->devices->target.cluster),
                                           .tasks = reductions.tasks,
                                           .resources = reductions.resources});
    for (int f = 0; f < collectives.count; f++)
        array_push(arena, &simulation->collectives,
                   (SimulatedMessage){collectives.at[f].op,
                                      {spans[2 * f + 1].begin, spans[2 * f + 1].end}});
}

/* ---- parts of a step ---- */

/* Sets the times of all stages and the spans before the tables. Returns when the last span ends. */
static double begin_lanes(Simulation *simulation) {
    double end = 0;
    for (int g = 0; g < simulation->groups.count; g++)
        for (int s = 0; s < simulation->groups.at[g].graph.stage_count; s++) {
            TimelineRow *lane = &simulation->groups.at[g].lanes[s];
            lane->times = times_of_stage(&simulation->times, lane->devices, lane->device_count,
                                         simulation->groups.at[g].body < 0
                                             ? STAGE_ALL
                                             : simulation->groups.at[g].first_stage + s,
                                         &simulation->groups.at[g].graph);
            lane->before = (Span){0, before_time(&simulation->groups.at[g], lane)};
            end = fmax(end, lane->before.end);
        }
    return end;
}

/* Returns when the tables and the gradient reductions have ended. */
static double tables_end(const Simulation *simulation) {
    double end = 0;
    for (int g = 0; g < simulation->groups.count; g++)
        end =
            fmax(end, simulation->groups.at[g].begin + simulation->groups.at[g].timeline->seconds);
    for (int f = 0; f < simulation->collectives.count; f++)
        end = fmax(end, simulation->collectives.at[f].span.end);
    return end;
}

static void end_lanes(Simulation *simulation) {
    double begin = tables_end(simulation);
    for (int g = 0; g < simulation->groups.count; g++)
        for (int s = 0; s < simulation->groups.at[g].graph.stage_count; s++) {
            TimelineRow *lane = &simulation->groups.at[g].lanes[s];
            lane->update =
                (Span){begin, begin + lane_time(&simulation->groups.at[g], lane, PHASE_UPDATE, 0)};
            lane->busy = lane->before.end + simulation->groups.at[g].timeline->busy[s] +
                         lane->update.end - begin;
            simulation->length = fmax(simulation->length, lane->update.end);
        }
}

static Simulation simulate(Arena *arena, Module *module, bool priced) {
    Simulation simulation = {.module = module, .times = times_create(arena, module, priced)};
    for (int r = 0; r < module->templates->runs.count; r++) add_run(arena, &simulation, r);
    if (!module->templates->runs.count) add_whole(arena, &simulation);
    double begin = begin_lanes(&simulation);
    for (int g = 0; g < simulation.groups.count; g++) {
        simulation.groups.at[g].begin = begin;
        run_table(&simulation, arena, &simulation.groups.at[g]);
    }
    let_fly(arena, &simulation);
    end_lanes(&simulation);
    return simulation;
}

Simulation simulation_create(Arena *arena, Module *module) {
    Simulation simulation = simulate(arena, module, module->devices->target.cluster != NULL);
    return simulation.times.known ? simulation : simulate(arena, module, false);
}
