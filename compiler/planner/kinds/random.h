/* Random numbers for local search: the same seed gives the same numbers on every machine (Steele,
 * Lea, Flood 2014: SplitMix64). */
#ifndef PLANNER_KINDS_RANDOM_H
#define PLANNER_KINDS_RANDOM_H

#include <stdint.h>

typedef struct Random {
    uint64_t state;
} Random;

static inline uint64_t random_bits(Random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* One of 0 .. count - 1. */
static inline int random_below(Random *random, int count) {
    return (int)((random_bits(random) >> 32) * (uint64_t)count >> 32);
}

/* In [0, 1). */
static inline double random_unit(Random *random) {
    return (double)(random_bits(random) >> 11) * 0x1p-53;
}

#endif
