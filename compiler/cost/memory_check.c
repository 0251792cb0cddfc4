/* The peak memory of a role, by kind, and the errors when the peak exceeds a device's memory. */
#include "cost/cost.h"
#include "ir/analysis/liveness.h"
#include "ir/analysis/phases.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"

const char *memory_kind_name(MemoryKind kind) {
    static const char *const names[MEMORY_KINDS] = {"parameters", "states",      "inputs",
                                                    "gradients",  "activations", "temporaries",
                                                    "scratch",    "gaps"};
    return names[kind];
}

/* The state while bytes are counted. */
typedef struct Count {
    RoleMemory memory;
    Arena *arena;
    KeptValues *values; // NULL: values are not listed
} Count;

static void add_value(Count *count, MemoryKind kind, const Value *value, int64_t bytes) {
    RoleMemory *memory = &count->memory;
    if (count->values && bytes)
        array_push(count->arena, count->values, (KeptValue){value, kind, bytes});
    memory->bytes[kind] += bytes;
    if (bytes > memory->largest_bytes[kind]) {
        memory->largest[kind] = value;
        memory->largest_bytes[kind] = bytes;
    }
}

static void add_given(Count *count, Module *module, int device) {
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *parameter = module->params.at[i];
        add_value(count, parameter->state ? MEMORY_STATES : MEMORY_PARAMETERS, parameter->value,
                  value_local_bytes(module, parameter->value, device));
        for (int s = 0; s < parameter->state_count; s++)
            add_value(count, MEMORY_STATES, parameter->states[s],
                      value_local_bytes(module, parameter->states[s], device));
    }
    for (int i = 0; i < module->inputs.count; i++)
        add_value(count, MEMORY_INPUTS, module->inputs.at[i],
                  value_local_bytes(module, module->inputs.at[i], device));
}

/* ---- the arena ---- */

/* Returns whether an operator's result holds elements of its operands, in another layout, type or
 * shape, or accumulated over micro-batches. */
static bool keeps_values(const Module *module, const Op *op) {
    const Rule *rule = op->def->rule;
    return op->def == module->builtin->reshard || op->def == module->builtin->accumulate ||
           op->def == module->builtin->local_part || op->def == module->builtin->stage_union ||
           rule->kind == RULE_VIEW || rule_is_copy(rule);
}

const Parameter *parameter_of(const Module *module, const Value *value) {
    while (value->kind == VALUE_RESULT && keeps_values(module, value->def))
        value = value->def->operands[0];
    return value->kind == VALUE_PARAM ? module->params.at[value->index] : NULL;
}

/* Records that `to` holds the gradient of the same parameter as `from`, unless `to` has one. */
static void pass_gradient(const Parameter **of, const Value *from, const Value *to) {
    if (!of[to->id]) of[to->id] = of[from->id];
}

const Parameter *const *gradients_of(Arena *arena, const Module *module) {
    const Parameter **of = arena_array(arena, const Parameter *, module->next_id);
    for (int i = 0; i < module->params.count; i++)
        if (module->params.at[i]->gradient)
            of[module->params.at[i]->gradient->id] = module->params.at[i];
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        if (op->def == module->optimizer->op && op->section == SECTION_UPDATE &&
            !of[op->operands[1]->id])
            of[op->operands[1]->id] = parameter_of(module, op->operands[0]);
        for (int k = 0; k < op->operand_count && keeps_values(module, op); k++)
            if (op->operands[k]->kind == VALUE_RESULT)
                pass_gradient(of, op->results[0], op->operands[k]);
    }
    for (int i = 0; i < module->ops.count; i++)
        if (keeps_values(module, module->ops.at[i]))
            pass_gradient(of, module->ops.at[i]->operands[0], module->ops.at[i]->results[0]);
    return of;
}

/* A memory area that values are packed into: the arena, or one slot for each micro-batch. */
typedef struct MemoryArea {
    Module *module;
    const Role *role;
    const int *last; // by value id: index of its last use
    bool kept;       // true: the slots; false: the arena
    int64_t bytes;   // bytes of one slot, or of the arena
    int count;       // number of slots; 1 for the arena
} MemoryArea;

