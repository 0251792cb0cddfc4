/* Interning: equal byte strings become one pointer; two pointers are then equal if the bytes are.
 *
 *     const int *devices = intern(lists, list, sizeof *list * count);    equal lists: one pointer
 *
 * The same table serves as a map from byte strings to values:
 *
 *     Intern *numbers = intern_create(arena);
 *     intptr_t *number = intern_slot(numbers, "relu", 4);
 *     if (!*number) *number = ++count;    // "relu" is new */
#pragma once

#include <stddef.h>

typedef struct Arena Arena;
typedef struct Intern Intern;

/* Returns an empty table, which lives in `arena` together with its copies of keys. */
Intern *intern_create(Arena *arena);

/* Returns the one copy of the `size` bytes at `bytes`. Padding inside a struct is compared, too:
 * assign the members of a zeroed struct. */
const void *intern(Intern *table, const void *bytes, size_t size);

/* Returns the address of the value (a pointer, or an intptr_t) for these bytes in a map; the value
 * is NULL or 0 at first. The address is valid until the next call. */
void *intern_slot(Intern *table, const void *bytes, size_t size);
