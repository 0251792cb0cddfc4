/* Kind hydraulis: the strategies with the least mean time over batches drawn from the sample.
 *
 * A batch picks the strategy that is best for it, so the cost of a set is the mean of the batches'
 * least times. Local search finds strategies that are good for single batches; a set of them is
 * chosen greedily; then random changes of its strategies are kept if they make the set better. */
#include "planner/kinds/hydraulis/problem.h"
#include "planner/kinds/hydraulis/pack_sequences.h"
#include "planner/kinds/hydraulis/hydraulis.h"

#include <math.h>
#include <string.h>

enum { BATCHES = 40, TOKENS_A_DEVICE = 4096, STARTS = 20 };

/* A strategy and its time for each batch; INFINITY: too slow to matter for the batch. */
typedef struct Candidate {
    Strategy strategy;
    double times[BATCHES]; // ms
} Candidate;

typedef struct Search {
    Arena *arena;
    Schemes schemes;
    int gpus, most, longest; // devices; limit of strategies; tokens of the longest sequence
    Batch batches[BATCHES];
    Dispatcher *dispatcher;
    Random random;
    long work; // work of the whole search, in sequences dispatched
    const Budget *budget;
} Search;

/* Returns whether the search has done the fraction `part` of its work, or its time is over. */
static bool is_done(const Search *search, double part) {
    return (double)dispatcher_work(search->dispatcher) >= part * (double)search->work ||
           budget_spent(search->budget);
}

/* ---- reading the input ---- */

/* Draws a batch of TOKENS_A_DEVICE tokens a device from a sample; the last sequence is cut. */
static Batch draw_batch(Search *search, const int *sample, int count) {
    int tokens = search->gpus * TOKENS_A_DEVICE, drawn = 0,
        *lengths = arena_array(search->arena, int, tokens);
    while (tokens > 0) {
        int length = sample[random_below(&search->random, count)];
        lengths[drawn++] = length < tokens ? length : tokens;
        tokens -= length;
    }
    return batch_create(search->arena, &search->schemes, lengths, drawn);
}

static void check_lengths(Search *search, Field input, const int *sample, int count) {
    int held = 0;
    for (int i = 0; i < search->schemes.count; i++)
        if (search->schemes.at[i].gpus <= search->gpus && search->schemes.at[i].tokens > held)
            held = search->schemes.at[i].tokens;
    if (search->longest > held)
        field_refuse(field_get(input, "longest"),
                     "%d tokens; the schemes that %d devices have room for hold at most %d",
                     search->longest, search->gpus, held);
    for (int i = 0; i < count; i++)
        if (sample[i] > search->longest)
            field_refuse(field_at(field_get(input, "lengths"), i),
                         "%d tokens are more than the longest, %d", sample[i], search->longest);
}

/* Reads the input of plans and bounds. Returns the sample of lengths, or NULL after an error. */
static int *search_read(Search *search, Field input, int *count) {
    static const char *const keys[] = {"gpus", "strategies", "longest", "schemes", "lengths", NULL};
    field_keys(input, keys);
    search->gpus = field_integer(field_get(input, "gpus"), 1, 1 << 14);
    search->most = field_integer(field_get(input, "strategies"), 1, 1 << 10);
    search->longest = field_integer(field_get(input, "longest"), 1, 1 << 28);
    search->schemes = schemes_read(search->arena, field_get(input, "schemes"));
    int *sample = field_integers(field_get(input, "lengths"), 1, 1, 1 << 28, count);
    if (!input_error(input)) check_lengths(search, input, sample, *count);
    return input_error(input) ? NULL : sample;
}

/* ---- candidate strategies ---- */

static Candidate *candidate_create(Search *search) {
    Candidate *candidate = arena_new(search->arena, Candidate);
    candidate->strategy.pipelines = arena_array(search->arena, int, search->schemes.count);
    return candidate;
}

static void strategy_copy(const Search *search, Strategy *to, const Strategy *from) {
    memcpy(to->pipelines, from->pipelines, sizeof(int) * (size_t)search->schemes.count);
}

static int devices_left(const Search *search, const Strategy *strategy) {
    int left = search->gpus;
    for (int i = 0; i < search->schemes.count; i++)
        left -= strategy->pipelines[i] * search->schemes.at[i].gpus;
    return left;
}

static bool holds(const Search *search, const Strategy *strategy, int length) {
    for (int i = 0; i < search->schemes.count; i++)
        if (strategy->pipelines[i] && search->schemes.at[i].tokens >= length) return true;
    return false;
}

