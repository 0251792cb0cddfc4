/* Annealing over the choices that make a schedule. */
#include "plan/spindle/schedule.h"

#include "plan/random.h"

#include <math.h>
#include <string.h>

typedef struct Search {
    const Spindle *q;
    Scheduler *scheduler;
    Random random;
    int pieces;
    Choices now, next, best;
    double now_objective, best_ms;
} Search;

static Choices choices_create(Arena *arena, int pieces)
{
    return (Choices){arena_array(arena, Piece, pieces), arena_array(arena, int, pieces)};
}

static void choices_copy(Choices *to, const Choices *from, int pieces)
{
    memcpy(to->piece, from->piece, sizeof *to->piece * (size_t)pieces);
    memcpy(to->order, from->order, sizeof *to->order * (size_t)pieces);
}

/* A piece to another place in the order. */
static void order_move(Search *s)
{
    int *order = s->next.order, from = random_below(&s->random, s->pieces), to = random_below(&s->random, s->pieces), piece = order[from];
    for (; from < to; from++)
        order[from] = order[from + 1];
    for (; from > to; from--)
        order[from] = order[from - 1];
    order[to] = piece;
}

static void order_swap(Search *s)
{
    int *order = s->next.order, a = random_below(&s->random, s->pieces), b = random_below(&s->random, s->pieces), piece = order[a];
    order[a] = order[b];
    order[b] = piece;
}

/* A piece that has layers. */
static int piece_pick(Search *s)
{
    for (;;) {
        int piece = random_below(&s->random, s->pieces);
        if (s->next.piece[piece].layers)
            return piece;
    }
}

/* Another allotment for a piece, a neighbouring one as often as not. */
static void allotment_move(Search *s)
{
    int piece = piece_pick(s), count = s->q->operator[piece / PIECES].allotment_count;
    Piece *p = &s->next.piece[piece];
    int near = p->allotment + (random_bits(&s->random) & 1 ? 1 : -1);
    p->allotment = random_bits(&s->random) & 1 && near >= 0 && near < count ? near : random_below(&s->random, count);
}

/* Some layers, one or two, or all, from a piece to another one of its operator, which gets a random allotment when it had no layers. */
static void layers_move(Search *s)
{
    int from = piece_pick(s), to = from / PIECES * PIECES + random_below(&s->random, PIECES);
    Piece *a = &s->next.piece[from], *b = &s->next.piece[to];
    if (from == to)
        return;
    if (!b->layers)
        b->allotment = random_below(&s->random, s->q->operator[from / PIECES].allotment_count);
    int dice = random_below(&s->random, 16), most = dice < 8 && a->layers > 2 ? 2 : a->layers;
    int some = dice < 14 ? 1 + random_below(&s->random, most) : a->layers;
    a->layers -= some;
    b->layers += some;
}

/* Tries a change of the choices. */
static void step(Search *s, double temperature)
{
    double objective;
    bool fits;
    choices_copy(&s->next, &s->now, s->pieces);
    for (bool more = true; more; more = random_below(&s->random, 4) == 0) {
        int dice = random_below(&s->random, 16);
        if (dice < 3)
            order_move(s);
        else if (dice < 6)
            order_swap(s);
        else if (dice < 11)
            allotment_move(s);
        else
            layers_move(s);
    }
    double most = s->now_objective - temperature * log(1 - random_unit(&s->random));
    double ms = schedule_make(s->scheduler, &s->next, most, &objective, &fits);
    if (objective > most)
        return;
    Choices old = s->now;
    s->now = s->next, s->next = old;
    s->now_objective = objective;
    if (fits && ms < s->best_ms) {
        s->best_ms = ms;
        choices_copy(&s->best, &s->now, s->pieces);
    }
}

