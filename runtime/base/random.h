/* Counter-based random numbers: each number is a function of (seed, stream, element), so any device
 * can draw any element of any tensor, and every distribution of a model starts from the same
 * weights and drops the same elements.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/philox.h"

#include <hetu/hetu.h>

#include <stdint.h>

/* A stream's number from a name (64-bit FNV-1a). */
uint64_t random_stream_of_name(const char *name);

/* The `index`-th of a stream's numbers of 32 bits: four consecutive indices share a block. */
uint32_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/* Fills `to` with consecutive bits, `first` to before `first + count`. */
void random_bits_fill(uint32_t *to, uint64_t seed, uint64_t stream, uint64_t first, int64_t count);

/* Fills a box of a parameter with its initial values: elements lo to before hi of a tensor of
 * `global` extents, stored in `to` row-major without gaps. The value of an element depends on the
 * seed, the name and its place in the whole tensor alone. */
void ht_init_box(float *to, const ht_init *init, uint64_t seed, const char *name, int rank,
                 const int64_t *global, const int64_t *lo, const int64_t *hi);

#endif
