/* Computes lifetimes of values. passes/memory/arena_packing.c computes offsets from them. */
#include "ir/analysis/liveness.h"

#include "ir/analysis/async_collectives.h"
#include "ir/analysis/phases.h"
#include "ir/analysis/subviews.h"

/* Extends the lifetime of `made`, if any, to the step's end, when its parameter or state is set. */
static void note_update(const Module *module, const Value *made, int *last) {
    if (made) last[made->id] = module->ops.count;
}

/* Writes to `last`, by value id, the index of the value's last reader; see last_uses. */
static void find_readers(const Module *module, int *last) {
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int r = 0; r < op->result_count; r++) last[op->results[r]->id] = i;
        for (int k = 0; k < op->operand_count; k++)
            if (op->operands[k]) last[op->operands[k]->id] = i;
    }
    for (int i = 0; i < module->outputs.count; i++)
        last[module->outputs.at[i].value->id] = module->ops.count;
    if (module->loss) last[module->loss->id] = module->ops.count;
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *parameter = module->params.at[i];
        note_update(module, parameter->updated, last);
        for (int s = 0; s < parameter->state_count; s++)
            note_update(module, parameter->states_updated[s], last);
    }
}

/* Sets *first and *last to indices of a loop's first and last operator; if none, *last to -1. */
static void find_loop(const Module *module, LoopPosition turn, int *first, int *last) {
    *first = module->ops.count;
    *last = -1;
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->loop == turn) {
            *first = *first < i ? *first : i;
            *last = i;
        }
}

/* Extends the lifetimes of values that a loop only reads, and of the loop's sums, to the loop's
 * end, because the next micro-batch reads these values again. */
static void extend_over_loop(const Module *module, LoopPosition turn, int *last) {
    int first, end;
    find_loop(module, turn, &first, &end);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bool whole = op->loop != turn || op_gathers(module, op);
        for (int r = 0; r < op->result_count && whole; r++)
            if (last[op->results[r]->id] >= first && last[op->results[r]->id] < end)
                last[op->results[r]->id] = end;
    }
}

/* Extends lifetimes of messages' operands to the loop's end: a transfer may last until then. */
static void extend_over_messages(const Module *module, int *last) {
    int first, end;
    find_loop(module, LOOP_EACH, &first, &end);
    for (int i = 0; i < module->ops.count; i++)
        if (op_crosses_stages(module, module->ops.at[i]))
            last[module->ops.at[i]->operands[0]->id] = end;
}

/* Extends the lifetimes of the operands of each union to the union's last use. */
static void extend_over_unions(const Module *module, int *last) {
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        for (int k = 0; op->def == module->builtin->stage_union && k < op->operand_count; k++)
            if (last[op->results[0]->id] > last[op->operands[k]->id])
                last[op->operands[k]->id] = last[op->results[0]->id];
    }
}

/* Extends the lifetime of each storage's owner to the last use of the values that share it. */
static void extend_over_sharers(const Module *module, int *last) {
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++) {
            const Value *value = module->ops.at[i]->results[r], *owner = value_storage(value);
            if (last[value->id] > last[owner->id]) last[owner->id] = last[value->id];
        }
}

int *last_uses(Arena *arena, const Module *module) {
    int *last = arena_array(arena, int, module->next_id);
    find_readers(module, last);
    extend_over_sharers(module, last);
    extend_over_unions(module, last);
    extend_over_loop(module, LOOP_COUNT, last);
    extend_over_loop(module, LOOP_EACH, last);
    extend_over_messages(module, last);
    extend_over_sharers(module, last);
    return last;
}

/* Returns the index of the first operator of the phase of `op`. */
static int first_of_part(const Module *module, const Op *op) {
    int first = op->index;
    while (first > op->loop_first && same_phase(module, module->ops.at[first - 1], op)) first--;
    return first;
}

/* Returns whether the stage of an operator has one visit, or the operator runs on all devices. */
static bool one_visit(const Module *module, const Op *op) {
    if (op->stage == STAGE_ALL) return true;
    const TemplateStage *stage = &module->templates->stages.at[op->stage];
    const Body *body = &module->templates->at.at[stage->template_index];
    int visits = 0;
    for (int v = 0; v < body->visit_count; v++) visits += body->visit_stage[v] == stage->number;
    return visits <= 1;
}

int first_use(Module *module, const Role *role, const Op *op) {
    if (op_gathers(module, op)) return op->loop_first;
    if (op_crosses_stages(module, op))
        return role->kept[value_storage(op->results[0])->id] ? first_of_part(module, op) : 0;
    if (!op_is_async(module, op)) return op_prefetch_point(module, op)->index;
    const Op *maker = role_maker(module, role, op->operands[0]);
    return !maker ? 0 : one_visit(module, maker) ? maker->index : maker->loop_first;
}

int first_use_of(Module *module, const Role *role, const Value *result, const int *last) {
    const Op *op = result->def;
    int end = last[result->id];
    bool behind = end >= module->ops.count || module->ops.at[end]->loop == LOOP_AFTER;
    if (behind && op->loop == LOOP_EACH && op->stage != STAGE_ALL && !one_visit(module, op))
        return op->loop_first;
    int first = first_use(module, role, op);
    for (int k = 0; op_moves_nothing(op) && k < op->operand_count; k++) {
        const Value *made = value_made_within(op->operands[k], result);
        int begin = made ? first_use(module, role, made->def) : first;
        first = begin < first ? begin : first;
    }
    return first;
}
