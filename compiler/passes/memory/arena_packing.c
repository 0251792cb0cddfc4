/* Assigns offsets to buffers by live ranges. */
#include "passes/memory/arena_packing.h"
#include "ir/programs/device_programs.h"

#include <stdlib.h>
#include <string.h>

/* Ratio of the length to its lower bound at which packing stops. */
#define NEAR 1.04

/* Limits: comparisons in further attempts, and attempts that move the highest items in front. */
enum { MOST_COMPARISONS = 20000000, LIFTS = 16 };

typedef struct Packer {
    PackItem *items;
    int count;
    PackItem **order;  // the order in which items are placed
    PackItem **kept;   // the order of the best attempt
    PackItem **placed; // placed items, by ascending offset
    int placed_count;
    int64_t bytes, best_bytes; // bytes of this attempt, and of the best one
    int64_t *best;             // by item: its offset in the best attempt
    int64_t comparisons;
    uint64_t random;
} Packer;

static int64_t rounded(int64_t bytes) {
    return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

static bool are_together(const PackItem *a, const PackItem *b) {
    return a->begin <= b->end && b->begin <= a->end;
}

/* Returns the offset of the smallest gap that fits, between items alive at the same time as this
 * item; if no gap fits, returns the end of the last such item. */
static int64_t find_gap(Packer *packer, const PackItem *item) {
    int64_t bytes = rounded(item->bytes), end = 0, best = -1, smallest = INT64_MAX;
    packer->comparisons += packer->placed_count;
    for (int i = 0; i < packer->placed_count; i++) {
        const PackItem *other = packer->placed[i];
        if (!are_together(item, other)) continue;
        int64_t gap = other->offset - end, behind = other->offset + rounded(other->bytes);
        if (gap >= bytes && gap < smallest) {
            smallest = gap;
            best = end;
        }
        end = behind > end ? behind : end;
    }
    return best >= 0 ? best : end;
}

static void place(Packer *packer, PackItem *item) {
    int at = packer->placed_count;
    item->offset = find_gap(packer, item);
    for (; at && packer->placed[at - 1]->offset > item->offset; at--)
        packer->placed[at] = packer->placed[at - 1];
    packer->placed[at] = item;
    packer->placed_count++;
    int64_t end = item->offset + item->bytes;
    packer->bytes = end > packer->bytes ? end : packer->bytes;
}

/* Places all items in order. Keeps the result unless an earlier attempt took fewer bytes. */
static void attempt(Packer *packer) {
    packer->placed_count = 0;
    packer->bytes = 0;
    for (int i = 0; i < packer->count; i++)
        if (packer->order[i]->bytes) place(packer, packer->order[i]);
    if (packer->bytes > packer->best_bytes) return;
    memcpy(packer->kept, packer->order, sizeof(PackItem *) * (size_t)packer->count);
    packer->best_bytes = packer->bytes;
    for (int i = 0; i < packer->count; i++) packer->best[i] = packer->items[i].offset;
}

/* Compares items: more bytes first, then longer lifetimes, then the order of the list. */
static int compare_sizes(const void *a, const void *b) {
    const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
    int x_time = x->end - x->begin, y_time = y->end - y->begin;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x_time != y_time) return x_time < y_time ? 1 : -1;
    return (x > y) - (x < y);
}

/* Moves the items that reach into the highest tenth of the arena to the front of the order. */
static void put_highest_first(Packer *packer, PackItem **scratch) {
    int64_t high = packer->bytes - packer->bytes / 10;
    int front = 0, back = 0;
    for (int i = 0; i < packer->count; i++) {
        PackItem *item = packer->order[i];
        if (item->offset + item->bytes > high) packer->order[front++] = item;
        else scratch[back++] = item;
    }
    memcpy(packer->order + front, scratch, sizeof *scratch * (size_t)back);
}

/* Returns a pseudorandom number in [0, count), the same in each run: packing is deterministic. */
static int draw(Packer *packer, int count) {
    packer->random = packer->random * 6364136223846793005 + 1442695040888963407;
    return (int)((packer->random >> 33) % (uint64_t)count);
}

/* Starts from the best order and moves a random item before a random earlier position. */
static void move_one(Packer *packer) {
    int to = draw(packer, packer->count), from = to + draw(packer, packer->count - to);
    memcpy(packer->order, packer->kept, sizeof(PackItem *) * (size_t)packer->count);
    PackItem *item = packer->order[from];
    memmove(packer->order + to + 1, packer->order + to, sizeof(PackItem *) * (size_t)(from - to));
    packer->order[to] = item;
}

/* Returns the lower bound: the most bytes that are alive at one time. Sizes are rounded up to the
 * alignment, because with small items no packing could otherwise come near the bound. */
static int64_t least_length(Arena *scratch, const PackItem *items, int count) {
    int last = 0;
    for (int i = 0; i < count; i++) last = items[i].end > last ? items[i].end : last;
    int64_t *change = arena_array(scratch, int64_t, last + 2), now = 0, most = 0;
    for (int i = 0; i < count; i++) {
        change[items[i].begin] += rounded(items[i].bytes);
        change[items[i].end + 1] -= rounded(items[i].bytes);
    }
    for (int t = 0; t <= last; t++) {
        now += change[t];
        most = now > most ? now : most;
    }
    return most;
}

/* Packs items until the length nears the lower bound or, after 3 attempts, `most` comparisons. */
static int64_t pack_within(Arena *scratch, PackItem *items, int count, int64_t most) {
    Packer packer = {.items = items, .count = count, .best_bytes = INT64_MAX};
    double enough = NEAR * (double)least_length(scratch, items, count);
    PackItem **later = arena_array(scratch, PackItem *, count + 1);
    packer.order = arena_array(scratch, PackItem *, count + 1);
    packer.kept = arena_array(scratch, PackItem *, count + 1);
    packer.placed = arena_array(scratch, PackItem *, count + 1);
    packer.best = arena_array(scratch, int64_t, count + 1);
    // the program's own order first
    for (int i = 0; i < count; i++) packer.order[i] = &items[i];
    attempt(&packer);
    packer.comparisons = 0;
    for (int i = 0; (double)packer.best_bytes > enough && (i < 2 || packer.comparisons < most);
         i++) {
        // then the largest items first, then the highest items in front, then random moves
        if (i == 0) qsort(packer.order, (size_t)count, sizeof *packer.order, compare_sizes);
        else if (i <= LIFTS) put_highest_first(&packer, later);
        else move_one(&packer);
        attempt(&packer);
    }
    for (int i = 0; i < count; i++) items[i].offset = packer.best[i];
    return packer.best_bytes;
}

int64_t pack(Arena *scratch, PackItem *items, int count) {
    return pack_within(scratch, items, count, MOST_COMPARISONS);
}

int64_t pack_roughly(Arena *scratch, PackItem *items, int count) {
    return pack_within(scratch, items, count, 0);
}
