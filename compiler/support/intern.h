/* Interning: equal bytes become one pointer, so that what is equal can be compared and shared by
 * pointer. */
#ifndef SUPPORT_INTERN_H
#define SUPPORT_INTERN_H

#include "support/arena.h"

typedef struct Intern Intern;

/* An empty table whose copies live in `arena`. */
Intern *intern_create(Arena *arena);

/* The one copy of `size` bytes at `bytes`. Padding inside structs must be zero: fill them by
 * assignment to zeroed memory. */
const void *intern(Intern *table, const void *bytes, size_t size);

/* A map: the place of a value that belongs to the bytes, NULL in the beginning. It moves when the
 * table grows: use it at once. */
void *intern_slot(Intern *table, const void *bytes, size_t size);

#endif
