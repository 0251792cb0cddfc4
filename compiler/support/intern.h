/* Interning: equal byte strings become one pointer, so that they are compared and shared by
 * pointer; and maps whose keys are byte strings.
 *
 *     Intern *numbers = intern_create(arena);
 *     intptr_t *number = intern_slot(numbers, "relu", 4);
 *     if (!*number) *number = ++count;    // "relu" is new
 */
#ifndef SUPPORT_INTERN_H
#define SUPPORT_INTERN_H

#include <stddef.h>

typedef struct Arena Arena;
typedef struct Intern Intern;

/* Returns an empty table; it and its copies of keys live in `arena`. */
Intern *intern_create(Arena *arena);

/* Returns the one copy of the `size` bytes at `bytes`. Padding inside a struct takes part in the
 * comparison: fill the struct by assignments to zeroed memory. */
const void *intern(Intern *table, const void *bytes, size_t size);

/* Returns the address of the value (a pointer, or an intptr_t) that a map has for these bytes; NULL
 * or 0 at first. The value moves when the table grows: use the address at once. */
void *intern_slot(Intern *table, const void *bytes, size_t size);

#endif
