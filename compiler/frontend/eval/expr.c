#include "frontend/eval/eval.h"

#include <string.h>

/* ---- places ---- */

Object *frame_object(Eval *ev, int slot, int64_t size, const char *name)
{
    if (slot < 0 || slot >= ev->frame->slot_count)
        BUG("slot %d of %d", slot, ev->frame->slot_count);
    Object **object = &ev->frame->slots[slot];
    if (*object && (*object)->size != size) {
        object_release(ev, *object);
        *object = NULL;
    }
    if (!*object)
        *object = object_create(ev, size, name);
    return *object;
}

static Object *string_object(Eval *ev, const CExpr *expr)
{
    Object **object = &ev->strings[expr->slot];
    if (!*object) {
        int64_t size = expr->type->kind == CT_ARRAY && expr->type->count ? expr->type->count : expr->length;
        *object = object_create(ev, size, "a string");
        memcpy((*object)->bytes, expr->string, (size_t)(expr->length < size ? expr->length : size));
    }
    return *object;
}

/* The value of an operand as a pointer; an array decays. */
static uint64_t as_pointer(Eval *ev, const CExpr *expr)
{
    if (expr->type->kind == CT_ARRAY)
        return pointer_to(eval_place(ev, expr));
    Val value = eval(ev, expr);
    if (value.unknown)
        eval_error(ev, expr->at, "this pointer is not known at compile time");
    return value.i;
}

static Place member_place(Eval *ev, const CExpr *expr)
{
    Place place;
    if (expr->arrow)
        place = pointer_place(ev, as_pointer(ev, expr->a), expr->a->type->base->size, expr->at);
    else
        place = eval_place(ev, expr->a);
    place.offset += expr->field->offset;
    return place;
}

static Place element_place(Eval *ev, const CExpr *expr)
{
    uint64_t pointer = as_pointer(ev, expr->a);
    Val index = eval(ev, expr->b);
    if (index.unknown)
        eval_error(ev, expr->b->at, "this index is not known at compile time");
    const CType *array = expr->a->kind == C_CAST ? expr->a->a->type : expr->a->type;
    if (array->kind == CT_ARRAY && array->base == expr->type && array->count && index.i >= (uint64_t)array->count)
        eval_error(ev, expr->b->at, "index %lld is outside an array of %lld", (long long)index.i, (long long)array->count);
    return pointer_place(ev, pointer_moved(ev, pointer, (int64_t)index.i * expr->type->size, expr->at), expr->type->size, expr->at);
}

static Place literal_place(Eval *ev, const CExpr *expr)
{
    Place place = {frame_object(ev, expr->slot, expr->type->size, "a compound literal"), 0};
    eval_init(ev, place, expr->type, expr->a);
    return place;
}

Place eval_place(Eval *ev, const CExpr *expr)
{
    switch (expr->kind) {
    case C_VAR: return (Place){eval_variable(ev, expr->var, expr->at), 0};
    case C_MEMBER: return member_place(ev, expr);
    case C_INDEX: return element_place(ev, expr);
    case C_LITERAL: return literal_place(ev, expr);
    case C_STRING: return (Place){string_object(ev, expr), 0};
    case C_UNARY:
        if (expr->op == OP_DEREFERENCE)
            return pointer_place(ev, as_pointer(ev, expr->a), expr->type->size, expr->at);
        break;
    default: break;
    }
    Val value = eval(ev, expr);
    if (value.unknown || (value.type->kind != CT_STRUCT && value.type->kind != CT_ARRAY))
        eval_error(ev, expr->at, "this is not known at compile time");
    return value.place;
}

/* ---- unary and assignments ---- */

static Val one_of(const CType *type, const CTypes *types)
{
    return ctype_is_floating(type) ? val_float(type, 1) : val_int(type->kind == CT_POINTER ? types->tlong : type, 1);
}

