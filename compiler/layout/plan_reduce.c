/* Reductions: each value is reduced once, in parts at several of the devices that want it, and then handed on; so all holders get the same bits.
 *
 * Where the holders of the contributions form teams that each want all of the value, an all-reduce does both at once. Where the teams of all parts are
 * the same devices, the parts are one reduce-scatter, or one reduce when all lie at one device. The rest is a batch of messages, before which
 * contributions that no reducer holds are reduced among their own holders if the reducers would receive too much.
 */
#include "layout/plan_build.h"

#include <stdlib.h>
#include <string.h>

/* A part of a value with the device that reduces it and those whose contributions it takes. */
typedef struct Part {
    Segment segment;
    int reducer;
    bool holds;   // the reducer holds a contribution itself
    Devices team; // by contribution; the reducer in place of the one that it holds
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

static int compare_devices(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The all-reduce of a group; `team` is in ascending order. */
static Step *all_reduce_step(Builder *builder, Devices team)
{
    for (int s = 0; s < builder->plan->steps.count; s++) {
        Step *step = &builder->plan->steps.at[s];
        if (step->verb == HT_ALL_REDUCE && step->group.count == team.count && !memcmp(step->group.at, team.at, sizeof(int) * (size_t)team.count))
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
        array_push(builder->arena, &all_reduce_step(builder, team)->parts[0], all);
    }
}

/* ---- parts ---- */

/* The devices among which the value is divided: those that want it and hold a contribution, or else all that want it. Teams stand together, so
 * that each reduces one stretch of the value. */
static Devices reducers_of(Builder *builder, const Task *task)
{
    Devices reducers = {0};
    int lanes = 0;
    for (int p = 0; p < task->source_count; p++)
        lanes = task->sources[p].count > lanes ? task->sources[p].count : lanes;
    for (int lane = 0; lane < lanes; lane++)
        for (int p = 0; p < task->source_count; p++)
            if (lane < task->sources[p].count && devices_find(&task->wanted, task->sources[p].at[lane]) >= 0)
                array_push(builder->arena, &reducers, task->sources[p].at[lane]);
    return reducers.count ? reducers : task->wanted;
}

static int least_loaded(const Builder *builder, const Devices *devices)
{
    int best = 0;
    for (int i = 1; i < devices->count; i++)
        if (builder->sent[plan_slot(builder->plan, devices->at[i])] < builder->sent[plan_slot(builder->plan, devices->at[best])])
            best = i;
    return devices->at[best];
}

/* Chooses who brings each contribution to a part: its own team, where the holders form teams, or the least loaded holder. */
static void choose_team(Builder *builder, const Task *task, Part *part)
{
    int own = -1, lane = -1;
    for (int p = 0; p < task->source_count && lane < 0; p++)
        if ((lane = devices_find(&task->sources[p], part->reducer)) >= 0)
            own = p;
    part->holds = own >= 0;
    bool teams = own >= 0 && holders_each(task) > 0;
    for (int p = 0; p < task->source_count; p++) {
        int member = p == own ? part->reducer : teams ? task->sources[p].at[lane] : least_loaded(builder, &task->sources[p]);
        array_push(builder->arena, &part->team, member);
        if (p != own)
            builder->sent[plan_slot(builder->plan, member)] += part->segment.hi - part->segment.lo;
    }
}

static void add_parts(Builder *builder, int t, Parts *parts)
{
    const Task *task = &builder->plan->tasks.at[t];
    Devices reducers = reducers_of(builder, task);
    int64_t *shares = arena_array(builder->arena, int64_t, reducers.count), lo = 0;
    spread_evenly(builder, &reducers, task->volume, task->source_count - 1, builder->received, shares);
    for (int r = 0; r < reducers.count; lo += shares[r++]) {
        if (!shares[r])
            continue;
        Part part = {.segment = {.task = t, .origin = ORIGIN_FROM, .lo = lo, .hi = lo + shares[r]}, .reducer = reducers.at[r]};
        choose_team(builder, task, &part);
        array_push(builder->arena, parts, part);
    }
}

/* ---- collectives ---- */

/* The devices of a component: the reducers in the order of their parts, then the others in ascending order. */
static Devices component_devices(Builder *builder, const Parts *parts, const int *component, int which, int *reducers)
{
    Devices devices = {0}, others = {0};
    for (int i = 0; i < parts->count; i++)
        if (component[i] == which && devices_find(&devices, parts->at[i].reducer) < 0)
            array_push(builder->arena, &devices, parts->at[i].reducer);
    *reducers = devices.count;
    for (int i = 0; i < parts->count; i++)
        for (int k = 0; component[i] == which && k < parts->at[i].team.count; k++)
            if (devices_find(&devices, parts->at[i].team.at[k]) < 0 && devices_find(&others, parts->at[i].team.at[k]) < 0)
                array_push(builder->arena, &others, parts->at[i].team.at[k]);
    if (others.count)
        qsort(others.at, (size_t)others.count, sizeof *others.at, compare_devices);
    for (int i = 0; i < others.count; i++)
        array_push(builder->arena, &devices, others.at[i]);
    return devices;
}

/* Whether all devices of a component contribute to all its parts. */
static bool is_collective(const Parts *parts, const int *component, int which, int devices)
{
    for (int i = 0; i < parts->count; i++)
        if (component[i] == which && (!parts->at[i].holds || parts->at[i].team.count != devices))
            return false;
    return true;
}

/* Makes one collective of a component when it is one. */
static bool add_collective(Builder *builder, const Parts *parts, const int *component, int which)
{
    int reducers;
    Devices devices = component_devices(builder, parts, component, which, &reducers);
    if (!is_collective(parts, component, which, devices.count))
        return false;
    Step *step = plan_step(builder, reducers == 1 ? HT_REDUCE : HT_REDUCE_SCATTER);
    step->group = devices;
    step->parts = arena_array(builder->arena, Segments, devices.count);
    for (int i = 0; i < parts->count; i++)
        if (component[i] == which)
            array_push(builder->arena, &step->parts[devices_find(&devices, parts->at[i].reducer)], parts->at[i].segment);
    return true;
}

/* ---- messages ---- */

/* What the messages of a reduction need: the steps, and what was reduced beforehand. */
typedef struct Rounds {
    int before, main;    // the steps in which the early ones and all others are reduced
    Array(int) early;    // contributions that no reducer of the current task holds
    Devices early_at;    // the holder of each that takes part
    int64_t *early_ends; // where the part that each of them reduces ends
} Rounds;

/* Contributions that no reducer of the task holds, when reducing them first spares the reducers; else none. */
static void find_early(Builder *builder, const Parts *parts, int first, int last, Rounds *rounds)
{
    const Task *task = &builder->plan->tasks.at[parts->at[first].segment.task];
    rounds->early.count = rounds->early_at.count = 0;
    if (task->source_count - 2 <= last - first)
        return;
    for (int p = 0; p < task->source_count; p++) {
        bool held = false;
        for (int i = first; i < last && !held; i++)
            held = devices_find(&task->sources[p], parts->at[i].reducer) >= 0;
        if (!held)
            array_push(builder->arena, &rounds->early, p);
    }
    if (rounds->early.count < 2)
        rounds->early.count = 0;
    for (int k = 0; k < rounds->early.count; k++)
        array_push(builder->arena, &rounds->early_at, least_loaded(builder, &task->sources[rounds->early.at[k]]));
}

/* The holders of early contributions reduce them among themselves, each a part. */
static void reduce_early(Builder *builder, int t, Rounds *rounds)
{
    int count = rounds->early.count;
    int64_t *shares = arena_array(builder->arena, int64_t, count), lo = 0;
    rounds->early_ends = arena_array(builder->arena, int64_t, count);
    spread_evenly(builder, &rounds->early_at, builder->plan->tasks.at[t].volume, count - 1, builder->received, shares);
    for (int k = 0; k < count; lo += shares[k++]) {
        rounds->early_ends[k] = lo + shares[k];
        if (!shares[k])
            continue;
        Segment segment = {.task = t, .origin = ORIGIN_FROM, .source = rounds->early.at[0], .lo = lo, .hi = lo + shares[k]};
        array_push(builder->arena, &builder->plan->steps.at[rounds->before].reductions, (Reducing){rounds->early_at.at[k], segment, true});
        for (int i = 0; i < count; i++) {
            segment.source = rounds->early.at[i];
            if (i != k)
                step_send(builder, rounds->before, rounds->early_at.at[i], rounds->early_at.at[k], segment);
        }
    }
}

static bool is_early(const Rounds *rounds, int source)
{
    for (int k = 0; k < rounds->early.count; k++)
        if (rounds->early.at[k] == source)
            return true;
    return false;
}

/* Sends a reducer what it needs of the early reductions. */
static void send_early(Builder *builder, const Part *part, const Rounds *rounds)
{
    int64_t lo = 0;
    for (int k = 0; k < rounds->early.count; lo = rounds->early_ends[k++]) {
        Segment segment = {.task = part->segment.task, .origin = ORIGIN_PARTIAL, .source = rounds->early.at[0]};
        segment.lo = lo > part->segment.lo ? lo : part->segment.lo;
        segment.hi = rounds->early_ends[k] < part->segment.hi ? rounds->early_ends[k] : part->segment.hi;
        if (segment.lo < segment.hi)
            step_send(builder, rounds->main, rounds->early_at.at[k], part->reducer, segment);
    }
}

static void reduce_part(Builder *builder, const Part *part, const Rounds *rounds)
{
    array_push(builder->arena, &builder->plan->steps.at[rounds->main].reductions, (Reducing){part->reducer, part->segment, false});
    for (int p = 0; p < part->team.count; p++) {
        Segment segment = part->segment;
        segment.source = p;
        if (part->team.at[p] != part->reducer && !is_early(rounds, p))
            step_send(builder, rounds->main, part->team.at[p], part->reducer, segment);
    }
    send_early(builder, part, rounds);
}

/* Reduces by messages those of the parts [first, last), which are all of one task, that no collective has done. */
static void add_messages(Builder *builder, const Parts *parts, int first, int last, const int *component, const bool *done, Rounds *rounds)
{
    bool any = false;
    for (int i = first; i < last; i++)
        any = any || done[component[i]];
    rounds->early.count = rounds->early_at.count = 0;
    if (!any)
        find_early(builder, parts, first, last, rounds);
    if (rounds->early.count)
        reduce_early(builder, parts->at[first].segment.task, rounds);
    for (int i = first; i < last; i++)
        if (!done[component[i]])
            reduce_part(builder, &parts->at[i], rounds);
}

static int combining_step(Builder *builder)
{
    plan_step(builder, HT_EXCHANGE)->combine = true;
    return builder->plan->steps.count - 1;
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

/* The devices that act for each part: its team, and the reducer even if it holds nothing. */
static const Devices *acting_devices(Builder *builder, const Parts *parts)
{
    Devices *teams = arena_array(builder->arena, Devices, parts->count);
    for (int i = 0; i < parts->count; i++) {
        const Part *part = &parts->at[i];
        for (int k = 0; k < part->team.count; k++)
            array_push(builder->arena, &teams[i], part->team.at[k]);
        if (!part->holds)
            array_push(builder->arena, &teams[i], part->reducer);
    }
    return teams;
}

static void reduce_parts(Builder *builder, const Parts *parts)
{
    int components, *component = connect_sets(builder, acting_devices(builder, parts), parts->count, &components);
    bool *done = arena_array(builder->arena, bool, components);
    for (int c = 0; c < components; c++)
        done[c] = add_collective(builder, parts, component, c);
    Rounds rounds = {.before = combining_step(builder)};
    rounds.main = combining_step(builder);
    for (int i = 0, end; i < parts->count; i = end) {
        for (end = i + 1; end < parts->count && parts->at[end].segment.task == parts->at[i].segment.task;)
            end++;
        add_messages(builder, parts, i, end, component, done, &rounds);
    }
    plan_drop_empty(builder);
}

void plan_reductions(Builder *builder)
{
    Parts parts = {0};
    for (int t = 0; t < builder->plan->tasks.count; t++) {
        const Task *task = &builder->plan->tasks.at[t];
        if (task->source_count < 2)
            continue;
        if (is_all_reduce(task))
            add_all_reduce(builder, t);
        else
            add_parts(builder, t, &parts);
    }
    reduce_parts(builder, &parts);
    for (int i = 0; i < parts.count; i++)
        hand_on(builder, &parts.at[i]);
}
