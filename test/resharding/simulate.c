#include "simulate.h"

#include "reshard/reshard.h"
#include "support/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A message on its way. */
typedef struct Mail {
    int sender, receiver;
    ht_dtype dtype;
    size_t bytes;
    char *data; // NULL once it was received
} Mail;

typedef struct Machine {
    Arena *arena;
    const ht_reshard *plan;
    void *const *const *buffers[2]; // from, to: by device, by tensor
    char **scratch;
    int *next;    // by device: its next step
    bool *posted; // by device: the sends of its next step are on their way
    Array(Mail) mails;
} Machine;

/* ---- elements ---- */

static size_t dtype_bytes(ht_dtype dtype) { return (size_t)ht_dtype_size(dtype); }

double element_load(ht_dtype dtype, const void *from)
{
    uint32_t bits = 0;
    float single;
    switch (dtype) {
    case HT_F32: return *(const float *)from;
    case HT_F64: return *(const double *)from;
    case HT_I32: return *(const int32_t *)from;
    case HT_I64: return (double)*(const int64_t *)from;
    case HT_BF16:
        bits = (uint32_t) * (const uint16_t *)from << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    }
    return 0;
}

/* A bf16 takes the upper half of a float: exact for the small integers that tests use. */
void element_store(ht_dtype dtype, void *to, double value)
{
    uint32_t bits;
    float single = (float)value;
    switch (dtype) {
    case HT_F32: *(float *)to = single; break;
    case HT_F64: *(double *)to = value; break;
    case HT_I32: *(int32_t *)to = value < INT32_MIN ? INT32_MIN : (int32_t)value; break;
    case HT_I64: *(int64_t *)to = value < (double)INT64_MIN ? INT64_MIN : (int64_t)value; break;
    case HT_BF16:
        memcpy(&bits, &single, sizeof bits);
        *(uint16_t *)to = (uint16_t)(bits >> 16);
        break;
    }
}

static char *place(const Machine *machine, int d, ht_place where, int tensor, int64_t offset, ht_dtype dtype)
{
    char *buffer = where == HT_SCRATCH ? machine->scratch[d] : machine->buffers[where][d][tensor];
    return buffer + offset * (int64_t)dtype_bytes(dtype);
}

static char *block_data(const Machine *machine, int d, const ht_reshard_step *step, const ht_block *block)
{
    return place(machine, d, block->place, block->tensor, block->offset, step->dtype);
}

static size_t block_bytes(const ht_reshard_step *step, const ht_block *block) { return dtype_bytes(step->dtype) * (size_t)block->count; }

/* *to = *to (+ or max) *from. */
static void combine(ht_dtype dtype, ht_reduction reduction, void *to, const void *from)
{
    double a = element_load(dtype, to), b = element_load(dtype, from);
    element_store(dtype, to, reduction == HT_MAX ? (a > b ? a : b) : a + b);
}

static void run_dimension(const ht_reshard_tensor *tensor, ht_verb verb, const ht_stride *dim, int rank, char *to, const char *from)
{
    int64_t size = (int64_t)dtype_bytes(tensor->dtype);
    if (rank) {
        for (int64_t i = 0; i < dim->extent; i++)
            run_dimension(tensor, verb, dim + 1, rank - 1, to + i * dim->to * size, from + i * dim->from * size);
        return;
    }
    if (verb == HT_FILL)
        element_store(tensor->dtype, to, tensor->reduction == HT_MAX ? -INFINITY : 0);
    else if (verb == HT_COPY)
        memcpy(to, from, (size_t)size);
    else
        combine(tensor->dtype, tensor->reduction, to, from);
}

static void run_moves(const Machine *machine, int d, const ht_reshard_step *step)
{
    for (int i = 0; i < step->move_count; i++) {
        const ht_move *move = &step->move[i];
        const ht_reshard_tensor *tensor = &machine->plan->tensor[move->tensor];
        char *to = place(machine, d, move->to, move->tensor, move->to_offset, tensor->dtype);
        const char *from = place(machine, d, move->from, move->tensor, move->from_offset, tensor->dtype);
        if (to != from || step->verb != HT_COPY)
            run_dimension(tensor, step->verb, move->dim, move->rank, to, from);
    }
}

