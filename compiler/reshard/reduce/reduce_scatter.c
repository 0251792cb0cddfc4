/* Reductions: each value is reduced once, in parts at several of the devices that want it, and then handed on; so all holders get the same
 * bits.
 *
 * Where the holders of the contributions form groups that each want all of the value, an all-reduce does both at once. Where the groups of
 * all parts are the same devices, the parts are one reduce-scatter, or one reduce when all lie at one device. The rest is reduced by
 * messages (plan_merge.c).
 */
#include "reshard/loads.h"

#include <stdlib.h>
#include <uthash.h>

/* A part of a value with the device that reduces it and those whose contributions it takes. */
typedef struct Part {
    Segment segment;
    int reducer;
    Devices group; // a holder of each contribution, the reducer among them
} Part;

typedef Array(Part) Parts;

/* The all-reduce of a group for the bucket at hand. */
typedef struct GroupStep {
    int step;
    UT_hash_handle hh;
} GroupStep;

/* A reduction that is no all-reduce: who reduces, and in which parts. */
typedef struct GroupReduction {
    Reduction reduction;
    bool groups;      // the holders form groups, in each of which somebody reduces
    int first, last; // its parts
    bool collective;
} GroupReduction;

typedef Array(GroupReduction) GroupReductions;

typedef struct Reducer {
    Planner *planner;
    Index *targets;  // of the task at hand
    Index *members; // of the component at hand
    GroupStep *all_reduces;
    GroupReductions candidates;
    Parts parts;
} Reducer;

/* ---- all-reduce ---- */

/* How many devices hold each contribution, when that is the same number for all; else 0. */
static int holders_each(const Task *task)
{
    int each = task->sources[0].count;
    for (int p = 1; p < task->source_count; p++)
        if (task->sources[p].count != each)
            return 0;
    return each;
}

