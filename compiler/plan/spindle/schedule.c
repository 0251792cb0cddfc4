#include "plan/spindle/schedule.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A device and the time from which it is free. */
typedef struct Free {
    double from;
    int device;
} Free;

struct Scheduler {
    const Spindle *q;
    int islands;
    bool tight;      // not every device can hold all states
    Free *free;      // (gpus), by island, in it by time
    Free *candidate; // (gpus), scratch: those of free that have room for a piece
    int *candidates; // (islands), how many
    double *end;     // (operators), of their last piece placed
    int *layer;      // (operators), layers placed
    uint64_t *ready; // (pieces) as bits by their place in the order
    int *place;      // (pieces), in the order
    int *waits;      // (operators), operators that are still to be placed before
    int *first_next; // (operators + 1), in `next`
    int *next;       // operators that are after one
    double *held_mb; // (gpus)
    bool *held;      // (gpus, weights, layers)
    double *start;   // (pieces)
    int *devices;    // (pieces, gpus)
    double *tail;    // (operators), ms at least from their end to that of all
    double lost;     // ms of devices that have waited
    double overflow; // MB that fit nowhere
    double penalty;
};

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
        of_weights[o->weights] = fmax(of_weights[o->weights], o->layers * o->state_mb);
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
            tail[operator->after[k]] = fmax(tail[operator->after[k]], tail[o] + least);
    }
}

/* Lists by operator those that are after it. */
static void find_next(Arena *arena, Scheduler *s)
{
    const Spindle *q = s->q;
    int *first = s->first_next = arena_array(arena, int, q->operator_count + 1), count = 0;
    for (int o = 0; o < q->operator_count; o++)
        count += q->operator[o].after_count;
    s->next = arena_array(arena, int, count + 1);
    count = 0;
    for (int before = 0; before < q->operator_count; before++) {
        for (int o = before + 1; o < q->operator_count; o++)
            for (int k = 0; k < q->operator[o].after_count; k++)
                if (q->operator[o].after[k] == before)
                    s->next[count++] = o;
        first[before + 1] = count;
    }
}

Scheduler *scheduler_create(Arena *arena, const Spindle *q, double penalty)
{
    Scheduler *s = arena_new(arena, Scheduler);
    int pieces = q->operator_count * PIECES;
    *s = (Scheduler){
        .q = q, .islands = (q->gpus + q->island - 1) / q->island, .tight = states_mb(arena, q) > q->memory_mb, .penalty = penalty};
    s->free = arena_array(arena, Free, q->gpus);
    s->candidate = arena_array(arena, Free, q->gpus);
    s->candidates = arena_array(arena, int, s->islands);
    s->end = arena_array(arena, double, q->operator_count);
    s->layer = arena_array(arena, int, q->operator_count);
    s->ready = arena_array(arena, uint64_t, pieces / 64 + 1);
    s->place = arena_array(arena, int, pieces);
    s->waits = arena_array(arena, int, q->operator_count);
    find_next(arena, s);
    s->held_mb = arena_array(arena, double, q->gpus);
    s->held = arena_array(arena, bool, s->tight ? q->gpus * q->weights_count * q->layers_most : 0);
    s->start = arena_array(arena, double, pieces);
    s->devices = arena_array(arena, int, pieces * q->gpus);
    s->tail = arena_array(arena, double, q->operator_count);
    find_tails(q, s->tail);
    return s;
}

static void scheduler_reset(Scheduler *s)
{
    const Spindle *q = s->q;
    for (int d = 0; d < q->gpus; d++)
        s->free[d] = (Free){0, d}, s->held_mb[d] = 0;
    for (int o = 0; o < q->operator_count; o++)
        s->layer[o] = 0, s->end[o] = 0;
    if (s->tight)
        memset(s->held, 0, sizeof *s->held * (size_t)(q->gpus * q->weights_count * q->layers_most));
    s->overflow = s->lost = 0;
}

static bool *held_at(Scheduler *s, int device, int weights)
{
    return &s->held[(device * s->q->weights_count + weights) * s->q->layers_most];
}

