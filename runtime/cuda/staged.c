/* Conversions of device memory through host memory: for ranks that share a GPU, which NCCL does not connect. Moves run on the device. */
#include "cuda/channels.h"

#include "base/memory.h"
#include "device/device.h"
#include "exchange/moves.h"

#include <stdlib.h>

enum { BORDER = 64 }; // bytes: what is received is aligned as tensors are

/* A step as the host's channel sees it: the same blocks in one buffer of host memory, packed in their order. */
typedef struct Staged {
    ht_reshard_step step;
    ht_block *block; // those that are sent, then those that are received
    int64_t size;    // of an element
} Staged;

/* Packs blocks one after another from `at` on, without gaps between those of a collective; returns where they end. */
static int64_t pack_blocks(ht_block *to, const ht_block *from, int count, int64_t at)
{
    for (int i = 0; i < count; i++) {
        to[i] = (ht_block){HT_SCRATCH, 0, from[i].peer, at, from[i].count};
        at += from[i].count;
    }
    return at;
}

static Staged stage(const ht_reshard_step *step, int64_t *count)
{
    int sends = step->send_count, receives = step->receive_count;
    Staged staged = {
        .step = *step, .block = memory_array(sends + receives, sizeof(ht_block)), .size = (int64_t)ht_dtype_bytes(step->dtype)};
    int64_t line = BORDER / staged.size, middle = (pack_blocks(staged.block, step->send, sends, 0) + line - 1) / line * line;
    *count = pack_blocks(staged.block + sends, step->receive, receives, middle);
    staged.step.send = staged.block;
    staged.step.receive = staged.block + sends;
    return staged;
}

/* Host memory for a step's blocks; it only grows. */
static char *room_for(int64_t bytes)
{
    static char *room;
    static int64_t size;
    if (bytes > size) {
        device_free_host(room);
        size = bytes + bytes / 2;
        room = device_alloc_host(size);
    }
    return room;
}

static void staged_communicate(const ChannelRun *run, const ht_reshard_step *step)
{
    int64_t count;
    Staged staged = stage(step, &count);
    ChannelRun on_host = {.plan = run->plan, .pipeline = run->pipeline, .part = run->part, .scratch = room_for(count * staged.size)};
    for (int i = 0; i < step->send_count; i++)
        device_download(channel_block(&on_host, &staged.step, &staged.step.send[i], 0), channel_block(run, step, &step->send[i], 0),
                        step->send[i].count * staged.size);
    device_wait();
    channel_of_host()->communicate(&on_host, &staged.step);
    for (int i = 0; i < step->receive_count; i++)
        device_upload(channel_block(run, step, &step->receive[i], 0), channel_block(&on_host, &staged.step, &staged.step.receive[i], 0),
                      step->receive[i].count * staged.size);
    device_wait();
    free(staged.block);
}

const Channel channel_staged = {.move = cuda_move_now, .communicate = staged_communicate};
