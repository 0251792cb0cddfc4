/* Reductions by messages.
 *
 * Each part of a value has a root among the devices that want it, which takes in the contributions that it does not hold. Where that would
 * be too much for it, holders of contributions combine them beforehand, and the root takes in one such partial reduction. Where there are
 * so many contributions that combining even one element of them is too much for one device, they are combined along a tree.
 */
#include "layout/plan_loads.h"

/* A stretch of a contribution that a device takes in, `depth` steps before the last. */
typedef struct Leaf {
    int receiver, depth;
    int64_t lo, hi;
} Leaf;

typedef Array(Leaf) Leaves;

/* What becomes of a contribution. */
typedef struct Contribution {
    const Devices *holders;
    Segment segment; // all of it
    Leaves leaves;
    int work; // which divides the sending among the holders; -1: the first does all
} Contribution;

/* A partial reduction that is sent on. */
typedef struct Passed {
    int sender, receiver, depth;
    Segment segment;
} Passed;

typedef struct Reduced {
    Reducing reducing;
    int depth;
} Reduced;

struct Merges {
    Builder *builder;
    Index *source; // by device: the contribution to the sum at hand that it holds
    Array(Contribution) contributions;
    Array(Passed) passed;
    Array(Reduced) reduced;
    int first;         // of the sum at hand, in contributions
    int deepest, step; // the depth of the first of the exchanges, and its number
};

/* A stretch of a sum, and how it is divided. */
typedef struct Stretch {
    const Sum *sum;
    int64_t lo, hi;
    bool tree;
    int work; // -1: evenly among the reducers
} Stretch;

typedef Array(Stretch) Stretches;

static const Task *task_of(const Merges *merges, const Sum *sum) { return &merges->builder->plan->tasks.at[sum->task]; }

/* ---- what is taken in ---- */

static void index_sources(Merges *merges, const Task *task)
{
    index_clear(merges->source);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count; h++)
            index_set(merges->source, task->sources[p].at[h], p);
}

static void add_leaf(Merges *merges, int source, int receiver, int depth, int64_t lo, int64_t hi)
{
    array_push(merges->builder->arena, &merges->contributions.at[merges->first + source].leaves, (Leaf){receiver, depth, lo, hi});
}

static void add_reduced(Merges *merges, const Sum *sum, int device, int depth, bool partial, int64_t lo, int64_t hi)
{
    Segment segment = {.task = sum->task, .lo = lo, .hi = hi};
    array_push(merges->builder->arena, &merges->reduced, (Reduced){{device, segment, partial}, depth});
    merges->deepest = depth > merges->deepest ? depth : merges->deepest;
}

/* `source` is the first of the contributions that the partial reduction stands for. */
static void add_passed(Merges *merges, const Sum *sum, int sender, int receiver, int depth, int source, int64_t lo, int64_t hi)
{
    Segment segment = {.task = sum->task, .origin = ORIGIN_PARTIAL, .source = source, .lo = lo, .hi = hi};
    array_push(merges->builder->arena, &merges->passed, (Passed){sender, receiver, depth, segment});
}

/* The value lies at `device` in the end: in its place, or in scratch where the device does not want it. */
static void add_result(Merges *merges, const Sum *sum, int device, bool partial, int64_t lo, int64_t hi)
{
    hand_on(merges->builder, (Segment){.task = sum->task, .origin = partial ? ORIGIN_PARTIAL : ORIGIN_TO, .lo = lo, .hi = hi}, device);
}

/* A device takes in all contributions but its own and `except`. */
static void take_all(Merges *merges, const Sum *sum, int device, int except, int depth, int64_t lo, int64_t hi)
{
    int own = index_find(merges->source, device);
    for (int p = 0; p < task_of(merges, sum)->source_count; p++)
        if (p != own && p != except)
            add_leaf(merges, p, device, depth, lo, hi);
}

