/* Makes the tasks of a step: what overlaps with computing, and what each task waits for. */
#include "planner/simulate/step.h"

#include "planner/simulate/transfers.h"
#include "ir/analysis/async_collectives.h"
#include "ir/programs/device_programs.h"
#include "schedule/wait_graph.h"
#include "planner/simulate/script.h"

#include <string.h>

const char *stream_name(Stream stream) { return ht_stream_name((ht_stream_kind)stream); }

typedef Array(int) List;

/* A gradient reduction. */
typedef struct Sum {
    const Op *op;
    int *made; // by actor: the last task that computes the actor's contribution; -1: none yet
} Sum;

typedef struct Builder {
    Arena *arena;
    Arena *room; // holds the task lists; freed when the lists are copied to a larger arena
    Symmetry *fold;
    Module *module;
    Program *program;
    Scripts scripts;
    ProgramTask place; // phase, step, run and stage of new tasks
    int *self;         // by actor: its number
    double *pending;   // by actor: seconds of computing that are not a task yet
    int *last;         // by actor: its last task; -1: it has none yet
    List *extra;       // by actor: the tasks that its next task waits for besides the last one
    Array(Sum) sums;
    List *made_by; // by operator: the gradient reductions of its results
} Builder;

/* ---- adding tasks ---- */

static int *copied(Arena *arena, const List *list) {
    return arena_copy(arena, list->at, sizeof(int) * (size_t)list->count);
}

static void add_wait(Arena *arena, List *waits, int task) {
    for (int i = 0; i < waits->count; i++)
        if (waits->at[i] == task) return;
    if (task >= 0) array_push(arena, waits, task);
}

/* Copies all tasks to `room`, with space for `capacity`. */
static void move_tasks(Program *program, Arena *room, int capacity) {
    ProgramTask *tasks = arena_array(room, ProgramTask, capacity);
    EngineTask *engine = arena_array(room, EngineTask, capacity);
    if (program->tasks.count) {
        memcpy(tasks, program->tasks.at, sizeof *tasks * (size_t)program->tasks.count);
        memcpy(engine, program->engine.at, sizeof *engine * (size_t)program->engine.count);
    }
    program->tasks.at = tasks;
    program->engine.at = engine;
    program->tasks.capacity = program->engine.capacity = capacity;
}

/* Doubles the capacity of the task lists. */
static void widen(Builder *builder) {
    enum { FEW = 64 };
    Arena *wider = arena_create();
    move_tasks(builder->program, wider,
               builder->program->tasks.count ? 2 * builder->program->tasks.count : FEW);
    arena_destroy(builder->room);
    builder->room = wider;
}

static int add_task(Builder *builder, const ProgramTask *own, EngineTask task, const List *waits) {
    Program *program = builder->program;
    task.wait_count = waits->count;
    task.waits = copied(builder->arena, waits);
    if (program->tasks.count == program->tasks.capacity) widen(builder);
    program->tasks.at[program->tasks.count++] = *own;
    program->engine.at[program->engine.count++] = task;
    return program->tasks.count - 1;
}

/* Adds a task of one actor that computes for some seconds. Returns its number. */
static int add_computing(Builder *builder, int actor, double seconds, const List *waits) {
    ProgramTask own = builder->place;
    own.stream = STREAM_COMPUTING;
    own.actor_count = 1;
    own.actors = &builder->self[actor];
    EngineUse *use = arena_new(builder->arena, EngineUse);
    *use = (EngineUse){symmetry_computing(builder->fold, actor), 1};
    return add_task(builder, &own, (EngineTask){.work = seconds, .use_count = 1, .uses = use},
                    waits);
}

/* Adds a task for an actor's pending computing. Without pending computing, adds an empty task if
 * `always`, or if the actor has to wait for other tasks. */
static void flush(Builder *builder, int actor, bool always) {
    List *extra = &builder->extra[actor], waits = {0};
    if (builder->pending[actor] == 0 && !always && !extra->count) return;
    add_wait(builder->arena, &waits, builder->last[actor]);
    for (int i = 0; i < extra->count; i++) add_wait(builder->arena, &waits, extra->at[i]);
    extra->count = 0;
    builder->last[actor] = add_computing(builder, actor, builder->pending[actor], &waits);
    builder->pending[actor] = 0;
}