/* Anneals by `work` schedules from `hot` to `cold` times the objective, from the best choices so far. */
static void anneal(Search *s, double hot, double cold, int64_t work)
{
    bool fits;
    if (isfinite(s->best_ms))
        choices_copy(&s->now, &s->best, s->pieces);
    double ms = schedule_make(s->scheduler, &s->now, INFINITY, &s->now_objective, &fits), scale = s->now_objective;
    if (fits && ms < s->best_ms) {
        s->best_ms = ms;
        choices_copy(&s->best, &s->now, s->pieces);
    }
    for (int64_t done = 0; done < work; done++)
        step(s, scale * hot * pow(cold / hot, (double)done / (double)work));
}

/* The most efficient allotment that makes a tower take at most `ms`, or the fastest. */
static int allotment_within(const Operator *operator, double ms)
{
    int best = 0;
    for (int k = 0; k < operator->allotment_count; k++) {
        const Allotment *a = &operator->allotment[k], *b = &operator->allotment[best];
        bool within = a->ms * operator->layers <= ms, had = b->ms * operator->layers <= ms;
        if (within && had ? a->ms * a->devices < b->ms * b->devices : within || (!had && a->ms < b->ms))
            best = k;
    }
    return best;
}

/* Operators in their order, each in one piece that takes at most `ms`. */
static Search *search_create(Arena *arena, const Spindle *q, double ms, double penalty, uint64_t seed)
{
    Search *s = arena_new(arena, Search);
    *s = (Search){.q = q, .scheduler = scheduler_create(arena, q, penalty), .random = {seed}, .pieces = q->operator_count * PIECES};
    s->now = choices_create(arena, s->pieces);
    s->next = choices_create(arena, s->pieces);
    s->best = choices_create(arena, s->pieces);
    s->best_ms = INFINITY;
    for (int i = 0; i < s->pieces; i++) {
        const Operator *operator= & q->operator[i / PIECES];
        s->now.piece[i] = (Piece){i % PIECES ? 0 : operator->layers, allotment_within(operator, ms)};
        s->now.order[i] = i;
    }
    return s;
}

/* The best first; equal ones in their order. */
static void best_first(Search **player, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && player[k]->best_ms < player[k - 1]->best_ms; k--) {
            Search *worse = player[k - 1];
            player[k - 1] = player[k];
            player[k] = worse;
        }
}

/* A tournament: beginnings with faster and with more efficient allotments anneal with equal work; the best third goes on from where it is,
 * with more work each and cooler. Every other one minds states without room more. NULL: none has found a schedule in which all fit. */
static SpindlePlan *tournament(Arena *arena, const Spindle *q, double penalty, int64_t work, uint64_t seed)
{
    enum { PLAYERS = 6, ROUNDS = 3, SHRINK = 3, MORE = 8 };
    static const double HOT = 0.01, COLD = 0.0005;
    Search *player[PLAYERS];
    double objective, bound = spindle_bound(arena, q).value;
    bool fits;
    for (int i = 0; i < PLAYERS; i++)
        player[i] = search_create(arena, q, bound * (i + 1) / PLAYERS, penalty * (i % 2 ? MORE : 1), (seed << 8) + (uint64_t)i);
    for (int round = 0, count = PLAYERS; round < ROUNDS; round++, count = (count + SHRINK - 1) / SHRINK) {
        for (int i = 0; i < count; i++)
            anneal(player[i], ldexp(HOT, -round), COLD, work / ROUNDS / count / schedule_work(player[i]->scheduler));
        best_first(player, count);
    }
    if (isinf(player[0]->best_ms))
        return NULL;
    schedule_make(player[0]->scheduler, &player[0]->best, INFINITY, &objective, &fits);
    return schedule_plan(arena, player[0]->scheduler, &player[0]->best);
}

SpindlePlan *spindle_plan(Arena *arena, const Spindle *q, int64_t work, uint64_t seed)
{
    static const double penalties[] = {1, 30, 1000};
    SpindlePlan *plan = NULL;
    for (int i = 0; i < 3 && !plan; i++)
        plan = tournament(arena, q, penalties[i], work, seed);
    return plan;
}