/* Adds random pipelines, often several of a scheme, until the devices left suffice for none. */
static void fill(Search *search, Strategy *strategy) {
    for (;;) {
        int left = devices_left(search, strategy), fitting = 0, pick = -1;
        for (int i = 0; i < search->schemes.count; i++)
            if (search->schemes.at[i].gpus <= left && random_below(&search->random, ++fitting) == 0)
                pick = i;
        if (pick < 0) return;
        strategy->pipelines[pick] +=
            1 + random_below(&search->random, left / search->schemes.at[pick].gpus);
    }
}

/* Removes a few pipelines of one or two schemes and adds others. */
static void mutate(Search *search, Strategy *strategy) {
    for (int turn = 1 + random_below(&search->random, 2); turn > 0; turn--) {
        int used = 0, pick = 0;
        for (int i = 0; i < search->schemes.count; i++)
            if (strategy->pipelines[i] && random_below(&search->random, ++used) == 0) pick = i;
        strategy->pipelines[pick] -=
            used ? 1 + random_below(&search->random,
                                    strategy->pipelines[pick] < 3 ? strategy->pipelines[pick] : 3)
                 : 0;
    }
    fill(search, strategy);
}

/* Returns a batch's ms under a strategy; INFINITY: no memory, or an estimate not below `most`. */
static double time_below(Search *search, const Strategy *strategy, int batch, double most) {
    const double slack = 0.97;
    const Batch *of = &search->batches[batch];
    if (!holds(search, strategy, of->lengths[0]) ||
        slack * dispatch_smooth(search->dispatcher, strategy, of) >= most)
        return INFINITY;
    return dispatch_find(search->dispatcher, strategy, of, &search->random, 0)->time;
}

/* Returns a strategy for one batch, found by local search until `part` of the work is done. */
static Candidate *search_batch(Search *search, int batch, double part) {
    Candidate *best = candidate_create(search), *next = candidate_create(search);
    double least = INFINITY;
    while (!is_done(search, part)) {
        strategy_copy(search, &next->strategy, &best->strategy);
        mutate(search, &next->strategy);
        double time = time_below(search, &next->strategy, batch, least);
        if (time < least) {
            least = time;
            Candidate *swap = best;
            best = next;
            next = swap;
        }
    }
    return best;
}

/* ---- sets of strategies ---- */

typedef struct Set {
    int count;
    Candidate **at;
} Set;

/* Returns the least time of a batch under a set's candidates except `without` (-1: under all). */
static double least_time(const Set *set, int batch, int without) {
    double least = INFINITY;
    for (int i = 0; i < set->count; i++)
        if (i != without) least = fmin(least, set->at[i]->times[batch]);
    return least;
}

static double mean_time(const Set *set) {
    double sum = 0;
    for (int batch = 0; batch < BATCHES; batch++) sum += least_time(set, batch, -1) / BATCHES;
    return sum;
}

/* Returns the mean time of a set in which *candidate replaces entry `place`; INFINITY if it is not
 * below `most`. Sets the candidate's times as far as it computes them. */
static double mean_with(Search *search, const Set *set, int place, Candidate *candidate,
                        double most) {
    double sum = 0;
    for (int batch = 0; batch < BATCHES; batch++) {
        double others = least_time(set, batch, place);
        candidate->times[batch] = time_below(search, &candidate->strategy, batch, others);
        sum += fmin(others, candidate->times[batch]) / BATCHES;
        if (sum >= most) return INFINITY;
    }
    return sum;
}

/* Returns whether a set holds the longest sequence when `candidate` replaces entry `place`. */
static bool set_holds(const Search *search, const Set *set, int place, const Candidate *candidate) {
    for (int i = 0; i < set->count; i++)
        if (holds(search, i == place ? &candidate->strategy : &set->at[i]->strategy,
                  search->longest))
            return true;
    return false;
}

/* Returns a safe strategy: pipelines of the smallest scheme that holds the longest sequence. */
static Candidate *safe_candidate(Search *search) {
    Candidate *safe = candidate_create(search);
    int best = -1;
    for (int i = 0; i < search->schemes.count; i++)
        if (search->schemes.at[i].tokens >= search->longest &&
            search->schemes.at[i].gpus <= search->gpus &&
            (best < 0 || search->schemes.at[i].gpus < search->schemes.at[best].gpus))
            best = i;
    safe->strategy.pipelines[best] = search->gpus / search->schemes.at[best].gpus;
    for (int batch = 0; batch < BATCHES; batch++)
        safe->times[batch] = time_below(search, &safe->strategy, batch, INFINITY);
    return safe;
}

