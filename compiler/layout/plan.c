/* The planner: bundles become tasks, tasks become steps, and the steps are counted, named and priced. */
#include "layout/plan_build.h"

#include <stdlib.h>
#include <string.h>

/* ---- devices ---- */

static int compare_ints(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

static void collect_devices(Plan *plan)
{
    int counts[2], *devices;
    const int *lists[2];
    for (int side = 0; side < 2; side++)
        lists[side] = layout_devices(plan->arena, plan->cells->side[side].layout, &counts[side]);
    devices = arena_array(plan->arena, int, counts[0] + counts[1]);
    memcpy(devices, lists[0], sizeof(int) * (size_t)counts[0]);
    memcpy(devices + counts[0], lists[1], sizeof(int) * (size_t)counts[1]);
    qsort(devices, (size_t)(counts[0] + counts[1]), sizeof *devices, compare_ints);
    for (int i = 0; i < counts[0] + counts[1]; i++)
        if (!i || devices[i] != devices[plan->device_count - 1])
            devices[plan->device_count++] = devices[i];
    plan->devices = devices;
}

int plan_slot(const Plan *plan, int device)
{
    int low = 0, high = plan->device_count - 1, dense = high < 0 ? -1 : device - plan->devices[0];
    if (dense >= 0 && dense <= high && plan->devices[dense] == device)
        return dense;
    while (low < high) {
        int middle = (low + high) / 2;
        if (plan->devices[middle] < device)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->device_count && plan->devices[low] == device ? low : -1;
}

/* ---- in place ---- */

/* Whether a device stores a bundle on both sides, and in the same way. */
static bool stays_in_place(const Plan *plan, const Bundle *bundle, int device)
{
    const Cells *cells = plan->cells;
    int from = cells_piece_of(cells, SIDE_FROM, device), to = cells_piece_of(cells, SIDE_TO, device);
    if (from < 0 || to < 0)
        return false;
    if (cells->side[0].pieces[from].region->volume != cells->side[1].pieces[to].region->volume)
        return false;
    bool held = false;
    for (int h = 0; h < bundle->holder_count[SIDE_FROM] && !held; h++)
        held = bundle->holders[SIDE_FROM][h] == from;
    for (int c = 0; c < bundle->cell_count && held; c++)
        held = cells_same_storage(cells, bundle->cells[c], from, to);
    return held;
}

static void find_in_place(Plan *plan)
{
    bool fills = false;
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].verb != HT_ALL_REDUCE)
            return;
    for (int t = 0; t < plan->tasks.count; t++) {
        const Task *task = &plan->tasks.at[t];
        fills = fills || !task->source_count;
        for (int w = 0; w < task->wanted.count; w++)
            if (!stays_in_place(plan, &plan->cells->bundles[task->bundle], task->wanted.at[w]))
                return;
    }
    plan->in_place = true;
    plan->nothing = !plan->steps.count && !fills;
}

bool plan_in_place(const Plan *plan) { return plan->in_place; }
bool plan_nothing(const Plan *plan) { return plan->nothing; }

/* ---- groups ---- */

static int group_index(Plan *plan, const Devices *devices)
{
    for (int g = 0; g < plan->groups.count; g++)
        if (plan->groups.at[g].count == devices->count &&
            !memcmp(plan->groups.at[g].device, devices->at, sizeof(int) * (size_t)devices->count))
            return g;
    array_push(plan->arena, &plan->groups, (ht_group){devices->count, devices->at});
    return plan->groups.count - 1;
}

const ht_group *plan_groups(const Plan *plan, int *count)
{
    *count = plan->groups.count;
    return plan->groups.at;
}

static void number_groups(Plan *plan)
{
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].group.count)
            plan->steps.at[s].group_index = group_index(plan, &plan->steps.at[s].group);
}

/* ---- the planner ---- */

/* A value that some already hold goes to the others that want it. */
static void add_copies(Builder *builder)
{
    for (int t = 0; t < builder->plan->tasks.count; t++) {
        const Task *task = &builder->plan->tasks.at[t];
        if (task->source_count != 1)
            continue;
        Gift gift = {.segment = {.task = t, .origin = ORIGIN_FROM, .hi = task->volume}, .holders = task->sources[0]};
        for (int w = 0; w < task->wanted.count; w++)
            if (devices_find(&gift.holders, task->wanted.at[w]) < 0)
                array_push(builder->arena, &gift.needers, task->wanted.at[w]);
        if (gift.needers.count)
            array_push(builder->arena, &builder->gifts, gift);
    }
}

static ht_reduction reduction_of(const Cells *cells)
{
    StateKind kind = cells->side[SIDE_FROM].partial != STATE_DUP ? cells->side[SIDE_FROM].partial : cells->side[SIDE_TO].partial;
    return kind == STATE_SUM ? HT_SUM : kind == STATE_MAX ? HT_MAX : HT_NO_REDUCTION;
}

static int64_t shape_elements(Shape shape)
{
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++)
        count *= shape.extent[d];
    return count;
}

const Plan *reshard_plan(Arena *arena, const Cluster *cluster, Shape shape, int element, const Layout *from, const Layout *to)
{
    Plan *plan = arena_new(arena, Plan);
    Builder builder = {.arena = arena, .plan = plan};
    const Cells *cells = cells_of(arena, shape, from, to);
    *plan = (Plan){
        .arena = arena, .cluster = cluster, .cells = cells, .shape = cells->shape, .element = element, .reduction = reduction_of(cells)};
    plan->large = shape_elements(shape) > INT32_MAX;
    collect_devices(plan);
    builder.sent = plan->sent = arena_array(arena, int64_t, plan->device_count);
    builder.received = plan->received = arena_array(arena, int64_t, plan->device_count);
    plan_tasks(&builder);
    plan_reductions(&builder);
    add_copies(&builder);
    plan_gifts(&builder);
    plan_count(&builder);
    number_groups(plan);
    find_in_place(plan);
    plan->name = name_plan(&builder);
    plan->seconds = price_plan(&builder);
    plan->lowered = arena_array(arena, const ht_reshard_device *, plan->device_count);
    return plan;
}