/* ---- tasks of conversions ---- */

/* The progress of a conversion. `at`: by actor, its last task; -1: none yet. `waits_of` adds the
 * tasks that an actor's first task waits for. */
typedef struct ConversionTasks {
    Stream stream;
    const Op *op;
    int *at;
    void (*waits_of)(Builder *builder, const struct ConversionTasks *tasks, int actor, List *waits);
    const void *state;
} ConversionTasks;

static void conversion_waits(Builder *builder, const ConversionTasks *tasks, int actor,
                             List *waits) {
    if (tasks->at[actor] >= 0) add_wait(builder->arena, waits, tasks->at[actor]);
    else tasks->waits_of(builder, tasks, actor, waits);
}

static void add_transfer(Builder *builder, const ConversionTasks *tasks,
                         const ActorTransfer *transfer) {
    List waits = {0};
    ProgramTask own = builder->place;
    own.stream = tasks->stream;
    own.op = tasks->op;
    own.transfer = transfer;
    own.actor_count = transfer->actor_count;
    own.actors = transfer->actors;
    for (int i = 0; i < transfer->actor_count; i++)
        conversion_waits(builder, tasks, transfer->actors[i], &waits);
    int task = add_task(builder, &own,
                        (EngineTask){.latency = transfer->transfer->latency,
                                     .work = transfer->transfer->work,
                                     .use_count = transfer->use_count,
                                     .uses = transfer->uses},
                        &waits);
    for (int i = 0; i < transfer->actor_count; i++) tasks->at[transfer->actors[i]] = task;
}

/* Adds the tasks of a conversion. */
static void convert(Builder *builder, const ConversionTasks *tasks,
                    const ActorTransfers *transfers) {
    for (int m = 0; m < transfers->copier_count; m++) {
        List waits = {0};
        int actor = transfers->copiers[m];
        conversion_waits(builder, tasks, actor, &waits);
        tasks->at[actor] = add_computing(builder, actor, transfers->moving, &waits);
        builder->program->tasks.at[tasks->at[actor]].op = tasks->op;
    }
    for (int h = 0; h < transfers->count; h++) add_transfer(builder, tasks, &transfers->at[h]);
}

static int *no_tasks(Arena *arena, int count) {
    int *list = arena_array(arena, int, count);
    memset(list, 0xff, sizeof *list * (size_t)count);
    return list;
}

/* ---- tasks of phases ---- */

/* Adds to `waits` the actor's last task, after a task for the computing that is pending. */
static void wait_for_own(Builder *builder, const ConversionTasks *tasks, int actor, List *waits) {
    (void)tasks;
    flush(builder, actor, false);
    add_wait(builder->arena, waits, builder->last[actor]);
}

static void convert_inside(Builder *builder, const ScriptItem *item) {
    Arena *scratch = arena_create();
    ConversionTasks tasks = {STREAM_COLLECTIVES, item->op,
                             no_tasks(scratch, builder->fold->actor_count), wait_for_own, NULL};
    convert(builder, &tasks, item->transfers);
    for (int a = 0; a < builder->fold->actor_count; a++)
        builder->last[a] = tasks.at[a] >= 0 ? tasks.at[a] : builder->last[a];
    arena_destroy(scratch);
}

/* Records the actors' last tasks as contributions to the gradient reductions of op's results. */
static void note_made(Builder *builder, const Script *script, const Op *op) {
    const List *sums = &builder->made_by[op->index];
    for (int i = 0; sums->count && i < script->actor_count; i++) {
        int actor = script->actors[i];
        if (!role_runs(builder->module, builder->fold->actors[actor].role, op)) continue;
        flush(builder, actor, false);
        for (int s = 0; s < sums->count; s++)
            builder->sums.at[sums->at[s]].made[actor] = builder->last[actor];
    }
}

/* Adds the tasks of a script on its actors; `last` is true for the last micro-batch. */
static void run_script(Builder *builder, const Script *script, bool last) {
    for (int i = 0; i < script->items.count; i++) {
        const ScriptItem *item = &script->items.at[i];
        for (int a = 0; item->seconds && a < script->actor_count; a++)
            builder->pending[script->actors[a]] += item->seconds[a];
        if (item->transfers) convert_inside(builder, item);
        if (last) note_made(builder, script, item->op);
    }
}

