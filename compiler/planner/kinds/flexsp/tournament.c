/* A tournament of annealings decides which numbers of micro-batches and starts get most work.
 *
 * Round 1: the starts of every number of micro-batches anneal with equal work. Round 2: the KEPT
 * best states of each number anneal further, cooler and with more work each. Round 3: so does the
 * best third of all states. */
#include "planner/kinds/flexsp/anneal_groups.h"

#include <math.h>

enum { ROUNDS = 3, FILLS = 4, BATCHES = 2, SEEDS = 2, KEPT = 3, SHRINK = 3 };

static const double HOT = 0.001;

/* Sorts states by their best time; states of equal time keep their order. */
static void best_first(FlexspState **states, int count) {
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && flexsp_best(states[k]) < flexsp_best(states[k - 1]); k--) {
            FlexspState *worse = states[k - 1];
            states[k - 1] = states[k];
            states[k] = worse;
        }
}

/* Anneals every state with an equal part of `work`, then sorts the best to the front. */
static void round_play(FlexspState **states, int count, int round, double work) {
    for (int i = 0; i < count; i++)
        flexsp_anneal(states[i], ldexp(HOT, -round), (int64_t)(work / count));
    best_first(states, count);
}

/* Returns the winner over BATCHES numbers of micro-batches from `least` on. In the first round only
 * starts of the same number compete. */
static FlexspState *tournament(Arena *arena, const Flexsp *q, int least, int64_t work,
                               uint64_t seed) {
    static const double fills[FILLS] = {1, 0.96, 0.92, 0.86};
    FlexspState *states[BATCHES * KEPT], *beginning[FILLS * SEEDS];
    int count = BATCHES * KEPT;
    for (int extra = 0; extra < BATCHES; extra++) {
        for (int f = 0; f < FILLS * SEEDS; f++)
            beginning[f] = flexsp_state(arena, q, least + extra, fills[f % FILLS],
                                        (seed << 8) + (uint64_t)(extra * FILLS * SEEDS + f));
        round_play(beginning, FILLS * SEEDS, 0, (double)work / ROUNDS / BATCHES);
        for (int k = 0; k < KEPT; k++) states[extra * KEPT + k] = beginning[k];
    }
    for (int round = 1; round < ROUNDS; round++) {
        round_play(states, count, round, (double)work / ROUNDS);
        count = (count + SHRINK - 1) / SHRINK;
    }
    return states[0];
}

FlexspPlan *flexsp_plan(Arena *arena, const Flexsp *q, int64_t work, uint64_t seed) {
    int least = flexsp_bound(q).batches;
    FlexspState *winner = tournament(arena, q, least, work, seed);
    while (!isfinite(flexsp_best(winner)))
        winner = tournament(arena, q, least += BATCHES, work / 4, seed);
    return flexsp_state_plan(arena, winner);
}
