/* Reductions: each value is reduced once, in parts at several of the devices that want it, and then handed on; so all holders get the same
 * bits.
 *
 * Where the holders of the contributions form teams that each want all of the value, an all-reduce does both at once. Where the teams of
 * all parts are the same devices, the parts are one reduce-scatter, or one reduce when all lie at one device. The rest is a batch of
 * messages, before which contributions that no reducer holds are reduced among their own holders if the reducers would receive too much.
 */
#include "layout/plan_build.h"

#include <stdlib.h>
#include <string.h>

/* A part of a value with the device that reduces it and those whose contributions it takes. */
typedef struct Part {
    Segment segment;
    int reducer;
    Devices team; // a holder of each contribution, the reducer among them; for collectives only
} Part;

typedef Array(Part) Parts;

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

/* Whether teams of one holder of each contribution may each reduce and keep the value. Several teams get the same bits from two
 * contributions, since the sum of two numbers does not depend on their order. */
static bool is_all_reduce(const Task *task)
{
    int each = holders_each(task);
    if (!each || each * task->source_count != task->wanted.count || (each > 1 && task->source_count > 2))
        return false;
    for (int p = 0; p < task->source_count; p++)
        for (int i = 0; i < each; i++)
            if (devices_find(&task->wanted, task->sources[p].at[i]) < 0)
                return false;
    return true;
}

