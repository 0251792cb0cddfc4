/* Formats text as printf does.
 *
 *     snprintf(name, sizeof name, "h%d.%s", 3, "up")    "h3.up"
 *
 * Arguments are promoted as for a variadic function and must have the type of their conversion. Any
 * other type is refused: the machine would read it from another register. */
#include "frontend/eval/eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WIDTH = 1 << 20 };

typedef struct Formatter {
    Eval *ev;
    const Call *call;
    int next;     // index of the next argument
    uint64_t to;  // destination of the text; 0: none
    int64_t room; // size of the destination in bytes
    Text *out;
} Formatter;

/* The parts of a conversion such as %-5.2f. */
typedef struct Conversion {
    char flags[8];
    int width, precision; // -1: none
    char length[3];       // h, hh, l, ll, j, z, t, L
    char letter;
} Conversion;

static _Noreturn void refuse(Formatter *f, const Conversion *c, const char *why) {
    eval_error(f->ev, f->call->at, "the conversion %%%s%c cannot be formatted at compile time%s",
               c->length, c->letter ? c->letter : ' ', why);
}

static const Val *next_argument(Formatter *f) {
    if (f->next >= f->call->count)
        eval_error(f->ev, f->call->at, "the format needs more arguments");
    (void)call_argument(f->ev, f->call, f->next);
    return &f->call->args[f->next++];
}

/* Returns the next argument, an integer of `size` bytes. */
static int64_t next_integer(Formatter *f, const Conversion *c, int64_t size) {
    const Val *value = next_argument(f);
    if (!ctype_is_integer(value->type) || value->type->size != size)
        eval_error(f->ev, f->call->at,
                   "argument %d of %s is of type %s, but the conversion %%%s%c takes an integer of "
                   "%lld bytes",
                   f->next, f->call->function->name, value->type->name, c->length, c->letter,
                   (long long)size);
    return (int64_t)value->i;
}

/* Reads a width or precision, which is digits or a star for an argument; moves *at past it. */
static int read_count(Formatter *f, const char **at) {
    long count;
    if (**at == '*') {
        (*at)++;
        count = (int)next_integer(f, &(Conversion){.letter = '*'}, 4);
    } else {
        char *end;
        count = strtol(*at, &end, 10);
        *at = end;
    }
    if (count > MOST_WIDTH || count < -MOST_WIDTH)
        eval_error(f->ev, f->call->at, "a conversion that is %ld characters wide", count);
    return (int)count;
}

static void add_flag(Conversion *c, char flag) {
    size_t length = strlen(c->flags);
    if (!strchr(c->flags, flag) && length + 1 < sizeof c->flags) c->flags[length] = flag;
}

/* Reads the conversion whose percent sign *at has passed; moves *at past the conversion. */
static Conversion read_conversion(Formatter *f, const char **at) {
    static const char *const lengths[] = {"hh", "h", "ll", "l", "j", "z", "t", "L"};
    Conversion c = {.width = -1, .precision = -1};
    for (; **at && strchr("-+ #0'", **at); (*at)++) add_flag(&c, **at);
    if (**at == '*' || (**at >= '1' && **at <= '9')) c.width = read_count(f, at);
    if (c.width < -1) add_flag(&c, '-');
    c.width = c.width < -1 ? -c.width : c.width;
    if (**at == '.') {
        ++*at;
        c.precision = **at == '*' || (**at >= '0' && **at <= '9') ? read_count(f, at) : 0;
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths && !*c.length; i++)
        if (!strncmp(*at, lengths[i], strlen(lengths[i]))) strcpy(c.length, lengths[i]);
    *at += strlen(c.length);
    c.letter = **at;
    *at += c.letter != 0;
    return c;
}

/* Writes a conversion to `spelled` for the C library, with `length` as its length modifier. */
static void spell(const Conversion *c, const char *length, char spelled[64]) {
    char width[16] = "", precision[16] = "";
    if (c->width >= 0) snprintf(width, sizeof width, "%d", c->width);
    if (c->precision >= 0) snprintf(precision, sizeof precision, ".%d", c->precision);
    snprintf(spelled, 64, "%%%s%s%s%s%c", c->flags, width, precision, length, c->letter);
}

