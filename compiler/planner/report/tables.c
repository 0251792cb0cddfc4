/* Prints -Rmemory, -Rsharding and -Rcomm. */
#include "planner/report/report.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"

#include "cost/cost.h"
#include "planner/report/step_timeline.h"
#include "planner/report/values.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST = 10 };

/* ---- titles and names ---- */

static void print_title(Text *out, const Module *module, const char *what) {
    text_print(out, "%s %s: %s, %s%s: %s\n", path_end(module->source->file), module->name,
               module->kind == MODULE_TRAIN ? "train" : "infer",
               module->strategy ? "strategy " : "one device",
               module->strategy && module->strategy->name ? module->strategy->name : "", what);
}

static const char *kind_word(MemoryKind kind) {
    return kind == MEMORY_SCRATCH ? "exchange" : memory_kind_name(kind);
}

/* ---- memory ---- */

static int compare_kept(const void *a, const void *b) {
    const KeptValue *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->value->id - y->value->id;
}

static void print_largest(Text *out, const Module *module, KeptValues *values) {
    const Parameter *const *gradients = gradients_of(out->arena, module);
    if (values->count) qsort(values->at, (size_t)values->count, sizeof *values->at, compare_kept);
    for (int i = 0; i < values->count && i < LARGEST; i++) {
        const KeptValue *kept = &values->at[i];
        const Parameter *of = kept->kind == MEMORY_GRADIENTS ? gradients[kept->value->id] : NULL;
        text_print(out, "  %14lld  %-12s %-24s %s%s\n", (long long)kept->bytes,
                   kind_word(kept->kind), place_text(out->arena, value_place(kept->value)),
                   of ? "gradient of " : "", of ? of->name : value_text(out->arena, kept->value));
    }
}

/* Devices of a role with the same number of slots, each for a micro-batch. */
typedef struct EqualSlots {
    int slots, count;
    int *devices;
} EqualSlots;

static void print_memory(Text *out, Module *module, const Role *role, const EqualSlots *equal) {
    int slots = equal->slots, count = equal->count;
    KeptValues values = {0};
    RoleMemory memory = role_memory_values(out->arena, module, role, slots, &values);
    text_string(out, count > 1 ? "devices " : "device ");
    layout_print_devices(out, equal->devices, count, 3);
    text_print(out, ": %lld bytes%s\n", (long long)memory.peak, count > 1 ? " each" : "");
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        if (memory.bytes[kind])
            text_print(out, "  %14lld  %s\n", (long long)memory.bytes[kind],
                       kind_word((MemoryKind)kind));
    text_print(out, "  the largest%s:\n",
               slots > 1 ? arena_format(out->arena, ", with %d micro-batches", slots) : "");
    print_largest(out, module, &values);
}

void table_memory(Text *out, Module *module) {
    print_title(out, module, "memory");
    for (int r = 0; r < module->devices->roles->role_count; r++) {
        const Role *role = &module->devices->roles->at[r];
        EqualSlots equal = {.devices = arena_array(out->arena, int, role->device_count)};
        bool *listed = arena_array(out->arena, bool, role->device_count);
        for (int i = 0; i < role->device_count; i++) {
            equal.count = 0;
            equal.slots = device_slots(module, role, role->devices[i]);
            for (int j = i; j < role->device_count && !listed[i]; j++)
                if (!listed[j] && device_slots(module, role, role->devices[j]) == equal.slots)
                    equal.devices[equal.count++] = role->devices[j];
            for (int j = i; j < role->device_count; j++)
                listed[j] |= device_slots(module, role, role->devices[j]) == equal.slots;
            if (equal.count) print_memory(out, module, role, &equal);
        }
    }
}

void table_session(Text *out, const Unit *unit, const Strategy *strategy) {
    int count = session_programs(unit, strategy), devices = unit_device_count(unit);
    if (count < 2) return;
    const int64_t *bytes = session_bytes(out->arena, unit, strategy);
    int *alike = arena_array(out->arena, int, devices);
    bool *listed = arena_array(out->arena, bool, devices);
    for (int d = 0; d < devices; d++) {
        int alike_count = 0;
        for (int e = d; e < devices && bytes[d] && !listed[d]; e++)
            if (bytes[e] == bytes[d]) alike[alike_count++] = e;
        for (int i = 0; i < alike_count; i++) listed[alike[i]] = true;
        if (!alike_count) continue;
        text_print(out, "%s, %s%s: a session with all %d programs keeps %lld bytes on %s",
                   path_end(unit->file), strategy ? "strategy " : "one device",
                   strategy && strategy->name ? strategy->name : "", count, (long long)bytes[d],
                   alike_count > 1 ? "each of devices " : "device ");
        layout_print_devices(out, alike, alike_count, 3);
        text_string(out, "\n");
    }
}

