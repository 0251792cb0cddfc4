/* Anneals the choices that a schedule is made from. A place is an index in the order of pieces. */
#include "planner/kinds/spindle/schedule.h"

#include "planner/kinds/budget.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

typedef struct Search {
    const Spindle *q;
    Scheduler *scheduler;
    Random random;
    int pieces;
    const bool *after; // entry a * operators + b: operator a follows b, directly or indirectly
    int *others;       // (pieces): scratch of order_move, pieces that move along
    Choices now, next, best;
    Places changed; // places at which the order or its pieces differ from `now`
    double now_objective, best_ms;
    int centre;         // place of a step's last change that was not picked near another; -1: none
    int *critical;      // (critical_count), pieces that the end of the schedule waits for
    int critical_count; // pieces found up to REORDER steps ago; some may be critical no more
    bool *is_critical;  // (pieces): scratch of find_critical
    double *start;      // (pieces): scratch of order_by_start, ms by place
} Search;

static Choices choices_create(Arena *arena, int pieces) {
    return (Choices){arena_array(arena, StackedPiece, pieces), 0, arena_array(arena, int, pieces),
                     arena_array(arena, int, pieces)};
}

static void choices_copy(Choices *to, const Choices *from, int pieces) {
    memcpy(to->piece, from->piece, sizeof *to->piece * (size_t)pieces);
    memcpy(to->order, from->order, sizeof *to->order * (size_t)from->count);
    memcpy(to->place, from->place, sizeof *to->place * (size_t)pieces);
    to->count = from->count;
}

/* Returns, as entry a * operators + b, whether operator a follows b, perhaps indirectly. */
static const bool *find_after(Arena *arena, const Spindle *q) {
    int count = q->operator_count;
    bool *after = arena_array(arena, bool, count *count);
    for (int o = 0; o < count; o++)
        for (int k = 0; k < q->operator[o].after_count; k++) {
            int before = q->operator[o].after[k];
            after[o * count + before] = true;
            for (int other = 0; other < before; other++)
                after[o * count + other] |= after[before * count + other];
        }
    return after;
}

/* Records that the order, or its pieces' choices, have changed at places `first` to `last`. */
static void changed_at(Search *s, int first, int last) {
    s->changed.first = first < s->changed.first ? first : s->changed.first;
    s->changed.last = last > s->changed.last ? last : s->changed.last;
}

static void order_set(Search *s, int place, int piece) {
    s->next.order[place] = piece;
    s->next.place[piece] = place;
}

/* Moves a piece to another place in the order. Towards the front the piece takes along pieces that
 * must precede it; towards the end, pieces that it must precede. */
static void order_move(Search *s, int from, int to) {
    int piece = s->next.order[from], way = to < from ? -1 : 1, at = from, moved = 0,
        count = s->q->operator_count;
    for (int place = from + way; place != to + way; place += way) {
        int other = s->next.order[place], a = (way < 0 ? piece : other) / PIECES,
            b = (way < 0 ? other : piece) / PIECES;
        if (s->after[a * count + b]) {
            s->others[moved++] = other;
        } else {
            order_set(s, at, other);
            at += way;
        }
    }
    order_set(s, at, piece);
    for (int k = 0; k < moved; k++) order_set(s, at += way, s->others[k]);
    changed_at(s, from < to ? from : to, from < to ? to : from);
}

/* Returns a random place at most NEAR places from `place`. */
static int near_pick(Search *s, int place) {
    enum { NEAR = 4 };
    int to = place + random_below(&s->random, 2 * NEAR + 1) - NEAR;
    return to < 0 ? 0 : to < s->next.count ? to : s->next.count - 1;
}

/* Picks the place of a change. With probability 3/4 a step's later changes are near `centre`, since
 * changes that compensate each other are close together. Else picks a critical piece half of the
 * time, otherwise any piece. */
