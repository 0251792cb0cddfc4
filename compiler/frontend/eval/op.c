/* Evaluates calls of operators: a call of a function with a rule appends an op to the module.
 *
 *     y = ht_matmul(x, w)   ─▶   %3 = matmul(%1, %2), with binding, position and scope */
#include "frontend/eval/eval.h"

#include "ir/module.h"

#include <string.h>
#include <uthash.h>

/* The steps that an operator's call counts as: an endless loop must end before memory is full. */
enum { STEPS_OF_OPERATOR = 200 };

typedef Array(Value *) Values;
typedef Array(const Access *) Accesses;

Position operator_position(const Eval *ev, Position at) {
    return ev->frame->user_at.file ? ev->frame->user_at : at;
}

/* ---- operands and attributes ---- */

static Place argument_place(Eval *ev, const Call *call, int param) {
    if (call->args[param].unknown || !call->args[param].place.object)
        eval_error(ev, call->at, "argument %d of %s is not known at compile time", param + 1,
                   call->function->name);
    return call->args[param].place;
}

static Val field(Eval *ev, const Call *call, Place place, const CType *type, const char *name) {
    const CType *member;
    place = place_member(place, type, name, &member);
    Val value = place_load(ev, place, member, call->at);
    if (value.unknown)
        eval_error(ev, call->at, "an argument of %s is not known at compile time",
                   call->function->name);
    return value;
}

/* Appends the tensors of a list argument to `operands`. */
static void add_list(Eval *ev, const Call *call, int param, Values *operands) {
    const CType *type = call->function->params.at[param]->type;
    Place place = argument_place(ev, call, param);
    int count = (int)field(ev, call, place, type, "count").i;
    uint64_t at = field(ev, call, place, type, "at").i;
    int64_t size = ev->unit->types.tensor->size;
    for (int i = 0; i < count; i++)
        array_push(ev->scratch, operands,
                   tensor_load(
                       ev,
                       pointer_place(ev, pointer_moved(ev, at, i * size, call->at), size, call->at),
                       call->at));
}

/* Reads the operands of a call; accesses[i] becomes the rule's description of operands[i]. */
static void read_operands(Eval *ev, const Call *call, Values *operands, Accesses *accesses) {
    const COperator *op = call->function->op;
    for (int k = 0; k < op->def->rule->operand_count; k++) {
        int param = op->operand_param[k];
        if (op->def->params[param].kind == PARAM_TENSORS) add_list(ev, call, param, operands);
        else
            array_push(ev->scratch, operands,
                       tensor_load(ev, argument_place(ev, call, param), call->at));
        while (accesses->count < operands->count)
            array_push(ev->scratch, accesses, &op->def->rule->operands[k]);
    }
}

static Attr shape_attribute(Eval *ev, const Call *call, int param) {
    const CType *type = call->function->params.at[param]->type, *extents;
    Place place = argument_place(ev, call, param);
    Attr attr = {.count = (int)field(ev, call, place, type, "rank").i};
    if (attr.count < 0 || attr.count > IR_MAX_RANK)
        eval_error(ev, call->at, "a shape of %d dimensions; at most %d are allowed", attr.count,
                   IR_MAX_RANK);
    int64_t *ints = arena_array(ev->arena, int64_t, attr.count);
    place = place_member(place, type, "extent", &extents);
    if (place_known(place, attr.count * 8) != KNOWN)
        eval_error(ev, call->at, "a shape is not known at compile time");
    memory_read(ev, place, attr.count * 8, call->at);
    memcpy(ints, place.object->bytes + place.offset, sizeof *ints * (size_t)attr.count);
    attr.ints = ints;
    return attr;
}

static Attr attribute(Eval *ev, const Call *call, int param) {
    ParamKind kind = call->function->op->def->params[param].kind;
    if (kind == PARAM_SHAPE) return shape_attribute(ev, call, param);
    Val value = call_argument(ev, call, param);
    if (kind == PARAM_DTYPE && value.i >= DTYPE_COUNT)
        eval_error(ev, call->at, "%lld is no ht_dtype", (long long)value.i);
    return kind == PARAM_FLOAT ? (Attr){.f = value.f} : (Attr){.i = (int64_t)value.i};
}

/* ---- making the op ---- */

/* Sets an op's section, and the call stack and scope of its source; returns the OpSource. */
static OpSource *operator_place(Eval *ev, Op *op, Section section) {
    OpSource *source = op_change_source(ev->arena, op);
    source->frames = ev->frame->frames;
    source->scope = *ev->build.scope ? arena_string(ev->arena, ev->build.scope) : NULL;
    op->section = section;
    return source;
}

void operator_update(Eval *ev, Op *op) {
    operator_place(ev, op, SECTION_UPDATE);
    array_push(ev->arena, &ev->build.updates, op);
}

void operator_emit(Eval *ev, Op *op) {
    eval_steps(ev, STEPS_OF_OPERATOR);
    if (ev->build.updated) {
        operator_update(ev, op);
        return;
    }
    OpSource *source = operator_place(ev, op, SECTION_FORWARD);
    source->layer = ev->build.layer;
    source->recompute = ev->build.recompute;
    if (ev->build.gradient) {
        array_push(ev->arena, &ev->build.gradient->ops, op);
        return;
    }
    array_push(ev->arena, &ev->module->ops, op);
    if (ev->module->kind == MODULE_TRAIN) op->gradient = gradient_of(ev, op);
}

