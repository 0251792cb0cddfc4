/* Makes the tasks of bundles: the contributions to each value, and its target devices. */
#include "reshard/plan_builder.h"

#include "reshard/hierarchical/hierarchical.h"
#include "support/intern.h"

/* The contributions of one replica to a bundle, with their holders. */
typedef struct Replica {
    int name;           // Holding.replica
    Array(int) partial; // the contributions, each given as Holding.partial
    bool ascending;     // `partial` is ascending
    Array(Devices) holders;
} Replica;

typedef Array(Replica) Replicas;

static void add_holders(Arena *arena, Devices *devices, const Holding *holding) {
    for (int i = 0; i < holding->devices.count; i++)
        array_push(arena, devices, holding->devices.at[i]);
}

static Replica *find_replica(Arena *arena, Replicas *replicas, int name) {
    for (int i = 0; i < replicas->count; i++)
        if (replicas->at[i].name == name) return &replicas->at[i];
    array_push(arena, replicas, (Replica){.name = name});
    return &replicas->at[replicas->count - 1];
}

static Devices *find_contribution(Arena *arena, Replica *replica, int name) {
    int last = replica->partial.count - 1;
    bool beyond = last >= 0 && replica->ascending && name > replica->partial.at[last];
    for (int i = 0; i <= last && !beyond; i++)
        if (replica->partial.at[i] == name) return &replica->holders.at[i];
    replica->ascending = last < 0 || beyond;
    array_push(arena, &replica->partial, name);
    array_push(arena, &replica->holders, (Devices){0});
    return &replica->holders.at[replica->holders.count - 1];
}

/* Returns the holders of a bundle on one side, by replica and contribution. */
static Replicas replicas_of(PlanBuilder *planner, const Overlap *overlap, const Bundle *bundle,
                            Side side) {
    Replicas replicas = {0};
    for (int h = 0; h < bundle->holder_count[side]; h++) {
        const Holding *holding = &overlap->side[side].list.at[bundle->holders[side][h]];
        Replica *replica = find_replica(planner->arena, &replicas, holding->replica);
        add_holders(planner->arena, find_contribution(planner->arena, replica, holding->partial),
                    holding);
    }
    return replicas;
}

/* Merges the replicas with a single contribution, whose holders have the complete value, into one.
 * The result has no contribution if there is no such replica. */
static Replica merge_whole(Arena *arena, const Replicas *replicas) {
    Replica whole = {0};
    for (int r = 0; r < replicas->count; r++) {
        const Replica *replica = &replicas->at[r];
        if (replica->partial.count != 1) continue;
        Devices *holders = find_contribution(arena, &whole, 0);
        for (int i = 0; i < replica->holders.at[0].count; i++)
            array_push(arena, holders, replica->holders.at[0].at[i]);
    }
    return whole;
}

static int count_common(const Devices *a, const Devices *b) {
    int count = 0;
    for (int i = 0; i < a->count; i++) count += devices_find(b, a->at[i]) >= 0;
    return count;
}

/* Returns how many times each element must be received for a task. */
static int task_cost(const Task *task) {
    int common = 0, wanted = task->targets.count;
    for (int p = 0; p < task->source_count && !common; p++)
        common = count_common(&task->sources[p], &task->targets);
    return task->source_count < 2 ? task->source_count * (wanted - common)
                                  : task->source_count + wanted - 1 - (common > 0);
}

/* Returns how many times each element must be received to reduce a replica's contributions. */
static int reduction_cost(const Replica *replica, const Devices *targets) {
    return task_cost(&(Task){.source_count = replica->holders.count,
                             .sources = replica->holders.at,
                             .targets = *targets});
}

static Task *add_task(PlanBuilder *planner, int bucket, int bundle, Devices targets) {
    const Bucket *owner = &planner->plan->buckets.at[bucket];
    Task task = {.bucket = bucket, .bundle = bundle, .targets = targets};
    task.volume = owner->overlap->bundles.at[bundle].volume * owner->tensor_count;
    array_push(planner->arena, &planner->plan->tasks, task);
    return &planner->plan->tasks.at[planner->plan->tasks.count - 1];
}

static void set_sources(Task *task, const Replica *replica) {
    task->source_count = replica->holders.count;
    task->sources = replica->holders.at;
}

/* Returns the index of the target contribution to which a source contribution is added: the one
 * with the fewest devices that lack the source contribution. */