/* Chooses candidates that lower the mean most, greedily; the first holds the longest sequence. */
static void choose(Search *search, Set *set, Candidate **pool, int count) {
    set->at[set->count++] = safe_candidate(search);
    while (set->count < search->most) {
        int best = -1;
        double least = mean_time(set);
        for (int i = 0; i < count; i++) {
            set->at[set->count++] = pool[i];
            double mean = mean_time(set);
            set->count--;
            if (mean < least) {
                least = mean;
                best = i;
            }
        }
        if (best < 0) return;
        set->at[set->count++] = pool[best];
    }
}

/* Changes the set's strategies while there is work left, and keeps changes that are better. */
static void improve(Search *search, Set *set) {
    Candidate *next = candidate_create(search);
    double least = mean_time(set);
    while (!is_done(search, 1)) {
        int place = random_below(&search->random, set->count),
            from = random_below(&search->random, 4) ? place
                                                    : random_below(&search->random, set->count);
        strategy_copy(search, &next->strategy, &set->at[from]->strategy);
        mutate(search, &next->strategy);
        if (!set_holds(search, set, place, next)) continue;
        double mean = mean_with(search, set, place, next, least);
        if (mean >= least) continue;
        Candidate *old = set->at[place];
        set->at[place] = next;
        next = old;
        for (int batch = 0; batch < BATCHES; batch++)
            for (int i = 0; i < set->count; i++)
                if (isinf(set->at[i]->times[batch]))
                    set->at[i]->times[batch] =
                        time_below(search, &set->at[i]->strategy, batch, INFINITY);
        least = mean_time(set);
    }
}

/* Returns the set of strategies for the batches that were drawn from the sample. */
static Set find_strategies(Search *search) {
    Set set = {0, arena_array(search->arena, Candidate *, search->most)};
    Candidate *pool[STARTS];
    for (int i = 0; i < STARTS; i++)
        pool[i] = search_batch(search, i % BATCHES, 0.3 * (i + 1) / STARTS);
    for (int i = 0; i < STARTS; i++)
        for (int batch = 0; batch < BATCHES; batch++)
            pool[i]->times[batch] = time_below(search, &pool[i]->strategy, batch, INFINITY);
    choose(search, &set, pool, STARTS);
    improve(search, &set);
    return set;
}

/* ---- the plan and the bound as JSON ---- */

static json_t *strategy_json(const Search *search, const Strategy *strategy) {
    json_t *list = json_array();
    for (int i = 0; i < search->schemes.count; i++)
        if (strategy->pipelines[i])
            json_array_append_new(list, json_pack("{s:i,s:i,s:i}", "tp", search->schemes.at[i].tp,
                                                  "pp", search->schemes.at[i].pp, "count",
                                                  strategy->pipelines[i]));
    return list;
}

json_t *hydraulis_plan(Arena *arena, Field input, Budget *budget) {
    Search search = {.arena = arena, .random = {budget->seed + 1}, .budget = budget};
    int count, *sample = search_read(&search, input, &count), most = 0;
    if (!sample) return NULL;
    for (int i = 0; i < BATCHES; i++) {
        search.batches[i] = draw_batch(&search, sample, count);
        most = search.batches[i].count > most ? search.batches[i].count : most;
    }
    search.work = budget_work(budget, 200000000, 8000000);
    search.dispatcher = dispatcher_create(arena, &search.schemes, search.gpus, most);
    Set set = find_strategies(&search);
    json_t *strategies = json_array();
    for (int i = 0; i < set.count; i++)
        json_array_append_new(strategies, strategy_json(&search, &set.at[i]->strategy));
    return json_pack("{s:o,s:f}", "strategies", strategies, "objective", mean_time(&set));
}

json_t *hydraulis_certify(Arena *arena, Field input, Budget *budget) {
    Search search = {.arena = arena, .budget = budget};
    int count, *sample = search_read(&search, input, &count);
    if (!sample) return NULL;
    Batch batch = batch_create(arena, &search.schemes, sample, count);
    BatchBound bound = batch_bound(arena, &search.schemes, NULL, search.gpus, &batch);
    return json_pack("{s:f,s:o}", "bound", bound.time, "proof", bound.proof);
}
