/* Evaluates C's arithmetic: conversions, and operators on operands of one type. */
#include "frontend/eval/eval.h"

#include <math.h>

/* Returns a value wrapped to the width and signedness of an integer type. */
static uint64_t wrapped(const CType *type, uint64_t value) {
    if (type->kind == CT_BOOL) return value != 0;
    if (type->size >= 8) return value;
    int shift = 64 - 8 * (int)type->size;
    return type->is_signed ? (uint64_t)((int64_t)(value << shift) >> shift)
                           : value << shift >> shift;
}

Val val_int(const CType *type, int64_t value) {
    return (Val){.type = type, .i = wrapped(type, (uint64_t)value)};
}
Val val_float(const CType *type, double value) {
    return (Val){.type = type, .f = type->kind == CT_FLOAT ? (double)(float)value : value};
}
Val val_unknown(const CType *type) { return (Val){.type = type, .unknown = true}; }

static double as_double(Val value) {
    if (ctype_is_floating(value.type)) return value.f;
    return value.type->is_signed ? (double)(int64_t)value.i : (double)value.i;
}

static Val integer_to_floating(Val value, const CType *type) {
    if (type->kind == CT_FLOAT)
        return val_float(type, value.type->is_signed ? (double)(float)(int64_t)value.i
                                                     : (double)(float)value.i);
    return val_float(type, as_double(value));
}

static Val floating_to_integer(Eval *ev, double value, const CType *type, Position at) {
    if (type->kind == CT_BOOL) return val_int(type, value != 0);
    double whole = trunc(value), limit = ldexp(1, 8 * (int)type->size - type->is_signed);
    if (!(whole < limit && whole >= (type->is_signed ? -limit : 0)))
        eval_error(ev, at, "%g does not fit %s", value, type->name);
    return (Val){.type = type, .i = type->is_signed ? (uint64_t)(int64_t)whole : (uint64_t)whole};
}

static Val to_pointer(Eval *ev, Val value, const CType *type, Position at) {
    if (value.type->kind == CT_POINTER || value.type->kind == CT_FUNCTION ||
        (ctype_is_integer(value.type) && value.i == 0))
        return (Val){.type = type, .i = value.i};
    eval_error(ev, at, "%s cannot be converted to a pointer at compile time", value.type->name);
}

static Val converted(Eval *ev, Val value, const CType *type, Position at) {
    const CType *from = value.type;
    bool record = type->kind == CT_STRUCT && from->kind == CT_STRUCT && from->size == type->size;
    if (from == type || type->kind == CT_VOID || record) {
        value.type = type;
        return value;
    }
    if (value.unknown) return val_unknown(type);
    if (type->kind == CT_POINTER) return to_pointer(ev, value, type, at);
    if (type->kind == CT_BOOL && from->kind == CT_POINTER) return val_int(type, value.i != 0);
    if (!ctype_is_arithmetic(from) || !ctype_is_arithmetic(type))
        eval_error(ev, at, "%s cannot be converted to %s at compile time", from->name, type->name);
    if (ctype_is_floating(from))
        return ctype_is_floating(type) ? val_float(type, value.f)
                                       : floating_to_integer(ev, value.f, type, at);
    return ctype_is_floating(type) ? integer_to_floating(value, type)
                                   : (Val){.type = type, .i = wrapped(type, value.i)};
}

Val val_convert(Eval *ev, Val value, const CType *type, Position at) {
    Val result = converted(ev, value, type, at);
    result.literal = value.literal;
    return result;
}

bool val_true(Eval *ev, Val value, Position at) {
    if (value.unknown) eval_error(ev, at, "this condition is not known at compile time");
    return ctype_is_floating(value.type) ? value.f != 0 : value.i != 0;
}

/* ---- operators ---- */

static Val compare_floating(COperation op, const CType *type, double a, double b) {
    bool result = op == OP_LT   ? a < b
                  : op == OP_LE ? a <= b
                  : op == OP_GT ? a > b
                  : op == OP_GE ? a >= b
                  : op == OP_EQ ? a == b
                                : a != b;
    return val_int(type, result);
}

