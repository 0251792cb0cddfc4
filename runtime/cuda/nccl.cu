/* Conversions over NCCL, on device memory.
 *
 * Communicators are created once, by all ranks in the same order, from a unique id of rank 0, for
 * each stream (cuda/streams.h says which exchange runs on which):
 *
 * - the exchange stream: one communicator of all ranks, and one for each other group of the plans.
 *   All ranks make the calls in the order of the program.
 * - gradient buckets, prefetches: separate communicators. All ranks begin buckets in the same order
 *   (compiler/ir/analysis/async_collectives.h).
 * - messages between stages: separate communicators for each plan.
 */
#include "cuda/channels.h"
#include "exchange/channel.h"
#include "exchange/async_exchange.h"
#include "exchange/copy_boxes.h"
#include "transport/watchdog/watchdog.h"
#include "transport/world.h"
#include "cuda/streams.h"

#include <algorithm>
#include <nccl.h>
#include <vector>

#define HT_NCCL(call) check_call((call), #call, __LINE__)

struct GroupComm {
    // owner of the stream (side_stream_owner); NULL: the exchange stream
    const ht_reshard *owner;
    std::vector<int> devices;
    ncclComm_t comm; // NULL: this rank is not in the group
};

/* The CUDA events of an async exchange, which are reused from run to run. */
struct Passage {
    cudaEvent_t begun, ended;
};

static struct {
    ncclComm_t world;
    std::vector<GroupComm> groups;
    const SideStream *side;          // stream of the async exchange being issued; else NULL
    const ht_reshard_step *together; // first collective of the current NCCL group; else NULL
    bool exchanging;                 // the current run uses the exchange stream
} nccl;

/* Returns the exit status for an NCCL error: invalid calls are errors of the program, all others
 * come from the network or a dead rank. If the device is at fault, ends the program. */
static FailStatus status_of(ncclResult_t result) {
    cuda_check_device();
    switch (result) {
    case ncclUnhandledCudaError: return FAIL_DEVICE;
    case ncclInvalidArgument:
    case ncclInvalidUsage: return FAIL_PROGRAM;
    default: return FAIL_EXCHANGE;
    }
}

static void check_call(ncclResult_t result, const char *call, int line) {
    if (result != ncclSuccess && result != ncclInProgress)
        fail_as(status_of(result), "%s: %s (nccl.cu:%d); NCCL failed at: %s",
                ncclGetErrorString(result), ncclGetLastError(nccl.world), line, call);
}

/* ---- communicators ---- */

/* Creates all ranks' communicator, whose channels and memory its splits share (splitShare). */
static void open_world() {
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = 1;
    if (world_rank() == 0) HT_NCCL(ncclGetUniqueId(&id));
    world_broadcast(&id, sizeof id);
    HT_NCCL(ncclCommInitRankConfig(&nccl.world, world_size(), id, world_rank(), &config));
}

static std::vector<int> ranks_of(const ChannelRun *run, const ht_group *group) {
    std::vector<int> ranks((size_t)group->count);
    for (int i = 0; i < group->count; i++) ranks[(size_t)i] = channel_rank(run, group->device[i]);
    return ranks;
}

static bool is_world(const std::vector<int> &ranks) {
    for (size_t i = 0; i < ranks.size(); i++)
        if (ranks[i] != (int)i) return false;
    return (int)ranks.size() == world_size();
}

static GroupComm *find_group(const ht_reshard *owner, const std::vector<int> &ranks) {
    for (GroupComm &known : nccl.groups)
        if (known.owner == owner && known.devices == ranks) return &known;
    return nullptr;
}

static bool meet(const GroupComm &a, const GroupComm &b) {
    for (int device : a.devices)
        for (int other : b.devices)
            if (device == other) return true;
    return false;
}

/* Returns how many groups from `first` on have the same owner and are pairwise disjoint, so that
 * one ncclCommSplit makes them all. */
static size_t count_apart(size_t first) {
    size_t last = first + 1;
    for (; last < nccl.groups.size() && nccl.groups[last].owner == nccl.groups[first].owner; last++)
        for (size_t before = first; before < last; before++)
            if (meet(nccl.groups[before], nccl.groups[last])) return last - first;
    return last - first;
}

