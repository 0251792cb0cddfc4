/* The algorithm of async collectives, and of all collectives on hosts without MPI: every rank sends
 * directly to every other rank; no ring, tree or halving. MPI (mpi.c) or NCCL runs the rest. */
#include "exchange/collective_rounds.h"

#include "base/memory.h"
#include "exchange/copy_boxes.h"

#include <stdlib.h>
#include <string.h>

enum { FOLD_CHUNK = 1024 };    // elements
enum { MOST_PARTS = 1 << 21 }; // most bytes that a round receives for reduction

/* Returns the transfer of `count` elements at `data` to or from a member of the group. */
static HostTransfer part(const Rounds *r, char *data, int64_t count, int member) {
    return (HostTransfer){data, (size_t)(count * r->size),
                          channel_rank(r->run, r->group->device[member])};
}

/* Returns the transfer of elements [at, at + count) of a block to or from a member. */
static HostTransfer block_part(const Rounds *r, const ht_block *block, int64_t at, int64_t count,
                               int member) {
    return part(r, count ? channel_block(r->run, r->step, block, at) : NULL, count, member);
}

/* ---- sums and maxima ---- */

static void fold_bf16(const Rounds *r, uint16_t *to, const uint16_t *parts, int64_t count) {
    float sum[FOLD_CHUNK], next[FOLD_CHUNK];
    for (int64_t at = 0; at < count; at += FOLD_CHUNK) {
        int64_t n = count - at < FOLD_CHUNK ? count - at : FOLD_CHUNK;
        for (int p = 0; p < r->members; p++) {
            for (int64_t i = 0; i < n; i++)
                (p ? next : sum)[i] = ht_bf16_load(parts[p * count + at + i]);
            if (p) ht_combine(HT_F32, r->step->reduction, sum, next, n);
        }
        for (int64_t i = 0; i < n; i++) to[at + i] = ht_bf16_store(sum[i]);
    }
}

/* Reduces the contributions of all members into `to`. `parts` holds them one after another, by
 * member; the order of the reduction is that of the group. */
static void fold(const Rounds *r, char *to, const char *parts, int64_t count) {
    if (r->step->dtype == HT_BF16) {
        fold_bf16(r, (uint16_t *)to, (const uint16_t *)parts, count);
        return;
    }
    memcpy(to, parts, (size_t)(count * r->size));
    for (int p = 1; p < r->members; p++)
        ht_combine(r->step->dtype, r->step->reduction, to, parts + p * count * r->size, count);
}

/* Returns how many elements of each member a round reduces: at most MOST_PARTS bytes arrive. */
static int64_t chunk(const Rounds *r) {
    return r->size * r->members < MOST_PARTS ? MOST_PARTS / (r->size * r->members) : 1;
}

/* Returns how many rounds reduce `count` elements of each member. */
static int64_t reducing_rounds(const Rounds *r, int64_t count) {
    return (count + chunk(r) - 1) / chunk(r);
}

/* Returns how many of `count` elements the current round reduces; the first is number * chunk. */
static int64_t reduced_now(const Rounds *r, int64_t count) {
    int64_t left = count - r->number * chunk(r);
    return left < 0 ? 0 : left < chunk(r) ? left : chunk(r);
}

/* Makes this round receive `count` elements from every member. finish_parts later reduces them to
 * offset `at` of the step's receive block. A member may pass count 0. The first round has the
 * largest count, so it allocates the memory. */
static void receive_parts(Rounds *r, int64_t at, int64_t count) {
    r->to = count ? channel_block(r->run, r->step, r->step->receive, at) : NULL;
    r->folded = count;
    if (!r->number) r->parts = memory_storage(count * r->size * r->members);
    for (int i = 0; i < r->members; i++)
        r->receives[i] = part(r, r->parts + i * count * r->size, count, i);
}

/* Reduces the contributions that the previous round received. */
static void finish_parts(Rounds *r) {
    if (r->folded) fold(r, r->to, r->parts, r->folded);
    r->folded = 0;
}

/* ---- the verbs: each sets up round `number`, or returns false after the last round ---- */

/* Returns where member i's share of `count` elements begins: at 0, 2, 5, 7 for 10 and 4 members. */
static int64_t share(const Rounds *r, int64_t count, int i) { return count * i / r->members; }

/* Carries out all-reduce as reduce-scatter, then all-gather: every member reduces its share, then
 * sends the result to all members. */
