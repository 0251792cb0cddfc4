/* Buffers: where the values of a role lie, and the arguments and copies that name them.
 *
 *     a parameter        ->  slot 2       ht_slot(r, 2)
 *     a value            ->  arena        ht_arena(r, 640)
 *     a kept activation  ->  slot of its micro-batch   ht_kept(r, 64)
 */
#include "emit/program/calls.h"

#include "emit/words.h"
#include "hetu/rt.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/regions.h"

/* ---- slots of parameters, states and inputs ---- */

const int64_t *slots_of(Arena *arena, const Module *module) {
    int64_t *slots = arena_array(arena, int64_t, module->next_id + 1);
    for (int i = 0; i <= module->next_id; i++) slots[i] = -1;
    for (int p = 0; p < module->params.count; p++) {
        const Parameter *param = module->params.at[p];
        slots[param->value->id] = p;
        for (int s = 0; s < param->state_count; s++)
            slots[param->states[s]->id] =
                module->params.count + (int64_t)p * module->optimizer->state_count + s;
    }
    for (int i = 0; i < module->inputs.count; i++)
        slots[module->inputs.at[i]->id] =
            module->params.count * (int64_t)(1 + module->optimizer->state_count) + i;
    return slots;
}

const int64_t *updated_slots_of(Arena *arena, const Module *module, const int64_t *slots) {
    int64_t *updated = arena_array(arena, int64_t, module->next_id + 1);
    for (int i = 0; i <= module->next_id; i++) updated[i] = -1;
    for (int p = 0; p < module->params.count; p++) {
        const Parameter *param = module->params.at[p];
        if (param->updated) updated[value_storage(param->updated)->id] = slots[param->value->id];
        for (int s = 0; s < param->state_count; s++)
            if (param->states_updated[s])
                updated[value_storage(param->states_updated[s])->id] = slots[param->states[s]->id];
    }
    return updated;
}

int64_t value_buffer(const RoleWriter *writer, const Value *value) {
    const Value *owner = role_storage(writer->module, writer->role, value);
    if (writer->slot_of[owner->id] >= 0) return ht_buffer_of_slot(writer->slot_of[owner->id]);
    if (writer->role->offset[owner->id] >= 0) {
        int64_t offset = writer->role->offset[owner->id] +
                         value_displacement(writer->module, value, writer->role->devices[0]);
        return writer->role->kept[owner->id] ? ht_buffer_of_kept(offset) : offset;
    }
    int64_t slot = writer->updated_of[owner->id];
    if (slot < 0) BUG("value %%%d of %s has no storage", owner->id, writer->module->name);
    return ht_buffer_of_slot(slot);
}

void call_describe(Calls *calls, Call *call) {
    const Op *op = call->op;
    const char *name = NULL;
    for (int k = 0; k < op->result_count && !name; k++) name = op->results[k]->name;
    call->comment =
        name ? arena_format(calls->arena, "%s = %s", name, op->def->name) : op->def->name;
}

int64_t role_value_bytes(const RoleWriter *writer, const Value *value) {
    return value_local_bytes(writer->module, value, writer->role->devices[0]);
}

void call_tensor(Calls *calls, Call *call, const RoleWriter *writer, const Value *value) {
    if (!value) return;
    if (!role_has(writer->module, writer->role, value)) {
        call_add(calls, call, (Argument){.kind = ARGUMENT_TEXT, .text = "NULL"});
        return;
    }
    int64_t buffer = value_buffer(writer, value);
    const Value *turn =
        call->op->def == writer->module->builtin->collect ? call->op->operands[0] : value;
    if (value_turns(writer->module, call->op, value))
        call_add(calls, call,
                 (Argument){ARGUMENT_TURN, buffer,
                            c_number(calls->arena, role_value_bytes(writer, turn))});
    else call_add(calls, call, (Argument){.kind = ARGUMENT_BUFFER, .number = buffer});
}

void call_copy(Calls *calls, const RoleWriter *writer, const Op *op, const Value *to,
               const Value *from) {
    int64_t bytes = role_value_bytes(writer, from);
    if (!bytes || !role_has(writer->module, writer->role, from) ||
        value_buffer(writer, from) == value_buffer(writer, to))
        return;
    Call *call = call_new(calls, "ht_copy(", op);
    call_tensor(calls, call, writer, to);
    call_tensor(calls, call, writer, from);
    call_add(calls, call, (Argument){.kind = ARGUMENT_NUMBER, .number = bytes});
    call->makes = to;
    call->copies = true;
    call_describe(calls, call);
}
