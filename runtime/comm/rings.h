/* Shared memory between ranks of one machine: for every two of them a ring of bytes each way. */
#ifndef COMM_RINGS_H
#define COMM_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Rings Rings;

/* Makes the rings of this rank among `count` ranks of the machine, under the name of a run; then opens those of the others, after `meet`
 * has returned on all of them: it must wait for all. NULL when there is no room in shared memory on some rank; `meet` says on all whether
 * one has none. */
Rings *rings_open(uint64_t key, int rank, int count, bool (*meet)(bool fine));

void rings_close(Rings *rings);

/* Moves what can be moved now to or from a rank of this machine; returns the bytes. */
size_t ring_put(Rings *rings, int to, const void *data, size_t bytes);
size_t ring_get(Rings *rings, int from, void *data, size_t bytes);

#endif
