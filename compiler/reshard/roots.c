/* Reductions by messages: where the parts of sums are complete first, and what their devices receive in any case. */
#include "reshard/merge.h"

int64_t extra_receipts(const Merges *merges, const Sum *sum)
{
    int64_t extra = task_of(merges, sum)->source_count - 1 - sum->holds;
    return extra > 0 ? extra : 0;
}

/* ---- roots ---- */

/* Adds to the loads what the holders of contributions, and of values that are handed on, will send about. */
static void estimate_sent(Merges *merges, const Sums *sums)
{
    Builder *builder = merges->builder;
    const Plan *plan = builder->plan;
    for (int s = 0; s < sums->count; s++)
        for (int p = 0; p < task_of(merges, &sums->at[s])->source_count; p++) {
            const Devices *holders = &task_of(merges, &sums->at[s])->sources[p];
            int64_t bytes = task_of(merges, &sums->at[s])->volume * task_element(plan, sums->at[s].task);
            for (int h = 0; h < holders->count; h++)
                builder->sent[plan_slot(plan, holders->at[h])] += bytes / holders->count;
        }
    for (int g = 0; g < builder->gifts.count; g++) {
        const Gift *gift = &builder->gifts.at[g];
        for (int h = 0; h < gift->holders.count; h++)
            builder->sent[plan_slot(plan, gift->holders.at[h])] += segment_bytes(plan, &gift->segment) / gift->holders.count;
    }
}

/* Puts the reducers in the order of the contributions that they hold. */
static void sort_reducers(Merges *merges, Sum *sum)
{
    const Task *task = task_of(merges, sum);
    Devices sorted = {.at = arena_array(merges->builder->arena, int, sum->reducers.count)};
    Index *reducers = merges->reducers;
    index_devices(reducers, &sum->reducers);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count; h++)
            if (index_find(reducers, task->sources[p].at[h]) >= 0)
                sorted.at[sorted.count++] = task->sources[p].at[h];
    sum->reducers = sorted;
}

void choose_roots(Merges *merges, Sums *sums)
{
    Works works = {0};
    Arena *arena = merges->builder->arena;
    for (int s = 0; s < sums->count; s++) {
        Sum *sum = &sums->at[s];
        const Task *task = task_of(merges, sum);
        if (!sum->holds)
            continue;
        sort_reducers(merges, sum);
        sum->roots = arena_array(arena, int64_t, sum->reducers.count);
        Work work = {.devices = sum->reducers, .first = sum->reducers.count, .least = task->volume, .grain = 1, .units = sum->roots};
        work.unit = task_element(merges->builder->plan, sum->task);
        array_push(arena, &works, work);
    }
    plan_count(merges->builder);
    estimate_sent(merges, sums);
    balance_works(merges->builder, &works, 0, FEW_SWEEPS, merges->builder->sent);
}

/* ---- loads ---- */

int64_t count_receipts(Merges *merges, const Sums *sums)
{
    Builder *builder = merges->builder;
    const Plan *plan = builder->plan;
    int64_t total = 0;
    plan_count(builder);
    for (int g = 0; g < builder->gifts.count; g++) {
        const Gift *gift = &builder->gifts.at[g];
        for (int n = 0; n < gift->needers.count; n++)
            builder->received[plan_slot(plan, gift->needers.at[n])] += segment_bytes(plan, &gift->segment);
    }
    for (int s = 0; s < sums->count; s++) {
        const Task *task = task_of(merges, &sums->at[s]);
        int64_t load = task->volume * task_element(plan, sums->at[s].task);
        for (int w = 0; w < task->wanted.count; w++)
            builder->received[plan_slot(plan, task->wanted.at[w])] += load;
        total += load * extra_receipts(merges, &sums->at[s]);
    }
    for (int i = 0; i < plan->device_count; i++)
        total += builder->received[i];
    return total;
}