static int changed_pick(Search *s) {
    if (s->centre >= 0 && random_below(&s->random, 4) > 0) return near_pick(s, s->centre);
    int place = random_below(&s->random, s->next.count);
    if (s->critical_count && random_bits(&s->random) & 1) {
        int piece = s->critical[random_below(&s->random, s->critical_count)];
        if (s->next.piece[piece].layers) place = s->next.place[piece];
    }
    return s->centre = place;
}

static int piece_pick(Search *s) { return s->next.order[changed_pick(s)]; }

/* Picks another place: any place or, half of the time, one nearby. */
static int place_pick(Search *s, int place) {
    if (random_bits(&s->random) & 1) return random_below(&s->random, s->next.count);
    return near_pick(s, place);
}

/* Moves a random piece to a random place in the order. */
static void place_move(Search *s) {
    int from = changed_pick(s), to = place_pick(s, from);
    if (from != to) order_move(s, from, to);
}

/* Swaps two pieces in the order, as far as the graph of operators allows the swap. */
static void place_swap(Search *s) {
    int a = changed_pick(s), b = place_pick(s, a), other = s->next.order[b];
    if (a == b) return;
    order_move(s, a, b);
    if (s->next.place[other] != a) order_move(s, s->next.place[other], a);
}

/* Adds a piece that gets its first layers, next to `beside` of the same operator or anywhere. */
static void piece_add(Search *s, int piece, int beside) {
    int place = s->next.place[beside] + (random_bits(&s->random) & 1);
    for (int at = s->next.count++; at > place; at--) order_set(s, at, s->next.order[at - 1]);
    order_set(s, place, piece);
    changed_at(s, place, s->pieces);
    int to = random_below(&s->random, s->next.count);
    if (random_bits(&s->random) & 1 && to != place) order_move(s, place, to);
}

/* Removes a piece that has lost its layers. */
static void piece_remove(Search *s, int piece) {
    int place = s->next.place[piece];
    changed_at(s, place, s->pieces);
    s->next.count--;
    for (; place < s->next.count; place++) order_set(s, place, s->next.order[place + 1]);
    s->next.place[piece] = -1;
}

/* Gives a piece another allotment, half of the time a neighbouring one. */
static void allotment_move(Search *s) {
    int piece = piece_pick(s), count = s->q->operator[piece / PIECES].allotment_count;
    StackedPiece *p = &s->next.piece[piece];
    int near = p->allotment + (random_bits(&s->random) & 1 ? 1 : -1), old = p->allotment;
    p->allotment = random_bits(&s->random) & 1 && near >= 0 && near < count
                       ? near
                       : random_below(&s->random, count);
    if (p->allotment != old) changed_at(s, s->next.place[piece], s->next.place[piece]);
}

/* Moves one, two or all layers from a piece to another piece of its operator. A piece that had no
 * layers gets a random allotment. */
static void layers_move(Search *s) {
    int from = piece_pick(s),
        to = from / PIECES * PIECES +
             (from % PIECES + 1 + random_below(&s->random, PIECES - 1)) % PIECES;
    StackedPiece *a = &s->next.piece[from], *b = &s->next.piece[to];
    int dice = random_below(&s->random, 16), most = dice < 8 && a->layers > 2 ? 2 : a->layers;
    int some = dice < 14 ? 1 + random_below(&s->random, most) : a->layers;
    if (!b->layers) {
        b->allotment = random_below(&s->random, s->q->operator[from / PIECES].allotment_count);
        piece_add(s, to, from);
    }
    a->layers -= some;
    b->layers += some;
    changed_at(s, s->next.place[from], s->next.place[from]);
    changed_at(s, s->next.place[to], s->next.place[to]);
    if (!a->layers) piece_remove(s, from);
}

/* Makes a random change of the next choices. */
static void change(Search *s) {
    s->centre = -1;
    for (bool more = true; more; more = random_below(&s->random, 4) == 0) {
        int dice = random_below(&s->random, 16);
        if (dice < 3) place_move(s);
        else if (dice < 6) place_swap(s);
        else if (dice < 12) allotment_move(s);
        else layers_move(s);
    }
}

