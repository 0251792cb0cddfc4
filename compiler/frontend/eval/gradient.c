/* Evaluates gradients: the C function of clause `grad` runs on tensors, once for all equal calls.
 *
 *     loss = nll(logits, t), grad(nll_grad)
 *     nll_grad(op, dloss) ─▶ a Function that returns dlogits, and NULL for t */
#include "frontend/eval/eval.h"

#include "ir/module.h"

#include <string.h>
#include <uthash.h>

/* A cached gradient. Equal calls share a binding (ir_op): definition, attributes and types. */
typedef struct Memo {
    const void *binding;
    const Function *function;
    UT_hash_handle hh;
} Memo;

static bool is_floating(const Value *value) {
    return value && value->type.dtype != DTYPE_I32 && value->type.dtype != DTYPE_I64;
}

/* Returns whether a gradient can flow from floating-point results to operands. */
static bool can_flow(const Op *op) {
    bool in = false, out = false;
    for (int i = 0; i < op->operand_count; i++) in |= is_floating(op->operands[i]);
    for (int i = 0; i < op->result_count; i++) out |= is_floating(op->results[i]);
    return in && out;
}

static Value *argument(Eval *ev, Function *function, const Value *like) {
    Value *value = like ? ir_value(ev->module, VALUE_ARGUMENT, NULL, like->type, like->at) : NULL;
    if (value) value->index = function->params.count;
    array_push(ev->arena, &function->params, value);
    return value;
}

/* Creates an array of absent tensors in the evaluator's memory. */
static Object *tensor_array(Eval *ev, int count, const char *name) {
    return object_create(ev, (count ? count : 1) * ev->unit->types.tensor->size, name);
}

static void set_tensor(Eval *ev, Object *object, int index, Value *value) {
    if (value) tensor_store(ev, (Place){object, index * ev->unit->types.tensor->size}, value);
}

/* The arguments of a gradient: struct ht_grad, and the arrays that it points to. */
typedef struct GradientArguments {
    Object *grad, *dy, *y, *x, *attr, *dx;
} GradientArguments;

void place_set(Eval *ev, const CType *type, Place place, const char *name, Val value) {
    place = place_member(place, type, name, &value.type);
    place_store(ev, place, value);
}

static void store_attribute(Eval *ev, const CType *type, Place place, ParamKind kind,
                            const Attr *attr) {
    if (kind == PARAM_FLOAT) {
        place_set(ev, type, place, "f", val_float(ev->unit->types.tdouble, attr->f));
    } else if (kind != PARAM_SHAPE) {
        place_set(ev, type, place, "i", val_int(ev->unit->types.tlong, attr->i));
    } else {
        place = place_member(place, type, "dims", &type);
        place_set(ev, type, place, "rank", val_int(ev->unit->types.tint, attr->count));
        place = place_member(place, type, "extent", &type);
        if (attr->count)
            memcpy(place.object->bytes + place.offset, attr->ints,
                   sizeof *attr->ints * (size_t)attr->count);
    }
}

static void fill_attributes(Eval *ev, const CType *grad, const Op *op, GradientArguments *given) {
    const CType *type;
    int next = 0;
    place_member((Place){given->grad, 0}, grad, "attr", &type);
    type = type->base;
    given->attr = object_create(ev, (op->def->attr_count + 1) * type->size, "attr");
    for (int i = 0; i < op->def->param_count; i++) {
        ParamKind kind = op->def->params[i].kind;
        if (kind == PARAM_TENSOR || kind == PARAM_TENSORS) continue;
        store_attribute(ev, type, (Place){given->attr, next * type->size}, kind, &op->attrs[next]);
        next++;
    }
}

static void give(Eval *ev, const CType *grad, const Op *op, Function *function,
                 GradientArguments *given) {
    *given = (GradientArguments){.grad = object_create(ev, grad->size, "g"),
                                 .dy = tensor_array(ev, op->result_count, "dy"),
                                 .y = tensor_array(ev, op->result_count, "y"),
                                 .x = tensor_array(ev, op->operand_count, "x"),
                                 .dx = tensor_array(ev, op->operand_count, "dx")};
    for (int i = 0; i < op->result_count; i++)
        set_tensor(ev, given->dy, i, argument(ev, function, op->results[i]));
    for (int i = 0; i < op->result_count; i++)
        set_tensor(ev, given->y, i, argument(ev, function, op->results[i]));
    for (int i = 0; i < op->operand_count; i++)
        set_tensor(ev, given->x, i, argument(ev, function, op->operands[i]));
    fill_attributes(ev, grad, op, given);
    const char *const names[] = {"dy", "y", "x", "dx", "attr"};
    Object *const objects[] = {given->dy, given->y, given->x, given->dx, given->attr};
    for (int i = 0; i < 5; i++)
        place_set(ev, grad, (Place){given->grad, 0}, names[i],
                  (Val){.i = pointer_to((Place){objects[i], 0})});
}

