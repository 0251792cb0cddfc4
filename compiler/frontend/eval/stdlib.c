/* Evaluates functions of stdlib.h that read numbers, sort and search; memchr; and builtin
 * arithmetic with overflow checks. */
#include "frontend/eval/eval.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(Eval *ev, const Call *call) {
    return pointer_string(ev, call_argument(ev, call, 0).i, call->at);
}

/* Stores a pointer to the end of a number of `length` characters, unless argument 1 is NULL. */
static void store_end(Eval *ev, const Call *call, int64_t length) {
    uint64_t to = call_argument(ev, call, 1).i;
    if (!to) return;
    Place place = pointer_place(ev, to, 8, call->at);
    ev->at = call->at;
    place_store(ev, place,
                (Val){.type = call->args[0].type,
                      .i = pointer_moved(ev, call->args[0].i, length, call->at)});
}

static Val short_integer(Eval *ev, const Call *call) {
    const CType *type = call->function->result;
    long long value = strtoll(text_of(ev, call), NULL, 10);
    if (type->size < 8 && value != (int)value)
        eval_error(ev, call->at, "%s of a number that does not fit %s, of which C says nothing",
                   call->function->name, type->name);
    return val_int(type, value);
}

static Val short_floating(Eval *ev, const Call *call) {
    return val_float(call->function->result, strtod(text_of(ev, call), NULL));
}

static Val long_integer(Eval *ev, const Call *call) {
    const char *text = text_of(ev, call);
    char *end;
    int base = (int)call_argument(ev, call, 2).i;
    if (base < 0 || base == 1 || base > 36)
        eval_error(ev, call->at, "%d is no base for %s", base, call->function->name);
    bool is_signed = call->function->result->is_signed;
    uint64_t value = is_signed ? (uint64_t)strtoll(text, &end, base) : strtoull(text, &end, base);
    store_end(ev, call, end - text);
    return val_int(call->function->result, (int64_t)value);
}

static Val long_floating(Eval *ev, const Call *call) {
    const char *text = text_of(ev, call);
    char *end;
    double value =
        call->function->result->kind == CT_FLOAT ? (double)strtof(text, &end) : strtod(text, &end);
    store_end(ev, call, end - text);
    return val_float(call->function->result, value);
}

static Val find_byte(Eval *ev, const Call *call) {
    int64_t size = (int64_t)call_argument(ev, call, 2).i;
    uint64_t from = call_argument(ev, call, 0).i;
    for (int64_t i = 0; i < size; i++) {
        Place place = pointer_place(ev, pointer_moved(ev, from, i, call->at), 1, call->at);
        eval_step(ev);
        if (!place_read(ev, place, 1, call->at))
            eval_error(ev, call->at,
                       "the bytes that are searched here are not known at compile time");
        if (place.object->bytes[place.offset] == (uint8_t)call_argument(ev, call, 1).i)
            return (Val){.type = call->function->result, .i = pointer_moved(ev, from, i, call->at)};
    }
    return (Val){.type = call->function->result};
}

/* Calls the comparison function of qsort or bsearch, argument `index`; returns -1, 0 or 1. */
static int compared(Eval *ev, const Call *call, int index, uint64_t a, uint64_t b) {
    const CFunction *function = pointer_function(ev, call_argument(ev, call, index).i);
    if (!function || function->params.count != 2 || !ctype_is_integer(function->result))
        eval_error(ev, call->at, "the function that %s is to call is not known at compile time",
                   call->function->name);
    Val args[2] = {{.type = function->params.at[0]->type, .i = a},
                   {.type = function->params.at[1]->type, .i = b}};
    Val value =
        call_function(ev, &(Call){.function = function, .at = call->at, .args = args, .count = 2});
    if (value.unknown)
        eval_error(ev, call->at, "what %s says is not known at compile time", function->name);
    int64_t order = (int64_t)value.i;
    return (order > 0) - (order < 0);
}

