#include "session/core/gather_bytes.h"

#include "base/memory.h"
#include "transport/world.h"

#include <stdlib.h>

enum { PIECE = 1 << 22 }; // bytes that go at a time

/* The pieces of a rank. */
static void bring(int rank, const char *mine, int64_t bytes, int64_t most, void *piece,
                  void (*take)(int rank, const void *data, int64_t bytes, void *argument),
                  void *argument) {
    for (int64_t at = 0; at < bytes; at += most) {
        size_t length = (size_t)(bytes - at < most ? bytes - at : most);
        HostTransfer send = {(void *)(mine + at), length, 0}, receive = {piece, length, rank};
        world_exchange(&send, world_rank() == rank, &receive, world_rank() == 0);
        if (!world_rank()) take(rank, piece, (int64_t)length, argument);
    }
}

void collect(const void *mine, int64_t bytes, int64_t unit,
             void (*take)(int rank, const void *data, int64_t bytes, void *argument),
             void *argument) {
    int size = world_size();
    int64_t *all = memory_array(size, sizeof *all), most = PIECE / unit * unit;
    void *piece = world_rank() ? NULL : memory_array(PIECE, 1);
    world_gather(&bytes, sizeof bytes, all);
    if (!world_rank() && bytes) take(0, mine, bytes, argument);
    for (int rank = 1; rank < size; rank++)
        bring(rank, mine, all[rank], most, piece, take, argument);
    free(piece);
    free(all);
}
