/* Kind hydraulis-batch: picks a batch's strategy and dispatches its sequences to pipelines. */
#include "planner/kinds/hydraulis/problem.h"
#include "planner/kinds/hydraulis/pack_sequences.h"
#include "planner/kinds/hydraulis/hydraulis.h"

#include <math.h>

/* The input: a batch and the strategies to pick from. */
typedef struct Task {
    Schemes schemes;
    int count;
    Strategy *strategies;
    Batch batch;
    int gpus; // number of devices of the largest strategy
} Task;

static Strategy strategy_read(Arena *arena, const Schemes *schemes, Field list, int *gpus) {
    static const char *const keys[] = {"tp", "pp", "count", NULL};
    enum { MOST = 1 << 16 };
    Strategy strategy = {arena_array(arena, int, schemes->count)};
    int sum = 0;
    for (int i = 0, count = field_count(list, 1); i < count; i++) {
        Field entry = field_at(list, i);
        field_keys(entry, keys);
        int tp = field_integer(field_get(entry, "tp"), 1, MOST),
            pp = field_integer(field_get(entry, "pp"), 1, MOST);
        int scheme = schemes_find(schemes, tp, pp),
            pipelines = field_integer(field_get(entry, "count"), 1, MOST);
        if (scheme < 0) {
            field_refuse(entry, "there is no scheme with tp %d and pp %d", tp, pp);
            continue;
        }
        strategy.pipelines[scheme] += pipelines;
        sum += pipelines * schemes->at[scheme].gpus;
    }
    *gpus = sum > *gpus ? sum : *gpus;
    return strategy;
}

/* Returns the most tokens that a pipeline of one of the strategies holds. */
static int longest_held(const Task *task) {
    int longest = 0;
    for (int i = 0; i < task->count; i++)
        for (int scheme = 0; scheme < task->schemes.count; scheme++)
            if (task->strategies[i].pipelines[scheme] && task->schemes.at[scheme].tokens > longest)
                longest = task->schemes.at[scheme].tokens;
    return longest;
}

/* Refuses a length that no pipeline holds. */
static void check_lengths(Field lengths, const int *at, int count, int held) {
    for (int i = 0; i < count; i++)
        if (at[i] > held)
            field_refuse(field_at(lengths, i),
                         "a sequence of %d tokens; the pipelines hold at most %d", at[i], held);
}

/* Reads schemes, strategies and the batch into *task. Returns false after an error. */
static bool task_read(Arena *arena, Field input, Task *task) {
    static const char *const keys[] = {"schemes", "strategies", "lengths", NULL};
    int count;
    field_keys(input, keys);
    task->schemes = schemes_read(arena, field_get(input, "schemes"));
    Field strategies = field_get(input, "strategies"), lengths = field_get(input, "lengths");
    task->count = field_count(strategies, 1);
    task->strategies = arena_array(arena, Strategy, task->count);
    task->gpus = 1;
    for (int i = 0; i < task->count; i++)
        task->strategies[i] =
            strategy_read(arena, &task->schemes, field_at(strategies, i), &task->gpus);
    int *at = field_integers(lengths, 1, 1, 1 << 28, &count);
    check_lengths(lengths, at, count, longest_held(task));
    if (!input_error(input)) task->batch = batch_create(arena, &task->schemes, at, count);
    return !input_error(input);
}

/* Returns the non-empty micro-batches of a pipeline as JSON. */
static json_t *microbatches_json(Arena *arena, const Batch *batch, int pipeline, int count,
                                 SequencePlaces places) {
    json_t **lists = arena_array(arena, json_t *, count), *all = json_array();
    for (int i = 0; i < batch->count; i++) {
        if (places.pipelines[i] != pipeline) continue;
        json_t **list = &lists[places.microbatches[i]];
        *list = *list ? *list : json_array();
        json_array_append_new(*list, json_integer(batch->numbers[i]));
    }
    for (int i = 0; i < count; i++)
        if (lists[i]) json_array_append_new(all, lists[i]);
    return all;
}

