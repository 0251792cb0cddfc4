/* Pass specialize: finds roles (devices with pieces of equal shapes), and plans each conversion.
 *
 *     stage devices(0-3) mesh(tp:4)                  one role
 *     stage devices(0-3) mesh(tp:4 by 3:3:2:2)       two roles: devices 0-1 and 2-3
 *
 * Requires: pass propagate_layouts.
 *
 * Leaves: module->devices->roles without storage, and module->devices->conversions. Reports
 * conversions for -Rcomm and -Wimplicit-reshard. */
#include "cost/cost.h"
#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"
#include "passes/gradient_buckets.h"
#include "passes/pass_manager.h"
#include "support/array.h"

#include <stdlib.h>

/* ---- devices and roles ---- */

/* Lists all devices of the mesh in ascending order. */
static void list_devices(const Module *module, Roles *roles) {
    const Mesh *mesh = module->devices->mesh;
    int *devices =
        arena_copy(module->arena, mesh->devices, sizeof(int) * (size_t)mesh->device_count);
    qsort(devices, (size_t)mesh->device_count, sizeof(int), compare_ints);
    roles->devices = devices;
    roles->device_count = mesh->device_count;
}

/* One value for each distinct layout and shape; values in stages are distinct from all others. */
typedef Array(const Value *) Values;

static void add_distinct(Arena *arena, Intern *seen, Values *values, const Value *value) {
    bool staged = value->def && value->def->stage != STAGE_ALL;
    int64_t key[IR_MAX_RANK + 3] = {(int64_t)(intptr_t)value->layout, value->type.rank, staged};
    if (!value->layout) BUG("value %%%d has no layout", value->id);
    for (int d = 0; d < value->type.rank; d++) key[3 + d] = value->type.extent[d];
    const Value **first = intern_slot(seen, key, sizeof key);
    if (!*first) {
        *first = value;
        array_push(arena, values, value);
    }
}

static Values distinct_values(Arena *arena, const Module *module) {
    Values values = {0};
    Intern *seen = intern_create(arena);
    for (int i = 0; i < module->params.count; i++) {
        add_distinct(arena, seen, &values, module->params.at[i]->value);
        for (int s = 0; s < module->params.at[i]->state_count; s++)
            add_distinct(arena, seen, &values, module->params.at[i]->states[s]);
    }
    for (int i = 0; i < module->inputs.count; i++)
        if (module->inputs.at[i]->layout) add_distinct(arena, seen, &values, module->inputs.at[i]);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            add_distinct(arena, seen, &values, module->ops.at[i]->results[r]);
    return values;
}

typedef Array(int64_t) Words;

/* Returns the class (a unique address) of devices of class `before` with pieces of this shape. */
static const void *refined_class(Arena *arena, Intern *classes, Words *words, const void *before,
                                 const Region *region) {
    words->count = 0;
    array_push(arena, words, (intptr_t)before);
    array_push(arena, words, region->box_count);
    for (int b = 0; b < region->box_count; b++)
        for (int d = 0; d < region->rank; d++)
            array_push(arena, words, region->boxes[b].dim[d].hi - region->boxes[b].dim[d].lo);
    return intern(classes, words->at, sizeof *words->at * (size_t)words->count);
}

/* Refines the equivalence classes of devices by the shapes of their pieces. If `staged`, uses only
 * values that operators of stages make, otherwise only all other values. */
static void refine_classes(Arena *arena, Module *module, const Roles *roles, const Values *values,
                           bool staged, const void **class) {
    Words words = {0};
    for (int v = 0; v < values->count; v++) {
        const Value *value = values->at[v];
        const int *devices;
        int count;
        if ((value->def && value->def->stage != STAGE_ALL) != staged) continue;
        const Region *held = value_regions(module, value, &devices, &count);
        Intern *classes = intern_create(arena);
        for (int i = 0; i < count; i++) {
            const void **own = &class[roles_index(roles, devices[i])];
            *own = refined_class(arena, classes, &words, *own, &held[i]);
        }
    }
}

/* Returns the equivalence class of each device, by its index in roles->devices. The devices of a
 * class become a role: their pieces of every value have equal shapes. */
static const void **find_classes(Arena *arena, Module *module, const Roles *roles,
                                 const Values *values) {
    const void **standing = arena_array(arena, const void *, roles->device_count),
               **class = arena_array(arena, const void *, roles->device_count);
    // devices of corresponding stages run one template: compare their representatives
    refine_classes(arena, module, roles, values, true, standing);
    for (int i = 0; i < roles->device_count; i++)
        class[i] = standing[roles_index(roles, representative_device(module, roles->devices[i]))];
    refine_classes(arena, module, roles, values, false, class);
    return class;
}

static void find_roles(Module *module, Roles *roles) {
    Arena *scratch = arena_create();
    Values values = distinct_values(scratch, module);
    const void **class = find_classes(scratch, module, roles, &values),
               **first = arena_array(scratch, const void *, roles->device_count);
    int *role_of = arena_array(module->arena, int, roles->device_count),
        *size = arena_array(scratch, int, roles->device_count);
    // number the classes in the order of their first devices
    for (int i = 0; i < roles->device_count; i++) {
        int role = 0;
        while (role < roles->role_count && first[role] != class[i]) role++;
        if (role == roles->role_count) first[roles->role_count++] = class[i];
        role_of[i] = role;
        size[role]++;
    }
    roles->role_of = role_of;
    roles->at = arena_array(module->arena, Role, roles->role_count);
    // list the devices of each role
    for (int r = 0; r < roles->role_count; r++) {
        int *devices = arena_array(module->arena, int, size[r]), count = 0;
        for (int i = 0; i < roles->device_count; i++)
            if (role_of[i] == r) devices[count++] = roles->devices[i];
        roles->at[r].devices = devices;
        roles->at[r].device_count = count;
    }
    arena_destroy(scratch);
}

