/* Writes simulated steps as a trace in Chrome's format: a process for each actor, and in it a row
 * for each stream. A task that overlaps with another of its stream, such as one of several
 * reductions, goes to an additional row. */
#include "reshard/plan.h"

#include "ir/programs/conversions.h"
#include "planner/simulate/simulate.h"

#include <stdlib.h>

typedef Array(double) Ends; // by row: when its last task ends, seconds

typedef struct Tracer {
    Arena *arena;
    const SimulatedSteps *steps;
    json_t *events;
    int process; // number of the module's first process
    Ends *ends;  // entry actor * STREAMS + stream
} Tracer;

static Ends *ends_of(const Tracer *tracer, int actor, Stream stream) {
    return &tracer->ends[actor * STREAMS + (int)stream];
}

static int row_id(Stream stream, int row) { return (int)stream + row * STREAMS; }

/* Returns the first row of a stream that is free when a task begins, and occupies it. */
static int take_row(const Tracer *tracer, int actor, Stream stream, const EngineSpan *span) {
    Ends *ends = ends_of(tracer, actor, stream);
    int row = 0;
    while (row < ends->count && ends->at[row] > span->begin) row++;
    if (row == ends->count) array_push(tracer->arena, ends, span->end);
    ends->at[row] = span->end;
    return row;
}

static const char *task_name(Arena *arena, const ProgramTask *task) {
    if (task->op) return plan_name(task->op->convert.plan->plan);
    const char *phase = phase_name(task->phase);
    return task->microbatch >= 0 ? arena_format(arena, "%s of visit %d, micro-batch %d", phase,
                                                task->visit < 0 ? 0 : task->visit, task->microbatch)
                                 : phase;
}

static int process_of(const Tracer *tracer, int actor) {
    return tracer->process + tracer->steps->fold.actors[actor].devices[0];
}

static void trace_task(const Tracer *tracer, int number, int actor) {
    const ProgramTask *task = &tracer->steps->program.tasks.at[number];
    const EngineSpan *span = &tracer->steps->spans[number];
    json_t *arguments =
        json_pack("{s:i,s:s}", "step", task->step, "phase", phase_name(task->phase));
    if (task->op && task->op->at.file)
        json_object_set_new(arguments, "line",
                            json_string(arena_format(tracer->arena, "%s:%d", task->op->at.file,
                                                     task->op->at.line)));
    if (task->op && task->op->source->scope)
        json_object_set_new(arguments, "scope", json_string(task->op->source->scope));
    if (task->microbatch >= 0)
        json_object_set_new(arguments, "microbatch", json_integer(task->microbatch));
    json_array_append_new(
        tracer->events,
        json_pack("{s:s,s:s,s:s,s:f,s:f,s:i,s:i,s:o}", "name", task_name(tracer->arena, task),
                  "cat", stream_name(task->stream), "ph", "X", "ts", span->begin * 1e6, "dur",
                  (span->end - span->begin) * 1e6, "pid", process_of(tracer, actor), "tid",
                  row_id(task->stream, take_row(tracer, actor, task->stream, span)), "args",
                  arguments));
}

typedef struct Begun {
    double begin; // seconds
    bool converts;
    int task;
} Begun;

/* Compares tasks by their start. Of tasks that start together, those that compute come before
 * conversions, then tasks come in the order of creation. */
static int compare_begun(const void *a, const void *b) {
    const Begun *first = a, *second = b;
    if (first->begin != second->begin) return first->begin < second->begin ? -1 : 1;
    if (first->converts != second->converts) return first->converts ? 1 : -1;
    return first->task < second->task ? -1 : first->task > second->task;
}

static void trace_tasks(const Tracer *tracer) {
    const Program *program = &tracer->steps->program;
    Begun *begun = arena_array(tracer->arena, Begun, program->tasks.count + 1);
    for (int t = 0; t < program->tasks.count; t++)
        begun[t] = (Begun){tracer->steps->spans[t].begin, program->tasks.at[t].op != NULL, t};
    qsort(begun, (size_t)program->tasks.count, sizeof *begun, compare_begun);
    for (int i = 0; i < program->tasks.count; i++) {
        const ProgramTask *task = &program->tasks.at[begun[i].task];
        bool takes_time = tracer->steps->spans[begun[i].task].end > begun[i].begin;
        for (int k = 0; k < task->actor_count && takes_time; k++)
            trace_task(tracer, begun[i].task, task->actors[k]);
    }
}

/* Writes the names of an actor and of its rows. */
static void trace_names(const Tracer *tracer, int actor) {
    const Actor *own = &tracer->steps->fold.actors[actor];
    int number = process_of(tracer, actor);
    const char *name =
        arena_format(tracer->arena, "%s: devices %s, %s", tracer->steps->module->name,
                     actor_devices(tracer->arena, own), own->class->name);
    json_array_append_new(tracer->events,
                          json_pack("{s:s,s:s,s:i,s:{s:s}}", "name", "process_name", "ph", "M",
                                    "pid", number, "args", "name", name));
    json_array_append_new(tracer->events,
                          json_pack("{s:s,s:s,s:i,s:{s:i}}", "name", "process_sort_index", "ph",
                                    "M", "pid", number, "args", "sort_index", number));
    for (Stream stream = 0; stream < STREAMS; stream++)
        for (int row = 0; row == 0 || row < ends_of(tracer, actor, stream)->count; row++)
            json_array_append_new(
                tracer->events,
                json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "name", "thread_name", "ph", "M", "pid",
                          number, "tid", row_id(stream, row), "args", "name",
                          row ? arena_format(tracer->arena, "%s, beside", stream_name(stream))
                              : stream_name(stream)));
}

static void trace_memory(const Tracer *tracer, int actor) {
    const ActorMemory *memory = &tracer->steps->memory[actor];
    for (int i = 0; i < memory->point_count; i++)
        json_array_append_new(tracer->events,
                              json_pack("{s:s,s:s,s:f,s:i,s:{s:I}}", "name", "memory in use", "ph",
                                        "C", "ts", memory->points[i].at * 1e6, "pid",
                                        process_of(tracer, actor), "args", "bytes",
                                        (json_int_t)memory->points[i].bytes));
}

void steps_trace(Text *out, SimulatedSteps *const *steps, int count) {
    json_t *events = json_array();
    for (int i = 0, process = 0; i < count; i++) {
        int actors = steps[i]->fold.actor_count;
        Tracer tracer = {out->arena, steps[i], events, process,
                         arena_array(out->arena, Ends, actors * STREAMS + 1)};
        trace_tasks(&tracer);
        for (int a = 0; a < actors; a++) {
            trace_names(&tracer, a);
            trace_memory(&tracer, a);
        }
        process += steps[i]->fold.device_span;
    }
    put_json(out, json_pack("{s:o,s:s}", "traceEvents", events, "displayTimeUnit", "ms"),
             JSON_COMPACT | JSON_REAL_PRECISION(17));
}