/* One device combines all of a stretch; it wants the value, or hands it on from scratch. */
static void combine_alone(Merges *merges, const Sum *sum, int device, bool wants, int64_t lo, int64_t hi)
{
    if (lo == hi)
        return;
    take_all(merges, sum, device, -1, 0, lo, hi);
    add_reduced(merges, sum, device, 0, !wants, lo, hi);
    add_result(merges, sum, device, !wants, lo, hi);
}

/* A device combines all contributions but the root's, and the root adds its own. */
static void combine_before(Merges *merges, const Sum *sum, int device, int root, int64_t lo, int64_t hi)
{
    int own = index_find(merges->source, root), first = own ? 0 : 1;
    take_all(merges, sum, device, own, 1, lo, hi);
    add_reduced(merges, sum, device, 1, true, lo, hi);
    add_passed(merges, sum, device, root, 0, first, lo, hi);
    add_reduced(merges, sum, root, 0, false, lo, hi);
    add_result(merges, sum, root, false, lo, hi);
}

/* ---- stretches in few steps ---- */

/* The reducer with the smallest part so far among those that hold another contribution than `device`. */
static int choose_root(const Merges *merges, const Sum *sum, int device, const int64_t *rooted)
{
    int best = -1, source = index_find(merges->source, device);
    for (int r = 0; r < sum->reducers.count; r++)
        if (index_find(merges->source, sum->reducers.at[r]) != source && (best < 0 || rooted[r] < rooted[best]))
            best = r;
    return best;
}

/* Gives the parts of a stretch that a device combines beforehand to roots that end with even shares. */
static void share_roots(Merges *merges, const Stretch *stretch, int device, int64_t lo, int64_t hi, int64_t *rooted)
{
    int64_t even = (stretch->hi - stretch->lo) / stretch->sum->reducers.count + 1;
    while (lo < hi) {
        int root = choose_root(merges, stretch->sum, device, rooted);
        int64_t room = even > rooted[root] ? even - rooted[root] : hi - lo, width = room < hi - lo ? room : hi - lo;
        combine_before(merges, stretch->sum, device, stretch->sum->reducers.at[root], lo, lo + width);
        rooted[root] += width;
        lo += width;
    }
}

/* Reducers that combine all, each a part, and then holders that combine beforehand. */
static void combine_spread(Merges *merges, const Stretch *stretch, const Work *work)
{
    const Sum *sum = stretch->sum;
    int64_t *rooted = arena_array(merges->builder->arena, int64_t, work->first), lo = stretch->lo;
    for (int i = 0; i < work->devices.count; i++) {
        int64_t hi = lo + work->units[i] / work->grain;
        if (i < work->first)
            rooted[i] = hi - lo;
        if (i < work->first || !sum->holds)
            combine_alone(merges, sum, work->devices.at[i], i < work->first, lo, hi);
        else
            share_roots(merges, stretch, work->devices.at[i], lo, hi, rooted);
        lo = hi;
    }
}

/* Each reducer combines an even part. */
static void combine_evenly(Merges *merges, const Stretch *stretch)
{
    const Devices *reducers = &stretch->sum->reducers;
    int64_t volume = stretch->hi - stretch->lo;
    for (int r = 0; r < reducers->count; r++)
        combine_alone(merges, stretch->sum, reducers->at[r], true, stretch->lo + volume * r / reducers->count,
                      stretch->lo + volume * (r + 1) / reducers->count);
}

/* ---- stretches along a tree ---- */

/* The first contribution below each node. */
static int *first_below(Merges *merges, const Devices *nodes, const int *parent)
{
    int *first = arena_array(merges->builder->arena, int, nodes->count);
    for (int i = 0; i < nodes->count; i++)
        first[i] = index_find(merges->source, nodes->at[i]);
    for (int i = 0; i < nodes->count; i++)
        for (int up = parent[i]; up >= 0; up = parent[up]) {
            int own = index_find(merges->source, nodes->at[i]);
            first[up] = own < first[up] ? own : first[up];
        }
    return first;
}

