/* Reductions: each value is reduced once, in parts at several of the devices that want it, and then handed on; so all holders get the same
 * bits.
 *
 * Where the holders of the contributions form teams that each want all of the value, an all-reduce does both at once. Where the teams of
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
    Devices team; // a holder of each contribution, the reducer among them
} Part;

typedef Array(Part) Parts;

/* The all-reduce of a team for the stack at hand. */
typedef struct TeamStep {
    int step;
    UT_hash_handle hh;
} TeamStep;

/* A reduction that is no all-reduce: who reduces, and in which parts. */
typedef struct Job {
    Sum sum;
    bool teams;      // the holders form teams, in each of which somebody reduces
    int first, last; // its parts
    bool collective;
} Job;

typedef Array(Job) Jobs;

typedef struct Reducer {
    Builder *builder;
    Index *wanted;  // of the task at hand
    Index *members; // of the component at hand
    TeamStep *all_reduces;
    Jobs jobs;
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

/* The team of one holder of each contribution, in ascending order. */
static Devices lane_team(Builder *builder, const Task *task, int lane)
{
    Devices team = {.at = arena_array(builder->arena, int, task->source_count), .count = task->source_count};
    for (int p = 0; p < task->source_count; p++)
        team.at[p] = task->sources[p].at[lane];
    qsort(team.at, (size_t)team.count, sizeof *team.at, compare_devices);
    return team;
}

/* Whether teams of one holder of each contribution may each reduce and keep the value. Several teams get the same bits from two
 * contributions, since the sum of two numbers does not depend on their order. */
static bool is_all_reduce(const Reducer *reducer, const Task *task)
{
    int each = holders_each(task);
    if (!each || each * task->source_count != task->wanted.count || (each > 1 && task->source_count > 2))
        return false;
    for (int p = 0; p < task->source_count; p++)
        for (int i = 0; i < each; i++)
            if (index_find(reducer->wanted, task->sources[p].at[i]) < 0)
                return false;
    return may_collect(reducer->builder, &task->wanted);
}

/* The all-reduce of a group; `team` is in ascending order. */
static Step *all_reduce_step(Reducer *reducer, Devices team)
{
    Builder *builder = reducer->builder;
    TeamStep *found;
    HASH_FIND(hh, reducer->all_reduces, team.at, sizeof *team.at * (size_t)team.count, found);
    if (found)
        return &builder->plan->steps.at[found->step];
    Step *step = plan_step(builder, HT_ALL_REDUCE);
    step->group = team;
    step->parts = arena_new(builder->arena, Segments);
    found = arena_new(builder->arena, TeamStep);
    found->step = builder->plan->steps.count - 1;
    HASH_ADD_KEYPTR(hh, reducer->all_reduces, team.at, sizeof *team.at * (size_t)team.count, found);
    return step;
}

static void add_all_reduce(Reducer *reducer, int t)
{
    Builder *builder = reducer->builder;
    const Task *task = &builder->plan->tasks.at[t];
    for (int i = 0; i < task->sources[0].count; i++) {
        Segment all = task_segment(builder->plan, t);
        array_push(builder->arena, &all_reduce_step(reducer, lane_team(builder, task, i))->parts[0], all);
    }
}

/* ---- parts ---- */

/* The devices among which the value is divided. Teams stand together, so that each reduces one stretch of the value. */
static void find_reducers(Reducer *reducer, const Task *task, Job *job)
{
    int lanes = 0, served = 0;
    Devices *reducers = &job->sum.reducers;
    for (int p = 0; p < task->source_count; p++)
        lanes = task->sources[p].count > lanes ? task->sources[p].count : lanes;
    for (int lane = 0; lane < lanes; lane++) {
        int before = reducers->count;
        for (int p = 0; p < task->source_count; p++)
            if (lane < task->sources[p].count && index_find(reducer->wanted, task->sources[p].at[lane]) >= 0)
                array_push(reducer->builder->arena, reducers, task->sources[p].at[lane]);
        served += reducers->count > before;
    }
    job->sum.holds = reducers->count > 0;
    job->teams = job->sum.holds && holders_each(task) && served == lanes;
    if (!job->sum.holds)
        *reducers = task->wanted;
}

/* Divides the value evenly among the reducers, each of which reduces its part in its team. */
static void add_team_parts(Reducer *reducer, Job *job)
{
    Builder *builder = reducer->builder;
    const Task *task = &builder->plan->tasks.at[job->sum.task];
    const Devices *reducers = &job->sum.reducers;
    Devices *teams = arena_array(builder->arena, Devices, task->sources[0].count);
    index_clear(reducer->members);
    for (int lane = 0; lane < task->sources[0].count; lane++) {
        teams[lane] = lane_team(builder, task, lane);
        for (int p = 0; p < task->source_count; p++)
            index_set(reducer->members, task->sources[p].at[lane], lane);
    }
    job->first = reducer->parts.count;
    for (int r = 0; r < reducers->count; r++) {
        Segment segment = task_segment(builder->plan, job->sum.task);
        segment.hi = segment.lo + task->volume * (r + 1) / reducers->count;
        segment.lo += task->volume * r / reducers->count;
        if (segment.lo < segment.hi)
            array_push(builder->arena, &reducer->parts,
                       (Part){segment, reducers->at[r], teams[index_find(reducer->members, reducers->at[r])]});
    }
    job->last = reducer->parts.count;
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
        array_push(reducer->builder->arena, &devices, device);
    }
    const Devices *team = &reducer->parts.at[order[0]].team;
    for (int k = 0; k < team->count; k++)
        if (index_find(reducer->members, team->at[k]) < 0)
            array_push(reducer->builder->arena, &devices, team->at[k]);
    return devices;
}

