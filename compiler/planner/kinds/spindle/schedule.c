/* Gives pieces devices and start times, in a given order. search.c chooses the order, the layers of
 * pieces and the numbers of their devices. A place is an index in the order. */
#include "planner/kinds/spindle/schedule.h"

#include <math.h>
#include <string.h>

/* Devices by island. The devices of an island are sorted by the time from which they are free. */
typedef struct Pool {
    double *from; // (gpus): ms from which a device is free
    int *device;  // (gpus): number of the device that `from` has at the same index
    int *count;   // (islands): an island's entries, from index island * Spindle.island on
} Pool;

/* The devices' times before a place of an order. */
typedef struct Checkpoint {
    double *from; // (gpus): by island, ascending within an island
    double lost;  // ms that devices have waited, summed over devices
    double busy;  // ms that devices have worked on the pieces before, summed over devices
} Checkpoint;

/* The data of a schedule from which later schedules are made. */
typedef struct Made {
    Checkpoint *at; // (pieces / stride + 1): entry i is that before place i * stride
    double *end;    // (pieces): ms at which the piece ends
    double objective;
} Made;

/* The states that devices hold. */
typedef struct Held {
    double *mb;      // (gpus): MB of a device's states
    bool *layers;    // (gpus, weights, layers): whether the device holds the layer's states
    double overflow; // MB of states above the devices' memory, summed over devices
} Held;

/* The devices found for a piece. */
typedef struct Chosen {
    int island;   // the island, for a piece on less than an island
    int first;    // index in the pool of this piece's first device
    int *islands; // (islands): the islands, for a piece on whole islands
    int *devices; // (gpus): the devices' numbers, if Scheduler.named
} Chosen;

struct Scheduler {
    const Spindle *q;
    int islands;
    bool tight;        // not every device can hold all states
    bool named;        // it matters which device has which time
    int stride;        // places between checkpoints
    Made kept, made;   // the schedule kept, and the last one made
    int first;         // the checkpoint from which the last schedule was made
    int last;          // the checkpoint from which the last schedule equals the one kept
    Pool free;         // while a schedule is made: all devices
    double lost, busy; // milliseconds as in Checkpoint
    Pool roomy;        // scratch: the devices of `free` with memory for a piece
    Chosen chosen;
    Held held;
    double *tail;           // (operators): least ms from the operator's end to the plan's end
    int64_t work, of_piece; // work of all schedules so far; work of scheduling one piece
    Weights weights;
};

/* Return the larger and the smaller of two numbers; fmax would be a call. */
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

static int island_size(const Scheduler *s, int island) {
    int from = island * s->q->island, rest = s->q->gpus - from;
    return rest < s->q->island ? rest : s->q->island;
}

/* Returns the MB of the distinct states of all operators. */
static double states_mb(Arena *arena, const Spindle *q) {
    double sum = 0, *of_weights = arena_array(arena, double, q->weights_count);
    for (const Operator *o = q->operator; o < q->operator+ q->operator_count; o++)
        of_weights[o->weights] = larger(of_weights[o->weights], o->layers * o->state_mb);
    for (int w = 0; w < q->weights_count; w++) sum += of_weights[w];
    return sum;
}

/* Sets tail[o] to a lower bound of the ms from the end of operator o to the end of the plan. */
static void find_tails(const Spindle *q, double *tail) {
    for (int o = q->operator_count - 1; o >= 0; o--) {
        const Operator *operator= & q->operator[o];
        double least = INFINITY;
        for (int k = 0; k < operator->allotment_count; k++)
            least = fmin(least, operator->allotment[k].ms * operator->layers);
        for (int k = 0; k < operator->after_count; k++)
            tail[operator->after[k]] = larger(tail[operator->after[k]], tail[o] + least);
    }
}

/* Returns checkpoints for all places that are `stride` apart. */
static Checkpoint *checkpoints_create(Arena *arena, const Spindle *q, int stride) {
    int count = q->operator_count * PIECES / stride + 1;
    Checkpoint *at = arena_array(arena, Checkpoint, count);
    for (int i = 0; i < count; i++) at[i].from = arena_array(arena, double, q->gpus);
    return at;
}

