#include "ir/analysis/prefetch.h"

#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"

/* Whether a value is a parameter, or what single operands make of one on their way: another element
 * type, another shape. */
static bool is_given(const Value *value) {
    while (value->def && value->def->operand_count == 1 && value->def->operands[0])
        value = value->def->operands[0];
    return value->kind == VALUE_PARAM;
}

/* Whether a conversion gives what is given, or a part of it, to its readers in the part. */
static bool may_begin_ahead(const Module *module, const Op *op) {
    return module->devices->target.overlap && op->convert.plan && op->source->layer &&
           phase_loops(op_phase(module, op)) && !op_crosses_stages(module, op) &&
           is_given(op->operands[0]) && !plan_nothing(op->convert.plan->plan);
}

/* The first operator of `op`'s part that belongs to a layer; operators of two layers may stand
 * mixed where these meet. */
static int first_of_layer(const Module *module, const Op *op, const Layer *layer) {
    int first = op->index;
    for (int i = op->index; i >= 0 && same_phase(module, module->ops.at[i], op); i--)
        if (module->ops.at[i]->source->layer == layer) first = i;
    return first;
}

const Op *op_prefetch_point(const Module *module, const Op *op) {
    if (!may_begin_ahead(module, op)) return op;
    const Op *maker = op->operands[0]->def;
    int first = first_of_layer(module, op, op->source->layer);
    if (first && same_phase(module, module->ops.at[first - 1], op))
        first = first_of_layer(module, module->ops.at[first - 1],
                               module->ops.at[first - 1]->source->layer);
    if (maker && maker->index >= first && same_phase(module, maker, op)) first = maker->index + 1;
    return module->ops.at[first];
}