/* Whether the teams of all parts of a component are the same devices. */
static bool is_closed(const Reducer *reducer, const int *order, int count)
{
    const Devices *first = &reducer->parts.at[order[0]].team;
    for (int i = 1; i < count; i++) {
        const Devices *team = &reducer->parts.at[order[i]].team;
        if (team->at != first->at && (team->count != first->count || memcmp(team->at, first->at, sizeof *team->at * (size_t)team->count)))
            return false;
    }
    return may_collect(reducer->builder, first);
}

static void add_collective(Reducer *reducer, const int *order, int count)
{
    Builder *builder = reducer->builder;
    Devices devices = component_devices(reducer, order, count);
    Segments *kept = arena_array(builder->arena, Segments, devices.count);
    for (int i = 0; i < count; i++) {
        const Part *part = &reducer->parts.at[order[i]];
        array_push(builder->arena, &kept[index_find(reducer->members, part->reducer)], part->segment);
    }
    plan_collective(builder, devices, kept, HT_REDUCE_SCATTER);
}

/* A job is done by collectives when all its parts are; where one is not, none of the components that it touches is. */
static void find_collective_jobs(const Jobs *jobs, const int *component, bool *closed)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int j = 0; j < jobs->count; j++) {
            Job *job = &jobs->at[j];
            bool all = job->teams;
            for (int i = job->first; i < job->last; i++)
                all = all && closed[component[i]];
            job->collective = all;
            for (int i = job->first; i < job->last && !all; i++) {
                changed = changed || closed[component[i]];
                closed[component[i]] = false;
            }
        }
    }
}

/* Does by collectives what can be done so: marks those jobs. */
static void reduce_in_teams(Reducer *reducer)
{
    Builder *builder = reducer->builder;
    const Parts *parts = &reducer->parts;
    Devices *teams = arena_array(builder->arena, Devices, parts->count);
    int *stacks = arena_array(builder->arena, int, parts->count);
    for (int i = 0; i < parts->count; i++) {
        teams[i] = parts->at[i].team;
        stacks[i] = builder->plan->tasks.at[parts->at[i].segment.task].stack;
    }
    int components, *component = connect_sets(builder, teams, stacks, parts->count, &components);
    int *begin = arena_array(builder->arena, int, components + 1),
        *order = sort_by_component(builder, component, parts->count, components, begin);
    bool *closed = arena_array(builder->arena, bool, components);
    for (int c = 0; c < components; c++)
        closed[c] = is_closed(reducer, order + begin[c], begin[c + 1] - begin[c]);
    find_collective_jobs(&reducer->jobs, component, closed);
    for (int c = 0; c < components; c++)
        if (closed[c])
            add_collective(reducer, order + begin[c], begin[c + 1] - begin[c]);
}

/* ---- all together ---- */

void hand_on(Builder *builder, Segment segment, int device)
{
    const Task *task = &builder->plan->tasks.at[segment.task];
    Gift gift = {.segment = segment};
    array_push(builder->arena, &gift.holders, device);
    for (int w = 0; w < task->wanted.count; w++)
        if (task->wanted.at[w] != device)
            array_push(builder->arena, &gift.needers, task->wanted.at[w]);
    if (gift.needers.count)
        array_push(builder->arena, &builder->gifts, gift);
}

static void add_job(Reducer *reducer, int t)
{
    const Task *task = &reducer->builder->plan->tasks.at[t];
    Job job = {.sum.task = t};
    index_devices(reducer->wanted, &task->wanted);
    if (task->source_count > 1 && is_all_reduce(reducer, task)) {
        add_all_reduce(reducer, t);
        return;
    }
    find_reducers(reducer, task, &job);
    job.teams = job.teams && task->source_count > 1;
    if (job.teams)
        add_team_parts(reducer, &job);
    array_push(reducer->builder->arena, &reducer->jobs, job);
}

void reduce_by_collectives(Builder *builder, const Tasks *tasks, Sums *sums)
{
    Reducer reducer = {.builder = builder, .wanted = index_create(builder), .members = index_create(builder)};
    const Plan *plan = builder->plan;
    for (int i = 0; i < tasks->count; i++) {
        if (i && plan->tasks.at[tasks->at[i]].stack != plan->tasks.at[tasks->at[i - 1]].stack)
            HASH_CLEAR(hh, reducer.all_reduces);
        add_job(&reducer, tasks->at[i]);
    }
    HASH_CLEAR(hh, reducer.all_reduces);
    if (reducer.jobs.count)
        reduce_in_teams(&reducer);
    for (int j = 0; j < reducer.jobs.count; j++) {
        const Job *job = &reducer.jobs.at[j];
        if (!job->collective)
            array_push(builder->arena, sums, job->sum);
        for (int i = job->first; i < job->last && job->collective; i++) {
            Segment segment = reducer.parts.at[i].segment;
            segment.origin = ORIGIN_TO;
            hand_on(builder, segment, reducer.parts.at[i].reducer);
        }
    }
}
