/* Decides by annealing which devices form tensor-parallel groups, which groups form pipelines. */
#include "planner/kinds/malleus/problem.h"

#include "planner/kinds/budget.h"

#include <math.h>
#include <string.h>

/* A state of the search: the groups, each pipeline's trades, and the step's time that follows. */
typedef struct State {
    Grouping grouping;
    Pipeline *pipelines;
    double time;   // time of a step; INFINITY when a pipeline cannot hold the layers
    double energy; // the quantity that annealing minimises; see weigh
} State;

typedef struct Search {
    const Malleus *malleus;
    Random random;
    State state, next, best;
    double penalty; // unit of the energy when layers do not fit (weigh): above any step's time
    bool *changed;  // by owner (pipelines, then idle): whether the move changed its groups
} Search;

int grouping_stages(const Malleus *malleus, const Grouping *grouping, int owner,
                    MalleusStage *stages) {
    int count = 0;
    for (int i = 0; i < grouping->count; i++) {
        const Group *group = &grouping->groups[i];
        if (group->owner == owner && count < MOST_STAGES)
            stages[count++] = (MalleusStage){
                malleus_rate(malleus, group->node, group->first, group->size), group->size, i, 0};
    }
    return count;
}

/* ---- states and their energy ---- */

static State state_create(Arena *arena, const Malleus *malleus) {
    int devices = malleus->node_count * malleus->per_node;
    return (State){{0, arena_array(arena, Group, devices)},
                   arena_array(arena, Pipeline, malleus->pipelines),
                   INFINITY,
                   INFINITY};
}

static void state_copy(const Malleus *malleus, State *to, const State *from) {
    memcpy(to->grouping.groups, from->grouping.groups,
           sizeof(Group) * (size_t)from->grouping.count);
    memcpy(to->pipelines, from->pipelines, sizeof(Pipeline) * (size_t)malleus->pipelines);
    to->grouping.count = from->grouping.count;
    to->time = from->time;
    to->energy = from->energy;
}

/* Returns the unit of the penalty: the fastest device's rate, or 2% of the slowest's if more. */
static double usual_rate(const Malleus *malleus) {
    const double part = 0.02;
    double least = INFINITY, most = 0;
    for (int node = 0; node < malleus->node_count; node++) {
        least = fmin(least, malleus->nodes[node].rates[0]);
        most = fmax(most, malleus->nodes[node].rates[malleus->per_node - 1]);
    }
    return fmax(least, part * most);
}

/* Computes the time and the energy of a state some of whose pipelines have changed.
 *
 * The energy is the time plus a small share of the time with divided micro-batches, which changes
 * even when the slowest pipeline does not. If a pipeline cannot hold its layers, the energy is
 * search->penalty times 1 + the number of layers that do not fit. */
static void weigh(const Search *search, State *state) {
    const Malleus *malleus = search->malleus;
    const double weight = 0.1;
    double smooth, lacking = 0;
    for (int p = 0; p < malleus->pipelines; p++) {
        MalleusStage stages[MOST_STAGES];
        if (search->changed[p])
            pipeline_weigh(malleus, stages, grouping_stages(malleus, &state->grouping, p, stages),
                           &state->pipelines[p]);
        lacking += state->pipelines[p].trade_count ? 0 : state->pipelines[p].lacking;
    }
    state->time = pipelines_share(malleus, state->pipelines, malleus->pipelines, NULL, &smooth);
    state->energy =
        isinf(state->time) ? search->penalty * (1 + lacking) : state->time + weight * smooth;
}

/* ---- the first state ---- */

/* Appends the paper's groups of a node to `grouping`: those with the largest sum of speeds 1 / y,
 * found from the fastest device on. Each halving of a group multiplies its speed by 0.8, because
 * small groups hold few layers. The paper prefers full groups, too. */
static void group_node(Arena *arena, const Malleus *malleus, int node, Grouping *grouping) {
    int count = malleus->per_node, *last = arena_array(arena, int, count + 1);
    double *most = arena_array(arena, double, count + 1);
    for (int end = 1; end <= count; end++)
        for (int size = 0; size < malleus->sizes; size++) {
            int first = end - (malleus->tp >> size);
            double speed =
                first < 0 ? -1
                          : most[first] + pow(0.8, size) / malleus_rate(malleus, node, first, size);
            if (speed > most[end] * (1 + 1e-12)) {
                most[end] = speed;
                last[end] = size;
            }
        }
    for (int end = count; end > 0; end -= malleus->tp >> last[end])
        grouping->groups[grouping->count++] =
            (Group){node, end - (malleus->tp >> last[end]), last[end], malleus->pipelines};
}

