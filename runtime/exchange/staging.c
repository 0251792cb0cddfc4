/* Packs device memory into host buffers, for GPUs without NCCL. */
#include "exchange/staging.h"

#include "base/memory.h"
#include "exchange/copy_boxes.h"

#include <stdlib.h>

/* Sets `to` to the blocks of `from`, packed one after another from `at` on; returns their end. */
static int64_t pack_blocks(ht_block *to, const ht_block *from, int count, int64_t at) {
    for (int i = 0; i < count; i++) {
        to[i] = (ht_block){HT_SCRATCH, 0, from[i].peer, at, from[i].count};
        at += from[i].count;
    }
    return at;
}

Staged staging_open(const ht_reshard_step *step) {
    int sends = step->send_count, receives = step->receive_count;
    int64_t size = (int64_t)ht_dtype_bytes(step->dtype), line = MEMORY_ALIGNMENT / size;
    Staged staged = {.step = *step, .block = memory_array(sends + receives, sizeof(ht_block))};
    int64_t middle = (pack_blocks(staged.block, step->send, sends, 0) + line - 1) / line * line;
    staged.bytes = pack_blocks(staged.block + sends, step->receive, receives, middle) * size;
    staged.step.send = staged.block;
    staged.step.receive = staged.block + sends;
    return staged;
}

void staging_close(Staged *staged) {
    free(staged->block);
    *staged = (Staged){0};
}

ChannelRun staging_run(const ChannelRun *run, char *buffer) {
    return (ChannelRun){.plan = run->plan,
                        .pipeline = run->pipeline,
                        .replica_group = run->replica_group,
                        .part = run->part,
                        .scratch = buffer};
}

void staging_load(const Staged *staged, const ChannelRun *on_host, const ChannelRun *run,
                  const ht_reshard_step *step, StagingCopy copy) {
    for (int i = 0; i < step->send_count; i++)
        copy.copy(copy.argument, channel_block(on_host, &staged->step, &staged->step.send[i], 0),
                  channel_block(run, step, &step->send[i], 0),
                  step->send[i].count * (int64_t)ht_dtype_bytes(step->dtype));
}

void staging_store(const Staged *staged, const ChannelRun *on_host, const ChannelRun *run,
                   const ht_reshard_step *step, StagingCopy copy) {
    for (int i = 0; i < step->receive_count; i++)
        copy.copy(copy.argument, channel_block(run, step, &step->receive[i], 0),
                  channel_block(on_host, &staged->step, &staged->step.receive[i], 0),
                  step->receive[i].count * (int64_t)ht_dtype_bytes(step->dtype));
}
