#include "planner/kinds/spindle/schedule.h"

#include <math.h>
#include <string.h>

/* A device and the time from which it is free. */
typedef struct Free {
    double from;
    int device;
} Free;

/* The devices' times before some place of an order. */
typedef struct Checkpoint {
    Free *free;  // (gpus)
    double lost; // ms of devices that have waited
} Checkpoint;

struct Scheduler {
    const Spindle *q;
    int islands;
    bool tight;             // not every device can hold all states
    int stride;             // places between checkpoints
    Checkpoint *kept;       // (pieces / stride + 1), of the schedule kept
    Checkpoint *made;       // (pieces / stride + 1), of the last one made
    int first;              // checkpoint from which the last one was made
    Checkpoint now;         // while a schedule is made; its devices by island, in it by time
    Free *candidate;        // (gpus), scratch: those of free that have room for a piece
    int *candidates, *all;  // (islands), how many; how many devices
    int *devices;           // (gpus), of the piece placed
    double *kept_end, *end; // (pieces)
    double *held_mb;        // (gpus)
    bool *held;             // (gpus, weights, layers)
    double *tail;           // (operators), ms at least from their end to that of all
    double overflow;        // MB that fit nowhere
    double penalty;
};

/* The larger of two numbers, where fmax would be a call. */
static inline double larger(double a, double b) { return a > b ? a : b; }

static int island_size(const Scheduler *s, int island)
{
    int from = island * s->q->island, rest = s->q->gpus - from;
    return rest < s->q->island ? rest : s->q->island;
}

/* MB of the distinct states of all operators. */
static double states_mb(Arena *arena, const Spindle *q)
{
    double sum = 0, *of_weights = arena_array(arena, double, q->weights_count);
    for (const Operator *o = q->operator; o < q->operator+ q->operator_count; o++)
        of_weights[o->weights] = larger(of_weights[o->weights], o->layers * o->state_mb);
    for (int w = 0; w < q->weights_count; w++)
        sum += of_weights[w];
    return sum;
}

/* What comes behind an operator takes so long at least. */
static void find_tails(const Spindle *q, double *tail)
{
    for (int o = q->operator_count - 1; o >= 0; o--) {
        const Operator *operator= & q->operator[o];
        double least = INFINITY;
        for (int k = 0; k < operator->allotment_count; k++)
            least = fmin(least, operator->allotment[k].ms * operator->layers);
        for (int k = 0; k < operator->after_count; k++)
            tail[operator->after[k]] = larger(tail[operator->after[k]], tail[o] + least);
    }
}

/* Checkpoints of all places, `stride` apart. */
static Checkpoint *checkpoints_create(Arena *arena, const Spindle *q, int stride)
{
    int count = q->operator_count * PIECES / stride + 1;
    Checkpoint *at = arena_array(arena, Checkpoint, count);
    for (int i = 0; i < count; i++)
        at[i].free = arena_array(arena, Free, q->gpus);
    return at;
}

/* Places between checkpoints: as many checkpoints as a memory of moderate size holds. The states that devices hold are in none, so that
 * schedules are made from the first place on where they matter. */
static int find_stride(const Spindle *q, bool tight)
{
    const double most = 0x1p21; // devices of all checkpoints
    double all = (double)q->operator_count * PIECES * q->gpus;
    return tight ? q->operator_count * PIECES + 1 : 1 + (int)(all / most);
}

Scheduler *scheduler_create(Arena *arena, const Spindle *q, double penalty)
{
    Scheduler *s = arena_new(arena, Scheduler);
    int pieces = q->operator_count * PIECES;
    *s = (Scheduler){
        .q = q, .islands = (q->gpus + q->island - 1) / q->island, .tight = states_mb(arena, q) > q->memory_mb, .penalty = penalty};
    s->stride = find_stride(q, s->tight);
    s->kept = checkpoints_create(arena, q, s->stride);
    s->made = checkpoints_create(arena, q, s->stride);
    s->now.free = arena_array(arena, Free, q->gpus);
    for (int d = 0; d < q->gpus; d++)
        s->kept->free[d] = (Free){0, d};
    s->candidate = arena_array(arena, Free, q->gpus);
    s->candidates = arena_array(arena, int, s->islands);
    s->all = arena_array(arena, int, s->islands);
    for (int i = 0; i < s->islands; i++)
        s->all[i] = island_size(s, i);
    s->devices = arena_array(arena, int, q->gpus);
    s->kept_end = arena_array(arena, double, pieces);
    s->end = arena_array(arena, double, pieces);
    s->held_mb = arena_array(arena, double, q->gpus);
    s->held = arena_array(arena, bool, s->tight ? q->gpus * q->weights_count * q->layers_most : 0);
    s->tail = arena_array(arena, double, q->operator_count);
    find_tails(q, s->tail);
    return s;
}