/* Combines along a tree of one holder of each contribution, whose root is the first. */
static void combine_tree(Merges *merges, const Stretch *stretch, const Devices *nodes, const int *degree)
{
    const Sum *sum = stretch->sum;
    int *parent = arena_array(merges->builder->arena, int, nodes->count), *depth = arena_array(merges->builder->arena, int, nodes->count);
    tree_arrange(merges->builder, 1, nodes->count, degree, parent, depth);
    const int *first = first_below(merges, nodes, parent);
    for (int i = 0; i < nodes->count; i++) {
        bool partial = i || !sum->holds;
        if (degree[i])
            add_reduced(merges, sum, nodes->at[i], depth[i], partial, stretch->lo, stretch->hi);
        if (i && degree[i])
            add_passed(merges, sum, nodes->at[i], nodes->at[parent[i]], depth[parent[i]], first[i], stretch->lo, stretch->hi);
        else if (i)
            add_leaf(merges, index_find(merges->source, nodes->at[i]), nodes->at[parent[i]], depth[parent[i]], stretch->lo, stretch->hi);
    }
    add_result(merges, sum, nodes->at[0], !sum->holds, stretch->lo, stretch->hi);
}

/* The root adds one to what it has chosen; where no reducer holds a contribution, the node that takes in most is the root. */
static void combine_along(Merges *merges, const Stretch *stretch, const Work *work)
{
    int count = work->devices.count, root = 0, *degree = arena_array(merges->builder->arena, int, count);
    Devices nodes = {.at = arena_copy(merges->builder->arena, work->devices.at, sizeof(int) * (size_t)count), .count = count};
    for (int i = 0; i < count; i++) {
        degree[i] = (int)work->units[i] + (stretch->sum->holds && !i);
        root = !stretch->sum->holds && degree[i] > degree[root] ? i : root;
    }
    int kept = degree[root];
    degree[root] = degree[0];
    degree[0] = kept;
    nodes.at[root] = work->devices.at[0];
    nodes.at[0] = work->devices.at[root];
    combine_tree(merges, stretch, &nodes, degree);
}

/* ---- works of taking in ---- */

/* Contributions that are taken in beyond the one receipt of the value that every device which wants it has in any case, by element. */
static int64_t extra_receipts(const Merges *merges, const Sum *sum) { return task_of(merges, sum)->source_count - 1 - sum->holds; }

/* The holders of contributions that may combine beforehand: those for which there is a reducer with another contribution. */
static Devices helpers(Merges *merges, const Sum *sum)
{
    const Task *task = task_of(merges, sum);
    Devices found = {0};
    int only = sum->holds ? index_find(merges->source, sum->reducers.at[0]) : -1;
    for (int r = 0; r < sum->reducers.count && sum->holds; r++)
        only = index_find(merges->source, sum->reducers.at[r]) == only ? only : -1;
    Index *reducers = index_create(merges->builder);
    index_devices(reducers, &sum->reducers);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count && p != only; h++)
            if (index_find(reducers, task->sources[p].at[h]) < 0)
                array_push(merges->builder->arena, &found, task->sources[p].at[h]);
    return found;
}

static Work spread_work(Merges *merges, const Stretch *stretch)
{
    const Sum *sum = stretch->sum;
    Devices others = helpers(merges, sum);
    return (Work){.devices = join_devices(merges->builder, &sum->reducers, &others),
                  .first = sum->reducers.count,
                  .unit = task_element(merges->builder->plan, sum->task),
                  .grains = stretch->hi - stretch->lo,
                  .grain = extra_receipts(merges, sum)};
}