static void split_world(size_t first, size_t count) {
    int color = NCCL_SPLIT_NOCOLOR, place = 0;
    ncclConfig_t apart = NCCL_CONFIG_INITIALIZER;
    apart.splitShare = 0;
    for (size_t g = first; g < first + count; g++)
        for (size_t i = 0; i < nccl.groups[g].devices.size(); i++)
            if (nccl.groups[g].devices[i] == world_rank()) {
                color = (int)(g - first);
                place = (int)i;
            }
    ncclComm_t comm = NULL;
    HT_NCCL(
        ncclCommSplit(nccl.world, color, place, &comm, nccl.groups[first].owner ? &apart : NULL));
    if (color != NCCL_SPLIT_NOCOLOR) nccl.groups[first + (size_t)color].comm = comm;
}

/* Adds a group of ranks, for which nccl_prepare makes a communicator. Skips known groups, groups of
 * one member, and, if `owner` is NULL, the group of all ranks. */
static void add_group(const ChannelRun *run, const ht_reshard *owner, const ht_group *group) {
    const std::vector<int> ranks = ranks_of(run, group);
    if (group->count > 1 && (owner || !is_world(ranks)) && !find_group(owner, ranks))
        nccl.groups.push_back({owner, ranks, NULL});
}

/* Adds the group once for each replica group of the plan; replica groups are disjoint. */
static void add_replica_groups(const ht_reshard *plan, const ht_reshard *owner,
                               const ht_pipeline *pipeline, const ht_group *group) {
    for (int c = 0; c < (plan->replica_group ? plan->replica_group_count : 1); c++) {
        const ChannelRun run = channel_replica_group_run(plan, pipeline, c);
        add_group(&run, owner, group);
    }
}

/* Adds a plan's group; for each pipeline of the template if devices are positions (kind >= 0). */
static void add_placed_group(const ht_reshard *plan, const ht_reshard *owner,
                             const ChannelPlans *plans, const ht_group *group) {
    if (plan->kind < 0) add_replica_groups(plan, owner, NULL, group);
    for (int p = 0; p < plans->pipeline_count; p++)
        if (plans->pipelines[p].kind == plan->kind)
            add_replica_groups(plan, owner, &plans->pipelines[p], group);
}

static std::vector<int> devices_of(const ht_reshard *plan) {
    std::vector<int> devices;
    for (int i = 0; i < plan->device_count; i++) devices.push_back(plan->device[i].device);
    return devices;
}

/* Adds a plan's groups; with an owner (async), also a group of all its devices, for messages. */
static void add_groups(const ht_reshard *plan, const ht_reshard *owner, const ChannelPlans *plans) {
    const std::vector<int> devices = devices_of(plan);
    const ht_group all = {(int)devices.size(), devices.data()};
    for (int g = 0; g < plan->group_count; g++)
        add_placed_group(plan, owner, plans, &plan->group[g]);
    if (owner) add_placed_group(plan, owner, plans, &all);
}

/* Adds the groups and side streams of plan `p`. A plan in HT_QUEUE_STAGES alone never runs on the
 * exchange stream. */
static void add_plan(const ChannelPlans *plans, int p) {
    const ht_reshard *plan = plans->plan[p];
    for (int queue = 0; queue < HT_QUEUES; queue++)
        if (plans->queues[p] & 1u << queue) {
            const ht_reshard *owner = side_stream_owner(plan, (ht_queue)queue);
            add_groups(plan, owner, plans);
            side_stream_add(owner);
        }
    if (plans->queues[p] != 1u << HT_QUEUE_STAGES) add_groups(plan, NULL, plans);
}

static void nccl_prepare(const ChannelPlans *plans) {
    watchdog_begin_wait();
    fail_doing("the making of NCCL's communicators");
    if (!nccl.world) open_world();
    size_t made = nccl.groups.size();
    for (int p = 0; p < plans->count; p++) add_plan(plans, p);
    while (made < nccl.groups.size()) {
        size_t apart = count_apart(made);
        split_world(made, apart);
        made += apart;
    }
    fail_doing(NULL);
    watchdog_end_wait();
}