/* a op b in the type that C computes it in, converted to the type of a. */
static Val combined(Eval *ev, COperation op, const CType *type, Val a, Val b, Position at)
{
    const CTypes *types = &ev->unit->types;
    if (type->kind == CT_POINTER)
        return val_binary(ev, op, type, a, b, at);
    bool shift = op == OP_SHL || op == OP_SHR;
    const CType *common = shift ? ctype_promoted(types, a.type) : ctype_common(types, a.type, b.type);
    a = val_convert(ev, a, common, at);
    b = val_convert(ev, b, shift ? ctype_promoted(types, b.type) : common, at);
    return val_convert(ev, val_binary(ev, op, common, a, b, at), type, at);
}

static Val increment(Eval *ev, const CExpr *expr)
{
    bool before = expr->op == OP_PRE_INC || expr->op == OP_PRE_DEC, up = expr->op == OP_PRE_INC || expr->op == OP_POST_INC;
    Place place = eval_place(ev, expr->a);
    Val old = place_load(ev, place, expr->a->type, expr->at);
    Val value = combined(ev, up ? OP_ADD : OP_SUB, expr->a->type, old, one_of(expr->a->type, &ev->unit->types), expr->at);
    ev->at = expr->at;
    place_store(ev, place, value);
    return before ? value : old;
}

static Val address(Eval *ev, const CExpr *expr)
{
    if (expr->a->kind == C_FUNCTION)
        return (Val){.type = expr->type, .i = pointer_to_function(expr->a->function)};
    if (expr->a->type->kind == CT_FUNCTION)
        return val_convert(ev, eval(ev, expr->a), expr->type, expr->at);
    return (Val){.type = expr->type, .i = pointer_to(eval_place(ev, expr->a))};
}

static Val negated(Eval *ev, const CExpr *expr)
{
    Val a = eval(ev, expr->a);
    if (a.unknown)
        return val_unknown(expr->type);
    if (expr->op == OP_LOGICAL_NOT)
        return val_int(expr->type, !val_true(ev, a, expr->at));
    a = val_convert(ev, a, expr->type, expr->at);
    if (expr->op == OP_PLUS)
        return a;
    if (ctype_is_floating(expr->type))
        return val_float(expr->type, -a.f);
    if (expr->op == OP_NOT)
        return val_int(expr->type, (int64_t)~a.i);
    return val_binary(ev, OP_SUB, expr->type, val_int(expr->type, 0), a, expr->at);
}

static Val unary(Eval *ev, const CExpr *expr)
{
    switch (expr->op) {
    case OP_PRE_INC:
    case OP_PRE_DEC:
    case OP_POST_INC:
    case OP_POST_DEC: return increment(ev, expr);
    case OP_ADDRESS: return address(ev, expr);
    case OP_DEREFERENCE:
        if (expr->type->kind == CT_FUNCTION)
            return eval(ev, expr->a);
        return place_load(ev, eval_place(ev, expr), expr->type, expr->at);
    default: return negated(ev, expr);
    }
}

void value_name(Value *value, const CExpr *target)
{
    while (target->kind == C_INDEX || target->kind == C_CAST)
        target = target->a;
    const char *name = target->kind == C_VAR ? target->var->name : target->kind == C_MEMBER ? target->name : NULL;
    if (value && name && value->kind == VALUE_RESULT && !value->name)
        value->name = name;
}

static Val assign(Eval *ev, const CExpr *expr)
{
    Val value = eval(ev, expr->b);
    Place place = eval_place(ev, expr->a);
    if (expr->op)
        value = combined(ev, expr->op, expr->type, place_load(ev, place, expr->a->type, expr->at), value, expr->at);
    else
        value = val_convert(ev, value, expr->type, expr->at);
    ev->at = expr->at;
    place_store(ev, place, value);
    if (expr->type->is_tensor && place_known(place, expr->type->size) == KNOWN)
        value_name(tensor_load(ev, place, expr->at), expr->a);
    return value.type->kind == CT_STRUCT ? place_load(ev, place, expr->type, expr->at) : value;
}

/* ---- binary, conditional, conversions ---- */