/* Deals the groups to the pipelines one by one, the fastest first. Groups that are left when all
 * pipelines have the most stages allowed stay idle. */
static void deal(const Malleus *malleus, Grouping *grouping) {
    int most = malleus->most_stages < malleus->layers ? malleus->most_stages : malleus->layers;
    int share = malleus->microbatches / malleus->pipelines, stages = most < share ? most : share;
    for (int turn = 0; turn < stages * malleus->pipelines && turn < grouping->count; turn++) {
        Group *best = NULL;
        double least = INFINITY;
        for (int i = 0; i < grouping->count; i++) {
            Group *group = &grouping->groups[i];
            double rate = malleus_rate(malleus, group->node, group->first, group->size);
            if (group->owner == malleus->pipelines && rate < least) {
                least = rate;
                best = group;
            }
        }
        best->owner = turn % malleus->pipelines;
    }
}

/* Reverses the groups from `begin` on, as group_node appends a node's groups in reverse. */
static void turn_round(Grouping *grouping, int begin) {
    for (int i = begin, j = grouping->count - 1; i < j; i++, j--) {
        Group swap = grouping->groups[i];
        grouping->groups[i] = grouping->groups[j];
        grouping->groups[j] = swap;
    }
}

static void begin(Arena *arena, Search *search) {
    const Malleus *malleus = search->malleus;
    Grouping *grouping = &search->state.grouping;
    for (int node = 0; node < malleus->node_count; node++) {
        int first = grouping->count;
        group_node(arena, malleus, node, grouping);
        turn_round(grouping, first);
    }
    deal(malleus, grouping);
    memset(search->changed, true, (size_t)malleus->pipelines + 1);
    weigh(search, &search->state);
}

/* ---- moves: each returns false when it finds nothing to change ---- */

static double rate_of(const Search *search, const Group *group) {
    return malleus_rate(search->malleus, group->node, group->first, group->size);
}

static Group *pick(Search *search) {
    return &search->next.grouping
                .groups[random_below(&search->random, search->next.grouping.count)];
}

/* Moves a group to another pipeline, or makes it idle. */
static bool move_over(Search *search) {
    Group *group = pick(search);
    int owner = random_below(&search->random, search->malleus->pipelines);
    owner += owner >= group->owner;
    search->changed[owner] = search->changed[group->owner] = true;
    group->owner = owner;
    return true;
}

/* Swaps the owners of two groups of different size or rate. */
static bool move_swap(Search *search) {
    Group *a = pick(search), *b = pick(search);
    if (a->owner == b->owner || (a->size == b->size && rate_of(search, a) == rate_of(search, b)))
        return false;
    int owner = a->owner;
    a->owner = b->owner;
    b->owner = owner;
    search->changed[a->owner] = search->changed[b->owner] = true;
    return true;
}

/* Splits a group into halves; the second half may go to another pipeline or become idle. */
static bool move_split(Search *search) {
    Grouping *grouping = &search->next.grouping;
    Group *group = pick(search);
    if (group->size == search->malleus->sizes - 1) return false;
    memmove(group + 2, group + 1,
            sizeof(Group) * (size_t)(grouping->groups + grouping->count - group - 1));
    grouping->count++;
    group->size++;
    group[1] = group[0];
    group[1].first += search->malleus->tp >> group->size;
    group[1].owner = random_below(&search->random, 2)
                         ? group->owner
                         : random_below(&search->random, search->malleus->pipelines + 1);
    search->changed[group[0].owner] = search->changed[group[1].owner] = true;
    return true;
}

/* Returns the next group in the node; NULL after the last one. */
static Group *next_of(Search *search, Group *group) {
    const Grouping *grouping = &search->next.grouping;
    return group + 1 < grouping->groups + grouping->count && group[1].node == group->node
               ? group + 1
               : NULL;
}

