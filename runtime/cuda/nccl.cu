/* Conversions over NCCL, on device memory. Communicators are made once, by all ranks in one order: one of all ranks, which carries messages
 * between any two, and one for each other group of the plans. All calls go to the exchange stream (cuda/streams.h), so every rank issues
 * them in the order of the program. */
#include "cuda/channels.h"
#include "exchange/moves.h"
#include "transport/watch/watch.h"
#include "transport/world.h"
#include "cuda/streams.h"

#include <nccl.h>
#include <vector>

#define HT_NCCL(call) check_call((call), #call, __LINE__)

struct GroupComm {
    std::vector<int> devices;
    ncclComm_t comm; // NULL: this rank is not in the group
};

static struct {
    ncclComm_t world;
    std::vector<GroupComm> groups;
    bool exchanging; // the run at work goes to the exchange stream
} nccl;

static void check_call(ncclResult_t result, const char *call, int line)
{
    if (result != ncclSuccess && result != ncclInProgress)
        ht_fail("%s: %s (nccl.cu:%d); NCCL failed at: %s", ncclGetErrorString(result), ncclGetLastError(nccl.world), line, call);
}

/* ---- communicators ---- */

/* Groups are split off the world, and share what it has of channels and memory: a choice of the world's configuration, which they inherit.
 */
static void open_world()
{
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = 1;
    if (world_rank() == 0)
        HT_NCCL(ncclGetUniqueId(&id));
    world_broadcast(&id, sizeof id);
    HT_NCCL(ncclCommInitRankConfig(&nccl.world, world_size(), id, world_rank(), &config));
}

static std::vector<int> ranks_of(const ChannelRun *run, const ht_group *group)
{
    std::vector<int> ranks((size_t)group->count);
    for (int i = 0; i < group->count; i++)
        ranks[(size_t)i] = channel_rank(run, group->device[i]);
    return ranks;
}

static bool is_world(const ChannelRun *run, const ht_group *group)
{
    for (int i = 0; i < group->count; i++)
        if (channel_rank(run, group->device[i]) != i)
            return false;
    return group->count == world_size();
}

static GroupComm *find_group(const ChannelRun *run, const ht_group *group)
{
    const std::vector<int> ranks = ranks_of(run, group);
    for (GroupComm &known : nccl.groups)
        if (known.devices == ranks)
            return &known;
    return nullptr;
}

static bool meet(const GroupComm &a, const GroupComm &b)
{
    for (int device : a.devices)
        for (int other : b.devices)
            if (device == other)
                return true;
    return false;
}

/* Groups from `first` on of which no two meet: how many. */
static size_t count_apart(size_t first)
{
    size_t last = first + 1;
    for (; last < nccl.groups.size(); last++)
        for (size_t before = first; before < last; before++)
            if (meet(nccl.groups[before], nccl.groups[last]))
                return last - first;
    return last - first;
}

/* Splits the world into `count` groups from `first` on. */
static void split_world(size_t first, size_t count)
{
    int color = NCCL_SPLIT_NOCOLOR, place = 0;
    for (size_t g = first; g < first + count; g++)
        for (size_t i = 0; i < nccl.groups[g].devices.size(); i++)
            if (nccl.groups[g].devices[i] == world_rank()) {
                color = (int)(g - first);
                place = (int)i;
            }
    ncclComm_t comm = NULL;
    HT_NCCL(ncclCommSplit(nccl.world, color, place, &comm, NULL));
    if (color != NCCL_SPLIT_NOCOLOR)
        nccl.groups[first + (size_t)color].comm = comm;
}

/* Adds a group of a plan's devices, as ranks: those of a pipeline, or (NULL) as they are. */
static void add_group(const ht_reshard *plan, const ht_pipeline *pipeline, const ht_group *group)
{
    ChannelRun run = {};
    run.plan = plan;
    run.pipeline = pipeline;
    if (group->count > 1 && !is_world(&run, group) && !find_group(&run, group))
        nccl.groups.push_back({ranks_of(&run, group), NULL});
}

