/* The budget of a search, and its random numbers.
 *
 * A planner counts its work in steps, so that the same input gives the same plan on every machine;
 * the clock ends only searches that would take far too long. A limit in seconds (--limit) is
 * converted to a number of steps: budget_work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct Budget {
    double limit;  // time limit of the search in seconds; INFINITY: there is no limit
    double effort; // factor of the usual work
    uint64_t seed; // seed of the random numbers of local searches
    struct timespec begin;
} Budget;

/* Returns a budget that begins now, with a limit in seconds (INFINITY: no limit). */
Budget budget_begin(double limit);

/* Returns the seconds that are left of the limit; INFINITY if there is no limit. */
double budget_left(const Budget *budget);

static inline bool budget_spent(const Budget *budget) { return budget_left(budget) <= 0; }

/* Returns how many steps a search may take: `usual` times the effort, but at most the limit times
 * `rate`, the steps of a core in a second. The limit decides, not the clock. */
long budget_work(const Budget *budget, long usual, double rate);

/* Random numbers that are the same on every machine (Steele, Lea, Flood 2014: SplitMix64). */

typedef struct Random {
    uint64_t state;
} Random;

static inline uint64_t random_bits(Random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns a random integer in [0, count). */
static inline int random_below(Random *random, int count) {
    return (int)((random_bits(random) >> 32) * (uint64_t)count >> 32);
}

/* Returns a random number in [0, 1). */
static inline double random_unit(Random *random) {
    return (double)(random_bits(random) >> 11) * 0x1p-53;
}
