/* Strided copies, combinations and fills of boxes: what conversions do beside communication. */
#ifndef EXCHANGE_COPY_BOXES_H
#define EXCHANGE_COPY_BOXES_H

#include <hetu/reshard.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of an element. */
size_t ht_dtype_bytes(ht_dtype dtype);

/* to = from; `to` and `from` are the moves' first elements. Nothing happens where both are the
 * same. */
void ht_move_copy(const ht_move *move, size_t size, char *to, const char *from);

/* to = to + from, or the larger of both. */
void ht_move_combine(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to,
                     const char *from);

/* to = the reduction's identity. */
void ht_move_fill(const ht_move *move, ht_dtype dtype, ht_reduction reduction, char *to);

/* The same for `count` elements in a row. */
void ht_combine(ht_dtype dtype, ht_reduction reduction, void *to, const void *from, int64_t count);
void ht_fill(ht_dtype dtype, ht_reduction reduction, void *to, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