/* Makes the next choices, of which the last schedule was made, the current ones. */
static void next_take(Search *s, ScheduleTimes times) {
    schedule_keep(s->scheduler, &s->next);
    Choices old = s->now;
    s->now = s->next, s->next = old;
    s->now_objective = times.objective;
    if (times.ms < s->best_ms) {
        s->best_ms = times.ms;
        choices_copy(&s->best, &s->now, s->pieces);
    }
}

/* Tries a random change; keeps it by the rule of Metropolis. */
static void step(Search *s, double temperature) {
    s->changed = (Places){s->pieces, -1};
    choices_copy(&s->next, &s->now, s->pieces);
    change(s);
    if (s->changed.last < 0) return;
    double most = s->now_objective - temperature * log(1 - random_unit(&s->random));
    ScheduleTimes times = schedule_make(s->scheduler, &s->next, s->changed, most);
    if (times.objective <= most) next_take(s, times);
}

/* Returns when a piece of the current choices starts, up to rounding. */
static double piece_start(const Search *s, int piece) {
    const StackedPiece *p = &s->now.piece[piece];
    const Allotment *allotment = &s->q->operator[piece / PIECES].allotment[p->allotment];
    return schedule_ends(s->scheduler)[piece] - p->layers * allotment->ms;
}

/* Sorts the order by the starts of the pieces, unless the schedule of that order is worse. Many
 * orders have the same schedule; in this one, neighbours in the order are neighbours in time. */
static void order_by_start(Search *s, double same) {
    choices_copy(&s->next, &s->now, s->pieces);
    for (int k = 0; k < s->next.count; k++) {
        int piece = s->next.order[k], at = k;
        double start = piece_start(s, piece);
        for (; at > 0 && s->start[at - 1] > start + same; at--) {
            s->start[at] = s->start[at - 1];
            order_set(s, at, s->next.order[at - 1]);
        }
        s->start[at] = start;
        order_set(s, at, piece);
    }
    ScheduleTimes times = schedule_make(s->scheduler, &s->next, (Places){0, s->pieces}, INFINITY);
    if (times.objective <= s->now_objective + same) next_take(s, times);
}

/* Finds the critical pieces: those that end last, and those that end when a critical one starts. */
static void find_critical(Search *s, double same) {
    const double *end = schedule_ends(s->scheduler);
    const int *order = s->now.order;
    double last = 0;
    int count = s->now.count;
    for (int k = 0; k < count; k++) last = fmax(last, end[order[k]]);
    for (int k = 0; k < count; k++) s->is_critical[order[k]] = end[order[k]] >= last - same;
    s->critical_count = 0;
    for (int k = count - 1; k >= 0; k--) {
        if (!s->is_critical[order[k]]) continue;
        double start = piece_start(s, order[k]);
        s->critical[s->critical_count++] = order[k];
        for (int j = 0; j < k; j++) s->is_critical[order[j]] |= fabs(end[order[j]] - start) <= same;
    }
}

/* Anneals from the best choices so far, for `work` units (schedule_work). The temperature falls
 * from `hot` to `cold` times the objective at the start. */
static void anneal(Search *s, double hot, double cold, int64_t work) {
    enum {
        REORDER = 100, // steps between two sorts of the order
        OF_STEP = 60   // work of a step without the work of its schedule
    };
    const double same = 1e-9; // relative difference of times that is rounding
    if (isfinite(s->best_ms)) choices_copy(&s->now, &s->best, s->pieces);
    choices_copy(&s->next, &s->now, s->pieces);
    ScheduleTimes times = schedule_make(s->scheduler, &s->next, (Places){0, s->pieces}, INFINITY);
    double objective = times.objective;
    next_take(s, times);
    int64_t begin = schedule_work(s->scheduler), done = 0;
    while (done < work) {
        double temperature = objective * hot * pow(cold / hot, (double)done / (double)work);
        order_by_start(s, same * objective);
        find_critical(s, same * objective);
        for (int i = 0; i < REORDER; i++) step(s, temperature);
        begin -= REORDER * OF_STEP;
        done = schedule_work(s->scheduler) - begin;
    }
}

