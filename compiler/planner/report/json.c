/* Writes the report as JSON, and into the page. step_timeline.c writes the timeline. */
#include "planner/report/report.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "cost/cost.h"
#include "planner/report/step_timeline.h"
#include "planner/report/values.h"
#include "support/reading.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

/* Returns a string as JSON, with question marks for bytes that are not UTF-8. NULL becomes null. */
static json_t *json_text(Arena *arena, const char *text) {
    json_t *exact = text ? json_string(text) : json_null();
    if (exact) return exact;
    char *shown = arena_string(arena, text);
    for (char *at = shown; *at; at++) *at = (unsigned char)*at < 0x80 ? *at : '?';
    return json_string(shown);
}

static json_t *json_devices(Arena *arena, const int *devices, int count) {
    Text text = {.arena = arena};
    layout_print_devices(&text, devices, count, 3);
    return json_string(text_bytes(&text));
}

/* Returns the mesh as strategies write it: "dp:2, tp:3 by 5:3:1". */
static const char *mesh_text(Arena *arena, const Stage *stage) {
    Text text = {.arena = arena};
    for (int a = 0; stage && a < stage->mesh.count; a++) {
        const MeshAxis *axis = &stage->mesh.at[a];
        text_print(&text, "%s%s:%d", a ? ", " : "", axis->name, axis->count);
        if (axis->weights) layout_print_weights(&text, axis->weights, axis->count);
    }
    return text_bytes(&text);
}

/* ---- layers ---- */

static void print_layer_run(Text *out, const Layer *first, const Layer *last) {
    text_string(out, out->length ? ", " : "");
    if (first->tower) text_print(out, "%s: ", first->tower);
    if (first->name) text_string(out, first->name);
    else
        text_print(out, first->number == last->number ? "%d" : "%d-%d", first->number,
                   last->number);
}

/* Returns the layers of a visit in the order in which they run: "0-9, head". */
static const char *layers_text(Arena *arena, const Module *module, const PipelineGroup *group,
                               int visit) {
    Text text = {.arena = arena};
    const Layer *first = NULL, *last = NULL;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (!op->source->layer || op_phase(module, op) != PHASE_FORWARD ||
            layer_same(last, op->source->layer) ||
            (group->body >= 0 && (op->stage != group->first_stage + group->graph.stage_of[visit] ||
                                  op->visit != visit)))
            continue;
        if (first && !layer_follows(last, op->source->layer)) {
            print_layer_run(&text, first, last);
            first = NULL;
        }
        first = first ? first : op->source->layer;
        last = op->source->layer;
    }
    if (first) print_layer_run(&text, first, last);
    return text_bytes(&text);
}

static json_t *json_visits(Arena *arena, const Module *module, const PipelineGroup *group,
                           int stage) {
    json_t *visits = json_array();
    for (int v = 0; v < group->graph.visit_count; v++)
        if (group->graph.stage_of[v] == stage)
            json_array_append_new(
                visits, json_pack("{s:i,s:o}", "visit", v, "layers",
                                  json_text(arena, layers_text(arena, module, group, v))));
    return visits;
}

/* ---- groups of pipelines ---- */

static json_t *json_span(Span span) { return json_pack("[f,f]", span.begin, span.end); }

/* Returns the rows of a stage: [phase, visit, micro-batch, slot, begin, end]. */
static json_t *json_rows(const PipelineGroup *group, int stage) {
    static const char *const letters[] = {
        [SCHEDULE_FORWARD] = "F", [SCHEDULE_BACKWARD] = "B", [SCHEDULE_WGRAD] = "W"};
    json_t *rows = json_array();
    for (int i = 0; i < group->schedule->row_count[stage]; i++) {
        const ScheduleRow *row = &group->schedule->rows[stage][i];
        const Span *span = &group->timeline->rows[stage][i];
        json_array_append_new(
            rows, json_pack("[s,i,i,i,f,f]", letters[row->phase], row->visit, row->microbatch,
                            row->slot, group->begin + span->begin, group->begin + span->end));
    }
    return rows;
}

