/* The bytes that a role keeps, by kind. */
#include "cost/cost.h"
#include "ir/liveness.h"

#include <string.h>

const char *memory_kind_name(MemoryKind kind)
{
    static const char *const names[MEMORY_KINDS] = {"parameters",  "states",      "inputs",  "gradients",
                                                    "activations", "temporaries", "scratch", "gaps"};
    return names[kind];
}

static void add_value(RoleMemory *memory, MemoryKind kind, const Value *value, int64_t bytes)
{
    memory->bytes[kind] += bytes;
    if (bytes > memory->largest_bytes[kind]) {
        memory->largest[kind] = value;
        memory->largest_bytes[kind] = bytes;
    }
}

static void add_given(RoleMemory *memory, Module *module, int device)
{
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *parameter = module->params.at[i];
        add_value(memory, MEMORY_PARAMETERS, parameter->value, value_local_bytes(module, parameter->value, device));
        for (int s = 0; s < parameter->state_count; s++)
            add_value(memory, MEMORY_STATES, parameter->states[s], value_local_bytes(module, parameter->states[s], device));
    }
    for (int i = 0; i < module->inputs.count; i++)
        add_value(memory, MEMORY_INPUTS, module->inputs.at[i], value_local_bytes(module, module->inputs.at[i], device));
}

/* ---- the arena ---- */

/* Whether an operator gives its operand in another layout, type or shape, or adds it up over micro-batches. */
static bool keeps_values(const Module *module, const Op *op)
{
    const Rule *rule = op->def->rule;
    return op->def == module->reshard_def || op->def == module->accumulate_def || rule->kind == RULE_VIEW || rule_is_copy(rule);
}

/* By value id: what is the gradient of a parameter on its way to the update. */
static const bool *gradient_values(Arena *arena, const Module *module)
{
    bool *gradient = arena_array(arena, bool, module->next_id);
    for (int i = 0; i < module->params.count; i++)
        if (module->params.at[i]->gradient)
            gradient[module->params.at[i]->gradient->id] = true;
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        if (op->def == module->update && op->section == SECTION_UPDATE)
            gradient[op->operands[1]->id] = true;
        else if (keeps_values(module, op) && gradient[op->results[0]->id] && op->operands[0]->kind == VALUE_RESULT)
            gradient[op->operands[0]->id] = true;
    }
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (keeps_values(module, op) && gradient[op->operands[0]->id])
            gradient[op->results[0]->id] = true;
    }
    return gradient;
}

/* The first operator at which a value has its place: sums over micro-batches have it from the beginning of the loop. */
static int begin_of(const Module *module, const Op *op)
{
    int first = op->index;
    for (int i = op->index; op->def == module->accumulate_def && op->turn == TURN_EACH && i >= 0; i--)
        first = module->ops.at[i]->turn == TURN_EACH ? i : first;
    return first;
}

/* The operator while which most of the arena is in use; -1 where there is none. `live` is scratch of an entry an operator. */
static int fullest(Module *module, const Role *role, const int *last, int64_t *live)
{
    int most = -1;
    int64_t now = 0, best = 0;
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++) {
            const Value *value = module->ops.at[i]->results[r];
            if (role->offset[value->id] < 0)
                continue;
            int64_t bytes = value_local_bytes(module, value, role->devices[0]);
            live[begin_of(module, module->ops.at[i])] += bytes;
            live[last[value->id] + 1] -= bytes;
        }
    for (int i = 0; i < module->ops.count; i++) {
        now += live[i];
        int64_t own = now + role_scratch_bytes(module, role, module->ops.at[i]);
        if (own > best) {
            best = own;
            most = i;
        }
    }
    return most;
}

/* Adds what is in the arena during an operator. */
static void add_arena(RoleMemory *memory, Module *module, const Role *role, const int *last, int at, const bool *gradient)
{
    int64_t used = 0, scratch = role_scratch_bytes(module, role, module->ops.at[at]);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++) {
            const Op *op = module->ops.at[i];
            const Value *value = op->results[r];
            if (role->offset[value->id] < 0 || begin_of(module, op) > at || last[value->id] < at)
                continue;
            MemoryKind kind = gradient[value->id]              ? MEMORY_GRADIENTS
                              : op->section == SECTION_FORWARD ? MEMORY_ACTIVATIONS
                                                               : MEMORY_TEMPORARIES;
            int64_t bytes = value_local_bytes(module, value, role->devices[0]);
            add_value(memory, kind, value, bytes);
            used += bytes;
        }
    add_value(memory, MEMORY_SCRATCH, module->ops.at[at]->results[0], scratch);
    memory->bytes[MEMORY_GAPS] = role->arena_bytes - used - scratch;
    memory->at = module->ops.at[at];
}

