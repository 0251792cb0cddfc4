/* Allocates host memory. Each function ends the program if there is no memory left. */
#pragma once

#include <hetu/kernel.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Allocates `count` zeroed objects of `size` bytes; free() them. */
static inline void *memory_array(int64_t count, size_t size) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory) ht_fail("no memory for %lld objects of %zu bytes", (long long)count, size);
    return memory;
}

enum { MEMORY_ALIGNMENT = 64 }; // bytes: every tensor on the host begins at a multiple

/* Rounds a number of bytes up to the alignment of tensors. */
static inline int64_t memory_aligned(int64_t bytes) {
    return (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
}

/* Allocates storage for tensors, aligned and not zeroed; free() it. */
static inline void *memory_storage(int64_t bytes) {
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, (size_t)memory_aligned(bytes + 1));
    if (!memory) ht_fail("no memory for %.1f MB of tensors on this rank", (double)bytes / 1e6);
    return memory;
}