static void release(Eval *ev, const GradientArguments *given) {
    Object *const objects[] = {given->grad, given->dy, given->y, given->x, given->attr, given->dx};
    for (int i = 0; i < 6; i++) object_release(ev, objects[i]);
}

/* Makes the tensors in dx the function's results. Each must have its operand's type, or another
 * floating-point type, which differentiation converts. */
static void take_results(Eval *ev, const Op *op, const CFunction *gradient, Function *function,
                         const GradientArguments *given) {
    for (int i = 0; i < op->operand_count; i++) {
        Value *dx = tensor_load(ev, (Place){given->dx, i * ev->unit->types.tensor->size}, op->at);
        const Value *x = op->operands[i];
        if (dx && !x)
            eval_error(ev, gradient->at, "%s sets dx[%d], but that operand is absent here",
                       gradient->name, i);
        if (dx && x && !type_converts(dx->type, x->type))
            eval_error(ev, gradient->at,
                       "dx[%d] of %s does not have the shape and type of operand %d of %s", i,
                       gradient->name, i, op->def->name);
        array_push(ev->arena, &function->returns, dx);
    }
}

static const CFunction *gradient_function(Eval *ev, const Op *op) {
    const CFunction *function =
        cunit_lookup_beside(ev->unit, op->def, op->def->rule->grad.function).function;
    const CType *grad =
        function && function->params.count == 1 && function->params.at[0]->type->kind == CT_POINTER
            ? function->params.at[0]->type->base
            : NULL;
    if (!function->body) eval_bodiless(ev, op->def->rule->grad.at, function);
    if (!grad || strcmp(grad->name, "struct ht_grad"))
        eval_error(ev, function->at, "a gradient is a function (ht_grad *g)");
    return function;
}

/* State of the evaluator that is saved while a gradient is evaluated. */
typedef struct Saved {
    char *scope;
    const Layer *layer;
    int64_t stream;
    Position user_at;
    const Frame *frames;
} Saved;

static Saved set_aside(Eval *ev) {
    Saved saved = {ev->build.scope, ev->build.layer, ev->build.stream, ev->frame->user_at,
                   ev->frame->frames};
    ev->build.layer = NULL;
    ev->build.scope = "";
    return saved;
}

static void restore(Eval *ev, Saved saved) {
    ev->build.scope = saved.scope;
    ev->build.layer = saved.layer;
    ev->build.stream = saved.stream;
    ev->frame->user_at = saved.user_at;
}

static Function *build(Eval *ev, const Op *op) {
    const CFunction *gradient = gradient_function(ev, op);
    Function *function = arena_new(ev->arena, Function);
    GradientArguments given;
    function->name = arena_string(ev->arena, gradient->name);
    give(ev, gradient->params.at[0]->type->base, op, function, &given);
    Saved saved = set_aside(ev);
    ev->build.gradient = function;
    Val pointer = {.type = gradient->params.at[0]->type, .i = pointer_to((Place){given.grad, 0})};
    call_function(
        ev, &(Call){.function = gradient, .at = op->at, .args = &pointer, .count = 1, .slot = -1});
    ev->build.gradient = NULL;
    restore(ev, saved);
    for (int i = 0; i < function->ops.count; i++) function->ops.at[i]->at = op->at;
    take_results(ev, op, gradient, function, &given);
    release(ev, &given);
    array_push(ev->arena, &ev->module->library->gradients, function);
    return function;
}

const Function *gradient_of(Eval *ev, const Op *op) {
    Memo *memo;
    const char *grad = op->def->rule->grad.function;
    if (!grad || !strcmp(grad, "none") || !can_flow(op)) return NULL;
    HASH_FIND_PTR(ev->build.memo, &op->binding, memo);
    if (memo) return memo->function;
    memo = arena_new(ev->scratch, Memo);
    memo->binding = op->binding;
    memo->function = build(ev, op);
    HASH_ADD_PTR(ev->build.memo, binding, memo);
    return memo->function;
}