static Pool pool_create(Arena *arena, const Spindle *q, int islands) {
    return (Pool){arena_array(arena, double, q->gpus), arena_array(arena, int, q->gpus),
                  arena_array(arena, int, islands)};
}

/* Returns the number of places between checkpoints, so that the checkpoints fit a memory of
 * moderate size. Checkpoints lack the states that devices hold; where these matter, every schedule
 * is made from the first place on. */
static int find_stride(const Spindle *q, bool tight) {
    const double most = 0x1p21; // entries (devices) of all checkpoints
    double all = (double)q->operator_count * PIECES * q->gpus;
    return tight ? q->operator_count * PIECES + 1 : 1 + (int)(all / most);
}

/* Returns the units of work to schedule a piece, for the limit on the search (budget.h). */
static int64_t piece_work(const Spindle *q, bool tight) {
    int states = tight ? q->gpus * (2 + q->layers_most / 16) : 0;
    return 10 + q->gpus / 2 + 2 * states;
}

Scheduler *scheduler_create(Arena *arena, const Spindle *q, Weights weights) {
    Scheduler *s = arena_new(arena, Scheduler);
    int pieces = q->operator_count * PIECES;
    *s = (Scheduler){.q = q,
                     .islands = (q->gpus + q->island - 1) / q->island,
                     .tight = states_mb(arena, q) > q->memory_mb,
                     .weights = weights};
    s->named = s->tight;
    s->of_piece = piece_work(q, s->tight);
    s->stride = find_stride(q, s->tight);
    s->kept.at = checkpoints_create(arena, q, s->stride);
    s->made.at = checkpoints_create(arena, q, s->stride);
    s->free = pool_create(arena, q, s->islands);
    s->roomy = pool_create(arena, q, s->islands);
    for (int i = 0; i < s->islands; i++) s->free.count[i] = island_size(s, i);
    s->chosen.islands = arena_array(arena, int, s->islands);
    s->chosen.devices = arena_array(arena, int, q->gpus);
    s->kept.end = arena_array(arena, double, pieces);
    s->made.end = arena_array(arena, double, pieces);
    s->held.mb = arena_array(arena, double, q->gpus);
    s->held.layers =
        arena_array(arena, bool, s->tight ? q->gpus * q->weights_count * q->layers_most : 0);
    s->tail = arena_array(arena, double, q->operator_count);
    find_tails(q, s->tail);
    return s;
}

/* Starts from a checkpoint of the schedule kept (the first, with all devices free, if s->named). */
static void schedule_begin(Scheduler *s, int checkpoint) {
    const Spindle *q = s->q;
    const Checkpoint *at = &s->kept.at[checkpoint];
    s->first = checkpoint;
    s->lost = at->lost;
    s->busy = at->busy;
    memcpy(s->free.from, at->from, sizeof *at->from * (size_t)q->gpus);
    memcpy(s->made.end, s->kept.end, sizeof *s->made.end * (size_t)(q->operator_count * PIECES));
    s->held.overflow = 0;
    for (int d = 0; s->named && d < q->gpus; d++) s->free.device[d] = d;
    if (s->tight) {
        memset(s->held.mb, 0, sizeof *s->held.mb * (size_t)q->gpus);
        memset(s->held.layers, 0,
               sizeof *s->held.layers * (size_t)(q->gpus * q->weights_count * q->layers_most));
    }
}

static bool *held_at(Scheduler *s, int device, int weights) {
    return &s->held.layers[(device * s->q->weights_count + weights) * s->q->layers_most];
}

/* Returns the MB that a device lacks to run `layers` layers of an operator from `first` on. */
static double more_mb(Scheduler *s, int device, int o, int first, int layers) {
    const bool *held = held_at(s, device, s->q->operator[o].weights) + first;
    int missing = 0;
    for (int l = 0; l < layers; l++) missing += !held[l];
    return missing * s->q->operator[o].state_mb;
}

/* Gathers in s->roomy the devices with memory for `layers` layers of operator o from `first` on. */
static void roomy_gather(Scheduler *s, int o, int first, int layers) {
    double most = s->q->memory_mb * (1 + 1e-9);
    for (int i = 0; i < s->islands; i++) {
        int from = i * s->q->island, to = from;
        for (int at = from; at < from + s->free.count[i]; at++) {
            int device = s->free.device[at];
            if (s->held.mb[device] + more_mb(s, device, o, first, layers) > most) continue;
            s->roomy.from[to] = s->free.from[at];
            s->roomy.device[to++] = device;
        }
        s->roomy.count[i] = to - from;
    }
}

