/* Chooses how GPUs exchange device memory: by NCCL if each rank has a GPU of its own, through host
 * memory if ranks share a GPU. A single rank exchanges nothing. */
#include "cuda/channels.h"

#include "transport/world.h"
#include "exchange/async_exchange.h"
#include "base/fail.h"
#include "cuda/cuda.h"
#include "cuda/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>
#include <hetu/rt.h>

/* The channel of a single rank, which exchanges nothing. */
static void begin_alone(AsyncExchange *async) { channel_carry_out(&async->run); }

static void end_alone(AsyncExchange *) {}

static const Channel channel_alone = {.prepare = NULL,
                                      .begin = NULL,
                                      .end = NULL,
                                      .move = cuda_move_now,
                                      .communicate = NULL,
                                      .begin_async_exchange = begin_alone,
                                      .end_async_exchange = end_alone,
                                      .forget_async_exchange = NULL,
                                      .memory = NULL,
                                      .check = NULL,
                                      .close = NULL,
                                      .records = true};

/* Returns whether each rank has a GPU of its own, by identifiers. All ranks get the same answer. */
static bool each_has_own(int gpu) {
    cudaDeviceProp properties;
    HT_CUDA(cudaGetDeviceProperties(&properties, gpu));
    const size_t bytes = sizeof properties.uuid;
    std::vector<char> all(bytes * (size_t)world_size());
    world_gather(&properties.uuid, bytes, all.data());
    for (int a = 0; a < world_size(); a++)
        for (int b = 0; b < a; b++)
            if (!memcmp(&all[bytes * (size_t)a], &all[bytes * (size_t)b], bytes)) return false;
    return true;
}

/* Returns whether HETU_NCCL=1 is set: then a single rank uses NCCL, too, for tests on one GPU. */
static bool wants_nccl(void) {
    const char *choice = getenv("HETU_NCCL");
    const bool wanted = choice && !strcmp(choice, "1");
#ifndef HETU_NCCL
    if (wanted)
        ht_fail("HETU_NCCL=1, but this program was built without NCCL; build it with make NCCL=1");
#endif
    return wanted;
}

const Channel *choose_channel(int gpu) {
    if (world_size() == 1 && !wants_nccl()) return &channel_alone;
    bool own = each_has_own(gpu);
#ifdef HETU_NCCL
    return own ? &channel_nccl : &channel_staged;
#else
    if (own && world_rank() == 0)
        fprintf(
            stderr,
            "hetu: this program was built without NCCL: its ranks exchange through host memory\n");
    return &channel_staged;
#endif
}
