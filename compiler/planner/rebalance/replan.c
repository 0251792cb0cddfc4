/* Chooses among candidate strategies around stragglers. same_groups.c and regroup.c make them;
 * session/control/balance.c asks for them. */
#include "planner/rebalance/rebalance.h"

#include "planner/rebalance/candidates.h"

#include <math.h>
#include <string.h>

/* A candidate strategy, the predicted time of a step, and the bytes that a switch moves. */
typedef struct Candidate {
    LayoutModel *laid;
    const Strategy *strategy; // NULL: that of `laid`, which is new
    bool known;               // an existing strategy
    double time, moves;
    bool refused; // hetucc refused the strategy
} Candidate;

typedef struct Choice {
    Arena *arena;
    const ModelWork *work;
    const double *rates; // by device: its own slowness times that of its class
    const LayoutModel *now;
    Array(Candidate) list;
} Choice;

/* Adds a layout, whose strategy is new if it is NULL. */
static void add(Choice *choice, LayoutModel *laid, const Strategy *strategy, bool known) {
    if (!laid) return;
    if (!strategy) minimize_moves(choice->arena, choice->now, laid, choice->rates);
    array_push(choice->arena, &choice->list,
               (Candidate){laid, strategy, known, layout_model_time(laid, choice->rates),
                           layout_model_moves(choice->now, laid), false});
}

/* Returns whether training can go on under a strategy: it has the devices and shape variables of
 * the one in force. */
static bool can_go_on(const Choice *choice, const Strategy *strategy) {
    return shapes_same(&strategy->shapes, &choice->now->like->shapes) &&
           strategy_device_count(strategy) == choice->work->device_count;
}

static Module *module_under(Module *const *modules, int count, const char *name) {
    for (int m = 0; m < count; m++)
        if (modules[m]->strategy && !strcmp(modules[m]->strategy->name, name)) return modules[m];
    return NULL;
}

/* Adds existing strategies under which training can go on. */
static void add_known(Choice *choice, Module *const *modules, int count) {
    const char *why;
    for (int m = 0; m < count; m++) {
        const Strategy *strategy = modules[m]->strategy;
        if (strategy && can_go_on(choice, strategy))
            add(choice, layout_model_of(choice->arena, choice->work, strategy, &why), strategy,
                true);
    }
}

/* Adds the strategy that the search finds for links that have changed. The search knows classes of
 * devices and no stragglers: around these, adds its strategy with other layers and rows, too. */
static void add_found(Choice *choice, const BalanceRequest *request, bool healthy) {
    const char *why;
    const Strategy *strategy = request->search(request->state);
    if (!strategy || !can_go_on(choice, strategy)) return;
    LayoutModel *laid = layout_model_of(choice->arena, choice->work, strategy, &why);
    add(choice, laid, strategy, false);
    if (!laid || healthy) return;
    add(choice, candidate_same_groups(choice->arena, laid, choice->rates), NULL, false);
    add(choice, candidate_weighted(choice->arena, laid, choice->rates), NULL, false);
}

/* Returns the candidate that moves the fewest bytes among those within 1% of the fastest that are
 * not refused; at equal bytes, the one listed first. NULL: all are refused. */
static Candidate *choose(const Choice *choice) {
    const double within = 1.01;
    double fastest = INFINITY;
    Candidate *best = NULL;
    for (int i = 0; i < choice->list.count; i++)
        fastest = choice->list.at[i].refused ? fastest : fmin(fastest, choice->list.at[i].time);
    for (int i = 0; i < choice->list.count; i++) {
        Candidate *own = &choice->list.at[i];
        if (!own->refused && own->time <= fastest * within &&
            (!best || own->moves < best->moves * (1 - 1e-9)))
            best = own;
    }
    return best;
}

static const Strategy *strategy_of(const Choice *choice, const Candidate *own,
                                   const BalanceRequest *request) {
    return own->strategy ? own->strategy
                         : layout_model_strategy(choice->arena, own->laid, request->name);
}

/* Returns whether hetucc might refuse a strategy: for its memory, or for dividing the batch. */
static bool may_be_refused(const Choice *choice, const LayoutModel *laid) {
    bool whole = choice->now->whole && choice->now->pipeline_count == 1,
         cut = !laid->whole || laid->pipeline_count > 1;
    return choice->work->limited || (whole && cut);
}

/* Returns the best candidate that hetucc accepts; the strategy in force is one of them. */
static const Candidate *choose_accepted(const Choice *choice, const BalanceRequest *request) {
    Candidate *best = choose(choice);
    while (!best->known && may_be_refused(choice, best->laid) && request->accepts &&
           !request->accepts(request->state, strategy_of(choice, best, request))) {
        best->refused = true;
        best = choose(choice);
    }
    return best;
}

