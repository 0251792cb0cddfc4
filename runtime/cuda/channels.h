/* Channels that exchange device memory (exchange/channel.h). */
#pragma once

#include "exchange/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const Channel channel_nccl; // over NCCL
/* Goes through host memory, for ranks that share a GPU, which NCCL does not connect. */
extern const Channel channel_staged;

/* Functions by which the threads of async exchanges allocate and use device memory. */
extern const ChannelMemory cuda_lane_memory;

/* Returns the channel of this program, whose rank has GPU number `gpu`. All ranks call it. */
const Channel *choose_channel(int gpu);

/* Issues a step of local moves on the compute stream. */
void cuda_move_now(const ChannelRun *run, const ht_reshard_step *step);

#ifdef __cplusplus
}
#endif
