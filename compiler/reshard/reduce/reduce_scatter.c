/* Makes reduce-scatters and reduces: reductions in groups, each device of which keeps a part. */
#include "reshard/reduce/reduce.h"
#include "reshard/plan_builder.h"

/* A part of a value: its reducer, and the devices whose contributions are reduced. */
typedef struct ScatterPart {
    Segment segment;
    int reducer;
    Devices group; // one holder of each contribution, the reducer among them
} ScatterPart;

typedef Array(ScatterPart) Parts;

/* A reduction that may be done by collectives, and its parts. */
typedef struct Candidate {
    Reduction reduction;
    int groups;      // number of groups, each with one holder of each contribution
    Devices members; // the reducers in these groups
    int first, last; // range of its parts, one for each member
    bool collective; // collectives do the reduction
} Candidate;

typedef Array(Candidate) Candidates;

typedef struct Reducer {
    PlanBuilder *planner;
    Index *targets; // index of the current task's targets
    Index *members; // index of the devices of the current group
    Candidates candidates;
    Parts parts;
} Reducer;

/* Returns the fewest and the most holders that a contribution has. */
static Range count_holders(const Task *task) {
    Range range = {task->source_count ? task->sources[0].count : 0, 0};
    for (int p = 0; p < task->source_count; p++) {
        range.lo = task->sources[p].count < range.lo ? task->sources[p].count : range.lo;
        range.hi = task->sources[p].count > range.hi ? task->sources[p].count : range.hi;
    }
    return range;
}

/* Returns the targets among the first `replicas` holders of each contribution. The targets are
 * listed group by group, so that each group reduces one contiguous range. */
static Devices list_reducers(const Reducer *reducer, const Task *task, int replicas) {
    Devices reducers = {0};
    for (int replica = 0; replica < replicas; replica++)
        for (int p = 0; p < task->source_count; p++)
            if (replica < task->sources[p].count &&
                index_find(reducer->targets, task->sources[p].at[replica]) >= 0)
                array_push(reducer->planner->arena, &reducers, task->sources[p].at[replica]);
    return reducers;
}

/* Chooses the devices that divide a value: for messages all holders that are targets, for groups
 * those in the groups. The number of groups is the least number of holders of any contribution. If
 * there are many contributions and no target is in these groups, the largest number is taken; some
 * holders are then in several groups. */
static void find_reducers(Reducer *reducer, const Task *task, Candidate *candidate) {
    Range replicas = count_holders(task);
    index_devices(reducer->targets, &task->targets);
    candidate->reduction.reducers = list_reducers(reducer, task, (int)replicas.hi);
    candidate->reduction.holds = candidate->reduction.reducers.count > 0;
    if (!candidate->reduction.holds) candidate->reduction.reducers = task->targets;
    if (task->source_count < 2) return;
    candidate->groups = (int)replicas.lo;
    candidate->members = list_reducers(reducer, task, candidate->groups);
    if (!candidate->members.count && candidate->reduction.holds &&
        task->source_count >= COLLECTIVE_MANY) {
        candidate->groups = (int)replicas.hi;
        candidate->members = candidate->reduction.reducers;
    }
}

/* Divides the value evenly among the members; each member reduces its part within its group. */
static void add_parts(Reducer *reducer, Candidate *candidate) {
    PlanBuilder *planner = reducer->planner;
    const Task *task = &planner->plan->tasks.at[candidate->reduction.task];
    const Devices *members = &candidate->members;
    int count = candidate->groups;
    Devices *groups = arena_array(planner->arena, Devices, count);
    index_clear(reducer->members);
    for (int replica = 0; replica < count; replica++) {
        groups[replica] = holder_group(planner, task, replica);
        for (int p = 0; p < task->source_count; p++)
            if (replica < task->sources[p].count)
                index_set(reducer->members, task->sources[p].at[replica], replica);
    }
    for (int r = 0; r < members->count; r++) {
        Segment segment = task_segment(planner->plan, candidate->reduction.task);
        segment.hi = segment.lo + task->volume * (r + 1) / members->count;
        segment.lo += task->volume * r / members->count;
        if (segment.lo < segment.hi)
            array_push(planner->arena, &reducer->parts,
                       (ScatterPart){segment, members->at[r],
                                     groups[index_find(reducer->members, members->at[r])]});
    }
    candidate->last = reducer->parts.count;
}

