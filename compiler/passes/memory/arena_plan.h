/* Offsets in one arena: a best-fit allocator that runs at compile time, in the order in which the program will run. */
#ifndef PASSES_MEMORY_ARENA_PLAN_H
#define PASSES_MEMORY_ARENA_PLAN_H

#include "ir/roles.h"
#include "support/array.h"

#include <stdint.h>

typedef struct Hole {
    int64_t offset, bytes;
} Hole;

typedef struct ArenaPlan {
    Arena *arena;
    Array(Hole) holes; // ascending, never adjacent
    int64_t end, peak; // the arena in use ends here; the most it ever was
} ArenaPlan;

/* The smallest hole that fits, else the end. `bytes` are rounded up to the alignment; 0 bytes take none. */
int64_t arena_plan_take(ArenaPlan *plan, int64_t bytes);

/* Gives back what arena_plan_take returned for `bytes`. */
void arena_plan_give(ArenaPlan *plan, int64_t offset, int64_t bytes);

#endif
