/* From bundles to tasks: which contributions make which value, for whom. */
#include "reshard/hosts.h"

/* The contributions of one replica to a bundle, with their holders. */
typedef struct Replica {
    int name;
    Array(int) partial; // names of contributions
    Array(Devices) holders;
} Replica;

typedef Array(Replica) Replicas;

static void add_holders(Arena *arena, Devices *devices, const Piece *piece)
{
    for (int i = 0; i < piece->device_count; i++)
        array_push(arena, devices, piece->devices[i]);
}

static Replica *find_replica(Arena *arena, Replicas *replicas, int name)
{
    for (int i = 0; i < replicas->count; i++)
        if (replicas->at[i].name == name)
            return &replicas->at[i];
    array_push(arena, replicas, (Replica){.name = name});
    return &replicas->at[replicas->count - 1];
}

static Devices *find_contribution(Arena *arena, Replica *replica, int name)
{
    for (int i = 0; i < replica->partial.count; i++)
        if (replica->partial.at[i] == name)
            return &replica->holders.at[i];
    array_push(arena, &replica->partial, name);
    array_push(arena, &replica->holders, (Devices){0});
    return &replica->holders.at[replica->holders.count - 1];
}

/* Who holds a bundle on one side, by replica and contribution. */
static Replicas replicas_of(Builder *builder, const Cells *cells, const Bundle *bundle, Side side)
{
    Replicas replicas = {0};
    for (int h = 0; h < bundle->holder_count[side]; h++) {
        const Piece *piece = &cells->side[side].pieces[bundle->holders[side][h]];
        Replica *replica = find_replica(builder->arena, &replicas, piece->replica);
        add_holders(builder->arena, find_contribution(builder->arena, replica, piece->partial), piece);
    }
    return replicas;
}

/* Replicas with a single contribution hold the value itself; all of them become one. The result has no contribution where there is none. */
static Replica merge_whole(Arena *arena, const Replicas *replicas)
{
    Replica whole = {0};
    for (int r = 0; r < replicas->count; r++) {
        const Replica *replica = &replicas->at[r];
        if (replica->partial.count != 1)
            continue;
        Devices *holders = find_contribution(arena, &whole, 0);
        for (int i = 0; i < replica->holders.at[0].count; i++)
            array_push(arena, holders, replica->holders.at[0].at[i]);
    }
    return whole;
}

int devices_find(const Devices *devices, int device)
{
    for (int i = 0; i < devices->count; i++)
        if (devices->at[i] == device)
            return i;
    return -1;
}

static int count_common(const Devices *a, const Devices *b)
{
    int count = 0;
    for (int i = 0; i < a->count; i++)
        count += devices_find(b, a->at[i]) >= 0;
    return count;
}

/* What the devices of `wanted` must receive, in elements of the bundle, to get the reduction of the replica's contributions. */
static int reduction_cost(const Replica *replica, const Devices *wanted)
{
    bool held = false;
    for (int p = 0; p < replica->holders.count && !held; p++)
        held = count_common(&replica->holders.at[p], wanted) > 0;
    return replica->partial.count + wanted->count - 1 - held;
}

/* The fewest elements that must be received to get the reduction of a replica. */
static int least_cost(const Replicas *replicas, const Devices *wanted)
{
    int least = INT32_MAX;
    for (int r = 0; r < replicas->count; r++) {
        int cost = reduction_cost(&replicas->at[r], wanted);
        least = cost < least ? cost : least;
    }
    return least;
}

static Task *add_task(Builder *builder, int stack, int bundle, Devices wanted)
{
    const Stack *owner = &builder->plan->stacks.at[stack];
    Task task = {.stack = stack, .bundle = bundle, .wanted = wanted};
    task.volume = owner->cells->bundles[bundle].volume * owner->tensor_count;
    array_push(builder->arena, &builder->plan->tasks, task);
    return &builder->plan->tasks.at[builder->plan->tasks.count - 1];
}

static void set_sources(Task *task, const Replica *replica)
{
    task->source_count = replica->holders.count;
    task->sources = replica->holders.at;
}