/* Merges two neighbours of equal size into one group, which one of their pipelines gets. */
static bool move_merge(Search *search) {
    Grouping *grouping = &search->next.grouping;
    Group *group = pick(search), *other = next_of(search, group);
    if (!other || other->size != group->size || group->size == 0) return false;
    search->changed[group->owner] = search->changed[other->owner] = true;
    group->owner = random_below(&search->random, 2) ? group->owner : other->owner;
    group->size--;
    memmove(other, other + 1,
            sizeof(Group) * (size_t)(grouping->groups + grouping->count - other - 1));
    grouping->count--;
    return true;
}

/* Swaps two neighbours of unequal size, so that the smaller group gets faster or slower devices. */
static bool move_turn(Search *search) {
    Group *group = pick(search), *other = next_of(search, group);
    if (!other || other->size == group->size) return false;
    Group swap = *group;
    *group = (Group){swap.node, swap.first, other->size, other->owner};
    *other = (Group){swap.node, swap.first + (search->malleus->tp >> group->size), swap.size,
                     swap.owner};
    search->changed[group->owner] = search->changed[other->owner] = true;
    return true;
}

/* Makes a random move in search->next. Returns false if the move changes no group. */
static bool move(Search *search) {
    static bool (*const moves[])(Search *) = {move_swap, move_swap,  move_swap,  move_over,
                                              move_over, move_split, move_merge, move_turn};
    memset(search->changed, false, (size_t)search->malleus->pipelines + 1);
    return moves[random_below(&search->random, sizeof moves / sizeof *moves)](search);
}

/* ---- annealing ---- */

/* Tries a move and keeps it if the energy falls, or by chance if it rises little (Metropolis). */
static void step(Search *search, double temperature) {
    const Malleus *malleus = search->malleus;
    state_copy(malleus, &search->next, &search->state);
    if (!move(search)) return;
    weigh(search, &search->next);
    double worse = search->next.energy - search->state.energy;
    if (worse > 0 && random_unit(&search->random) >= exp(-worse / temperature)) return;
    State swap = search->state;
    search->state = search->next;
    search->next = swap;
    if (search->state.time < search->best.time) state_copy(malleus, &search->best, &search->state);
}

/* Anneals from the best state; the temperature falls from `hot` to 0.0001 times its energy. */
static void anneal(Search *search, double hot, long steps, const Budget *budget) {
    const double cold = 0.0001;
    state_copy(search->malleus, &search->state, &search->best);
    double scale = search->best.energy;
    for (long i = 0; i < steps; i++) {
        if (i % 1024 == 0 && budget_spent(budget)) return;
        step(search, scale * hot * pow(cold / hot, (double)i / (double)steps));
    }
}

/* Returns how many moves are tried: fewer on large clusters, where each takes longer. */
static long usual_steps(const Malleus *malleus) {
    const double most = 200000, devices = 320;
    return (long)(most * fmin(1, devices / (malleus->node_count * malleus->per_node)));
}

/* Anneals from the paper's groups; on small clusters, where each device matters, then also from a
 * temperature at which all states are equally likely. */
Grouping malleus_search(Arena *arena, const Malleus *malleus, const Budget *budget, double *time) {
    enum { DESCENTS = 4, SMALL = 32 };
    const double warm = 0.03, hottest = 1;
    bool small = malleus->node_count * malleus->per_node <= SMALL;
    Search search = {.malleus = malleus,
                     .random = {budget->seed + 1},
                     .changed = arena_array(arena, bool, malleus->pipelines + 1)};
    search.penalty = 100 * usual_rate(malleus) * malleus->layers * malleus->microbatches *
                     malleus->slowdown[malleus->sizes - 1];
    search.state = state_create(arena, malleus);
    search.next = state_create(arena, malleus);
    search.best = state_create(arena, malleus);
    begin(arena, &search);
    state_copy(malleus, &search.best, &search.state);
    long steps = budget_work(budget, usual_steps(malleus), 100000) / DESCENTS;
    for (int i = 0; i < DESCENTS; i++) anneal(&search, warm, steps, budget);
    for (int i = 0; i < DESCENTS && small; i++) anneal(&search, hottest, steps, budget);
    *time = search.best.time;
    return search.best.grouping;
}
