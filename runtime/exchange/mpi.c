/* Conversions over MPI, on host memory: MPI's collectives, on a communicator for each group. Async
 * conversions use messages alone (collective_rounds.c). */
#include "base/memory.h"
#include "exchange/channel.h"
#include "exchange/copy_boxes.h"
#include "exchange/async_exchange.h"
#include "transport/mpi.h"
#include "transport/watchdog/watchdog.h"
#include "transport/world.h"

#include <stdlib.h>

enum { MOST_COUNT = 1 << 30 }; // most elements of one call; MPI counts in int

/* ---- communicators ---- */

typedef struct GroupComm GroupComm;
struct GroupComm {
    GroupComm *next;
    int count, *device;
    MPI_Comm comm;
};

static GroupComm *group_comms;

/* Returns a tag for a group, a hash of its ranks, which is equal on all members. */
static int group_tag(const int *ranks, int count) {
    uint32_t hash = 2166136261u;
    for (int i = 0; i < count; i++) hash = (hash ^ (uint32_t)ranks[i]) * 16777619u;
    return (int)(hash & 0x3fff);
}

static MPI_Comm make_comm(const int *ranks, int count) {
    MPI_Group world, members;
    MPI_Comm comm;
    HT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    HT_MPI(MPI_Group_incl(world, count, ranks, &members));
    HT_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, members, group_tag(ranks, count), &comm));
    HT_MPI(MPI_Group_free(&members));
    HT_MPI(MPI_Group_free(&world));
    return comm;
}

static bool is_group(const GroupComm *known, const ChannelRun *run, const ht_group *group) {
    bool same = known->count == group->count;
    for (int i = 0; same && i < group->count; i++)
        same = known->device[i] == channel_rank(run, group->device[i]);
    return same;
}

/* Returns the communicator of a group; creates a missing one, collectively over the group. */
static MPI_Comm comm_for(const ChannelRun *run, const ht_group *group) {
    for (const GroupComm *known = group_comms; known; known = known->next)
        if (is_group(known, run, group)) return known->comm;
    GroupComm *made = memory_array(1, sizeof *made);
    *made = (GroupComm){.next = group_comms,
                        .count = group->count,
                        .device = memory_array(group->count, sizeof(int))};
    for (int i = 0; i < group->count; i++) made->device[i] = channel_rank(run, group->device[i]);
    made->comm = make_comm(made->device, group->count);
    group_comms = made;
    return made->comm;
}

/* Starts the async exchanges' threads, and creates the other plans' communicators in plan order. */
static void mpi_prepare(const ChannelPlans *plans) {
    int position = 0;
    const ht_pipeline *pipeline = channel_pipeline(plans, world_rank(), &position);
    async_exchanges_prepare(plans);
    watchdog_begin_wait();
    for (int p = 0; p < plans->count; p++) {
        ChannelRun run = channel_run(plans->plan[p], pipeline, position, world_rank());
        for (int s = 0; run.part && !plans->queues[p] && s < run.part->step_count; s++)
            if (channel_communicates(&run.part->step[s]) && run.part->step[s].verb != HT_EXCHANGE)
                comm_for(&run, &run.plan->group[run.part->step[s].group]);
    }
    watchdog_end_wait();
}

/* ---- datatypes ---- */

enum { DTYPES = HT_I64 + 1 };

static MPI_Datatype datatype(ht_dtype dtype) {
    static const MPI_Datatype types[DTYPES] = {[HT_F32] = MPI_FLOAT,
                                               [HT_BF16] = MPI_UINT16_T,
                                               [HT_F64] = MPI_DOUBLE,
                                               [HT_I32] = MPI_INT32_T,
                                               [HT_I64] = MPI_INT64_T};
    return types[dtype];
}

static void combine(ht_reduction reduction, void *from, void *to, int count, MPI_Datatype type) {
    for (int dtype = 0; dtype < DTYPES; dtype++)
        if (datatype((ht_dtype)dtype) == type)
            ht_combine((ht_dtype)dtype, reduction, to, from, count);
}

/* Reduction operators: own_sum for bf16, which MPI lacks; own_max since MPI_MAX loses NaN. */
static void own_sum(void *from, void *to, int *count, MPI_Datatype *type) {
    combine(HT_SUM, from, to, *count, *type);
}

static void own_max(void *from, void *to, int *count, MPI_Datatype *type) {
    combine(HT_MAX, from, to, *count, *type);
}

static MPI_Op operation(const ht_reshard_step *step) {
    static MPI_Op own[2];
    static int made;
    if (step->dtype != HT_BF16 && step->reduction != HT_MAX) return MPI_SUM;
    if (!made) {
        HT_MPI(MPI_Op_create(own_sum, 1, &own[0]));
        HT_MPI(MPI_Op_create(own_max, 1, &own[1]));
        made = 1;
    }
    return own[step->reduction == HT_MAX];
}

/* ---- collectives ---- */

static void run_all_reduce(const ChannelRun *run, const ht_reshard_step *step, MPI_Comm comm) {
    for (int64_t at = 0, count = step->send->count; at < count; at += MOST_COUNT) {
        int part = (int)(count - at < MOST_COUNT ? count - at : MOST_COUNT);
        const char *from = channel_block(run, step, step->send, at);
        char *to = channel_block(run, step, step->receive, at);
        HT_MPI(MPI_Allreduce(from == to ? MPI_IN_PLACE : from, to, part, datatype(step->dtype),
                             operation(step), comm));
    }
}

/* Computes the counts of a collective's blocks, and their offsets from `base`. The planner creates
 * such collectives only for tensors whose elements an int can count. */
