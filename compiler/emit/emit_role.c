/* A role's program: operators become calls, repeated calls become loops, and phases become functions. */
#include "emit/emitter.h"

#include "emit/calls.h"

#include <stdio.h>
#include <string.h>

/* ---- buffers ---- */

const int64_t *slots_of(Arena *arena, const Module *module)
{
    int64_t *slots = arena_array(arena, int64_t, module->next_id + 1);
    for (int i = 0; i <= module->next_id; i++)
        slots[i] = -1;
    for (int p = 0; p < module->params.count; p++) {
        const Parameter *param = module->params.at[p];
        slots[param->value->id] = p;
        for (int s = 0; s < param->state_count; s++)
            slots[param->states[s]->id] = module->params.count + (int64_t)p * module->state_count + s;
    }
    for (int i = 0; i < module->inputs.count; i++)
        slots[module->inputs.at[i]->id] = module->params.count * (int64_t)(1 + module->state_count) + i;
    return slots;
}

const int64_t *updated_slots_of(Arena *arena, const Module *module, const int64_t *slots)
{
    int64_t *updated = arena_array(arena, int64_t, module->next_id + 1);
    for (int i = 0; i <= module->next_id; i++)
        updated[i] = -1;
    for (int p = 0; p < module->params.count; p++) {
        const Parameter *param = module->params.at[p];
        if (param->updated)
            updated[value_storage(param->updated)->id] = slots[param->value->id];
        for (int s = 0; s < param->state_count; s++)
            if (param->states_updated[s])
                updated[value_storage(param->states_updated[s])->id] = slots[param->states[s]->id];
    }
    return updated;
}

int64_t value_buffer(const Target *target, const Value *value)
{
    const Value *owner = value_storage(value);
    if (target->slot_of[owner->id] >= 0)
        return -1 - target->slot_of[owner->id];
    if (target->role->offset[owner->id] >= 0)
        return target->role->offset[owner->id];
    int64_t slot = target->updated_of[owner->id];
    if (slot < 0)
        BUG("value %%%d of %s has no storage", owner->id, target->module->name);
    return -1 - slot;
}

const Conversions *conversions_of(Arena *arena, const Module *module)
{
    const Specialization *roles = module->roles;
    Conversions *conversions = arena_new(arena, Conversions);
    int *known = arena_array(arena, int, roles->plan_count * DTYPE_COUNT + 1);
    conversions->of = arena_array(arena, int, module->ops.count + 1);
    conversions->user = arena_array(arena, const Op *, roles->plan_count * DTYPE_COUNT + 1);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        conversions->of[i] = -1;
        if (roles->plan_of[i] < 0)
            continue;
        int *number = &known[roles->plan_of[i] * DTYPE_COUNT + (int)op->results[0]->type.dtype];
        if (!*number) {
            conversions->user[conversions->count++] = op;
            *number = conversions->count;
        }
        conversions->of[i] = *number - 1;
    }
    return conversions;
}

/* ---- calls ---- */

/* What stands behind a call: the result's name and the operator. */
static const char *op_comment(Arena *arena, const Op *op)
{
    const char *name = op->result_count && op->results[0]->name ? op->results[0]->name : NULL;
    return name ? arena_format(arena, "%s = %s", name, op->def->name) : op->def->name;
}

static void add_tensor(Arena *arena, Call *call, const Target *target, const Value *value)
{
    if (value)
        call_buffer(arena, call, value_buffer(target, value));
}

/* Bytes of a value on this role's devices. */
static int64_t value_bytes(const Target *target, const Value *value)
{
    return value_region(target->module, value, target->role->devices[0])->volume * dtype_size(value->type.dtype);
}

static void add_copy(Calls *calls, Target *target, const Op *op, const Value *to, const Value *from)
{
    int64_t bytes = value_bytes(target, from), source = value_buffer(target, from), destination = value_buffer(target, to);
    if (!bytes || source == destination)
        return;
    Call *call = call_new(calls, "ht_copy(", op);
    call_buffer(calls->arena, call, destination);
    call_buffer(calls->arena, call, source);
    call_number(calls->arena, call, bytes);
    call->comment = op_comment(calls->arena, op);
}

