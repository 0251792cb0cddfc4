/* Whether the variables that a model read when it was compiled have the same values now. */
#include "session/image.h"

#include <stdio.h>
#include <string.h>

static long long signed_number(const void *at, int size)
{
    int64_t number = 0;
    int shift = 64 - 8 * size;
    memcpy(&number, at, (size_t)size);
    return (int64_t)((uint64_t)number << shift) >> shift;
}

static double floating_number(const void *at, int size)
{
    float narrow;
    double wide;
    memcpy(&narrow, at, sizeof narrow);
    if (size == (int)sizeof narrow)
        return (double)narrow;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void print_number(char *out, size_t room, const ht_image_read *read, const void *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)read->size);
    switch (read->kind) {
    case HT_SIGNED: snprintf(out, room, "%lld", signed_number(at, read->size)); break;
    case HT_UNSIGNED: snprintf(out, room, "%llu", (unsigned long long)bits); break;
    case HT_FLOATING: snprintf(out, room, "%.*g", read->size == (int)sizeof(float) ? 9 : 17, floating_number(at, read->size)); break;
    }
}

static _Noreturn void differs(const ht_image *image, const ht_image_read *read, int64_t index, const char *then, const char *now)
{
    char was[32], is[32], place[32] = "";
    print_number(was, sizeof was, read, then);
    print_number(is, sizeof is, read, now);
    if (read->first >= 0)
        snprintf(place, sizeof place, "[%lld]", (long long)(read->first + index));
    ht_fail(
        "%s: the model %s reads \"%s%s\", which was %s when it was compiled and is %s now; compile it with the value that it is to have",
        read->at, image->model, read->name, place, was, is);
}

/* The first number of a read that is another one now; -1: none. */
static int64_t first_changed(const ht_image_read *read, const char *now)
{
    const char *then = read->then;
    for (int64_t i = 0; i < read->count; i++)
        if (memcmp(then + i * read->size, now + i * read->size, (size_t)read->size))
            return i;
    return -1;
}

static void check_read(const ht_image *image, const ht_image_read *read, const char *now)
{
    int64_t changed = first_changed(read, now);
    if (changed >= 0)
        differs(image, read, changed, (const char *)read->then + changed * read->size, now + changed * read->size);
}

bool image_reads_agree(int index)
{
    const RegisteredImage *registered = image_at(index);
    for (int i = 0; i < registered->image->read_count; i++)
        if (first_changed(&registered->image->reads[i], (const char *)registered->now[i]) >= 0)
            return false;
    return true;
}

bool image_read_integer(int index, const void *variable, int64_t *value)
{
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

void image_check_reads(int index)
{
    const RegisteredImage *registered = image_at(index);
    for (int i = 0; i < registered->image->read_count; i++)
        check_read(registered->image, &registered->image->reads[i], (const char *)registered->now[i]);
}
