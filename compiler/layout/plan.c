/* The planner: bundles become tasks, tasks become steps, and the steps are counted, named and priced. */
#include "layout/cluster.h"
#include "layout/plan_build.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* The message between two devices in a step. */
typedef struct PairKey {
    int step, sender, receiver;
} PairKey;
typedef struct Pair {
    PairKey key;
    int message;
    UT_hash_handle hh;
} Pair;

/* ---- devices ---- */

static int compare_ints(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

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
    int low = 0, high = plan->device_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (plan->devices[middle] < device)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->device_count && plan->devices[low] == device ? low : -1;
}

static int find_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

int *connect_sets(Builder *builder, const Devices *sets, int count, int *component_count)
{
    int devices = builder->plan->device_count, *parent = arena_array(builder->arena, int, devices), *number = arena_array(builder->arena, int, devices);
    int *component = arena_array(builder->arena, int, count);
    for (int i = 0; i < devices; i++)
        parent[i] = i;
    for (int s = 0; s < count; s++)
        for (int k = 1; k < sets[s].count; k++) {
            int a = find_root(parent, plan_slot(builder->plan, sets[s].at[0])), b = find_root(parent, plan_slot(builder->plan, sets[s].at[k]));
            parent[a > b ? a : b] = a > b ? b : a;
        }
    *component_count = 0;
    for (int s = 0; s < count; s++) {
        int root = find_root(parent, plan_slot(builder->plan, sets[s].at[0]));
        if (!number[root])
            number[root] = ++*component_count;
        component[s] = number[root] - 1;
    }
    return component;
}

int *sort_by_component(Builder *builder, const int *component, int count, int components, int *begin)
{
    int *order = arena_array(builder->arena, int, count), *next = arena_array(builder->arena, int, components + 1);
    for (int i = 0; i < count; i++)
        begin[component[i] + 1]++;
    for (int c = 0; c < components; c++)
        next[c + 1] = begin[c + 1] += begin[c];
    next[0] = 0;
    for (int i = 0; i < count; i++)
        order[next[component[i]]++] = i;
    return order;
}

/* ---- loads ---- */

typedef struct Load {
    int64_t load;
    int index;
} Load;

static int compare_loads(const void *a, const void *b)
{
    const Load *x = a, *y = b;
    return x->load != y->load ? (x->load > y->load) - (x->load < y->load) : x->index - y->index;
}

/* How many of the least loaded devices take part, and the load that all of these have in the end. */
static int find_level(const Load *loads, int count, double work, double *level)
{
    double sum = 0;
    for (int k = 0; k < count; k++) {
        sum += (double)loads[k].load;
        *level = (sum + work) / (k + 1);
        if (k + 1 == count || *level <= (double)loads[k + 1].load)
            return k + 1;
    }
    return count;
}

void spread_evenly(Builder *builder, const Devices *devices, int64_t amount, int64_t cost, int64_t cap, int64_t *load, int64_t *shares)
{
    Load *loads = arena_array(builder->arena, Load, devices->count);
    for (int i = 0; i < devices->count; i++)
        loads[i] = (Load){load[plan_slot(builder->plan, devices->at[i])], i};
    qsort(loads, (size_t)devices->count, sizeof *loads, compare_loads);
    double level = 0;
    int active = find_level(loads, devices->count, (double)amount * (double)cost, &level);
    level = level > (double)cap ? level : (double)cap;
    int64_t left = amount;
    for (int k = 0; k < active; k++) {
        int64_t share = (int64_t)((level - (double)loads[k].load) / (double)cost);
        share = share < 0 ? 0 : share > left ? left : share;
        shares[loads[k].index] = share;
        left -= share;
    }
    for (int k = 0; left > 0; k = (k + 1) % active) {
        shares[loads[k].index]++;
        left--;
    }
    for (int i = 0; i < devices->count; i++)
        load[plan_slot(builder->plan, devices->at[i])] += shares[i] * cost;
}

/* ---- steps ---- */

Step *plan_step(Builder *builder, ht_verb verb)
{
    array_push(builder->arena, &builder->plan->steps, (Step){.verb = verb});
    return &builder->plan->steps.at[builder->plan->steps.count - 1];
}

/* The group with its device at `root` in front, and that device's part. */
static void add_rooted(Builder *builder, const Devices *group, Segments *parts, int root, ht_verb verb)
{
    Step *step = plan_step(builder, verb);
    step->parts = arena_array(builder->arena, Segments, group->count);
    step->parts[0] = parts[root];
    array_push(builder->arena, &step->group, group->at[root]);
    for (int i = 0; i < group->count; i++)
        if (i != root)
            array_push(builder->arena, &step->group, group->at[i]);
}