static bool next_all_reduce(Rounds *r) {
    const ht_block *from = r->step->send, *to = r->step->receive;
    int64_t all = from->count, first = share(r, all, r->mine),
            count = share(r, all, r->mine + 1) - first, done = r->number * chunk(r);
    int64_t rounds = reducing_rounds(r, (all + r->members - 1) / r->members);
    for (int i = 0; i < r->members; i++) {
        int64_t at = share(r, all, i), theirs = share(r, all, i + 1) - at;
        r->sends[i] = r->number < rounds ? block_part(r, from, at + done, reduced_now(r, theirs), i)
                                         : block_part(r, to, first, count, i);
        r->receives[i] = block_part(r, to, at, theirs, i);
    }
    if (r->number < rounds) receive_parts(r, first + done, reduced_now(r, count));
    return r->number <= rounds;
}

/* Returns the largest number of elements that a member receives. */
static int64_t most_received(const ht_reshard_step *step) {
    int64_t most = 0;
    for (int i = 0; i < step->send_count; i++)
        most = step->send[i].count > most ? step->send[i].count : most;
    return most;
}

static bool next_reduce_scatter(Rounds *r) {
    int64_t done = r->number * chunk(r);
    if (r->number >= reducing_rounds(r, most_received(r->step))) return false;
    for (int i = 0; i < r->members; i++)
        r->sends[i] =
            block_part(r, &r->step->send[i], done, reduced_now(r, r->step->send[i].count), i);
    receive_parts(r, done, reduced_now(r, r->step->send[r->mine].count));
    return true;
}

static bool next_reduce(Rounds *r) {
    bool root = r->mine == r->step->root;
    int64_t done = r->number * chunk(r), n = reduced_now(r, r->step->send->count);
    if (!n) return false;
    for (int i = 0; i < r->members; i++)
        r->sends[i] = block_part(r, r->step->send, done, i == r->step->root ? n : 0, i);
    receive_parts(r, done, root ? n : 0);
    return true;
}

/* All-gather sends one block to all members; all-to-all sends each member its own block. */
static bool next_gather(Rounds *r) {
    for (int i = 0; i < r->members; i++) {
        const ht_block *sent = &r->step->send[r->step->send_count == 1 ? 0 : i];
        r->sends[i] = block_part(r, sent, 0, sent->count, i);
        r->receives[i] = block_part(r, &r->step->receive[i], 0, r->step->receive[i].count, i);
    }
    return !r->number;
}

static bool next_broadcast(Rounds *r) {
    bool root = r->mine == r->step->root;
    for (int i = 0; i < r->members; i++) {
        r->sends[i] =
            block_part(r, r->step->send, 0, root && i != r->mine ? r->step->send->count : 0, i);
        r->receives[i] = block_part(r, r->step->receive, 0,
                                    !root && i == r->step->root ? r->step->receive->count : 0, i);
    }
    return !r->number;
}

static bool next_round(Rounds *r) {
    switch (r->step->verb) {
    case HT_ALL_REDUCE: return next_all_reduce(r);
    case HT_REDUCE_SCATTER: return next_reduce_scatter(r);
    case HT_BROADCAST: return next_broadcast(r);
    case HT_REDUCE: return next_reduce(r);
    case HT_EXCHANGE: return !r->number;
    default: return next_gather(r);
    }
}

/* ---- all rounds of a step ---- */

Rounds rounds_open(const ChannelRun *run, const ht_reshard_step *step) {
    Rounds r = {.run = run, .step = step, .size = (int64_t)ht_dtype_bytes(step->dtype)};
    bool exchange = step->verb == HT_EXCHANGE;
    r.group = exchange ? NULL : &run->plan->group[step->group];
    r.members = exchange ? 0 : r.group->count;
    r.mine = exchange ? 0 : channel_position(r.group, run->part->device);
    r.send_count = exchange ? step->send_count : r.members;
    r.receive_count = exchange ? step->receive_count : r.members;
    r.sends = memory_array(r.send_count + r.receive_count, sizeof *r.sends);
    r.receives = r.sends + r.send_count;
    if (exchange) channel_messages(run, step, r.sends);
    return r;
}

bool rounds_next(Rounds *rounds) {
    finish_parts(rounds);
    bool more = next_round(rounds);
    rounds->number++;
    if (!more) {
        free(rounds->sends);
        free(rounds->parts);
    }
    return more;
}

static bool reduces(const ht_reshard_step *step) {
    return step->verb == HT_ALL_REDUCE || step->verb == HT_REDUCE_SCATTER ||
           step->verb == HT_REDUCE;
}

int64_t rounds_room(const ChannelRun *run) {
    int64_t most = 0;
    for (int s = 0; s < run->part->step_count; s++) {
        const ht_reshard_step *step = &run->part->step[s];
        int64_t bytes = 0;
        for (int i = 0; reduces(step) && i < step->send_count; i++)
            bytes += step->send[i].count * (int64_t)ht_dtype_bytes(step->dtype);
        most = bytes > most ? bytes : most;
    }
    return most < MOST_PARTS ? most : MOST_PARTS;
}