static void block_counts(const ht_block *blocks, int count, int64_t base, int *counts,
                         int *places) {
    for (int i = 0; i < count; i++) {
        counts[i] = (int)blocks[i].count;
        places[i] = blocks[i].count ? (int)(blocks[i].offset - base) : 0;
    }
}

static void run_reduce_scatter(const ChannelRun *run, const ht_reshard_step *step, MPI_Comm comm) {
    int *counts = memory_array(2 * step->send_count, sizeof(int));
    block_counts(step->send, step->send_count, step->send->offset, counts,
                 counts + step->send_count);
    HT_MPI(MPI_Reduce_scatter(channel_block(run, step, step->send, 0),
                              channel_block(run, step, step->receive, 0), counts,
                              datatype(step->dtype), operation(step), comm));
    free(counts);
}

/* Returns the non-empty block with the lowest offset, or the first block if all are empty. */
static const ht_block *lowest_block(const ht_block *blocks, int count) {
    const ht_block *lowest = blocks;
    for (int i = 0; i < count; i++)
        if (blocks[i].count && (!lowest->count || blocks[i].offset < lowest->offset))
            lowest = &blocks[i];
    return lowest;
}

/* Returns whether all blocks have the same count. All members of the group get the same answer. */
static bool blocks_even(const ht_block *blocks, int count) {
    for (int i = 1; i < count; i++)
        if (blocks[i].count != blocks->count) return false;
    return true;
}

static void run_all_gather(const ChannelRun *run, const ht_reshard_step *step, MPI_Comm comm) {
    int n = step->receive_count, rank, sent = (int)step->send->count;
    const ht_block *lowest = lowest_block(step->receive, n);
    char *to = channel_block(run, step, lowest, 0);
    MPI_Datatype type = datatype(step->dtype);
    HT_MPI(MPI_Comm_rank(comm, &rank));
    const char *from = channel_block(run, step, step->send, 0);
    const void *send =
        from == channel_block(run, step, &step->receive[rank], 0) ? MPI_IN_PLACE : from;
    if (blocks_even(step->receive, n)) {
        HT_MPI(MPI_Allgather(send, sent, type, to, sent, type, comm));
        return;
    }
    int *counts = memory_array(2 * n, sizeof(int));
    block_counts(step->receive, n, lowest->offset, counts, counts + n);
    HT_MPI(MPI_Allgatherv(send, sent, type, to, counts, counts + n, type, comm));
    free(counts);
}

/* Broadcasts the root's send block, which MPI_Bcast does not change, in parts. */
static void run_broadcast(const ChannelRun *run, const ht_reshard_step *step, MPI_Comm comm) {
    const ht_block *block = step->send_count ? step->send : step->receive;
    for (int64_t at = 0; at < block->count; at += MOST_COUNT) {
        int part = (int)(block->count - at < MOST_COUNT ? block->count - at : MOST_COUNT);
        HT_MPI(MPI_Bcast(channel_block(run, step, block, at), part, datatype(step->dtype),
                         step->root, comm));
    }
}

static void run_reduce(const ChannelRun *run, const ht_reshard_step *step, MPI_Comm comm) {
    for (int64_t at = 0, count = step->send->count; at < count; at += MOST_COUNT) {
        int part = (int)(count - at < MOST_COUNT ? count - at : MOST_COUNT);
        char *to = step->receive_count ? channel_block(run, step, step->receive, at) : NULL;
        HT_MPI(MPI_Reduce(channel_block(run, step, step->send, at), to, part, datatype(step->dtype),
                          operation(step), step->root, comm));
    }
}

static void run_all_to_all(const ChannelRun *run, const ht_reshard_step *step, MPI_Comm comm) {
    int n = step->send_count, *counts = memory_array(4 * n, sizeof(int));
    const ht_block *from = lowest_block(step->send, n), *to = lowest_block(step->receive, n);
    MPI_Datatype type = datatype(step->dtype);
    block_counts(step->send, n, from->offset, counts, counts + n);
    block_counts(step->receive, n, to->offset, counts + 2 * n, counts + 3 * n);
    HT_MPI(MPI_Alltoallv(channel_block(run, step, from, 0), counts, counts + n, type,
                         channel_block(run, step, to, 0), counts + 2 * n, counts + 3 * n, type,
                         comm));
    free(counts);
}

static void run_exchange(const ChannelRun *run, const ht_reshard_step *step) {
    static HostTransfer *messages;
    static int room;
    if (step->send_count + step->receive_count > room) {
        free(messages);
        messages = memory_array(room = step->send_count + step->receive_count, sizeof *messages);
    }
    channel_messages(run, step, messages);
    mpi_exchange(MPI_COMM_WORLD, messages, step->send_count, messages + step->send_count,
                 step->receive_count);
}

static void mpi_communicate(const ChannelRun *run, const ht_reshard_step *step) {
    if (step->verb == HT_EXCHANGE) {
        run_exchange(run, step);
        return;
    }
    MPI_Comm comm = comm_for(run, &run->plan->group[step->group]);
    switch (step->verb) {
    case HT_ALL_REDUCE: run_all_reduce(run, step, comm); break;
    case HT_REDUCE_SCATTER: run_reduce_scatter(run, step, comm); break;
    case HT_ALL_GATHER: run_all_gather(run, step, comm); break;
    case HT_ALL_TO_ALL: run_all_to_all(run, step, comm); break;
    case HT_BROADCAST: run_broadcast(run, step, comm); break;
    default: run_reduce(run, step, comm); break;
    }
}

const Channel channel_mpi = {.prepare = mpi_prepare,
                             .move = channel_move_on_host,
                             .communicate = mpi_communicate,
                             .begin_async_exchange = async_exchange_begin_on_thread,
                             .end_async_exchange = async_exchange_end_on_thread,
                             .forget_async_exchange = async_exchange_forget_on_thread};
