/* Repeats in call lists. */
#include "emit/program/calls.h"

enum { CANDIDATES = 48, LEAST_SAVED = 6 };

/* How many calls from `first` on equal those `period` later. */
static int match_length(const int *keys, int count, int first, int period)
{
    int length = 0;
    while (first + period + length < count && keys[first + length] == keys[first + period + length])
        length++;
    return length;
}

/* The repeat at `first` that covers most; times 1 when none is worth a loop. `next` has for each call the next one with its key. */
static Stretch best_repeat(const int *keys, const int *next, int count, int first)
{
    Stretch best = {first, 1, 1};
    int covered = 0, tried = 0;
    for (int at = next[first]; at >= 0 && tried < CANDIDATES; at = next[at], tried++) {
        int period = at - first, times = match_length(keys, count, first, period) / period + 1;
        if (times > 1 && period * (times - 1) >= LEAST_SAVED && period * times > covered) {
            best = (Stretch){first, period, times};
            covered = period * times;
        }
    }
    return best;
}

static int *next_of_key(Arena *arena, const int *keys, int count)
{
    int most = 0;
    for (int i = 0; i < count; i++)
        most = keys[i] > most ? keys[i] : most;
    int *last = arena_array(arena, int, most + 1), *next = arena_array(arena, int, count);
    for (int k = 0; k <= most; k++)
        last[k] = -1;
    for (int i = count - 1; i >= 0; i--) {
        next[i] = last[keys[i]];
        last[keys[i]] = i;
    }
    return next;
}

void stretches_find(Arena *arena, const int *keys, int count, Stretches *stretches)
{
    Arena *scratch = arena_create();
    const int *next = next_of_key(scratch, keys, count);
    for (int i = 0; i < count;) {
        Stretch stretch = best_repeat(keys, next, count, i);
        Stretch *before = stretches->count ? &stretches->at[stretches->count - 1] : NULL;
        if (stretch.times == 1 && before && before->times == 1)
            before->length++;
        else
            array_push(arena, stretches, stretch);
        i += stretch.length * stretch.times;
    }
    arena_destroy(scratch);
}
