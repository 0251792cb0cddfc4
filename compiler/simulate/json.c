/* What was simulated, as JSON and as a trace. */
#include "report/conversions.h"
#include "reshard/plan.h"
#include "simulate/words.h"

#include <jansson.h>
#include <stdlib.h>

/* ---- JSON ---- */

static json_t *json_devices(const Actor *actor)
{
    json_t *list = json_array();
    for (int i = 0; i < actor->device_count; i++)
        json_array_append_new(list, json_integer(actor->devices[i]));
    return list;
}

static json_t *json_memory(const ActorMemory *memory)
{
    json_t *points = json_array();
    for (int i = 0; i < memory->point_count; i++)
        json_array_append_new(points, json_pack("[f,I]", memory->points[i].at, (json_int_t)memory->points[i].bytes));
    return json_pack("{s:I,s:I,s:I,s:o}", "peak", (json_int_t)memory->peak, "arena", (json_int_t)memory->arena, "used",
                     (json_int_t)memory->used, "curve", points);
}

static json_t *json_actor(const SimulatedSteps *steps, int number)
{
    const Actor *actor = &steps->fold.actors[number];
    const ActorTime *time = &steps->times[number];
    return json_pack("{s:o,s:s,s:f,s:f,s:f,s:f,s:o}", "devices", json_devices(actor), "class", actor->class->name, "computing",
                     time->computing, "exposed", time->exposed, "hidden", time->hidden, "idle", time->idle, "memory",
                     json_memory(&steps->memory[number]));
}

/* What goes over links in a step. */
static json_t *json_conversions(Arena *arena, const SimulatedSteps *steps)
{
    Simulation simulation = simulation_create(arena, steps->module);
    ConversionRows rows = conversion_rows(arena, &simulation);
    json_t *list = json_array();
    for (int i = 0; i < rows.at.count; i++) {
        const ConversionRow *row = &rows.at.at[i];
        json_array_append_new(list, json_pack("{s:s*,s:i,s:s,s:I,s:I,s:I}", "file", row->op->at.file, "line", row->op->at.line, "conversion",
                                              plan_name(row->plan), "runs", (json_int_t)row->runs, "bytes", (json_int_t)row->bytes, "received",
                                              (json_int_t)row->received));
    }
    return list;
}

static json_t *json_steps(Arena *arena, const SimulatedSteps *steps)
{
    json_t *seconds = json_array(), *actors = json_array();
    const Module *module = steps->module;
    for (int s = 0; s < steps->program.steps; s++)
        json_array_append_new(seconds, json_real(steps->seconds[s]));
    for (int a = 0; a < steps->fold.actor_count; a++)
        json_array_append_new(actors, json_actor(steps, a));
    return json_pack("{s:s,s:s,s:s,s:s?,s:i,s:o,s:o,s:o}", "model", module->name, "kind", module->kind == MODULE_TRAIN ? "train" : "infer",
                     "source", module->source, "strategy", module->strategy ? module->strategy->name : NULL, "devices",
                     module->roles->device_count, "steps", seconds, "actors", actors,
                     "conversions", json_conversions(arena, steps));
}

static void put_json(Text *out, json_t *top, size_t flags)
{
    char *text = json_dumps(top, flags);
    text_string(out, text);
    text_string(out, "\n");
    free(text);
    json_decref(top);
}

void steps_json(Text *out, SimulatedSteps *const *steps, int count)
{
    json_t *models = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(models, json_steps(out->arena, steps[i]));
    put_json(out, json_pack("{s:i,s:o}", "format", 1, "models", models), JSON_INDENT(1) | JSON_REAL_PRECISION(17));
}

/* ---- traces ---- */

static const char *task_name(Arena *arena, const ProgramTask *task)
{
    if (task->op)
        return plan_name(task->op->conversion->plan);
    const char *phase = phase_name(task->phase);
    return task->microbatch >= 0 ? arena_format(arena, "%s of visit %d, micro-batch %d", phase, task->visit < 0 ? 0 : task->visit, task->microbatch) : phase;
}

