/* Conversions between ranks that met through a file (transport/fabric/fabric.h), on host memory. Every collective is one or two exchanges
 * of messages, of as many bytes as the textbook's algorithms need. What is reduced is added up on one rank in the order of the group, in
 * f32 at least, and sent to the others, so that all hold the same bits. */
#include "base/memory.h"
#include "exchange/channel.h"
#include "transport/fabric/fabric.h"
#include "exchange/moves.h"
#include "transport/world.h"

#include <hetu/rt.h>

#include <stdlib.h>
#include <string.h>

enum { FOLD_CHUNK = 1024, REDUCE_CHUNK = 1 << 20 }; // elements

/* A step, its group and this rank's place in it. */
typedef struct Act {
    const ChannelRun *run;
    const ht_reshard_step *step;
    const ht_group *group;
    int mine;
    int64_t size; // of an element
} Act;

/* Messages that are collected, then exchanged at once. */
typedef struct Mail {
    Transfer *sends, *receives;
    int send_count, receive_count;
} Mail;

static Mail mail_create(int most)
{
    return (Mail){.sends = memory_array(most, sizeof(Transfer)), .receives = memory_array(most, sizeof(Transfer))};
}

static void mail_send(Mail *mail, const Act *act, const char *data, int64_t count, int rank)
{
    mail->sends[mail->send_count++] = (Transfer){(void *)data, (size_t)(count * act->size), rank};
}

static void mail_receive(Mail *mail, const Act *act, char *data, int64_t count, int rank)
{
    mail->receives[mail->receive_count++] = (Transfer){data, (size_t)(count * act->size), rank};
}

static void mail_exchange(Mail *mail)
{
    fabric_exchange(mail->sends, mail->send_count, mail->receives, mail->receive_count);
    free(mail->sends);
    free(mail->receives);
}

static char *sent_at(const Act *act, int block, int64_t at) { return channel_block(act->run, act->step, &act->step->send[block], at); }

static char *received_at(const Act *act, int block, int64_t at)
{
    return channel_block(act->run, act->step, &act->step->receive[block], at);
}

/* ---- sums and maxima ---- */

static void fold_bf16(ht_reduction reduction, uint16_t *to, const char *const *part, int parts, int64_t count)
{
    float sum[FOLD_CHUNK];
    for (int64_t at = 0; at < count; at += FOLD_CHUNK) {
        int64_t n = count - at < FOLD_CHUNK ? count - at : FOLD_CHUNK;
        for (int p = 0; p < parts; p++) {
            const uint16_t *from = (const uint16_t *)part[p] + at;
            for (int64_t i = 0; i < n; i++) {
                float x = ht_bf16_load(from[i]);
                sum[i] = !p ? x : reduction == HT_SUM ? sum[i] + x : x > sum[i] ? x : sum[i];
            }
        }
        for (int64_t i = 0; i < n; i++)
            to[at + i] = ht_bf16_store(sum[i]);
    }
}

/* Reduces the members' parts in their order; `to` may be one of them. */
static void fold(const Act *act, char *to, const char *const *part, int64_t count)
{
    ht_dtype dtype = act->step->dtype;
    int parts = act->group->count;
    if (dtype == HT_BF16) {
        fold_bf16(act->step->reduction, (uint16_t *)to, part, parts, count);
        return;
    }
    char *chunk = memory_storage(FOLD_CHUNK * act->size);
    for (int64_t at = 0; at < count; at += FOLD_CHUNK) {
        int64_t n = count - at < FOLD_CHUNK ? count - at : FOLD_CHUNK;
        memcpy(chunk, part[0] + at * act->size, (size_t)(n * act->size));
        for (int p = 1; p < parts; p++)
            ht_combine(dtype, act->step->reduction, chunk, part[p] + at * act->size, n);
        memcpy(to + at * act->size, chunk, (size_t)(n * act->size));
    }
    free(chunk);
}

/* This rank gets `count` elements of every member and reduces them to `to`; `sent[i]` goes to member i. Members with nothing to get take
 * part. */
static void gather_and_fold(const Act *act, const char *const *sent, const int64_t *sent_count, char *to, int64_t count)
{
    int members = act->group->count;
    char *room = memory_storage(count * act->size * members);
    const char **part = memory_array(members, sizeof *part);
    Mail mail = mail_create(members);
    for (int i = 0; i < members; i++) {
        part[i] = i == act->mine ? sent[i] : room + (size_t)(count * act->size) * (size_t)i;
        if (i == act->mine)
            continue;
        mail_send(&mail, act, sent[i], sent_count[i], act->group->device[i]);
        mail_receive(&mail, act, (char *)part[i], count, act->group->device[i]);
    }
    mail_exchange(&mail);
    if (count)
        fold(act, to, part, count);
    free(part);
    free(room);
}

/* ---- the verbs ---- */

/* Member i's share of a tensor that all reduce together begins here. */
static int64_t share(const Act *act, int64_t count, int i) { return count * i / act->group->count; }

