/* Evaluates expressions, so that constants fold: lvalues, assignments, conversions. number.c has
 * operators on numbers, order.c the order of operands. */
#include "frontend/eval/eval.h"
#include "ir/module.h"

#include <string.h>

static bool is_number(const CExpr *expr) { return expr->kind == C_INT || expr->kind == C_FLOAT; }

/* Returns whether operands may conflict: one has side effects, and none is a number. */
static bool may_conflict(const CExpr *a, const CExpr *b) {
    return !is_number(a) && !is_number(b) &&
           (order_effects(a) > EFFECTS_NONE || order_effects(b) > EFFECTS_NONE);
}

/* ---- lvalues ---- */

Object *frame_object(Eval *ev, int slot, int64_t size, const char *name) {
    if (slot < 0 || slot >= ev->frame->slot_count)
        BUG("slot %d of %d", slot, ev->frame->slot_count);
    Object **object = &ev->frame->slots[slot];
    if (*object && (*object)->size != size) {
        object_release(ev, *object);
        *object = NULL;
    }
    if (!*object) *object = object_create(ev, size, name);
    return *object;
}

static Object *string_object(Eval *ev, const CExpr *expr) {
    Object **object = &ev->heap.strings[expr->slot];
    if (!*object) {
        int64_t size = expr->type->kind == CT_ARRAY && expr->type->count ? expr->type->count
                                                                         : expr->text.length;
        *object = object_create(ev, size, "a string");
        memcpy((*object)->bytes, expr->text.bytes,
               (size_t)(expr->text.length < size ? expr->text.length : size));
        (*object)->constant = (*object)->literal = true;
    }
    return *object;
}

static uint64_t eval_address(Eval *ev, const CExpr *expr);

/* Returns the value of an operand as a pointer; an array decays. */
static Val pointer_value(Eval *ev, const CExpr *expr) {
    return expr->type->kind == CT_ARRAY ? (Val){.i = eval_address(ev, expr)} : eval(ev, expr);
}

/* Returns the address of a value of this type that is known at run time only, such as argv[1] in
 * the arguments of ht_train. The value can be read, not written. */
static uint64_t run_time_address(Eval *ev, const CType *type) {
    Place place = {object_create(ev, type->size, "a value of run time"), 0};
    place_mark(ev, place, type->size, UNKNOWN);
    place.object->constant = true;
    return pointer_to(place);
}

static uint64_t known_pointer(Eval *ev, Val value, Position at) {
    if (value.unknown) eval_error(ev, at, "this pointer is not known at compile time");
    return value.i;
}

/* Returns the size of a pointer's target, or of an array's element. */
static int64_t size_of_step(Eval *ev, const CType *type, Position at) {
    if (!type->size && (type->variable || type->kind != CT_STRUCT))
        eval_error(ev, at,
                   "the size of %s is not constant, so that arrays and pointers of it cannot be "
                   "evaluated at compile time",
                   type->name);
    return type->size;
}

/* Returns an element's address. `whole`: the element is not read, and may be one past the last. */
static uint64_t element_address(Eval *ev, const CExpr *expr, bool whole) {
    const CType *array = expr->a->kind == C_CAST ? expr->a->a->type : expr->a->type;
    bool ordered = may_conflict(expr->a, expr->b);
    Order order = ordered ? order_begin(ev) : (Order){0};
    Val pointer = pointer_value(ev, expr->a);
    if (ordered) order_next(ev, &order, expr->at, false);
    Val index = eval(ev, expr->b);
    if (ordered) order_end(ev, &order, expr->at, false);
    if (ev->lenient && (pointer.unknown || index.unknown)) return run_time_address(ev, expr->type);
    if (index.unknown) eval_error(ev, expr->b->at, "this index is not known at compile time");
    bool counted = array->kind == CT_ARRAY && array->base == expr->type && array->count;
    if (counted && index.i >= (uint64_t)array->count + whole)
        eval_error(ev, expr->b->at, "index %lld is outside an array of %lld", (long long)index.i,
                   (long long)array->count);
    return pointer_moved(ev, known_pointer(ev, pointer, expr->a->at),
                         (int64_t)index.i * size_of_step(ev, expr->type, expr->at), expr->at);
}