/* ---- conversions ---- */

typedef struct ConversionKey {
    const Layout *from, *to;
    const int64_t *extent;
    int64_t rank, dtype, body; // body: template of its stage; -1: on all devices
} ConversionKey;

static PlannedConversion *conversion_of(Module *module, const Op *op) {
    PlannedConversion *conversion = conversion_add(module);
    array_push(
        module->arena, &conversion->tensors,
        (ConvertedTensor){op->results[0]->type, op->operands[0]->layout, op->results[0]->layout});
    return conversion;
}

/* Gives an operator its conversion, shared by equal conversions of one template. */
static void use_conversion(Module *module, Intern *known, Op *op) {
    const Layout *from = op->operands[0]->layout, *to = op->results[0]->layout;
    Type type = op->results[0]->type;
    const int64_t *extent = intern(known, type.extent, sizeof *type.extent * (size_t)type.rank);
    int body = op->stage == STAGE_ALL ? -1 : module->templates->stages.at[op->stage].template_index;
    ConversionKey key = {from, to, extent, type.rank, type.dtype, body};
    PlannedConversion **conversion = intern_slot(known, &key, sizeof key);
    if (!*conversion) *conversion = conversion_of(module, op);
    conversion_use(*conversion, 0, op);
}

/* The phases of stages between which values are sent. */
typedef struct MessageKey {
    int64_t sender, sender_visit, sender_phase, receiver, receiver_visit, receiver_phase;
} MessageKey;

/* Adds a value to the message between two phases of stages. One message has all values that one
 * phase sends to another, and its own plan, because it may overlap with other messages. */
static void use_message(Module *module, Intern *messages, Op *op) {
    const Op *maker = op->operands[0]->def;
    MessageKey key = {maker->stage, maker->visit, op_phase(module, maker),
                      op->stage,    op->visit,    op_phase(module, op)};
    PlannedConversion **message = intern_slot(messages, &key, sizeof key);
    if (*message)
        array_push(module->arena, &(*message)->tensors,
                   (ConvertedTensor){op->results[0]->type, op->operands[0]->layout,
                                     op->results[0]->layout});
    else *message = conversion_of(module, op);
    conversion_use(*message, (*message)->tensors.count - 1, op);
}

/* Returns "in all", or "by each micro-batch, 4096 in all" if every micro-batch converts. */
static const char *bytes_are_of(Arena *arena, const Module *module, const Op *op, long bytes) {
    long runs = (long)conversion_runs(module, op);
    return runs > 1 && loop_repeats(op->loop)
               ? arena_format(arena, "by each micro-batch, %ld in all", runs * bytes)
               : "in all";
}

/* Reports a conversion for the options -Rcomm and -Wimplicit-reshard; a gradient's conversion at
 * the line of the parameter. Skips a conversion by which no device receives bytes. */
static void report(Module *module, const CompileOptions *options, const Op *op,
                   const Parameter *gradient, Arena *scratch) {
    if (!options->remark_comm && !options->warn_implicit_reshard) return;
    ReplicaGroups replica_groups;
    const Plan *plan = op_plan_alone(scratch, module, op, &replica_groups);
    long bytes = (long)replica_groups_bytes(&replica_groups, plan);
    const char *name = op->results[0]->name ? op->results[0]->name : "a value";
    const char *what =
                   gradient ? arena_format(scratch, "the gradient of %s", gradient->name) : name,
               *scope = gradient ? NULL : op->source->scope;
    Position at = gradient && gradient->value->at.file ? gradient->value->at : op->at;
    const char *reason = op->source->reason ? op->source->reason : "reshard in the source";
    if (options->remark_comm && bytes)
        diag_remark(module->diag, at, "%s of %s%s%s: %ld bytes received %s, for %s",
                    plan_name(plan), what, scope ? " in " : "", scope ? scope : "", bytes,
                    bytes_are_of(scratch, module, op, bytes), reason);
    if (options->warn_implicit_reshard && op->source->reason && bytes)
        diag_warning(module->diag, at, "%s of %s that nobody wrote: %ld bytes, for %s",
                     plan_name(plan), what, bytes, reason);
}

static void plan_conversions(Module *module, const CompileOptions *options, const Roles *roles) {
    Arena *scratch = arena_create();
    Intern *known = intern_create(scratch), *messages = intern_create(scratch);
    module->devices->conversions.count = 0;
    // 1: find distinct conversions and messages
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        if (op->def != module->builtin->reshard) continue;
        if (op_crosses_stages(module, op)) use_message(module, messages, op);
        else use_conversion(module, known, op);
    }
    // 2: plan conversions, and join gradients into buckets
    for (int c = 0; c < module->devices->conversions.count; c++)
        conversion_plan(module, module->devices->conversions.at[c]);
    fill_gradient_buckets(module, roles, options->bucket);
    // 3: report conversions
    const Parameter *const *gradients = gradients_of(scratch, module);
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->convert.plan)
            report(module, options, module->ops.at[i], gradients[module->ops.at[i]->results[0]->id],
                   scratch);
    arena_destroy(scratch);
}

void pass_specialize(Module *module, const PassContext *context) {
    Roles *roles = arena_new(module->arena, Roles);
    ir_order_parts(module);
    list_devices(module, roles);
    find_roles(module, roles);
    plan_conversions(module, context->options, roles);
    module->devices->roles = roles;
}