static Val store_results(Eval *ev, const Call *call, Op *op) {
    Place place = {call_result(ev, call), 0};
    const CType *type = call->function->result;
    if (type->is_tensor) tensor_store(ev, place, op->results[0]);
    else
        for (int i = 0; i < op->result_count; i++)
            tensor_store(ev, (Place){place.object, type->fields.at[i].offset}, op->results[i]);
    return (Val){.type = type, .place = place};
}

static void check_module(Eval *ev, const Call *call) {
    if (!ev->module)
        eval_error(ev, call->at, "%s is an operator; it can be called in a model function only",
                   call->function->name);
}

/* Declares in the module the operator `name`, which a rule's clause names; NULL: does nothing. */
static void add_named(Eval *ev, const Call *call, const char *clause, const char *name) {
    const CFunction *named =
        name ? cunit_lookup_beside(ev->unit, call->function->op->def, name).function : NULL;
    if (named && named->op) {
        module_def(ev->module, named->op->def);
    } else if (name) {
        diag_error(ev->diag, call->function->op->def->at, "\"%s\" in the clause %s is no operator",
                   name, clause);
        eval_fail(ev);
    }
}

/* Declares in the module the operator of a clause `merge`, and checks it on two results of `op`. */
static void add_joiner(Eval *ev, const Op *op, const Factor *factor) {
    const CFunction *function = cunit_lookup_beside(ev->unit, op->def, factor->merge).function;
    if (!function || !function->op)
        eval_error(ev, op->at, "\"%s\" in the clause merge of %s is no operator", factor->merge,
                   op->def->name);
    Value *operands[2 * IR_MAX_RESULTS];
    Type types[IR_MAX_RESULTS];
    for (int k = 0; k < 2 * op->result_count; k++) operands[k] = op->results[k % op->result_count];
    const OpDef *joiner = module_def(ev->module, function->op->def);
    if (!ir_bind(ev->arena, ev->diag, op->at,
                 &(OpCall){joiner, operands, 2 * op->result_count, NULL}, types))
        eval_fail(ev);
    for (int k = 0; k < op->result_count; k++)
        if (!type_equal(types[k], op->results[k]->type))
            eval_error(ev, op->at,
                       "%s joins results of %s, but what it gives as %s has another type",
                       factor->merge, op->def->name, op->def->rule->results[k].name);
}

static void add_joiners(Eval *ev, const Op *op) {
    const Rule *rule = op->def->rule;
    for (int f = 0; f < rule->factor_count; f++)
        if (rule->factors[f].merge) add_joiner(ev, op, &rule->factors[f]);
}

/* ---- bf16 combined with f32 ---- */

static bool is_open(const Value *value, const Access *access) {
    return value && access->element.kind == ELEMENT_FOLLOWS;
}

/* Returns whether the operands that must have one type have two: bf16 and f32. */
static bool mixes_floats(const OpDef *def, const Values *operands, const Accesses *accesses) {
    unsigned types = 0;
    for (int k = 0; k < operands->count; k++)
        if (is_open(operands->at[k], accesses->at[k])) types |= 1u << operands->at[k]->type.dtype;
    return types == (1u << DTYPE_F32 | 1u << DTYPE_BF16) && rule_of_one_type(def->rule);
}

/* Converts the bf16 operands to f32 where an operator combines bf16 with f32. */
static void promote(Eval *ev, const Call *call, const OpDef *def, Values *operands,
                    const Accesses *accesses) {
    if (!mixes_floats(def, operands, accesses)) return;
    const OpDef *convert = module_def(ev->module, rule_convert(ev->arena, DTYPE_F32));
    for (int k = 0; k < operands->count; k++) {
        Value *value = operands->at[k];
        if (!is_open(value, accesses->at[k]) || value->type.dtype != DTYPE_BF16) continue;
        Op *op =
            ir_op(ev->module, &(OpCall){convert, &value, 1, NULL}, operator_position(ev, call->at));
        op->results[0]->name = value->name;
        operator_emit(ev, op);
        operands->at[k] = op->results[0];
    }
}

Val operator_call(Eval *ev, const Call *call) {
    const OpDef *def = call->function->op->def;
    Values operands = {0};
    Accesses accesses = {0};
    check_module(ev, call);
    if (call->count < call->function->params.count)
        eval_error(ev, call->at, "%s is called with too few arguments", call->function->name);
    read_operands(ev, call, &operands, &accesses);
    Attr *attrs = arena_array(ev->scratch, Attr, def->attr_count + 1);
    for (int i = 0; i < def->attr_count; i++)
        attrs[i] = attribute(ev, call, call->function->op->attr_param[i]);
    promote(ev, call, def, &operands, &accesses);
    Ops joins = {0};
    if (!ir_join(ev->module, &(OpCall){def, operands.at, operands.count, attrs},
                 operator_position(ev, call->at), &joins))
        eval_fail(ev);
    Op *op = joins.at[joins.count - 1];
    add_named(ev, call, "tiles", def->rule->tiles.op);
    add_named(ev, call, "with", def->rule->with.op);
    add_named(ev, call, "with", def->rule->with.whole);
    add_joiners(ev, op);
    for (int i = 0; i < joins.count; i++) operator_emit(ev, joins.at[i]);
    return store_results(ev, call, op);
}
