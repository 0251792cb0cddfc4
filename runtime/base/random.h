/* Counter-based random numbers: each number is a function of (seed, stream, element), so any device
 * can draw any element of any tensor, and every distribution of a model starts from the same
 * weights and drops the same elements.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/philox.h"

#include <hetu/model.h>

#include <stdint.h>

/* A stream's number from a name (64-bit FNV-1a). */
uint64_t random_stream_of_name(const char *name);

/* The `index`-th of a stream's numbers of 32 bits: four consecutive indices share a block. */
uint32_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/* Fills `to` with consecutive bits, `first` to before `first + count`. */
void random_bits_fill(uint32_t *to, uint64_t seed, uint64_t stream, uint64_t first, int64_t count);

/* A box of a tensor of `global` extents: elements lo to before hi. */
typedef struct TensorBox {
    int rank;
    const int64_t *global, *lo, *hi;
} TensorBox;

/* Fills a box of a parameter with its initial values, stored in `to` row-major without gaps. The
 * value of an element depends only on the seed, the name and the element's index in the whole
 * tensor. */
void ht_init_box(float *to, const ht_init *init, uint64_t seed, const char *name,
                 const TensorBox *box);

/* Where element `index` of `count` goes in permutation `number` of a stream; each place of 0 to
 * count - 1 is that of one element. A Feistel network over the least even number of bits that hold
 * count, walked until it is among them (Black and Rogaway: Ciphers with arbitrary finite domains,
 * 2002); its round function is Philox. */
int64_t permutation_place(uint64_t seed, uint64_t stream, int64_t number, int64_t count,
                          int64_t index);

#endif
