#include "plan/spindle/schedule.h"

#include <math.h>
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
    int *placed;     // (operators), pieces
    int *layer;      // (operators), layers placed
    bool *done;      // (pieces)
    double *held_mb; // (gpus)
    bool *held;      // (gpus, weights, layers)
    double *start;   // (pieces)
    int *devices;    // (pieces, gpus)
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
    s->placed = arena_array(arena, int, q->operator_count);
    s->layer = arena_array(arena, int, q->operator_count);
    s->done = arena_array(arena, bool, pieces);
    s->held_mb = arena_array(arena, double, q->gpus);
    s->held = arena_array(arena, bool, s->tight ? q->gpus * q->weights_count * q->layers_most : 0);
    s->start = arena_array(arena, double, pieces);
    s->devices = arena_array(arena, int, pieces * q->gpus);
    return s;
}

static void scheduler_reset(Scheduler *s)
{
    const Spindle *q = s->q;
    for (int d = 0; d < q->gpus; d++)
        s->free[d] = (Free){0, d}, s->held_mb[d] = 0;
    memset(s->done, 0, sizeof *s->done * (size_t)(q->operator_count * PIECES));
    for (int o = 0; o < q->operator_count; o++)
        s->placed[o] = s->layer[o] = 0, s->end[o] = 0;
    if (s->tight)
        memset(s->held, 0, sizeof *s->held * (size_t)(q->gpus * q->weights_count * q->layers_most));
    s->overflow = 0;
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

/* A device is busy until `end`; its island stays in order of time. */
static void device_busy(Scheduler *s, int device, double end)
{
    int island = device / s->q->island, first = island * s->q->island, last = first + island_size(s, island) - 1, at = first;
    while (s->free[at].device != device)
        at++;
    for (; at < last && s->free[at + 1].from < end; at++)
        s->free[at] = s->free[at + 1];
    for (; at > first && s->free[at - 1].from > end; at--)
        s->free[at] = s->free[at - 1];
    s->free[at] = (Free){end, device};
}

/* Devices are busy until `end`: whole islands at once. */
static void devices_busy(Scheduler *s, const int *devices, int count, double end)
{
    if (count < s->q->island)
        for (int d = 0; d < count; d++)
            device_busy(s, devices[d], end);
    else
        for (int d = 0; d < count; d++)
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
    devices_busy(s, devices, allotment->devices, s->end[o]);
    for (int d = 0; s->tight && d < allotment->devices; d++)
        device_hold(s, devices[d], o, choice->layers);
    s->layer[o] += choice->layers;
}

/* Whether a piece can be placed: it is its operator's next, and what the operator is after has been placed. */
static bool piece_ready(const Scheduler *s, int piece)
{
    const Operator *operator= & s->q->operator[piece / PIECES];
    if (s->placed[piece / PIECES] != piece % PIECES)
        return false;
    for (int k = 0; k < operator->after_count; k++)
        if (s->placed[operator->after[k]] < PIECES)
            return false;
    return true;
}

int64_t schedule_work(const Scheduler *s)
{
    const Spindle *q = s->q;
    return (int64_t)q->operator_count * (8 + q->gpus / 8 + (s->tight ? q->gpus * (1 + q->layers_most / 32) : 0));
}

double schedule_make(Scheduler *s, const Choices *choices, double *objective, bool *fits)
{
    static const double MEAN_WEIGHT = 0.02;
    int pieces = s->q->operator_count * PIECES;
    double last = 0, sum = 0;
    scheduler_reset(s);
    for (int placed = 0, first = 0; placed < pieces; placed++) {
        int x = first;
        while (s->done[choices->order[x]] || !piece_ready(s, choices->order[x]))
            x++;
        int piece = choices->order[x];
        if (choices->piece[piece].layers)
            piece_place(s, choices, piece);
        s->placed[piece / PIECES]++;
        s->done[piece] = true;
        while (first < pieces && s->done[choices->order[first]])
            first++;
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
