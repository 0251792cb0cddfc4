/* Allocates from blocks that double. */
#include "support/arena.h"

#include "support/array.h"
#include "support/tool.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BYTES = 1 << 10,
    BLOCK_BYTES = 1 << 16,
    ALIGNMENT = 16,
    LARGE_BYTES = 1 << 25,
    KEPT_BYTES = INT32_MAX
};

typedef struct Block Block;
struct Block {
    Block *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

struct Arena {
    Block *blocks; // the newest first
    size_t room;   // size of the next block for small objects
};

/* Calls calloc; ends the process with a message when memory is exhausted. */
static void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) {
        fprintf(stderr, "%s: out of memory\n", tool_name());
        exit(2);
    }
    return memory;
}

/* Makes malloc keep the memory of destroyed arenas: fresh pages from the system are slow. */
static void keep_memory(void) {
    static bool kept;
    if (kept) return;
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    kept = true;
}

Arena *arena_create(void) {
    keep_memory();
    Arena *arena = allocate(sizeof(Arena));
    arena->room = FIRST_BYTES;
    return arena;
}

void arena_destroy(Arena *arena) {
    if (!arena) return;
    for (Block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(arena);
}

/* Returns the size of the next block for an object of `size` bytes. Blocks double up to
 * BLOCK_BYTES, so small arenas are cheap. A large object has a block of its own. */
static size_t next_room(Arena *arena, size_t size) {
    if (size > BLOCK_BYTES / 4) return size;
    while (arena->room < 4 * size) arena->room *= 2;
    size_t room = arena->room;
    arena->room = room < BLOCK_BYTES ? 2 * room : room;
    return room;
}

/* Adds a block with room for `size` bytes in front of the list. A block for one large object goes
 * after the first block, which may still have room. */
static Block *block_add(Arena *arena, size_t size) {
    size_t room = next_room(arena, size);
    Block *block = allocate(sizeof(Block) + room);
    block->size = room;
    if (room == size && arena->blocks) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        block->next = arena->blocks;
        arena->blocks = block;
    }
    return block;
}

void *arena_alloc(Arena *arena, size_t size) {
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Block *block = arena->blocks;
    if (!block || block->size - block->used < size) block = block_add(arena, size);
    void *memory = block->bytes + block->used;
    block->used += size;
    return memory;
}

void *arena_copy(Arena *arena, const void *from, size_t size) {
    void *memory = arena_alloc(arena, size);
    if (size) memcpy(memory, from, size);
    return memory;
}

char *arena_substring(Arena *arena, const char *text, size_t length) {
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_string(Arena *arena, const char *text) {
    return arena_substring(arena, text, strlen(text));
}

char *arena_vformat(Arena *arena, const char *format, va_list arguments) {
    char small[512];
    va_list again;
    va_copy(again, arguments);
    size_t length = (size_t)vsnprintf(small, sizeof small, format, again);
    va_end(again);
    if (length < sizeof small) return arena_substring(arena, small, length);
    char *text = arena_alloc(arena, length + 1);
    vsnprintf(text, length + 1, format, arguments);
    return text;
}

char *arena_format(Arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = arena_vformat(arena, format, arguments);
    va_end(arguments);
    return text;
}

/* Size of an array when it gets its first element, in bytes; at least one element. */
enum { ARRAY_BYTES = 64 };

void *array_grown(Arena *arena, const void *old, int count, int *capacity, size_t size) {
    *capacity = count ? 2 * count : size < ARRAY_BYTES ? (int)(ARRAY_BYTES / size) : 1;
    void *grown = arena_alloc(arena, (size_t)*capacity * size);
    if (count) memcpy(grown, old, (size_t)count * size);
    return grown;
}