static Val logical(Eval *ev, const CExpr *expr)
{
    Val a = eval(ev, expr->a);
    bool stops = expr->op == OP_LOGICAL_OR;
    if (!a.unknown && val_true(ev, a, expr->at) == stops)
        return val_int(expr->type, stops);
    Val b = eval(ev, expr->b);
    if (a.unknown || b.unknown)
        return !b.unknown && val_true(ev, b, expr->at) == stops ? val_int(expr->type, stops) : val_unknown(expr->type);
    return val_int(expr->type, val_true(ev, b, expr->at));
}

static Val binary(Eval *ev, const CExpr *expr)
{
    if (expr->op == OP_LOGICAL_AND || expr->op == OP_LOGICAL_OR)
        return logical(ev, expr);
    Val a = eval(ev, expr->a);
    Val b = eval(ev, expr->b);
    return expr->op == OP_COMMA ? b : val_binary(ev, expr->op, expr->type, a, b, expr->at);
}

static Val conditional(Eval *ev, const CExpr *expr)
{
    Val a = eval(ev, expr->a);
    if (a.unknown && ev->lenient && expr->type->kind != CT_STRUCT)
        return val_unknown(expr->type);
    if (val_true(ev, a, expr->a->at))
        return expr->b ? eval(ev, expr->b) : val_convert(ev, a, expr->type, expr->at);
    return eval(ev, expr->c);
}

static Val cast(Eval *ev, const CExpr *expr)
{
    const CType *from = expr->a->type;
    if (from->kind == CT_ARRAY && expr->type->kind == CT_POINTER)
        return (Val){.type = expr->type, .i = pointer_to(eval_place(ev, expr->a))};
    return val_convert(ev, eval(ev, expr->a), expr->type, expr->at);
}

static Val function_value(Eval *ev, const CExpr *expr)
{
    (void)ev;
    return (Val){.type = expr->type, .i = pointer_to_function(expr->function)};
}

/* ({ ... }): the value of the last statement. */
static Val statement_value(Eval *ev, const CExpr *expr)
{
    const CStmt *block = expr->statement;
    Val value = {.type = expr->type};
    for (int i = 0; i < block->body.count; i++) {
        const CStmt *stmt = block->body.at[i];
        if (i + 1 == block->body.count && stmt->kind == CS_EXPR && stmt->expr)
            value = eval(ev, stmt->expr);
        else if (eval_statement(ev, stmt) != FLOW_NEXT)
            eval_error(ev, stmt->at, "a jump out of a statement expression cannot be evaluated");
    }
    if (value.type->kind != CT_STRUCT || value.unknown)
        return value;
    Place kept = {frame_object(ev, expr->slot, expr->type->size, NULL), 0};
    place_copy(ev, kept, value.place, expr->type->size);
    return place_load(ev, kept, expr->type, expr->at);
}

Val eval(Eval *ev, const CExpr *expr)
{
    eval_step(ev);
    ev->at = expr->at;
    switch (expr->kind) {
    case C_INT: return val_int(expr->type, (int64_t)expr->integer);
    case C_FLOAT: return val_float(expr->type, expr->number);
    case C_FUNCTION: return function_value(ev, expr);
    case C_VAR:
    case C_MEMBER:
    case C_INDEX:
    case C_LITERAL:
    case C_STRING: return place_load(ev, eval_place(ev, expr), expr->type, expr->at);
    case C_UNARY: return unary(ev, expr);
    case C_BINARY: return binary(ev, expr);
    case C_ASSIGN: return assign(ev, expr);
    case C_CAST: return cast(ev, expr);
    case C_CALL: return eval_call(ev, expr);
    case C_SELECT: return conditional(ev, expr);
    case C_STATEMENT: return statement_value(ev, expr);
    case C_REFUSED: eval_error(ev, expr->at, "%s cannot be evaluated at compile time", expr->string);
    case C_INIT:
    case C_DESIGNATED: break;
    }
    BUG("an initialiser outside an initialisation");
}
