#include "passes/sums.h"

/* Returns whether the operator adds two tensors of its result's type. */
static bool is_sum(const Op *op) {
    bool sum = rule_is_sum(op->def->rule);
    for (int k = 0; sum && k < 2; k++)
        sum = op->operands[k] && type_equal(op->operands[k]->type, op->results[0]->type);
    return sum;
}

Sums sums_of(Arena *arena, Module *module) {
    Sums sums = {module, arena, arena_array(arena, Op *, module->next_id)};
    int *uses = arena_array(arena, int, module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            if (module->ops.at[i]->operands[k]) uses[module->ops.at[i]->operands[k]->id]++;
    for (int i = 0; i < module->outputs.count; i++) uses[module->outputs.at[i].value->id]++;
    for (int i = 0; i < module->params.count; i++)
        if (module->params.at[i]->gradient) uses[module->params.at[i]->gradient->id]++;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; is_sum(module->ops.at[i]) && k < 2; k++)
            if (uses[module->ops.at[i]->operands[k]->id] == 1)
                sums.sum_of[module->ops.at[i]->operands[k]->id] = module->ops.at[i];
    return sums;
}

bool is_outer_sum(const Sums *sums, const Op *op) {
    return is_sum(op) && !sums->sum_of[op->results[0]->id];
}

void sum_terms(const Sums *sums, const Op *sum, Values *terms) {
    for (int k = 0; k < 2; k++) {
        Value *value = sum->operands[k];
        if (value->def && sums->sum_of[value->id] == sum && is_sum(value->def))
            sum_terms(sums, value->def, terms);
        else array_push(sums->arena, terms, value);
    }
}
