/* Adds the update section.
 *
 *     n = square_sum(dw) + square_sum(db)      squared norm (gradient_norm.c), if clipping or the
 *                                              user needs it
 *     w', m', v' = adamw(w, dw, m, v, n)       for each trained parameter
 */
#include "passes/differentiate/differentiate.h"

#include "ir/module.h"
#include "hetu/rt.h"

/* Reports an optimizer that is not (p, g, states..., ?norm) -> (p, states...). False: it is not. */
static bool check_update(const Module *module) {
    const Rule *rule = module->optimizer->op->rule;
    int least = 2 + module->optimizer->state_count;
    if (rule->result_count == 1 + module->optimizer->state_count &&
        rule->operand_count >= least + module->optimizer->clip && rule->operand_count <= least + 1)
        return true;
    diag_error(module->diag, module->optimizer->op->at,
               "an optimizer of %d states a parameter needs the operands p, g, the states%s, and "
               "the results p, the states",
               module->optimizer->state_count,
               module->optimizer->clip ? ", norm" : " and perhaps ?norm");
    return false;
}

enum { NUMBERS = 8 }; // numbers (learning rate, ...) of each parameter group

/* Returns the arguments of an update. The first integer argument says whether weight decay applies,
 * the second is the index of the parameter group's first number. */
static const Attr *update_attrs(const Module *module, const Parameter *param) {
    const OpDef *def = module->optimizer->op;
    Attr *attrs = arena_array(module->arena, Attr, def->attr_count + 1);
    const int64_t given[] = {!param->no_decay, (int64_t)param->group * NUMBERS};
    for (int i = 0, attr = 0, integers = 0; i < def->param_count; i++) {
        ParamKind kind = def->params[i].kind;
        if (kind == PARAM_INT && integers < 2) attrs[attr].i = given[integers++];
        attr += kind != PARAM_TENSOR && kind != PARAM_TENSORS;
    }
    return attrs;
}

static void make_states(Module *module, Parameter *param) {
    param->state_count = module->optimizer->state_count;
    for (int i = 0; i < module->optimizer->state_count; i++) {
        Value *state =
            ir_value(module, VALUE_STATE, arena_format(module->arena, "%s.%d", param->name, i),
                     param->value->type, param->value->at);
        state->dims = param->value->dims;
        state->index = i;
        param->states[i] = state;
    }
}

static void update_param(Differentiator *diff, Parameter *param, Value *norm) {
    Module *module = diff->module;
    Value *operands[8] = {param->value, param->gradient};
    int count = 2;
    make_states(module, param);
    for (int i = 0; i < param->state_count; i++) operands[count++] = param->states[i];
    if (count < module->optimizer->op->rule->operand_count) operands[count++] = norm;
    const Op *op =
        emit_op(diff, module->optimizer->op, operands, count, update_attrs(module, param))->def;
    for (int i = 0; i < op->result_count; i++) op->results[i]->dims = param->value->dims;
    param->updated = op->results[0];
    for (int i = 0; i < param->state_count; i++) param->states_updated[i] = op->results[1 + i];
}

/* Adds the optimizer's operator for each parameter with a gradient and no rule of its own. */
static void update_params(Differentiator *diff) {
    Module *module = diff->module;
    for (int i = 0; module->optimizer->op && i < module->params.count; i++) {
        Parameter *param = module->params.at[i];
        if (!param->gradient || param->updated) continue;
        diff->place = op_place_at(param->value->at);
        update_param(diff, param, diff->norm);
    }
}

/* Returns whether an operator is a placeholder, and sets *value: its replacement; NULL: missing. */
static bool find_given(const Differentiator *diff, const OpDef *const *given, const Op *op,
                       Value **value) {
    const Parameter *param =
        op->operand_count && op->operands[0] && op->operands[0]->kind == VALUE_PARAM
            ? diff->module->params.at[op->operands[0]->index]
            : NULL;
    if (!param || (op->def != given[PLACEHOLDER_GRADIENT] && op->def != given[PLACEHOLDER_NORM] &&
                   op->def != given[PLACEHOLDER_UPDATED]))
        return false;
    *value = op->def == given[PLACEHOLDER_GRADIENT] ? param->gradient
             : op->def == given[PLACEHOLDER_NORM]   ? diff->norm
             : param->updated                       ? param->updated
                                                    : param->value;
    return true;
}

/* Replaces placeholders among the operands. Returns false if an operand is missing. */
static bool take_operands(Op *op, Value **stands, const bool *missing) {
    for (int k = 0; k < op->operand_count; k++) {
        if (!op->operands[k]) continue;
        if (missing[op->operands[k]->id]) return false;
        if (stands[op->operands[k]->id]) op->operands[k] = stands[op->operands[k]->id];
    }
    return true;
}

static void insert_rules(Differentiator *diff, const Ops *rules) {
    Module *module = diff->module;
    Value **stands = arena_array(module->arena, Value *, module->next_id);
    bool *missing = arena_array(module->arena, bool, module->next_id);
    const OpDef *given[PLACEHOLDER_COUNT];
    for (int g = 0; g < PLACEHOLDER_COUNT && rules->count; g++)
        given[g] = placeholder_def(module, (OptimizerPlaceholder)g);
    // operators in order, so that a missing value also removes the operators that depend on it
    for (int i = 0; i < rules->count; i++) {
        Op *op = rules->at[i];
        bool stood = find_given(diff, given, op, &stands[op->results[0]->id]);
        bool there =
            stood ? stands[op->results[0]->id] != NULL : take_operands(op, stands, missing);
        for (int r = 0; r < op->result_count; r++) missing[op->results[r]->id] = !there;
        for (int p = 0; !there && p < module->params.count; p++)
            if (module->params.at[p]->updated == op->results[0])
                module->params.at[p]->updated = NULL;
        if (there && !stood) array_push(module->arena, &module->ops, op);
    }
}

void insert_updates(Differentiator *diff, const Ops *rules) {
    Module *module = diff->module;
    if (module->optimizer->op && !check_update(module)) return;
    diff->section = SECTION_UPDATE;
    diff->forward = &diff->place;
    Value *norm = module->optimizer->clip || module->optimizer->norm ? gradient_norm(diff) : NULL;
    diff->norm = module->optimizer->clip ? norm : NULL;
    if (module->optimizer->norm) { // the norm is 0 if there are no gradients
        Value *square = norm ? norm : emit_fill(diff, "zeros", (Type){.dtype = DTYPE_F32}, 0);
        array_push(module->arena, &module->outputs, (Output){HT_GRADIENT_NORM, square});
    }
    update_params(diff);
    insert_rules(diff, rules);
}