/* The contribution of the target that takes a contribution of the source: the one whose devices miss it least. */
static int receiving_contribution(const Devices *holders, const Replica *target)
{
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

/* Each contribution of the source goes into one of the target's; contributions that get none are the identity. */
static void add_partial_tasks(Builder *builder, int stack, int bundle, const Replica *source, const Replica *target)
{
    int first = builder->plan->tasks.count;
    for (int q = 0; q < target->holders.count; q++)
        add_task(builder, stack, bundle, target->holders.at[q])->sources = arena_array(builder->arena, Devices, source->holders.count);
    for (int p = 0; p < source->holders.count; p++) {
        Task *task = &builder->plan->tasks.at[first + receiving_contribution(&source->holders.at[p], target)];
        task->sources[task->source_count++] = source->holders.at[p];
    }
}

/* What devices must receive, in elements of the bundle, when the source's contributions go into those of the target. */
static int partial_cost(Arena *arena, const Replica *source, const Replica *target)
{
    int cost = 0, *count = arena_array(arena, int, target->holders.count), *common = arena_array(arena, int, target->holders.count);
    for (int p = 0; p < source->holders.count; p++) {
        int q = receiving_contribution(&source->holders.at[p], target);
        common[q] += count_common(&source->holders.at[p], &target->holders.at[q]);
        count[q]++;
    }
    for (int q = 0; q < target->holders.count; q++) {
        int wanted = target->holders.at[q].count;
        cost += count[q] < 2 ? count[q] * (wanted - common[q]) : count[q] + wanted - 1 - (common[q] > 0);
    }
    return cost;
}

/* Of the source's replicas, and the holders of the whole value, which replace those of which they were made: whose contributions go into
 * those of the target with the fewest bytes. */
static const Replica *cheapest_source(Arena *arena, const Replicas *replicas, const Replica *whole, const Replica *target)
{
    const Replica *best = whole->holders.count ? whole : NULL;
    int least = best ? partial_cost(arena, best, target) : INT32_MAX;
    for (int r = 0; r < replicas->count && least; r++) {
        const Replica *replica = &replicas->at[r];
        if (replica->holders.count == 1 || (replicas->count == 1 && !best))
            continue;
        int cost = partial_cost(arena, replica, target);
        if (cost < least) {
            least = cost;
            best = replica;
        }
    }
    return best ? best : &replicas->at[0];
}

static Devices all_holders(Arena *arena, const Replicas *replicas)
{
    Devices all = {0};
    for (int r = 0; r < replicas->count; r++)
        for (int p = 0; p < replicas->at[r].holders.count; p++)
            for (int i = 0; i < replicas->at[r].holders.at[p].count; i++)
                array_push(arena, &all, replicas->at[r].holders.at[p].at[i]);
    return all;
}

/* The fewest devices that hold one of a replica's contributions: so many share the work of sending it. */
static int fewest_holders(const Replica *replica)
{
    int fewest = INT32_MAX;
    for (int p = 0; p < replica->holders.count; p++)
        fewest = replica->holders.at[p].count < fewest ? replica->holders.at[p].count : fewest;
    return fewest;
}

/* Replicas that are reduced with the fewest bytes reduce parts of the bundle, larger ones where more devices share the work. */
static void add_reductions(Builder *builder, int stack, int bundle, const Replicas *replicas, Devices wanted)
{
    int least = least_cost(replicas, &wanted), all = 0, before = 0;
    for (int r = 0; r < replicas->count; r++)
        all += reduction_cost(&replicas->at[r], &wanted) == least ? fewest_holders(&replicas->at[r]) : 0;
    for (int r = 0; r < replicas->count; r++) {
        if (reduction_cost(&replicas->at[r], &wanted) > least)
            continue;
        Task *task = add_task(builder, stack, bundle, wanted);
        int64_t volume = task->volume, weight = fewest_holders(&replicas->at[r]);
        task->lo = volume * before / all;
        task->volume = volume * (before + weight) / all - task->lo;
        before += (int)weight;
        set_sources(task, &replicas->at[r]);
        builder->plan->tasks.count -= !task->volume;
    }
}

static void add_bundle_tasks(Builder *builder, int stack, int b)
{
    const Cells *cells = builder->plan->stacks.at[stack].cells;
    const Bundle *bundle = &cells->bundles[b];
    Replicas from = replicas_of(builder, cells, bundle, SIDE_FROM), to = replicas_of(builder, cells, bundle, SIDE_TO);
    Replica whole = merge_whole(builder->arena, &from);
    if (cells->side[SIDE_TO].partial == STATE_DUP) {
        Devices wanted = all_holders(builder->arena, &to);
        if (wanted.count && whole.holders.count)
            set_sources(add_task(builder, stack, b, wanted), &whole);
        else if (wanted.count)
            add_reductions(builder, stack, b, &from, wanted);
        return;
    }
    for (int r = 0; r < to.count; r++)
        add_partial_tasks(builder, stack, b, cheapest_source(builder->arena, &from, &whole, &to.at[r]), &to.at[r]);
}

/* Contributions come from the hosts of those that want the value, where these have them. `near` is by host: the last task that wants
 * something there, from 1. */
static void keep_near(Hosts *hosts, int t, int *near)
{
    Task *task = &hosts->builder->plan->tasks.at[t];
    for (int w = 0; w < task->wanted.count; w++)
        near[host_of(hosts, task->wanted.at[w])] = t + 1;
    for (int p = 0; p < task->source_count; p++) {
        Devices kept = {0};
        for (int h = 0; h < task->sources[p].count; h++)
            if (near[host_of(hosts, task->sources[p].at[h])] == t + 1)
                array_push(hosts->builder->arena, &kept, task->sources[p].at[h]);
        if (kept.count)
            task->sources[p] = kept;
    }
}

void plan_tasks(Builder *builder)
{
    for (int s = 0; s < builder->plan->stacks.count; s++)
        for (int b = 0; b < builder->plan->stacks.at[s].cells->bundle_count; b++)
            add_bundle_tasks(builder, s, b);
    Hosts *hosts = hosts_of(builder);
    int *near = arena_array(builder->arena, int, hosts->count);
    for (int t = 0; t < builder->plan->tasks.count && hosts->count > 1; t++)
        if (builder->plan->tasks.at[t].source_count > 1)
            keep_near(hosts, t, near);
}