/* ---- sharding ---- */

static void print_sharding(Text *out, const char *kind, const char *name, const Value *value) {
    text_print(out, "  %-10s %-24s %-20s %-44s %s\n", kind, name,
               type_text(out->arena, value->type), layout_text(out->arena, value->layout),
               place_text(out->arena, value_place(value)));
}

void table_sharding(Text *out, Module *module) {
    NamedValues values = named_values(out->arena, module);
    print_title(out, module, "layouts");
    for (int i = 0; i < values.count; i++)
        print_sharding(out, values.at[i].kind, values.at[i].name, values.at[i].value);
}

/* ---- communication ---- */

typedef struct CommSum {
    const char *layer, *reason;
    int64_t runs, bytes;
} CommSum;
typedef Array(CommSum) CommSums;

/* Returns, by parameter, the first forward operator that reads it in any layout, or NULL. */
static const Op **find_readers(Arena *arena, const Module *module) {
    const Op **readers = arena_array(arena, const Op *, module->params.count + 1);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int k = 0;
             k < op->operand_count && !op->convert.plan && op->section == SECTION_FORWARD; k++) {
            const Parameter *param = op->operands[k] ? parameter_of(module, op->operands[k]) : NULL;
            if (param && !readers[param->value->index]) readers[param->value->index] = op;
        }
    }
    return readers;
}

/* Returns, by id of a conversion's result, the parameter whose new value it holds, or NULL. */
static const Parameter **find_updated(Arena *arena, const Module *module) {
    const Parameter **updated = arena_array(arena, const Parameter *, module->next_id);
    for (int p = 0; p < module->params.count; p++) {
        const Value *value = module->params.at[p]->updated;
        for (; value && value->def && value->def->convert.plan; value = value->def->operands[0])
            updated[value->id] = module->params.at[p];
    }
    return updated;
}

/* Returns an operator's layer: "layer 3", "layer vision 3"; else its scope's first part, or "-". */
static const char *layer_word(Arena *arena, const Op *op) {
    const char *tower = op->source->layer && op->source->layer->tower
                            ? arena_format(arena, "%s ", op->source->layer->tower)
                            : "";
    if (op->source->layer && op->source->layer->name)
        return arena_format(arena, "layer %s%s", tower, op->source->layer->name);
    if (op->source->layer)
        return arena_format(arena, "layer %s%d", tower, op->source->layer->number);
    return op->source->scope && *op->source->scope
               ? arena_format(arena, "%.*s", (int)strcspn(op->source->scope, "."),
                              op->source->scope)
               : "-";
}

static void add_comm(Arena *arena, CommSums *sums, CommSum sum) {
    for (int i = 0; i < sums->count; i++)
        if (!strcmp(sums->at[i].layer, sum.layer) && !strcmp(sums->at[i].reason, sum.reason)) {
            sums->at[i].runs += sum.runs;
            sums->at[i].bytes += sum.bytes;
            return;
        }
    array_push(arena, sums, sum);
}

void table_comm(Text *out, Module *module) {
    Arena *arena = out->arena;
    CommSums sums = {0};
    int64_t all = 0;
    const Parameter *const *gradients = gradients_of(arena, module),
                           **updated = find_updated(arena, module);
    const Op **readers = find_readers(arena, module);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        ReplicaGroups replica_groups;
        const Plan *plan =
            op->convert.plan ? op_plan_alone(arena, module, op, &replica_groups) : NULL;
        int64_t runs = plan ? conversion_runs(module, op) : 0,
                bytes = plan ? runs * replica_groups_bytes(&replica_groups, plan) : 0;
        const Parameter *param = gradients[op->results[0]->id] ? gradients[op->results[0]->id]
                                                               : updated[op->results[0]->id];
        const Op *layer = param && readers[param->value->index] ? readers[param->value->index] : op;
        if (bytes)
            add_comm(arena, &sums,
                     (CommSum){layer_word(arena, layer),
                               op->source->reason ? op->source->reason : "reshard in the source",
                               runs, bytes});
        all += bytes;
    }
    print_title(out, module, "conversions of a step");
    for (int i = 0; i < sums.count; i++)
        text_print(out, "  %-16s %-44s %6lld times %14lld bytes received\n", sums.at[i].layer,
                   sums.at[i].reason, (long long)sums.at[i].runs, (long long)sums.at[i].bytes);
    text_print(out, "  in all %lld bytes received\n", (long long)all);
}
