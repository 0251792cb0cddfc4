/* Staging: packs a step's blocks from device memory into one host buffer for a host channel. */
#pragma once

#include "exchange/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A step whose blocks lie in one host buffer: the sent ones, then the received ones. Each list is
 * packed in order without gaps; the second begins at an aligned address. */
typedef struct Staged {
    ht_reshard_step step;
    int64_t bytes; // size of the buffer
    ht_block *block;
} Staged;

Staged staging_open(const ht_reshard_step *step);
void staging_close(Staged *staged);

/* Returns the run with `buffer` as scratch memory and without its other buffers. */
ChannelRun staging_run(const ChannelRun *run, char *buffer);

/* staging_load calls `copy` for each sent block, from device to buffer. staging_store calls `copy`
 * for each received block, from buffer to device. */
typedef struct StagingCopy {
    void (*copy)(void *argument, void *to, const void *from, int64_t bytes);
    void *argument;
} StagingCopy;
void staging_load(const Staged *staged, const ChannelRun *on_host, const ChannelRun *run,
                  const ht_reshard_step *step, StagingCopy copy);
void staging_store(const Staged *staged, const ChannelRun *on_host, const ChannelRun *run,
                   const ht_reshard_step *step, StagingCopy copy);

#ifdef __cplusplus
}
#endif