/* Adds the groups of a plan; for a plan of positions, those of all pipelines of its kind, which do not meet, together. */
static void add_groups(const ht_reshard *plan, const ChannelPlans *plans)
{
    for (int g = 0; g < plan->group_count; g++) {
        if (plan->kind < 0)
            add_group(plan, NULL, &plan->group[g]);
        for (int p = 0; p < plans->pipeline_count; p++)
            if (plans->pipelines[p].kind == plan->kind)
                add_group(plan, &plans->pipelines[p], &plan->group[g]);
    }
}

static void nccl_prepare(const ChannelPlans *plans)
{
    watch_begin();
    fail_doing("the making of NCCL's communicators");
    if (!nccl.world)
        open_world();
    size_t made = nccl.groups.size();
    for (int p = 0; p < plans->count; p++)
        if (!plans->beside[p])
            add_groups(plans->plan[p], plans);
    while (made < nccl.groups.size()) {
        size_t apart = count_apart(made);
        split_world(made, apart);
        made += apart;
    }
    fail_doing(NULL);
    watch_end();
}

static void nccl_close(void)
{
    watch_begin();
    for (const GroupComm &group : nccl.groups)
        if (group.comm)
            HT_NCCL(ncclCommDestroy(group.comm));
    if (nccl.world)
        HT_NCCL(ncclCommDestroy(nccl.world));
    watch_end();
    nccl = {};
}

static ncclComm_t comm_for(const ChannelRun *run, const ht_group *group)
{
    if (is_world(run, group))
        return nccl.world;
    const GroupComm *known = find_group(run, group);
    if (!known || !known->comm)
        ht_fail("%s: its group has no communicator; the program and the runtime are of different versions", run->plan->name);
    return known->comm;
}

static void check_comm(ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    HT_NCCL(ncclCommGetAsyncError(comm, &state));
    if (state == ncclSuccess || state == ncclInProgress)
        return;
    const volatile FailNote *note = cuda_noted();
    const char *what = note->what, *where = note->where;
    ht_fail("NCCL failed: %s: %s; the device last began %s of %s", ncclGetErrorString(state), ncclGetLastError(comm),
            what ? what : "nothing", where ? where : "the program");
}

static void nccl_check(void)
{
    if (nccl.world)
        check_comm(nccl.world);
    for (const GroupComm &group : nccl.groups)
        if (group.comm)
            check_comm(group.comm);
}

/* ---- the verbs ---- */

/* A step and what its calls need. */
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

static ncclDataType_t type_of(ht_dtype dtype)
{
    switch (dtype) {
    case HT_F32: return ncclFloat32;
    case HT_BF16: return ncclBfloat16;
    case HT_F64: return ncclFloat64;
    case HT_I32: return ncclInt32;
    case HT_I64: return ncclInt64;
    }
    return ncclNumTypes;
}

static bool even(const ht_block *blocks, int count)
{
    for (int i = 1; i < count; i++)
        if (blocks[i].count != blocks->count)
            return false;
    return true;
}

static size_t counted(const ht_block &block) { return (size_t)block.count; }

static void run_reduce_scatter(const Act &act, int mine)
{
    const ht_block *send = act.step->send;
    int members = act.step->send_count;
    if (even(send, members)) {
        HT_NCCL(ncclReduceScatter(act.sent(0), act.received(0), counted(send[0]), act.type, act.op, act.comm, act.stream));
        return;
    }
    HT_NCCL(ncclGroupStart());
    for (int i = 0; i < members; i++)
        if (send[i].count)
            HT_NCCL(
                ncclReduce(act.sent(i), i == mine ? act.received(0) : NULL, counted(send[i]), act.type, act.op, i, act.comm, act.stream));
    HT_NCCL(ncclGroupEnd());
}

static void run_all_gather(const Act &act, int mine)
{
    const ht_block *receive = act.step->receive;
    int members = act.step->receive_count;
    if (even(receive, members)) {
        HT_NCCL(ncclAllGather(act.sent(0), act.received(0), counted(receive[0]), act.type, act.comm, act.stream));
        return;
    }
    HT_NCCL(ncclGroupStart());
    for (int i = 0; i < members; i++)
        if (receive[i].count)
            HT_NCCL(ncclBroadcast(i == mine ? act.sent(0) : act.received(i), act.received(i), counted(receive[i]), act.type, i, act.comm,
                                  act.stream));
    HT_NCCL(ncclGroupEnd());
}