/* Returns whether a value has storage of its own in an area. */
static bool in_area(const MemoryArea *area, const Value *value) {
    return area->role->offset[value->id] >= 0 && area->role->kept[value->id] == area->kept &&
           value->def->def != area->module->builtin->stage_union;
}

/* Returns the bytes of a conversion's scratch that lie in an area; the scratch of messages between
 * stages lies in the slots, and other scratch in the arena. */
static int64_t area_scratch(const MemoryArea *area, const Op *op) {
    return op->convert.plan && op_crosses_stages(area->module, op) == area->kept
               ? role_scratch_bytes(area->module, area->role, op)
               : 0;
}

/* Adds bytes that are in use from operator `begin` to operator `end` to a difference array. */
static void add_live(int64_t *live, int begin, int end, int64_t bytes) {
    live[begin] += bytes;
    live[end + 1] -= bytes;
}

/* Sets live[operator] to the bytes of an area in use. `live` is zeroed, with two entries more. */
static void find_live(const MemoryArea *area, int64_t *live) {
    const Module *module = area->module;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        int64_t scratch = area_scratch(area, op);
        for (int r = 0; r < op->result_count; r++)
            if (in_area(area, op->results[r]))
                add_live(live, first_use_of(area->module, area->role, op->results[r], area->last),
                         area->last[op->results[r]->id],
                         role_bytes(area->module, area->role, op->results[r]));
        if (scratch)
            add_live(live, area->kept ? 0 : first_use(area->module, area->role, op),
                     area->kept ? module->ops.count : i, scratch);
    }
    for (int i = 1; i < module->ops.count; i++) live[i] += live[i - 1];
}

/* Returns the operator during which most bytes of an area are in use; -1: no byte is ever in use.
 * `live` is zeroed scratch with two entries more than operators. */
static int fullest(const MemoryArea *area, int64_t *live) {
    int most = -1;
    find_live(area, live);
    for (int i = 0; i < area->module->ops.count; i++)
        if (live[i] > (most < 0 ? 0 : live[most])) most = i;
    return most;
}

int64_t *role_arena_use(Arena *arena, Module *module, const Role *role) {
    Arena *scratch = arena_create();
    int64_t *live = arena_array(arena, int64_t, module->ops.count + 2);
    find_live(&(MemoryArea){module, role, last_uses(scratch, module), false, role->arena_bytes, 1},
              live);
    arena_destroy(scratch);
    return live;
}

static MemoryKind kind_of(const Op *op, const Value *value, const Parameter *const *gradient) {
    if (gradient[value->id]) return MEMORY_GRADIENTS;
    return op->section == SECTION_FORWARD ? MEMORY_ACTIVATIONS : MEMORY_TEMPORARIES;
}

/* Adds the contents of an area during operator `at`, and the area's gaps, once for each slot. */
static void add_area(Count *count, const MemoryArea *area, int at,
                     const Parameter *const *gradient) {
    const Module *module = area->module;
    int64_t used = 0;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        int64_t scratch = area_scratch(area, op);
        if (scratch && !area->kept && (at > i || at < first_use(area->module, area->role, op)))
            scratch = 0;
        if (scratch) add_value(count, MEMORY_SCRATCH, op->results[0], scratch * area->count);
        used += scratch;
        for (int r = 0; r < op->result_count; r++) {
            const Value *value = op->results[r];
            if (!in_area(area, value) ||
                first_use_of(area->module, area->role, value, area->last) > at ||
                area->last[value->id] < at)
                continue;
            int64_t bytes = role_bytes(area->module, area->role, value);
            add_value(count, kind_of(op, value, gradient), value, bytes * area->count);
            used += bytes;
        }
    }
    count->memory.bytes[MEMORY_GAPS] += (area->bytes - used) * area->count;
}