static uint64_t member_address(Eval *ev, const CExpr *expr) {
    Val value =
        expr->member.arrow ? pointer_value(ev, expr->a) : (Val){.i = eval_address(ev, expr->a)};
    if (ev->lenient && value.unknown) return run_time_address(ev, expr->type);
    uint64_t record = known_pointer(ev, value, expr->a->at);
    if (!record) eval_error(ev, expr->at, "a null pointer is followed");
    return pointer_moved(ev, record, expr->member.field->offset, expr->at);
}

/* Returns the address to which a dereferenced pointer points. */
static uint64_t target_address(Eval *ev, const CExpr *expr) {
    Val value = pointer_value(ev, expr->a);
    if (ev->lenient && value.unknown && expr->type->size) return run_time_address(ev, expr->type);
    return known_pointer(ev, value, expr->a->at);
}

/* Returns the address of an lvalue; `whole` is that of element_address. */
static uint64_t address_of(Eval *ev, const CExpr *expr, bool whole) {
    if (expr->kind == C_INDEX) return element_address(ev, expr, whole);
    if (expr->kind == C_MEMBER) return member_address(ev, expr);
    if (expr->kind == C_UNARY && expr->op == OP_DEREFERENCE) return target_address(ev, expr);
    return pointer_to(eval_place(ev, expr));
}

static uint64_t eval_address(Eval *ev, const CExpr *expr) { return address_of(ev, expr, true); }

static Place literal_place(Eval *ev, const CExpr *expr) {
    Place place = {frame_object(ev, expr->slot, expr->type->size, "a compound literal"), 0};
    eval_init(ev, place, expr->type, expr->a);
    return place;
}

/* Returns the number of bytes that a load or store of an lvalue accesses. */
static int64_t accessed_size(const CExpr *expr) {
    const CField *field = expr->kind == C_MEMBER ? expr->member.field : NULL;
    return field && field->width ? (field->bit + field->width + 7) / 8 : expr->type->size;
}

Place eval_place(Eval *ev, const CExpr *expr) {
    switch (expr->kind) {
    case C_VAR: return (Place){eval_variable(ev, expr->var, expr->at), 0};
    case C_MEMBER:
        if (!expr->member.arrow) {
            Place place = eval_place(ev, expr->a);
            return (Place){place.object, place.offset + expr->member.field->offset};
        }
        return pointer_place(ev, member_address(ev, expr), accessed_size(expr), expr->at);
    case C_INDEX:
        return pointer_place(ev, address_of(ev, expr, false), accessed_size(expr), expr->at);
    case C_LITERAL: return literal_place(ev, expr);
    case C_STRING: return (Place){string_object(ev, expr), 0};
    case C_UNARY:
        if (expr->op == OP_DEREFERENCE)
            return pointer_place(ev, target_address(ev, expr), expr->type->size, expr->at);
        break;
    default: break;
    }
    Val value = eval(ev, expr);
    if (value.unknown || (value.type->kind != CT_STRUCT && value.type->kind != CT_ARRAY))
        eval_error(ev, expr->at, "this is not known at compile time");
    return value.place;
}

/* ---- unary and assignments ---- */

static Val one_of(const CType *type, const CTypes *types) {
    return ctype_is_floating(type) ? val_float(type, 1)
                                   : val_int(type->kind == CT_POINTER ? types->tlong : type, 1);
}

/* Computes a op b in the type that C's conversions give, converted to the type of a. */
static Val combined(Eval *ev, Binary e) {
    const CTypes *types = &ev->unit->types;
    const CType *type = e.type;
    if (type->kind == CT_POINTER) return val_binary(ev, &e);
    bool shift = e.op == OP_SHL || e.op == OP_SHR;
    e.type = shift ? ctype_promoted(types, e.a.type) : ctype_common(types, e.a.type, e.b.type);
    e.a = val_convert(ev, e.a, e.type, e.at);
    e.b = val_convert(ev, e.b, shift ? ctype_promoted(types, e.b.type) : e.type, e.at);
    return val_convert(ev, val_binary(ev, &e), type, e.at);
}

/* Returns the bit-field that an expression names; NULL when it names none. */
static const CField *bit_field(const CExpr *expr) {
    return expr->kind == C_MEMBER && expr->member.field->width ? expr->member.field : NULL;
}

static Val load(Eval *ev, const CExpr *expr, Place place) {
    const CField *field = bit_field(expr);
    return field ? place_load_bits(ev, place, field, expr->type, expr->at)
                 : place_load(ev, place, expr->type, expr->at);
}