/* One holder of each contribution, by turns, the root in front. */
static Work tree_work(Merges *merges, const Stretch *stretch, int turn)
{
    const Sum *sum = stretch->sum;
    const Task *task = task_of(merges, sum);
    Arena *arena = merges->builder->arena;
    int root = sum->holds ? sum->reducers.at[turn % sum->reducers.count] : -1, own = sum->holds ? index_find(merges->source, root) : -1;
    Work work = {.first = sum->holds, .grains = extra_receipts(merges, sum), .grain = 1};
    work.unit = task_element(merges->builder->plan, sum->task) * (stretch->hi - stretch->lo);
    if (sum->holds)
        array_push(arena, &work.devices, root);
    for (int p = 0; p < task->source_count; p++)
        if (p != own)
            array_push(arena, &work.devices, task->sources[p].at[turn % task->sources[p].count]);
    return work;
}

static void add_stretch(Merges *merges, Stretches *stretches, Works *works, Stretch stretch, int turn)
{
    Arena *arena = merges->builder->arena;
    stretch.work = -1;
    if (extra_receipts(merges, stretch.sum)) {
        Work work = stretch.tree ? tree_work(merges, &stretch, turn) : spread_work(merges, &stretch);
        work.units = arena_array(arena, int64_t, work.devices.count);
        stretch.work = works->count;
        array_push(arena, works, work);
    }
    array_push(arena, stretches, stretch);
}

static void add_stretches(Merges *merges, const Sum *sum, int64_t cap, Stretches *stretches, Works *works)
{
    Segment segment = {.task = sum->task};
    int64_t fine = fine_grain(merges->builder->plan, &segment, cap), volume = task_of(merges, sum)->volume;
    bool tree = extra_receipts(merges, sum) > fine;
    index_sources(merges, task_of(merges, sum));
    int turn = 0;
    for (int64_t lo = 0, hi; lo < volume; lo = hi) {
        hi = tree && volume - lo > fine ? lo + fine : volume;
        add_stretch(merges, stretches, works, (Stretch){.sum = sum, .lo = lo, .hi = hi, .tree = tree}, turn++);
    }
}

/* ---- loads ---- */

/* What the devices receive however the sums are divided: all that they want and do not hold as it shall be. The result is all that is
 * received, with what remains to be divided. */
static int64_t count_receipts(Merges *merges, const Sums *sums)
{
    Builder *builder = merges->builder;
    const Plan *plan = builder->plan;
    int64_t total = 0;
    plan_count(builder);
    for (int g = 0; g < builder->gifts.count; g++) {
        const Gift *gift = &builder->gifts.at[g];
        for (int n = 0; n < gift->needers.count; n++)
            builder->received[plan_slot(plan, gift->needers.at[n])] += segment_bytes(plan, &gift->segment);
    }
    for (int s = 0; s < sums->count; s++) {
        const Task *task = task_of(merges, &sums->at[s]);
        int64_t load = task->volume * task_element(plan, sums->at[s].task);
        for (int w = 0; w < task->wanted.count; w++)
            builder->received[plan_slot(plan, task->wanted.at[w])] += load;
        total += load * extra_receipts(merges, &sums->at[s]);
    }
    for (int i = 0; i < plan->device_count; i++)
        total += builder->received[i];
    return total;
}

/* ---- all together ---- */

static void add_contributions(Merges *merges, const Sum *sum)
{
    const Task *task = task_of(merges, sum);
    merges->first = merges->contributions.count;
    for (int p = 0; p < task->source_count; p++) {
        Segment segment = {.task = sum->task, .source = p, .hi = task->volume};
        array_push(merges->builder->arena, &merges->contributions, (Contribution){&task->sources[p], segment, {0}, -1});
    }
    index_sources(merges, task);
}

static void realize(Merges *merges, const Stretches *stretches, const Works *works)
{
    const Sum *last = NULL;
    for (int i = 0; i < stretches->count; i++) {
        const Stretch *stretch = &stretches->at[i];
        if (stretch->sum != last)
            add_contributions(merges, last = stretch->sum);
        if (stretch->work < 0)
            combine_evenly(merges, stretch);
        else
            (stretch->tree ? combine_along : combine_spread)(merges, stretch, &works->at[stretch->work]);
    }
}

