/* Finds collectives that touch different memory, so that NCCL runs them as one group. */
#include "exchange/channel.h"

/* An access of a step to a range of memory. */
typedef struct Access {
    const char *begin, *end;
    bool writes;
} Access;

static int access_count(const ht_reshard_step *step) {
    return channel_communicates(step) ? step->send_count + step->receive_count
                                      : 2 * step->move_count;
}

static Access block_access(const ChannelRun *run, const ht_reshard_step *step, int number) {
    bool writes = number >= step->send_count;
    const ht_block *block =
        writes ? &step->receive[number - step->send_count] : &step->send[number];
    return (Access){channel_block(run, step, block, 0),
                    channel_block(run, step, block, block->count), writes};
}

/* Returns the memory from the first to the last element that a move reads or writes. */
static Access move_access(const ChannelRun *run, const ht_reshard_step *step, int number) {
    const ht_move *move = &step->move[number / 2];
    bool writes = number % 2;
    ht_dtype dtype = run->plan->tensor[move->tensor].dtype;
    ht_place place = writes ? move->to : move->from;
    int64_t first = writes ? move->to_offset : move->from_offset, last = first;
    for (int d = 0; d < move->rank; d++) {
        int64_t way = (writes ? move->dim[d].to : move->dim[d].from) * (move->dim[d].extent - 1);
        *(way < 0 ? &first : &last) += way;
    }
    if (!writes && step->verb == HT_FILL) return (Access){NULL, NULL, false};
    return (Access){channel_address(run, place, move->tensor, first, dtype),
                    channel_address(run, place, move->tensor, last + 1, dtype), writes};
}

static Access access_of(const ChannelRun *run, const ht_reshard_step *step, int number) {
    return channel_communicates(step) ? block_access(run, step, number)
                                      : move_access(run, step, number);
}

/* Returns whether two steps are independent: neither writes memory that the other accesses. */
static bool steps_apart(const ChannelRun *run, const ht_reshard_step *a, const ht_reshard_step *b) {
    for (int i = 0; i < access_count(a); i++)
        for (int k = 0; k < access_count(b); k++) {
            Access x = access_of(run, a, i), y = access_of(run, b, k);
            if ((x.writes || y.writes) && x.begin < y.end && y.begin < x.end) return false;
        }
    return true;
}

/* Returns whether a step is independent of all collectives from `first` to `last`. */
static bool apart_from_all(const ChannelRun *run, const ht_reshard_step *first,
                           const ht_reshard_step *last, const ht_reshard_step *step) {
    for (; first <= last; first++)
        if (channel_communicates(first) && !steps_apart(run, first, step)) return false;
    return true;
}

/* Returns whether two devices have the same verbs in order, and change groups at the same steps. */
static bool same_steps(const ht_reshard_device *a, const ht_reshard_device *b) {
    int group_of_a = -1, group_of_b = -1;
    for (int s = 0; s < a->step_count && s < b->step_count; s++) {
        const ht_reshard_step *x = &a->step[s], *y = &b->step[s];
        if (x->verb != y->verb ||
            (channel_communicates(x) && (x->group == group_of_a) != (y->group == group_of_b)))
            return false;
        group_of_a = channel_communicates(x) ? x->group : group_of_a;
        group_of_b = channel_communicates(y) ? y->group : group_of_b;
    }
    return a->step_count == b->step_count;
}

static bool all_same(const ht_reshard *plan) {
    for (int i = 1; i < plan->device_count; i++)
        if (!same_steps(&plan->device[0], &plan->device[i])) return false;
    return true;
}

const ht_reshard_step *steps_next_together(const ChannelRun *run, const ht_reshard_step *first,
                                           const ht_reshard_step *step) {
    const ht_reshard_step *end = run->part->step + run->part->step_count;
    for (const ht_reshard_step *next = step + 1; next < end && step->verb != HT_EXCHANGE; next++) {
        if (!apart_from_all(run, first, step, next)) return NULL;
        if (channel_communicates(next))
            return next->verb == step->verb && next->group == step->group && all_same(run->plan)
                       ? next
                       : NULL;
    }
    return NULL;
}