/* Returns the bytes of one micro-batch's forward results that backward operators read. */
static int64_t kept_bytes(Arena *scratch, Module *module, const Role *role) {
    bool *counted = arena_array(scratch, bool, module->next_id);
    int64_t bytes = 0;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0;
             module->ops.at[i]->section == SECTION_BACKWARD && k < module->ops.at[i]->operand_count;
             k++) {
            const Value *value = module->ops.at[i]->operands[k],
                        *owner = value ? value_storage(value) : NULL;
            if (!owner || !owner->def || owner->def->section != SECTION_FORWARD ||
                owner->def->loop != module->ops.at[i]->loop || counted[owner->id])
                continue;
            counted[owner->id] = true;
            bytes += value_local_bytes(module, owner, role->devices[0]);
        }
    return bytes;
}

/* Returns bytes rounded up to the alignment of slots and arenas. */
static int64_t whole_lines(int64_t bytes) { return align_up(bytes, ARENA_ALIGNMENT); }

RoleMemory role_memory(Module *module, const Role *role, int slots) {
    return role_memory_values(NULL, module, role, slots, NULL);
}

RoleMemory role_memory_values(Arena *arena, Module *module, const Role *role, int slots,
                              KeptValues *values) {
    Arena *scratch = arena_create();
    Count count = {{.at = NULL, .slots = slots}, arena, values};
    RoleMemory *memory = &count.memory;
    const int *last = last_uses(scratch, module);
    const Parameter *const *gradient = gradients_of(scratch, module);
    const MemoryArea areas[] = {{module, role, last, false, whole_lines(role->arena_bytes), 1},
                                {module, role, last, true, whole_lines(role->slot_bytes), slots}};
    add_given(&count, module, role->devices[0]);
    for (int k = 0; k < 2; k++) {
        int at = areas[k].count
                     ? fullest(&areas[k], arena_array(scratch, int64_t, module->ops.count + 2))
                     : -1;
        if (at >= 0) add_area(&count, &areas[k], at, gradient);
        if (at >= 0 && !areas[k].kept) memory->at = module->ops.at[at];
    }
    for (int kind = 0; kind < MEMORY_KINDS; kind++) memory->peak += memory->bytes[kind];
    memory->kept = kept_bytes(scratch, module, role);
    arena_destroy(scratch);
    return count.memory;
}

void devices_memory_each(Module *module, MemoryTaker *take, void *context) {
    for (int r = 0; r < module->devices->roles->role_count; r++) {
        const Role *role = &module->devices->roles->at[r];
        RoleMemory memory = {.slots = -1};
        for (int i = 0; i < role->device_count; i++) {
            int slots = device_slots(module, role, role->devices[i]);
            if (slots != memory.slots) memory = role_memory(module, role, slots);
            take(context, role->devices[i], &memory);
        }
    }
}

/* ---- the check ---- */

Position value_place(const Value *value) { return value->def ? value->def->at : value->at; }

const char *value_called(const Value *value) {
    return value->name ? value->name : value->def ? value->def->def->name : "a value";
}

/* Returns advice that would lower a kind's bytes on a stage, such as a clause not used yet. */
static const char *advice(const Module *module, const RoleMemory *memory, const Stage *stage,
                          MemoryKind kind) {
    // the kinds that ZeRO 1, 2 and 3 divide
    static const MemoryKind cut[] = {MEMORY_STATES, MEMORY_GRADIENTS, MEMORY_PARAMETERS};
    const Strategy *strategy = module->strategy;
    bool trains = module->kind == MODULE_TRAIN, recomputes = stage && stage->recompute;
    for (int zero = 1; zero <= 3; zero++)
        if (cut[zero - 1] == kind && trains && (!strategy || strategy->zero < zero))
            return arena_format(
                module->arena,
                "`zero %d` shares them out over the devices that hold copies of parameters", zero);
    if (kind == MEMORY_PARAMETERS || kind == MEMORY_STATES || kind == MEMORY_GRADIENTS)
        return "a split of the dimensions of parameters over more devices makes them smaller";
    if (kind == MEMORY_INPUTS) return "a split of the batch over more devices makes them smaller";
    return arena_format(module->arena,
                        "%s%smore micro-batches (`pipeline microbatches(N)`), or a split over more "
                        "devices, make them smaller",
                        trains && !recomputes ? "`recompute(full)` of the stage, " : "",
                        memory->slots > 1 && trains
                            ? strategy_schedule(strategy) == SCHEDULE_1F1B
                                  ? "fewer layers in the stage, "
                                  : "`schedule 1f1b`, fewer layers in the stage, "
                            : "");
}