static int receiving_contribution(const Devices *holders, const Replica *target) {
    int best = 0, least = INT32_MAX;
    for (int q = 0; q < target->holders.count; q++) {
        int missing = target->holders.at[q].count - count_common(&target->holders.at[q], holders);
        if (missing < least) {
            least = missing;
            best = q;
        }
    }
    return best;
}

/* Adds a task for each target contribution, and assigns each source contribution to one task. A
 * task without sources fills in the identity. Returns how often each element must be received. */
static int add_partial_tasks(PlanBuilder *planner, int bucket, int bundle, const Replica *source,
                             const Replica *target) {
    TaskList *tasks = &planner->plan->tasks;
    int first = tasks->count, cost = 0;
    for (int q = 0; q < target->holders.count; q++)
        add_task(planner, bucket, bundle, target->holders.at[q])->sources =
            arena_array(planner->arena, Devices, source->holders.count);
    for (int p = 0; p < source->holders.count; p++) {
        Task *task = &tasks->at[first + receiving_contribution(&source->holders.at[p], target)];
        task->sources[task->source_count++] = source->holders.at[p];
    }
    for (int t = first; t < tasks->count; t++) cost += task_cost(&tasks->at[t]);
    return cost;
}

/* The holders of a bundle on one side, made once for each list (Bundle.holders) and then shared. */
typedef struct Holders {
    Replicas replicas;
    Replica whole; // SIDE_FROM: the holders of the complete value
    Devices all;   // SIDE_TO: all devices that hold the bundle
} Holders;

/* Returns the source's replica, or `whole`, from which the target costs the fewest bytes. */
static const Replica *cheapest_source(PlanBuilder *planner, int bucket, int bundle,
                                      const Holders *source, const Replica *target) {
    const Replicas *replicas = &source->replicas;
    const Replica *whole = &source->whole;
    const Replica *best = &replicas->at[0];
    int first = planner->plan->tasks.count,
        least = replicas->count == 1 && !whole->holders.count ? 0 : INT32_MAX;
    for (int r = -1; r < replicas->count && least; r++) {
        const Replica *replica = r < 0 ? whole : &replicas->at[r];
        if (r < 0 ? !whole->holders.count : replica->holders.count == 1) continue;
        int cost = add_partial_tasks(planner, bucket, bundle, replica, target);
        best = cost < least ? replica : best;
        least = cost < least ? cost : least;
        planner->plan->tasks.count = first;
    }
    return best;
}

static Devices all_holders(Arena *arena, const Replicas *replicas) {
    Devices all = {0};
    for (int r = 0; r < replicas->count; r++)
        for (int p = 0; p < replicas->at[r].holders.count; p++)
            for (int i = 0; i < replicas->at[r].holders.at[p].count; i++)
                array_push(arena, &all, replicas->at[r].holders.at[p].at[i]);
    return all;
}

/* Returns the least number of holders of a replica's contribution; holders share its sending. */
static int fewest_holders(const Replica *replica) {
    int fewest = INT32_MAX;
    for (int p = 0; p < replica->holders.count; p++)
        fewest = replica->holders.at[p].count < fewest ? replica->holders.at[p].count : fewest;
    return fewest;
}

/* Divides the bundle among the replicas that can be reduced with the fewest bytes; a replica whose
 * contributions have more holders gets a larger part. */
static void add_reductions(PlanBuilder *planner, int bucket, int bundle, const Replicas *replicas,
                           Devices targets) {
    int least = INT32_MAX, all = 0, before = 0,
        *cost = arena_array(planner->arena, int, replicas->count);
    if (replicas->count == 1) {
        set_sources(add_task(planner, bucket, bundle, targets), &replicas->at[0]);
        return;
    }
    for (int r = 0; r < replicas->count; r++) {
        cost[r] = reduction_cost(&replicas->at[r], &targets);
        least = cost[r] < least ? cost[r] : least;
    }
    for (int r = 0; r < replicas->count; r++)
        all += cost[r] == least ? fewest_holders(&replicas->at[r]) : 0;
    for (int r = 0; r < replicas->count; r++) {
        if (cost[r] > least) continue;
        Task *task = add_task(planner, bucket, bundle, targets);
        int64_t volume = task->volume, weight = fewest_holders(&replicas->at[r]);
        task->lo = volume * before / all;
        task->volume = volume * (before + weight) / all - task->lo;
        before += (int)weight;
        set_sources(task, &replicas->at[r]);
        planner->plan->tasks.count -= !task->volume;
    }
}

