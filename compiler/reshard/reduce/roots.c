/* Reductions by messages: where the parts of reductions are complete first, and what their devices receive in any case. */
#include "reshard/reduce/merge.h"

int64_t extra_receipts(const Combining *combining, const Reduction *reduction)
{
    int64_t extra = task_of(combining, reduction)->source_count - 1 - reduction->holds;
    return extra > 0 ? extra : 0;
}

/* ---- roots ---- */

/* Adds to the loads what the holders of contributions, and of values that are handed on, will send about. */
static void estimate_sent(Combining *combining, const Reductions *reductions)
{
    Planner *planner = combining->planner;
    const Plan *plan = planner->plan;
    for (int s = 0; s < reductions->count; s++)
        for (int p = 0; p < task_of(combining, &reductions->at[s])->source_count; p++) {
            const Devices *holders = &task_of(combining, &reductions->at[s])->sources[p];
            int64_t bytes = task_of(combining, &reductions->at[s])->volume * task_element(plan, reductions->at[s].task);
            for (int h = 0; h < holders->count; h++)
                planner->sent[plan_slot(plan, holders->at[h])] += bytes / holders->count;
        }
    for (int g = 0; g < planner->transfers.count; g++) {
        const Transfer *transfer = &planner->transfers.at[g];
        for (int h = 0; h < transfer->holders.count; h++)
            planner->sent[plan_slot(plan, transfer->holders.at[h])] += segment_bytes(plan, &transfer->segment) / transfer->holders.count;
    }
}

/* Puts the reducers in the order of the contributions that they hold. */
static void sort_reducers(Combining *combining, Reduction *reduction)
{
    const Task *task = task_of(combining, reduction);
    Devices sorted = {.at = arena_array(combining->planner->arena, int, reduction->reducers.count)};
    Index *reducers = combining->reducers;
    index_devices(reducers, &reduction->reducers);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count; h++)
            if (index_find(reducers, task->sources[p].at[h]) >= 0)
                sorted.at[sorted.count++] = task->sources[p].at[h];
    reduction->reducers = sorted;
}

void choose_roots(Combining *combining, Reductions *reductions)
{
    Jobs jobs = {0};
    Arena *arena = combining->planner->arena;
    for (int s = 0; s < reductions->count; s++) {
        Reduction *reduction = &reductions->at[s];
        const Task *task = task_of(combining, reduction);
        if (!reduction->holds)
            continue;
        sort_reducers(combining, reduction);
        reduction->roots = arena_array(arena, int64_t, reduction->reducers.count);
        Job job = {.devices = reduction->reducers, .first = reduction->reducers.count, .least = task->volume, .grain = 1, .units = reduction->roots};
        job.unit = task_element(combining->planner->plan, reduction->task);
        array_push(arena, &jobs, job);
    }
    plan_count(combining->planner);
    estimate_sent(combining, reductions);
    balance_jobs(combining->planner, &jobs, 0, FEW_SWEEPS, combining->planner->sent);
}

/* ---- loads ---- */

int64_t count_receipts(Combining *combining, const Reductions *reductions)
{
    Planner *planner = combining->planner;
    const Plan *plan = planner->plan;
    int64_t total = 0;
    plan_count(planner);
    for (int g = 0; g < planner->transfers.count; g++) {
        const Transfer *transfer = &planner->transfers.at[g];
        for (int n = 0; n < transfer->receivers.count; n++)
            planner->received[plan_slot(plan, transfer->receivers.at[n])] += segment_bytes(plan, &transfer->segment);
    }
    for (int s = 0; s < reductions->count; s++) {
        const Task *task = task_of(combining, &reductions->at[s]);
        int64_t load = task->volume * task_element(plan, reductions->at[s].task);
        for (int w = 0; w < task->targets.count; w++)
            planner->received[plan_slot(plan, task->targets.at[w])] += load;
        total += load * extra_receipts(combining, &reductions->at[s]);
    }
    for (int i = 0; i < plan->device_count; i++)
        total += planner->received[i];
    return total;
}