/* Returns the messages of a group: [from visit, to visit, micro-batch, begin, end]. */
static json_t *json_messages(const PipelineGroup *group) {
    json_t *messages = json_array();
    for (int i = 0; i < group->timeline->transfer_count; i++) {
        const TimelineTransfer *transfer = &group->timeline->transfers[i];
        const int *edge = group->graph.edge[transfer->edge];
        json_array_append_new(messages, json_pack("[i,i,i,f,f]", edge[transfer->backward],
                                                  edge[!transfer->backward], transfer->microbatch,
                                                  group->begin + transfer->span.begin,
                                                  group->begin + transfer->span.end));
    }
    return messages;
}

/* Returns the names of the classes of a stage's devices, each once. */
static json_t *json_classes(Arena *arena, const Module *module, const TimelineRow *lane) {
    json_t *names = json_array();
    Array(const DeviceClass *) classes = {0};
    for (int i = 0; i < lane->device_count; i++) {
        const DeviceClass *class = cluster_class(module->devices->target.cluster, lane->devices[i]);
        bool known = !class;
        for (int c = 0; c < classes.count && !known; c++) known = classes.at[c] == class;
        if (known) continue;
        array_push(arena, &classes, class);
        json_array_append_new(names, json_text(arena, class->name));
    }
    return names;
}

static json_t *json_stage_devices(Arena *arena, const Module *module, const PipelineGroup *group,
                                  int stage) {
    json_t *devices = json_array();
    for (int i = 0; i < group->runs.count; i++) {
        const Stage *own =
            &module->strategy->pipelines.at[module->templates->runs.at[group->runs.at[i]].pipeline]
                 .stages.at[stage];
        json_array_append_new(devices, json_devices(arena, own->devices.at, own->devices.count));
    }
    if (!group->runs.count)
        json_array_append_new(devices, json_devices(arena, group->lanes[stage].devices,
                                                    group->lanes[stage].device_count));
    return devices;
}

static json_t *json_stage(Arena *arena, const Simulation *simulation, const PipelineGroup *group,
                          int stage) {
    const TimelineRow *lane = &group->lanes[stage];
    double idle = simulation->length > 0 ? 1 - lane->busy / simulation->length : 0;
    return json_pack("{s:o,s:o,s:s,s:o,s:o,s:i,s:f,s:f,s:o,s:o,s:o}", "devices",
                     json_stage_devices(arena, simulation->module, group, stage), "classes",
                     json_classes(arena, simulation->module, lane), "mesh",
                     mesh_text(arena, lane->stage), "recompute",
                     json_text(arena, lane->stage ? lane->stage->recompute : NULL), "visits",
                     json_visits(arena, simulation->module, group, stage), "slots",
                     group->body < 0 ? 0 : group->schedule->slot_count[stage], "busy", lane->busy,
                     "idle", idle > 0 ? idle : 0, "before", json_span(lane->before), "rows",
                     json_rows(group, stage), "update", json_span(lane->update));
}

static json_t *json_group(Arena *arena, const Simulation *simulation, const PipelineGroup *group) {
    json_t *stages = json_array(), *pipelines = json_array();
    for (int i = 0; i < group->runs.count; i++)
        json_array_append_new(
            pipelines,
            json_integer(simulation->module->templates->runs.at[group->runs.at[i]].pipeline));
    if (!group->runs.count) json_array_append_new(pipelines, json_integer(0));
    for (int s = 0; s < group->graph.stage_count; s++)
        json_array_append_new(stages, json_stage(arena, simulation, group, s));
    return json_pack("{s:o,s:I,s:I,s:f,s:f,s:o,s:o}", "pipelines", pipelines, "microbatches",
                     (json_int_t)group->microbatches, "rows", (json_int_t)group->rows, "begin",
                     group->begin, "end", group->begin + group->timeline->seconds, "stages", stages,
                     "messages", json_messages(group));
}

/* ---- groups and stages of an operator ---- */

static json_t *json_place(int group, int stage) { return json_pack("[i,i]", group, stage); }

/* Returns the stages that run an operator, as [group, stage]; an empty list if all devices do. */
static json_t *json_places(const Simulation *simulation, const Op *op) {
    json_t *places = json_array();
    for (int g = 0; g < simulation->groups.count && op->stage != STAGE_ALL; g++)
        for (int s = 0; s < simulation->groups.at[g].graph.stage_count; s++)
            if (op_on_lane(simulation, op, g, s)) json_array_append_new(places, json_place(g, s));
    return places;
}