static const Candidate *find_known(const Choice *choice, const char *name) {
    for (int i = 0; i < choice->list.count; i++)
        if (choice->list.at[i].known && !strcmp(choice->list.at[i].strategy->name, name))
            return &choice->list.at[i];
    return NULL;
}

static bool all_healthy(const BalanceRequest *request) {
    for (int d = 0; d < request->rate_count; d++)
        if (request->rates[d] != 1) return false;
    return true;
}

/* Returns how many devices are so slow that the step may be faster without them; at most MOST. */
static int count_slow(const Choice *choice) {
    enum { MOST = 3 };
    const double slow = 1.25;
    double fastest = INFINITY;
    int count = 0;
    for (int d = 0; d < choice->work->device_count; d++) fastest = fmin(fastest, choice->rates[d]);
    for (int d = 0; d < choice->work->device_count; d++) count += choice->rates[d] > slow * fastest;
    return count < MOST ? count : MOST;
}

/* Replaces the candidates' times by those of whole steps; refuses those that have none. Returns
 * false if the strategy in force has none. */
static bool time_steps(const Choice *choice, const BalanceRequest *request, double *now) {
    *now = request->seconds(request->state, choice->now->like, request->rates);
    for (int i = 0; i < choice->list.count && !isnan(*now); i++) {
        Candidate *own = &choice->list.at[i];
        const Strategy *strategy = strategy_of(choice, own, request);
        own->time = strategy == choice->now->like
                        ? *now
                        : request->seconds(request->state, strategy, request->rates);
        own->refused = isnan(own->time);
    }
    return !isnan(*now);
}

static BalanceAnswer *refuse(Arena *arena, const char *error) {
    BalanceAnswer *answer = arena_new(arena, BalanceAnswer);
    answer->error = error;
    return answer;
}

static BalanceAnswer *answer_of(const Choice *choice, const Candidate *taken,
                                const LayoutModel *base, double now,
                                const BalanceRequest *request) {
    const double start = 0.05; // seconds that any switch takes
    BalanceAnswer *answer = arena_new(choice->arena, BalanceAnswer);
    *answer = (BalanceAnswer){.strategy = strategy_of(choice, taken, request),
                              .made = !taken->known,
                              .now = now,
                              .then = taken->time,
                              .bytes = taken->moves,
                              .seconds = start + taken->moves / choice->work->bandwidth,
                              .device_count = choice->work->device_count,
                              .first = layout_model_work(choice->arena, base),
                              .work = layout_model_work(choice->arena, taken->laid)};
    return answer;
}

BalanceAnswer *balance_plan(Arena *arena, Module *const *modules, int count,
                            const BalanceRequest *request) {
    const char *why = NULL;
    const Module *like = module_under(modules, count, request->base);
    const Strategy *base = like ? like->strategy : NULL;
    Module *now = module_under(modules, count, request->now);
    if (!base || !now)
        return refuse(arena, arena_format(arena, "the model has no strategy \"%s\"",
                                          base ? request->now : request->base));
    ModelWork *work = model_work(arena, now);
    if (request->rate_count < work->device_count)
        return refuse(arena,
                      arena_format(arena, "--rates has %d rates, and strategy \"%s\" %d devices",
                                   request->rate_count, request->now, work->device_count));
    double *rates = arena_array(arena, double, work->device_count);
    for (int d = 0; d < work->device_count; d++) rates[d] = request->rates[d] * work->slow[d];
    const LayoutModel *first = layout_model_of(arena, work, base, &why);
    Choice choice = {.arena = arena,
                     .work = work,
                     .rates = rates,
                     .now = layout_model_of(arena, work, now->strategy, &why)};
    if (!first || !choice.now) return refuse(arena, why);
    add_known(&choice, modules, count);
    double time = layout_model_time(choice.now, rates);
    bool healthy = all_healthy(request);
    if (healthy && !request->seconds && find_known(&choice, request->base))
        return answer_of(&choice, find_known(&choice, request->base), first, time, request);
    const LayoutModel *from[] = {choice.now, first};
    for (int i = 0; !healthy && i < (base == now->strategy ? 1 : 2); i++) {
        add(&choice, candidate_same_groups(arena, from[i], rates), NULL, false);
        add(&choice, candidate_weighted(arena, from[i], rates), NULL, false);
        for (int fewer = 0; fewer <= count_slow(&choice); fewer++)
            add(&choice, candidate_regrouped(arena, from[i], rates, fewer), NULL, false);
    }
    if (request->seconds) add_found(&choice, request, healthy);
    if (request->seconds && !time_steps(&choice, request, &time))
        return refuse(arena, "the cluster file lacks a rate, so that no step can be simulated");
    return answer_of(&choice, choose_accepted(&choice, request), first, time, request);
}
