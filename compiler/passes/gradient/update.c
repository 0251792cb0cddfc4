/* The update section. */
#include "passes/gradient/differentiate.h"

#include <string.h>

/* The square of the norm of all gradients together; NULL when there is none. */
static Value *gradient_norm(Differentiator *diff)
{
    Module *module = diff->module;
    const OpDef *square = rule_inserted(module->arena, "square_sum", "n[] = g[i..] * g[i..]");
    Value *norm = NULL;
    for (int i = 0; i < module->params.count; i++) {
        Value *gradient = module->params.at[i]->gradient;
        if (!gradient)
            continue;
        Value *term = emit_op(diff, square, &gradient, 1, NULL);
        norm = norm ? emit_sum(diff, norm, term) : term;
    }
    return norm;
}

/* Whether the optimizer's operator has the form (p, g, states..., ?norm) -> (p, states...). */
static bool check_update(const Module *module)
{
    const Rule *rule = module->update->rule;
    int least = 2 + module->state_count;
    if (rule->result_count == 1 + module->state_count && rule->operand_count >= least + module->clip && rule->operand_count <= least + 1)
        return true;
    diag_error(module->diag, module->update->at,
               "an optimizer of %d states a parameter needs the operands p, g, the states%s, and the results p, the states",
               module->state_count, module->clip ? ", norm" : " and perhaps ?norm");
    return false;
}

/* The arguments: whether weight decay applies, in the operator's first integer argument. */
static const Attr *update_attrs(const Module *module, const Parameter *param)
{
    const OpDef *def = module->update;
    Attr *attrs = arena_array(module->arena, Attr, def->attr_count + 1);
    for (int i = 0, attr = 0; i < def->param_count; i++) {
        ParamKind kind = def->params[i].kind;
        if (kind == PARAM_TENSOR || kind == PARAM_TENSORS)
            continue;
        if (kind == PARAM_INT) {
            attrs[attr].i = !param->no_decay;
            break;
        }
        attr++;
    }
    return attrs;
}

static void make_states(Module *module, Parameter *param)
{
    param->state_count = module->state_count;
    for (int i = 0; i < module->state_count; i++) {
        Value *state =
            ir_value(module, VALUE_STATE, arena_format(module->arena, "%s.%d", param->name, i), param->value->type, param->value->at);
        state->dims = param->value->dims;
        state->index = i;
        param->states[i] = state;
    }
}

static void update_param(Differentiator *diff, Parameter *param, Value *norm)
{
    Module *module = diff->module;
    Value *operands[8] = {param->value, param->gradient};
    int count = 2;
    make_states(module, param);
    for (int i = 0; i < param->state_count; i++)
        operands[count++] = param->states[i];
    if (count < module->update->rule->operand_count)
        operands[count++] = norm;
    const Op *op = emit_op(diff, module->update, operands, count, update_attrs(module, param))->def;
    for (int i = 0; i < op->result_count; i++)
        op->results[i]->dims = param->value->dims;
    param->updated = op->results[0];
    for (int i = 0; i < param->state_count; i++)
        param->states_updated[i] = op->results[1 + i];
}

void insert_updates(Differentiator *diff)
{
    Module *module = diff->module;
    if (!module->update || !check_update(module))
        return;
    diff->section = SECTION_UPDATE;
    diff->forward = &diff->place;
    Value *norm = module->clip ? gradient_norm(diff) : NULL;
    for (int i = 0; i < module->params.count; i++) {
        Parameter *param = module->params.at[i];
        if (!param->gradient)
            continue;
        diff->place = op_place_at(param->value->at);
        update_param(diff, param, norm);
    }
}