/* Stores a value of an lvalue's type; returns the value that the lvalue then has. */
static Val store(Eval *ev, const CExpr *expr, Place place, Val value, Position at) {
    const CField *field = bit_field(expr);
    ev->at = at;
    if (!field) {
        place_store(ev, place, value);
        value.literal = false;
        return value;
    }
    place_store_bits(ev, place, field, value);
    return place_load_bits(ev, place, field, expr->type, at);
}

/* Promotes a value as the operand of an operator: bit-fields that fit int become int. */
static Val operand(Eval *ev, const CExpr *expr, Val value) {
    const CField *field = bit_field(expr);
    const CTypes *types = &ev->unit->types;
    bool fits = field && (field->width < 32 || (field->width == 32 && value.type->is_signed));
    return fits ? val_convert(ev, value, types->tint, expr->at) : value;
}

static Val increment(Eval *ev, const CExpr *expr) {
    bool before = expr->op == OP_PRE_INC || expr->op == OP_PRE_DEC,
         up = expr->op == OP_PRE_INC || expr->op == OP_POST_INC;
    Place place = eval_place(ev, expr->a);
    Val old = load(ev, expr->a, place), one = one_of(expr->a->type, &ev->unit->types);
    Val value = combined(ev, (Binary){up ? OP_ADD : OP_SUB, expr->a->type,
                                      operand(ev, expr->a, old), one, expr->at});
    value = store(ev, expr->a, place, value, expr->at);
    return before ? value : old;
}

static Val address(Eval *ev, const CExpr *expr) {
    if (expr->a->kind == C_FUNCTION)
        return (Val){.type = expr->type, .i = pointer_to_function(expr->a->function)};
    if (expr->a->type->kind == CT_FUNCTION)
        return val_convert(ev, eval(ev, expr->a), expr->type, expr->at);
    return (Val){.type = expr->type, .i = eval_address(ev, expr->a)};
}

static Val negated(Eval *ev, const CExpr *expr) {
    Val a = eval(ev, expr->a);
    if (a.unknown) return val_unknown(expr->type);
    if (expr->op == OP_LOGICAL_NOT) return val_int(expr->type, !val_true(ev, a, expr->at));
    a = val_convert(ev, a, expr->type, expr->at);
    if (expr->op == OP_PLUS) return a;
    if (ctype_is_floating(expr->type) && expr->op == OP_MINUS) {
        rounding_negated(ev, a);
        Val value = val_float(expr->type, -a.f);
        value.literal = a.literal;
        return value;
    }
    Val value =
        expr->op == OP_NOT
            ? val_int(expr->type, (int64_t)~a.i)
            : val_binary(ev, &(Binary){OP_SUB, expr->type, val_int(expr->type, 0), a, expr->at});
    value.literal = a.literal;
    return value;
}

static Val unary(Eval *ev, const CExpr *expr) {
    switch (expr->op) {
    case OP_PRE_INC:
    case OP_PRE_DEC:
    case OP_POST_INC:
    case OP_POST_DEC: return increment(ev, expr);
    case OP_ADDRESS: return address(ev, expr);
    case OP_SIZEOF:
        return ev->frame->lenient ? val_unknown(expr->type)
                                  : val_int(expr->type, eval_place(ev, expr->a).object->size);
    case OP_DEREFERENCE:
        if (expr->type->kind == CT_FUNCTION) return eval(ev, expr->a);
        return place_load(ev, eval_place(ev, expr), expr->type, expr->at);
    default: return negated(ev, expr);
    }
}

void value_name(Value *value, const CExpr *target) {
    while (target->kind == C_INDEX || target->kind == C_CAST) target = target->a;
    const char *name = target->kind == C_VAR      ? target->var->name
                       : target->kind == C_MEMBER ? target->member.name
                                                  : NULL;
    if (value && name && value->kind == VALUE_RESULT && !value->name) value->name = name;
}

/* Returns whether an lvalue is a variable or a member of one. */
static bool is_fixed(const CExpr *expr) {
    while (expr->kind == C_MEMBER && !expr->member.arrow) expr = expr->a;
    return expr->kind == C_VAR;
}