static int compare_devices(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The group of one holder of each contribution, in ascending order. */
static Devices replica_group(Planner *planner, const Task *task, int replica)
{
    Devices group = {.at = arena_array(planner->arena, int, task->source_count), .count = task->source_count};
    for (int p = 0; p < task->source_count; p++)
        group.at[p] = task->sources[p].at[replica];
    qsort(group.at, (size_t)group.count, sizeof *group.at, compare_devices);
    return group;
}

/* Whether groups of one holder of each contribution may each reduce and keep the value. Several groups get the same bits from two
 * contributions, since the reduction of two numbers does not depend on their order. */
static bool is_all_reduce(const Reducer *reducer, const Task *task)
{
    int each = holders_each(task);
    if (!each || each * task->source_count != task->targets.count || (each > 1 && task->source_count > 2))
        return false;
    for (int p = 0; p < task->source_count; p++)
        for (int i = 0; i < each; i++)
            if (index_find(reducer->targets, task->sources[p].at[i]) < 0)
                return false;
    return may_collect(reducer->planner, &task->targets);
}

/* The all-reduce of a group; `group` is in ascending order. */
static Step *all_reduce_step(Reducer *reducer, Devices group)
{
    Planner *planner = reducer->planner;
    GroupStep *found;
    HASH_FIND(hh, reducer->all_reduces, group.at, sizeof *group.at * (size_t)group.count, found);
    if (found)
        return &planner->plan->steps.at[found->step];
    Step *step = plan_step(planner, HT_ALL_REDUCE);
    step->group = group;
    step->parts = arena_new(planner->arena, Segments);
    found = arena_new(planner->arena, GroupStep);
    found->step = planner->plan->steps.count - 1;
    HASH_ADD_KEYPTR(hh, reducer->all_reduces, group.at, sizeof *group.at * (size_t)group.count, found);
    return step;
}

static void add_all_reduce(Reducer *reducer, int t)
{
    Planner *planner = reducer->planner;
    const Task *task = &planner->plan->tasks.at[t];
    for (int i = 0; i < task->sources[0].count; i++) {
        Segment all = task_segment(planner->plan, t);
        array_push(planner->arena, &all_reduce_step(reducer, replica_group(planner, task, i))->parts[0], all);
    }
}

/* ---- parts ---- */

/* The devices among which the value is divided. Teams stand together, so that each reduces one stretch of the value. */
static void find_reducers(Reducer *reducer, const Task *task, GroupReduction *candidate)
{
    int replicas = 0, served = 0;
    Devices *reducers = &candidate->reduction.reducers;
    for (int p = 0; p < task->source_count; p++)
        replicas = task->sources[p].count > replicas ? task->sources[p].count : replicas;
    for (int replica = 0; replica < replicas; replica++) {
        int before = reducers->count;
        for (int p = 0; p < task->source_count; p++)
            if (replica < task->sources[p].count && index_find(reducer->targets, task->sources[p].at[replica]) >= 0)
                array_push(reducer->planner->arena, reducers, task->sources[p].at[replica]);
        served += reducers->count > before;
    }
    candidate->reduction.holds = reducers->count > 0;
    candidate->groups = candidate->reduction.holds && holders_each(task) && served == replicas;
    if (!candidate->reduction.holds)
        *reducers = task->targets;
}

/* Divides the value evenly among the reducers, each of which reduces its part in its group. */
static void add_group_parts(Reducer *reducer, GroupReduction *candidate)
{
    Planner *planner = reducer->planner;
    const Task *task = &planner->plan->tasks.at[candidate->reduction.task];
    const Devices *reducers = &candidate->reduction.reducers;
    Devices *groups = arena_array(planner->arena, Devices, task->sources[0].count);
    index_clear(reducer->members);
    for (int replica = 0; replica < task->sources[0].count; replica++) {
        groups[replica] = replica_group(planner, task, replica);
        for (int p = 0; p < task->source_count; p++)
            index_set(reducer->members, task->sources[p].at[replica], replica);
    }
    candidate->first = reducer->parts.count;
    for (int r = 0; r < reducers->count; r++) {
        Segment segment = task_segment(planner->plan, candidate->reduction.task);
        segment.hi = segment.lo + task->volume * (r + 1) / reducers->count;
        segment.lo += task->volume * r / reducers->count;
        if (segment.lo < segment.hi)
            array_push(planner->arena, &reducer->parts,
                       (Part){segment, reducers->at[r], groups[index_find(reducer->members, reducers->at[r])]});
    }
    candidate->last = reducer->parts.count;
}

/* ---- collectives ---- */

/* The devices of a closed component: the reducers in the order of their parts, then the others in ascending order; their places go to the
 * index. */
static Devices component_devices(Reducer *reducer, const int *order, int count)
{
    Devices devices = {0};
    index_clear(reducer->members);
    for (int i = 0; i < count; i++) {
        int device = reducer->parts.at[order[i]].reducer;
        if (index_find(reducer->members, device) >= 0)
            continue;
        index_set(reducer->members, device, devices.count);
        array_push(reducer->planner->arena, &devices, device);
    }
    const Devices *group = &reducer->parts.at[order[0]].group;
    for (int k = 0; k < group->count; k++)
        if (index_find(reducer->members, group->at[k]) < 0)
            array_push(reducer->planner->arena, &devices, group->at[k]);
    return devices;
}

/* Whether the groups of all parts of a component are the same devices. */
static bool is_closed(const Reducer *reducer, const int *order, int count)
{
    const Devices *first = &reducer->parts.at[order[0]].group;
    for (int i = 1; i < count; i++) {
        const Devices *group = &reducer->parts.at[order[i]].group;
        if (group->at != first->at && (group->count != first->count || memcmp(group->at, first->at, sizeof *group->at * (size_t)group->count)))
            return false;
    }
    return may_collect(reducer->planner, first);
}

static void add_collective(Reducer *reducer, const int *order, int count)
{
    Planner *planner = reducer->planner;
    Devices devices = component_devices(reducer, order, count);
    Segments *kept = arena_array(planner->arena, Segments, devices.count);
    for (int i = 0; i < count; i++) {
        const Part *part = &reducer->parts.at[order[i]];
        array_push(planner->arena, &kept[index_find(reducer->members, part->reducer)], part->segment);
    }
    plan_collective(planner, devices, kept, HT_REDUCE_SCATTER);
}

/* A candidate is done by collectives when all its parts are; where one is not, none of the components that it touches is. */
static void find_collective_candidates(const GroupReductions *candidates, const int *component, bool *closed)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int j = 0; j < candidates->count; j++) {
            GroupReduction *candidate = &candidates->at[j];
            bool all = candidate->groups;
            for (int i = candidate->first; i < candidate->last; i++)
                all = all && closed[component[i]];
            candidate->collective = all;
            for (int i = candidate->first; i < candidate->last && !all; i++) {
                changed = changed || closed[component[i]];
                closed[component[i]] = false;
            }
        }
    }
}

