/* Reductions by messages.
 *
 * Each part of a value has a root among the devices that want it, which takes in the contributions that it does not hold. Where that would
 * be too much for it, holders of contributions combine them beforehand, and the root takes in one such partial reduction. Where there are
 * so many contributions that combining even one element of them is too much for one device, they are combined along a tree.
 */
#include "reshard/merge.h"

/* A stretch of a sum, and which work divides the combining; -1: each root does its own. Unless it has a tree, its roots are reducers that
 * follow one another and hold the same contribution, if any. */
typedef struct Stretch {
    const Sum *sum;
    int64_t lo, hi;
    bool tree;
    int first, count; // of the reducers
    int work;
} Stretch;

typedef Array(Stretch) Stretches;

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
    array_push(merges->builder->arena, &merges->leaves, (Leaf){merges->first + source, receiver, depth, lo, hi});
    merges->contributions.at[merges->first + source].volume += hi - lo;
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

/* Each root combines some of its part itself, and helpers the rest, one after another. */
static void combine_rooted(Merges *merges, const Stretch *stretch, const Work *work)
{
    const Sum *sum = stretch->sum;
    int64_t lo = stretch->lo, left = 0;
    int helper = stretch->count - 1;
    for (int r = 0; r < stretch->count; r++) {
        int root = sum->reducers.at[stretch->first + r];
        int64_t hi = lo + sum->roots[stretch->first + r], own = work ? lo + work->units[r] / work->grain : hi;
        combine_alone(merges, sum, root, true, lo, own);
        for (lo = own; lo < hi;) {
            while (!left)
                left = work->units[++helper] / work->grain;
            int64_t width = left < hi - lo ? left : hi - lo;
            combine_before(merges, sum, work->devices.at[helper], root, lo, lo + width);
            left -= width;
            lo += width;
        }
    }
}

/* No device that wants the value holds a contribution: some of these combine all, and holders of contributions combine the rest. */
static void combine_anywhere(Merges *merges, const Stretch *stretch, const Work *work)
{
    int64_t lo = stretch->lo;
    for (int i = 0; i < work->devices.count; i++) {
        int64_t hi = lo + work->units[i] / work->grain;
        combine_alone(merges, stretch->sum, work->devices.at[i], i < work->first, lo, hi);
        lo = hi;
    }
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

static Work spread_work(Merges *merges, const Stretch *stretch)
{
    const Sum *sum = stretch->sum;
    const Task *task = task_of(merges, sum);
    Devices roots = {.at = sum->reducers.at + stretch->first, .count = stretch->count};
    Work work = {.devices = join_devices(merges->builder, &roots, NULL),
                 .first = stretch->count,
                 .unit = task_element(merges->builder->plan, sum->task),
                 .grains = stretch->hi - stretch->lo,
                 .grain = extra_receipts(merges, sum),
                 .limits = sum->holds ? sum->roots + stretch->first : NULL};
    int own = index_find(merges->source, roots.at[0]);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count && p != own; h++)
            array_push(merges->builder->arena, &work.devices, task->sources[p].at[h]);
    return work;
}

/* The root of the part in which an element lies. */
static int root_at(const Sum *sum, int64_t element)
{
    int r = 0;
    for (; element >= sum->roots[r]; r++)
        element -= sum->roots[r];
    return sum->reducers.at[r];
}