static void nccl_close(void) {
    watchdog_begin_wait();
    side_streams_close();
    for (const GroupComm &group : nccl.groups)
        if (group.comm) HT_NCCL(ncclCommDestroy(group.comm));
    if (nccl.world) HT_NCCL(ncclCommDestroy(nccl.world));
    watchdog_end_wait();
    nccl = {};
}

static ncclComm_t comm_for(const ChannelRun *run, const ht_group *group) {
    const ht_reshard *owner = nccl.side ? nccl.side->owner : NULL;
    const std::vector<int> ranks = ranks_of(run, group);
    if (!owner && is_world(ranks)) return nccl.world;
    const GroupComm *known = find_group(owner, ranks);
    if (!known || !known->comm)
        ht_fail("%s: its group has no communicator; the program and the runtime are of different "
                "versions",
                run->plan->name);
    return known->comm;
}

static void check_comm(ncclComm_t comm) {
    ncclResult_t state = ncclSuccess;
    HT_NCCL(ncclCommGetAsyncError(comm, &state));
    if (state == ncclSuccess || state == ncclInProgress) return;
    const volatile FailNote *note = cuda_noted();
    const char *what = note->what, *where = note->where;
    fail_as(status_of(state), "NCCL failed: %s: %s; the device last began %s of %s",
            ncclGetErrorString(state), ncclGetLastError(comm), what ? what : "nothing",
            where ? where : "the program");
}

static void nccl_check(void) {
    if (nccl.world) check_comm(nccl.world);
    for (const GroupComm &group : nccl.groups)
        if (group.comm) check_comm(group.comm);
}

/* ---- collectives ---- */

/* A step with the arguments of its NCCL calls. */
struct Act {
    const ChannelRun *run;
    const ht_reshard_step *step;
    ncclComm_t comm;
    ncclDataType_t type;
    ncclRedOp_t op;
    cudaStream_t stream;

    const void *sent(int i) const { return channel_block(run, step, &step->send[i], 0); }
    void *received(int i) const { return channel_block(run, step, &step->receive[i], 0); }
};

static ncclDataType_t type_of(ht_dtype dtype) {
    switch (dtype) {
    case HT_F32: return ncclFloat32;
    case HT_BF16: return ncclBfloat16;
    case HT_F64: return ncclFloat64;
    case HT_I32: return ncclInt32;
    case HT_I64: return ncclInt64;
    }
    return ncclNumTypes;
}

static bool even(const ht_block *blocks, int count) {
    for (int i = 1; i < count; i++)
        if (blocks[i].count != blocks->count) return false;
    return true;
}

static size_t counted(const ht_block &block) { return (size_t)block.count; }

static void run_reduce_scatter(const Act &act, int mine) {
    const ht_block *send = act.step->send;
    int members = act.step->send_count;
    if (even(send, members)) {
        HT_NCCL(ncclReduceScatter(act.sent(0), act.received(0), counted(send[0]), act.type, act.op,
                                  act.comm, act.stream));
        return;
    }
    HT_NCCL(ncclGroupStart());
    for (int i = 0; i < members; i++)
        if (send[i].count)
            HT_NCCL(ncclReduce(act.sent(i), i == mine ? act.received(0) : NULL, counted(send[i]),
                               act.type, act.op, i, act.comm, act.stream));
    HT_NCCL(ncclGroupEnd());
}

static void run_all_gather(const Act &act, int mine) {
    const ht_block *receive = act.step->receive;
    int members = act.step->receive_count;
    if (even(receive, members)) {
        HT_NCCL(ncclAllGather(act.sent(0), act.received(0), counted(receive[0]), act.type, act.comm,
                              act.stream));
        return;
    }
    HT_NCCL(ncclGroupStart());
    for (int i = 0; i < members; i++)
        if (receive[i].count)
            HT_NCCL(ncclBroadcast(i == mine ? act.sent(0) : act.received(i), act.received(i),
                                  counted(receive[i]), act.type, i, act.comm, act.stream));
    HT_NCCL(ncclGroupEnd());
}

