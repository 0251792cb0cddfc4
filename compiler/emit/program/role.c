#include "emit/program/role.h"

#include "emit/kernel/kernel.h"
#include "emit/kernel/numbers.h"
#include "emit/program/calls.h"
#include "emit/program/update.h"
#include "emit/words.h"

RoleWriter role_writer(Emitter *emitter, Module *module, const char *name, int role)
{
    RoleWriter writer = {.emitter = emitter, .module = module, .name = name, .role_index = role, .role = &module->roles->at[role]};
    writer.slot_of = slots_of(emitter->arena, module);
    writer.updated_of = updated_slots_of(emitter->arena, module, writer.slot_of);
    writer.flags = intern_create(emitter->arena);
    writer.numbers.known = intern_create(emitter->arena);
    writer.numbers.device_count = writer.role->device_count;
    writer.numbers.rows = arena_array(emitter->arena, Row, writer.role->device_count);
    return writer;
}

int64_t value_buffer(const RoleWriter *writer, const Value *value)
{
    const Value *owner = value_storage(value);
    if (writer->slot_of[owner->id] >= 0)
        return -1 - writer->slot_of[owner->id];
    if (writer->role->offset[owner->id] >= 0)
        return writer->role->offset[owner->id];
    int64_t slot = writer->updated_of[owner->id];
    if (slot < 0)
        BUG("value %%%d of %s has no storage", owner->id, writer->module->name);
    return -1 - slot;
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
static int64_t value_bytes(const RoleWriter *writer, const Value *value)
{
    int64_t bytes = value_region(writer->module, value, writer->role->devices[0])->volume * dtype_size(value->type.dtype);
    return value->micro > 0 ? bytes / writer->module->microbatches : bytes;
}

/* An input lies whole in its slot; inside the loop over micro-batches only a part of it is at work. */
static void add_tensor(Calls *calls, Call *call, const RoleWriter *writer, const Value *value)
{
    if (!value)
        return;
    const Value *owner = value_storage(value);
    if (value_turns(writer->module, call->op, value))
        call_add(calls, call, (Argument){ARGUMENT_TURN, writer->slot_of[owner->id], c_number(calls->arena, value_bytes(writer, owner))});
    else
        call_add(calls, call, (Argument){.kind = ARGUMENT_BUFFER, .number = value_buffer(writer, value)});
}

void call_copy(Calls *calls, const RoleWriter *writer, const Op *op, const Value *to, const Value *from)
{
    int64_t bytes = value_bytes(writer, from);
    if (!bytes || value_buffer(writer, from) == value_buffer(writer, to))
        return;
    Call *call = call_new(calls, "ht_copy(", op);
    add_tensor(calls, call, writer, to);
    add_tensor(calls, call, writer, from);
    call_add(calls, call, (Argument){.kind = ARGUMENT_NUMBER, .number = bytes});
    call->comment = op_comment(calls->arena, op);
}

static void add_conversion(Calls *calls, RoleWriter *writer, const Op *op)
{
    if (value_storage(op->results[0]) == value_storage(op->operands[0]) && plan_nothing(op->conversion->plan))
        return;
    Call *call = call_new(calls, "ht_convert(r, ", op);
    call_add(calls, call,
             (Argument){.kind = ARGUMENT_TEXT, .text = arena_format(calls->arena, "%s_plan[%d]", writer->name, op->conversion->number)});
    add_tensor(calls, call, writer, op->operands[0]);
    add_tensor(calls, call, writer, op->results[0]);
    int64_t scratch = writer->role->scratch ? writer->role->scratch[op->index] : -1;
    if (scratch >= 0)
        call_add(calls, call, (Argument){.kind = ARGUMENT_BUFFER, .number = scratch});
    else
        call_add(calls, call, (Argument){.kind = ARGUMENT_TEXT, .text = "NULL"});
    call->places = true;
    call->comment = op->results[0]->name ? op->results[0]->name : "";
}

/* The sum over micro-batches. */
static void add_accumulation(Calls *calls, RoleWriter *writer, const Op *op)
{
    const Value *result = op->results[0];
    int64_t bytes = value_bytes(writer, result);
    if (!bytes)
        return;
    Call *call = call_new(calls, "ht_accumulate(r, ", op);
    add_tensor(calls, call, writer, result);
    add_tensor(calls, call, writer, op->operands[0]);
    call_add(calls, call, (Argument){.kind = ARGUMENT_NUMBER, .number = bytes / dtype_size(result->type.dtype)});
    call_add(calls, call, (Argument){.kind = ARGUMENT_TEXT, .text = c_dtype(result->type.dtype)});
    call->comment = op_comment(calls->arena, op);
}

static void add_kernel(Calls *calls, RoleWriter *writer, const Op *op)
{
    LocalOp *local = calls->local;
    if (!local_op(local, writer, op) || local_nothing(local))
        return;
    const Kernel *kernel = kernel_for(writer, local);
    calls_use(calls, kernel);
    Call *call = call_new(calls, kernel->opening, op);
    for (int k = 0; k < op->result_count; k++)
        add_tensor(calls, call, writer, op->results[k]);
    for (int k = 0; k < op->operand_count; k++)
        add_tensor(calls, call, writer, op->operands[k]);
    if (kernel->numbered)
        call_add(calls, call, (Argument){.kind = ARGUMENT_NUMBERS, .number = number_column(writer, local)});
    call->places = kernel->ranked;
    call->comment = op_comment(calls->arena, op);
}

static void add_op(Calls *calls, RoleWriter *writer, const Op *op)
{
    if (op->conversion)
        add_conversion(calls, writer, op);
    else if (op->def->rule->kind == RULE_VIEW)
        call_copy(calls, writer, op, op->results[0], op->operands[0]);
    else if (op->def == writer->module->accumulate_def)
        add_accumulation(calls, writer, op);
    else
        add_kernel(calls, writer, op);
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

/* ---- the file ---- */

const char *phase_name(Phase phase)
{
    static const char *const NAMES[] = {
        [PHASE_BEFORE] = "before", [PHASE_FORWARD] = "forward", [PHASE_BACKWARD] = "backward", [PHASE_UPDATE] = "update"};
    return NAMES[phase];
}

static void emit_header(Text *out, const RoleWriter *writer)
{
    Text devices = {.arena = out->arena};
    for (int i = 0; i < writer->role->device_count; i++)
        text_print(&devices, "%s%d", i ? ", " : "", writer->role->devices[i]);
    text_print(out, "\n/* ---- %s, role %d: device%s %s ---- */\n\n", writer->module->name, writer->role_index,
               writer->role->device_count > 1 ? "s" : "", text_bytes(&devices));
}

RoleText emit_role(Text *out, RoleWriter *writer)
{
    Arena *arena = writer->emitter->arena;
    const Module *module = writer->module;
    UsedKernels used = {0};
    Calls calls[PHASE_COUNT];
    for (int p = 0; p < PHASE_COUNT; p++)
        calls[p] = calls_create(arena, &used);
    int phase = PHASE_BEFORE;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        phase = op_phase(module, op) > phase ? op_phase(module, op) : phase;
        add_op(&calls[phase], writer, op);
    }
    emit_updates(&calls[PHASE_UPDATE], writer);

    emit_header(out, writer);
    calls_externs(out, writer, &used);
    RoleText text = {0};
    for (int p = 0; p < PHASE_COUNT; p++) {
        text.has[p] = calls[p].count > 0;
        if (text.has[p])
            calls_emit(out, &calls[p], arena_format(arena, "%s_role%d_%s", writer->name, writer->role_index, phase_name(p)), phase_name(p));
    }
    return text;
}