/* ---- conversions ---- */

static json_t *json_conversion(Arena *arena, const Simulation *simulation,
                               const ConversionRow *row) {
    const Op *op = row->op;
    json_t *scopes = json_array();
    for (int i = 0; i < row->scopes.count; i++)
        if (row->scopes.at[i]) json_array_append_new(scopes, json_text(arena, row->scopes.at[i]));
    return json_pack(
        "{s:o,s:i,s:i,s:s,s:o,s:s,s:o,s:o,s:o,s:i,s:I,s:I,s:I,s:o}", "file",
        json_text(arena, op->at.file), "line", op->at.line, "column", op->at.column, "phase",
        phase_name(op_phase(simulation->module, op)), "stages", json_places(simulation, op),
        "conversion", plan_name(row->plan), "value", json_text(arena, op->results[0]->name),
        "reason",
        json_text(arena, op->source->reason ? op->source->reason : "reshard in the source"),
        "scopes", scopes, "count", row->scopes.count, "runs", (json_int_t)row->runs, "bytes",
        (json_int_t)row->bytes, "received", (json_int_t)row->received, "seconds",
        simulation->times.priced ? json_real(row->seconds) : json_null());
}

static json_t *json_conversions(Arena *arena, Simulation *simulation) {
    ConversionRows rows = conversion_rows(arena, simulation);
    json_t *list = json_array();
    for (int i = 0; i < rows.at.count; i++)
        json_array_append_new(list, json_conversion(arena, simulation, &rows.at.at[i]));
    return list;
}

/* Returns the gradient reductions: [file, line, conversion, begin, end]. */
static json_t *json_async_collectives(Arena *arena, const Simulation *simulation) {
    json_t *collectives = json_array();
    for (int i = 0; i < simulation->collectives.count; i++) {
        const SimulatedMessage *collective = &simulation->collectives.at[i];
        json_array_append_new(collectives,
                              json_pack("[o,i,s,f,f]", json_text(arena, collective->op->at.file),
                                        collective->op->at.line,
                                        plan_name(collective->op->convert.plan->plan),
                                        collective->span.begin, collective->span.end));
    }
    return collectives;
}

/* ---- memory ---- */

/* Devices of a role that have the same class and the same number of slots. */
typedef struct Holders {
    int slots;
    const DeviceClass *class;
    Array(int) devices;
} Holders;

typedef Array(Holders) HolderList;

static HolderList holders_of_role(Arena *arena, Module *module, const Role *role) {
    HolderList list = {0};
    for (int i = 0; i < role->device_count; i++) {
        int device = role->devices[i], slots = device_slots(module, role, device), h = 0;
        const DeviceClass *class = cluster_class(module->devices->target.cluster, device);
        while (h < list.count && (list.at[h].slots != slots || list.at[h].class != class)) h++;
        if (h == list.count) array_push(arena, &list, (Holders){.slots = slots, .class = class});
        array_push(arena, &list.at[h].devices, device);
    }
    return list;
}

/* Returns the stages of some devices as pairs [group, stage], each pair once. */
static json_t *json_device_places(const Simulation *simulation, const Holders *holders) {
    json_t *places = json_array();
    for (int i = 0; i < holders->devices.count; i++) {
        int stage = 0;
        const PipelineRun *run = device_run(simulation->module, holders->devices.at[i], &stage);
        json_t *place = json_place(
            run ? simulation_group(simulation, (int)(run - simulation->module->templates->runs.at))
                : 0,
            stage);
        bool known = false;
        for (size_t p = 0; p < json_array_size(places) && !known; p++)
            known = json_equal(json_array_get(places, p), place);
        known ? json_decref(place) : (void)json_array_append_new(places, place);
    }
    return places;
}

static json_t *json_memory(Arena *arena, const Simulation *simulation, const Role *role,
                           const Holders *holders) {
    RoleMemory memory = role_memory(simulation->module, role, holders->slots);
    json_t *bytes = json_object();
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        json_object_set_new(bytes, memory_kind_name((MemoryKind)kind),
                            json_integer((json_int_t)memory.bytes[kind]));
    const DeviceClass *class = holders->class;
    return json_pack("{s:o,s:o,s:o,s:o,s:i,s:I,s:o,s:I}", "devices",
                     json_devices(arena, holders->devices.at, holders->devices.count), "stages",
                     json_device_places(simulation, holders), "class",
                     json_text(arena, class ? class->name : NULL), "limit",
                     class && class->memory ? json_integer((json_int_t) class->memory)
                                            : json_null(),
                     "slots", holders->slots, "slot_bytes", (json_int_t)role->slot_bytes, "bytes",
                     bytes, "peak", (json_int_t)memory.peak);
}

