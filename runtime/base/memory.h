/* Allocation on the host. Without memory left, each function ends the program with a message. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Allocates `count` zeroed objects of `size` bytes; free() them. */
void *memory_array(int64_t count, size_t size);

enum { MEMORY_ALIGNMENT = 64 }; // bytes: every tensor on the host begins at a multiple

/* Rounds a number of bytes up to the alignment of tensors. */
static inline int64_t memory_aligned(int64_t bytes) {
    return (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
}

/* Allocates storage for tensors, aligned and not zeroed; free() it. */
void *memory_storage(int64_t bytes);

#endif