/* Returns the rank, in a step's communicator, of the peer of a block. In an exchange the block
 * names the peer's device; in other steps block i belongs to rank i. The communicator of an async
 * exchange has the plan's devices; every other communicator has all ranks. */
static int peer_of(const Act &act, const ht_block &block, int i) {
    if (act.step->verb != HT_EXCHANGE) return i;
    if (!nccl.side) return channel_rank(act.run, block.peer);
    const std::vector<int> devices = devices_of(act.run->plan);
    return (int)(std::find(devices.begin(), devices.end(), block.peer) - devices.begin());
}

/* Issues all sends and receives of a step, except messages of this rank to itself, in one group. */
static void run_messages(const Act &act, int mine) {
    HT_NCCL(ncclGroupStart());
    for (int i = 0; i < act.step->send_count; i++) {
        const ht_block &block = act.step->send[i];
        int peer = peer_of(act, block, i);
        if (block.count && peer != mine)
            HT_NCCL(ncclSend(act.sent(i), counted(block), act.type, peer, act.comm, act.stream));
    }
    for (int i = 0; i < act.step->receive_count; i++) {
        const ht_block &block = act.step->receive[i];
        int peer = peer_of(act, block, i);
        if (block.count && peer != mine)
            HT_NCCL(
                ncclRecv(act.received(i), counted(block), act.type, peer, act.comm, act.stream));
    }
    HT_NCCL(ncclGroupEnd());
}

static void run_all_to_all(const Act &act, int mine) {
    size_t own = counted(act.step->send[mine]) * ht_dtype_bytes(act.step->dtype);
    if (own && act.sent(mine) != act.received(mine))
        HT_CUDA(cudaMemcpyAsync(act.received(mine), act.sent(mine), own, cudaMemcpyDeviceToDevice,
                                act.stream));
    run_messages(act, mine);
}

static void run_broadcast(const Act &act) {
    bool root = act.step->send_count != 0;
    const ht_block &block = root ? act.step->send[0] : act.step->receive[0];
    void *data = channel_block(act.run, act.step, &block, 0);
    HT_NCCL(
        ncclBroadcast(data, data, counted(block), act.type, act.step->root, act.comm, act.stream));
}

static void run_verb(const Act &act, int mine) {
    const ht_reshard_step *step = act.step;
    switch (step->verb) {
    case HT_ALL_REDUCE:
        HT_NCCL(ncclAllReduce(act.sent(0), act.received(0), counted(step->send[0]), act.type,
                              act.op, act.comm, act.stream));
        break;
    case HT_REDUCE_SCATTER: run_reduce_scatter(act, mine); break;
    case HT_ALL_GATHER: run_all_gather(act, mine); break;
    case HT_ALL_TO_ALL: run_all_to_all(act, mine); break;
    case HT_BROADCAST: run_broadcast(act); break;
    case HT_REDUCE:
        HT_NCCL(ncclReduce(act.sent(0), step->receive_count ? act.received(0) : NULL,
                           counted(step->send[0]), act.type, act.op, step->root, act.comm,
                           act.stream));
        break;
    default: run_messages(act, mine); break;
    }
}

/* Returns the communicator of a step, and sets *mine to this rank's index in it. */
static ncclComm_t find_comm(const ChannelRun *run, const ht_reshard_step *step, int *mine) {
    if (step->verb == HT_EXCHANGE && !nccl.side) {
        *mine = world_rank();
        return nccl.world;
    }
    const std::vector<int> devices = devices_of(run->plan);
    const ht_group all = {(int)devices.size(), devices.data()},
                   *group = step->verb == HT_EXCHANGE ? &all : &run->plan->group[step->group];
    *mine = channel_position(group, run->part->device);
    return comm_for(run, group);
}

/* Issues a step. Consecutive independent collectives of the same verb share an NCCL group call,
 * such as the large tensors of a gradient bucket (compiler/reshard/order/fuse_collectives.c). */