static Val assign(Eval *ev, const CExpr *expr) {
    bool ordered = !is_fixed(expr->a) && may_conflict(expr->a, expr->b);
    bool known = !expr->op && expr->b->kind == C_CALL && order_effects(expr->a) <= EFFECTS_CALLS &&
                 order_effects(expr->b) == EFFECTS_CALLS;
    Order order = ordered ? order_begin(ev) : (Order){0};
    Place place = eval_place(ev, expr->a); // before the value, as gcc does
    if (ordered) order_next(ev, &order, expr->at, known);
    Val value = eval(ev, expr->b);
    if (ordered) order_end(ev, &order, expr->at, known);
    if (expr->op)
        value =
            combined(ev, (Binary){expr->op, expr->type,
                                  operand(ev, expr->a, load(ev, expr->a, place)), value, expr->at});
    else value = val_convert(ev, value, expr->type, expr->at);
    value = store(ev, expr->a, place, value, expr->at);
    if (expr->type->is_tensor && place_known(place, expr->type->size) == KNOWN)
        value_name(tensor_load(ev, place, expr->at), expr->a);
    return value.type->kind == CT_STRUCT ? place_load(ev, place, expr->type, expr->at) : value;
}

/* ---- binary, conditional, conversions ---- */

static Val logical(Eval *ev, const CExpr *expr) {
    Val a = eval(ev, expr->a);
    bool stops = expr->op == OP_LOGICAL_OR;
    if (!a.unknown && val_true(ev, a, expr->at) == stops) return val_int(expr->type, stops);
    Val b = eval(ev, expr->b);
    if (a.unknown || b.unknown)
        return !b.unknown && val_true(ev, b, expr->at) == stops ? val_int(expr->type, stops)
                                                                : val_unknown(expr->type);
    return val_int(expr->type, val_true(ev, b, expr->at));
}

/* Evaluates an operand where a value of `type` is needed: an array becomes a pointer. */
static Val value_of(Eval *ev, const CExpr *expr, const CType *type) {
    if (expr->type->kind == CT_ARRAY && type->kind == CT_POINTER)
        return (Val){.type = type, .i = eval_address(ev, expr)};
    return eval(ev, expr);
}

/* Returns whether an expression is a call or, if `with_number`, combines a call with a number. */
static bool is_call(const CExpr *expr, bool with_number) {
    if (with_number && expr->kind == C_BINARY)
        return (expr->a->kind == C_CALL && is_number(expr->b)) ||
               (is_number(expr->a) && expr->b->kind == C_CALL);
    return expr->kind == C_CALL;
}

/* Returns whether gcc's order of operands is known. The operands must be variables and calls; one
 * of them may be combined with a number. The expression is not an operand that gcc may fold. */
static bool has_known_order(const CExpr *expr) {
    const CExpr *a = expr->a, *b = expr->b;
    bool good = (a->kind == C_VAR || is_call(a, true)) && (b->kind == C_VAR || is_call(b, true));
    return good && !expr->inner && (a->kind != C_BINARY || b->kind != C_BINARY) &&
           ctype_is_arithmetic(a->type) && a->type == b->type &&
           order_effects(expr) == EFFECTS_CALLS;
}

/* Returns whether gcc reads the left operand, a variable, after it evaluates the right one. gcc
 * swaps operands of commutative operators and comparisons in this way. */
static bool reads_last(const CExpr *expr) {
    COperation op = expr->op;
    bool changes_places = op == OP_ADD || op == OP_MUL || (op >= OP_AND && op <= OP_XOR) ||
                          (op >= OP_LT && op <= OP_NE);
    bool constant = expr->b->kind == C_INT || expr->b->kind == C_FLOAT;
    return changes_places && expr->type->kind != CT_POINTER && expr->a->kind == C_VAR &&
           expr->b->kind != C_VAR && !constant;
}

static Val binary(Eval *ev, const CExpr *expr) {
    if (expr->op == OP_LOGICAL_AND || expr->op == OP_LOGICAL_OR) return logical(ev, expr);
    if (expr->op == OP_COMMA) {
        eval_effects(ev, expr->a);
        return val_convert(ev, value_of(ev, expr->b, expr->type), expr->type, expr->at);
    }
    bool swapped = reads_last(expr), ordered = may_conflict(expr->a, expr->b),
         known = ordered && has_known_order(expr);
    Order order = ordered ? order_begin(ev) : (Order){0};
    Val b = swapped ? eval(ev, expr->b) : (Val){.type = expr->type};
    if (ordered && swapped) order_next(ev, &order, expr->at, known);
    Val a = eval(ev, expr->a);
    if (ordered && !swapped) order_next(ev, &order, expr->at, known);
    if (!swapped) b = eval(ev, expr->b);
    if (ordered) order_end(ev, &order, expr->at, known);
    return val_binary(ev, &(Binary){expr->op, expr->type, a, b, expr->at});
}