static json_t *trace_task(Arena *arena, const SimulatedSteps *steps, int number, int actor, int process)
{
    const ProgramTask *task = &steps->program.tasks.at[number];
    const EngineSpan *span = &steps->spans[number];
    json_t *arguments = json_pack("{s:i,s:s}", "step", task->step, "phase", phase_name(task->phase));
    if (task->op && task->op->at.file)
        json_object_set_new(arguments, "line", json_string(arena_format(arena, "%s:%d", task->op->at.file, task->op->at.line)));
    if (task->op && task->op->scope)
        json_object_set_new(arguments, "scope", json_string(task->op->scope));
    if (task->microbatch >= 0)
        json_object_set_new(arguments, "microbatch", json_integer(task->microbatch));
    return json_pack("{s:s,s:s,s:s,s:f,s:f,s:i,s:i,s:o}", "name", task_name(arena, task), "cat", stream_name(task->stream), "ph", "X", "ts",
                     span->begin * 1e6, "dur", (span->end - span->begin) * 1e6, "pid", process + steps->fold.actors[actor].devices[0], "tid",
                     (int)task->stream, "args", arguments);
}

/* The names of an actor and of its streams. */
static void trace_names(Arena *arena, json_t *events, const SimulatedSteps *steps, int actor, int process)
{
    const Actor *own = &steps->fold.actors[actor];
    int number = process + own->devices[0];
    const char *name = arena_format(arena, "%s: devices %s, %s", steps->module->name, actor_devices(arena, own), own->class->name);
    json_array_append_new(events, json_pack("{s:s,s:s,s:i,s:{s:s}}", "name", "process_name", "ph", "M", "pid", number, "args", "name", name));
    json_array_append_new(events, json_pack("{s:s,s:s,s:i,s:{s:i}}", "name", "process_sort_index", "ph", "M", "pid", number, "args", "sort_index", number));
    for (Stream stream = 0; stream < STREAMS; stream++)
        json_array_append_new(events, json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "name", "thread_name", "ph", "M", "pid", number, "tid",
                                                (int)stream, "args", "name", stream_name(stream)));
}

static void trace_memory(json_t *events, const SimulatedSteps *steps, int actor, int process)
{
    const ActorMemory *memory = &steps->memory[actor];
    for (int i = 0; i < memory->point_count; i++)
        json_array_append_new(events, json_pack("{s:s,s:s,s:f,s:i,s:{s:I}}", "name", "memory in use", "ph", "C", "ts", memory->points[i].at * 1e6,
                                                "pid", process + steps->fold.actors[actor].devices[0], "args", "bytes",
                                                (json_int_t)memory->points[i].bytes));
}

static void trace_steps(Arena *arena, json_t *events, const SimulatedSteps *steps, int process)
{
    for (int a = 0; a < steps->fold.actor_count; a++) {
        trace_names(arena, events, steps, a, process);
        trace_memory(events, steps, a, process);
    }
    for (int t = 0; t < steps->program.tasks.count; t++) {
        const ProgramTask *task = &steps->program.tasks.at[t];
        for (int i = 0; i < task->actor_count && steps->spans[t].end > steps->spans[t].begin; i++)
            json_array_append_new(events, trace_task(arena, steps, t, task->actors[i], process));
    }
}

void steps_trace(Text *out, SimulatedSteps *const *steps, int count)
{
    json_t *events = json_array();
    for (int i = 0, process = 0; i < count; i++) {
        trace_steps(out->arena, events, steps[i], process);
        process += steps[i]->fold.device_span;
    }
    put_json(out, json_pack("{s:o,s:s}", "traceEvents", events, "displayTimeUnit", "ms"), JSON_COMPACT | JSON_REAL_PRECISION(17));
}
