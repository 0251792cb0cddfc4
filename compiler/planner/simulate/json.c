/* Writes simulated steps as JSON. */
#include "planner/report/step_timeline.h"
#include "planner/simulate/simulate.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *json_devices(const Actor *actor) {
    json_t *list = json_array();
    for (int i = 0; i < actor->device_count; i++)
        json_array_append_new(list, json_integer(actor->devices[i]));
    return list;
}

static json_t *json_memory(const ActorMemory *memory) {
    json_t *points = json_array();
    for (int i = 0; i < memory->point_count; i++)
        json_array_append_new(
            points, json_pack("[f,I]", memory->points[i].at, (json_int_t)memory->points[i].bytes));
    return json_pack("{s:I,s:I,s:I,s:o}", "peak", (json_int_t)memory->peak, "arena",
                     (json_int_t)memory->arena, "used", (json_int_t)memory->used, "curve", points);
}

static json_t *json_actor(const SimulatedSteps *steps, int number) {
    const Actor *actor = &steps->fold.actors[number];
    const ActorTime *time = &steps->times[number];
    return json_pack("{s:o,s:s,s:f,s:f,s:f,s:f,s:o}", "devices", json_devices(actor), "class",
                     actor->class->name, "computing", time->computing, "exposed", time->exposed,
                     "hidden", time->hidden, "idle", time->idle, "memory",
                     json_memory(&steps->memory[number]));
}

/* Returns a step's conversions with line, name, runs, bytes received in all and by one device. */
static json_t *json_conversions(Arena *arena, const SimulatedSteps *steps) {
    Simulation simulation = simulation_create(arena, steps->module);
    ConversionRows rows = conversion_rows(arena, &simulation);
    json_t *list = json_array();
    for (int i = 0; i < rows.at.count; i++) {
        const ConversionRow *row = &rows.at.at[i];
        json_array_append_new(
            list, json_pack("{s:s*,s:i,s:s,s:I,s:I,s:I}", "file", row->op->at.file, "line",
                            row->op->at.line, "conversion", plan_name(row->plan), "runs",
                            (json_int_t)row->runs, "bytes", (json_int_t)row->bytes, "received",
                            (json_int_t)row->received));
    }
    return list;
}

static json_t *json_steps(Arena *arena, const SimulatedSteps *steps) {
    json_t *seconds = json_array(), *actors = json_array();
    const Module *module = steps->module;
    for (int s = 0; s < steps->program.steps; s++)
        json_array_append_new(seconds, json_real(steps->seconds[s]));
    for (int a = 0; a < steps->fold.actor_count; a++)
        json_array_append_new(actors, json_actor(steps, a));
    return json_pack("{s:s,s:s,s:s,s:s?,s:i,s:o,s:o,s:o}", "model", module->name, "kind",
                     module->kind == MODULE_TRAIN ? "train" : "infer", "source",
                     module->source->file, "strategy",
                     module->strategy ? module->strategy->name : NULL, "devices",
                     module->devices->roles->device_count, "steps", seconds, "actors", actors,
                     "conversions", json_conversions(arena, steps));
}

void put_json(Text *out, json_t *top, size_t flags) {
    char *text = json_dumps(top, flags);
    text_string(out, text);
    text_string(out, "\n");
    free(text);
    json_decref(top);
}

void steps_json(Text *out, SimulatedSteps *const *steps, int count) {
    json_t *models = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(models, json_steps(out->arena, steps[i]));
    put_json(out, json_pack("{s:i,s:o}", "format", 1, "models", models),
             JSON_INDENT(1) | JSON_REAL_PRECISION(17));
}
