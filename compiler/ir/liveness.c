#include "ir/liveness.h"

#include "ir/roles.h"

static void find_readers(const Module *module, int *last)
{
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int r = 0; r < op->result_count; r++)
            last[op->results[r]->id] = i;
        for (int k = 0; k < op->operand_count; k++)
            if (op->operands[k])
                last[op->operands[k]->id] = i;
    }
    for (int i = 0; i < module->outputs.count; i++)
        last[module->outputs.at[i].value->id] = module->ops.count;
    if (module->loss)
        last[module->loss->id] = module->ops.count;
}

static void extend_over_loop(const Module *module, int *last)
{
    int first = module->ops.count, end = -1;
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->turn == TURN_EACH) {
            first = first < i ? first : i;
            end = i;
        }
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int r = 0; r < op->result_count; r++)
            if ((op->turn == TURN_BEFORE || op->def == module->accumulate_def) && last[op->results[r]->id] >= first &&
                last[op->results[r]->id] < end)
                last[op->results[r]->id] = end;
    }
}

static void extend_over_sharers(const Module *module, int *last)
{
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++) {
            const Value *value = module->ops.at[i]->results[r], *owner = value_storage(value);
            if (last[value->id] > last[owner->id])
                last[owner->id] = last[value->id];
        }
}

int *last_uses(Arena *arena, const Module *module)
{
    int *last = arena_array(arena, int, module->next_id);
    find_readers(module, last);
    extend_over_loop(module, last);
    extend_over_sharers(module, last);
    return last;
}
