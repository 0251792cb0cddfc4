/* Runs conversions between layouts: the executor of the tables of <hetu/reshard.h>, over MPI. */
#include <hetu/reshard.h>

#include "comm/mpi.h"
#include "comm/moves.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_TAG = 77, MOST_COUNT = 1 << 30 };

/* One run of a device's part. */
typedef struct Run {
    const ht_reshard *plan;
    size_t size; // of an element
    char *buffer[3];
} Run;

static char *address(const Run *run, ht_place place, int64_t offset) { return run->buffer[place] + offset * (int64_t)run->size; }

static char *block_address(const Run *run, const ht_block *block) { return address(run, block->place, block->offset); }

/* ---- communicators ---- */

typedef struct GroupComm GroupComm;
struct GroupComm {
    GroupComm *next;
    int count, *device;
    MPI_Comm comm;
};

static GroupComm *group_comms;

/* A tag that all members of a group compute alike. */
static int group_tag(const ht_group *group)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < group->count; i++)
        hash = (hash ^ (uint32_t)group->device[i]) * 16777619u;
    return (int)(hash & 0x3fff);
}

static MPI_Comm make_comm(const ht_group *group)
{
    MPI_Group world, members;
    MPI_Comm comm;
    HT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    HT_MPI(MPI_Group_incl(world, group->count, group->device, &members));
    HT_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, members, group_tag(group), &comm));
    HT_MPI(MPI_Group_free(&members));
    HT_MPI(MPI_Group_free(&world));
    return comm;
}

static void *checked_alloc(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        ht_fail("out of memory: %zu bytes for a conversion; run with fewer ranks on this machine, or a smaller model", size);
    return memory;
}

/* The communicator of a group; made at the first use, which is collective over the group. */
static MPI_Comm comm_for(const ht_group *group)
{
    for (GroupComm **link = &group_comms; *link; link = &(*link)->next) {
        GroupComm *known = *link;
        if (known->count == group->count && !memcmp(known->device, group->device, sizeof(int) * (size_t)group->count))
            return known->comm;
    }
    GroupComm *made = checked_alloc(sizeof *made);
    *made = (GroupComm){.next = group_comms, .count = group->count, .device = checked_alloc(sizeof(int) * (size_t)group->count), .comm = make_comm(group)};
    memcpy(made->device, group->device, sizeof(int) * (size_t)group->count);
    group_comms = made;
    return made->comm;
}

/* ---- datatypes ---- */

static MPI_Datatype datatype(ht_dtype dtype)
{
    static const MPI_Datatype types[] = {[HT_F32] = MPI_FLOAT, [HT_BF16] = MPI_UINT16_T, [HT_F64] = MPI_DOUBLE, [HT_I32] = MPI_INT32_T, [HT_I64] = MPI_INT64_T};
    return types[dtype];
}

/* MPI calls these for bf16, which it does not know. */
static void bf16_sum(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    ht_combine(HT_BF16, HT_SUM, to, from, *count);
}

static void bf16_max(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    ht_combine(HT_BF16, HT_MAX, to, from, *count);
}

static MPI_Op operation(const ht_reshard *plan)
{
    static MPI_Op own[2];
    static int made;
    if (plan->dtype != HT_BF16)
        return plan->reduction == HT_MAX ? MPI_MAX : MPI_SUM;
    if (!made) {
        HT_MPI(MPI_Op_create(bf16_sum, 1, &own[0]));
        HT_MPI(MPI_Op_create(bf16_max, 1, &own[1]));
        made = 1;
    }
    return own[plan->reduction == HT_MAX];
}

/* ---- collectives ---- */

static void run_all_reduce(const Run *run, const ht_reshard_step *step, MPI_Comm comm)
{
    const char *from = block_address(run, step->send);
    char *to = block_address(run, step->receive);
    int64_t count = step->send->count;
    for (int64_t at = 0; at < count; at += MOST_COUNT) {
        int part = (int)(count - at < MOST_COUNT ? count - at : MOST_COUNT);
        const void *send = from == to ? MPI_IN_PLACE : from + at * (int64_t)run->size;
        HT_MPI(MPI_Allreduce(send, to + at * (int64_t)run->size, part, datatype(run->plan->dtype), operation(run->plan), comm));
    }
}

/* Counts of the blocks of a collective, and their places from `base` on; the planner makes such collectives for tensors whose elements an int counts. */
static void block_counts(const ht_block *blocks, int count, int64_t base, int *counts, int *places)
{
    for (int i = 0; i < count; i++) {
        counts[i] = (int)blocks[i].count;
        places[i] = blocks[i].count ? (int)(blocks[i].offset - base) : 0;
    }
}