void plan_collective(Builder *builder, Devices group, Segments *parts, int holders, ht_verb verb, ht_verb rooted)
{
    if (holders == 1 || builder->plan->large) {
        for (int i = 0; i < holders; i++)
            add_rooted(builder, &group, parts, i, rooted);
        return;
    }
    Step *step = plan_step(builder, verb);
    step->group = group;
    step->parts = parts;
}

void step_send(Builder *builder, int step, int sender, int receiver, Segment segment)
{
    PairKey key = {step, sender, receiver};
    Pair *pair;
    Messages *messages = &builder->plan->steps.at[step].messages;
    HASH_FIND(hh, builder->pairs, &key, sizeof key, pair);
    if (!pair) {
        pair = arena_new(builder->arena, Pair);
        pair->key = key;
        pair->message = messages->count;
        array_push(builder->arena, messages, (Message){.sender = sender, .receiver = receiver});
        HASH_ADD(hh, builder->pairs, key, sizeof key, pair);
    }
    Message *message = &messages->at[pair->message];
    message->volume += segment.hi - segment.lo;
    array_push(builder->arena, &message->segments, segment);
}

void plan_drop_empty(Builder *builder)
{
    Plan *plan = builder->plan;
    int kept = 0;
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].verb != HT_EXCHANGE || plan->steps.at[s].messages.count || plan->steps.at[s].reductions.count)
            plan->steps.at[kept++] = plan->steps.at[s];
    plan->steps.count = kept;
    HASH_CLEAR(hh, builder->pairs);
}

/* ---- traffic ---- */

static int64_t segments_volume(const Segments *segments)
{
    int64_t volume = 0;
    for (int i = 0; i < segments->count; i++)
        volume += segments->at[i].hi - segments->at[i].lo;
    return volume;
}

static void count_moved(Plan *plan, int device, int64_t received, int64_t sent)
{
    int slot = plan_slot(plan, device);
    plan->received[slot] += received;
    plan->sent[slot] += sent;
}

/* Share i of `total` in n parts. */
static int64_t even_share(int64_t total, int i, int n)
{
    return (int64_t)((__int128)total * (i + 1) / n - (__int128)total * i / n);
}

/* What the members of a collective receive and send, as rings and chains move it. */
static void count_collective(Plan *plan, const Step *step)
{
    int n = step->group.count, parts = step->verb == HT_ALL_REDUCE ? 1 : n;
    int64_t volume = 0;
    for (int i = 0; i < parts; i++)
        volume += segments_volume(&step->parts[i]);
    for (int i = 0; i < n; i++) {
        int64_t received = 0, sent = 0;
        if (step->verb == HT_ALL_REDUCE)
            received = sent = even_share(2 * (n - 1) * volume, i, n);
        else if (step->verb == HT_REDUCE_SCATTER)
            received = sent = even_share((n - 1) * volume, i, n);
        else if (step->verb == HT_ALL_GATHER) {
            received = volume - segments_volume(&step->parts[i]);
            sent = volume - segments_volume(&step->parts[(i + 1) % n]);
        } else if (step->verb == HT_BROADCAST) {
            received = i ? volume : 0;
            sent = i < n - 1 ? volume : 0;
        } else {
            received = i < n - 1 ? volume : 0;
            sent = i ? volume : 0;
        }
        count_moved(plan, step->group.at[i], received, sent);
    }
}

static void count_step(Plan *plan, const Step *step)
{
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        count_moved(plan, message->sender, 0, message->volume);
        count_moved(plan, message->receiver, message->volume, 0);
    }
    if (step->verb != HT_ALL_TO_ALL && step->verb != HT_EXCHANGE)
        count_collective(plan, step);
}

void plan_count(Builder *builder)
{
    size_t size = sizeof(int64_t) * (size_t)builder->plan->device_count;
    memset(builder->plan->received, 0, size);
    memset(builder->plan->sent, 0, size);
    for (int s = 0; s < builder->plan->steps.count; s++)
        count_step(builder->plan, &builder->plan->steps.at[s]);
}

int64_t plan_bytes(const Plan *plan)
{
    int64_t total = 0;
    for (int i = 0; i < plan->device_count; i++)
        total += plan->received[i];
    return total * plan->element;
}

int64_t plan_bytes_received(const Plan *plan, int device)
{
    int slot = plan_slot(plan, device);
    return slot < 0 ? 0 : plan->received[slot] * plan->element;
}

/* ---- prices ---- */

/* The slowest link of a group, as the ring over its devices has it. */
static Link slowest_link(const Plan *plan, const Devices *group)
{
    Link slowest = cluster_link(plan->cluster, group->at[0], group->at[group->count - 1]);
    for (int i = 1; i < group->count; i++) {
        Link link = cluster_link(plan->cluster, group->at[i - 1], group->at[i]);
        slowest.latency = link.latency > slowest.latency ? link.latency : slowest.latency;
        slowest.bandwidth = link.bandwidth < slowest.bandwidth ? link.bandwidth : slowest.bandwidth;
    }
    return slowest;
}