static int compare_devices(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Whether two tasks may be reduced by one collective. */
static bool reduce_alike(const Plan *plan, int a, int b)
{
    const Stack *x = task_stack(plan, a), *y = task_stack(plan, b);
    return x->dtype == y->dtype && x->reduction == y->reduction;
}

/* The all-reduce of task `t` in a group; `team` is in ascending order. */
static Step *all_reduce_step(Builder *builder, Devices team, int t)
{
    for (int s = 0; s < builder->plan->steps.count; s++) {
        Step *step = &builder->plan->steps.at[s];
        if (step->verb == HT_ALL_REDUCE && step->group.count == team.count &&
            !memcmp(step->group.at, team.at, sizeof(int) * (size_t)team.count) && reduce_alike(builder->plan, step->parts[0].at[0].task, t))
            return step;
    }
    Step *step = plan_step(builder, HT_ALL_REDUCE);
    step->group = team;
    step->parts = arena_new(builder->arena, Segments);
    return step;
}

static void add_all_reduce(Builder *builder, int t)
{
    const Task *task = &builder->plan->tasks.at[t];
    for (int i = 0; i < task->sources[0].count; i++) {
        Devices team = {0};
        for (int p = 0; p < task->source_count; p++)
            array_push(builder->arena, &team, task->sources[p].at[i]);
        qsort(team.at, (size_t)team.count, sizeof *team.at, compare_devices);
        Segment all = {.task = t, .hi = task->volume};
        Segments *parts = all_reduce_step(builder, team, t)->parts;
        array_push(builder->arena, parts, all);
    }
}

/* ---- parts ---- */

/* A reduction that is no all-reduce: who reduces, and in which parts. */
typedef struct Job {
    int task;
    Devices reducers; // those that want the value and hold a contribution, or else all that want it
    bool holds;       // the reducers hold contributions
    bool teams;       // the holders form teams, in each of which somebody reduces
    int first, last;  // its parts
    bool collective;
    Array(int) early; // contributions that no reducer holds and that are reduced beforehand
} Job;

typedef Array(Job) Jobs;

/* The devices among which the value is divided. Teams stand together, so that each reduces one stretch of the value. */
static void find_reducers(Builder *builder, const Task *task, Job *job)
{
    int lanes = 0, served = 0;
    for (int p = 0; p < task->source_count; p++)
        lanes = task->sources[p].count > lanes ? task->sources[p].count : lanes;
    for (int lane = 0; lane < lanes; lane++) {
        int before = job->reducers.count;
        for (int p = 0; p < task->source_count; p++)
            if (lane < task->sources[p].count && devices_find(&task->wanted, task->sources[p].at[lane]) >= 0)
                array_push(builder->arena, &job->reducers, task->sources[p].at[lane]);
        served += job->reducers.count > before;
    }
    job->holds = job->reducers.count > 0;
    job->teams = job->holds && holders_each(task) && served == lanes;
    if (!job->holds)
        job->reducers = task->wanted;
}

/* The members of the team in which a device reduces. */
static Devices team_of(Builder *builder, const Task *task, int reducer)
{
    Devices team = {0};
    int lane = -1;
    for (int p = 0; lane < 0 && p < task->source_count; p++)
        lane = devices_find(&task->sources[p], reducer);
    for (int p = 0; p < task->source_count; p++)
        array_push(builder->arena, &team, task->sources[p].at[lane]);
    return team;
}

/* Divides the value evenly among the reducers, each of which reduces its part in its team. */
static void add_team_parts(Builder *builder, Job *job, Parts *parts)
{
    const Task *task = &builder->plan->tasks.at[job->task];
    int count = job->reducers.count;
    job->first = parts->count;
    for (int r = 0; r < count; r++) {
        Segment segment = {.task = job->task, .lo = task->volume * r / count, .hi = task->volume * (r + 1) / count};
        if (segment.lo < segment.hi)
            array_push(builder->arena, parts, (Part){segment, job->reducers.at[r], team_of(builder, task, job->reducers.at[r])});
    }
    job->last = parts->count;
}

/* ---- collectives ---- */

/* The devices of a component: the reducers in the order of their parts, then the others in ascending order. */
static Devices component_devices(Builder *builder, const Parts *parts, const int *order, int count, int *reducers)
{
    Devices devices = {0}, others = {0};
    for (int i = 0; i < count; i++)
        if (devices_find(&devices, parts->at[order[i]].reducer) < 0)
            array_push(builder->arena, &devices, parts->at[order[i]].reducer);
    *reducers = devices.count;
    const Devices *team = &parts->at[order[0]].team;
    for (int k = 0; k < team->count; k++)
        if (devices_find(&devices, team->at[k]) < 0)
            array_push(builder->arena, &others, team->at[k]);
    if (others.count)
        qsort(others.at, (size_t)others.count, sizeof *others.at, compare_devices);
    for (int i = 0; i < others.count; i++)
        array_push(builder->arena, &devices, others.at[i]);
    return devices;
}

/* Whether the teams of all parts of a component are the same devices. */
static bool is_closed(const Parts *parts, const int *order, int count)
{
    const Devices *first = &parts->at[order[0]].team;
    for (int i = 1; i < count; i++) {
        const Devices *team = &parts->at[order[i]].team;
        if (team->count != first->count)
            return false;
        for (int k = 0; k < team->count && i; k++)
            if (devices_find(first, team->at[k]) < 0)
                return false;
    }
    return true;
}

static void add_collective(Builder *builder, const Parts *parts, const int *order, int count)
{
    int reducers;
    Devices devices = component_devices(builder, parts, order, count, &reducers);
    Segments *kept = arena_array(builder->arena, Segments, devices.count);
    for (int i = 0; i < count; i++)
        array_push(builder->arena, &kept[devices_find(&devices, parts->at[order[i]].reducer)], parts->at[order[i]].segment);
    plan_collective(builder, devices, kept, reducers, HT_REDUCE_SCATTER, HT_REDUCE);
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
static void reduce_in_teams(Builder *builder, const Jobs *jobs, const Parts *parts)
{
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
        closed[c] = is_closed(parts, order + begin[c], begin[c + 1] - begin[c]);
    find_collective_jobs(jobs, component, closed);
    for (int c = 0; c < components; c++)
        if (closed[c])
            add_collective(builder, parts, order + begin[c], begin[c + 1] - begin[c]);
}

/* ---- messages ---- */

/* What the messages of the reductions need. */
typedef struct Rounds {
    int before, main; // the steps in which early contributions, and then all others, are reduced
    int64_t cap;      // bytes: an even share of what is sent or received
} Rounds;

/* Bytes that a task's devices receive in all. */
static int64_t task_bytes(const Plan *plan, const Job *job)
{
    const Task *task = &plan->tasks.at[job->task];
    return (task->source_count - job->holds + task->wanted.count - 1) * task->volume * task_element(plan, job->task);
}

/* The most that one of the devices has received. */
static double most_received(const Builder *builder, const Devices *devices)
{
    int64_t most = 0;
    for (int i = 0; i < devices->count; i++) {
        int64_t load = builder->received[plan_slot(builder->plan, devices->at[i])];
        most = load > most ? load : most;
    }
    return (double)most;
}

/* The contributions that no reducer holds. */
static void find_unheld(Builder *builder, const Task *task, Job *job)
{
    for (int p = 0; p < task->source_count; p++) {
        bool held = false;
        for (int r = 0; r < job->reducers.count && !held; r++)
            held = devices_find(&task->sources[p], job->reducers.at[r]) >= 0;
        if (!held)
            array_push(builder->arena, &job->early, p);
    }
}

/* All holders of the early contributions: each of them reduces a part. */
static Devices early_reducers(Builder *builder, const Task *task, const Job *job)
{
    Devices devices = {0};
    for (int e = 0; e < job->early.count; e++)
        for (int h = 0; h < task->sources[job->early.at[e]].count; h++)
            array_push(builder->arena, &devices, task->sources[job->early.at[e]].at[h]);
    return devices;
}

/* Contributions that no reducer holds are reduced beforehand when the reducers would else receive much more than an even share, and when
 * that makes the most that one device receives less. */
static void find_early(Builder *builder, Job *job, const Rounds *rounds)
{
    const Task *task = &builder->plan->tasks.at[job->task];
    double bytes = (double)task->volume * task_element(builder->plan, job->task), reducers = job->reducers.count;
    double before = most_received(builder, &job->reducers);
    double direct = before + bytes * (task->source_count - job->holds) / reducers;
    if (direct <= 1.5 * (double)rounds->cap)
        return;
    find_unheld(builder, task, job);
    if (job->early.count < 2) {
        job->early.count = 0;
        return;
    }
    Devices holders = early_reducers(builder, task, job);
    double early = before + bytes * (task->source_count - job->holds - job->early.count + 1) / reducers;
    double own = most_received(builder, &holders) + bytes * (job->early.count - 1) / holders.count;
    if (early >= direct || own >= direct)
        job->early.count = 0;
}

/* Divides the value among the reducers so that they receive alike. */
static void add_parts(Builder *builder, Job *job, Parts *parts)
{
    const Task *task = &builder->plan->tasks.at[job->task];
    int64_t *shares = arena_array(builder->arena, int64_t, job->reducers.count), lo = 0;
    int64_t cost = task->source_count - job->holds - job->early.count + (job->early.count > 0);
    spread_evenly(builder, &job->reducers, task->volume, cost * task_element(builder->plan, job->task), 0, builder->received, shares);
    job->first = parts->count;
    for (int r = 0; r < job->reducers.count; lo += shares[r++]) {
        Segment segment = {.task = job->task, .lo = lo, .hi = lo + shares[r]};
        if (shares[r])
            array_push(builder->arena, parts, (Part){.segment = segment, .reducer = job->reducers.at[r]});
    }
    job->last = parts->count;
}

/* Sends a device a contribution from its holders, each a stretch of it. */
static void send_contribution(Builder *builder, int step, const Devices *holders, Segment segment, int receiver, int64_t cap)
{
    int64_t *shares = arena_array(builder->arena, int64_t, holders->count), end = segment.hi;
    spread_evenly(builder, holders, end - segment.lo, task_element(builder->plan, segment.task), cap, builder->sent, shares);
    for (int h = 0; h < holders->count; h++) {
        segment.hi = segment.lo + shares[h];
        if (shares[h])
            step_send(builder, step, holders->at[h], receiver, segment);
        segment.lo = segment.hi;
    }
}

/* Sends the reducers what they need of one early reduction. */
static void send_early(Builder *builder, const Job *job, const Parts *parts, const Rounds *rounds, int device, Segment reduced)
{
    for (int i = job->first; i < job->last; i++) {
        const Segment *part = &parts->at[i].segment;
        Segment segment = {.task = job->task, .origin = ORIGIN_PARTIAL, .source = job->early.at[0]};
        segment.lo = reduced.lo > part->lo ? reduced.lo : part->lo;
        segment.hi = reduced.hi < part->hi ? reduced.hi : part->hi;
        if (segment.lo < segment.hi)
            step_send(builder, rounds->main, device, parts->at[i].reducer, segment);
    }
    builder->sent[plan_slot(builder->plan, device)] += segment_bytes(builder->plan, &reduced);
}

/* The holders of early contributions reduce them among themselves, each a part, and send the results on. */
static void reduce_early(Builder *builder, const Job *job, const Parts *parts, const Rounds *rounds)
{
    const Task *task = &builder->plan->tasks.at[job->task];
    Devices devices = early_reducers(builder, task, job);
    int64_t *shares = arena_array(builder->arena, int64_t, devices.count), lo = 0;
    spread_evenly(builder, &devices, task->volume, (job->early.count - 1) * task_element(builder->plan, job->task), 0, builder->received, shares);
    for (int k = 0; k < devices.count; lo += shares[k++]) {
        if (!shares[k])
            continue;
        Segment segment = {.task = job->task, .source = job->early.at[0], .lo = lo, .hi = lo + shares[k]};
        array_push(builder->arena, &builder->plan->steps.at[rounds->before].reductions, (Reducing){devices.at[k], segment, true});
        for (int e = 0; e < job->early.count; e++) {
            const Devices *holders = &task->sources[job->early.at[e]];
            segment.source = job->early.at[e];
            if (devices_find(holders, devices.at[k]) < 0)
                send_contribution(builder, rounds->before, holders, segment, devices.at[k], rounds->cap);
        }
        send_early(builder, job, parts, rounds, devices.at[k], segment);
    }
}

static bool is_early(const Job *job, int source)
{
    for (int k = 0; k < job->early.count; k++)
        if (job->early.at[k] == source)
            return true;
    return false;
}

/* Sends a reducer the contributions to its part that it does not hold. */
static void reduce_part(Builder *builder, const Job *job, const Part *part, const Rounds *rounds)
{
    const Task *task = &builder->plan->tasks.at[job->task];
    array_push(builder->arena, &builder->plan->steps.at[rounds->main].reductions, (Reducing){part->reducer, part->segment, false});
    for (int p = 0; p < task->source_count; p++) {
        Segment segment = part->segment;
        segment.source = p;
        if (devices_find(&task->sources[p], part->reducer) < 0 && !is_early(job, p))
            send_contribution(builder, rounds->main, &task->sources[p], segment, part->reducer, rounds->cap);
    }
}

static int combining_step(Builder *builder)
{
    plan_step(builder, HT_EXCHANGE)->combine = true;
    return builder->plan->steps.count - 1;
}

/* An even share of what the steps so far and all jobs move. */
static int64_t even_load(const Builder *builder, const Jobs *jobs)
{
    int64_t total = 0;
    for (int i = 0; i < builder->plan->device_count; i++)
        total += builder->received[i];
    for (int j = 0; j < jobs->count; j++)
        total += jobs->at[j].collective ? 0 : task_bytes(builder->plan, &jobs->at[j]);
    return total / builder->plan->device_count + 1;
}

/* Reduces by messages the jobs that no collectives do. */
static void reduce_by_messages(Builder *builder, const Jobs *jobs, Parts *parts)
{
    plan_count(builder);
    Rounds rounds = {.cap = even_load(builder, jobs), .before = combining_step(builder)};
    rounds.main = combining_step(builder);
    for (int j = 0; j < jobs->count; j++) {
        Job *job = &jobs->at[j];
        if (job->collective)
            continue;
        find_early(builder, job, &rounds);
        add_parts(builder, job, parts);
        for (int i = job->first; i < job->last; i++)
            reduce_part(builder, job, &parts->at[i], &rounds);
        if (job->early.count)
            reduce_early(builder, job, parts, &rounds);
    }
    plan_drop_empty(builder);
}

/* ---- all together ---- */

/* Each part's value lies at its reducer now; the others that want it get it from there. */
static void hand_on(Builder *builder, const Part *part)
{
    const Task *task = &builder->plan->tasks.at[part->segment.task];
    Gift gift = {.segment = part->segment};
    gift.segment.origin = ORIGIN_TO;
    array_push(builder->arena, &gift.holders, part->reducer);
    for (int w = 0; w < task->wanted.count; w++)
        if (task->wanted.at[w] != part->reducer)
            array_push(builder->arena, &gift.needers, task->wanted.at[w]);
    if (gift.needers.count)
        array_push(builder->arena, &builder->gifts, gift);
}

void plan_reductions(Builder *builder)
{
    Jobs jobs = {0};
    Parts parts = {0};
    for (int t = 0; t < builder->plan->tasks.count; t++) {
        const Task *task = &builder->plan->tasks.at[t];
        Job job = {.task = t};
        if (task->source_count < 2)
            continue;
        if (is_all_reduce(task)) {
            add_all_reduce(builder, t);
            continue;
        }
        find_reducers(builder, task, &job);
        if (job.teams)
            add_team_parts(builder, &job, &parts);
        array_push(builder->arena, &jobs, job);
    }
    if (!jobs.count)
        return;
    reduce_in_teams(builder, &jobs, &parts);
    reduce_by_messages(builder, &jobs, &parts);
    for (int j = 0; j < jobs.count; j++)
        for (int i = jobs.at[j].first; i < jobs.at[j].last; i++)
            hand_on(builder, &parts.at[i]);
}