static void run_reduce_scatter(const Run *run, const ht_reshard_step *step, MPI_Comm comm)
{
    int *counts = checked_alloc(sizeof(int) * 2 * (size_t)step->send_count);
    block_counts(step->send, step->send_count, step->send->offset, counts, counts + step->send_count);
    HT_MPI(MPI_Reduce_scatter(block_address(run, step->send), block_address(run, step->receive), counts, datatype(run->plan->dtype), operation(run->plan), comm));
    free(counts);
}

static int64_t lowest_offset(const ht_block *blocks, int count)
{
    int64_t lowest = INT64_MAX;
    for (int i = 0; i < count; i++)
        if (blocks[i].count && blocks[i].offset < lowest)
            lowest = blocks[i].offset;
    return lowest == INT64_MAX ? 0 : lowest;
}

/* Whether all blocks have the same count and lie one after another. */
static bool blocks_even(const ht_block *blocks, int count)
{
    for (int i = 1; i < count; i++)
        if (blocks[i].count != blocks->count || blocks[i].offset != blocks->offset + i * blocks->count)
            return false;
    return true;
}

static void run_all_gather(const Run *run, const ht_reshard_step *step, MPI_Comm comm)
{
    int n = step->receive_count, rank, sent = (int)step->send->count;
    int64_t base = lowest_offset(step->receive, n);
    MPI_Datatype type = datatype(run->plan->dtype);
    HT_MPI(MPI_Comm_rank(comm, &rank));
    const char *from = block_address(run, step->send);
    char *own = block_address(run, &step->receive[rank]), *to = address(run, step->receive->place, base);
    const void *send = from == own ? MPI_IN_PLACE : from;
    if (blocks_even(step->receive, n)) {
        HT_MPI(MPI_Allgather(send, sent, type, to, sent, type, comm));
        return;
    }
    int *counts = checked_alloc(sizeof(int) * 2 * (size_t)n);
    block_counts(step->receive, n, base, counts, counts + n);
    HT_MPI(MPI_Allgatherv(send, sent, type, to, counts, counts + n, type, comm));
    free(counts);
}

/* The root sends from its own buffer, which MPI_Bcast does not change. */
static void run_broadcast(const Run *run, const ht_reshard_step *step, MPI_Comm comm)
{
    const ht_block *block = step->send_count ? step->send : step->receive;
    for (int64_t at = 0; at < block->count; at += MOST_COUNT) {
        int part = (int)(block->count - at < MOST_COUNT ? block->count - at : MOST_COUNT);
        HT_MPI(MPI_Bcast(block_address(run, block) + at * (int64_t)run->size, part, datatype(run->plan->dtype), step->root, comm));
    }
}

static void run_reduce(const Run *run, const ht_reshard_step *step, MPI_Comm comm)
{
    for (int64_t at = 0, count = step->send->count; at < count; at += MOST_COUNT) {
        int part = (int)(count - at < MOST_COUNT ? count - at : MOST_COUNT);
        int64_t bytes = at * (int64_t)run->size;
        char *to = step->receive_count ? block_address(run, step->receive) + bytes : NULL;
        HT_MPI(MPI_Reduce(block_address(run, step->send) + bytes, to, part, datatype(run->plan->dtype), operation(run->plan), step->root, comm));
    }
}

/* ---- messages ---- */

/* Posts the receives and sends of all blocks, in parts that MPI can count, and waits for them. */
static void run_exchange(const Run *run, const ht_reshard_step *step)
{
    size_t most = 0;
    for (int i = 0; i < step->receive_count; i++)
        most += 1 + (size_t)(step->receive[i].count / MOST_COUNT);
    for (int i = 0; i < step->send_count; i++)
        most += 1 + (size_t)(step->send[i].count / MOST_COUNT);
    MPI_Request *requests = checked_alloc(sizeof *requests * most);
    int posted = 0;
    MPI_Datatype type = datatype(run->plan->dtype);
    for (int sends = 0; sends < 2; sends++)
        for (int i = 0; i < (sends ? step->send_count : step->receive_count); i++) {
            const ht_block *block = sends ? &step->send[i] : &step->receive[i];
            for (int64_t at = 0; at < block->count; at += MOST_COUNT) {
                int part = (int)(block->count - at < MOST_COUNT ? block->count - at : MOST_COUNT);
                char *data = block_address(run, block) + at * (int64_t)run->size;
                if (sends)
                    HT_MPI(MPI_Isend(data, part, type, block->peer, MESSAGE_TAG, MPI_COMM_WORLD, &requests[posted++]));
                else
                    HT_MPI(MPI_Irecv(data, part, type, block->peer, MESSAGE_TAG, MPI_COMM_WORLD, &requests[posted++]));
            }
        }
    HT_MPI(MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE));
    free(requests);
}

