/* Arenas: memory that is allocated piece by piece and freed at once.
 *
 *     Arena *scratch = arena_create();
 *     int *order = arena_array(scratch, int, count);
 *     ...
 *     arena_destroy(scratch);
 *
 * The compiler never frees single objects. The module's arena lives until the output is written; a
 * function creates and destroys scratch arenas around its own work. Every allocation is zeroed and
 * aligned to 16 bytes. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

/* Returns a new, empty arena. Ends the process with a message when memory is exhausted. */
Arena *arena_create(void);

/* Frees everything that was allocated from `arena`, and the arena itself. Ignores NULL. */
void arena_destroy(Arena *arena);

/* Returns `size` zeroed bytes; a valid pointer also for size 0. */
void *arena_alloc(Arena *arena, size_t size);

/* Returns a copy of the `size` bytes at `from`. */
void *arena_copy(Arena *arena, const void *from, size_t size);

/* Return a copy of a string, and of its first `length` bytes with a null byte appended. */
char *arena_string(Arena *arena, const char *text);
char *arena_substring(Arena *arena, const char *text, size_t length);

/* Return the text that printf would print, allocated in the arena. */
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vformat(Arena *arena, const char *format, va_list arguments);

/* Allocate an object, or `count` objects, of type T. */
#define arena_new(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define arena_array(arena, T, count) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(count)))

/* Returns `bytes` rounded up to a multiple of `unit`. */
static inline int64_t align_up(int64_t bytes, int64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}
