/* Strided copies, combinations and fills of boxes: the local work of conversions. */
#pragma once

#include <hetu/reshard.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the bytes of an element. */
size_t ht_dtype_bytes(ht_dtype dtype);

/* Copies a box of `size`-byte elements, the first at `from`, unless from == to. */
void ht_move_copy(const ht_move *move, size_t size, char *to, const char *from);

/* Reduces a box into the box at `to`: to + from, or the maximum of both. */
void ht_move_combine(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to,
                     const char *from);

/* Fills a box with the identity of the reduction, such as 0 for sums. */
void ht_move_fill(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to);

/* Do the same as ht_move_combine and ht_move_fill for `count` contiguous elements. */
void ht_combine(ht_dtype dtype, ht_reduction reduction, void *to, const void *from, int64_t count);
void ht_fill(ht_dtype dtype, ht_reduction reduction, void *to, int64_t count);

#ifdef __cplusplus
}
#endif