/* Bytes of the arena that operators of the forward section, of one micro-batch, make and those of the backward section read. */
static int64_t kept_bytes(Arena *scratch, Module *module, const Role *role)
{
    bool *counted = arena_array(scratch, bool, module->next_id);
    int64_t bytes = 0;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; module->ops.at[i]->section == SECTION_BACKWARD && k < module->ops.at[i]->operand_count; k++) {
            const Value *value = module->ops.at[i]->operands[k], *owner = value ? value_storage(value) : NULL;
            if (!owner || !owner->def || owner->def->section != SECTION_FORWARD || owner->def->turn != module->ops.at[i]->turn ||
                counted[owner->id])
                continue;
            counted[owner->id] = true;
            bytes += value_local_bytes(module, owner, role->devices[0]);
        }
    return bytes;
}

RoleMemory role_memory(Module *module, const Role *role)
{
    Arena *scratch = arena_create();
    RoleMemory memory = {.at = NULL};
    add_given(&memory, module, role->devices[0]);
    const int *last = last_uses(scratch, module);
    int at = fullest(module, role, last, arena_array(scratch, int64_t, module->ops.count + 2));
    if (at >= 0)
        add_arena(&memory, module, role, last, at, gradient_values(scratch, module));
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        memory.peak += memory.bytes[kind];
    memory.kept = kept_bytes(scratch, module, role);
    arena_destroy(scratch);
    return memory;
}

/* ---- the check ---- */

/* Where a value is made in the source, and what it is called there. */
static Position value_place(const Value *value) { return value->def ? value->def->at : value->at; }

static const char *value_called(const Value *value) { return value->name ? value->name : value->def ? value->def->def->name : "a value"; }

/* What makes a kind smaller: what the strategy does not do yet. */
static const char *advice(const Module *module, MemoryKind kind)
{
    static const MemoryKind cut[] = {MEMORY_STATES, MEMORY_GRADIENTS, MEMORY_PARAMETERS}; // by zero 1, 2 and 3
    const Strategy *strategy = module->strategy;
    bool trains = module->kind == MODULE_TRAIN, recomputes = strategy && strategy->pipelines.at[0].stages.at[0].recompute;
    for (int zero = 1; zero <= 3; zero++)
        if (cut[zero - 1] == kind && trains && (!strategy || strategy->zero < zero))
            return arena_format(module->arena, "`zero %d` shares them out over the devices that hold copies of parameters", zero);
    if (kind == MEMORY_PARAMETERS || kind == MEMORY_STATES || kind == MEMORY_GRADIENTS)
        return "a split of the dimensions of parameters over more devices makes them smaller";
    if (kind == MEMORY_INPUTS)
        return "a split of the batch over more devices makes them smaller";
    return arena_format(module->arena, "%smore micro-batches (`pipeline microbatches(N)`), or a split over more devices, make them smaller",
                        trains && !recomputes ? "`recompute(full)` of the stage, " : "");
}

static MemoryKind largest_kind(const RoleMemory *memory, const bool *told)
{
    MemoryKind best = MEMORY_KINDS;
    for (int kind = 0; kind < MEMORY_GAPS; kind++)
        if (!told[kind] && memory->bytes[kind] && (best == MEMORY_KINDS || memory->bytes[kind] > memory->bytes[best]))
            best = (MemoryKind)kind;
    return best;
}

static void report_excess(Module *module, const RoleMemory *memory, int device, const DeviceClass *class)
{
    enum { CAUSES = 3 };
    bool told[MEMORY_KINDS] = {false};
    Position at = module->strategy && module->strategy->at.file ? module->strategy->at : module->at;
    diag_error(module->diag, at, "%s needs %lld bytes on device %d, which has %lld (class \"%s\")", module->name, (long long)memory->peak,
               device, (long long)class->memory, class->name);
    for (int i = 0; i < CAUSES; i++) {
        MemoryKind kind = largest_kind(memory, told);
        if (kind == MEMORY_KINDS)
            return;
        const Value *largest = memory->largest[kind];
        told[kind] = true;
        diag_note(module->diag, value_place(largest), "%lld bytes are %s, the largest %s with %lld; %s", (long long)memory->bytes[kind],
                  memory_kind_name(kind), value_called(largest), (long long)memory->largest_bytes[kind], advice(module, kind));
    }
}

/* The first device of a role that has less memory than this; -1 when all have it, or nothing is known. */
static int short_device(const Cluster *cluster, const Role *role, int64_t peak)
{
    for (int i = 0; i < role->device_count; i++) {
        const DeviceClass *class = cluster_class(cluster, role->devices[i]);
        if (class && class->memory && class->memory < peak)
            return role->devices[i];
    }
    return -1;
}

void memory_check(Module *module)
{
    const Cluster *cluster = module->options.cluster;
    for (int r = 0; cluster && r < module->roles->role_count; r++) {
        const Role *role = &module->roles->at[r];
        RoleMemory memory = role_memory(module, role);
        int device = short_device(cluster, role, memory.peak);
        if (device >= 0)
            report_excess(module, &memory, device, cluster_class(cluster, device));
    }
}