/* MB that a device needs more to run the next `layers` layers of an operator. */
static double more_mb(Scheduler *s, int device, int o, int layers)
{
    const bool *held = held_at(s, device, s->q->operator[o].weights) + s->layer[o];
    int missing = 0;
    for (int l = 0; l < layers; l++)
        missing += !held[l];
    return missing * s->q->operator[o].state_mb;
}

/* Gathers the devices that have room for a piece, or all. */
static void candidates_gather(Scheduler *s, int o, int layers, bool all)
{
    for (int i = 0; i < s->islands; i++) {
        int from = i * s->q->island;
        s->candidates[i] = 0;
        for (int d = from; d < from + island_size(s, i); d++)
            if (all || s->held_mb[s->free[d].device] + more_mb(s, s->free[d].device, o, layers) <= s->q->memory_mb * (1 + 1e-9))
                s->candidate[from + s->candidates[i]++] = s->free[d];
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
        double time = fmax(ready, at[count - 1].from);
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
    *start = fmax(ready, candidate[sorted[count - 1] * s->q->island + s->q->island - 1].from);
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
    int island = device / s->q->island, first = island * s->q->island, last = first + island_size(s, island) - 1, at = first;
    while (s->free[at].device != device)
        at++;
    s->lost += start - s->free[at].from;
    for (; at < last && s->free[at + 1].from < end; at++)
        s->free[at] = s->free[at + 1];
    for (; at > first && s->free[at - 1].from > end; at--)
        s->free[at] = s->free[at - 1];
    s->free[at] = (Free){end, device};
}

/* Devices are busy from `start` to `end`: whole islands at once. */
static void devices_busy(Scheduler *s, const int *devices, int count, double start, double end)
{
    for (int d = 0; d < count && count < s->q->island; d++)
        device_busy(s, devices[d], start, end);
    for (int d = 0; d < count && count >= s->q->island; d++)
        s->lost += start - s->free[devices[d]].from;
    for (int d = 0; d < count && count >= s->q->island; d++)
        s->free[devices[d]] = (Free){end, devices[d]};
}

/* A device holds the next `layers` layers of an operator. */
static void device_hold(Scheduler *s, int device, int o, int layers)
{
    double more = more_mb(s, device, o, layers);
    s->held_mb[device] += more;
    s->overflow += fmax(0, fmin(more, s->held_mb[device] - s->q->memory_mb * (1 + 1e-9)));
    memset(held_at(s, device, s->q->operator[o].weights) + s->layer[o], 1, sizeof(bool) * (size_t)layers);
}

/* Places the next piece of an operator. */
static void piece_place(Scheduler *s, const Choices *choices, int piece)
{
    int o = piece / PIECES, *devices = &s->devices[piece * s->q->gpus];
    const Operator *operator= & s->q->operator[o];
    const Piece *choice = &choices->piece[piece];
    const Allotment *allotment = &operator->allotment[choice->allotment];
    double ready = s->end[o];
    for (int k = 0; s->layer[o] == 0 && k < operator->after_count; k++)
        ready = fmax(ready, s->end[operator->after[k]]);
    double start = INFINITY;
    if (s->tight) {
        candidates_gather(s, o, choice->layers, false);
        start = devices_choose(s, s->candidate, s->candidates, allotment->devices, ready, devices);
    }
    if (isinf(start)) {
        for (int i = 0; i < s->islands; i++)
            s->candidates[i] = island_size(s, i);
        start = devices_choose(s, s->free, s->candidates, allotment->devices, ready, devices);
    }
    s->start[piece] = start;
    s->end[o] = start + choice->layers * allotment->ms;
    devices_busy(s, devices, allotment->devices, start, s->end[o]);
    for (int d = 0; s->tight && d < allotment->devices; d++)
        device_hold(s, devices[d], o, choice->layers);
    s->layer[o] += choice->layers;
}

/* ---- which piece is next ---- */

enum { WORD = 64 };

static void mark_ready(Scheduler *s, int piece) { s->ready[s->place[piece] / WORD] |= (uint64_t)1 << s->place[piece] % WORD; }

/* The first pieces of operators that are after none are ready. */
static void ready_begin(Scheduler *s, const Choices *choices)
{
    int pieces = s->q->operator_count * PIECES;
    memset(s->ready, 0, sizeof *s->ready * (size_t)(pieces / WORD + 1));
    for (int x = 0; x < pieces; x++)
        s->place[choices->order[x]] = x;
    for (int o = 0; o < s->q->operator_count; o++) {
        s->waits[o] = s->q->operator[o].after_count;
        if (!s->waits[o])
            mark_ready(s, o * PIECES);
    }
}

/* Takes the first piece in the order that is ready. */
static int ready_take(Scheduler *s, const Choices *choices)
{
    int word = 0;
    while (!s->ready[word])
        word++;
    int bit = __builtin_ctzll(s->ready[word]);
    s->ready[word] &= s->ready[word] - 1;
    return choices->order[word * WORD + bit];
}

/* A piece has been placed: its operator's next is ready, or those after the operator that wait for none more. */
static void ready_follow(Scheduler *s, int piece)
{
    int o = piece / PIECES;
    if (piece % PIECES < PIECES - 1) {
        mark_ready(s, piece + 1);
        return;
    }
    for (int k = s->first_next[o]; k < s->first_next[o + 1]; k++)
        if (--s->waits[s->next[k]] == 0)
            mark_ready(s, s->next[k] * PIECES);
}

int64_t schedule_work(const Scheduler *s)
{
    const Spindle *q = s->q;
    return (int64_t)q->operator_count * (8 + q->gpus / 8 + (s->tight ? q->gpus * (1 + q->layers_most / 32) : 0));
}

/* The mean time of the devices that all pieces take together. */
static double mean_busy(const Spindle *q, const Choices *choices)
{
    double sum = 0;
    for (int i = 0; i < q->operator_count * PIECES; i++) {
        const Allotment *allotment = &q->operator[i / PIECES].allotment[choices->piece[i].allotment];
        sum += choices->piece[i].layers * allotment->ms * allotment->devices;
    }
    return sum / q->gpus;
}

double schedule_make(Scheduler *s, const Choices *choices, double most, double *objective, bool *fits)
{
    static const double MEAN_WEIGHT = 0.02;
    int pieces = s->q->operator_count * PIECES;
    double last = 0, sum = 0, busy = mean_busy(s->q, choices);
    *objective = INFINITY;
    *fits = false;
    scheduler_reset(s);
    ready_begin(s, choices);
    for (int placed = 0; placed < pieces; placed++) {
        int piece = ready_take(s, choices);
        ready_follow(s, piece);
        if (!choices->piece[piece].layers)
            continue;
        piece_place(s, choices, piece);
        double mean = busy + s->lost / s->q->gpus;
        if (fmax(mean, s->end[piece / PIECES] + s->tail[piece / PIECES]) + MEAN_WEIGHT * mean > most * (1 + 1e-9))
            return INFINITY;
    }
    for (int d = 0; d < s->q->gpus; d++)
        last = fmax(last, s->free[d].from), sum += s->free[d].from;
    *objective = last + MEAN_WEIGHT * sum / s->q->gpus + s->penalty * last * s->overflow / s->q->memory_mb;
    *fits = s->overflow == 0;
    return last;
}

SpindlePlan *schedule_plan(Arena *arena, const Scheduler *s, const Choices *choices)
{
    int pieces = s->q->operator_count * PIECES;
    Slice *slices = arena_array(arena, Slice, pieces);
    SpindlePlan *plan = arena_new(arena, SpindlePlan);
    plan->slices = slices;
    for (int i = 0; i < pieces; i++) {
        const Piece *piece = &choices->piece[i];
        const Allotment *allotment = &s->q->operator[i / PIECES].allotment[piece->allotment];
        if (!piece->layers)
            continue;
        slices[plan->slice_count++] = (Slice){i / PIECES, piece->layers, allotment->devices, s->start[i],
                                              arena_copy(arena, &s->devices[i * s->q->gpus], sizeof(int) * (size_t)allotment->devices)};
        plan->milliseconds = fmax(plan->milliseconds, s->start[i] + piece->layers * allotment->ms);
    }
    return plan;
}
