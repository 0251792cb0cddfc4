/* Chooses the host channel, MPI or fabric, and runs local steps. choose_channel.cu is for GPUs. */
#include "exchange/channel.h"

#include "exchange/async_exchange.h"
#include "exchange/copy_boxes.h"
#include "exchange/collective_rounds.h"
#include "transport/fabric/fabric.h"

static const Channel *own; // the device's channel; NULL: the host's channel is used

const Channel *channel_of_host(void) {
#ifdef HETU_MPI
    if (!fabric_active()) return &channel_mpi;
#endif
    return &channel_fabric;
}

const Channel *channel_of_device(void) { return own ? own : channel_of_host(); }

void channel_use(const Channel *of_device) { own = of_device; }

char *channel_address(const ChannelRun *run, ht_place place, int tensor, int64_t offset,
                      ht_dtype dtype) {
    char *buffer = place == HT_SCRATCH ? run->scratch
                   : place == HT_TO    ? run->to[tensor]
                                       : (char *)run->from[tensor];
    return buffer + offset * (int64_t)ht_dtype_bytes(dtype);
}

char *channel_block(const ChannelRun *run, const ht_reshard_step *step, const ht_block *block,
                    int64_t at) {
    return channel_address(run, block->place, block->tensor, block->offset + at, step->dtype);
}

const ht_pipeline *channel_pipeline(const ChannelPlans *plans, int rank, int *position) {
    for (int p = 0; p < plans->pipeline_count; p++)
        for (int i = 0; i < plans->pipelines[p].device_count; i++)
            if (plans->pipelines[p].device[i] == rank) {
                *position = i;
                return &plans->pipelines[p];
            }
    *position = 0;
    return NULL;
}

int channel_rank(const ChannelRun *run, int device) {
    int place = run->replica_group ? run->replica_group[device] : device;
    return run->pipeline ? run->pipeline->device[place] : place;
}

void channel_messages(const ChannelRun *run, const ht_reshard_step *step, HostTransfer *messages) {
    size_t size = ht_dtype_bytes(step->dtype);
    for (int i = 0; i < step->send_count + step->receive_count; i++) {
        const ht_block *block =
            i < step->send_count ? &step->send[i] : &step->receive[i - step->send_count];
        messages[i] = (HostTransfer){channel_block(run, step, block, 0),
                                     (size_t)block->count * size, channel_rank(run, block->peer)};
    }
}

int channel_position(const ht_group *group, int device) {
    for (int i = 0; i < group->count; i++)
        if (group->device[i] == device) return i;
    return 0;
}

bool channel_communicates(const ht_reshard_step *step) {
    return step->verb != HT_COPY && step->verb != HT_COMBINE && step->verb != HT_FILL;
}

const char *channel_verb(ht_verb verb) {
    static const char *const words[] = {
        [HT_COPY] = "copy",
        [HT_COMBINE] = "sum",
        [HT_FILL] = "fill",
        [HT_ALL_REDUCE] = "all-reduce",
        [HT_REDUCE_SCATTER] = "reduce-scatter",
        [HT_ALL_GATHER] = "all-gather",
        [HT_ALL_TO_ALL] = "all-to-all",
        [HT_BROADCAST] = "broadcast",
        [HT_REDUCE] = "reduce",
        [HT_EXCHANGE] = "exchange",
    };
    return (size_t)verb < sizeof words / sizeof *words ? words[verb] : "step of unknown kind";
}

void channel_move_on_host(const ChannelRun *run, const ht_reshard_step *step) {
    for (int i = 0; i < step->move_count; i++) {
        const ht_move *move = &step->move[i];
        const ht_reshard_tensor *tensor = &run->plan->tensor[move->tensor];
        const char *from =
            channel_address(run, move->from, move->tensor, move->from_offset, tensor->dtype);
        char *to = channel_address(run, move->to, move->tensor, move->to_offset, tensor->dtype);
        if (step->verb == HT_COPY) ht_move_copy(move, ht_dtype_bytes(tensor->dtype), to, from);
        else if (step->verb == HT_COMBINE)
            ht_move_combine(move, tensor->dtype, tensor->reduction, to, from);
        else ht_move_fill(move, tensor->dtype, tensor->reduction, to);
    }
}

/* ---- host memory, between ranks without MPI (transport/fabric/fabric.h) ---- */

static void fabric_communicate(const ChannelRun *run, const ht_reshard_step *step) {
    Rounds rounds = rounds_open(run, step);
    while (rounds_next(&rounds))
        fabric_exchange(rounds.sends, rounds.send_count, rounds.receives, rounds.receive_count);
}

const Channel channel_fabric = {.prepare = async_exchanges_prepare,
                                .move = channel_move_on_host,
                                .communicate = fabric_communicate,
                                .begin_async_exchange = async_exchange_begin_on_thread,
                                .end_async_exchange = async_exchange_end_on_thread,
                                .forget_async_exchange = async_exchange_forget_on_thread};
