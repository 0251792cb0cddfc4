/* The planner of conversions: turns conversions into buckets and tasks, and these into the steps of
 * a plan. order/flat_or_hierarchical.c takes the cheapest of several. reshard.h lists all files.
 *
 *     sums to copies: all-reduce (reduce/all_reduce.c); to pieces: reduce-scatter
 *     (reduce/reduce_scatter.c); pieces to copies: all-gather (copy/all_gather.c); to other
 *     pieces: all-to-all (copy/all_to_all.c); all else: messages (reduce/messages.c;
 *     copy/senders.c decides who sends) */
#include "reshard/reshard.h"

#include "reshard/devices.h"
#include "reshard/plan_builder.h"
#include "support/intern.h"

#include <string.h>

/* Returns whether the list begins with the devices of a layout's holdings. */
static bool begins_with(const Devices *devices, const Holdings *holdings) {
    bool same = devices->count >= holdings->device_count;
    for (int i = 0; same && i < holdings->device_count; i++)
        same = devices->at[i] == holdings->members[i].device;
    return same;
}

static void number_devices(PlanBuilder *planner) {
    Plan *plan = planner->plan;
    plan->span =
        plan->device_count ? plan->devices[plan->device_count - 1] + 1 - plan->devices[0] : 0;
    int *slots = arena_array(planner->arena, int, plan->span);
    memset(slots, -1, sizeof *slots * (size_t)plan->span);
    for (int i = 0; i < plan->device_count; i++) slots[plan->devices[i] - plan->devices[0]] = i;
    plan->slots = slots;
}

/* Collects the devices of all layouts, ascending. */
static void collect_devices(PlanBuilder *planner) {
    Plan *plan = planner->plan;
    Devices all = {0};
    for (int s = 0; s < plan->buckets.count; s++)
        for (int side = 0; side < 2; side++) {
            const Holdings *own = &plan->buckets.at[s].overlap->side[side];
            bool known = begins_with(&all, own);
            for (int i = 0; i < own->device_count && !known; i++)
                array_push(planner->arena, &all, own->members[i].device);
        }
    sort_devices(all.at, all.count);
    for (int i = 0; i < all.count; i++)
        if (!i || all.at[i] != all.at[plan->device_count - 1])
            all.at[plan->device_count++] = all.at[i];
    plan->devices = all.at;
    number_devices(planner);
}

static const Plan *make_plan(Arena *arena, const Cluster *cluster, const Conversion *conversions,
                             int count, bool messages) {
    Arena *scratch = arena_create();
    Plan *plan = arena_new(scratch, Plan);
    PlanBuilder planner = {.arena = scratch, .plan = plan, .messages = messages};
    plan->arena = scratch;
    plan->cluster = cluster;
    find_buckets(&planner, conversions, count);
    collect_devices(&planner);
    find_tasks(&planner);
    choose_steps(&planner);
    finish_plan(&planner);
    plan = plan_copy(arena, plan);
    plan->cache = plan_cache_create(arena, plan->device_count);
    arena_destroy(scratch);
    return plan;
}

const Plan *reshard_plan_all(Arena *arena, const Cluster *cluster, const Conversion *conversions,
                             int count) {
    return make_plan(arena, cluster, conversions, count, false);
}

const Plan *reshard_plan_messages(Arena *arena, const Cluster *cluster,
                                  const Conversion *conversions, int count) {
    return make_plan(arena, cluster, conversions, count, true);
}

const Plan *reshard_plan(Arena *arena, const Cluster *cluster, const Conversion *conversion) {
    return reshard_plan_all(arena, cluster, conversion, 1);
}