Merges *merges_plan(Builder *builder, const Sums *sums)
{
    Merges *merges = arena_new(builder->arena, Merges);
    Stretches stretches = {0};
    Works works = {0};
    *merges = (Merges){.builder = builder, .step = builder->plan->steps.count};
    if (!sums->count)
        return merges;
    merges->source = index_create(builder);
    int64_t cap = load_cap(builder->plan, count_receipts(merges, sums));
    for (int s = 0; s < sums->count; s++)
        add_stretches(merges, &sums->at[s], cap, &stretches, &works);
    balance_works(builder, &works, cap, builder->received);
    realize(merges, &stretches, &works);
    for (int depth = merges->deepest; depth >= 0; depth--)
        plan_step(builder, HT_EXCHANGE)->combine = true;
    return merges;
}

/* ---- sending ---- */

static int step_at(const Merges *merges, int depth) { return merges->step + merges->deepest - depth; }

static int64_t leaves_volume(const Leaves *leaves)
{
    int64_t volume = 0;
    for (int i = 0; i < leaves->count; i++)
        volume += leaves->at[i].hi - leaves->at[i].lo;
    return volume;
}

void merges_add(Builder *builder, Merges *merges, Works *works)
{
    const Plan *plan = builder->plan;
    for (int i = 0; i < merges->passed.count; i++) {
        const Passed *passed = &merges->passed.at[i];
        builder->sent[plan_slot(plan, passed->sender)] += segment_bytes(plan, &passed->segment);
    }
    for (int c = 0; c < merges->contributions.count; c++) {
        Contribution *contribution = &merges->contributions.at[c];
        int count = contribution->holders->count;
        Work work = {.devices = *contribution->holders, .first = count, .unit = task_element(plan, contribution->segment.task), .grain = 1};
        work.least = leaves_volume(&contribution->leaves);
        if (count == 1 || !work.least) {
            builder->sent[plan_slot(plan, contribution->holders->at[0])] += work_load(&work);
            continue;
        }
        work.units = arena_array(builder->arena, int64_t, count);
        contribution->work = works->count;
        array_push(builder->arena, works, work);
    }
}

/* Sends the stretches of a contribution, one after another from its holders, each of which does its share. */
static void send_contribution(const Merges *merges, const Contribution *contribution, const Works *works)
{
    const int64_t *shares = contribution->work < 0 ? NULL : works->at[contribution->work].units;
    int holder = 0;
    int64_t left = shares ? shares[0] : INT64_MAX;
    for (int i = 0; i < contribution->leaves.count; i++) {
        const Leaf *leaf = &contribution->leaves.at[i];
        Segment segment = contribution->segment;
        for (segment.lo = leaf->lo; segment.lo < leaf->hi; segment.lo = segment.hi) {
            while (!left)
                left = shares[++holder];
            segment.hi = leaf->hi - segment.lo < left ? leaf->hi : segment.lo + left;
            left -= segment.hi - segment.lo;
            step_send(merges->builder, step_at(merges, leaf->depth), contribution->holders->at[holder], leaf->receiver, segment);
        }
    }
}

void merges_send(Builder *builder, const Merges *merges, const Works *works)
{
    for (int i = 0; i < merges->reduced.count; i++) {
        const Reduced *reduced = &merges->reduced.at[i];
        array_push(builder->arena, &builder->plan->steps.at[step_at(merges, reduced->depth)].reductions, reduced->reducing);
    }
    for (int i = 0; i < merges->passed.count; i++) {
        const Passed *passed = &merges->passed.at[i];
        step_send(builder, step_at(merges, passed->depth), passed->sender, passed->receiver, passed->segment);
    }
    for (int c = 0; c < merges->contributions.count; c++)
        send_contribution(merges, &merges->contributions.at[c], works);
    for (int depth = 0; depth <= merges->deepest; depth++)
        step_close(builder, step_at(merges, depth));
}
