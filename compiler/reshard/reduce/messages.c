/* Reductions by messages.
 *
 * Each part of a value has a reducer among the devices that want it, which takes in the contributions that it does not hold. Where that
 * would be too much for it, holders of contributions combine them beforehand, and the reducer takes in one such partial reduction. Where
 * there are so many contributions that combining even one element of them is too much for one device, they are combined along a tree.
 */
#include "reshard/balance/tree.h"
#include "reshard/price.h"
#include "reshard/reduce/reduce.h"
#include "reshard/steps.h"

/* A stretch of a contribution that a device takes in, `depth` rounds before the last. */
typedef struct Leaf {
    int contribution, receiver, depth;
    int64_t lo, hi;
} Leaf;

/* What becomes of a contribution. */
typedef struct Contribution {
    const Devices *holders;
    Segment segment; // all of it
    int64_t volume;  // of its leaves
    int job;         // which divides the sending among the holders; -1: the first does all
} Contribution;

/* A partial reduction that is sent on. */
typedef struct Forwarded {
    int sender, receiver, depth;
    Segment segment;
} Forwarded;

typedef struct Reduced {
    Reducing reducing;
    int depth;
} Reduced;

struct Combining {
    Planner *planner;
    Index *reducers; // of the reduction at hand
    Index *source;   // by device: the contribution to the reduction at hand that it holds
    Array(Contribution) contributions;
    Array(Leaf) leaves;
    Array(Forwarded) forwarded;
    Array(Reduced) reduced;
    int first;         // of the reduction at hand, in contributions
    int deepest, step; // the depth of the first of the exchanges, and its number
};

/* The task of a reduction. */
static inline const Task *task_of(const Combining *combining, const Reduction *reduction)
{
    return &combining->planner->plan->tasks.at[reduction->task];
}

/* Contributions that are taken in beyond the one receipt of the value that every device which wants it has in any case, by element. */
static int64_t extra_receipts(const Combining *combining, const Reduction *reduction)
{
    int64_t extra = task_of(combining, reduction)->source_count - 1 - reduction->holds;
    return extra > 0 ? extra : 0;
}

/* A stretch of a reduction, and which job divides the combining; -1: each reducer does its own. Unless it has
 * a tree, its reducers follow one another and hold the same contribution, if any. */
typedef struct Stretch {
    const Reduction *reduction;
    int64_t lo, hi;
    bool tree;
    int first, count; // of the reducers
    int job;
} Stretch;

typedef Array(Stretch) Stretches;

/* ---- where a value is complete first ---- */

/* Adds to the loads what the holders of contributions, and of values that are handed on, will send about. */
static void estimate_sent(Combining *combining, const Reductions *reductions)
{
    Planner *planner = combining->planner;
    const Plan *plan = planner->plan;
    for (int s = 0; s < reductions->count; s++)
        for (int p = 0; p < task_of(combining, &reductions->at[s])->source_count; p++) {
            const Devices *holders = &task_of(combining, &reductions->at[s])->sources[p];
            int64_t bytes = task_of(combining, &reductions->at[s])->volume * task_element(plan, reductions->at[s].task);
            for (int h = 0; h < holders->count; h++)
                planner->sent[plan_slot(plan, holders->at[h])] += bytes / holders->count;
        }
    for (int g = 0; g < planner->transfers.count; g++) {
        const Transfer *transfer = &planner->transfers.at[g];
        for (int h = 0; h < transfer->holders.count; h++)
            planner->sent[plan_slot(plan, transfer->holders.at[h])] += segment_bytes(plan, &transfer->segment) / transfer->holders.count;
    }
}

/* Puts the reducers in the order of the contributions that they hold. */
static void sort_reducers(Combining *combining, Reduction *reduction)
{
    const Task *task = task_of(combining, reduction);
    Devices sorted = {.at = arena_array(combining->planner->arena, int, reduction->reducers.count)};
    Index *reducers = combining->reducers;
    index_devices(reducers, &reduction->reducers);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count; h++)
            if (index_find(reducers, task->sources[p].at[h]) >= 0)
                sorted.at[sorted.count++] = task->sources[p].at[h];
    reduction->reducers = sorted;
}