/* All messages at once; those to this rank itself are copied. Entry i belongs to member i, or to the device that it names. */
static void run_messages(const Act &act, bool by_member, int mine)
{
    HT_NCCL(ncclGroupStart());
    for (int i = 0; i < act.step->send_count; i++) {
        const ht_block &block = act.step->send[i];
        int peer = by_member ? i : channel_rank(act.run, block.peer);
        if (block.count && peer != mine)
            HT_NCCL(ncclSend(act.sent(i), counted(block), act.type, peer, act.comm, act.stream));
    }
    for (int i = 0; i < act.step->receive_count; i++) {
        const ht_block &block = act.step->receive[i];
        int peer = by_member ? i : channel_rank(act.run, block.peer);
        if (block.count && peer != mine)
            HT_NCCL(ncclRecv(act.received(i), counted(block), act.type, peer, act.comm, act.stream));
    }
    HT_NCCL(ncclGroupEnd());
}

static void run_all_to_all(const Act &act, int mine)
{
    size_t own = counted(act.step->send[mine]) * ht_dtype_bytes(act.step->dtype);
    if (own && act.sent(mine) != act.received(mine))
        HT_CUDA(cudaMemcpyAsync(act.received(mine), act.sent(mine), own, cudaMemcpyDeviceToDevice, act.stream));
    run_messages(act, true, mine);
}

static void run_broadcast(const Act &act)
{
    bool root = act.step->send_count != 0;
    const ht_block &block = root ? act.step->send[0] : act.step->receive[0];
    void *data = channel_block(act.run, act.step, &block, 0);
    HT_NCCL(ncclBroadcast(data, data, counted(block), act.type, act.step->root, act.comm, act.stream));
}

static void run_verb(const Act &act, int mine)
{
    const ht_reshard_step *step = act.step;
    switch (step->verb) {
    case HT_ALL_REDUCE:
        HT_NCCL(ncclAllReduce(act.sent(0), act.received(0), counted(step->send[0]), act.type, act.op, act.comm, act.stream));
        break;
    case HT_REDUCE_SCATTER: run_reduce_scatter(act, mine); break;
    case HT_ALL_GATHER: run_all_gather(act, mine); break;
    case HT_ALL_TO_ALL: run_all_to_all(act, mine); break;
    case HT_BROADCAST: run_broadcast(act); break;
    case HT_REDUCE:
        HT_NCCL(ncclReduce(act.sent(0), step->receive_count ? act.received(0) : NULL, counted(step->send[0]), act.type, act.op, step->root,
                           act.comm, act.stream));
        break;
    default: run_messages(act, false, mine); break;
    }
}

static void nccl_communicate(const ChannelRun *run, const ht_reshard_step *step)
{
    Act act = {run, step, nccl.world, type_of(step->dtype), step->reduction == HT_MAX ? ncclMax : ncclSum, cuda_exchange_stream()};
    int mine = world_rank();
    if (step->verb != HT_EXCHANGE) {
        const ht_group *group = &run->plan->group[step->group];
        act.comm = comm_for(run, group);
        mine = channel_position(group, run->part->device);
    }
    cuda_note(channel_verb(step->verb), run->plan->name);
    run_verb(act, mine);
}

/* ---- runs ---- */

static bool communicates(const ChannelRun *run)
{
    for (int s = 0; s < run->part->step_count; s++)
        if (channel_communicates(&run->part->step[s]))
            return true;
    return false;
}

static void nccl_begin(const ChannelRun *run)
{
    nccl.exchanging = communicates(run);
    if (nccl.exchanging)
        cuda_exchange_begin();
}

static void nccl_end(const ChannelRun *)
{
    if (nccl.exchanging)
        cuda_exchange_end();
    nccl.exchanging = false;
}

static void nccl_move(const ChannelRun *run, const ht_reshard_step *step)
{
    cuda_move(run, step, nccl.exchanging ? cuda_exchange_stream() : ht_compute_stream());
}

extern "C" const Channel channel_nccl = {.prepare = nccl_prepare,
                                         .begin = nccl_begin,
                                         .end = nccl_end,
                                         .move = nccl_move,
                                         .communicate = nccl_communicate,
                                         .begin_flight = NULL,
                                         .end_flight = NULL,
                                         .check = nccl_check,
                                         .close = nccl_close,
                                         .records = true};
