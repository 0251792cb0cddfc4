/* Evaluates string.h, snprintf, sprintf and assert. Refuses arguments that overlap. */
#include "frontend/eval/eval.h"

#include <string.h>

static Val pointer_result(const Call *call, uint64_t pointer) {
    return (Val){.type = call->function->result, .i = pointer};
}

static uint64_t known(Eval *ev, const Call *call, int index) {
    return call_argument(ev, call, index).i;
}

static const char *string(Eval *ev, const Call *call, int index) {
    return pointer_string(ev, known(ev, call, index), call->at);
}

/* Returns the characters of argument `index`, and their number in *length, at most argument 2. */
static const char *characters(Eval *ev, const Call *call, int index, size_t *length) {
    return pointer_characters(ev, known(ev, call, index), known(ev, call, 2), call->at, length);
}

static Place bytes(Eval *ev, const Call *call, int index, uint64_t size) {
    if (size > INT32_MAX)
        eval_error(ev, call->at, "%s over %llu bytes", call->function->name,
                   (unsigned long long)size);
    eval_steps(ev, (int64_t)size / 16);
    return pointer_place(ev, known(ev, call, index), (int64_t)size, call->at);
}

/* ---- bytes ---- */

static _Noreturn void overlapping(Eval *ev, const Call *call) {
    eval_error(ev, call->at,
               "%s reads and writes places that overlap here, of which C says nothing",
               call->function->name);
}

static Val copy_bytes(Eval *ev, const Call *call) {
    uint64_t size = known(ev, call, 2);
    if (!size) return pointer_result(call, call->args[0].i);
    Place to = bytes(ev, call, 0, size), from = bytes(ev, call, 1, size);
    int64_t apart = to.offset > from.offset ? to.offset - from.offset : from.offset - to.offset;
    if (strstr(call->function->name, "memcpy") && to.object == from.object && apart &&
        apart < (int64_t)size)
        overlapping(ev, call);
    place_copy(ev, to, from, (int64_t)size);
    return pointer_result(call, call->args[0].i);
}

static Val set_bytes(Eval *ev, const Call *call) {
    uint64_t size = known(ev, call, 2), value = known(ev, call, 1);
    if (!size) return pointer_result(call, call->args[0].i);
    Place place = bytes(ev, call, 0, size);
    place_clear(ev, place, (int64_t)size);
    memset(place.object->bytes + place.offset, (int)value, (size_t)size);
    return pointer_result(call, call->args[0].i);
}

/* Returns whether an argument is a string literal. */
static bool is_literal(const Call *call, int index) {
    const CExpr *expr = call->expr ? call->expr->args.at[index] : NULL;
    while (expr && expr->kind == C_CAST) expr = expr->a;
    return expr && expr->kind == C_STRING;
}

/* Returns the result of a comparison, of which C defines only the sign. gcc folds a comparison of
 * two literals to -1, 0 or 1; `order` is the library's result. */
static Val compared(const Call *call, int order) {
    bool literals = is_literal(call, 0) && is_literal(call, 1);
    return val_int(call->function->result, !literals ? order : order < 0 ? -1 : order > 0);
}

static Val compare_bytes(Eval *ev, const Call *call) {
    uint64_t size = known(ev, call, 2);
    if (!size) return val_int(call->function->result, 0);
    Place a = bytes(ev, call, 0, size), b = bytes(ev, call, 1, size);
    if (!place_read(ev, a, (int64_t)size, call->at) || !place_read(ev, b, (int64_t)size, call->at))
        eval_error(ev, call->at, "the bytes that are compared here are not known at compile time");
    const uint8_t *x = a.object->bytes + a.offset, *y = b.object->bytes + b.offset;
    int order = memcmp(x, y, (size_t)size);
    // gcc itself compares up to three bytes with a literal, and returns their difference.
    bool inlined = size <= 3 && (is_literal(call, 0) || is_literal(call, 1));
    for (; inlined && order && *x == *y; x++) y++;
    return compared(call, inlined && order ? *x - *y : order);
}

/* ---- strings ---- */

static Val length_of(Eval *ev, const Call *call) {
    return val_int(call->function->result, (int64_t)strlen(string(ev, call, 0)));
}

static Val bounded_length(Eval *ev, const Call *call) {
    size_t length;
    (void)pointer_characters(ev, known(ev, call, 0), known(ev, call, 1), call->at, &length);
    return val_int(call->function->result, (int64_t)length);
}

static Val compare(Eval *ev, const Call *call) {
    return compared(call, strcmp(string(ev, call, 0), string(ev, call, 1)));
}

static Val compare_bounded(Eval *ev, const Call *call) {
    size_t first, second;
    uint64_t most = known(ev, call, 2);
    const char *a = characters(ev, call, 0, &first), *b = characters(ev, call, 1, &second);
    size_t common = first < second ? first : second;
    int order = memcmp(a, b, common);
    if (!order && first != second)
        order = common < first ? (unsigned char)a[common] : -(int)(unsigned char)b[common];
    return compared(call, most ? order : 0);
}

/* Writes a text, then zeros, `size` bytes in all; the text must not overlap the destination. */
static void write_bytes(Eval *ev, const Call *call, Place to, int64_t size, CText text) {
    const char *at = (const char *)to.object->bytes + to.offset;
    if (text.bytes < at + size && text.bytes + text.length + 1 > at) overlapping(ev, call);
    place_clear(ev, to, size);
    memcpy(to.object->bytes + to.offset, text.bytes, (size_t)text.length);
}