/* Decides which parts of the values are complete first at which of the reducers that hold contributions: these then send them to the
 * others.
 */
static void choose_shares(Combining *combining, Reductions *reductions)
{
    Jobs jobs = {0};
    Planner *planner = combining->planner;
    for (int s = 0; s < reductions->count; s++) {
        Reduction *reduction = &reductions->at[s];
        if (!reduction->holds)
            continue;
        sort_reducers(combining, reduction);
        int job = add_job(planner, &jobs,
                          (Job){.devices = reduction->reducers,
                                .first = reduction->reducers.count,
                                .unit = task_element(planner->plan, reduction->task),
                                .least = task_of(combining, reduction)->volume,
                                .grain = 1});
        reduction->shares = jobs.at[job].units;
    }
    count_moves(planner);
    estimate_sent(combining, reductions);
    balance_jobs(planner, &jobs, 0, FEW_SWEEPS, planner->sent);
}

/* ---- what is taken in ---- */

/* By device, the contribution that it holds. */
static void index_sources(Combining *combining, const Task *task)
{
    index_clear(combining->source);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count; h++)
            index_set(combining->source, task->sources[p].at[h], p);
}

static void add_leaf(Combining *combining, int source, int receiver, int depth, int64_t lo, int64_t hi)
{
    array_push(combining->planner->arena, &combining->leaves, (Leaf){combining->first + source, receiver, depth, lo, hi});
    combining->contributions.at[combining->first + source].volume += hi - lo;
}

static void add_reduced(Combining *combining, const Reduction *reduction, int device, int depth, bool partial, int64_t lo, int64_t hi)
{
    Segment segment = {.task = reduction->task, .lo = lo, .hi = hi};
    array_push(combining->planner->arena, &combining->reduced, (Reduced){{device, segment, partial}, depth});
    combining->deepest = depth > combining->deepest ? depth : combining->deepest;
}

/* `source` is the first of the contributions that the partial reduction stands for. */
static void add_forwarded(Combining *combining, const Reduction *reduction, int sender, int receiver, int depth, int source, int64_t lo,
                          int64_t hi)
{
    Segment segment = {.task = reduction->task, .origin = ORIGIN_PARTIAL, .source = source, .lo = lo, .hi = hi};
    array_push(combining->planner->arena, &combining->forwarded, (Forwarded){sender, receiver, depth, segment});
}

/* The value lies at `device` in the end: in its place, or in scratch where the device does not want it. */
static void add_result(Combining *combining, const Reduction *reduction, int device, bool partial, int64_t lo, int64_t hi)
{
    Segment segment = {.task = reduction->task, .origin = partial ? ORIGIN_PARTIAL : ORIGIN_TO, .lo = lo, .hi = hi};
    push_result(combining->planner, &combining->planner->transfers, segment, device, &task_of(combining, reduction)->targets);
}

/* A device takes in all contributions but its own and `except`. */
static void take_all(Combining *combining, const Reduction *reduction, int device, int except, int depth, int64_t lo, int64_t hi)
{
    int own = index_find(combining->source, device);
    for (int p = 0; p < task_of(combining, reduction)->source_count; p++)
        if (p != own && p != except)
            add_leaf(combining, p, device, depth, lo, hi);
}

/* One device combines all of a stretch; it wants the value, or hands it on from scratch. */
static void combine_alone(Combining *combining, const Reduction *reduction, int device, bool wants, int64_t lo, int64_t hi)
{
    if (lo == hi)
        return;
    take_all(combining, reduction, device, -1, 0, lo, hi);
    add_reduced(combining, reduction, device, 0, !wants, lo, hi);
    add_result(combining, reduction, device, !wants, lo, hi);
}

