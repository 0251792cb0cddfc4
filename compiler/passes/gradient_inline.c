/* Gradient functions, copied into the module. */
#include "passes/differentiate.h"

/* Whether the gradient function's return for `operand` is wanted. */
static bool return_wanted(const Differentiator *diff, int operand)
{
    const Op *op = diff->forward;
    return op->operands[operand] && diff->needs[op->operands[operand]->id] && op->gradient->returns.at[operand];
}

/* Marks what the wanted returns depend on; only ids of the function's own values and arguments are touched. */
static void find_wanted(Differentiator *diff)
{
    const Function *function = diff->forward->gradient;
    for (int i = 0; i < function->ops.count; i++)
        for (int k = 0; k < function->ops.at[i]->result_count; k++)
            diff->wanted[function->ops.at[i]->results[k]->id] = false;
    for (int i = 0; i < function->params.count; i++)
        if (function->params.at[i])
            diff->wanted[function->params.at[i]->id] = false;
    for (int i = 0; i < function->returns.count; i++)
        if (return_wanted(diff, i))
            diff->wanted[function->returns.at[i]->id] = true;
    for (int i = function->ops.count - 1; i >= 0; i--) {
        const Op *op = function->ops.at[i];
        bool wanted = false;
        for (int k = 0; k < op->result_count; k++)
            wanted |= diff->wanted[op->results[k]->id];
        for (int k = 0; wanted && k < op->operand_count; k++)
            if (op->operands[k])
                diff->wanted[op->operands[k]->id] = true;
    }
}

/* The gradient of a result; zeros where nothing flows back. */
static Value *gradient_or_zeros(Differentiator *diff, Value *result)
{
    Value *gradient = diff->gradient[result->id];
    if (gradient)
        return gradient;
    gradient = emit_fill(diff, "zeros", result->type, "0");
    gradient->dims = result->dims;
    return gradient;
}

/* Arguments: dy of each result, the results, the operands. */
static void map_arguments(Differentiator *diff)
{
    const Op *op = diff->forward;
    const Function *function = op->gradient;
    for (int i = 0; i < function->params.count; i++) {
        const Value *param = function->params.at[i];
        if (!param || !diff->wanted[param->id])
            continue;
        int result = i - op->result_count, operand = i - 2 * op->result_count;
        diff->mapped[param->id] = result < 0    ? gradient_or_zeros(diff, op->results[i])
                                  : operand < 0 ? op->results[result]
                                                : op->operands[operand];
    }
}

static void copy_op(Differentiator *diff, const Op *op)
{
    Module *module = diff->module;
    const Op *forward = diff->forward;
    Op *copy = arena_copy(module->arena, op, sizeof *op);
    copy->operands = arena_array(module->arena, Value *, op->operand_count + 1);
    copy->results = arena_array(module->arena, Value *, op->result_count);
    copy->section = diff->section;
    copy->at = forward->at;
    copy->frames = forward->frames;
    copy->scope = forward->scope;
    copy->tower = forward->tower;
    copy->layer = forward->layer;
    copy->recompute = false;
    copy->gradient = NULL;
    for (int i = 0; i < op->operand_count; i++)
        copy->operands[i] = op->operands[i] ? diff->mapped[op->operands[i]->id] : NULL;
    for (int i = 0; i < op->result_count; i++) {
        Value *result = ir_value(module, VALUE_RESULT, NULL, op->results[i]->type, forward->at);
        result->dims = op->results[i]->dims;
        result->def = copy;
        result->index = i;
        copy->results[i] = diff->mapped[op->results[i]->id] = result;
    }
    array_push(module->arena, &module->ops, copy);
}

static bool any_wanted(const Differentiator *diff, const Op *op)
{
    for (int k = 0; k < op->result_count; k++)
        if (diff->wanted[op->results[k]->id])
            return true;
    return false;
}

void inline_gradient(Differentiator *diff)
{
    const Op *op = diff->forward;
    const Function *function = op->gradient;
    find_wanted(diff);
    map_arguments(diff);
    for (int i = 0; i < function->ops.count; i++)
        if (any_wanted(diff, function->ops.at[i]))
            copy_op(diff, function->ops.at[i]);
    for (int i = 0; i < op->operand_count; i++)
        if (return_wanted(diff, i))
            add_gradient(diff, op->operands[i], diff->mapped[function->returns.at[i]->id]);
}
