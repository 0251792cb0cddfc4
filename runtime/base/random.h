/* Counter-based random numbers: each number is a function of (seed, stream, element). So any device
 * can draw any element of any tensor. Under every strategy, a model starts with the same weights
 * and drops the same elements. */
#pragma once

#include "base/philox.h"

#include <hetu/model.h>

#include <stdint.h>

/* Returns the stream number of a name (64-bit FNV-1a). */
uint64_t random_stream_of_name(const char *name);

/* Returns number `index` of a stream, 32 bits. Four consecutive indices share a Philox block. */
uint32_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/* Fills `to` with the numbers `first` to `first + count - 1` of a stream. */
void random_bits_fill(uint32_t *to, uint64_t seed, uint64_t stream, uint64_t first, int64_t count);

/* A box of a tensor of `global` extents: elements [lo, hi) in each dimension. */
typedef struct TensorBox {
    int rank;
    const int64_t *global, *lo, *hi;
} TensorBox;

/* Fills a box of a parameter with its initial values, stored in `to` row-major without gaps. An
 * element's value depends only on the seed, the name and its index in the whole tensor. */
void ht_init_box(float *to, const ht_init *init, uint64_t seed, const char *name,
                 const TensorBox *box);