/* A helper combines all contributions but the reducer's, and the reducer adds its own. */
static void combine_before(Combining *combining, const Reduction *reduction, int helper, int reducer, int64_t lo, int64_t hi)
{
    int own = index_find(combining->source, reducer), first = own ? 0 : 1;
    take_all(combining, reduction, helper, own, 1, lo, hi);
    add_reduced(combining, reduction, helper, 1, true, lo, hi);
    add_forwarded(combining, reduction, helper, reducer, 0, first, lo, hi);
    add_reduced(combining, reduction, reducer, 0, false, lo, hi);
    add_result(combining, reduction, reducer, false, lo, hi);
}

/* ---- stretches in few rounds ---- */

/* Each reducer combines some of its share itself, and helpers the rest, one after another. */
static void combine_at_reducers(Combining *combining, const Stretch *stretch, const Job *job)
{
    const Reduction *reduction = stretch->reduction;
    int64_t lo = stretch->lo, left = 0;
    int helper = stretch->count - 1;
    for (int r = 0; r < stretch->count; r++) {
        int reducer = reduction->reducers.at[stretch->first + r];
        int64_t hi = lo + reduction->shares[stretch->first + r], own = job ? lo + job->units[r] / job->grain : hi;
        combine_alone(combining, reduction, reducer, true, lo, own);
        for (lo = own; lo < hi;) {
            while (!left)
                left = job->units[++helper] / job->grain;
            int64_t width = left < hi - lo ? left : hi - lo;
            combine_before(combining, reduction, job->devices.at[helper], reducer, lo, lo + width);
            left -= width;
            lo += width;
        }
    }
}

/* No device that wants the value holds a contribution: some of these combine all, and holders of contributions combine the rest. */
static void combine_anywhere(Combining *combining, const Stretch *stretch, const Job *job)
{
    int64_t lo = stretch->lo;
    for (int i = 0; i < job->devices.count; i++) {
        int64_t hi = lo + job->units[i] / job->grain;
        combine_alone(combining, stretch->reduction, job->devices.at[i], i < job->first, lo, hi);
        lo = hi;
    }
}

/* ---- stretches along a tree ---- */

/* The first contribution below each node. */
static int *first_below(Combining *combining, const Devices *nodes, const int *parent)
{
    int *first = arena_array(combining->planner->arena, int, nodes->count);
    for (int i = 0; i < nodes->count; i++)
        first[i] = index_find(combining->source, nodes->at[i]);
    for (int i = 0; i < nodes->count; i++)
        for (int up = parent[i]; up >= 0; up = parent[up]) {
            int own = index_find(combining->source, nodes->at[i]);
            first[up] = own < first[up] ? own : first[up];
        }
    return first;
}

/* Combines along a tree of one holder of each contribution, the first at the top. */
static void combine_tree(Combining *combining, const Stretch *stretch, const Devices *nodes, const int *degree)
{
    const Reduction *reduction = stretch->reduction;
    int *parent = arena_array(combining->planner->arena, int, nodes->count),
        *depth = arena_array(combining->planner->arena, int, nodes->count);
    tree_arrange(combining->planner, 1, nodes->count, degree, parent, depth);
    const int *first = first_below(combining, nodes, parent);
    for (int i = 0; i < nodes->count; i++) {
        bool partial = i || !reduction->holds;
        if (degree[i])
            add_reduced(combining, reduction, nodes->at[i], depth[i], partial, stretch->lo, stretch->hi);
        if (i && degree[i])
            add_forwarded(combining, reduction, nodes->at[i], nodes->at[parent[i]], depth[parent[i]], first[i], stretch->lo, stretch->hi);
        else if (i)
            add_leaf(combining, index_find(combining->source, nodes->at[i]), nodes->at[parent[i]], depth[parent[i]], stretch->lo,
                     stretch->hi);
    }
    add_result(combining, reduction, nodes->at[0], !reduction->holds, stretch->lo, stretch->hi);
}