static json_t *json_memories(Arena *arena, const Simulation *simulation) {
    const Roles *roles = simulation->module->devices->roles;
    json_t *list = json_array();
    for (int r = 0; r < roles->role_count; r++) {
        HolderList holders = holders_of_role(arena, simulation->module, &roles->at[r]);
        for (int h = 0; h < holders.count; h++)
            json_array_append_new(list,
                                  json_memory(arena, simulation, &roles->at[r], &holders.at[h]));
    }
    return list;
}

/* ---- layouts ---- */

enum { MOST_DRAWN = 64 }; // a value on more devices is listed without its pieces

/* Returns the boxes of a region, each as [[lo, hi], ...] by dimension of the view. */
static json_t *json_boxes(const Region *region) {
    json_t *boxes = json_array();
    for (int b = 0; b < region->box_count; b++) {
        json_t *box = json_array();
        for (int d = 0; d < region->rank; d++)
            json_array_append_new(box, json_pack("[I,I]", (json_int_t)region->boxes[b].dim[d].lo,
                                                 (json_int_t)region->boxes[b].dim[d].hi));
        json_array_append_new(boxes, box);
    }
    return boxes;
}

/* Returns the pieces of a value, devices with equal pieces together: [devices, contribution,
 * boxes]; null without a layout or for more than MOST_DRAWN devices. */
static json_t *json_pieces(Arena *arena, const Value *value) {
    int count = 0;
    Shape shape = {value->type.rank, value->type.extent};
    const Region *regions =
        value->layout ? layout_regions(arena, value->layout, shape, &count) : NULL;
    const int *devices = value->layout ? layout_devices(arena, value->layout, &count) : NULL;
    if (!count || count > MOST_DRAWN) return json_null();
    json_t *pieces = json_array(), *boxes[MOST_DRAWN];
    for (int i = 0; i < count; i++) boxes[i] = json_boxes(&regions[i]);
    bool *listed = arena_array(arena, bool, count);
    for (int i = 0; i < count; i++) {
        Array(int) alike = {0};
        for (int k = i; k < count && !listed[i]; k++)
            if (!listed[k] && regions[k].partial == regions[i].partial &&
                json_equal(boxes[i], boxes[k])) {
                array_push(arena, &alike, devices[k]);
                listed[k] = k > i;
            }
        if (alike.count)
            json_array_append_new(pieces,
                                  json_pack("[o,i,O]", json_devices(arena, alike.at, alike.count),
                                            regions[i].partial, boxes[i]));
    }
    for (int i = 0; i < count; i++) json_decref(boxes[i]);
    return pieces;
}

static json_t *json_value(Arena *arena, const NamedValue *named) {
    const Value *value = named->value;
    Position at = value_place(value);
    Shape shape = {value->type.rank, value->type.extent};
    if (value->layout) shape = layout_view(value->layout, shape);
    json_t *extent = json_array();
    for (int d = 0; d < shape.rank; d++)
        json_array_append_new(extent, json_integer((json_int_t)shape.extent[d]));
    return json_pack(
        "{s:s,s:o,s:s,s:o,s:o,s:o,s:i,s:o}", "kind", named->kind, "name",
        json_text(arena, named->name), "type", type_text(arena, value->type), "extent", extent,
        "layout", value->layout ? json_text(arena, layout_text(arena, value->layout)) : json_null(),
        "file", json_text(arena, at.file), "line", at.line, "pieces", json_pieces(arena, value));
}

static json_t *json_values(Arena *arena, const Module *module) {
    NamedValues values = named_values(arena, module);
    json_t *list = json_array();
    for (int i = 0; i < values.count; i++)
        json_array_append_new(list, json_value(arena, &values.at[i]));
    return list;
}

