/* Packing: places in one stretch of memory for items that are needed at known times.
 *
 *     PackItem item[] = {{.begin = 0, .end = 3, .bytes = 4096}, ...};
 *     int64_t bytes = pack(scratch, item, count);      item[i].offset, and how long the stretch is
 *
 * The least length is at least that of what is needed at one time; to find it is NP-hard. The items
 * are placed one after the other, each in the smallest gap between those that are needed together
 * with it, in several orders, of which the best counts: as a program asks for them; the longest
 * items first; then with those in front that made the last attempt long, and at last with one item
 * after the other moved to the front of some others, until the length is near the least, or enough
 * was tried.
 */
#ifndef PASSES_MEMORY_ARENA_PACKING_H
#define PASSES_MEMORY_ARENA_PACKING_H

#include "support/arena.h"

#include <stdint.h>

/* Needed from time `begin` to time `end`, both included. */
typedef struct PackItem {
    int begin, end;
    int64_t bytes;
    int64_t offset; // a multiple of ARENA_ALIGNMENT; 0 where there are no bytes
} PackItem;

/* Places the items; returns the bytes of the stretch, up to the end of the last one. */
int64_t pack(Arena *scratch, PackItem *items, int count);

/* The same in a few attempts: never fewer bytes than pack gives. */
int64_t pack_roughly(Arena *scratch, PackItem *items, int count);

#endif