/* Chooses `count` devices of the island where they are free first from `ready` on; at equal
 * times, where they have waited least. Returns the start in ms; INFINITY: no island has `count`. */
static double choose_devices(Scheduler *s, const Pool *pool, int count, double ready) {
    double start = INFINITY, best_wait = INFINITY;
    for (int i = 0; i < s->islands; i++) {
        const double *from = pool->from + i * s->q->island;
        int free = 0, all = pool->count[i];
        if (all < count || from[count - 1] > start) continue;
        double time = larger(ready, from[count - 1]);
        for (int k = 0; k < all; k++) // runs to the end, since an early exit would be a branch that
                                      // is hard to predict
            free += from[k] <= time;
        double wait = time - from[free - count];
        if (time < start || (time == start && wait < best_wait)) {
            s->chosen.island = i;
            s->chosen.first = i * s->q->island + free - count;
            best_wait = wait;
            start = time;
        }
    }
    return start;
}

/* Chooses the `count` whole islands that are free first, not before `ready`, and of these the ones
 * that have waited least. Returns their start in ms; INFINITY when there are fewer. */
static double choose_islands(Scheduler *s, const Pool *pool, int count, double ready) {
    int found = 0, sorted[s->islands], size = s->q->island;
    double from[s->islands];
    for (int i = 0; i < s->islands; i++) {
        int at = found;
        if (pool->count[i] < size) continue;
        double own = pool->from[i * size + size - 1];
        for (; at > 0 && from[at - 1] > own; at--) {
            sorted[at] = sorted[at - 1];
            from[at] = from[at - 1];
        }
        sorted[at] = i;
        from[at] = own;
        found++;
    }
    if (found < count) return INFINITY;
    int last = count - 1;
    double start = larger(ready, from[last]);
    while (last + 1 < found && from[last + 1] <= start) last++;
    for (int k = 0; k < count; k++) s->chosen.islands[k] = sorted[last - k];
    return start;
}

static double choose(Scheduler *s, const Pool *pool, int count, double ready) {
    return count < s->q->island ? choose_devices(s, pool, count, ready)
                                : choose_islands(s, pool, count / s->q->island, ready);
}

/* Writes to s->chosen.devices the devices of a pool that were chosen for a piece. */
static void devices_list(Scheduler *s, const Pool *pool, int count) {
    int island = s->q->island;
    for (int k = 0; k < count; k++)
        s->chosen.devices[k] = count < island ? pool->device[s->chosen.first + k]
                                              : s->chosen.islands[k / island] * island + k % island;
}

/* Moves the chosen devices' numbers behind those of the island's devices free before `end`. */
static void names_move(Scheduler *s, int first, int count, int behind, double end) {
    int *device = s->free.device + first, moved = 0;
    while (first + count + moved < behind && s->free.from[first + count + moved] < end) moved++;
    memmove(device, device + count, sizeof *device * (size_t)moved);
    memcpy(device + moved, s->chosen.devices, sizeof *device * (size_t)count);
}

/* Marks adjacent devices as busy from `start` to `end` and keeps the island sorted by time. */
static void devices_busy(Scheduler *s, int first, int count, double start, double end) {
    double *from = s->free.from;
    int behind = s->chosen.island * s->q->island + s->free.count[s->chosen.island];
    for (int k = first; k < first + count; k++) s->lost += start - from[k];
    if (s->named) names_move(s, first, count, behind, end);
    // `count` devices become free at `end`: entry k takes the time of entry k + count, but at most
    // `end` and at least its own time. The last entries become at least `end`.
    for (int k = first; k < behind - count; k++)
        from[k] = larger(from[k], smaller(from[k + count], end));
    for (int k = behind - count; k < behind; k++) from[k] = larger(from[k], end);
}

/* Marks whole islands as busy from `start` to `end`. */
static void islands_busy(Scheduler *s, int count, double start, double end) {
    for (int k = 0; k < count; k++) {
        double *from = s->free.from + s->chosen.islands[k] * s->q->island;
        for (int d = 0; d < s->q->island; d++) {
            s->lost += start - from[d];
            from[d] = end;
        }
    }
}

