/* Bytes of all ranks, as many of each as it has, one after the other on rank 0. */
#ifndef SESSION_CORE_GATHER_BYTES_H
#define SESSION_CORE_GATHER_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* Brings `bytes` at `mine` of every rank to rank 0, which calls `take` with a piece at a time, in
 * the order of the ranks; all ranks together. Pieces end at multiples of `unit` bytes. */
void collect(const void *mine, int64_t bytes, int64_t unit,
             void (*take)(int rank, const void *data, int64_t bytes, void *argument),
             void *argument);

#endif