/* Adds a row of the table of the stage in builder->place. Each actor begins the row with a task,
 * which takes no time unless computing is pending. */
static void add_row(Builder *builder, const Script *script, bool last, int row) {
    const ProgramTask *place = &builder->place;
    int begin = builder->program->rows.count;
    for (int i = 0; i < script->actor_count; i++) {
        int actor = script->actors[i];
        flush(builder, actor, true);
        array_push(builder->arena, &builder->program->rows,
                   (ProgramRow){actor, place->step, place->run, place->stage, row,
                                builder->last[actor], -1});
    }
    run_script(builder, script, last);
    for (int i = 0; i < script->actor_count; i++) {
        flush(builder, script->actors[i], false);
        builder->program->rows.at[begin + i].last = builder->last[script->actors[i]];
    }
}

/* ---- tasks of pipelines' tables ---- */

/* The state while a pipeline's table is turned into tasks. Events: schedule/wait_graph.h. */
typedef struct Table {
    Builder *builder;
    int run;
    const Waits *waits;
    int *place; // by actor: its index among the pipeline's actors; -1: it is in another pipeline
    int width;  // the number of the pipeline's actors
    int *done;  // by event and actor index: the task with which the actor ends the event; -1: the
                // actor has no such event
    const WaitFor *waited; // the events that the present event waits for
    int waited_count;
} Table;

static int *done_at(const Table *table, int event, int actor) {
    return table->place[actor] < 0
               ? NULL
               : &table->done[(size_t)event * (size_t)table->width + (size_t)table->place[actor]];
}

/* Adds, for each event that the present event waits for, the task with which the actor ends it. */
static void wait_for_events(Builder *builder, const Table *table, int actor, List *waits) {
    for (int i = 0; i < table->waited_count; i++) {
        const int *done = done_at(table, table->waited[i].event, actor);
        if (done) add_wait(builder->arena, waits, *done);
    }
}

static void end_row(Table *table, int event) {
    Builder *builder = table->builder;
    const ScheduleRow *row = wait_row(table->waits, event);
    static const Phase phases[] = {[SCHEDULE_FORWARD] = PHASE_FORWARD,
                                   [SCHEDULE_BACKWARD] = PHASE_BACKWARD,
                                   [SCHEDULE_WGRAD] = PHASE_WGRAD};
    int stage = table->waits->stage_of[event];
    const Script *script = script_of(&builder->scripts, table->run, phases[row->phase], row->visit);
    builder->place = (ProgramTask){.phase = phases[row->phase],
                                   .step = builder->place.step,
                                   .run = table->run,
                                   .stage = stage,
                                   .visit = row->visit,
                                   .microbatch = row->microbatch};
    for (int a = 0; a < script->actor_count; a++)
        wait_for_events(builder, table, script->actors[a], &builder->extra[script->actors[a]]);
    add_row(builder, script, row->microbatch == table->waits->microbatches - 1,
            event - table->waits->first_row[stage]);
    for (int a = 0; a < script->actor_count; a++)
        *done_at(table, event, script->actors[a]) = builder->last[script->actors[a]];
}

static void wait_as_message(Builder *builder, const ConversionTasks *tasks, int actor,
                            List *waits) {
    wait_for_events(builder, tasks->state, actor, waits);
}

/* Makes `task` end an event for an actor. If a task already ends it, adds a task after both. */
static void end_together(Table *table, int event, int actor, int task) {
    int *done = done_at(table, event, actor);
    List waits = {0};
    if (*done >= 0) {
        ProgramTask own = table->builder->place;
        own.stream = STREAM_MESSAGES;
        own.actor_count = 1;
        own.actors = &table->builder->self[actor];
        add_wait(table->builder->arena, &waits, *done);
        add_wait(table->builder->arena, &waits, task);
        task = add_task(table->builder, &own, (EngineTask){0}, &waits);
    }
    *done = task;
}

