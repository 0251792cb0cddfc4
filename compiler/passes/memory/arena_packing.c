#include "passes/memory/arena_packing.h"
#include "ir/programs/device_programs.h"

#include <stdlib.h>
#include <string.h>

/* Longer than the least length by this part is good enough. */
#define NEAR 1.04

/* Comparisons of two items that further attempts may take, and in how many of those what was
 * highest is put in front. */
enum { MOST_COMPARISONS = 20000000, LIFTS = 16 };

typedef struct Packer {
    PackItem *items;
    int count;
    PackItem **order;  // in which items are placed
    PackItem **kept;   // the order of the best attempt
    PackItem **placed; // ascending by offset
    int placed_count;
    int64_t bytes, best_bytes; // of this attempt, and of the best one
    int64_t *best;             // by item: the offset in that
    int64_t comparisons;
    uint64_t random;
} Packer;

static int64_t rounded(int64_t bytes) {
    return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

static bool are_together(const PackItem *a, const PackItem *b) {
    return a->begin <= b->end && b->begin <= a->end;
}

/* ---- one attempt ---- */

/* The smallest gap that fits between items that are needed together with this one, else behind the
 * last of them. */
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

/* Places all items in their order; keeps what comes of it unless there is better. */
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

/* ---- orders ---- */

/* Longer items come first; of equal ones those that are needed for longer, then those that are
 * needed earlier. */
static int compare_sizes(const void *a, const void *b) {
    const PackItem *x = *(PackItem *const *)a, *y = *(PackItem *const *)b;
    int x_time = x->end - x->begin, y_time = y->end - y->begin;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x_time != y_time) return x_time < y_time ? 1 : -1;
    return (x > y) - (x < y);
}

/* Puts the items that reach into the last tenth of the stretch in front of the others. */
static void put_highest_first(Packer *packer, PackItem **scratch) {
    int64_t high = packer->bytes - packer->bytes / 10;
    int front = 0, back = 0;
    for (int i = 0; i < packer->count; i++) {
        PackItem *item = packer->order[i];
        if (item->offset + item->bytes > high)
            packer->order[front++] = item;
        else
            scratch[back++] = item;
    }
    memcpy(packer->order + front, scratch, sizeof *scratch * (size_t)back);
}

/* A number from 0 to below `count`: of a linear congruential generator, so that equal items always
 * get equal places. */
static int draw(Packer *packer, int count) {
    packer->random = packer->random * 6364136223846793005 + 1442695040888963407;
    return (int)((packer->random >> 33) % (uint64_t)count);
}

/* The best order, with some item in front of some that were before it. */
static void move_one(Packer *packer) {
    int to = draw(packer, packer->count), from = to + draw(packer, packer->count - to);
    memcpy(packer->order, packer->kept, sizeof(PackItem *) * (size_t)packer->count);
    PackItem *item = packer->order[from];
    memmove(packer->order + to + 1, packer->order + to, sizeof(PackItem *) * (size_t)(from - to));
    packer->order[to] = item;
}

/* ---- the whole ---- */

/* The most bytes that are needed at one time, with the alignment of each item: without it nothing
 * would be near enough where items are short. */
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

/* Places the items in as many attempts as so many comparisons are enough for, three at least. */
static int64_t pack_within(Arena *scratch, PackItem *items, int count, int64_t most) {
    Packer packer = {.items = items, .count = count, .best_bytes = INT64_MAX};
    double enough = NEAR * (double)least_length(scratch, items, count);
    PackItem **later = arena_array(scratch, PackItem *, count + 1);
    packer.order = arena_array(scratch, PackItem *, count + 1);
    packer.kept = arena_array(scratch, PackItem *, count + 1);
    packer.placed = arena_array(scratch, PackItem *, count + 1);
    packer.best = arena_array(scratch, int64_t, count + 1);
    for (int i = 0; i < count; i++) packer.order[i] = &items[i];
    attempt(&packer);
    packer.comparisons = 0;
    for (int i = 0; (double)packer.best_bytes > enough && (i < 2 || packer.comparisons < most);
         i++) {
        if (i == 0)
            qsort(packer.order, (size_t)count, sizeof *packer.order, compare_sizes);
        else if (i <= LIFTS)
            put_highest_first(&packer, later);
        else
            move_one(&packer);
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
