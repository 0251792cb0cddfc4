/* Orders a plan's steps: reductions, then transfers; all at once, or hierarchically. */
#include "reshard/plan_builder.h"

#include "reshard/copy/copy.h"
#include "reshard/cost/communication.h"
#include "reshard/hierarchical/hierarchical.h"

#include <string.h>

/* Appends to the planner's transfers those of complete values to the targets that lack them. */
static void add_copies(PlanBuilder *planner) {
    Index *index = index_create(planner);
    for (int t = 0; t < planner->plan->tasks.count; t++) {
        const Task *task = &planner->plan->tasks.at[t];
        if (task->source_count != 1 || task->local) continue;
        Devices receivers = {0};
        index_devices(index, &task->sources[0]);
        for (int w = 0; w < task->targets.count; w++)
            if (index_find(index, task->targets.at[w]) < 0)
                array_push(planner->arena, &receivers, task->targets.at[w]);
        push_transfer(planner, &planner->transfers, task_segment(planner->plan, t),
                      task->sources[0], receivers);
    }
}

static Tasks reducing_tasks(PlanBuilder *planner) {
    Tasks tasks = {0};
    for (int t = 0; t < planner->plan->tasks.count; t++)
        if (planner->plan->tasks.at[t].source_count > 1) array_push(planner->arena, &tasks, t);
    return tasks;
}

/* Returns the bytes that the counted steps, the jobs and the transfers send. */
static int64_t all_sent(const PlanBuilder *planner, const Jobs *jobs, const Transfers *transfers) {
    int64_t total = 0;
    for (int i = 0; i < planner->plan->device_count; i++) total += planner->plan->sent[i];
    for (int w = 0; w < jobs->count; w++) total += job_load(&jobs->at[w]);
    for (int g = 0; g < transfers->count; g++)
        total += segment_bytes(planner->plan, &transfers->at[g].segment) *
                 transfers->at[g].receivers.count;
    return total;
}

/* Appends the steps of the tasks and, if `deliver` is set, of the planner's transfers. */
static void add_stage(PlanBuilder *planner, const Tasks *tasks, bool deliver) {
    Reductions reductions = {0};
    Jobs jobs = {0};
    Routes routes = {0};
    Transfers rest = {0};
    Tasks others = add_all_reduces(planner, tasks);
    add_reduce_scatters(planner, &others, &reductions);
    Combining *combining = combining_plan(planner, &reductions);
    if (deliver) {
        Transfers left = gather_transfers(planner, &planner->transfers, true);
        rest = near_transfers(planner, &left);
    }
    count_moves(planner);
    combining_add(planner, combining, &jobs);
    int64_t cap = load_cap(planner->plan, all_sent(planner, &jobs, &rest));
    routes_add(planner, &rest, cap, &routes, &jobs);
    balance_jobs(planner, &jobs, cap, MANY_SWEEPS, planner->plan->sent);
    combining_send(planner, combining, &jobs);
    routes_send(planner, &routes, &jobs);
}

/* Begins a stage with `transfers`. Its steps depend on earlier ones; loads are counted anew. */
static void next_stage(PlanBuilder *planner, const Transfers *transfers) {
    planner->stage++;
    planner->first = planner->plan->steps.count;
    planner->transfers = *transfers;
}

static void add_one_tier(PlanBuilder *planner) {
    Tasks tasks = reducing_tasks(planner);
    add_copies(planner);
    add_stage(planner, &tasks, true);
}

/* Adds hierarchical steps: reductions inside hosts, then across; transfers across, then inside. */
static void add_two_tiers(PlanBuilder *planner) {
    Hosts *hosts = hosts_of(planner);
    Tasks tasks = reducing_tasks(planner), local = {0}, crossing = {0}, none = {0};
    Transfers inside = {0}, nothing = {0};
    tier_reductions(hosts, &tasks, &local, &crossing, &inside);
    add_stage(planner, &local, false);
    add_copies(planner);
    Transfers whole = planner->transfers;
    next_stage(planner, &nothing);
    add_stage(planner, &crossing, false);
    Transfers sent = planner->transfers;
    tier_transfers(hosts, &whole, &sent, &inside);
    next_stage(planner, &sent);
    add_stage(planner, &none, true);
    next_stage(planner, &inside);
    add_stage(planner, &none, true);
}

void make_steps(PlanBuilder *planner) {
    planner->stage = planner->first = 0;
    memset(&planner->transfers, 0, sizeof planner->transfers);
    memset(&planner->outboxes, 0, sizeof planner->outboxes);
    (planner->tiers ? add_two_tiers : add_one_tier)(planner);
    drop_empty_steps(planner);
    fuse_collectives(planner);
    planner->first = 0;
    count_moves(planner);
}
