/* Permutations by counters: the place of an element follows from a key and its number alone, so
 * that any rank finds any of them. */
#ifndef BASE_PERMUTATION_H
#define BASE_PERMUTATION_H

#include <stdint.h>

/* Where element `index` of `count` goes in permutation `number` of a stream; each place of 0 to
 * count - 1 is that of one element. A Feistel network over the least even number of bits that hold
 * count, walked until it is among them (Black and Rogaway: Ciphers with arbitrary finite domains,
 * 2002); its round function is Philox. */
int64_t permutation_place(uint64_t seed, uint64_t stream, int64_t number, int64_t count,
                          int64_t index);

#endif