/* ---- steps ---- */

static int index_of(const Machine *machine, int device)
{
    for (int d = 0; d < machine->plan->device_count; d++)
        if (machine->plan->device[d].device == device)
            return d;
    return -1;
}

static const ht_reshard_step *step_of(const Machine *machine, int d)
{
    return machine->next[d] < machine->plan->device[d].step_count ? &machine->plan->device[d].step[machine->next[d]] : NULL;
}

static void post(Machine *machine, int d, const ht_reshard_step *step)
{
    for (int i = 0; i < step->send_count; i++) {
        const ht_block *block = &step->send[i];
        Mail mail = {machine->plan->device[d].device, block->peer, step->dtype, block_bytes(step, block), NULL};
        mail.data = arena_copy(machine->arena, block_data(machine, d, step, block), mail.bytes);
        array_push(machine->arena, &machine->mails, mail);
    }
    machine->posted[d] = true;
}

static Mail *find_mail(Machine *machine, int sender, int receiver)
{
    for (int i = 0; i < machine->mails.count; i++) {
        Mail *mail = &machine->mails.at[i];
        if (mail->data && mail->sender == sender && mail->receiver == receiver)
            return mail;
    }
    return NULL;
}

/* Whether the device could go past an exchange: all its messages are there. */
static bool run_exchange(Machine *machine, int d, const ht_reshard_step *step)
{
    int device = machine->plan->device[d].device;
    if (!machine->posted[d])
        post(machine, d, step);
    for (int i = 0; i < step->receive_count; i++) {
        const Mail *mail = find_mail(machine, step->receive[i].peer, device);
        if (!mail || mail->dtype != step->dtype || mail->bytes != block_bytes(step, &step->receive[i]))
            return false;
    }
    for (int i = 0; i < step->receive_count; i++) {
        Mail *mail = find_mail(machine, step->receive[i].peer, device);
        memcpy(block_data(machine, d, step, &step->receive[i]), mail->data, mail->bytes);
        mail->data = NULL;
    }
    machine->posted[d] = false;
    return true;
}

/* What a member sends for the collective, whole, copied before anything is written. */
static char *sent_whole(const Machine *machine, int d, const ht_reshard_step *step)
{
    size_t bytes = 0;
    for (int i = 0; i < step->send_count; i++)
        bytes += block_bytes(step, &step->send[i]);
    char *data = arena_alloc(machine->arena, bytes), *at = data;
    for (int i = 0; i < step->send_count; at += block_bytes(step, &step->send[i++]))
        memcpy(at, block_data(machine, d, step, &step->send[i]), block_bytes(step, &step->send[i]));
    return data;
}

/* The bytes of the first `count` blocks that a member sends. */
static size_t bytes_before(const ht_reshard_step *step, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += block_bytes(step, &step->send[i]);
    return bytes;
}

/* Writes the reduction of what all members send, from `skip` bytes on. */
static void deliver_reduced(const ht_group *group, const ht_reshard_step *step, char *const *sent, size_t skip, char *to)
{
    size_t size = dtype_bytes(step->dtype);
    memcpy(to, sent[0] + skip, block_bytes(step, step->receive));
    for (int k = 1; k < group->count; k++)
        for (int64_t i = 0; i < step->receive->count; i++)
            combine(step->dtype, step->reduction, to + (size_t)i * size, sent[k] + skip + (size_t)i * size);
}

/* Writes what a member receives, given what all of them send. */
static void deliver(const Machine *machine, const ht_group *group, int member, int d, const ht_reshard_step *step, char *const *sent,
                    const ht_reshard_step *const *steps)
{
    for (int r = 0; r < step->receive_count; r++) {
        const ht_block *block = &step->receive[r];
        char *to = block_data(machine, d, step, block);
        if (step->verb == HT_ALL_GATHER)
            memcpy(to, sent[r], block_bytes(step, block));
        else if (step->verb == HT_BROADCAST)
            memcpy(to, sent[0], block_bytes(step, block));
        else if (step->verb == HT_ALL_TO_ALL)
            memcpy(to, sent[r] + bytes_before(steps[r], member), block_bytes(step, block));
        else
            deliver_reduced(group, step, sent, step->verb == HT_REDUCE_SCATTER ? bytes_before(step, member) : 0, to);
    }
}