static json_t *plan_json(Arena *arena, const Task *task, Dispatcher *dispatcher, int strategy,
                         const Dispatch *dispatch) {
    SequencePlaces places = {arena_array(arena, int, task->batch.count),
                             arena_array(arena, int, task->batch.count)};
    json_t *list = json_array();
    dispatch_places(dispatcher, &task->batch, dispatch, places);
    double time = moves_make(arena, &task->schemes, &task->batch, dispatch, places);
    for (int p = 0; p < dispatch->count; p++) {
        const Scheme *scheme = &task->schemes.at[dispatch->schemes[p]];
        json_t *own = microbatches_json(arena, &task->batch, p, dispatch->microbatches[p], places);
        json_array_append_new(list, json_pack("{s:i,s:i,s:o}", "tp", scheme->tp, "pp", scheme->pp,
                                              "microbatches", own));
    }
    return json_pack("{s:i,s:o,s:f}", "strategy", strategy, "pipelines", list, "objective", time);
}

/* Returns the dispatch under a strategy; equal arguments give equal dispatches. */
static const Dispatch *find(Dispatcher *dispatcher, const Task *task, int strategy, int kicks) {
    Random random = {1};
    return dispatch_find(dispatcher, &task->strategies[strategy], &task->batch, &random, kicks);
}

/* Returns the strategy of the best dispatch; only strategies within 3% of the best get kicks. */
static int best_strategy(Arena *arena, Dispatcher *dispatcher, const Task *task, int kicks) {
    const double near = 1.03;
    double *times = arena_array(arena, double, task->count), first = INFINITY, least = INFINITY;
    int best = 0;
    for (int i = 0; i < task->count; i++)
        first = fmin(first, times[i] = find(dispatcher, task, i, 0)->time);
    for (int i = 0; i < task->count; i++) {
        double time = times[i] <= first * near ? find(dispatcher, task, i, kicks)->time : INFINITY;
        if (time < least) {
            least = time;
            best = i;
        }
    }
    return best;
}

json_t *hydraulis_batch_plan(Arena *arena, Field input, Budget *budget) {
    Task task;
    if (!task_read(arena, input, &task)) return NULL;
    Dispatcher *dispatcher = dispatcher_create(arena, &task.schemes, task.gpus, task.batch.count);
    int kicks = (int)budget_work(budget, 60, 120),
        best = best_strategy(arena, dispatcher, &task, kicks);
    const Dispatch *dispatch = find(dispatcher, &task, best, kicks);
    if (isinf(dispatch->time)) {
        field_refuse(field_get(input, "lengths"),
                     "no dispatch was found in which every sequence has room");
        return NULL;
    }
    return plan_json(arena, &task, dispatcher, best, dispatch);
}

/* Returns whether a pipeline of a strategy holds the longest sequence. */
static bool holds_longest(const Task *task, const Strategy *strategy) {
    for (int i = 0; i < task->schemes.count; i++)
        if (strategy->pipelines[i] && task->schemes.at[i].tokens >= task->batch.lengths[0])
            return true;
    return false;
}

json_t *hydraulis_batch_certify(Arena *arena, Field input, Budget *budget) {
    Task task;
    double least = INFINITY;
    (void)budget;
    if (!task_read(arena, input, &task)) return NULL;
    json_t *proofs = json_array();
    for (int i = 0; i < task.count; i++) {
        if (!holds_longest(&task, &task.strategies[i])) continue;
        BatchBound bound =
            batch_bound(arena, &task.schemes, &task.strategies[i], task.gpus, &task.batch);
        least = fmin(least, bound.time);
        json_object_set_new(bound.proof, "strategy", json_integer(i));
        json_array_append_new(proofs, bound.proof);
    }
    return json_pack("{s:f,s:{s:o}}", "bound", least, "proof", "strategies", proofs);
}