/* Takes up the schedule kept at a checkpoint. */
static void schedule_begin(Scheduler *s, int checkpoint)
{
    const Spindle *q = s->q;
    s->first = checkpoint;
    s->now.lost = s->kept[checkpoint].lost;
    memcpy(s->now.free, s->kept[checkpoint].free, sizeof *s->now.free * (size_t)q->gpus);
    memcpy(s->end, s->kept_end, sizeof *s->end * (size_t)(q->operator_count * PIECES));
    s->overflow = 0;
    if (s->tight) {
        memset(s->held_mb, 0, sizeof *s->held_mb * (size_t)q->gpus);
        memset(s->held, 0, sizeof *s->held * (size_t)(q->gpus * q->weights_count * q->layers_most));
    }
}

static bool *held_at(Scheduler *s, int device, int weights)
{
    return &s->held[(device * s->q->weights_count + weights) * s->q->layers_most];
}

/* MB that a device needs more to run `layers` layers of an operator from `first` on. */
static double more_mb(Scheduler *s, int device, int o, int first, int layers)
{
    const bool *held = held_at(s, device, s->q->operator[o].weights) + first;
    int missing = 0;
    for (int l = 0; l < layers; l++)
        missing += !held[l];
    return missing * s->q->operator[o].state_mb;
}

/* Gathers the devices that have room for layers. */
static void candidates_gather(Scheduler *s, int o, int first, int layers)
{
    for (int i = 0; i < s->islands; i++) {
        int from = i * s->q->island;
        s->candidates[i] = 0;
        for (int d = from; d < from + island_size(s, i); d++)
            if (s->held_mb[s->now.free[d].device] + more_mb(s, s->now.free[d].device, o, first, layers) <= s->q->memory_mb * (1 + 1e-9))
                s->candidate[from + s->candidates[i]++] = s->now.free[d];
    }
}

/* The first of `count` candidates of one island that run from the earliest time, not before `ready`; -1 when no island has as many.
 * Between equal times, the island whose devices wait least. */
static int one_island(const Scheduler *s, const Free *candidate, const int *candidates, int count, double ready, double *start)
{
    int best = -1;
    double best_wait = INFINITY;
    for (int i = 0; i < s->islands; i++) {
        const Free *at = candidate + i * s->q->island;
        if (candidates[i] < count)
            continue;
        double time = larger(ready, at[count - 1].from);
        if (time > *start)
            continue;
        int last = count - 1;
        while (last + 1 < candidates[i] && at[last + 1].from <= time)
            last++;
        double wait = time - at[last - count + 1].from;
        if (time < *start || wait < best_wait)
            best = i * s->q->island + last - count + 1, best_wait = wait, *start = time;
    }
    return best;
}

