/* Conversions between ranks that met through a file (transport/fabric/fabric.h), on host memory. Every collective is one or two exchanges
 * of messages, of as many bytes as the textbook's algorithms need. What is reduced is added up on one rank in the order of the group, in
 * f32 at least, and sent to the others, so that all hold the same bits. */
#include "base/memory.h"
#include "exchange/channel.h"
#include "exchange/moves.h"
#include "transport/fabric/fabric.h"
#include "transport/world.h"

#include <hetu/rt.h>

#include <stdlib.h>
#include <string.h>

enum { FOLD_CHUNK = 1024, REDUCE_CHUNK = 1 << 20 }; // elements

/* A step, its group and this rank's place in it; what goes to every member, and comes from it. */
typedef struct Act {
    const ChannelRun *run;
    const ht_reshard_step *step;
    const ht_group *group;
    int members, mine;
    int64_t size; // of an element
    Transfer *sends, *receives;
} Act;

/* `count` elements for a member or from it. */
static Transfer part(const Act *act, char *data, int64_t count, int member)
{
    return (Transfer){data, (size_t)(count * act->size), act->group->device[member]};
}

/* `count` elements of a block from `at` on, for a member or from it. */
static Transfer block_part(const Act *act, const ht_block *block, int64_t at, int64_t count, int member)
{
    return part(act, count ? channel_block(act->run, act->step, block, at) : NULL, count, member);
}

static void exchange(const Act *act) { fabric_exchange(act->sends, act->members, act->receives, act->members); }

/* ---- sums and maxima ---- */

static void fold_bf16(const Act *act, uint16_t *to, const uint16_t *parts, int64_t count)
{
    float sum[FOLD_CHUNK], next[FOLD_CHUNK];
    for (int64_t at = 0; at < count; at += FOLD_CHUNK) {
        int64_t n = count - at < FOLD_CHUNK ? count - at : FOLD_CHUNK;
        for (int p = 0; p < act->members; p++) {
            for (int64_t i = 0; i < n; i++)
                (p ? next : sum)[i] = ht_bf16_load(parts[p * count + at + i]);
            if (p)
                ht_combine(HT_F32, act->step->reduction, sum, next, n);
        }
        for (int64_t i = 0; i < n; i++)
            to[at + i] = ht_bf16_store(sum[i]);
    }
}

/* Reduces the members' parts, which lie one after another, in their order. */
static void fold(const Act *act, char *to, const char *parts, int64_t count)
{
    if (act->step->dtype == HT_BF16) {
        fold_bf16(act, (uint16_t *)to, (const uint16_t *)parts, count);
        return;
    }
    memcpy(to, parts, (size_t)(count * act->size));
    for (int p = 1; p < act->members; p++)
        ht_combine(act->step->dtype, act->step->reduction, to, parts + p * count * act->size, count);
}

/* Sends act->sends, and reduces the `count` elements that come from every member to `to`. Members with nothing to get take part. */
static void exchange_and_fold(const Act *act, char *to, int64_t count)
{
    char *parts = memory_storage(count * act->size * act->members);
    for (int i = 0; i < act->members; i++)
        act->receives[i] = part(act, parts + i * count * act->size, count, i);
    exchange(act);
    if (count)
        fold(act, to, parts, count);
    free(parts);
}

/* ---- the verbs ---- */

/* Member i's share of a tensor that all reduce together begins here. */
static int64_t share(const Act *act, int64_t count, int i) { return count * i / act->members; }

/* Every member reduces its share; then all send theirs to all. */
static void run_all_reduce(const Act *act)
{
    const ht_block *from = act->step->send, *to = act->step->receive;
    int64_t all = from->count, first = share(act, all, act->mine), count = share(act, all, act->mine + 1) - first;
    for (int i = 0; i < act->members; i++)
        act->sends[i] = block_part(act, from, share(act, all, i), share(act, all, i + 1) - share(act, all, i), i);
    exchange_and_fold(act, channel_block(act->run, act->step, to, first), count);
    for (int i = 0; i < act->members; i++) {
        act->sends[i] = block_part(act, to, first, count, i);
        act->receives[i] = block_part(act, to, share(act, all, i), share(act, all, i + 1) - share(act, all, i), i);
    }
    exchange(act);
}

static void run_reduce_scatter(const Act *act)
{
    for (int i = 0; i < act->members; i++)
        act->sends[i] = block_part(act, &act->step->send[i], 0, act->step->send[i].count, i);
    exchange_and_fold(act, channel_block(act->run, act->step, act->step->receive, 0), act->step->send[act->mine].count);
}

/* In chunks, since the root needs room for those of all members. */
static void run_reduce(const Act *act)
{
    bool root = act->mine == act->step->root;
    for (int64_t at = 0, all = act->step->send->count; at < all; at += REDUCE_CHUNK) {
        int64_t n = all - at < REDUCE_CHUNK ? all - at : REDUCE_CHUNK;
        for (int i = 0; i < act->members; i++)
            act->sends[i] = block_part(act, act->step->send, at, i == act->step->root ? n : 0, i);
        exchange_and_fold(act, root ? channel_block(act->run, act->step, act->step->receive, at) : NULL, root ? n : 0);
    }
}

/* All-gathers and all-to-alls: a block for every member, or one for all. */
static void run_gather(const Act *act)
{
    for (int i = 0; i < act->members; i++) {
        const ht_block *sent = &act->step->send[act->step->send_count == 1 ? 0 : i];
        act->sends[i] = block_part(act, sent, 0, sent->count, i);
        act->receives[i] = block_part(act, &act->step->receive[i], 0, act->step->receive[i].count, i);
    }
    exchange(act);
}

static void run_broadcast(const Act *act)
{
    bool root = act->mine == act->step->root;
    for (int i = 0; i < act->members; i++) {
        act->sends[i] = block_part(act, act->step->send, 0, root && i != act->mine ? act->step->send->count : 0, i);
        act->receives[i] = block_part(act, act->step->receive, 0, !root && i == act->step->root ? act->step->receive->count : 0, i);
    }
    exchange(act);
}

static void run_exchange(const ChannelRun *run, const ht_reshard_step *step)
{
    const Transfer *messages = channel_messages(run, step);
    fabric_exchange(messages, step->send_count, messages + step->send_count, step->receive_count);
}

static void fabric_communicate(const ChannelRun *run, const ht_reshard_step *step)
{
    if (step->verb == HT_EXCHANGE) {
        run_exchange(run, step);
        return;
    }
    const ht_group *group = &run->plan->group[step->group];
    Transfer *transfers = memory_array(2 * (int64_t)group->count, sizeof *transfers);
    Act act = {.run = run,
               .step = step,
               .group = group,
               .members = group->count,
               .mine = channel_position(group, world_rank()),
               .size = (int64_t)ht_dtype_bytes(step->dtype),
               .sends = transfers,
               .receives = transfers + group->count};
    switch (step->verb) {
    case HT_ALL_REDUCE: run_all_reduce(&act); break;
    case HT_REDUCE_SCATTER: run_reduce_scatter(&act); break;
    case HT_BROADCAST: run_broadcast(&act); break;
    case HT_REDUCE: run_reduce(&act); break;
    default: run_gather(&act); break;
    }
    free(transfers);
}

const Channel channel_fabric = {.move = channel_move_on_host, .communicate = fabric_communicate};