/* Marks the devices of a piece, which may be any of an island, as busy from `start` to `end`. */
static void scattered_busy(Scheduler *s, int count, double start, double end) {
    int first = s->chosen.island * s->q->island, own[count];
    memcpy(own, s->chosen.devices, sizeof own);
    for (int k = 0; k < count; k++) {
        int at = first;
        while (s->free.device[at] != own[k]) at++;
        s->chosen.devices[0] = own[k];
        devices_busy(s, at, 1, start, end);
    }
    memcpy(s->chosen.devices, own, sizeof own);
}

/* Records that a device holds `layers` layers of an operator from `first` on. */
static void device_hold(Scheduler *s, int device, int o, int first, int layers) {
    double more = more_mb(s, device, o, first, layers);
    s->held.mb[device] += more;
    s->held.overflow += larger(0, fmin(more, s->held.mb[device] - s->q->memory_mb * (1 + 1e-9)));
    memset(held_at(s, device, s->q->operator[o].weights) + first, 1, sizeof(bool) * (size_t)layers);
}

/* Returns the ms at which the last piece of an operator ends; all of them have been scheduled. */
static double pieces_end(const Scheduler *s, const Choices *choices, int o) {
    double end = 0;
    for (int piece = o * PIECES; piece < (o + 1) * PIECES; piece++)
        if (choices->piece[piece].layers) end = larger(end, s->made.end[piece]);
    return end;
}

/* The pieces before and after a piece in its operator. */
typedef struct Around {
    double ready; // ms at which the pieces and operators before it have ended
    int layers;   // layers of the pieces before it
    double rest;  // ms of the pieces after it
} Around;

static Around find_around(const Scheduler *s, const Choices *choices, int piece) {
    int o = piece / PIECES;
    const Operator *operator= & s->q->operator[o];
    Around around = {0};
    for (int other = o * PIECES; other < (o + 1) * PIECES; other++) {
        const StackedPiece *p = &choices->piece[other];
        if (other == piece || !p->layers) continue;
        if (choices->place[other] < choices->place[piece]) {
            around.layers += p->layers;
            around.ready = larger(around.ready, s->made.end[other]);
        } else {
            around.rest += p->layers * operator->allotment[p->allotment].ms;
        }
    }
    for (int k = 0; !around.layers && k < operator->after_count; k++)
        around.ready = larger(around.ready, pieces_end(s, choices, operator->after[k]));
    return around;
}

/* Schedules a piece, and writes its devices to s->chosen. Returns the piece's start in ms. */
static double piece_place(Scheduler *s, const Choices *choices, int piece, const Around *around) {
    int o = piece / PIECES;
    const StackedPiece *choice = &choices->piece[piece];
    const Allotment *allotment = &s->q->operator[o].allotment[choice->allotment];
    int count = allotment->devices;
    const Pool *pool = s->tight ? &s->roomy : &s->free;
    if (s->tight) roomy_gather(s, o, around->layers, choice->layers);
    double start = choose(s, pool, count, around->ready);
    if (s->tight && isinf(start)) {
        pool = &s->free;
        start = choose(s, pool, count, around->ready);
    }
    if (s->named) devices_list(s, pool, count);
    double end = start + choice->layers * allotment->ms;
    s->made.end[piece] = end;
    if (count >= s->q->island) islands_busy(s, count / s->q->island, start, end);
    else if (pool == &s->free) devices_busy(s, s->chosen.first, count, start, end);
    else scattered_busy(s, count, start, end);
    for (int d = 0; s->tight && d < count; d++)
        device_hold(s, s->chosen.devices[d], o, around->layers, choice->layers);
    return start;
}

int64_t schedule_work(const Scheduler *s) { return s->work; }

const double *schedule_ends(const Scheduler *s) { return s->kept.end; }

/* Returns the ms of a piece times the number of its devices. */
static double piece_busy(const Spindle *q, const Choices *choices, int piece) {
    const StackedPiece *p = &choices->piece[piece];
    const Allotment *allotment = &q->operator[piece / PIECES].allotment[p->allotment];
    return p->layers * allotment->ms * allotment->devices;
}

