/* Chooses among candidate strategies around stragglers. same_groups.c and regroup.c make them;
 * session/control/balance.c asks for them. */
#include "planner/rebalance/rebalance.h"

#include "planner/rebalance/candidates.h"

#include <math.h>
#include <string.h>

/* A candidate strategy, the predicted time of a step, and the bytes that a switch moves. */
typedef struct Candidate {
    LayoutModel *laid;
    const Strategy *known; // an existing strategy; NULL: it is new
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

static void add(Choice *choice, LayoutModel *laid, const Strategy *known) {
    if (!laid) return;
    if (!known) minimize_moves(choice->arena, choice->now, laid, choice->rates);
    array_push(choice->arena, &choice->list,
               (Candidate){laid, known, layout_model_time(laid, choice->rates),
                           layout_model_moves(choice->now, laid), false});
}

static Module *module_under(Module *const *modules, int count, const char *name) {
    for (int m = 0; m < count; m++)
        if (modules[m]->strategy && !strcmp(modules[m]->strategy->name, name)) return modules[m];
    return NULL;
}

/* Adds existing strategies with equal values of shape variables, under which training can go on. */
static void add_known(Choice *choice, Module *const *modules, int count) {
    const char *why;
    for (int m = 0; m < count; m++) {
        const Strategy *strategy = modules[m]->strategy;
        if (strategy && shapes_same(&strategy->shapes, &choice->now->like->shapes) &&
            strategy_device_count(strategy) == choice->work->device_count)
            add(choice, layout_model_of(choice->arena, choice->work, strategy, &why), strategy);
    }
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
           !request->accepts(request->state,
                             layout_model_strategy(choice->arena, best->laid, request->name))) {
        best->refused = true;
        best = choose(choice);
    }
    return best;
}

static const Candidate *find_known(const Choice *choice, const char *name) {
    for (int i = 0; i < choice->list.count; i++)
        if (choice->list.at[i].known && !strcmp(choice->list.at[i].known->name, name))
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

static BalanceAnswer *refuse(Arena *arena, const char *error) {
    BalanceAnswer *answer = arena_new(arena, BalanceAnswer);
    answer->error = error;
    return answer;
}

static BalanceAnswer *answer_of(const Choice *choice, const Candidate *taken,
                                const LayoutModel *base, const BalanceRequest *request) {
    const double start = 0.05; // seconds that any switch takes
    BalanceAnswer *answer = arena_new(choice->arena, BalanceAnswer);
    *answer = (BalanceAnswer){
        .strategy = taken->known ? taken->known
                                 : layout_model_strategy(choice->arena, taken->laid, request->name),
        .made = !taken->known,
        .now = layout_model_time(choice->now, choice->rates),
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
    if (all_healthy(request) && find_known(&choice, request->base))
        return answer_of(&choice, find_known(&choice, request->base), first, request);
    const LayoutModel *from[] = {choice.now, first};
    for (int i = 0; i < (base == now->strategy ? 1 : 2); i++) {
        add(&choice, candidate_same_groups(arena, from[i], rates), NULL);
        add(&choice, candidate_weighted(arena, from[i], rates), NULL);
        for (int fewer = 0; fewer <= count_slow(&choice); fewer++)
            add(&choice, candidate_regrouped(arena, from[i], rates, fewer), NULL);
    }
    return answer_of(&choice, choose_accepted(&choice, request), first, request);
}