/* Returns the lines of the source file; null where it can no longer be read. */
static json_t *json_lines(Arena *arena, const Module *module) {
    const char *why;
    int opened = module->source->file ? reading_open(module->source->file, &why) : -1;
    FILE *file = opened < 0 ? NULL : fdopen(opened, "r");
    char *line = NULL;
    size_t room = 0;
    if (!file) return json_null();
    json_t *lines = json_array();
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\r\n")] = 0;
        json_array_append_new(lines, json_text(arena, line));
    }
    free(line);
    fclose(file);
    return lines;
}

/* ---- models ---- */

/* Returns the devices that the program does not use: idle devices, and in inference the devices of
 * the other pipelines. */
static json_t *json_idle(Arena *arena, const Module *module) {
    int count = module->strategy ? strategy_device_count(module->strategy) : 1;
    Array(int) idle = {0};
    for (int device = 0; device < count; device++)
        if (roles_index(module->devices->roles, device) < 0) array_push(arena, &idle, device);
    return json_devices(arena, idle.at, idle.count);
}

static json_t *json_model(Arena *arena, Simulation *simulation) {
    Module *module = simulation->module;
    const Strategy *strategy = module->strategy;
    json_t *groups = json_array();
    for (int g = 0; g < simulation->groups.count; g++)
        json_array_append_new(groups, json_group(arena, simulation, &simulation->groups.at[g]));
    return json_pack(
        "{s:o,s:s,s:o,s:o,s:o,s:o,s:i,s:o,s:s,s:f,s:o,s:o,s:o,s:o,s:o,s:o}", "model",
        json_text(arena, module->name), "kind", module->kind == MODULE_TRAIN ? "train" : "infer",
        "source", json_text(arena, module->source->file), "strategy",
        json_text(arena, strategy ? strategy->name : NULL), "schedule",
        json_text(arena, strategy && module->templates->at.count
                             ? schedule_words[strategy_schedule(strategy)]
                             : NULL),
        "cluster", json_text(arena, module->devices->target.cluster_file), "devices",
        module->devices->roles->device_count, "idle", json_idle(arena, module), "unit",
        simulation->times.priced ? "seconds" : "operations", "length", simulation->length,
        "pipelines", groups, "sums", json_async_collectives(arena, simulation), "memory",
        json_memories(arena, simulation), "conversions", json_conversions(arena, simulation),
        "values", json_values(arena, module), "lines", json_lines(arena, module));
}

static void report_simulations(Text *out, Simulation *simulations, int count) {
    json_t *models = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(models, json_model(out->arena, &simulations[i]));
    json_t *top = json_pack("{s:i,s:o}", "format", 1, "models", models);
    char *text = json_dumps(top, JSON_COMPACT | JSON_REAL_PRECISION(12));
    text_string(out, text);
    text_string(out, "\n");
    free(text);
    json_decref(top);
}

/* Returns the timelines of modules, computed from the schedules' tables alone. */
static Simulation *simulations_of(Arena *arena, Module *const *modules, int count) {
    Simulation *simulations = arena_array(arena, Simulation, count);
    for (int i = 0; i < count; i++) simulations[i] = simulation_create(arena, modules[i]);
    return simulations;
}

void report_json(Text *out, Module *const *modules, int count) {
    report_simulations(out, simulations_of(out->arena, modules, count), count);
}

void report_page(Text *out, Module *const *modules, int count) {
    report_simulations_page(out, simulations_of(out->arena, modules, count), count);
}

/* ---- the report as a page: page.html with the JSON in it ---- */

static const char page[] = {
#include "planner/report/page.inc"
    0};

/* The text in page.html that the JSON replaces. */
static const char mark[] = "PLAN_JSON";

/* Prints JSON inside an HTML script; "<" is escaped, since it would begin a tag. */
static void print_inside(Text *out, const char *json) {
    for (const char *next; (next = strchr(json, '<')); json = next + 1) {
        text_append(out, json, (size_t)(next - json));
        text_string(out, "\\u003c");
    }
    text_string(out, json);
}

void report_simulations_page(Text *out, Simulation *simulations, int count) {
    Text json = {.arena = out->arena};
    const char *at = strstr(page, mark);
    report_simulations(&json, simulations, count);
    text_append(out, page, (size_t)(at - page));
    print_inside(out, text_bytes(&json));
    text_string(out, at + sizeof mark - 1);
}