/* The top adds one to what it has chosen; where no reducer holds a contribution, the node that takes in most is the top. */
static void combine_along(Combining *combining, const Stretch *stretch, const Job *job)
{
    int count = job->devices.count, top = 0, *degree = arena_array(combining->planner->arena, int, count);
    Devices nodes = {.at = arena_copy(combining->planner->arena, job->devices.at, sizeof(int) * (size_t)count), .count = count};
    for (int i = 0; i < count; i++) {
        degree[i] = (int)job->units[i] + (stretch->reduction->holds && !i);
        top = !stretch->reduction->holds && degree[i] > degree[top] ? i : top;
    }
    int most = degree[top];
    degree[top] = degree[0];
    degree[0] = most;
    nodes.at[top] = job->devices.at[0];
    nodes.at[0] = job->devices.at[top];
    combine_tree(combining, stretch, &nodes, degree);
}

/* ---- the jobs of taking in ---- */

static Job reducers_job(Combining *combining, const Stretch *stretch)
{
    const Reduction *reduction = stretch->reduction;
    const Task *task = task_of(combining, reduction);
    Devices reducers = {.at = reduction->reducers.at + stretch->first, .count = stretch->count};
    Job job = {.devices = devices_joined(combining->planner->arena, &reducers, &(Devices){0}),
               .first = stretch->count,
               .unit = task_element(combining->planner->plan, reduction->task),
               .grains = stretch->hi - stretch->lo,
               .grain = extra_receipts(combining, reduction),
               .limits = reduction->holds ? reduction->shares + stretch->first : NULL};
    int own = index_find(combining->source, reducers.at[0]);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count && p != own; h++)
            array_push(combining->planner->arena, &job.devices, task->sources[p].at[h]);
    return job;
}

/* The reducer in whose share an element lies. */
static int reducer_at(const Reduction *reduction, int64_t element)
{
    int r = 0;
    for (; element >= reduction->shares[r]; r++)
        element -= reduction->shares[r];
    return reduction->reducers.at[r];
}

/* One holder of each contribution, by turns; in front the reducer, if it holds one. */
static Job tree_job(Combining *combining, const Stretch *stretch, int turn)
{
    const Reduction *reduction = stretch->reduction;
    const Task *task = task_of(combining, reduction);
    Arena *arena = combining->planner->arena;
    int top = reduction->holds ? reducer_at(reduction, stretch->lo - task->lo) : -1,
        own = reduction->holds ? index_find(combining->source, top) : -1;
    Job job = {.first = reduction->holds, .grains = extra_receipts(combining, reduction), .grain = 1};
    job.unit = task_element(combining->planner->plan, reduction->task) * (stretch->hi - stretch->lo);
    if (reduction->holds)
        array_push(arena, &job.devices, top);
    for (int p = 0; p < task->source_count; p++)
        if (p != own)
            array_push(arena, &job.devices, task->sources[p].at[turn % task->sources[p].count]);
    return job;
}

static void add_stretch(Combining *combining, Stretches *stretches, Jobs *jobs, Stretch stretch, int turn)
{
    stretch.job = -1;
    if (extra_receipts(combining, stretch.reduction))
        stretch.job =
            add_job(combining->planner, jobs, stretch.tree ? tree_job(combining, &stretch, turn) : reducers_job(combining, &stretch));
    array_push(combining->planner->arena, stretches, stretch);
}

/* Stretches so short that one of their contributions is a small part of the cap. */
static void add_trees(Combining *combining, const Reduction *reduction, int64_t fine, Stretches *stretches, Jobs *jobs)
{
    Segment all = task_segment(combining->planner->plan, reduction->task);
    int turn = 0;
    for (int64_t lo = all.lo, hi; lo < all.hi; lo = hi) {
        hi = all.hi - lo > fine ? lo + fine : all.hi;
        add_stretch(combining, stretches, jobs, (Stretch){.reduction = reduction, .lo = lo, .hi = hi, .tree = true}, turn++);
    }
}

