/* string.h, memory, snprintf and assert. */
#include "frontend/eval/eval.h"

#include <stdio.h>
#include <string.h>

static Val pointer_result(const Call *call, uint64_t pointer) { return (Val){.type = call->function->result, .i = pointer}; }

static uint64_t known(Eval *ev, const Call *call, int index) { return call_argument(ev, call, index).i; }

static const char *string(Eval *ev, const Call *call, int index) { return pointer_string(ev, known(ev, call, index), call->at); }

static Place bytes(Eval *ev, const Call *call, int index, uint64_t size)
{
    if (size > INT32_MAX)
        eval_error(ev, call->at, "%s over %llu bytes", call->function->name, (unsigned long long)size);
    eval_steps(ev, (int64_t)size / 16);
    return pointer_place(ev, known(ev, call, index), (int64_t)size, call->at);
}

/* ---- bytes ---- */

static Val copy_bytes(Eval *ev, const Call *call)
{
    uint64_t size = known(ev, call, 2);
    if (size)
        place_copy(ev, bytes(ev, call, 0, size), bytes(ev, call, 1, size), (int64_t)size);
    return pointer_result(call, call->args[0].i);
}

static Val set_bytes(Eval *ev, const Call *call)
{
    uint64_t size = known(ev, call, 2), value = known(ev, call, 1);
    if (!size)
        return pointer_result(call, call->args[0].i);
    Place place = bytes(ev, call, 0, size);
    place_clear(ev, place, (int64_t)size);
    memset(place.object->bytes + place.offset, (int)value, (size_t)size);
    return pointer_result(call, call->args[0].i);
}

static Val compare_bytes(Eval *ev, const Call *call)
{
    uint64_t size = known(ev, call, 2);
    if (!size)
        return val_int(call->function->result, 0);
    Place a = bytes(ev, call, 0, size), b = bytes(ev, call, 1, size);
    memory_read(ev, a, (int64_t)size, call->at);
    memory_read(ev, b, (int64_t)size, call->at);
    int order = memcmp(a.object->bytes + a.offset, b.object->bytes + b.offset, (size_t)size);
    return val_int(call->function->result, order < 0 ? -1 : order > 0);
}

/* ---- strings ---- */

static Val length_of(Eval *ev, const Call *call) { return val_int(call->function->result, (int64_t)strlen(string(ev, call, 0))); }

static Val bounded_length(Eval *ev, const Call *call)
{
    size_t length = strlen(string(ev, call, 0)), most = known(ev, call, 1);
    return val_int(call->function->result, (int64_t)(length < most ? length : most));
}

static Val compare(Eval *ev, const Call *call)
{
    int order = strcmp(string(ev, call, 0), string(ev, call, 1));
    return val_int(call->function->result, order < 0 ? -1 : order > 0);
}

static Val compare_bounded(Eval *ev, const Call *call)
{
    int order = strncmp(string(ev, call, 0), string(ev, call, 1), known(ev, call, 2));
    return val_int(call->function->result, order < 0 ? -1 : order > 0);
}

/* Writes `length` bytes of `text` and a null byte at argument 0 moved by `offset`. */
static Val write_string(Eval *ev, const Call *call, size_t offset, const char *text, size_t length)
{
    uint64_t to = pointer_moved(ev, known(ev, call, 0), (int64_t)offset, call->at);
    char *copy = arena_substring(ev->scratch, text, length);
    Place place = pointer_place(ev, to, (int64_t)length + 1, call->at);
    place_clear(ev, place, (int64_t)length + 1);
    memcpy(place.object->bytes + place.offset, copy, length);
    return pointer_result(call, call->args[0].i);
}

static Val copy_string(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 1);
    return write_string(ev, call, 0, text, strlen(text));
}

static Val copy_bounded(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 1);
    uint64_t size = known(ev, call, 2);
    size_t length = strnlen(text, size);
    if (!size)
        return pointer_result(call, call->args[0].i);
    char *copy = arena_alloc(ev->scratch, size);
    memcpy(copy, text, length);
    Place place = bytes(ev, call, 0, size);
    place_clear(ev, place, (int64_t)size);
    memcpy(place.object->bytes + place.offset, copy, size);
    return pointer_result(call, call->args[0].i);
}

static Val append_string(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 1);
    return write_string(ev, call, strlen(string(ev, call, 0)), text, strlen(text));
}

static Val append_bounded(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 1);
    return write_string(ev, call, strlen(string(ev, call, 0)), text, strnlen(text, known(ev, call, 2)));
}

/* A pointer into argument 0, or null. */
static Val found_at(Eval *ev, const Call *call, const char *text, const char *at)
{
    return pointer_result(call, at ? pointer_moved(ev, call->args[0].i, at - text, call->at) : 0);
}

static Val find_first(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strchr(text, (int)known(ev, call, 1)));
}

static Val find_last(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strrchr(text, (int)known(ev, call, 1)));
}

static Val find_string(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strstr(text, string(ev, call, 1)));
}

static Val find_any(Eval *ev, const Call *call)
{
    const char *text = string(ev, call, 0);
    return found_at(ev, call, text, strpbrk(text, string(ev, call, 1)));
}

static Val span(Eval *ev, const Call *call) { return val_int(call->function->result, (int64_t)strspn(string(ev, call, 0), string(ev, call, 1))); }
static Val complement_span(Eval *ev, const Call *call)
{
    return val_int(call->function->result, (int64_t)strcspn(string(ev, call, 0), string(ev, call, 1)));
}

/* ---- formatting ---- */