static MemoryKind largest_kind(const RoleMemory *memory, const bool *reported) {
    MemoryKind best = MEMORY_KINDS;
    for (int kind = 0; kind < MEMORY_GAPS; kind++)
        if (!reported[kind] && memory->bytes[kind] &&
            (best == MEMORY_KINDS || memory->bytes[kind] > memory->bytes[best]))
            best = (MemoryKind)kind;
    return best;
}

/* Returns the stage of the strategy that a device is in; NULL: the program has no strategy. */
static const Stage *stage_of(Module *module, int device) {
    int number = 0;
    const PipelineRun *run = device_run(module, device, &number);
    if (!module->strategy) return NULL;
    return &module->strategy->pipelines.at[run ? run->pipeline : 0].stages.at[number];
}

static void report_excess(Module *module, const RoleMemory *memory, int device,
                          const DeviceClass *class) {
    enum { CAUSES = 3 };
    bool reported[MEMORY_KINDS] = {false};
    const Stage *stage = stage_of(module, device);
    Position at = stage && stage->at.file                         ? stage->at
                  : module->strategy && module->strategy->at.file ? module->strategy->at
                                                                  : module->source->at;
    diag_error(module->diag, at, "%s needs %lld bytes on device %d, which has %lld (class \"%s\")",
               module->name, (long long)memory->peak, device, (long long)class->memory,
               class->name);
    if (memory->slots > 1)
        diag_note(module->diag, at, "this stage keeps %d micro-batches at a time", memory->slots);
    for (int i = 0; i < CAUSES; i++) {
        MemoryKind kind = largest_kind(memory, reported);
        if (kind == MEMORY_KINDS) return;
        const Value *largest = memory->largest[kind];
        reported[kind] = true;
        diag_note(module->diag, value_place(largest),
                  "%lld bytes are %s, the largest %s with %lld; %s", (long long)memory->bytes[kind],
                  memory_kind_name(kind), value_called(largest),
                  (long long)memory->largest_bytes[kind], advice(module, memory, stage, kind));
    }
}

/* Returns the first device of a role with `memory->slots` slots whose known memory is less than the
 * peak; -1: no device is known to have too little. */
static int short_device(Module *module, const Role *role, const RoleMemory *memory) {
    for (int i = 0; i < role->device_count; i++) {
        const DeviceClass *class = cluster_class(module->devices->target.cluster, role->devices[i]);
        if (class && class->memory && class->memory < memory->peak &&
            device_slots(module, role, role->devices[i]) == memory->slots)
            return role->devices[i];
    }
    return -1;
}

/* Reports the first device of a role whose memory is too small. Returns whether all have enough. */
static bool check_role(Module *module, const Role *role) {
    for (int i = 0, last = -1; i < role->device_count; i++) {
        int slots = device_slots(module, role, role->devices[i]);
        if (slots == last) continue;
        last = slots;
        RoleMemory memory = role_memory(module, role, slots);
        int device = short_device(module, role, &memory);
        if (device >= 0) {
            report_excess(module, &memory, device,
                          cluster_class(module->devices->target.cluster, device));
            return false;
        }
    }
    return true;
}

void memory_check(Module *module) {
    for (int r = 0; module->devices->target.cluster && r < module->devices->roles->role_count; r++)
        check_role(module, &module->devices->roles->at[r]);
}