/* A stretch for each contribution that reducers hold. */
static void add_reducers(Combining *combining, const Reduction *reduction, Stretches *stretches, Jobs *jobs)
{
    Stretch stretch = {.reduction = reduction, .lo = task_of(combining, reduction)->lo};
    for (int r = 0; r < reduction->reducers.count; r = stretch.first + stretch.count) {
        int source = index_find(combining->source, reduction->reducers.at[r]);
        stretch.first = r;
        stretch.hi = stretch.lo;
        for (; r < reduction->reducers.count && index_find(combining->source, reduction->reducers.at[r]) == source; r++)
            stretch.hi += reduction->shares[r];
        stretch.count = r - stretch.first;
        if (stretch.lo < stretch.hi)
            add_stretch(combining, stretches, jobs, stretch, 0);
        stretch.lo = stretch.hi;
    }
}

static void add_stretches(Combining *combining, const Reduction *reduction, int64_t cap, Stretches *stretches, Jobs *jobs)
{
    Segment all = task_segment(combining->planner->plan, reduction->task);
    int64_t fine = fine_grain(combining->planner->plan, &all, cap);
    index_sources(combining, task_of(combining, reduction));
    if (extra_receipts(combining, reduction) > fine)
        add_trees(combining, reduction, fine, stretches, jobs);
    else if (reduction->holds)
        add_reducers(combining, reduction, stretches, jobs);
    else
        add_stretch(combining, stretches, jobs,
                    (Stretch){.reduction = reduction, .lo = all.lo, .hi = all.hi, .count = reduction->reducers.count}, 0);
}

/* What the devices receive however the reductions are divided: all that they want and do not hold as it shall be. The result is all that is
 * received, with what remains to be divided. */
static int64_t count_receipts(Combining *combining, const Reductions *reductions)
{
    Planner *planner = combining->planner;
    const Plan *plan = planner->plan;
    int64_t total = 0;
    count_moves(planner);
    for (int g = 0; g < planner->transfers.count; g++) {
        const Transfer *transfer = &planner->transfers.at[g];
        for (int n = 0; n < transfer->receivers.count; n++)
            planner->received[plan_slot(plan, transfer->receivers.at[n])] += segment_bytes(plan, &transfer->segment);
    }
    for (int s = 0; s < reductions->count; s++) {
        const Task *task = task_of(combining, &reductions->at[s]);
        int64_t load = task->volume * task_element(plan, reductions->at[s].task);
        for (int w = 0; w < task->targets.count; w++)
            planner->received[plan_slot(plan, task->targets.at[w])] += load;
        total += load * extra_receipts(combining, &reductions->at[s]);
    }
    for (int i = 0; i < plan->device_count; i++)
        total += planner->received[i];
    return total;
}

/* ---- all together ---- */

static void add_contributions(Combining *combining, const Reduction *reduction)
{
    const Task *task = task_of(combining, reduction);
    combining->first = combining->contributions.count;
    for (int p = 0; p < task->source_count; p++) {
        Segment segment = task_segment(combining->planner->plan, reduction->task);
        segment.source = p;
        array_push(combining->planner->arena, &combining->contributions, (Contribution){&task->sources[p], segment, 0, -1});
    }
    index_sources(combining, task);
}

static void realize(Combining *combining, const Stretches *stretches, const Jobs *jobs)
{
    const Reduction *last = NULL;
    for (int i = 0; i < stretches->count; i++) {
        const Stretch *stretch = &stretches->at[i];
        if (stretch->reduction != last)
            add_contributions(combining, last = stretch->reduction);
        const Job *job = stretch->job < 0 ? NULL : &jobs->at[stretch->job];
        (stretch->tree ? combine_along : stretch->reduction->holds ? combine_at_reducers : combine_anywhere)(combining, stretch, job);
    }
}