static Val conditional(Eval *ev, const CExpr *expr) {
    Val a = eval(ev, expr->a);
    if (a.unknown && ev->lenient && expr->type->kind != CT_STRUCT) return val_unknown(expr->type);
    const CExpr *chosen = val_true(ev, a, expr->a->at) ? expr->b : expr->c;
    Val value =
        val_convert(ev, chosen ? value_of(ev, chosen, expr->type) : a, expr->type, expr->at);
    value.literal &= a.literal;
    return value;
}

static Val cast(Eval *ev, const CExpr *expr) {
    if (expr->type->kind == CT_VOID) {
        eval_effects(ev, expr->a);
        return (Val){.type = expr->type};
    }
    return val_convert(ev, value_of(ev, expr->a, expr->type), expr->type, expr->at);
}

static Val function_value(Eval *ev, const CExpr *expr) {
    (void)ev;
    return (Val){.type = expr->type, .i = pointer_to_function(expr->function)};
}

/* Evaluates ({ ... }) to the value of its last statement. */
static Val statement_value(Eval *ev, const CExpr *expr) {
    const CStmt *block = expr->statement;
    size_t scope = strlen(ev->build.scope);
    Val value = {.type = expr->type};
    for (int i = 0; i < block->body.count; i++) {
        const CStmt *stmt = block->body.at[i];
        bool gives = i + 1 == block->body.count && expr->type->kind != CT_VOID;
        if (gives && (stmt->kind != CS_EXPR || !stmt->expr))
            eval_error(ev, stmt->at,
                       "the last statement of a statement expression gives its value here; it must "
                       "be an expression alone");
        if (gives) value = value_of(ev, stmt->expr, expr->type);
        else if (eval_statement(ev, stmt) != FLOW_NEXT)
            eval_error(ev, stmt->at, "a jump out of a statement expression cannot be evaluated");
    }
    if (block->scoped && strlen(ev->build.scope) > scope)
        ev->build.scope = arena_substring(ev->scratch, ev->build.scope, scope);
    value.literal = false;
    if (value.type->kind != CT_STRUCT || value.unknown) return value;
    Place kept = {frame_object(ev, expr->slot, expr->type->size, NULL), 0};
    place_assign(ev, kept, value.place, expr->type);
    return place_load(ev, kept, expr->type, expr->at);
}

static Val number(Eval *ev, const CExpr *expr) {
    if (!ctype_is_arithmetic(expr->type))
        eval_error(ev, expr->at, "values of type %s cannot be evaluated at compile time",
                   expr->type->name);
    Val value = expr->kind == C_INT ? val_int(expr->type, (int64_t)expr->integer)
                                    : val_float(expr->type, expr->number);
    value.literal = true;
    return value;
}

void eval_effects(Eval *ev, const CExpr *expr) {
    bool cast = expr->kind == C_CAST && expr->type->kind == CT_VOID,
         comma = expr->kind == C_BINARY && expr->op == OP_COMMA;
    if (expr->kind == C_VAR) return;
    if (cast || (expr->kind == C_MEMBER && !expr->member.arrow)) {
        eval_effects(ev, expr->a);
    } else if (comma) {
        eval_effects(ev, expr->a);
        eval_effects(ev, expr->b);
    } else if (expr->kind == C_MEMBER || expr->kind == C_INDEX ||
               (expr->kind == C_UNARY && expr->op == OP_DEREFERENCE)) {
        (void)eval_address(ev, expr);
    } else {
        (void)eval(ev, expr);
    }
}

static Val variable_value(Eval *ev, const CExpr *expr) {
    const CVar *var = expr->var;
    Val value = place_load(ev, eval_place(ev, expr), expr->type, expr->at);
    value.literal = ev->unit->arithmetic.optimizes && var->folded && math_literal(var->init);
    return value;
}

Val eval(Eval *ev, const CExpr *expr) {
    eval_step(ev);
    ev->at = expr->at;
    switch (expr->kind) {
    case C_INT:
    case C_FLOAT: return number(ev, expr);
    case C_FUNCTION: return function_value(ev, expr);
    case C_MEMBER: return load(ev, expr, eval_place(ev, expr));
    case C_VAR: return variable_value(ev, expr);
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
    case C_REFUSED:
        eval_error(ev, expr->at,
                   "%s cannot be evaluated at compile time; write the model without it",
                   expr->text.bytes);
    case C_INIT:
    case C_DESIGNATED: break;
    }
    BUG("an initialiser outside an initialisation");
}
