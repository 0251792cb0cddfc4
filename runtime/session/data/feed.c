/* Checks arrays of ht_feed by type and size. */
#include "session/data/feed.h"

#include "exchange/copy_boxes.h"

#include <stdio.h>
#include <string.h>

/* For each type of an input: its name, and the C types of arrays that it takes, as ht_feed spells
 * them. Messages suggest the first C type. */
static const struct {
    const char *name;
    const char *elements[2];
} types[] = {[HT_F32] = {"HT_F32", {"float"}},
             [HT_BF16] = {"HT_BF16", {"unsigned short"}},
             [HT_F64] = {"HT_F64", {"double"}},
             [HT_I32] = {"HT_I32", {"int"}},
             [HT_I64] = {"HT_I64", {"long", "long long"}}};

/* Returns whether an array of a C type fits an input. `long` is HT_I32 where it has 4 bytes. */
static bool fits(const char *type, ht_dtype dtype) {
    if (!strcmp(type, "long")) return dtype == (sizeof(long) == 8 ? HT_I64 : HT_I32);
    for (int i = 0; i < 2; i++)
        if (types[dtype].elements[i] && !strcmp(type, types[dtype].elements[i])) return true;
    return false;
}

const char *feed_type_name(ht_dtype dtype) { return types[dtype].name; }

void feed_check(const ht_fed *feed, ht_dtype dtype, int64_t elements, const char *at) {
    char input[512];
    int64_t bytes = (int64_t)ht_dtype_bytes(dtype);
    // "the input \"x\" (model.c:30) is 24 elements of HT_F32"
    snprintf(input, sizeof input, "the input \"%s\"%s%s%s is %lld element%s of %s", feed->name,
             at ? " (" : "", at ? at : "", at ? ")" : "", (long long)elements,
             elements == 1 ? "" : "s", types[dtype].name);
    if (feed->type && !fits(feed->type, dtype))
        ht_fail("%s, and is fed elements of type %s; give it an array of %s", input, feed->type,
                types[dtype].elements[0]);
    if (feed->known == HT_FED_BYTES && feed->size < elements * bytes)
        ht_fail("%s, %lld bytes, and is fed an array of %lld bytes; give it all of them", input,
                (long long)(elements * bytes), (long long)feed->size);
    if (feed->known == HT_FED_BYTES && elements && feed->size > elements * bytes)
        ht_fail("%s, %lld bytes, and is fed an array of %lld bytes; ht_feed_n(\"%s\", pointer, "
                "%lld) feeds a part of one",
                input, (long long)(elements * bytes), (long long)feed->size, feed->name,
                (long long)elements);
    if (feed->known == HT_FED_ELEMENTS && feed->size != elements)
        ht_fail("%s, and is fed %lld", input, (long long)feed->size);
}

void feeds_check_once(const ht_fed *feeds) {
    for (const ht_fed *feed = feeds; feed->name; feed++)
        for (const ht_fed *other = feeds; other < feed; other++)
            if (!strcmp(feed->name, other->name))
                ht_fail("the input \"%s\" is fed twice in one step", feed->name);
}