static void end_transfer(Table *table, int event) {
    Builder *builder = table->builder;
    bool backward;
    int edge = wait_edge(table->waits, event, &backward);
    const EdgeScript *script = edge_script_of(&builder->scripts, table->run, edge, backward);
    builder->place =
        (ProgramTask){.phase = backward ? PHASE_BACKWARD : PHASE_FORWARD,
                      .step = builder->place.step,
                      .run = table->run,
                      .stage = -1,
                      .visit = table->waits->graph->edge[edge][backward],
                      .edge = edge,
                      .microbatch = (event - table->waits->row_count) % table->waits->microbatches};
    for (int i = 0; i < script->count; i++) {
        Arena *scratch = arena_create();
        ConversionTasks tasks = {STREAM_MESSAGES, script->ops[i],
                                 no_tasks(scratch, builder->fold->actor_count), wait_as_message,
                                 table};
        convert(builder, &tasks, script->transfers[i]);
        for (int a = 0; a < builder->fold->actor_count; a++)
            if (tasks.at[a] >= 0) end_together(table, event, a, tasks.at[a]);
        arena_destroy(scratch);
    }
}

static void end_event(void *state, int event, const WaitFor *waited, int count) {
    Table *table = state;
    table->waited = waited;
    table->waited_count = count;
    if (event < table->waits->row_count) end_row(table, event);
    else end_transfer(table, event);
}

static void run_table(Builder *builder, int number) {
    Arena *scratch = arena_create();
    const PipelineRun *run = &builder->module->templates->runs.at[number];
    StageGraph graph = template_graph(scratch, builder->module, run->template_index);
    Waits waits = waits_create(scratch, &graph, run->schedule);
    Table table = {builder, number, &waits, no_tasks(scratch, builder->fold->actor_count),
                   0,       NULL,   NULL,   0};
    for (int a = 0; a < builder->fold->actor_count; a++) {
        const PipelineRun *own = builder->fold->actors[a].run;
        if (own && builder->fold->stands[own - builder->module->templates->runs.at] == number)
            table.place[a] = table.width++;
    }
    table.done = no_tasks(scratch, waits.event_count * table.width);
    if (waits_visit(scratch, &waits, end_event, &table))
        BUG("a schedule of %d stages stands still", run->schedule->stage_count);
    arena_destroy(scratch);
}

/* ---- tasks of gradient reductions ---- */

/* Records that an operator makes a contribution to gradient reduction `number`. */
static void add_maker(Builder *builder, const Op *maker, int number) {
    List *list = &builder->made_by[maker->index];
    if (!list->count || list->at[list->count - 1] != number)
        array_push(builder->arena, list, number);
}

static void find_sums(Builder *builder) {
    const Module *module = builder->module;
    builder->made_by = arena_array(builder->arena, List, module->ops.count);
    AsyncCollectives collectives = module_async_collectives(builder->arena, module);
    for (int s = 0; s < collectives.count; s++) {
        array_push(
            builder->arena, &builder->sums,
            (Sum){collectives.at[s].op, no_tasks(builder->arena, builder->fold->actor_count)});
        for (int t = 0; t < collectives.at[s].count; t++) {
            const Op *maker = collectives.at[s].ops[t]->operands[0]->def;
            bool joined = maker->def == module->builtin->stage_union;
            for (int k = 0; k < (joined ? maker->operand_count : 1); k++)
                add_maker(builder, joined ? maker->operands[k]->def : maker, s);
        }
    }
}

/* Returns, by operator, whether the operator makes a contribution to a gradient reduction. */
static const bool *marked_makers(const Builder *builder) {
    bool *marked = arena_array(builder->arena, bool, builder->module->ops.count);
    for (int i = 0; i < builder->module->ops.count; i++) marked[i] = builder->made_by[i].count > 0;
    return marked;
}

/* Adds to `waits` the task tasks->state[actor], the last with which the actor contributes to this
 * gradient reduction or an earlier one. */
static void wait_as_sum(Builder *builder, const ConversionTasks *tasks, int actor, List *waits) {
    add_wait(builder->arena, waits, ((const int *)tasks->state)[actor]);
}