Combining *combining_plan(Planner *planner, Reductions *reductions)
{
    Combining *combining = arena_new(planner->arena, Combining);
    Stretches stretches = {0};
    Jobs jobs = {0};
    *combining = (Combining){.planner = planner, .step = planner->plan->steps.count};
    if (!reductions->count)
        return combining;
    combining->source = index_create(planner);
    combining->reducers = index_create(planner);
    choose_shares(combining, reductions);
    int64_t cap = load_cap(planner->plan, count_receipts(combining, reductions));
    for (int s = 0; s < reductions->count; s++)
        add_stretches(combining, &reductions->at[s], cap, &stretches, &jobs);
    balance_jobs(planner, &jobs, cap, MANY_SWEEPS, planner->received);
    realize(combining, &stretches, &jobs);
    for (int depth = combining->deepest; depth >= 0; depth--)
        add_step(planner, HT_EXCHANGE)->combine = true;
    return combining;
}

/* ---- sending ---- */

static int step_at(const Combining *combining, int depth) { return combining->step + combining->deepest - depth; }

void combining_add(Planner *planner, Combining *combining, Jobs *jobs)
{
    const Plan *plan = planner->plan;
    for (int i = 0; i < combining->forwarded.count; i++) {
        const Forwarded *forwarded = &combining->forwarded.at[i];
        planner->sent[plan_slot(plan, forwarded->sender)] += segment_bytes(plan, &forwarded->segment);
    }
    for (int c = 0; c < combining->contributions.count; c++) {
        Contribution *contribution = &combining->contributions.at[c];
        int count = contribution->holders->count;
        Job job = {.devices = *contribution->holders, .first = count, .unit = task_element(plan, contribution->segment.task), .grain = 1};
        job.least = contribution->volume;
        if (count == 1 || !job.least) {
            planner->sent[plan_slot(plan, contribution->holders->at[0])] += job_load(&job);
            continue;
        }
        contribution->job = add_job(planner, jobs, job);
    }
}

/* Sends the stretches of a contribution, one after another from its holders, each of which does its share. */
static void send_contribution(const Combining *combining, const Contribution *contribution, const Leaf *leaves, int count, const Jobs *jobs)
{
    const int64_t *shares = contribution->job < 0 ? NULL : jobs->at[contribution->job].units;
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
            send_segment(combining->planner, step_at(combining, leaf->depth), contribution->holders->at[holder], leaf->receiver, segment);
        }
    }
}

/* Sends all contributions; the leaves are sorted by these first. */
static void send_contributions(const Combining *combining, const Jobs *jobs)
{
    int count = combining->contributions.count, *begin = arena_array(combining->planner->arena, int, count + 2);
    Leaf *sorted = arena_array(combining->planner->arena, Leaf, combining->leaves.count);
    for (int i = 0; i < combining->leaves.count; i++)
        begin[combining->leaves.at[i].contribution + 2]++;
    for (int c = 0; c < count; c++)
        begin[c + 2] += begin[c + 1];
    for (int i = 0; i < combining->leaves.count; i++)
        sorted[begin[combining->leaves.at[i].contribution + 1]++] = combining->leaves.at[i];
    for (int c = 0; c < count; c++)
        send_contribution(combining, &combining->contributions.at[c], sorted + begin[c], begin[c + 1] - begin[c], jobs);
}

void combining_send(Planner *planner, const Combining *combining, const Jobs *jobs)
{
    for (int i = 0; i < combining->reduced.count; i++) {
        const Reduced *reduced = &combining->reduced.at[i];
        array_push(planner->arena, &planner->plan->steps.at[step_at(combining, reduced->depth)].reductions, reduced->reducing);
    }
    for (int i = 0; i < combining->forwarded.count; i++) {
        const Forwarded *forwarded = &combining->forwarded.at[i];
        send_segment(planner, step_at(combining, forwarded->depth), forwarded->sender, forwarded->receiver, forwarded->segment);
    }
    send_contributions(combining, jobs);
    for (int depth = 0; depth <= combining->deepest; depth++)
        close_messages(planner, step_at(combining, depth));
}
