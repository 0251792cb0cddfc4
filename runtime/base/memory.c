#include "base/memory.h"

#include <hetu/kernel.h>

#include <stdlib.h>

enum { ALIGNMENT = 64 };

void *memory_array(int64_t count, size_t size) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory) ht_fail("no memory for %lld objects of %zu bytes", (long long)count, size);
    return memory;
}

void *memory_storage(int64_t bytes) {
    size_t whole = ((size_t)bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, whole);
    if (!memory) ht_fail("no memory for %.1f MB of tensors on this rank", (double)bytes / 1e6);
    return memory;
}
