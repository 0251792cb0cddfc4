/* A channel for device memory through host memory, for ranks that share a GPU, which NCCL does not
 * connect. Local moves run on the device. */
#include "cuda/channels.h"

#include "device/device.h"
#include "exchange/async_exchange.h"
#include "exchange/staging.h"

/* Returns host memory for a step's blocks, which later calls reuse; it never shrinks. */
static char *room_for(int64_t bytes) {
    static char *room;
    static int64_t size;
    if (bytes > size) {
        device_free_host(room);
        size = bytes + bytes / 2;
        room = device_alloc_host(size);
    }
    return room;
}

static void load(void *argument, void *to, const void *from, int64_t bytes) {
    (void)argument;
    device_download(to, from, bytes);
}

static void store(void *argument, void *to, const void *from, int64_t bytes) {
    (void)argument;
    device_upload(to, from, bytes);
}

static void staged_communicate(const ChannelRun *run, const ht_reshard_step *step) {
    Staged staged = staging_open(step);
    ChannelRun on_host = staging_run(run, room_for(staged.bytes));
    staging_load(&staged, &on_host, run, step, (StagingCopy){load, NULL});
    device_wait();
    channel_of_host()->communicate(&on_host, &staged.step);
    staging_store(&staged, &on_host, run, step, (StagingCopy){store, NULL});
    device_wait();
    staging_close(&staged);
}

/* Prepares the host's channel, over which the ranks communicate. */
static void staged_prepare(const ChannelPlans *plans) { channel_of_host()->prepare(plans); }

const Channel channel_staged = {.prepare = staged_prepare,
                                .move = cuda_move_now,
                                .communicate = staged_communicate,
                                .begin_async_exchange = async_exchange_begin_on_thread,
                                .end_async_exchange = async_exchange_end_on_thread,
                                .forget_async_exchange = async_exchange_forget_on_thread,
                                .memory = &cuda_lane_memory};