static void format_integer(Formatter *f, const Conversion *c) {
    bool is_signed = strchr("di", c->letter), wide = *c->length && *c->length != 'h';
    char spelled[64];
    if (*c->length == 'L') refuse(f, c, "");
    int64_t value = next_integer(f, c, wide ? 8 : 4);
    int bits = wide ? 64 : !strcmp(c->length, "hh") ? 8 : *c->length ? 16 : 32, shift = 64 - bits;
    spell(c, "ll", spelled);
    if (is_signed)
        text_print(f->out, spelled, (long long)((int64_t)((uint64_t)value << shift) >> shift));
    else text_print(f->out, spelled, (unsigned long long)((uint64_t)value << shift >> shift));
}

static void format_floating(Formatter *f, const Conversion *c) {
    char spelled[64];
    if (*c->length && strcmp(c->length, "l")) refuse(f, c, "");
    const Val *value = next_argument(f);
    if (value->type->kind != CT_DOUBLE)
        eval_error(f->ev, f->call->at,
                   "argument %d of %s is of type %s, but the conversion %%%c takes a double",
                   f->next, f->call->function->name, value->type->name, c->letter);
    spell(c, "", spelled);
    text_print(f->out, spelled, value->f);
}

/* Refuses an argument whose `length` bytes at the pointer `from` overlap the destination. */
static void check_apart(Formatter *f, uint64_t from, int64_t length) {
    int64_t begin = (int32_t)from, to = (int32_t)f->to;
    if (f->to && from >> 32 == f->to >> 32 && begin < to + f->room && begin + length > to)
        eval_error(f->ev, f->call->at,
                   "%s reads and writes places that overlap here, of which C says nothing",
                   f->call->function->name);
}

static void pad(Formatter *f, int64_t count) {
    for (; count > 0; count--) text_append(f->out, " ", 1);
}

static void format_string(Formatter *f, const Conversion *c) {
    size_t characters;
    if (*c->length) refuse(f, c, "");
    const Val *value = next_argument(f);
    const CType *type = value->type;
    if (type->kind != CT_POINTER || (type->base->size != 1 && type->base->kind != CT_VOID))
        eval_error(f->ev, f->call->at,
                   "argument %d of %s is of type %s, but the conversion %%s takes a string",
                   f->next, f->call->function->name, type->name);
    uint64_t most = c->precision < 0 ? UINT64_MAX : (uint64_t)c->precision;
    const char *text = pointer_characters(f->ev, value->i, most, f->call->at, &characters);
    int64_t length = (int64_t)characters;
    bool left = strchr(c->flags, '-');
    check_apart(f, value->i, length + 1);
    pad(f, left ? 0 : c->width - length);
    text_append(f->out, text, (size_t)length);
    pad(f, left ? c->width - length : 0);
}

static void format_character(Formatter *f, const Conversion *c) {
    char spelled[64];
    if (*c->length) refuse(f, c, "");
    spell(c, "", spelled);
    text_print(f->out, spelled, (int)next_integer(f, c, 4));
}

static void format_conversion(Formatter *f, const char **at) {
    bool plain = **at == '%';
    Conversion c = read_conversion(f, at);
    if (c.letter == '%' && plain) text_append(f->out, "%", 1);
    else if (c.letter && strchr("diuoxX", c.letter)) format_integer(f, &c);
    else if (c.letter && strchr("fFeEgGaA", c.letter)) format_floating(f, &c);
    else if (c.letter == 's') format_string(f, &c);
    else if (c.letter == 'c') format_character(f, &c);
    else refuse(f, &c, c.letter == 'p' ? ", where nothing has an address" : "");
}

const Text *format_values(Eval *ev, const Call *call, int format, uint64_t to, int64_t room) {
    Formatter f = {
        .ev = ev, .call = call, .next = format + 1, .to = to, .room = room, .out = &ev->formatted};
    uint64_t pointer = call_argument(ev, call, format).i;
    const char *at = pointer_string(ev, pointer, call->at);
    check_apart(&f, pointer, (int64_t)strlen(at) + 1);
    f.out->arena = ev->scratch;
    f.out->length = 0;
    if (f.out->bytes) *f.out->bytes = 0;
    while (*at) {
        size_t plain = strcspn(at, "%");
        text_append(f.out, at, plain);
        at += plain;
        if (*at) {
            at++;
            format_conversion(&f, &at);
        }
    }
    return f.out;
}
