#include "support/array.h"

#include <string.h>

void *array_grown(Arena *arena, const void *old, int count, int *capacity, size_t size)
{
    *capacity = count ? 2 * count : 8;
    void *grown = arena_alloc(arena, (size_t)*capacity * size);
    if (count)
        memcpy(grown, old, (size_t)count * size);
    return grown;
}