/* Chooses `count` whole islands that are free first, not before `ready`, those that wait least; false when there are not as many. */
static bool whole_islands(const Scheduler *s, const Free *candidate, const int *candidates, int count, double ready, int *chosen,
                          double *start)
{
    int found = 0, sorted[s->islands];
    for (int i = 0; i < s->islands; i++) {
        int at = found;
        if (candidates[i] < s->q->island)
            continue;
        for (; at > 0 &&
               candidate[sorted[at - 1] * s->q->island + s->q->island - 1].from > candidate[i * s->q->island + s->q->island - 1].from;
             at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = i;
        found++;
    }
    if (found < count)
        return false;
    *start = larger(ready, candidate[sorted[count - 1] * s->q->island + s->q->island - 1].from);
    int last = count - 1;
    while (last + 1 < found && candidate[sorted[last + 1] * s->q->island + s->q->island - 1].from <= *start)
        last++;
    for (int k = 0; k < count; k++)
        chosen[k] = sorted[last - k];
    return true;
}

/* The devices of a piece into devices[count]; its start, INFINITY when there are not as many. */
static double devices_choose(const Scheduler *s, const Free *candidate, const int *candidates, int count, double ready, int *devices)
{
    double start = INFINITY;
    int island = s->q->island, chosen[s->islands];
    if (count < island) {
        int first = one_island(s, candidate, candidates, count, ready, &start);
        for (int k = 0; first >= 0 && k < count; k++)
            devices[k] = candidate[first + k].device;
        return start;
    }
    if (whole_islands(s, candidate, candidates, count / island, ready, chosen, &start))
        for (int k = 0; k < count; k++)
            devices[k] = chosen[k / island] * island + k % island;
    return start;
}

/* A device is busy from `start` to `end`; its island stays in order of time. */
static void device_busy(Scheduler *s, int device, double start, double end)
{
    Free *free = s->now.free;
    int island = device / s->q->island, first = island * s->q->island, last = first + island_size(s, island) - 1, at = first;
    while (free[at].device != device)
        at++;
    s->now.lost += start - free[at].from;
    for (; at < last && free[at + 1].from < end; at++)
        free[at] = free[at + 1];
    free[at] = (Free){end, device};
}

/* Devices are busy from `start` to `end`: whole islands at once. */
static void devices_busy(Scheduler *s, int count, double start, double end)
{
    const int *devices = s->devices;
    for (int d = 0; d < count && count < s->q->island; d++)
        device_busy(s, devices[d], start, end);
    for (int d = 0; d < count && count >= s->q->island; d++)
        s->now.lost += start - s->now.free[devices[d]].from;
    for (int d = 0; d < count && count >= s->q->island; d++)
        s->now.free[devices[d]] = (Free){end, devices[d]};
}

/* A device holds `layers` layers of an operator from `first` on. */
static void device_hold(Scheduler *s, int device, int o, int first, int layers)
{
    double more = more_mb(s, device, o, first, layers);
    s->held_mb[device] += more;
    s->overflow += larger(0, fmin(more, s->held_mb[device] - s->q->memory_mb * (1 + 1e-9)));
    memset(held_at(s, device, s->q->operator[o].weights) + first, 1, sizeof(bool) * (size_t)layers);
}

/* When the pieces of an operator that are placed have ended. */
static double boxes_end(const Scheduler *s, const Choices *choices, int o)
{
    double end = 0;
    for (int piece = o * PIECES; piece < (o + 1) * PIECES; piece++)
        if (choices->piece[piece].layers)
            end = larger(end, s->end[piece]);
    return end;
}

/* What stands before a piece, and behind it, in its operator. */
typedef struct Around {
    double ready; // what is before has ended
    int layers;   // before
    double rest;  // ms of the pieces behind
} Around;

static Around find_around(const Scheduler *s, const Choices *choices, int piece)
{
    int o = piece / PIECES;
    const Operator *operator= & s->q->operator[o];
    Around around = {0};
    for (int other = o * PIECES; other < (o + 1) * PIECES; other++) {
        const StackedPiece *p = &choices->piece[other];
        if (other == piece || !p->layers)
            continue;
        if (choices->place[other] < choices->place[piece]) {
            around.layers += p->layers;
            around.ready = larger(around.ready, s->end[other]);
        } else {
            around.rest += p->layers * operator->allotment[p->allotment].ms;
        }
    }
    for (int k = 0; !around.layers && k < operator->after_count; k++)
        around.ready = larger(around.ready, boxes_end(s, choices, operator->after[k]));
    return around;
}

/* Places a piece on devices, into s->devices; returns its start. */
static double piece_place(Scheduler *s, const Choices *choices, int piece, const Around *around)
{
    int o = piece / PIECES;
    const StackedPiece *choice = &choices->piece[piece];
    const Allotment *allotment = &s->q->operator[o].allotment[choice->allotment];
    double start = INFINITY;
    if (s->tight) {
        candidates_gather(s, o, around->layers, choice->layers);
        start = devices_choose(s, s->candidate, s->candidates, allotment->devices, around->ready, s->devices);
    }
    if (isinf(start))
        start = devices_choose(s, s->now.free, s->all, allotment->devices, around->ready, s->devices);
    s->end[piece] = start + choice->layers * allotment->ms;
    devices_busy(s, allotment->devices, start, s->end[piece]);
    for (int d = 0; s->tight && d < allotment->devices; d++)
        device_hold(s, s->devices[d], o, around->layers, choice->layers);
    return start;
}

int64_t schedule_work(const Scheduler *s)
{
    const Spindle *q = s->q;
    return (int64_t)q->operator_count * (8 + q->gpus / 2 + (s->tight ? q->gpus * (2 + q->layers_most / 16) : 0)) + 200;
}

/* The mean time of the devices that all pieces take together. */
static double mean_busy(const Spindle *q, const Choices *choices)
{
    double sum = 0;
    for (int place = 0; place < choices->count; place++) {
        int piece = choices->order[place];
        const Allotment *allotment = &q->operator[piece / PIECES].allotment[choices->piece[piece].allotment];
        sum += choices->piece[piece].layers * allotment->ms * allotment->devices;
    }
    return sum / q->gpus;
}

/* The devices' times before a place, if it has a checkpoint. */
static void checkpoint_make(Scheduler *s, int place)
{
    if (place % s->stride || place == s->first * s->stride)
        return;
    Checkpoint *at = &s->made[place / s->stride];
    at->lost = s->now.lost;
    memcpy(at->free, s->now.free, sizeof *at->free * (size_t)s->q->gpus);
}

double schedule_make(Scheduler *s, const Choices *choices, int from, double most, double *objective, bool *fits)
{
    static const double MEAN_WEIGHT = 0.25;
    double last = 0, sum = 0, busy = mean_busy(s->q, choices), gpus = s->q->gpus;
    *objective = INFINITY;
    *fits = false;
    schedule_begin(s, from / s->stride);
    for (int place = s->first * s->stride; place < choices->count; place++) {
        int piece = choices->order[place];
        Around around = find_around(s, choices, piece);
        checkpoint_make(s, place);
        piece_place(s, choices, piece, &around);
        double mean = busy + s->now.lost / gpus, end = s->end[piece] + around.rest + s->tail[piece / PIECES];
        if (larger(mean, end) + MEAN_WEIGHT * mean > most * (1 + 1e-9))
            return INFINITY;
    }
    checkpoint_make(s, choices->count);
    for (int d = 0; d < s->q->gpus; d++)
        last = larger(last, s->now.free[d].from), sum += s->now.free[d].from;
    *objective = last + MEAN_WEIGHT * sum / gpus + s->penalty * last * s->overflow / s->q->memory_mb;
    *fits = s->overflow == 0;
    return last;
}

void schedule_keep(Scheduler *s, const Choices *choices)
{
    double *end = s->kept_end;
    s->kept_end = s->end, s->end = end;
    for (int i = s->first + 1; i * s->stride <= choices->count; i++) {
        Checkpoint old = s->kept[i];
        s->kept[i] = s->made[i], s->made[i] = old;
    }
}

SpindlePlan *schedule_plan(Arena *arena, Scheduler *s, const Choices *choices)
{
    Slice *slices = arena_array(arena, Slice, choices->count);
    SpindlePlan *plan = arena_new(arena, SpindlePlan);
    plan->slices = slices;
    schedule_begin(s, 0);
    for (int place = 0; place < choices->count; place++) {
        int piece = choices->order[place], o = piece / PIECES, devices;
        Around around = find_around(s, choices, piece);
        double start = piece_place(s, choices, piece, &around);
        devices = s->q->operator[o].allotment[choices->piece[piece].allotment].devices;
        slices[plan->slice_count++] =
            (Slice){o, choices->piece[piece].layers, devices, start, arena_copy(arena, s->devices, sizeof(int) * (size_t)devices)};
        plan->milliseconds = larger(plan->milliseconds, s->end[piece]);
    }
    return plan;
}
