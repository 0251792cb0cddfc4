#include "generate.h"
#include "support/arena.h"

#include <string.h>

static uint64_t next(Random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int random_below(Random *random, int count) { return (int)(next(random) % (uint64_t)count); }

float random_real(Random *random) {
    return (float)((double)(next(random) >> 11) / 4503599627370496.0 - 1);
}

Shape random_shape(Arena *arena, Random *random, int most) {
    static const int likely[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 24, 33, 40};
    Shape shape = {.rank = random_below(random, 5)};
    int64_t *extent = arena_array(arena, int64_t, 4), volume = 1;
    for (int d = 0; d < shape.rank; d++) {
        extent[d] =
            random_below(random, 3) ? likely[random_below(random, 14)] : random_below(random, 41);
        if (volume * extent[d] > most) extent[d] = 1 + random_below(random, 3);
        volume *= extent[d];
    }
    shape.extent = extent;
    return shape;
}

/* A divisor of n that is above 1, where there is one. */
static int random_divisor(Random *random, int n) {
    int divisors[32], count = 0;
    for (int d = 2; d <= n; d++)
        if (n % d == 0) divisors[count++] = d;
    return count ? divisors[random_below(random, count)] : 1;
}

static void add_weights(Text *text, Random *random, int count) {
    if (random_below(random, 4)) return;
    for (int i = 0; i < count; i++)
        text_print(text, "%s%d", i ? ":" : " by ",
                   random_below(random, 8) || !i ? 1 + random_below(random, 5) : 0);
}

static void add_group(Text *text, Random *random, int rank, const int *devices, int count,
                      const char *partial) {
    for (int i = 0; i < count; i++) text_print(text, "%s%d", i ? "," : "[", devices[i]);
    text_string(text, "]{");
    for (int left = count, states = 0; left > 1; states++) {
        int pieces = random_divisor(random, left),
            kind = random_below(random, rank + 1 + (partial != NULL));
        text_string(text, states ? "," : "");
        if (kind < rank) {
            text_print(text, "%d:%d", kind, pieces);
            add_weights(text, random, pieces);
            text_string(text, random_below(random, 4) ? "" : " zigzag");
        } else text_print(text, "%s:%d", kind == rank ? "dup" : partial, pieces);
        left /= pieces;
    }
    text_string(text, "}");
}

/* A view that splits some extents into two factors; the rank of the view is the result. */
static int add_view(Text *text, Random *random, Shape shape) {
    int rank = 0;
    for (int d = 0; d < shape.rank; d++) {
        int extent = (int)shape.extent[d], factor = extent > 1 ? random_divisor(random, extent) : 1;
        text_string(text, d ? ", " : "(");
        if (factor > 1 && factor < extent && random_below(random, 3)) {
            text_print(text, "%d*%d", factor, extent / factor);
            rank += 2;
        } else {
            text_print(text, "%d", extent);
            rank++;
        }
    }
    text_string(text, ") ");
    return rank;
}

static void shuffle(Random *random, int *numbers, int count) {
    for (int i = count - 1; i > 0; i--) {
        int k = random_below(random, i + 1), kept = numbers[i];
        numbers[i] = numbers[k];
        numbers[k] = kept;
    }
}

/* The top's kind; rank is that of the view. */
static void add_top(Text *text, Random *random, int rank, int groups, const char *partial) {
    int kind = random_below(random, 2 + (partial != NULL));
    if (kind == 1 && rank) {
        text_print(text, "split %d%s", random_below(random, rank),
                   random_below(random, 2) ? " inner" : "");
        add_weights(text, random, groups);
    } else text_string(text, kind == 2 ? partial : "dup");
    text_string(text, " (");
}

const char *random_layout(Arena *arena, Random *random, Shape shape, int devices, int highest,
                          const char *partial) {
    Text text = {.arena = arena};
    int rank = shape.rank, *numbers = arena_array(arena, int, highest);
    for (int i = 0; i < highest; i++) numbers[i] = i;
    if (random_below(random, 2)) shuffle(random, numbers, highest);
    if (shape.rank && !random_below(random, 5)) rank = add_view(&text, random, shape);
    int groups = random_below(random, 3) ? 1 : 2 + random_below(random, 2), used = 0;
    groups = groups > highest ? highest : groups;
    if (groups > 1) add_top(&text, random, rank, groups, partial);
    for (int g = 0; g < groups; g++) {
        int count = 1 + random_below(random, devices / groups ? devices / groups : 1),
            room = highest - used - (groups - 1 - g);
        count = count > room ? room : count;
        text_string(&text, g ? " | " : "");
        add_group(&text, random, rank, numbers + used, count, partial);
        used += count;
    }
    text_string(&text, groups > 1 ? ")" : "");
    return text_bytes(&text);
}