/* Does by collectives what can be done so: marks those candidates. */
static void reduce_in_groups(Reducer *reducer)
{
    Planner *planner = reducer->planner;
    const Parts *parts = &reducer->parts;
    Devices *groups = arena_array(planner->arena, Devices, parts->count);
    int *buckets = arena_array(planner->arena, int, parts->count);
    for (int i = 0; i < parts->count; i++) {
        groups[i] = parts->at[i].group;
        buckets[i] = planner->plan->tasks.at[parts->at[i].segment.task].bucket;
    }
    int components, *component = connect_sets(planner, groups, buckets, parts->count, &components);
    int *begin = arena_array(planner->arena, int, components + 1),
        *order = sort_by_component(planner, component, parts->count, components, begin);
    bool *closed = arena_array(planner->arena, bool, components);
    for (int c = 0; c < components; c++)
        closed[c] = is_closed(reducer, order + begin[c], begin[c + 1] - begin[c]);
    find_collective_candidates(&reducer->candidates, component, closed);
    for (int c = 0; c < components; c++)
        if (closed[c])
            add_collective(reducer, order + begin[c], begin[c + 1] - begin[c]);
}

/* ---- all together ---- */

void transfer_result(Planner *planner, Segment segment, int device)
{
    const Task *task = &planner->plan->tasks.at[segment.task];
    Transfer transfer = {.segment = segment};
    array_push(planner->arena, &transfer.holders, device);
    for (int w = 0; w < task->targets.count; w++)
        if (task->targets.at[w] != device)
            array_push(planner->arena, &transfer.receivers, task->targets.at[w]);
    if (transfer.receivers.count)
        array_push(planner->arena, &planner->transfers, transfer);
}

static void add_candidate(Reducer *reducer, int t)
{
    const Task *task = &reducer->planner->plan->tasks.at[t];
    GroupReduction candidate = {.reduction.task = t};
    index_devices(reducer->targets, &task->targets);
    if (task->source_count > 1 && is_all_reduce(reducer, task)) {
        add_all_reduce(reducer, t);
        return;
    }
    find_reducers(reducer, task, &candidate);
    candidate.groups = candidate.groups && task->source_count > 1;
    if (candidate.groups)
        add_group_parts(reducer, &candidate);
    array_push(reducer->planner->arena, &reducer->candidates, candidate);
}

void reduce_by_collectives(Planner *planner, const Tasks *tasks, Reductions *reductions)
{
    Reducer reducer = {.planner = planner, .targets = index_create(planner), .members = index_create(planner)};
    const Plan *plan = planner->plan;
    for (int i = 0; i < tasks->count; i++) {
        if (i && plan->tasks.at[tasks->at[i]].bucket != plan->tasks.at[tasks->at[i - 1]].bucket)
            HASH_CLEAR(hh, reducer.all_reduces);
        add_candidate(&reducer, tasks->at[i]);
    }
    HASH_CLEAR(hh, reducer.all_reduces);
    if (reducer.candidates.count)
        reduce_in_groups(&reducer);
    for (int j = 0; j < reducer.candidates.count; j++) {
        const GroupReduction *candidate = &reducer.candidates.at[j];
        if (!candidate->collective)
            array_push(planner->arena, reductions, candidate->reduction);
        for (int i = candidate->first; i < candidate->last && candidate->collective; i++) {
            Segment segment = reducer.parts.at[i].segment;
            segment.origin = ORIGIN_TO;
            transfer_result(planner, segment, reducer.parts.at[i].reducer);
        }
    }
}
