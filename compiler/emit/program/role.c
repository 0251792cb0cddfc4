/* A role's program: operators become calls, repeated calls become loops, and phases become functions. */
#include "emit/emitter.h"

#include "emit/program/calls.h"

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
    const Roles *roles = module->roles;
    Conversions *conversions = arena_new(arena, Conversions);
    int *known = arena_array(arena, int, roles->plan_count + 1);
    conversions->of = arena_array(arena, int, module->ops.count + 1);
    conversions->user = arena_array(arena, const Op *, roles->plan_count + 1);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        conversions->of[i] = -1;
        if (roles->plan_of[i] < 0)
            continue;
        int *number = &known[roles->plan_of[i]];
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
    const char *name = NULL;
    for (int k = 0; k < op->result_count && !name; k++)
        name = op->results[k]->name;
    return name ? arena_format(arena, "%s = %s", name, op->def->name) : op->def->name;
}

/* Bytes of a value on this role's devices; of one micro-batch where the value has one a micro-batch. */
static int64_t value_bytes(const Target *target, const Value *value)
{
    int64_t bytes = value_region(target->module, value, target->role->devices[0])->volume * dtype_size(value->type.dtype);
    return value->micro > 0 ? bytes / target->module->microbatches : bytes;
}

/* An input lies whole in its slot; inside the loop over micro-batches only a part of it is at work. */
static void add_tensor(Arena *arena, Call *call, const Target *target, const Value *value)
{
    if (!value)
        return;
    const Value *owner = value_storage(value);
    if (value_turns(target->module, call->op, value))
        call_turn(arena, call, target->slot_of[owner->id], value_bytes(target, owner));
    else
        call_buffer(arena, call, value_buffer(target, value));
}

static void add_copy(Calls *calls, Target *target, const Op *op, const Value *to, const Value *from)
{
    int64_t bytes = value_bytes(target, from);
    if (!bytes || value_buffer(target, from) == value_buffer(target, to))
        return;
    Call *call = call_new(calls, "ht_copy(", op);
    add_tensor(calls->arena, call, target, to);
    add_tensor(calls->arena, call, target, from);
    call_number(calls->arena, call, bytes);
    call->comment = op_comment(calls->arena, op);
}

static void add_conversion(Calls *calls, Target *target, const Op *op, int plan)
{
    if (value_storage(op->results[0]) == value_storage(op->operands[0]) &&
        plan_nothing(target->module->roles->plans[target->module->roles->plan_of[op->index]]))
        return;
    Call *call = call_new(calls, "ht_convert(r, ", op);
    call_text(calls->arena, call, arena_format(calls->arena, "%s_plan[%d]", target->name, plan));
    add_tensor(calls->arena, call, target, op->operands[0]);
    add_tensor(calls->arena, call, target, op->results[0]);
    int64_t scratch = target->role->scratch ? target->role->scratch[op->index] : -1;
    if (scratch >= 0)
        call_buffer(calls->arena, call, scratch);
    else
        call_text(calls->arena, call, "NULL");
    call->places = true;
    call->comment = op->results[0]->name ? op->results[0]->name : "";
}

/* The sum over micro-batches. */
static void add_accumulation(Calls *calls, Target *target, const Op *op)
{
    const Value *result = op->results[0];
    int64_t bytes = value_bytes(target, result);
    if (!bytes)
        return;
    Call *call = call_new(calls, "ht_accumulate(r, ", op);
    add_tensor(calls->arena, call, target, result);
    add_tensor(calls->arena, call, target, op->operands[0]);
    call_number(calls->arena, call, bytes / dtype_size(result->type.dtype));
    call_text(calls->arena, call, c_dtype(result->type.dtype));
    call->comment = op_comment(calls->arena, op);
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
    else if (op->def == target->module->accumulate_def)
        add_accumulation(calls, target, op);
    else
        add_kernel(calls, target, op);
}

/* The phase that runs an operator. */
static int op_phase(const Module *module, const Op *op)
{
    if (module->microbatches <= 1 || op->turn == TURN_EACH)
        return op->section == SECTION_FORWARD                                ? PHASE_FORWARD
               : op->section == SECTION_BACKWARD || module->microbatches > 1 ? PHASE_BACKWARD
                                                                             : PHASE_UPDATE;
    return op->turn == TURN_BEFORE ? PHASE_BEFORE : PHASE_UPDATE;
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

const char *phase_name(Phase phase)
{
    static const char *const NAMES[] = {
        [PHASE_BEFORE] = "before", [PHASE_FORWARD] = "forward", [PHASE_BACKWARD] = "backward", [PHASE_UPDATE] = "update"};
    return NAMES[phase];
}

static void emit_header(Text *out, const Target *target)
{
    Text devices = {.arena = out->arena};
    for (int i = 0; i < target->role->device_count; i++)
        text_print(&devices, "%s%d", i ? ", " : "", target->role->devices[i]);
    text_print(out, "\n/* ---- %s, role %d: device%s %s ---- */\n\n", target->module->name, target->role_index,
               target->role->device_count > 1 ? "s" : "", text_bytes(&devices));
}

RoleText emit_role(Text *out, Target *target)
{
    Arena *arena = target->emitter->arena;
    const Module *module = target->module;
    UsedKernels used = {0};
    Calls calls[PHASE_COUNT];
    for (int p = 0; p < PHASE_COUNT; p++)
        calls[p] = calls_create(arena, &used);
    int phase = PHASE_BEFORE;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        phase = op_phase(module, op) > phase ? op_phase(module, op) : phase;
        add_op(&calls[phase], target, op);
    }
    add_updates(&calls[PHASE_UPDATE], target);

    emit_header(out, target);
    calls_externs(out, target, &used);
    RoleText text = {0};
    for (int p = 0; p < PHASE_COUNT; p++) {
        text.has[p] = calls[p].count > 0;
        if (text.has[p])
            calls_emit(out, &calls[p], arena_format(arena, "%s_role%d_%s", target->name, target->role_index, phase_name(p)), phase_name(p));
    }
    return text;
}