/* One holder of each contribution, by turns, the root in front. */
static Work tree_work(Merges *merges, const Stretch *stretch, int turn)
{
    const Sum *sum = stretch->sum;
    const Task *task = task_of(merges, sum);
    Arena *arena = merges->builder->arena;
    int root = sum->holds ? root_at(sum, stretch->lo - task->lo) : -1, own = sum->holds ? index_find(merges->source, root) : -1;
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

/* Stretches so short that one of their contributions is a small part of the cap. */
static void add_trees(Merges *merges, const Sum *sum, int64_t fine, Stretches *stretches, Works *works)
{
    Segment all = task_segment(merges->builder->plan, sum->task);
    int turn = 0;
    for (int64_t lo = all.lo, hi; lo < all.hi; lo = hi) {
        hi = all.hi - lo > fine ? lo + fine : all.hi;
        add_stretch(merges, stretches, works, (Stretch){.sum = sum, .lo = lo, .hi = hi, .tree = true}, turn++);
    }
}

/* A stretch for each contribution that roots hold. */
static void add_rooted(Merges *merges, const Sum *sum, Stretches *stretches, Works *works)
{
    Stretch stretch = {.sum = sum, .lo = task_of(merges, sum)->lo};
    for (int r = 0; r < sum->reducers.count; r = stretch.first + stretch.count) {
        int source = index_find(merges->source, sum->reducers.at[r]);
        stretch.first = r;
        stretch.hi = stretch.lo;
        for (; r < sum->reducers.count && index_find(merges->source, sum->reducers.at[r]) == source; r++)
            stretch.hi += sum->roots[r];
        stretch.count = r - stretch.first;
        if (stretch.lo < stretch.hi)
            add_stretch(merges, stretches, works, stretch, 0);
        stretch.lo = stretch.hi;
    }
}

static void add_stretches(Merges *merges, const Sum *sum, int64_t cap, Stretches *stretches, Works *works)
{
    Segment all = task_segment(merges->builder->plan, sum->task);
    int64_t fine = fine_grain(merges->builder->plan, &all, cap);
    index_sources(merges, task_of(merges, sum));
    if (extra_receipts(merges, sum) > fine)
        add_trees(merges, sum, fine, stretches, works);
    else if (sum->holds)
        add_rooted(merges, sum, stretches, works);
    else
        add_stretch(merges, stretches, works, (Stretch){.sum = sum, .lo = all.lo, .hi = all.hi, .count = sum->reducers.count}, 0);
}

/* ---- all together ---- */

static void add_contributions(Merges *merges, const Sum *sum)
{
    const Task *task = task_of(merges, sum);
    merges->first = merges->contributions.count;
    for (int p = 0; p < task->source_count; p++) {
        Segment segment = task_segment(merges->builder->plan, sum->task);
        segment.source = p;
        array_push(merges->builder->arena, &merges->contributions, (Contribution){&task->sources[p], segment, 0, -1});
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
        const Work *work = stretch->work < 0 ? NULL : &works->at[stretch->work];
        (stretch->tree ? combine_along : stretch->sum->holds ? combine_rooted : combine_anywhere)(merges, stretch, work);
    }
}

Merges *merges_plan(Builder *builder, Sums *sums)
{
    Merges *merges = arena_new(builder->arena, Merges);
    Stretches stretches = {0};
    Works works = {0};
    *merges = (Merges){.builder = builder, .step = builder->plan->steps.count};
    if (!sums->count)
        return merges;
    merges->source = index_create(builder);
    merges->reducers = index_create(builder);
    choose_roots(merges, sums);
    int64_t cap = load_cap(builder->plan, count_receipts(merges, sums));
    for (int s = 0; s < sums->count; s++)
        add_stretches(merges, &sums->at[s], cap, &stretches, &works);
    balance_works(builder, &works, cap, MANY_SWEEPS, builder->received);
    realize(merges, &stretches, &works);
    for (int depth = merges->deepest; depth >= 0; depth--)
        plan_step(builder, HT_EXCHANGE)->combine = true;
    return merges;
}

/* ---- sending ---- */

static int step_at(const Merges *merges, int depth) { return merges->step + merges->deepest - depth; }

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
        work.least = contribution->volume;
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
static void send_contribution(const Merges *merges, const Contribution *contribution, const Leaf *leaves, int count, const Works *works)
{
    const int64_t *shares = contribution->work < 0 ? NULL : works->at[contribution->work].units;
    int holder = 0;
    int64_t left = shares ? shares[0] : INT64_MAX;
    for (int i = 0; i < count; i++) {
        const Leaf *leaf = &leaves[i];
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

/* Sends all contributions; the leaves are sorted by these first. */
static void send_contributions(const Merges *merges, const Works *works)
{
    int count = merges->contributions.count, *begin = arena_array(merges->builder->arena, int, count + 2);
    Leaf *sorted = arena_array(merges->builder->arena, Leaf, merges->leaves.count);
    for (int i = 0; i < merges->leaves.count; i++)
        begin[merges->leaves.at[i].contribution + 2]++;
    for (int c = 0; c < count; c++)
        begin[c + 2] += begin[c + 1];
    for (int i = 0; i < merges->leaves.count; i++)
        sorted[begin[merges->leaves.at[i].contribution + 1]++] = merges->leaves.at[i];
    for (int c = 0; c < count; c++)
        send_contribution(merges, &merges->contributions.at[c], sorted + begin[c], begin[c + 1] - begin[c], works);
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
    send_contributions(merges, works);
    for (int depth = 0; depth <= merges->deepest; depth++)
        step_close(builder, step_at(merges, depth));
}
