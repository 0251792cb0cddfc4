#include "simulate.h"

#include "support/array.h"

#include <math.h>
#include <string.h>

/* A message on its way. */
typedef struct Mail {
    int sender, receiver;
    int64_t count;
    float *data; // NULL once it was received
} Mail;

typedef struct Machine {
    Arena *arena;
    const ht_reshard *plan;
    float *const *buffers[2]; // from, to
    float **scratch;
    int *next;                // by device: its next step
    bool *posted;             // by device: the sends of its next step are on their way
    Array(Mail) mails;
} Machine;

static float *place(const Machine *machine, int d, ht_place where, int64_t offset)
{
    return (where == HT_SCRATCH ? machine->scratch[d] : machine->buffers[where][d]) + offset;
}

static float *block_data(const Machine *machine, int d, const ht_block *block) { return place(machine, d, block->place, block->offset); }

static float combined(const Machine *machine, float a, float b)
{
    return machine->plan->tensor->reduction == HT_MAX ? (a > b ? a : b) : a + b;
}

static void run_dimension(const Machine *machine, ht_verb verb, const ht_stride *dim, int rank, float *to, const float *from)
{
    if (rank) {
        for (int64_t i = 0; i < dim->extent; i++)
            run_dimension(machine, verb, dim + 1, rank - 1, to + i * dim->to, from + i * dim->from);
        return;
    }
    if (verb == HT_FILL)
        *to = machine->plan->tensor->reduction == HT_MAX ? -INFINITY : 0;
    else
        *to = verb == HT_COPY ? *from : combined(machine, *to, *from);
}

static void run_moves(const Machine *machine, int d, const ht_reshard_step *step)
{
    for (int i = 0; i < step->move_count; i++) {
        const ht_move *move = &step->move[i];
        run_dimension(machine, step->verb, move->dim, move->rank, place(machine, d, move->to, move->to_offset), place(machine, d, move->from, move->from_offset));
    }
}

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
        Mail mail = {machine->plan->device[d].device, block->peer, block->count, NULL};
        mail.data = arena_copy(machine->arena, block_data(machine, d, block), sizeof(float) * (size_t)block->count);
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
        if (!mail || mail->count != step->receive[i].count)
            return false;
    }
    for (int i = 0; i < step->receive_count; i++) {
        Mail *mail = find_mail(machine, step->receive[i].peer, device);
        memcpy(block_data(machine, d, &step->receive[i]), mail->data, sizeof(float) * (size_t)mail->count);
        mail->data = NULL;
    }
    machine->posted[d] = false;
    return true;
}

/* What member `m` sends for the collective, whole, copied before anything is written. */
static float *sent_whole(const Machine *machine, int d, const ht_reshard_step *step, int64_t *count)
{
    *count = 0;
    for (int i = 0; i < step->send_count; i++)
        *count += step->send[i].count;
    float *data = arena_array(machine->arena, float, *count);
    int64_t at = 0;
    for (int i = 0; i < step->send_count; i++) {
        memcpy(data + at, block_data(machine, d, &step->send[i]), sizeof(float) * (size_t)step->send[i].count);
        at += step->send[i].count;
    }
    return data;
}

/* Writes what a member receives, given what all of them send. */
static void deliver(const Machine *machine, const ht_group *group, int member, int d, const ht_reshard_step *step, float *const *sent, const ht_reshard_step *const *steps)
{
    int64_t skip = 0;
    for (int i = 0; i < member && step->verb == HT_REDUCE_SCATTER; i++)
        skip += step->send[i].count;
    for (int r = 0; r < step->receive_count; r++) {
        const ht_block *block = &step->receive[r];
        float *to = block_data(machine, d, block);
        for (int64_t i = 0; i < block->count; i++) {
            if (step->verb == HT_ALL_GATHER)
                to[i] = sent[r][i];
            else if (step->verb == HT_BROADCAST)
                to[i] = sent[0][i];
            else if (step->verb == HT_ALL_TO_ALL) {
                int64_t before = 0;
                for (int k = 0; k < member; k++)
                    before += steps[r]->send[k].count;
                to[i] = sent[r][before + i];
            } else {
                to[i] = sent[0][skip + i];
                for (int k = 1; k < group->count; k++)
                    to[i] = combined(machine, to[i], sent[k][skip + i]);
            }
        }
    }
}

/* Runs a collective when all its members have come to it. */
static bool run_collective(Machine *machine, const ht_reshard_step *step)
{
    const ht_group *group = &machine->plan->group[step->group];
    const ht_reshard_step **steps = arena_array(machine->arena, const ht_reshard_step *, group->count);
    float **sent = arena_array(machine->arena, float *, group->count);
    for (int m = 0; m < group->count; m++) {
        steps[m] = step_of(machine, index_of(machine, group->device[m]));
        if (!steps[m] || steps[m]->verb != step->verb || steps[m]->group != step->group)
            return false;
    }
    int64_t count;
    for (int m = 0; m < group->count; m++)
        sent[m] = sent_whole(machine, index_of(machine, group->device[m]), steps[m], &count);
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

bool simulate(Arena *arena, const ht_reshard *plan, float *const *from, float *const *to)
{
    int count = plan->device_count;
    Machine machine = {.arena = arena, .plan = plan, .buffers = {from, to}};
    machine.scratch = arena_array(arena, float *, count);
    machine.next = arena_array(arena, int, count);
    machine.posted = arena_array(arena, bool, count);
    for (int d = 0; d < count; d++)
        machine.scratch[d] = arena_alloc(arena, (size_t)plan->device[d].scratch);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < count; d++)
            while (advance(&machine, d))
                moved = true;
    }
    for (int d = 0; d < count; d++)
        if (step_of(&machine, d))
            return false;
    for (int i = 0; i < machine.mails.count; i++)
        if (machine.mails.at[i].data)
            return false;
    return true;
}