static void run_all_to_all(const Run *run, const ht_reshard_step *step, MPI_Comm comm)
{
    int n = step->send_count, *counts = checked_alloc(sizeof(int) * 4 * (size_t)n);
    int64_t from = lowest_offset(step->send, n), to = lowest_offset(step->receive, n);
    MPI_Datatype type = datatype(run->plan->dtype);
    block_counts(step->send, n, from, counts, counts + n);
    block_counts(step->receive, n, to, counts + 2 * n, counts + 3 * n);
    HT_MPI(MPI_Alltoallv(address(run, step->send->place, from), counts, counts + n, type, address(run, step->receive->place, to), counts + 2 * n, counts + 3 * n, type, comm));
    free(counts);
}

/* ---- steps ---- */

static void run_moves(const Run *run, const ht_reshard_step *step)
{
    for (int i = 0; i < step->move_count; i++) {
        const ht_move *move = &step->move[i];
        const char *from = address(run, move->from, move->from_offset);
        char *to = address(run, move->to, move->to_offset);
        if (step->verb == HT_COPY)
            ht_move_copy(move, run->size, to, from);
        else if (step->verb == HT_COMBINE)
            ht_move_combine(move, run->plan->dtype, run->plan->reduction, to, from);
        else
            ht_move_fill(move, run->plan->dtype, run->plan->reduction, to);
    }
}

static void run_step(const Run *run, const ht_reshard_step *step)
{
    if (step->verb == HT_COPY || step->verb == HT_COMBINE || step->verb == HT_FILL) {
        run_moves(run, step);
        return;
    }
    if (step->verb == HT_EXCHANGE) {
        run_exchange(run, step);
        return;
    }
    MPI_Comm comm = comm_for(&run->plan->group[step->group]);
    switch (step->verb) {
    case HT_ALL_REDUCE: run_all_reduce(run, step, comm); break;
    case HT_REDUCE_SCATTER: run_reduce_scatter(run, step, comm); break;
    case HT_ALL_GATHER: run_all_gather(run, step, comm); break;
    case HT_ALL_TO_ALL: run_all_to_all(run, step, comm); break;
    case HT_BROADCAST: run_broadcast(run, step, comm); break;
    case HT_REDUCE: run_reduce(run, step, comm); break;
    default: ht_fail("%s: a step of unknown kind %d; the program and the library are of different versions", run->plan->name, (int)step->verb);
    }
}

/* The device's part of a plan; NULL when it has none. */
static const ht_reshard_device *find_device(const ht_reshard *plan, int device)
{
    int low = 0, high = plan->device_count - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (plan->device[middle].device == device)
            return &plan->device[middle];
        if (plan->device[middle].device < device)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return NULL;
}

void ht_reshard_run(const ht_reshard *plan, int device, const void *from, void *to, void *scratch)
{
    const ht_reshard_device *part = find_device(plan, device);
    Run run = {plan, ht_dtype_bytes(plan->dtype), {(char *)from, to, scratch}};
    for (int s = 0; part && s < part->step_count; s++)
        run_step(&run, &part->step[s]);
}

int64_t ht_reshard_scratch(const ht_reshard *plan, int device)
{
    const ht_reshard_device *part = find_device(plan, device);
    return part ? part->scratch : 0;
}

static int64_t count_blocks(const ht_block *blocks, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += blocks[i].count;
    return sum;
}

/* The device's position in a group. */
static int position_in(const ht_group *group, int device)
{
    for (int i = 0; i < group->count; i++)
        if (group->device[i] == device)
            return i;
    return 0;
}

/* Elements that a step brings to a device, as rings and chains move them. */
static int64_t step_received(const ht_reshard *plan, const ht_reshard_step *step, int device)
{
    if (step->verb == HT_EXCHANGE)
        return count_blocks(step->receive, step->receive_count);
    if (step->move_count)
        return 0;
    const ht_group *group = &plan->group[step->group];
    int64_t n = group->count, i = position_in(group, device), all = count_blocks(step->send, step->send_count);
    switch (step->verb) {
    case HT_ALL_REDUCE: return 2 * (n - 1) * all * (i + 1) / n - 2 * (n - 1) * all * i / n;
    case HT_REDUCE_SCATTER: return (n - 1) * all * (i + 1) / n - (n - 1) * all * i / n;
    case HT_ALL_GATHER: return count_blocks(step->receive, step->receive_count) - all;
    case HT_REDUCE: return i < n - 1 ? all : 0;
    default: return count_blocks(step->receive, step->receive_count);
    }
}

int64_t ht_reshard_received(const ht_reshard *plan, int device)
{
    const ht_reshard_device *part = find_device(plan, device);
    int64_t elements = 0;
    for (int s = 0; part && s < part->step_count; s++)
        elements += step_received(plan, &part->step[s], device);
    return elements * (int64_t)ht_dtype_bytes(plan->dtype);
}