typedef struct Formatter {
    Eval *ev;
    const Call *call;
    int next; // argument
    Text out;
} Formatter;

static const Val *next_argument(Formatter *f)
{
    if (f->next >= f->call->count)
        eval_error(f->ev, f->call->at, "the format needs more arguments");
    known(f->ev, f->call, f->next);
    return &f->call->args[f->next++];
}

/* A conversion such as %-5.2f from behind the percent sign, `*` replaced by its argument; *at goes behind it. The letters of lengths are left out. */
static char read_conversion(Formatter *f, const char **at, Text *spec)
{
    text_string(spec, "%");
    for (;; (*at)++) {
        if (**at == '*')
            text_print(spec, "%d", (int)next_argument(f)->i);
        else if (**at && strchr("-+ #0123456789.", **at))
            text_append(spec, *at, 1);
        else if (!**at || !strchr("hlzjtq", **at))
            break;
    }
    char letter = **at;
    *at += letter != 0;
    return letter;
}

static void format_integer(Formatter *f, Text *spec, char letter)
{
    const Val *value = next_argument(f);
    uint64_t bits = value->i;
    if (!strchr("di", letter) && value->type->size < 8)
        bits &= ((uint64_t)1 << 8 * value->type->size) - 1;
    text_print(spec, "ll%c", letter);
    char *text = arena_alloc(f->ev->scratch, 4096);
    if (snprintf(text, 4096, text_bytes(spec), bits) >= 4096)
        eval_error(f->ev, f->call->at, "a number wider than 4095 characters");
    text_string(&f->out, text);
}

static void format_other(Formatter *f, Text *spec, char letter)
{
    const Val *value = next_argument(f);
    char *text = arena_alloc(f->ev->scratch, 4096);
    int length = 0;
    text_append(spec, &letter, 1);
    if (letter == 's')
        length = snprintf(text, 4096, text_bytes(spec), pointer_string(f->ev, value->i, f->call->at));
    else if (letter == 'c')
        length = snprintf(text, 4096, text_bytes(spec), (int)value->i);
    else
        length = snprintf(text, 4096, text_bytes(spec), value->f);
    if (length >= 4096)
        eval_error(f->ev, f->call->at, "a formatted value longer than 4095 characters");
    text_string(&f->out, text);
}

static void format_conversion(Formatter *f, const char **at)
{
    Text spec = {.arena = f->ev->scratch};
    char letter = read_conversion(f, at, &spec);
    if (letter == '%')
        text_string(&f->out, "%");
    else if (letter && strchr("diuoxX", letter))
        format_integer(f, &spec, letter);
    else if (letter && strchr("scfFeEgGaA", letter))
        format_other(f, &spec, letter);
    else
        eval_error(f->ev, f->call->at, "the conversion %%%c cannot be formatted at compile time", letter ? letter : ' ');
}

const char *format_values(Eval *ev, const Call *call, int format)
{
    Formatter f = {.ev = ev, .call = call, .next = format + 1, .out = {.arena = ev->scratch}};
    const char *at = string(ev, call, format);
    while (*at) {
        size_t plain = strcspn(at, "%");
        text_append(&f.out, at, plain);
        at += plain;
        if (*at) {
            at++;
            format_conversion(&f, &at);
        }
    }
    return text_bytes(&f.out);
}

static Val print_bounded(Eval *ev, const Call *call)
{
    const char *text = format_values(ev, call, 2);
    size_t length = strlen(text), size = known(ev, call, 1);
    if (size)
        write_string(ev, call, 0, text, length < size ? length : size - 1);
    return val_int(call->function->result, (int64_t)length);
}

static Val print_string(Eval *ev, const Call *call)
{
    const char *text = format_values(ev, call, 1);
    write_string(ev, call, 0, text, strlen(text));
    return val_int(call->function->result, (int64_t)strlen(text));
}

/* ---- assert ---- */

static Val assertion(Eval *ev, const Call *call) { eval_error(ev, call->at, "the assertion \"%s\" does not hold", string(ev, call, 0)); }

static Val given_up(Eval *ev, const Call *call) { eval_error(ev, call->at, "the model calls %s", call->function->name); }

const Builtin string_builtins[] = {
    {"memcpy", 3, copy_bytes},     {"memmove", 3, copy_bytes},    {"memset", 3, set_bytes},       {"memcmp", 3, compare_bytes},
    {"strlen", 1, length_of},      {"strnlen", 2, bounded_length}, {"strcmp", 2, compare},        {"strncmp", 3, compare_bounded},
    {"strcpy", 2, copy_string},    {"strncpy", 3, copy_bounded},  {"strcat", 2, append_string},   {"strncat", 3, append_bounded},
    {"strchr", 2, find_first},     {"strrchr", 2, find_last},     {"strstr", 2, find_string},     {"strpbrk", 2, find_any},
    {"strspn", 2, span},           {"strcspn", 2, complement_span}, {"snprintf", 3, print_bounded}, {"sprintf", 2, print_string},
    {"__assert_fail", 1, assertion}, {"abort", 0, given_up},      {"exit", 1, given_up},          {NULL, 0, NULL},
};

static const Builtin *find_in(const Builtin *table, const char *name)
{
    for (; table->name; table++)
        if (!strcmp(table->name, name))
            return table;
    return NULL;
}

const Builtin *builtin_find(const char *name)
{
    const Builtin *found = find_in(tensor_builtins, name);
    if (!found)
        found = find_in(string_builtins, !strncmp(name, "__builtin_", 10) ? name + 10 : name);
    return found;
}