static void run_sums(Builder *builder) {
    Arena *scratch = arena_create();
    int actors = builder->fold->actor_count, *ready = no_tasks(scratch, actors);
    for (int s = 0; s < builder->sums.count; s++) {
        const Sum *sum = &builder->sums.at[s];
        builder->place = (ProgramTask){.phase = PHASE_UPDATE,
                                       .step = builder->place.step,
                                       .run = -1,
                                       .stage = -1,
                                       .visit = -1,
                                       .microbatch = -1};
        for (int a = 0; a < actors; a++)
            ready[a] = sum->made[a] > ready[a] ? sum->made[a] : ready[a];
        ConversionTasks tasks = {STREAM_SUMS, sum->op, no_tasks(scratch, actors), wait_as_sum,
                                 ready};
        convert(builder, &tasks, symmetry_transfers(builder->fold, sum->op->convert.plan, -1));
        for (int a = 0; a < actors; a++) add_wait(builder->arena, &builder->extra[a], tasks.at[a]);
    }
    arena_destroy(scratch);
}

/* ---- tasks of whole steps ---- */

/* Adds the tasks of a phase that has no table, on all actors. */
static void run_whole(Builder *builder, Phase phase, int microbatch, bool last, int row) {
    const Script *script = whole_script_of(&builder->scripts, phase);
    builder->place = (ProgramTask){.phase = phase,
                                   .step = builder->place.step,
                                   .run = -1,
                                   .stage = -1,
                                   .visit = -1,
                                   .microbatch = microbatch};
    add_row(builder, script, last, row);
}

/* Adds, at the start of a step, the tasks of each micro-batch's counting phase, if there is one. */
static void run_counts(Builder *builder) {
    int64_t most = module_microbatches(builder->module);
    if (!whole_script_of(&builder->scripts, PHASE_COUNTING)->items.count) return;
    for (int64_t m = 0; m < most; m++)
        run_whole(builder, PHASE_COUNTING, (int)m, m == most - 1, -1);
}

/* Ends a step: adds a task that waits for all actors, and for which the next step waits. */
static void end_step(Builder *builder) {
    List waits = {0};
    for (int a = 0; a < builder->fold->actor_count; a++)
        add_wait(builder->arena, &waits, builder->last[a]);
    ProgramTask own = {.stream = STREAM_COMPUTING,
                       .phase = PHASE_UPDATE,
                       .step = builder->place.step,
                       .run = -1,
                       .stage = -1,
                       .visit = -1,
                       .microbatch = -1};
    int end = add_task(builder, &own, (EngineTask){0}, &waits);
    array_push(builder->arena, &builder->program->step_ends, end);
    for (int a = 0; a < builder->fold->actor_count; a++) builder->last[a] = end;
}

static void run_step(Builder *builder) {
    const Module *module = builder->module;
    for (int s = 0; s < builder->sums.count; s++)
        memset(builder->sums.at[s].made, 0xff, sizeof(int) * (size_t)builder->fold->actor_count);
    if (!module->templates->runs.count) {
        for (Phase phase = PHASE_FORWARD; phase < PHASE_UPDATE; phase++)
            run_whole(builder, phase, -1, true, (int)phase);
        run_sums(builder);
        run_whole(builder, PHASE_UPDATE, -1, true, (int)PHASE_UPDATE);
        end_step(builder);
        return;
    }
    run_counts(builder);
    run_whole(builder, PHASE_BEFORE, -1, true, -1);
    for (int r = 0; r < module->templates->runs.count; r++)
        if (builder->fold->stands[r] == r) run_table(builder, r);
    run_sums(builder);
    run_whole(builder, PHASE_UPDATE, -1, true, -2);
    end_step(builder);
}

Program tasks_of_steps(Arena *arena, Symmetry *fold, int steps) {
    Program program = {.fold = fold, .steps = steps};
    Builder builder = {.arena = arena,
                       .fold = fold,
                       .module = fold->module,
                       .program = &program,
                       .self = arena_array(arena, int, fold->actor_count),
                       .pending = arena_array(arena, double, fold->actor_count),
                       .last = no_tasks(arena, fold->actor_count),
                       .extra = arena_array(arena, List, fold->actor_count)};
    for (int a = 0; a < fold->actor_count; a++) builder.self[a] = a;
    find_sums(&builder);
    builder.scripts = scripts_create(arena, fold, marked_makers(&builder));
    for (int s = 0; s < steps && !builder.scripts.unknown; s++) {
        builder.place.step = s;
        run_step(&builder);
    }
    move_tasks(&program, arena, program.tasks.count);
    arena_destroy(builder.room);
    program.unknown = builder.scripts.unknown;
    return program;
}