static void add_candidate(Reducer *reducer, int t) {
    Candidate candidate = {
        .reduction.task = t, .first = reducer->parts.count, .last = reducer->parts.count};
    find_reducers(reducer, &reducer->planner->plan->tasks.at[t], &candidate);
    if (candidate.members.count) add_parts(reducer, &candidate);
    array_push(reducer->planner->arena, &reducer->candidates, candidate);
}

/* Marks the candidates all of whose parts are in closed components; excludes the components of all
 * other candidates, until nothing changes. */
static void find_collective(const Candidates *candidates, const int *component, bool *closed) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int j = 0; j < candidates->count; j++) {
            Candidate *candidate = &candidates->at[j];
            bool all = candidate->members.count > 0;
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

/* Appends a component's collective, in which devices (reducer->members) keep their parts. */
static void add_scatter(Reducer *reducer, const Components *components, int c, Devices group) {
    PlanBuilder *planner = reducer->planner;
    Segments *kept = arena_array(planner->arena, Segments, group.count);
    for (int i = components->begin[c]; i < components->begin[c + 1]; i++) {
        const ScatterPart *part = &reducer->parts.at[components->sets[i]];
        array_push(planner->arena, &kept[index_find(reducer->members, part->reducer)],
                   part->segment);
    }
    add_collective(planner, group, kept, HT_REDUCE_SCATTER);
}

/* Appends a collective for each component whose parts have groups of the same devices, and marks
 * the candidates that these collectives reduce. */
static void reduce_in_groups(Reducer *reducer) {
    PlanBuilder *planner = reducer->planner;
    int count = reducer->parts.count, *buckets = arena_array(planner->arena, int, count),
        *reducers = arena_array(planner->arena, int, count);
    Devices *groups = arena_array(planner->arena, Devices, count);
    for (int i = 0; i < count; i++) {
        const ScatterPart *part = &reducer->parts.at[i];
        groups[i] = part->group;
        reducers[i] = part->reducer;
        buckets[i] = planner->plan->tasks.at[part->segment.task].bucket;
    }
    Components components = connect_sets(planner, groups, buckets, count);
    bool *closed = arena_array(planner->arena, bool, components.count);
    for (int c = 0; c < components.count; c++)
        closed[c] =
            closed_group(planner, &components, c, reducers, reducer->members).members.count > 0;
    find_collective(&reducer->candidates, components.of, closed);
    for (int c = 0; c < components.count; c++)
        if (closed[c])
            add_scatter(reducer, &components, c,
                        closed_group(planner, &components, c, reducers, reducer->members).members);
}

void add_reduce_scatters(PlanBuilder *planner, const Tasks *tasks, Reductions *rest) {
    Reducer reducer = {
        .planner = planner, .targets = index_create(planner), .members = index_create(planner)};
    for (int i = 0; i < tasks->count; i++) add_candidate(&reducer, tasks->at[i]);
    if (tasks->count) reduce_in_groups(&reducer);
    for (int j = 0; j < reducer.candidates.count; j++) {
        const Candidate *candidate = &reducer.candidates.at[j];
        if (!candidate->collective) array_push(planner->arena, rest, candidate->reduction);
        for (int i = candidate->first; i < candidate->last && candidate->collective; i++) {
            Segment segment = reducer.parts.at[i].segment;
            segment.origin = ORIGIN_TO;
            push_result(planner, &planner->transfers, segment, reducer.parts.at[i].reducer,
                        &planner->plan->tasks.at[segment.task].targets);
        }
    }
}
