/* A step of a conversion as the host sees it whose tensors lie in a device's memory: the same
 * blocks in one buffer of host memory. */
#ifndef EXCHANGE_STAGING_H
#define EXCHANGE_STAGING_H

#include "exchange/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The blocks are packed in their order, without gaps between those of a collective: those that are
 * sent, then those that are received. */
typedef struct Staged {
    ht_reshard_step step;
    int64_t bytes; // of the buffer
    ht_block *block;
} Staged;

Staged staging_open(const ht_reshard_step *step);
void staging_close(Staged *staged);

/* The run whose scratch is that buffer. */
ChannelRun staging_run(const ChannelRun *run, char *buffer);

/* Calls `copy` for each block that is sent, from the device to the buffer, or that is received, the
 * other way. */
typedef void StagingCopy(void *argument, void *to, const void *from, int64_t bytes);
void staging_load(const Staged *staged, const ChannelRun *on_host, const ChannelRun *run,
                  const ht_reshard_step *step, StagingCopy *copy, void *argument);
void staging_store(const Staged *staged, const ChannelRun *on_host, const ChannelRun *run,
                   const ht_reshard_step *step, StagingCopy *copy, void *argument);

#ifdef __cplusplus
}
#endif

#endif