/* Returns an operator's most efficient allotment that takes at most `ms`; if none, the fastest. */
static int allotment_within(const Operator *operator, double ms) {
    int best = 0;
    for (int k = 0; k < operator->allotment_count; k++) {
        const Allotment *a = &operator->allotment[k], *b = &operator->allotment[best];
        bool within = a->ms * operator->layers <= ms, had = b->ms * operator->layers <= ms;
        if (within && had ? a->ms * a->devices < b->ms * b->devices
                          : within || (!had && a->ms < b->ms))
            best = k;
    }
    return best;
}

/* Returns, by operator, the longest ms from its start to the end of all operators, each in one
 * piece. Each operator's time is changed at random by up to the fraction SPREAD. */
static double *find_ways(Arena *arena, Search *s) {
    const double SPREAD = 0.2;
    const Spindle *q = s->q;
    double *way = arena_array(arena, double, q->operator_count);
    for (int o = q->operator_count - 1; o >= 0; o--) {
        const Operator *operator= & q->operator[o];
        double ms = operator->layers * operator->allotment[s->now.piece[o * PIECES].allotment].ms;
        way[o] += ms * (1 + SPREAD * (2 * random_unit(&s->random) - 1));
        for (int k = 0; k < operator->after_count; k++)
            way[operator->after[k]] = fmax(way[operator->after[k]], way[o]);
    }
    return way;
}

/* Returns a search that begins with each operator in one piece, of at most `ms` if possible;
 * operators with the longest way to the end come first. */
static Search *search_create(Arena *arena, const Spindle *q, double ms, Weights weights,
                             uint64_t seed) {
    Search *s = arena_new(arena, Search);
    *s = (Search){.q = q,
                  .scheduler = scheduler_create(arena, q, weights),
                  .random = {seed},
                  .pieces = q->operator_count * PIECES};
    s->now = choices_create(arena, s->pieces);
    s->next = choices_create(arena, s->pieces);
    s->best = choices_create(arena, s->pieces);
    s->best_ms = INFINITY;
    s->after = find_after(arena, q);
    s->others = arena_array(arena, int, s->pieces);
    s->critical = arena_array(arena, int, s->pieces);
    s->is_critical = arena_array(arena, bool, s->pieces);
    s->start = arena_array(arena, double, s->pieces);
    for (int i = 0; i < s->pieces; i++) {
        const Operator *operator= & q->operator[i / PIECES];
        s->now.piece[i] =
            (StackedPiece){i % PIECES ? 0 : operator->layers, allotment_within(operator, ms)};
        s->now.place[i] = -1;
    }
    const double *way = find_ways(arena, s);
    for (int o = 0; o < q->operator_count; o++) {
        int at = s->now.count++;
        for (; at > 0 && way[s->now.order[at - 1] / PIECES] < way[o]; at--)
            s->now.order[at] = s->now.order[at - 1];
        s->now.order[at] = o * PIECES;
    }
    for (int place = 0; place < s->now.count; place++) s->now.place[s->now.order[place]] = place;
    return s;
}

/* Sorts the searches of a tournament, the best first; equal searches keep their order. */
static void best_first(Search **player, int count) {
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && player[k]->best_ms < player[k - 1]->best_ms; k--) {
            Search *worse = player[k - 1];
            player[k - 1] = player[k];
            player[k] = worse;
        }
}

/* The part of a tournament's round that one thread does. */
typedef struct Round {
    Search **player;
    int first, count; // every second search of `count`, from number `first` on
    double hot, cold;
    int64_t work; // units of work (schedule_work) of each search
} Round;

static void *play(void *argument) {
    Round *own = argument;
    for (int i = own->first; i < own->count; i += 2)
        anneal(own->player[i], own->hot, own->cold, own->work);
    return NULL;
}

/* Anneals the searches of a round on two threads; on one if no other thread can be created. */
static void round_play(Round round) {
    Round beside = round;
    beside.first = 1;
    pthread_t thread;
    bool threaded = !pthread_create(&thread, NULL, play, &beside);
    play(&round);
    if (threaded) pthread_join(thread, NULL);
    else play(&beside);
}