static int64_t count_of(Eval *ev, const Call *call, int index, int64_t *size) {
    uint64_t count = call_argument(ev, call, index).i, each = call_argument(ev, call, index + 1).i;
    if (count > INT32_MAX || each > INT32_MAX || !each || count * each > INT32_MAX)
        eval_error(ev, call->at, "%s of %llu elements of %llu bytes", call->function->name,
                   (unsigned long long)count, (unsigned long long)each);
    *size = (int64_t)each;
    return (int64_t)count;
}

/* Evaluates qsort. Sorts by insertion from the front, which is stable, as glibc's qsort is. */
static Val sort(Eval *ev, const Call *call) {
    int64_t size, count = count_of(ev, call, 1, &size);
    uint64_t base = call_argument(ev, call, 0).i;
    if (!count) return (Val){.type = call->function->result};
    Place all = pointer_place(ev, base, count * size, call->at);
    Object *held = object_create(ev, size, "an element");
    for (int64_t i = 1; i < count; i++) {
        // Find the position after all elements that are not greater, by binary search.
        int64_t low = 0, high = i;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            bool greater = compared(ev, call, 3, pointer_moved(ev, base, middle * size, call->at),
                                    pointer_moved(ev, base, i * size, call->at)) > 0;
            low = greater ? low : middle + 1;
            high = greater ? middle : high;
        }
        if (low == i) continue;
        eval_steps(ev, (i - low) * size / 16);
        ev->at = call->at;
        place_copy(ev, (Place){held, 0}, (Place){all.object, all.offset + i * size}, size);
        place_copy(ev, (Place){all.object, all.offset + (low + 1) * size},
                   (Place){all.object, all.offset + low * size}, (i - low) * size);
        place_copy(ev, (Place){all.object, all.offset + low * size}, (Place){held, 0}, size);
    }
    object_release(ev, held);
    return (Val){.type = call->function->result};
}

/* Evaluates bsearch as glibc does, so that it finds the same one of several equal elements. */
static Val search(Eval *ev, const Call *call) {
    int64_t size, low = 0, high = count_of(ev, call, 2, &size);
    uint64_t key = call_argument(ev, call, 0).i, base = call_argument(ev, call, 1).i;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        uint64_t at = pointer_moved(ev, base, middle * size, call->at);
        int order = compared(ev, call, 4, key, at);
        if (!order) return (Val){.type = call->function->result, .i = at};
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return (Val){.type = call->function->result};
}

static __int128 wide(Val value) {
    return value.type->is_signed ? (__int128)(int64_t)value.i : (__int128)value.i;
}

/* Stores a sum, difference or product, wrapped, where argument 2 points; returns 1 on overflow. */
static Val overflowing(Eval *ev, const Call *call) {
    const char *name = call->function->name + strlen("__builtin_");
    __int128 a = wide(call_argument(ev, call, 0)), b = wide(call_argument(ev, call, 1)), result;
    const CType *type = call->args[2].type->base;
    bool over = *name == 'a'   ? __builtin_add_overflow(a, b, &result)
                : *name == 's' ? __builtin_sub_overflow(a, b, &result)
                               : __builtin_mul_overflow(a, b, &result);
    Val value = val_int(type, (int64_t)(uint64_t)(unsigned __int128)result);
    ev->at = call->at;
    place_store(ev, pointer_place(ev, call_argument(ev, call, 2).i, type->size, call->at), value);
    return val_int(call->function->result, over || wide(value) != result);
}

const Builtin stdlib_builtins[] = {
    {"atoi", 1, short_integer},
    {"atol", 1, short_integer},
    {"atoll", 1, short_integer},
    {"atof", 1, short_floating},
    {"strtol", 3, long_integer},
    {"strtoll", 3, long_integer},
    {"strtoul", 3, long_integer},
    {"strtoull", 3, long_integer},
    {"strtod", 2, long_floating},
    {"strtof", 2, long_floating},
    {"memchr", 3, find_byte},
    {"qsort", 4, sort},
    {"bsearch", 5, search},
    {"__builtin_add_overflow", 3, overflowing},
    {"__builtin_sub_overflow", 3, overflowing},
    {"__builtin_mul_overflow", 3, overflowing},
    {NULL, 0, NULL},
};
