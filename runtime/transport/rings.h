/* Shared memory between ranks of one machine: for every two of them a ring of bytes each way. The memory has no name in any folder, so
 * nothing of it can stay behind; the others open it through the process that made it. */
#ifndef TRANSPORT_RINGS_H
#define TRANSPORT_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Rings Rings;

/* Where the others find the rings that a rank reads. */
typedef struct RingFile {
    int32_t process, file; // file: -1: there are none
    uint64_t key;          // stands in them
} RingFile;

/* Makes the rings of this rank among `count` ranks of the machine. */
Rings *rings_create(int rank, int count);
RingFile rings_file(const Rings *rings);

/* Opens those of the others, by rank of the machine; false when some cannot be. */
bool rings_connect(Rings *rings, const RingFile *files);

/* When all are connected: from now on nobody can open them. */
void rings_seal(Rings *rings);

void rings_close(Rings *rings);

/* Moves what can be moved now to or from a rank of this machine; returns the bytes. */
size_t ring_put(Rings *rings, int to, const void *data, size_t bytes);
size_t ring_get(Rings *rings, int from, void *data, size_t bytes);

#endif
