/* Updates of parameters. The phase `update` calls the optimizer's operators like all others
 * (role.h). This file finds the slots of parameters and states, and copies new values there. */
#include "emit/program/calls.h"

const int64_t *slots_of(Arena *arena, const Module *module) {
    int64_t *slots = arena_array(arena, int64_t, module->context.next_id + 1);
    for (int i = 0; i <= module->context.next_id; i++) slots[i] = -1;
    for (int p = 0; p < module->params.count; p++) {
        const Parameter *param = module->params.at[p];
        slots[param->value->id] = p;
        for (int s = 0; s < param->state_count; s++)
            slots[param->states[s]->id] =
                module->params.count + (int64_t)p * module->optimizer.state_count + s;
    }
    for (int i = 0; i < module->inputs.count; i++)
        slots[module->inputs.at[i]->id] =
            module->params.count * (int64_t)(1 + module->optimizer.state_count) + i;
    return slots;
}

const int64_t *updated_slots_of(Arena *arena, const Module *module, const int64_t *slots) {
    int64_t *updated = arena_array(arena, int64_t, module->context.next_id + 1);
    for (int i = 0; i <= module->context.next_id; i++) updated[i] = -1;
    for (int p = 0; p < module->params.count; p++) {
        const Parameter *param = module->params.at[p];
        if (param->updated) updated[value_storage(param->updated)->id] = slots[param->value->id];
        for (int s = 0; s < param->state_count; s++)
            if (param->states_updated[s])
                updated[value_storage(param->states_updated[s])->id] = slots[param->states[s]->id];
    }
    return updated;
}

void emit_updates(Calls *calls, const RoleWriter *writer) {
    for (int p = 0; p < writer->module->params.count; p++) {
        const Parameter *param = writer->module->params.at[p];
        if (param->updated && param->updated->def)
            call_copy(calls, writer, param->updated->def, param->value, param->updated);
        for (int s = 0; s < param->state_count; s++)
            if (param->states_updated[s] && param->states_updated[s]->def)
                call_copy(calls, writer, param->states_updated[s]->def, param->states[s],
                          param->states_updated[s]);
    }
}
