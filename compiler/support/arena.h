/* Arenas: memory that lives and dies together.
 *
 * The compiler never frees single objects. It has two lifetimes: the module's arena, which lives
 * until the output is written, and scratch arenas, which a function creates and destroys around its
 * own work. Every allocation is zeroed and aligned to 16 bytes.
 */
#ifndef SUPPORT_ARENA_H
#define SUPPORT_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

/* Returns a new, empty arena. Ends the process with a message when the system has no memory left.
 */
Arena *arena_create(void);

/* Frees everything that was allocated from `arena`, and the arena itself. NULL is allowed. */
void arena_destroy(Arena *arena);

/* Returns `size` zeroed bytes; a valid pointer for size 0, too. */
void *arena_alloc(Arena *arena, size_t size);

/* Returns a copy of the `size` bytes at `from`. */
void *arena_copy(Arena *arena, const void *from, size_t size);

/* Return a copy of a string, and of its first `length` bytes with a 0 behind them. */
char *arena_string(Arena *arena, const char *text);
char *arena_substring(Arena *arena, const char *text, size_t length);

/* Return the text that printf would print, in the arena. */
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vformat(Arena *arena, const char *format, va_list arguments);

/* An object, or `count` objects, of type T. */
#define arena_new(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define arena_array(arena, T, count) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(count)))

/* Returns `bytes` rounded up to a multiple of `unit`. */
static inline int64_t align_up(int64_t bytes, int64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

#endif
