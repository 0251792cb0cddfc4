/* Counter-based random numbers: each number is a function of (seed, stream, element), so any device can draw any element of any tensor, and
 * every distribution of a model starts from the same weights and drops the same elements.
 *
 * The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
 */
#ifndef CORE_RANDOM_H
#define CORE_RANDOM_H

#include <hetu/hetu.h>

#include <stdint.h>

/* Four numbers of 32 bits for a counter of 128 bits (element, stream) and a key of 64 bits. */
typedef struct RandomBlock {
    uint32_t at[4];
} RandomBlock;
RandomBlock random_block(uint64_t seed, uint64_t stream, uint64_t element);

/* A stream's number from a name (64-bit FNV-1a), and from a number and a step. */
uint64_t random_stream_of_name(const char *name);
uint64_t random_stream_of_step(int64_t stream, int64_t step);

/* The `index`-th of a stream's numbers of 32 bits: four consecutive indices share a block. */
uint32_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/* Fills `to` with consecutive bits, `first` to before `first + count`. */
void random_bits_fill(uint32_t *to, uint64_t seed, uint64_t stream, uint64_t first, int64_t count);

/* Fills a box of a parameter with its initial values: elements lo to before hi of a tensor of `global` extents, stored in `to` row-major
 * without gaps. The value of an element depends on the seed, the name and its place in the whole tensor alone. */
void ht_init_box(float *to, const ht_init *init, uint64_t seed, const char *name, int rank, const int64_t *global, const int64_t *lo,
                 const int64_t *hi);

#endif