/* Writes `length` bytes of `text` and a null byte to argument 0 + `offset`; returns argument 0. */
static Val write_string(Eval *ev, const Call *call, size_t offset, const char *text,
                        size_t length) {
    uint64_t to = pointer_moved(ev, known(ev, call, 0), (int64_t)offset, call->at);
    write_bytes(ev, call, pointer_place(ev, to, (int64_t)length + 1, call->at), (int64_t)length + 1,
                (CText){text, (int64_t)length});
    return pointer_result(call, call->args[0].i);
}

static Val copy_string(Eval *ev, const Call *call) {
    const char *text = string(ev, call, 1);
    return write_string(ev, call, 0, text, strlen(text));
}

static Val copy_bounded(Eval *ev, const Call *call) {
    uint64_t size = known(ev, call, 2);
    size_t length;
    const char *text = characters(ev, call, 1, &length);
    if (!size) return pointer_result(call, call->args[0].i);
    write_bytes(ev, call, bytes(ev, call, 0, size), (int64_t)size, (CText){text, (int64_t)length});
    return pointer_result(call, call->args[0].i);
}

static Val append_string(Eval *ev, const Call *call) {
    const char *text = string(ev, call, 1);
    return write_string(ev, call, strlen(string(ev, call, 0)), text, strlen(text));
}

static Val append_bounded(Eval *ev, const Call *call) {
    size_t length;
    const char *text = characters(ev, call, 1, &length);
    return write_string(ev, call, strlen(string(ev, call, 0)), text, length);
}

/* Returns the pointer to `at` in `text`, argument 0; a null pointer when `at` is NULL. */
static Val found_at(Eval *ev, const Call *call, const char *text, const char *at) {
    return pointer_result(call, at ? pointer_moved(ev, call->args[0].i, at - text, call->at) : 0);
}

static Val find_first(Eval *ev, const Call *call) {
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strchr(text, (int)known(ev, call, 1)));
}

static Val find_last(Eval *ev, const Call *call) {
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strrchr(text, (int)known(ev, call, 1)));
}

static Val find_string(Eval *ev, const Call *call) {
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strstr(text, string(ev, call, 1)));
}

static Val find_any(Eval *ev, const Call *call) {
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strpbrk(text, string(ev, call, 1)));
}

static Val span(Eval *ev, const Call *call) {
    return val_int(call->function->result,
                   (int64_t)strspn(string(ev, call, 0), string(ev, call, 1)));
}
static Val complement_span(Eval *ev, const Call *call) {
    return val_int(call->function->result,
                   (int64_t)strcspn(string(ev, call, 0), string(ev, call, 1)));
}

/* ---- formatting ---- */

static Val print_bounded(Eval *ev, const Call *call) {
    size_t size = known(ev, call, 1);
    if (size > INT32_MAX)
        eval_error(ev, call->at, "%s into %llu bytes", call->function->name,
                   (unsigned long long)size);
    const Text *text = format_values(ev, call, 2, size ? known(ev, call, 0) : 0, (int64_t)size);
    if (size)
        write_string(ev, call, 0, text_bytes(text), text->length < size ? text->length : size - 1);
    return val_int(call->function->result, (int64_t)text->length);
}

static Val print_string(Eval *ev, const Call *call) {
    const Text *text = format_values(ev, call, 1, known(ev, call, 0), INT32_MAX);
    write_string(ev, call, 0, text_bytes(text), text->length);
    return val_int(call->function->result, (int64_t)text->length);
}

/* ---- assert ---- */

static Val assertion(Eval *ev, const Call *call) {
    eval_error(ev, call->at, "the assertion \"%s\" does not hold", string(ev, call, 0));
}

static Val given_up(Eval *ev, const Call *call) {
    eval_error(ev, call->at, "the model calls %s", call->function->name);
}

static const Builtin string_builtins[] = {
    {"memcpy", 3, copy_bytes},
    {"memmove", 3, copy_bytes},
    {"memset", 3, set_bytes},
    {"memcmp", 3, compare_bytes},
    {"strlen", 1, length_of},
    {"strnlen", 2, bounded_length},
    {"strcmp", 2, compare},
    {"strncmp", 3, compare_bounded},
    {"strcpy", 2, copy_string},
    {"strncpy", 3, copy_bounded},
    {"strcat", 2, append_string},
    {"strncat", 3, append_bounded},
    {"strchr", 2, find_first},
    {"strrchr", 2, find_last},
    {"strstr", 2, find_string},
    {"strpbrk", 2, find_any},
    {"strspn", 2, span},
    {"strcspn", 2, complement_span},
    {"snprintf", 3, print_bounded},
    {"sprintf", 2, print_string},
    {"__assert_fail", 1, assertion},
    {"abort", 0, given_up},
    {"exit", 1, given_up},
    {NULL, 0, NULL},
};

static const Builtin *find_in(const Builtin *table, const char *name) {
    for (; table->name; table++)
        if (!strcmp(table->name, name)) return table;
    return NULL;
}

const Builtin *builtin_find(const char *name) {
    const Builtin *found = find_in(tensor_builtins, name);
    if (!found) found = find_in(number_builtins, name);
    if (!found) found = find_in(stdlib_builtins, name);
    if (!found)
        found = find_in(string_builtins, !strncmp(name, "__builtin_", 10) ? name + 10 : name);
    return found;
}