/* Every member reduces its share; then all send theirs to all. */
static void run_all_reduce(const Act *act)
{
    int members = act->group->count;
    int64_t all = act->step->send->count, first = share(act, all, act->mine), count = share(act, all, act->mine + 1) - first;
    const char **sent = memory_array(members, sizeof *sent);
    int64_t *sent_count = memory_array(members, sizeof *sent_count);
    for (int i = 0; i < members; i++) {
        sent[i] = sent_at(act, 0, share(act, all, i));
        sent_count[i] = share(act, all, i + 1) - share(act, all, i);
    }
    gather_and_fold(act, sent, sent_count, received_at(act, 0, first), count);
    Mail mail = mail_create(members);
    for (int i = 0; i < members; i++)
        if (i != act->mine) {
            mail_send(&mail, act, received_at(act, 0, first), count, act->group->device[i]);
            mail_receive(&mail, act, received_at(act, 0, share(act, all, i)), sent_count[i], act->group->device[i]);
        }
    mail_exchange(&mail);
    free(sent);
    free(sent_count);
}

static void run_reduce_scatter(const Act *act)
{
    int members = act->group->count;
    const char **sent = memory_array(members, sizeof *sent);
    int64_t *sent_count = memory_array(members, sizeof *sent_count);
    for (int i = 0; i < members; i++) {
        sent[i] = sent_at(act, i, 0);
        sent_count[i] = act->step->send[i].count;
    }
    gather_and_fold(act, sent, sent_count, received_at(act, 0, 0), sent_count[act->mine]);
    free(sent);
    free(sent_count);
}

/* In chunks, since the root needs room for those of all members. */
static void run_reduce(const Act *act)
{
    int members = act->group->count;
    bool root = act->mine == act->step->root;
    const char **sent = memory_array(members, sizeof *sent);
    int64_t *sent_count = memory_array(members, sizeof *sent_count);
    for (int64_t at = 0, all = act->step->send->count; at < all; at += REDUCE_CHUNK) {
        int64_t n = all - at < REDUCE_CHUNK ? all - at : REDUCE_CHUNK;
        for (int i = 0; i < members; i++) {
            sent[i] = sent_at(act, 0, at);
            sent_count[i] = i == act->step->root ? n : 0;
        }
        gather_and_fold(act, sent, sent_count, root ? received_at(act, 0, at) : NULL, root ? n : 0);
    }
    free(sent);
    free(sent_count);
}

static void run_all_gather(const Act *act)
{
    Mail mail = mail_create(act->group->count);
    for (int i = 0; i < act->group->count; i++) {
        mail_send(&mail, act, sent_at(act, 0, 0), act->step->send->count, act->group->device[i]);
        mail_receive(&mail, act, received_at(act, i, 0), act->step->receive[i].count, act->group->device[i]);
    }
    mail_exchange(&mail);
}

static void run_all_to_all(const Act *act)
{
    Mail mail = mail_create(act->group->count);
    for (int i = 0; i < act->group->count; i++) {
        mail_send(&mail, act, sent_at(act, i, 0), act->step->send[i].count, act->group->device[i]);
        mail_receive(&mail, act, received_at(act, i, 0), act->step->receive[i].count, act->group->device[i]);
    }
    mail_exchange(&mail);
}

static void run_broadcast(const Act *act)
{
    Mail mail = mail_create(act->group->count);
    for (int i = 0; i < act->group->count; i++)
        if (act->mine == act->step->root && i != act->mine)
            mail_send(&mail, act, sent_at(act, 0, 0), act->step->send->count, act->group->device[i]);
    if (act->mine != act->step->root)
        mail_receive(&mail, act, received_at(act, 0, 0), act->step->receive->count, act->group->device[act->step->root]);
    mail_exchange(&mail);
}

static void run_exchange(const ChannelRun *run, const ht_reshard_step *step)
{
    Transfer *messages = channel_messages(run, step);
    fabric_exchange(messages, step->send_count, messages + step->send_count, step->receive_count);
    free(messages);
}

static void fabric_communicate(const ChannelRun *run, const ht_reshard_step *step)
{
    if (step->verb == HT_EXCHANGE) {
        run_exchange(run, step);
        return;
    }
    Act act = {.run = run, .step = step, .group = &run->plan->group[step->group], .size = (int64_t)ht_dtype_bytes(step->dtype)};
    act.mine = channel_position(act.group, world_rank());
    switch (step->verb) {
    case HT_ALL_REDUCE: run_all_reduce(&act); break;
    case HT_REDUCE_SCATTER: run_reduce_scatter(&act); break;
    case HT_ALL_GATHER: run_all_gather(&act); break;
    case HT_ALL_TO_ALL: run_all_to_all(&act); break;
    case HT_BROADCAST: run_broadcast(&act); break;
    default: run_reduce(&act); break;
    }
}

const Channel channel_fabric = {.move = channel_move_on_host, .communicate = fabric_communicate};
