#include "support/array.h"

#include <string.h>

/* What an array has at first, in bytes; one element, if that is larger. */
enum { FIRST_BYTES = 64 };

void *array_grown(Arena *arena, const void *old, int count, int *capacity, size_t size) {
    *capacity = count ? 2 * count : size < FIRST_BYTES ? (int)(FIRST_BYTES / size) : 1;
    void *grown = arena_alloc(arena, (size_t)*capacity * size);
    if (count) memcpy(grown, old, (size_t)count * size);
    return grown;
}
