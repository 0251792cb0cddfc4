#include "base/memory.h"

#include <hetu/kernel.h>

#include <stdlib.h>

void *memory_array(int64_t count, size_t size) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory) ht_fail("no memory for %lld objects of %zu bytes", (long long)count, size);
    return memory;
}

void *memory_storage(int64_t bytes) {
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, (size_t)memory_aligned(bytes + 1));
    if (!memory) ht_fail("no memory for %.1f MB of tensors on this rank", (double)bytes / 1e6);
    return memory;
}