static void add_conversion(Calls *calls, Target *target, const Op *op, int plan)
{
    if (value_storage(op->results[0]) == value_storage(op->operands[0]) && plan_nothing(target->module->roles->plans[target->module->roles->plan_of[op->index]]))
        return;
    Call *call = call_new(calls, "ht_convert(r, ", op);
    call_text(calls->arena, call, arena_format(calls->arena, "%s_plan[%d]", target->name, plan));
    call_buffer(calls->arena, call, value_buffer(target, op->operands[0]));
    call_buffer(calls->arena, call, value_buffer(target, op->results[0]));
    int64_t scratch = target->role->scratch ? target->role->scratch[op->index] : -1;
    if (scratch >= 0)
        call_buffer(calls->arena, call, scratch);
    else
        call_text(calls->arena, call, "NULL");
    call->places = true;
    call->comment = op->results[0]->name ? op->results[0]->name : "";
}

static void add_kernel(Calls *calls, Target *target, const Op *op)
{
    LocalOp *local = calls->local;
    if (!local_op(local, target, op) || local_nothing(local))
        return;
    const Kernel *kernel = kernel_for(target, local);
    calls_use(calls, kernel);
    Call *call = call_new(calls, kernel->opening, op);
    for (int k = 0; k < op->result_count; k++)
        add_tensor(calls->arena, call, target, op->results[k]);
    for (int k = 0; k < op->operand_count; k++)
        add_tensor(calls->arena, call, target, op->operands[k]);
    if (kernel->pieced)
        call_piece(calls->arena, call, piece_column(target, local));
    call->places = kernel->ranked;
    call->comment = op_comment(calls->arena, op);
}

static void add_op(Calls *calls, Target *target, const Op *op)
{
    int plan = target->conversions->of[op->index];
    if (plan >= 0)
        add_conversion(calls, target, op, plan);
    else if (op->def == target->module->reshard_def || op->def->rule->kind == RULE_VIEW)
        add_copy(calls, target, op, op->results[0], op->operands[0]);
    else
        add_kernel(calls, target, op);
}

/* Copies of new values that were not computed in place. */
static void add_updates(Calls *calls, Target *target)
{
    for (int p = 0; p < target->module->params.count; p++) {
        const Parameter *param = target->module->params.at[p];
        if (param->updated && param->updated->def)
            add_copy(calls, target, param->updated->def, param->value, param->updated);
        for (int s = 0; s < param->state_count; s++)
            if (param->states_updated[s] && param->states_updated[s]->def)
                add_copy(calls, target, param->states_updated[s]->def, param->states[s], param->states_updated[s]);
    }
}

/* ---- the file ---- */

static const char *const PHASES[] = {"forward", "backward", "update"};

static void emit_header(Text *out, const Target *target)
{
    Text devices = {.arena = out->arena};
    for (int i = 0; i < target->role->device_count; i++)
        text_print(&devices, "%s%d", i ? ", " : "", target->role->devices[i]);
    text_print(out, "\n/* ---- %s, role %d: device%s %s ---- */\n\n", target->module->name, target->role_index, target->role->device_count > 1 ? "s" : "", text_bytes(&devices));
}

RoleText emit_role(Text *out, Target *target)
{
    Arena *arena = target->emitter->arena;
    const Module *module = target->module;
    Calls calls[3];
    for (int s = 0; s < 3; s++)
        calls[s] = calls_create(arena);
    int section = SECTION_FORWARD;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        section = (int)op->section > section ? (int)op->section : section;
        add_op(&calls[section], target, op);
    }
    add_updates(&calls[SECTION_UPDATE], target);

    emit_header(out, target);
    calls_externs(out, target, calls, 3);
    RoleText text = {{false, false, false}};
    for (int s = 0; s < 3; s++) {
        text.has[s] = calls[s].count > 0;
        if (text.has[s])
            calls_emit(out, &calls[s], arena_format(arena, "%s_role%d_%s", target->name, target->role_index, PHASES[s]), PHASES[s]);
    }
    return text;
}