typedef struct Tournament {
    const Spindle *q;
    double penalty; // weight of states that fit nowhere (Weights.penalty)
    int64_t work;
    uint64_t seed;
} Tournament;

/* Runs a tournament of searches and returns the best search. Searches begin with faster or with
 * more efficient allotments and anneal with equal work. The best ones continue from where they are,
 * with more work each and cooler. Half of the searches weigh the mean end of devices more, which is
 * better where devices have many pieces each, and worse where they have few. Every second search
 * gives layers' states for which no device has memory more weight (penalty). */
static Search *hold(Arena *arena, const Tournament *t) {
    enum { PLAYERS = 12, STARTS = 6, ROUNDS = 3, MORE = 8 };
    static const int LEFT[ROUNDS] = {PLAYERS, 4, 2};
    static const double HOT = 0.004, COLD = 0.0005;
    static const double MEAN = 0.25, MORE_MEAN = 1.5;
    Search *player[PLAYERS];
    double bound = spindle_bound(arena, t->q).value;
    for (int i = 0; i < PLAYERS; i++) {
        Weights weights = {i < STARTS ? MEAN : MORE_MEAN, t->penalty * (i % 2 ? MORE : 1)};
        double ms = bound * (i % STARTS + 1) / STARTS;
        player[i] = search_create(arena, t->q, ms, weights, t->seed + (uint64_t)i);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int64_t each = t->work / ROUNDS / (LEFT[round] / 2);
        round_play((Round){player, 0, LEFT[round], ldexp(HOT, -round), COLD, each});
        best_first(player, LEFT[round]);
    }
    return player[0];
}

static SpindlePlan *plan_copy(Arena *arena, const SpindlePlan *plan) {
    SpindlePlan *copy = arena_copy(arena, plan, sizeof *plan);
    Slice *slices = arena_copy(arena, plan->slices, sizeof *slices * (size_t)plan->slice_count);
    for (int i = 0; i < plan->slice_count; i++) {
        size_t size = sizeof(int) * (size_t)slices[i].device_count;
        slices[i].devices = arena_copy(arena, slices[i].devices, size);
    }
    copy->slices = slices;
    return copy;
}

/* Returns the better of a plan (may be NULL) and a tournament's winner; NULL: neither exists. */
static SpindlePlan *better_plan(Arena *arena, SpindlePlan *plan, const Tournament *t) {
    Arena *own = arena_create();
    const Search *winner = hold(own, t);
    if (winner->best_ms < (plan ? plan->milliseconds : INFINITY))
        plan = plan_copy(arena, schedule_plan(own, winner->scheduler, &winner->best));
    arena_destroy(own);
    return plan;
}

/* Holds tournaments from different starts while there is work for them. Each has the usual work, or
 * a third of all work before it when that is more. More work never finds a worse plan, since the
 * search begins with the same tournaments. Below the usual work there is one tournament. */
static SpindlePlan *find_plan(Arena *arena, Tournament all, int64_t usual) {
    enum { PLAYERS = 16 }; // limit of the searches of a tournament
    const double part = 1.0 / 3, slack = 1 + 1e-9;
    double work = (double)all.work, own = fmin(work, (double)usual), done = 0;
    SpindlePlan *plan = NULL;
    for (uint64_t turn = 0; done + own <= work * slack; turn++) {
        Tournament t = {all.q, all.penalty, (int64_t)own, all.seed + turn * PLAYERS};
        plan = better_plan(arena, plan, &t);
        done += own;
        own = fmax(own, part * done);
    }
    return plan;
}

SpindlePlan *spindle_plan(Arena *arena, const Spindle *q, int64_t work, int64_t usual,
                          uint64_t seed) {
    static const double penalties[] = {1, 30, 1000};
    SpindlePlan *plan = NULL;
    for (int i = 0; i < 3 && !plan; i++)
        plan = find_plan(arena, (Tournament){q, penalties[i], work, seed << 16}, usual);
    return plan;
}