/* Records the devices' times before a place, if it has a checkpoint other than s->first. */
static void checkpoint_make(Scheduler *s, int place) {
    if ((s->stride > 1 && place % s->stride) || place == s->first * s->stride) return;
    Checkpoint *at = &s->made.at[place / s->stride];
    at->lost = s->lost;
    at->busy = s->busy;
    memcpy(at->from, s->free.from, sizeof *at->from * (size_t)s->q->gpus);
}

/* Returns whether the devices' times before a place are those of the schedule kept. */
static bool is_kept_from(const Scheduler *s, int place) {
    const double *kept = s->kept.at[place].from;
    return s->free.from[0] == kept[0] &&
           !memcmp(s->free.from, kept, sizeof *kept * (size_t)s->q->gpus);
}

/* Returns the times of a schedule that equals the kept one from `place` on; sets s->last. */
static ScheduleTimes schedule_same(Scheduler *s, int place) {
    double last = 0;
    s->last = place;
    s->made.objective = s->kept.objective;
    for (int piece = 0; piece < s->q->operator_count * PIECES; piece++)
        last = larger(last, s->made.end[piece]);
    return (ScheduleTimes){last, s->made.objective};
}

ScheduleTimes schedule_make(Scheduler *s, const Choices *choices, Places changed, double most) {
    double last = 0, sum = 0, gpus = s->q->gpus, weight = s->weights.mean;
    schedule_begin(s, changed.first / s->stride);
    double busy = s->busy;
    bool other = s->stride > 1;
    s->work += choices->count - s->first * s->stride;
    for (int place = s->first * s->stride; place < choices->count; place++)
        busy += piece_busy(s->q, choices, choices->order[place]);
    for (int place = s->first * s->stride; place < choices->count; place++) {
        int piece = choices->order[place];
        if (place > changed.last && !other && is_kept_from(s, place))
            return schedule_same(s, place);
        Around around = find_around(s, choices, piece);
        checkpoint_make(s, place);
        piece_place(s, choices, piece, &around);
        s->work += s->of_piece;
        other |= s->made.end[piece] != s->kept.end[piece];
        s->busy += piece_busy(s->q, choices, piece);
        double mean = (busy + s->lost) / gpus;
        double end = s->made.end[piece] + around.rest + s->tail[piece / PIECES];
        if (larger(mean, end) + weight * mean > most * (1 + 1e-9))
            return (ScheduleTimes){INFINITY, INFINITY};
    }
    checkpoint_make(s, choices->count);
    for (int d = 0; d < s->q->gpus; d++)
        last = larger(last, s->free.from[d]), sum += s->free.from[d];
    s->made.objective =
        last + weight * sum / gpus + s->weights.penalty * last * s->held.overflow / s->q->memory_mb;
    s->last = choices->count + 1;
    return (ScheduleTimes){s->held.overflow == 0 ? last : INFINITY, s->made.objective};
}

void schedule_keep(Scheduler *s, const Choices *choices) {
    double *end = s->kept.end;
    s->kept.end = s->made.end, s->made.end = end;
    s->kept.objective = s->made.objective;
    for (int i = s->first + 1; i * s->stride <= choices->count && i < s->last; i++) {
        Checkpoint old = s->kept.at[i];
        s->kept.at[i] = s->made.at[i], s->made.at[i] = old;
    }
}

SpindlePlan *schedule_plan(Arena *arena, Scheduler *s, const Choices *choices) {
    Slice *slices = arena_array(arena, Slice, choices->count);
    SpindlePlan *plan = arena_new(arena, SpindlePlan);
    plan->slices = slices;
    s->named = true;
    schedule_begin(s, 0);
    for (int place = 0; place < choices->count; place++) {
        int piece = choices->order[place], o = piece / PIECES, devices;
        Around around = find_around(s, choices, piece);
        double start = piece_place(s, choices, piece, &around);
        devices = s->q->operator[o].allotment[choices->piece[piece].allotment].devices;
        slices[plan->slice_count++] =
            (Slice){o, choices->piece[piece].layers, devices, start,
                    arena_copy(arena, s->chosen.devices, sizeof(int) * (size_t)devices)};
        plan->milliseconds = larger(plan->milliseconds, s->made.end[piece]);
    }
    s->named = s->tight;
    return plan;
}
