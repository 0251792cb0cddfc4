/* Evaluates optimizer rules: C functions that build each parameter's new value.
 *
 *     sgd(p, g) { return p - rate * g; }   ─▶   update section: %9 = sgd(%p, %g) */
#include "frontend/eval/eval.h"
#include "ir/module.h"

#include <string.h>

/* Appends a placeholder op for a parameter to the update section; returns the op's result. */
static Value *given(Eval *ev, OptimizerPlaceholder kind, Parameter *param) {
    Op *op = ir_op(ev->module, &(OpCall){placeholder_def(ev->module, kind), &param->value, 1, NULL},
                   param->value->at);
    operator_update(ev, op);
    if (op->results[0]->type.rank) op->results[0]->dims = param->value->dims;
    return op->results[0];
}

Value *update_to(Eval *ev, Value *value, Position at) {
    const OpDef *def =
        module_def(ev->module, rule_inserted(ev->arena, "assign", "y[i..] = x[i..]"));
    Op *op = ir_op(ev->module, &(OpCall){def, &value, 1, NULL}, at);
    operator_update(ev, op);
    return op->results[0];
}

static const CType *update_type(Eval *ev, const CFunction *rule, Position at) {
    const CType *type = rule->params.count == 1 && rule->params.at[0]->type->kind == CT_POINTER
                            ? rule->params.at[0]->type->base
                            : NULL;
    if (!rule->body) eval_bodiless(ev, at, rule);
    if (!type || strcmp(type->name, "struct ht_update") || !rule->result->is_tensor)
        eval_error(ev, rule->at,
                   "a rule of an optimizer is a function ht_tensor (const ht_update *u)");
    return type;
}

static void set_tensor(Eval *ev, const CType *type, Place place, const char *name, Value *value) {
    const CType *member;
    if (value) tensor_store(ev, place_member(place, type, name, &member), value);
}

enum { NUMBERS = 8 }; // numeric arguments of an optimizer, for each group of parameters

/* Calls a rule for the parameter `p` and the gradient `g` (NULL: absent). Returns its tensor. */
static Value *call_rule(Eval *ev, const CFunction *rule, Parameter *param, Value *p, Value *g) {
    const CType *type = update_type(ev, rule, param->value->at);
    Object *object = object_create(ev, type->size, "u");
    Place place = {object, 0};
    set_tensor(ev, type, place, "p", p);
    set_tensor(ev, type, place, "g", g);
    set_tensor(ev, type, place, "norm",
               ev->module->optimizer->clip ? given(ev, PLACEHOLDER_NORM, param) : NULL);
    place_set(ev, type, place, "decay", val_int(ev->unit->types.tint, !param->no_decay));
    place_set(ev, type, place, "first", val_int(ev->unit->types.tint, param->group * NUMBERS));
    Val pointer = {.type = rule->params.at[0]->type, .i = pointer_to(place)};
    Val made = call_function(
        ev,
        &(Call){.function = rule, .at = param->value->at, .args = &pointer, .count = 1, .slot = 0});
    object_release(ev, object);
    return tensor_load(ev, made.place, param->value->at);
}

typedef struct UpdateRun {
    Parameter *param;
    const CFunction *rule, *after;
} UpdateRun;

static void check_made(Eval *ev, const UpdateRun *run, const Value *made) {
    if (made && type_equal(made->type, run->param->value->type)) return;
    diag_error(ev->diag, run->param->value->at,
               "the rule %s gives the parameter \"%s\" another shape or type", run->rule->name,
               run->param->name);
    diag_note(ev->diag, run->rule->at, "it is here");
    eval_fail(ev);
}

static void run_update(Eval *ev, void *data) {
    UpdateRun *run = data;
    Parameter *param = run->param;
    Object *slot = NULL;
    EvalFrame frame = {.slots = &slot, .slot_count = 1, .user_at = param->value->at};
    ev->frame = &frame;
    ev->build.updated = param;
    ev->build.scope = arena_string(ev->scratch, param->name);
    if (run->rule) {
        Value *made =
            call_rule(ev, run->rule, param, param->value, given(ev, PLACEHOLDER_GRADIENT, param));
        check_made(ev, run, made);
        param->updated = update_to(ev, made, param->value->at);
        param->updated->dims = param->value->dims;
    }
    if (run->after) call_rule(ev, run->after, param, given(ev, PLACEHOLDER_UPDATED, param), NULL);
    ev->build.scope = "";
    ev->build.updated = NULL;
    ev->frame = NULL;
}

bool eval_update(Eval *ev, Parameter *param, const CFunction *rule, const CFunction *after) {
    return eval_try(ev, run_update, &(UpdateRun){param, rule, after});
}
