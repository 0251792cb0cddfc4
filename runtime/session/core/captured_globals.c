/* Checks that C variables, which a model read when it was compiled, still have the same values. */
#include "session/core/image.h"

#include "base/c_locale.h"

#include <stdio.h>
#include <string.h>

static long long signed_number(const void *at, int size) {
    int64_t number = 0;
    int shift = 64 - 8 * size;
    memcpy(&number, at, (size_t)size);
    return (int64_t)((uint64_t)number << shift) >> shift;
}

static double floating_number(const void *at, int size) {
    float narrow;
    double wide;
    memcpy(&narrow, at, sizeof narrow);
    if (size == (int)sizeof narrow) return (double)narrow;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void print_number(char *out, size_t room, const ht_image_read *read, const void *at) {
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)read->size);
    switch (read->kind) {
    case HT_SIGNED: snprintf(out, room, "%lld", signed_number(at, read->size)); break;
    case HT_UNSIGNED: snprintf(out, room, "%llu", (unsigned long long)bits); break;
    case HT_FLOATING:
        plain_format(out, room, "%.*g", read->size == (int)sizeof(float) ? 9 : 17,
                     floating_number(at, read->size));
        break;
    }
}

/* Writes what the user can do about a changed variable. `wanted`: the program is about to switch to
 * the image; otherwise the image is running. */
static void advise(char *out, size_t room, int index, bool wanted) {
    int fits = image_next(index, -1);
    while (fits >= 0 && !image_reads_agree(fits)) fits = image_next(index, fits);
    if (wanted) snprintf(out, room, "set it before ht_switch, or choose the strategy that has it");
    else if (fits >= 0)
        snprintf(out, room, "call ht_switch, which goes to strategy \"%s\"",
                 image_at(fits)->image->strategy);
    else snprintf(out, room, "compile it with the value that it is to have");
}

/* Ends the program; the message has the values of element `index` at compile time and now. */
static _Noreturn void differs(int image, const ht_image_read *read, int64_t index, const char *now,
                              bool wanted) {
    char was[32], is[32], place[32] = "", strategy[256] = "", advice[512];
    const ht_image *own = image_at(image)->image;
    print_number(was, sizeof was, read, (const char *)read->then + index * read->size);
    print_number(is, sizeof is, read, now + index * read->size);
    if (read->first >= 0) snprintf(place, sizeof place, "[%lld]", (long long)(read->first + index));
    if (own->strategy && image_next(image, image_next(image, -1)) >= 0)
        snprintf(strategy, sizeof strategy, " for strategy \"%s\"", own->strategy);
    advise(advice, sizeof advice, image, wanted);
    ht_fail(
        "%s: the model %s reads \"%s%s\", which was %s when it was compiled%s and is %s now; %s",
        read->at, own->model, read->name, place, was, strategy, is, advice);
}

/* Returns the index of the first element of a read whose value has changed; -1: none. */
static int64_t first_changed(const ht_image_read *read, const char *now) {
    const char *then = read->then;
    for (int64_t i = 0; i < read->count; i++)
        if (memcmp(then + i * read->size, now + i * read->size, (size_t)read->size)) return i;
    return -1;
}

static void check_read(int image, const ht_image_read *read, const char *now, bool wanted) {
    int64_t changed = first_changed(read, now);
    if (changed >= 0) differs(image, read, changed, now, wanted);
}

bool image_reads_agree(int index) {
    const RegisteredImage *registered = image_at(index);
    for (int i = 0; i < registered->image->read_count; i++)
        if (first_changed(&registered->image->reads[i], (const char *)registered->now[i]) >= 0)
            return false;
    return true;
}

bool image_read_integer(int index, const void *variable, int64_t *value) {
    const RegisteredImage *registered = image_at(index);
    for (int i = 0; i < registered->image->read_count; i++) {
        const ht_image_read *read = &registered->image->reads[i];
        if ((const volatile void *)variable != registered->now[i] || read->kind == HT_FLOATING)
            continue;
        uint64_t bits = 0;
        memcpy(&bits, read->then, (size_t)read->size);
        *value = read->kind == HT_SIGNED ? signed_number(read->then, read->size) : (int64_t)bits;
        return true;
    }
    return false;
}

void image_check_reads(int index, bool wanted) {
    const RegisteredImage *registered = image_at(index);
    for (int i = 0; i < registered->image->read_count; i++)
        check_read(index, &registered->image->reads[i], (const char *)registered->now[i], wanted);
}