static Val floating(COperation op, const CType *type, Val a, Val b) {
    if (op >= OP_LT && op <= OP_NE) return compare_floating(op, type, a.f, b.f);
    if (a.type->kind == CT_FLOAT) {
        float x = (float)a.f, y = (float)b.f;
        return val_float(type, (double)(op == OP_ADD   ? x + y
                                        : op == OP_SUB ? x - y
                                        : op == OP_MUL ? x * y
                                                       : x / y));
    }
    return val_float(type, op == OP_ADD   ? a.f + b.f
                           : op == OP_SUB ? a.f - b.f
                           : op == OP_MUL ? a.f * b.f
                                          : a.f / b.f);
}

static Val compare_integers(COperation op, const CType *type, bool is_signed, uint64_t a,
                            uint64_t b) {
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    bool result = op == OP_LT   ? less
                  : op == OP_LE ? less || a == b
                  : op == OP_GT ? !less && a != b
                  : op == OP_GE ? !less
                  : op == OP_EQ ? a == b
                                : a != b;
    return val_int(type, result);
}

/* Computes a op b in the signed type of b, and refuses an overflow, which C leaves undefined. */
static uint64_t checked(Eval *ev, COperation op, int64_t a, Val b, Position at) {
    int64_t result;
    bool over = op == OP_ADD   ? __builtin_add_overflow(a, (int64_t)b.i, &result)
                : op == OP_SUB ? __builtin_sub_overflow(a, (int64_t)b.i, &result)
                               : __builtin_mul_overflow(a, (int64_t)b.i, &result);
    if (over || (int64_t)wrapped(b.type, (uint64_t)result) != result)
        eval_error(ev, at, "this overflows %s", b.type->name);
    return (uint64_t)result;
}

static uint64_t divided(Eval *ev, COperation op, Val a, uint64_t b, Position at) {
    if (b == 0)
        eval_error(ev, at, "%s by zero", op == OP_DIV ? "division" : "remainder of a division");
    if (!a.type->is_signed) return op == OP_DIV ? a.i / b : a.i % b;
    if ((int64_t)b == -1) {
        uint64_t negated = checked(ev, OP_SUB, 0, a, at);
        return op == OP_DIV ? negated : 0;
    }
    return (uint64_t)(op == OP_DIV ? (int64_t)a.i / (int64_t)b : (int64_t)a.i % (int64_t)b);
}

static uint64_t shifted(Eval *ev, COperation op, Val a, Val b, Position at) {
    if (b.i >= (uint64_t)(8 * a.type->size))
        eval_error(ev, at, "a shift by %lld of a value of %d bits", (long long)b.i,
                   8 * (int)a.type->size);
    if (op == OP_SHL) return a.i << b.i;
    return a.type->is_signed ? (uint64_t)((int64_t)a.i >> b.i) : a.i >> b.i;
}

static uint64_t sum_or_product(Eval *ev, const Binary *e) {
    if (e->a.type->is_signed && !ev->unit->arithmetic.wraps)
        return checked(ev, e->op, (int64_t)e->a.i, (Val){.type = e->a.type, .i = e->b.i}, e->at);
    return e->op == OP_ADD ? e->a.i + e->b.i : e->op == OP_SUB ? e->a.i - e->b.i : e->a.i * e->b.i;
}

static Val integers(Eval *ev, const Binary *e) {
    Val a = e->a, b = e->b;
    uint64_t result = 0;
    switch (e->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL: result = sum_or_product(ev, e); break;
    case OP_DIV:
    case OP_REM: result = divided(ev, e->op, a, b.i, e->at); break;
    case OP_SHL:
    case OP_SHR: result = shifted(ev, e->op, a, b, e->at); break;
    case OP_AND: result = a.i & b.i; break;
    case OP_OR: result = a.i | b.i; break;
    case OP_XOR: result = a.i ^ b.i; break;
    default: return compare_integers(e->op, e->type, a.type->is_signed, a.i, b.i);
    }
    return (Val){.type = e->type, .i = wrapped(e->type, result)};
}

