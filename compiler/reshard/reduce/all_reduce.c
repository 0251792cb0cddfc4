/* Recognises all-reduces and makes their steps. For pipelines of different tp degrees,
 * intersection/intersection.h cuts a gradient where any pipeline does, and each part is reduced by
 * itself. Ranks run an all-reduce in runtime/exchange: collective_rounds.c, where each rank reduces
 * a part (no ring, no tree), or mpi.c; on GPUs by nccl.cu. order/flat_or_hierarchical.c decides
 * whether it is flat or goes by hosts. */
#include "reshard/reduce/reduce.h"
#include "reshard/plan_builder.h"
#include "support/intern.h"

#include <stdlib.h>

/* Returns the number of holders of each contribution if it is the same for all; else 0. */
static int holders_each(const Task *task) {
    int each = task->sources[0].count;
    for (int p = 1; p < task->source_count; p++)
        if (task->sources[p].count != each) return 0;
    return each;
}

Devices holder_group(PlanBuilder *planner, const Task *task, int replica) {
    Devices group = {.at = arena_array(planner->arena, int, task->source_count),
                     .count = task->source_count};
    for (int p = 0; p < task->source_count; p++)
        group.at[p] = task->sources[p].at[replica % task->sources[p].count];
    sort_devices(group.at, group.count);
    return group;
}

/* Returns whether groups of one holder of each contribution may each reduce and keep the value.
 * Several groups are sure to get the same bits only if there are two contributions. `targets`
 * indexes the task's targets. */
static bool is_all_reduce(const PlanBuilder *planner, const Task *task, const Index *targets) {
    int each = holders_each(task);
    if (!each || each * task->source_count != task->targets.count ||
        (each > 1 && task->source_count > 2))
        return false;
    for (int p = 0; p < task->source_count; p++)
        for (int i = 0; i < each; i++)
            if (index_find(targets, task->sources[p].at[i]) < 0) return false;
    return may_collect(planner, &task->targets);
}

/* Returns the all-reduce of a group for a bucket, new or `known` (1 + its index, by group). */
static Step *all_reduce_step(PlanBuilder *planner, Intern *known, Devices group, int bucket) {
    Plan *plan = planner->plan;
    intptr_t *number = intern_slot(known, group.at, sizeof *group.at * (size_t)group.count);
    if (*number) {
        Step *last = &plan->steps.at[*number - 1];
        if (plan->tasks.at[last->parts->at[0].task].bucket == bucket) return last;
    }
    Step *step = add_step(planner, HT_ALL_REDUCE);
    step->group = group;
    step->parts = arena_new(planner->arena, Segments);
    *number = plan->steps.count;
    return step;
}

Tasks add_all_reduces(PlanBuilder *planner, const Tasks *tasks) {
    const Plan *plan = planner->plan;
    Tasks rest = {0};
    Index *targets = index_create(planner);
    Intern *known = intern_create(planner->arena);
    for (int i = 0; i < tasks->count; i++) {
        int t = tasks->at[i];
        const Task *task = &plan->tasks.at[t];
        index_devices(targets, &task->targets);
        bool all = task->source_count > 1 && is_all_reduce(planner, task, targets);
        for (int r = 0; r < task->sources[0].count && all; r++) {
            Step *step =
                all_reduce_step(planner, known, holder_group(planner, task, r), task->bucket);
            array_push(planner->arena, step->parts, task_segment(plan, t));
        }
        if (!all) array_push(planner->arena, &rest, t);
    }
    return rest;
}