/* A collective as a ring, or a tree where that has fewer rounds and nothing is divided. */
static double collective_seconds(const Plan *plan, const Step *step)
{
    Link link = slowest_link(plan, &step->group);
    int n = step->group.count, parts = step->verb == HT_ALL_REDUCE ? 1 : n;
    double volume = 0, rounds = n - 1, share = (double)(n - 1) / n;
    for (int i = 0; i < parts; i++)
        volume += (double)segments_volume(&step->parts[i]) * plan->element;
    if (step->verb == HT_ALL_REDUCE)
        rounds *= 2, share *= 2;
    if (step->verb == HT_BROADCAST || step->verb == HT_REDUCE)
        share = 1;
    return rounds * link.latency + share * volume / link.bandwidth;
}

/* The time until the busiest device has sent and received its messages; it does both at once. */
static double messages_seconds(Builder *builder, const Step *step)
{
    const Plan *plan = builder->plan;
    double *sending = arena_array(builder->arena, double, plan->device_count), *receiving = arena_array(builder->arena, double, plan->device_count), most = 0;
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        Link link = cluster_link(plan->cluster, message->sender, message->receiver);
        double seconds = link.latency + (double)message->volume * plan->element / link.bandwidth;
        double *sender = &sending[plan_slot(plan, message->sender)], *receiver = &receiving[plan_slot(plan, message->receiver)];
        *sender += seconds;
        *receiver += seconds;
        most = *sender > most ? *sender : most;
        most = *receiver > most ? *receiver : most;
    }
    return most;
}

/* Steps of one kind in groups that share no device take place at once; the longest of them counts. */
static double price_plan(Builder *builder)
{
    const Plan *plan = builder->plan;
    double total = 0;
    for (int s = 0; s < plan->steps.count;) {
        ht_verb verb = plan->steps.at[s].verb;
        double longest = 0;
        do {
            const Step *step = &plan->steps.at[s++];
            double seconds = step->group.count && step->verb != HT_ALL_TO_ALL ? collective_seconds(plan, step) : messages_seconds(builder, step);
            longest = seconds > longest ? seconds : longest;
        } while (s < plan->steps.count && plan->steps.at[s].verb == verb && verb != HT_EXCHANGE);
        total += longest;
    }
    return total;
}

double plan_seconds(const Plan *plan) { return plan->seconds; }

/* ---- names ---- */

/* Whether each device sends to one other at most and receives from one. */
static bool is_permutation(Builder *builder, const Step *step)
{
    char *uses = arena_array(builder->arena, char, builder->plan->device_count);
    for (int i = 0; i < step->messages.count; i++) {
        char *sender = &uses[plan_slot(builder->plan, step->messages.at[i].sender)], *receiver = &uses[plan_slot(builder->plan, step->messages.at[i].receiver)];
        if (*sender & 1)
            return false;
        *sender |= 1;
        if (*receiver & 2)
            return false;
        *receiver |= 2;
    }
    return !step->combine;
}

static const char *step_name(Builder *builder, const Step *step)
{
    static const char *const names[] = {[HT_ALL_REDUCE] = "all-reduce", [HT_REDUCE_SCATTER] = "reduce-scatter", [HT_ALL_GATHER] = "all-gather",
                                        [HT_ALL_TO_ALL] = "all-to-all", [HT_BROADCAST] = "broadcast",           [HT_REDUCE] = "reduce"};
    if (step->verb != HT_EXCHANGE)
        return names[step->verb];
    return is_permutation(builder, step) ? "permute" : "send-receive";
}

static const char *name_plan(Builder *builder)
{
    const Plan *plan = builder->plan;
    if (!plan->steps.count)
        return plan->nothing ? "nothing" : "local slice";
    Text name = {.arena = plan->arena};
    const char *names[64];
    int count = 0;
    for (int s = 0; s < plan->steps.count && count < 64; s++) {
        const char *next = step_name(builder, &plan->steps.at[s]);
        bool repeated = count && !strcmp(names[count - 1], next);
        if (!repeated)
            text_print(&name, "%s%s", count ? ", " : "", names[count] = next);
        count += !repeated;
    }
    return text_bytes(&name);
}

const char *plan_name(const Plan *plan) { return plan->name; }

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
        if (plan->groups.at[g].count == devices->count && !memcmp(plan->groups.at[g].device, devices->at, sizeof(int) * (size_t)devices->count))
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
    *plan = (Plan){.arena = arena, .cluster = cluster, .cells = cells, .shape = cells->shape, .element = element, .reduction = reduction_of(cells)};
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
