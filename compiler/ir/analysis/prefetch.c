/* Prefetch under `zero 3` (FSDP): finds where the all-gather of a layer's parameters begins, to
 * overlap with the preceding layer (async_collectives.h). passes/propagate_layouts (end_layer)
 * decides where gathered copies are dropped, to be gathered again for backward. */
#include "ir/analysis/async_collectives.h"

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"

/* Returns whether a value is a parameter, or made of one by unary operators, such as a cast. */
static bool is_of_parameter(const Value *value) {
    while (value->def && value->def->operand_count == 1 && value->def->operands[0])
        value = value->def->operands[0];
    return value->kind == VALUE_PARAM;
}

/* Returns whether a conversion gathers a parameter for readers in its phase and may begin early. */
static bool may_begin_ahead(const Module *module, const Op *op) {
    return module->devices->target.overlap && op->convert.plan && op->source->layer &&
           phase_loops(op_phase(module, op)) && !op_crosses_stages(module, op) &&
           is_of_parameter(op->operands[0]) && !plan_nothing(op->convert.plan->plan);
}

/* Returns the index of the first operator of a layer in the phase of `op`. Where two layers meet,
 * their operators may be interleaved. */
static int first_of_layer(const Module *module, const Op *op, const Layer *layer) {
    int first = op->index;
    for (int i = op->index; i >= 0 && same_phase(module, module->ops.at[i], op); i--)
        if (module->ops.at[i]->source->layer == layer) first = i;
    return first;
}

const Op *op_prefetch_point(const Module *module, const Op *op) {
    if (!may_begin_ahead(module, op)) return op;
    const Op *maker = op->operands[0]->def;
    // go to the preceding layer, if the phase has one
    int first = first_of_layer(module, op, op->source->layer);
    if (first && same_phase(module, module->ops.at[first - 1], op))
        first = first_of_layer(module, module->ops.at[first - 1],
                               module->ops.at[first - 1]->source->layer);
    // begin after the operand is made
    if (maker && maker->index >= first && same_phase(module, maker, op)) first = maker->index + 1;
    return module->ops.at[first];
}
