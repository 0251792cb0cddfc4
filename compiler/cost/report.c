/* The cost report (hetucc --emit=cost): a program's costs by role, operator and conversion. */
#include "cost/cost.h"
#include "ir/analysis/side_reduction.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "reshard/plan.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* ---- rows ---- */

/* Returns the most bytes that a device of the role receives in one conversion. */
static double role_received(Module *module, const Role *role, const Op *op, const Plan *plan,
                            const ReplicaGroups *replica_groups) {
    int64_t most = 0;
    for (int i = 0; i < role->device_count; i++) {
        int device = replica_groups_name(replica_groups,
                                         op_representative_device(module, op, role->devices[i]));
        int64_t own = device < 0 ? 0 : plan_bytes_received(plan, device);
        most = own > most ? own : most;
    }
    return (double)most;
}

static CostRow conversion_row(Module *module, const Role *role, const Op *op) {
    const Cluster *cluster = module->devices->target.cluster;
    ReplicaGroups replica_groups;
    const Plan *plan = op_plan_alone(module->arena, module, op, &replica_groups);
    double runs = (double)op_runs(module, op);
    return (CostRow){.op = op,
                     .plan = plan,
                     .runs = op_runs(module, op),
                     .bytes = runs * role_received(module, role, op, plan, &replica_groups),
                     .seconds = cluster ? runs * conversion_seconds(cluster, plan) : (double)NAN};
}

static CostRow operator_row(Module *module, const Role *role, const Op *op) {
    double runs = (double)op_runs(module, op);
    Work work = op_device_work(module, op, role->devices[0]);
    return (CostRow){.op = op,
                     .runs = op_runs(module, op),
                     .operations = runs * work.operations,
                     .bytes = runs * work.bytes,
                     .seconds = runs * slowest_seconds(module->devices->target.cluster,
                                                       role->devices, role->device_count, &work),
                     .product = work.product};
}

/* Returns the most slots that a device of the role keeps. */
static int role_slots(Module *module, const Role *role) {
    int most = 0;
    for (int i = 0; i < role->device_count; i++) {
        int own = device_slots(module, role, role->devices[i]);
        most = own > most ? own : most;
    }
    return most;
}

static RoleCost role_cost(Arena *arena, Module *module, const Role *role) {
    RoleCost cost = {.role = role,
                     .class = cluster_class(module->devices->target.cluster, role->devices[0]),
                     .memory = role_memory(module, role, role_slots(module, role))};
    cost.rows = arena_array(arena, CostRow, module->ops.count);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->def->rule->kind == RULE_VIEW || op_moves_nothing(op) ||
            op_side_reduction(module, op) || !role_runs(module, role, op))
            continue;
        CostRow row =
            op->convert.plan ? conversion_row(module, role, op) : operator_row(module, role, op);
        cost.rows[cost.row_count++] = row;
        cost.operations += row.operations;
        *(row.plan ? &cost.received : &cost.bytes) += row.bytes;
        cost.seconds += row.seconds;
    }
    return cost;
}

CostReport cost_report(Arena *arena, Module *module) {
    CostReport report = {module, module->devices->roles->role_count,
                         arena_array(arena, RoleCost, module->devices->roles->role_count)};
    for (int r = 0; r < report.role_count; r++)
        report.roles[r] = role_cost(arena, module, &module->devices->roles->at[r]);
    return report;
}

/* ---- names ---- */

static const char *section_name(const Op *op) {
    static const char *const names[] = {[SECTION_FORWARD] = "forward",
                                        [SECTION_BACKWARD] = "backward",
                                        [SECTION_UPDATE] = "update"};
    return names[op->section];
}

static const char *row_word(const CostRow *row) {
    return row->plan ? plan_name(row->plan) : row->op->def->name;
}

/* Returns the name of the row's result, or else a conversion's reason; "" when it has neither. */
static const char *row_value(const CostRow *row) {
    const Value *value = row->op->results[0];
    return value->name                            ? value->name
           : row->plan && row->op->source->reason ? row->op->source->reason
                                                  : "";
}

static const char *kind_name(const Module *module) {
    return module->kind == MODULE_TRAIN ? "train" : "infer";
}

/* ---- table ---- */

/* Prints seconds in a column; "-" when they are not known. */
static void print_seconds(Text *out, double seconds) {
    if (isnan(seconds)) text_print(out, " %10s", "-");
    else text_print(out, " %10.3g", seconds);
}

static void print_row(Text *out, const CostRow *row) {
    const char *place = row->op->at.file
                            ? arena_format(out->arena, "%s:%d", row->op->at.file, row->op->at.line)
                            : "-";
    text_print(out, "  %-24s %-9s %-28s %-20s %5lld %14.0f %14.0f", place, section_name(row->op),
               row_word(row), row_value(row), (long long)row->runs, row->operations, row->bytes);
    print_seconds(out, row->seconds);
    text_string(out, "\n");
}

static void print_memory(Text *out, const RoleCost *cost) {
    text_print(out, "  memory %lld bytes", (long long)cost->memory.peak);
    if (cost->class && cost->class->memory)
        text_print(out, " of %lld", (long long)cost->class->memory);
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        text_print(out, "%s %s %lld", kind ? "," : ":", memory_kind_name((MemoryKind)kind),
                   (long long)cost->memory.bytes[kind]);
    text_print(out, "; kept for backward %lld\n", (long long)cost->memory.kept);
}