static void nccl_communicate(const ChannelRun *run, const ht_reshard_step *step) {
    int mine;
    ncclComm_t comm = find_comm(run, step, &mine);
    cudaStream_t stream = nccl.side ? nccl.side->stream : cuda_exchange_stream();
    Act act = {
        run,   step, comm, type_of(step->dtype), step->reduction == HT_MAX ? ncclMax : ncclSum,
        stream};
    const ht_reshard_step *first = nccl.together ? nccl.together : step;
    bool goes_on = steps_next_together(run, first, step) != NULL;
    if (first == step) cuda_note(stream, channel_verb(step->verb), run->plan->name);
    if (first == step && goes_on) HT_NCCL(ncclGroupStart());
    run_verb(act, mine);
    if (first != step && !goes_on) HT_NCCL(ncclGroupEnd());
    nccl.together = goes_on ? first : NULL;
}

/* ---- the stream of a run ---- */

static bool communicates(const ChannelRun *run) {
    for (int s = 0; s < run->part->step_count; s++)
        if (channel_communicates(&run->part->step[s])) return true;
    return false;
}

static void nccl_begin(const ChannelRun *run) {
    nccl.exchanging = !nccl.side && communicates(run);
    if (nccl.exchanging) cuda_exchange_begin();
}

static void nccl_end(const ChannelRun *) {
    if (nccl.exchanging) cuda_exchange_end();
    nccl.exchanging = false;
}

static void nccl_move(const ChannelRun *run, const ht_reshard_step *step) {
    cuda_move(run, step,
              nccl.side         ? nccl.side->stream
              : nccl.exchanging ? cuda_exchange_stream()
                                : ht_compute_stream());
}

/* ---- async exchanges: work on a side stream, between two events ---- */

static Passage *passage_of(AsyncExchange *async) {
    if (!async->kept) {
        Passage *made = new Passage();
        HT_CUDA(cudaEventCreateWithFlags(&made->begun, cudaEventDisableTiming));
        HT_CUDA(cudaEventCreateWithFlags(&made->ended, cudaEventDisableTiming));
        async->kept = made;
    }
    return (Passage *)async->kept;
}

static const SideStream *side_of(const AsyncExchange *async) {
    const ht_reshard *plan = async->run.plan;
    const SideStream *side = side_stream_find(side_stream_owner(plan, async->queue));
    if (!side)
        ht_fail("%s: it has no stream; the program and the runtime are of different versions",
                plan->name);
    return side;
}

static void nccl_begin_async_exchange(AsyncExchange *async) {
    const SideStream *side = side_of(async);
    Passage *passage = passage_of(async);
    HT_CUDA(cudaEventRecord(passage->begun, ht_compute_stream()));
    HT_CUDA(cudaStreamWaitEvent(side->stream, passage->begun, 0));
    for (int i = 0; i < async->after_count; i++)
        HT_CUDA(cudaStreamWaitEvent(side->stream, passage_of(async->after[i])->ended, 0));
    nccl.side = side;
    channel_carry_out(&async->run);
    nccl.side = NULL;
    HT_CUDA(cudaEventRecord(passage->ended, side->stream));
}

static void nccl_end_async_exchange(AsyncExchange *async) {
    HT_CUDA(cudaStreamWaitEvent(ht_compute_stream(), passage_of(async)->ended, 0));
}

static void nccl_forget_async_exchange(AsyncExchange *async) {
    if (!async->kept) return;
    HT_CUDA(cudaEventDestroy(passage_of(async)->begun));
    HT_CUDA(cudaEventDestroy(passage_of(async)->ended));
    delete passage_of(async);
    async->kept = NULL;
}

extern "C" const Channel channel_nccl = {.prepare = nccl_prepare,
                                         .begin = nccl_begin,
                                         .end = nccl_end,
                                         .move = nccl_move,
                                         .communicate = nccl_communicate,
                                         .begin_async_exchange = nccl_begin_async_exchange,
                                         .end_async_exchange = nccl_end_async_exchange,
                                         .forget_async_exchange = nccl_forget_async_exchange,
                                         .memory = NULL,
                                         .check = nccl_check,
                                         .close = nccl_close,
                                         .records = true};
