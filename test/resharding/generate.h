/* Random layouts and shapes, from a seed. */
#ifndef RESHARDING_GENERATE_H
#define RESHARDING_GENERATE_H

#include "layout/layout.h"

typedef struct Random {
    uint64_t state;
} Random;

/* A number from 0 to count - 1. */
int random_below(Random *random, int count);

/* A number from -1 to 1 that is no integer as a rule. */
float random_real(Random *random);

/* A shape of 0 to 4 dimensions of 0 to 40, of at most `most` elements. */
Shape random_shape(Arena *arena, Random *random, int most);

/* A layout of up to `devices` devices with numbers below `highest`, as text; `partial` is "sum", "max" or NULL. */
const char *random_layout(Arena *arena, Random *random, Shape shape, int devices, int highest, const char *partial);

#endif