/* Returns the holders of a bundle on a side; `known` caches them by list. */
static const Holders *find_holders(PlanBuilder *planner, const Overlap *overlap,
                                   const Bundle *bundle, Side side, Intern *known) {
    Holders **holders = intern_slot(known, &bundle->holders[side], sizeof bundle->holders[side]);
    if (*holders) return *holders;
    *holders = arena_new(planner->arena, Holders);
    (*holders)->replicas = replicas_of(planner, overlap, bundle, side);
    if (side == SIDE_FROM) (*holders)->whole = merge_whole(planner->arena, &(*holders)->replicas);
    else (*holders)->all = all_holders(planner->arena, &(*holders)->replicas);
    return *holders;
}

static void add_bundle_tasks(PlanBuilder *planner, int bucket, int b, Intern *const *known) {
    const Overlap *overlap = planner->plan->buckets.at[bucket].overlap;
    const Bundle *bundle = &overlap->bundles.at[b];
    const Holders *before = find_holders(planner, overlap, bundle, SIDE_FROM, known[SIDE_FROM]),
                  *after = find_holders(planner, overlap, bundle, SIDE_TO, known[SIDE_TO]);
    const Replicas *from = &before->replicas, *to = &after->replicas;
    const Replica *whole = &before->whole;
    if (overlap->side[SIDE_TO].partial == STATE_DUP) {
        if (after->all.count && whole->holders.count)
            set_sources(add_task(planner, bucket, b, after->all), whole);
        else if (after->all.count) add_reductions(planner, bucket, b, from, after->all);
        return;
    }
    for (int r = 0; r < to->count; r++)
        add_partial_tasks(planner, bucket, b,
                          cheapest_source(planner, bucket, b, before, &to->at[r]), &to->at[r]);
}

/* Returns whether devices of several hosts hold one contribution of a task. */
static bool has_far_holders(const Hosts *hosts, const Task *task) {
    for (int p = 0; p < task->source_count; p++)
        for (int h = 1; h < task->sources[p].count; h++)
            if (host_of(hosts, task->sources[p].at[h]) != host_of(hosts, task->sources[p].at[0]))
                return true;
    return false;
}

/* Removes from each contribution the holders on hosts without targets, unless none would be left.
 * `near` has, by host, 1 + the last task with a target on the host. */
static void keep_near(Hosts *hosts, int t, int *near) {
    Task *task = &hosts->planner->plan->tasks.at[t];
    for (int w = 0; w < task->targets.count; w++) near[host_of(hosts, task->targets.at[w])] = t + 1;
    task->sources = arena_copy(hosts->planner->arena, task->sources,
                               sizeof *task->sources * (size_t)task->source_count);
    for (int p = 0; p < task->source_count; p++) {
        Devices kept = {0};
        for (int h = 0; h < task->sources[p].count; h++)
            if (near[host_of(hosts, task->sources[p].at[h])] == t + 1)
                array_push(hosts->planner->arena, &kept, task->sources[p].at[h]);
        if (kept.count) task->sources[p] = kept;
    }
}

/* Calls keep_near for reductions with holders of a contribution on several hosts. */
static void keep_all_near(PlanBuilder *planner) {
    enum { NEAR = 1, FAR };
    Hosts *hosts = hosts_of(planner);
    int *near = arena_array(planner->arena, int, hosts->count);
    Intern *known = intern_create(planner->arena);
    for (int t = 0; t < planner->plan->tasks.count && hosts->count > 1; t++) {
        const Task *task = &planner->plan->tasks.at[t];
        if (task->source_count < 2) continue;
        intptr_t *far = intern_slot(known, &task->sources, sizeof task->sources);
        if (!*far) *far = has_far_holders(hosts, task) ? FAR : NEAR;
        if (*far == FAR) keep_near(hosts, t, near);
    }
}

void find_tasks(PlanBuilder *planner) {
    for (int s = 0; s < planner->plan->buckets.count; s++) {
        Intern *const known[2] = {intern_create(planner->arena), intern_create(planner->arena)};
        for (int b = 0; b < planner->plan->buckets.at[s].overlap->bundles.count; b++)
            add_bundle_tasks(planner, s, b, known);
    }
    keep_all_near(planner);
}