/* Whether the blocks of an all-gather lie as they must: those of equal counts one after another. */
static bool gathers_in_order(const ht_reshard_step *step)
{
    bool even = true, follow = true;
    for (int i = 1; i < step->receive_count; i++) {
        even = even && step->receive[i].count == step->receive[0].count;
        follow = follow && step->receive[i].offset == step->receive[i - 1].offset + step->receive[i - 1].count;
    }
    return step->verb != HT_ALL_GATHER || !even || follow;
}

/* Runs a collective when all its members have come to it. */
static bool run_collective(Machine *machine, const ht_reshard_step *step)
{
    const ht_group *group = &machine->plan->group[step->group];
    const ht_reshard_step **steps = arena_array(machine->arena, const ht_reshard_step *, group->count);
    char **sent = arena_array(machine->arena, char *, group->count);
    for (int m = 0; m < group->count; m++) {
        steps[m] = step_of(machine, index_of(machine, group->device[m]));
        if (!steps[m] || steps[m]->verb != step->verb || steps[m]->group != step->group || steps[m]->dtype != step->dtype ||
            steps[m]->reduction != step->reduction || !gathers_in_order(steps[m]))
            return false;
    }
    for (int m = 0; m < group->count; m++)
        sent[m] = sent_whole(machine, index_of(machine, group->device[m]), steps[m]);
    for (int m = 0; m < group->count; m++)
        deliver(machine, group, m, index_of(machine, group->device[m]), steps[m], sent, steps);
    for (int m = 0; m < group->count; m++)
        machine->next[index_of(machine, group->device[m])]++;
    return true;
}

/* Whether a device could make its next step. */
static bool advance(Machine *machine, int d)
{
    const ht_reshard_step *step = step_of(machine, d);
    if (!step)
        return false;
    if (step->verb == HT_COPY || step->verb == HT_COMBINE || step->verb == HT_FILL)
        run_moves(machine, d, step);
    else if (step->verb != HT_EXCHANGE)
        return run_collective(machine, step);
    else if (!run_exchange(machine, d, step))
        return false;
    machine->next[d]++;
    return true;
}

/* Whether every device made all its steps and every message was received. */
static bool all_done(const Machine *machine)
{
    for (int d = 0; d < machine->plan->device_count; d++)
        if (step_of(machine, d))
            return false;
    for (int i = 0; i < machine->mails.count; i++)
        if (machine->mails.at[i].data)
            return false;
    return true;
}

bool simulate_all(Arena *arena, const ht_reshard *plan, void *const *const *from, void *const *const *to)
{
    int count = plan->device_count;
    Machine machine = {.arena = arena, .plan = plan, .buffers = {from, to}};
    machine.scratch = arena_array(arena, char *, count);
    machine.next = arena_array(arena, int, count);
    machine.posted = arena_array(arena, bool, count);
    for (int d = 0; d < count; d++)
        machine.scratch[d] = malloc((size_t)plan->device[d].scratch + 1);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < count; d++)
            while (advance(&machine, d))
                moved = true;
    }
    for (int d = 0; d < count; d++)
        free(machine.scratch[d]);
    return all_done(&machine);
}

bool simulate(Arena *arena, const ht_reshard *plan, float *const *from, float *const *to)
{
    void *const **buffers[2];
    for (int side = 0; side < 2; side++) {
        buffers[side] = arena_array(arena, void *const *, plan->device_count);
        for (int d = 0; d < plan->device_count; d++)
            buffers[side][d] = (void *const *)&(side ? to : from)[d];
    }
    return simulate_all(arena, plan, buffers[0], buffers[1]);
}