static int64_t element_size(Eval *ev, const CType *pointer, Position at) {
    if (pointer->base->kind == CT_VOID) return 1;
    if (!pointer->base->size)
        eval_error(ev, at, "arithmetic on a pointer to %s", pointer->base->name);
    return pointer->base->size;
}

static Val pointers(Eval *ev, const Binary *e) {
    COperation op = e->op;
    const CType *type = e->type;
    Val a = e->a, b = e->b;
    Position at = e->at;
    bool both = a.type->kind == CT_POINTER && b.type->kind == CT_POINTER;
    int64_t bytes = 0;
    if (!both && a.type->kind == CT_POINTER) bytes = element_size(ev, a.type, at);
    if (!both && b.type->kind == CT_POINTER) bytes = element_size(ev, b.type, at);
    if (op == OP_ADD && a.type->kind != CT_POINTER)
        return (Val){.type = type, .i = pointer_moved(ev, b.i, (int64_t)a.i * bytes, at)};
    if ((op == OP_ADD || op == OP_SUB) && !both)
        return (Val){
            .type = type,
            .i = pointer_moved(ev, a.i, (op == OP_SUB ? -1 : 1) * (int64_t)b.i * bytes, at)};
    // Compare or subtract pointers; refuse an operation whose result C leaves open.
    bool same = a.i >> 32 == b.i >> 32;
    if ((op == OP_EQ || op == OP_NE) && !same && pointer_literal(ev, a.i) &&
        pointer_literal(ev, b.i))
        eval_error(ev, at, "C leaves open whether equal strings are one; compare them with strcmp");
    bool meet = (pointer_behind(ev, a.i) && b.i && !(int32_t)b.i) ||
                (pointer_behind(ev, b.i) && a.i && !(int32_t)a.i);
    if ((op == OP_EQ || op == OP_NE) && !same && meet)
        eval_error(ev, at,
                   "C leaves open whether an object stands right behind the end of another one");
    if (op == OP_EQ || op == OP_NE) return val_int(type, (a.i == b.i) == (op == OP_EQ));
    if (!same) eval_error(ev, at, "these pointers point into different objects");
    if (op == OP_SUB)
        return val_int(type, ((int64_t)(int32_t)a.i - (int32_t)b.i) / element_size(ev, a.type, at));
    return compare_integers(op, type, true, (uint64_t)(int64_t)(int32_t)a.i,
                            (uint64_t)(int64_t)(int32_t)b.i);
}

/* Refuses an operation whose result is a NaN with a sign that C leaves open. Of two NaNs of
 * different signs, a compiler may return either; it may compute NaN * -1 as a negation. */
static void check_sign(Eval *ev, const Binary *e) {
    COperation op = e->op;
    Val a = e->a, b = e->b;
    bool both = isnan(a.f) && isnan(b.f) && signbit(a.f) != signbit(b.f),
         negates = (op == OP_MUL && isnan(b.f) && a.f == -1) ||
                   ((op == OP_MUL || op == OP_DIV) && isnan(a.f) && b.f == -1);
    if (op < OP_LT && (both || negates))
        eval_error(ev, e->at, "C leaves open the sign of this NaN");
}

static Val computed(Eval *ev, const Binary *e) {
    const CType *a = e->a.type, *b = e->b.type;
    if (e->a.unknown || e->b.unknown) return val_unknown(e->type);
    if (a->kind == CT_POINTER || b->kind == CT_POINTER) return pointers(ev, e);
    if (ctype_is_floating(a)) {
        check_sign(ev, e);
        return rounding_check(ev, e, floating(e->op, e->type, e->a, e->b));
    }
    if (ctype_is_integer(a)) return integers(ev, e);
    eval_error(ev, e->at, "values of type %s cannot be computed with at compile time", a->name);
}

Val val_binary(Eval *ev, const Binary *e) {
    Val value = computed(ev, e);
    value.literal = e->a.literal && e->b.literal;
    return value;
}
