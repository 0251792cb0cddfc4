/* Evaluates frexp and modf, which store a second result, ilogb, nan, functions of ctype.h, and
 * builtin functions of bits such as __builtin_popcount. */
#include "frontend/eval/eval.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Stores a result where argument 1 points, converted to the type of the target. */
static void give(Eval *ev, const Call *call, Val value) {
    const CType *type = call->args[1].type->base;
    Place place = pointer_place(ev, call_argument(ev, call, 1).i, type->size, call->at);
    ev->at = call->at;
    place_store(ev, place, val_convert(ev, value, type, call->at));
}

static Val fraction_and_exponent(Eval *ev, const Call *call) {
    double x = call_argument(ev, call, 0).f, fraction;
    int exponent = 0;
    if (!isfinite(x)) eval_error(ev, call->at, "%s of %g has no exponent", call->function->name, x);
    fraction = frexp(x, &exponent);
    give(ev, call, val_int(ev->unit->types.tint, exponent));
    return val_float(call->function->result, fraction);
}

static Val exponent_of(Eval *ev, const Call *call) {
    double x = call_argument(ev, call, 0).f;
    if (!isfinite(x) || x == 0)
        eval_error(ev, call->at, "%s of %g has no exponent", call->function->name, x);
    return val_int(call->function->result, ilogb(x));
}

static Val not_a_number(Eval *ev, const Call *call) {
    if (*pointer_string(ev, call_argument(ev, call, 0).i, call->at))
        eval_error(ev, call->at,
                   "%s with a text cannot be evaluated at compile time; leave it empty",
                   call->function->name);
    return val_float(call->function->result, (double)NAN);
}

static Val fraction_and_whole(Eval *ev, const Call *call) {
    double whole, fraction = modf(call_argument(ev, call, 0).f, &whole);
    give(ev, call, val_float(ev->unit->types.tdouble, whole));
    return val_float(call->function->result, fraction);
}

/* ---- characters, in the C locale ---- */

enum { BELOW = 128, ABOVE = 256 }; // a table has the characters [-BELOW, ABOVE)

/* Returns a table for glibc's macros: a pointer to a pointer to the entry of character 0. */
static Val table(Eval *ev, const Call *call, int which, const void *host, int64_t size) {
    if (!ev->heap.characters[which]) {
        Object *bytes = object_create(ev, (BELOW + ABOVE) * size, "a table of ctype.h"),
               *pointer = object_create(ev, 8, "a pointer of ctype.h");
        uint64_t to = pointer_to((Place){bytes, BELOW * size});
        memcpy(bytes->bytes, (const char *)host - BELOW * size, (size_t)((BELOW + ABOVE) * size));
        memcpy(pointer->bytes, &to, sizeof to);
        bytes->constant = pointer->constant = true;
        ev->heap.characters[which] = pointer;
    }
    return (Val){.type = call->function->result,
                 .i = pointer_to((Place){ev->heap.characters[which], 0})};
}

static Val classes(Eval *ev, const Call *call) {
    return table(ev, call, 0, *__ctype_b_loc(), (int64_t)sizeof **__ctype_b_loc());
}
static Val lower_case(Eval *ev, const Call *call) {
    return table(ev, call, 1, *__ctype_tolower_loc(), (int64_t)sizeof **__ctype_tolower_loc());
}
static Val upper_case(Eval *ev, const Call *call) {
    return table(ev, call, 2, *__ctype_toupper_loc(), (int64_t)sizeof **__ctype_toupper_loc());
}

static int character(Eval *ev, const Call *call) {
    int64_t c = (int64_t)call_argument(ev, call, 0).i;
    if (c < -BELOW || c >= ABOVE)
        eval_error(ev, call->at, "%lld is no character for %s", (long long)c, call->function->name);
    return (int)c;
}

static Val to_lower(Eval *ev, const Call *call) {
    return val_int(call->function->result, (tolower)(character(ev, call)));
}
static Val to_upper(Eval *ev, const Call *call) {
    return val_int(call->function->result, (toupper)(character(ev, call)));
}

static uint64_t operand(Eval *ev, const Call *call) { return call_argument(ev, call, 0).i; }
static int width(const Call *call) { return 8 * (int)call->args[0].type->size; }
static Val counted(const Call *call, int count) { return val_int(call->function->result, count); }

static uint64_t not_zero(Eval *ev, const Call *call) {
    if (!operand(ev, call))
        eval_error(ev, call->at, "%s of 0, which has no value", call->function->name);
    return operand(ev, call);
}

/* Returns the operand's bits without sign extension. */
static uint64_t bits(Eval *ev, const Call *call) {
    return operand(ev, call) << (64 - width(call)) >> (64 - width(call));
}

static Val ones(Eval *ev, const Call *call) {
    return counted(call, __builtin_popcountll(bits(ev, call)));
}
static Val parity(Eval *ev, const Call *call) {
    return counted(call, __builtin_parityll(bits(ev, call)));
}
static Val leading(Eval *ev, const Call *call) {
    return counted(call, __builtin_clzll(not_zero(ev, call)) - (64 - width(call)));
}
static Val trailing(Eval *ev, const Call *call) {
    return counted(call, __builtin_ctzll(not_zero(ev, call)));
}
static Val first_one(Eval *ev, const Call *call) {
    return counted(call, __builtin_ffsll((long long)bits(ev, call)));
}
static Val swapped(Eval *ev, const Call *call) {
    return val_int(call->function->result,
                   (int64_t)(__builtin_bswap64(bits(ev, call)) >> (64 - width(call))));
}

#define BITS(name, function)                                                                       \
    {"__builtin_" name, 1, function}, {"__builtin_" name "l", 1, function}, {                      \
        "__builtin_" name "ll", 1, function                                                        \
    }

const Builtin number_builtins[] = {
    {"frexp", 2, fraction_and_exponent},
    {"frexpf", 2, fraction_and_exponent},
    {"modf", 2, fraction_and_whole},
    {"modff", 2, fraction_and_whole},
    {"ilogb", 1, exponent_of},
    {"ilogbf", 1, exponent_of},
    {"__builtin_nan", 1, not_a_number},
    {"__builtin_nanf", 1, not_a_number},
    {"nan", 1, not_a_number},
    {"nanf", 1, not_a_number},
    {"__ctype_b_loc", 0, classes},
    {"__ctype_tolower_loc", 0, lower_case},
    {"__ctype_toupper_loc", 0, upper_case},
    {"tolower", 1, to_lower},
    {"toupper", 1, to_upper},
    BITS("popcount", ones),
    BITS("parity", parity),
    BITS("clz", leading),
    BITS("ctz", trailing),
    BITS("ffs", first_one),
    {"__builtin_bswap16", 1, swapped},
    {"__builtin_bswap32", 1, swapped},
    {"__builtin_bswap64", 1, swapped},
    {NULL, 0, NULL},
};