static void print_role(Text *out, const RoleCost *cost, int number) {
    text_print(out, "role %d: devices [", number);
    layout_print_devices(out, cost->role->devices, cost->role->device_count, 2);
    text_print(out, "]%s%s\n", cost->class ? ", class " : "", cost->class ? cost->class->name : "");
    print_memory(out, cost);
    text_print(out, "  %-24s %-9s %-28s %-20s %5s %14s %14s %10s\n", "line", "section",
               "operator or conversion", "value", "runs", "operations", "bytes", "seconds");
    for (int i = 0; i < cost->row_count; i++) print_row(out, &cost->rows[i]);
    text_print(
        out,
        "  in all, a step: %.0f operations, %.0f bytes of operators, %.0f bytes received, seconds",
        cost->operations, cost->bytes, cost->received);
    print_seconds(out, cost->seconds);
    text_string(out, "\n");
}

void cost_table(Text *out, const CostReport *reports, int count) {
    for (int i = 0; i < count; i++) {
        const Module *module = reports[i].module;
        text_print(out, "%s %s: %s, strategy %s, devices %d, micro-batches %lld\n",
                   module->source->file, module->name, kind_name(module),
                   module->strategy ? module->strategy->name : "none",
                   module->devices->roles->device_count, (long long)module_microbatches(module));
        for (int r = 0; r < reports[i].role_count; r++) print_role(out, &reports[i].roles[r], r);
    }
}

/* ---- JSON ---- */

/* Returns seconds as JSON; null where they are unknown or not finite. */
static json_t *json_seconds(double seconds) {
    return isfinite(seconds) ? json_real(seconds) : json_null();
}

/* Returns a count, an integer held in a double, as JSON. */
static json_t *json_count(double count) { return json_integer((json_int_t)llround(count)); }

static json_t *json_row(const CostRow *row) {
    const Op *op = row->op;
    json_t *object =
        json_pack("{s:s*,s:i,s:i,s:s,s:s*,s:s,s:s,s:I}", "file", op->at.file, "line", op->at.line,
                  "column", op->at.column, "section", section_name(op), "scope", op->source->scope,
                  row->plan ? "conversion" : "operator", row_word(row), "value", row_value(row),
                  "runs", (json_int_t)row->runs);
    if (row->plan) {
        json_object_set_new(
            object, "reason",
            json_string(op->source->reason ? op->source->reason : "reshard in the source"));
        json_object_set_new(object, "received", json_count(row->bytes));
    } else {
        json_object_set_new(object, "product", json_boolean(row->product));
        json_object_set_new(object, "operations", json_count(row->operations));
        json_object_set_new(object, "bytes", json_count(row->bytes));
    }
    json_object_set_new(object, "seconds", json_seconds(row->seconds));
    return object;
}

static json_t *json_memory(const RoleCost *cost) {
    json_t *object = json_object();
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        json_object_set_new(object, memory_kind_name((MemoryKind)kind),
                            json_integer((json_int_t)cost->memory.bytes[kind]));
    json_object_set_new(object, "peak", json_integer((json_int_t)cost->memory.peak));
    json_object_set_new(object, "kept", json_integer((json_int_t)cost->memory.kept));
    json_object_set_new(object, "limit",
                        cost->class && cost->class->memory
                            ? json_integer((json_int_t)cost->class->memory)
                            : json_null());
    return object;
}

static json_t *json_role(const RoleCost *cost) {
    json_t *devices = json_array(), *operators = json_array(), *conversions = json_array();
    for (int i = 0; i < cost->role->device_count; i++)
        json_array_append_new(devices, json_integer(cost->role->devices[i]));
    for (int i = 0; i < cost->row_count; i++)
        json_array_append_new(cost->rows[i].plan ? conversions : operators,
                              json_row(&cost->rows[i]));
    return json_pack("{s:o,s:s?,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "devices", devices, "class",
                     cost->class ? cost->class->name : NULL, "memory", json_memory(cost),
                     "operations", json_count(cost->operations), "bytes", json_count(cost->bytes),
                     "received", json_count(cost->received), "seconds", json_seconds(cost->seconds),
                     "operators", operators, "conversions", conversions);
}

static json_t *json_model(const CostReport *report) {
    const Module *module = report->module;
    json_t *roles = json_array();
    for (int r = 0; r < report->role_count; r++)
        json_array_append_new(roles, json_role(&report->roles[r]));
    return json_pack("{s:s,s:s,s:s,s:s?,s:i,s:I,s:o}", "model", module->name, "kind",
                     kind_name(module), "source", module->source->file, "strategy",
                     module->strategy ? module->strategy->name : NULL, "devices",
                     module->devices->roles->device_count, "microbatches",
                     (json_int_t)module_microbatches(module), "roles", roles);
}

void cost_json(Text *out, const CostReport *reports, int count) {
    json_t *models = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(models, json_model(&reports[i]));
    json_t *top = json_pack("{s:i,s:o}", "format", 1, "models", models);
    char *text = json_dumps(top, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    text_string(out, text);
    text_string(out, "\n");
    free(text);
    json_decref(top);
}
