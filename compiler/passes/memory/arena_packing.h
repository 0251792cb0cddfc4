/* Packing: offsets in one arena for items with known lifetimes (buffer assignment).
 *
 *     PackItem item[] = {{.begin = 0, .end = 3, .bytes = 4096}, ...};
 *     int64_t length = pack(scratch, item, count);     also sets item[i].offset
 *
 * The length is at least the most bytes that are alive at one time; to find the minimum is NP-hard.
 * The packer places items one after another, each in the smallest gap between items whose lifetimes
 * overlap. The packer tries several orders and keeps the best: the order of the program; largest
 * items first; the highest items of the last attempt in front; random moves of one item. The packer
 * stops when the length is near the lower bound, or after a limited number of comparisons. */
#pragma once

#include "support/arena.h"

#include <stdint.h>

/* An item that is alive from time `begin` to time `end`, both included. */
typedef struct PackItem {
    int begin, end;
    int64_t bytes;
    int64_t offset; // result: a multiple of ARENA_ALIGNMENT; 0 for an item of no bytes
} PackItem;

/* Sets the offsets of the items. Returns the length of the arena in bytes. */
int64_t pack(Arena *scratch, PackItem *items, int count);

/* Does the same as pack in fewer attempts. The arena is never shorter than the arena of pack. */
int64_t pack_roughly(Arena *scratch, PackItem *items, int count);
