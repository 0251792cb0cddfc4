/* Reduces by messages.
 *
 * Each part of a value has a reducer among the targets, which receives the contributions that it
 * lacks. If these are too many bytes, holders of contributions combine them beforehand, and the
 * reducer receives one partial reduction. If combining even one element of all contributions is too
 * much for one device, devices combine the contributions along a tree. */
#include "reshard/load/balance_load.h"
#include "reshard/cost/communication.h"
#include "reshard/reduce/reduce.h"
#include "reshard/plan_builder.h"

/* A range of a contribution that a device receives, `depth` rounds before the last round. */
typedef struct Leaf {
    int contribution, receiver, depth;
    int64_t lo, hi;
} Leaf;

/* A contribution to a reduction, or a partial reduction that is sent on. */
typedef struct PlannedContribution {
    Devices holders;
    Segment segment; // the whole contribution
    int64_t volume;  // elements of its leaves
    int job; // job that divides the sending among the holders; -1: the first holder sends all
} PlannedContribution;

typedef struct Reduced {
    Reducing reducing;
    int depth;
} Reduced;

struct Combining {
    PlanBuilder *planner;
    const Reduction *reduction; // the current reduction
    const Task *task;           // task of the current reduction
    int64_t extra; // for each element: contributions to receive beyond one for each target
    int first;     // index of the reduction's first contribution
    Index *source; // by device: the contribution that the device holds
    Array(PlannedContribution) contributions;
    Array(Leaf) leaves;
    Array(Reduced) reduced;
    int deepest, step; // depth of the first exchange, and its index in plan->steps
};

/* A range of a reduction, and the job that divides its combining (-1: each reducer combines alone).
 * Without a tree, the reducers are consecutive and hold the same contribution, if any. */
typedef struct Stretch {
    const Reduction *reduction;
    int64_t lo, hi;
    bool tree;
    int first, count; // index of the first reducer, and number of reducers
    int job;
} Stretch;

typedef Array(Stretch) Stretches;

/* Makes a reduction the current one, and sets `source` to its contributions by device. */
static void take_up(Combining *combining, const Reduction *reduction) {
    const Task *task = &combining->planner->plan->tasks.at[reduction->task];
    int extra = task->source_count - 1 - reduction->holds;
    combining->reduction = reduction;
    combining->task = task;
    combining->extra = extra > 0 ? extra : 0;
    index_clear(combining->source);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count; h++)
            index_set(combining->source, task->sources[p].at[h], p);
}

static void add_loads(const Plan *plan, const Devices *devices, int64_t bytes, int64_t *load) {
    for (int i = 0; i < devices->count; i++) load[plan_slot(plan, devices->at[i])] += bytes;
}

static int64_t task_bytes(const Plan *plan, int task) {
    return plan->tasks.at[task].volume * task_element(plan, task);
}

/* ---- the reducers of each value ---- */

/* Adds to plan->sent an estimate of the bytes that holders of contributions and values send. */
static void estimate_sent(const PlanBuilder *planner, const Reductions *reductions) {
    const Plan *plan = planner->plan;
    for (int r = 0; r < reductions->count; r++) {
        const Task *task = &plan->tasks.at[reductions->at[r].task];
        for (int p = 0; p < task->source_count; p++)
            add_loads(plan, &task->sources[p],
                      task_bytes(plan, reductions->at[r].task) / task->sources[p].count,
                      plan->sent);
    }
    for (int t = 0; t < planner->transfers.count; t++) {
        const Transfer *transfer = &planner->transfers.at[t];
        add_loads(plan, &transfer->holders,
                  segment_bytes(plan, &transfer->segment) / transfer->holders.count, plan->sent);
    }
}

/* Sorts the reducers by the contributions that they hold. */
static void sort_reducers(const PlanBuilder *planner, Index *places, Reduction *reduction) {
    const Task *task = &planner->plan->tasks.at[reduction->task];
    Devices sorted = {.at = arena_array(planner->arena, int, reduction->reducers.count)};
    index_devices(places, &reduction->reducers);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count; h++)
            if (index_find(places, task->sources[p].at[h]) >= 0)
                sorted.at[sorted.count++] = task->sources[p].at[h];
    reduction->reducers = sorted;
}

/* Sorts the contributing reducers of each value, and divides the value into their `shares`. */
static void choose_shares(PlanBuilder *planner, Reductions *reductions) {
    Jobs jobs = {0};
    Index *places = index_create(planner);
    for (int r = 0; r < reductions->count; r++) {
        Reduction *reduction = &reductions->at[r];
        if (!reduction->holds) continue;
        sort_reducers(planner, places, reduction);
        Job job = {.devices = reduction->reducers, .first = reduction->reducers.count, .grain = 1};
        job.unit = task_element(planner->plan, reduction->task);
        job.least = planner->plan->tasks.at[reduction->task].volume;
        job.units = reduction->shares = arena_array(planner->arena, int64_t, job.first);
        add_job(planner, &jobs, job);
    }
    count_moves(planner);
    estimate_sent(planner, reductions);
    balance_jobs(planner, &jobs, 0, FEW_SWEEPS, planner->plan->sent);
}

/* ---- received contributions ---- */

static void add_leaf(Combining *combining, int contribution, int receiver, int depth, Range part) {
    array_push(combining->planner->arena, &combining->leaves,
               (Leaf){contribution, receiver, depth, part.lo, part.hi});
    combining->contributions.at[contribution].volume += part.hi - part.lo;
}

static void add_contribution(Combining *combining, Devices holders, Origin origin, int source,
                             Range part) {
    Segment segment = {.task = combining->reduction->task,
                       .origin = origin,
                       .source = source,
                       .lo = part.lo,
                       .hi = part.hi};
    array_push(combining->planner->arena, &combining->contributions,
               (PlannedContribution){holders, segment, 0, -1});
}

static void add_reduced(Combining *combining, int device, int depth, bool partial, Range part) {
    Segment segment = {.task = combining->reduction->task, .lo = part.lo, .hi = part.hi};
    array_push(combining->planner->arena, &combining->reduced,
               (Reduced){{device, segment, partial}, depth});
    combining->deepest = depth > combining->deepest ? depth : combining->deepest;
}

/* Adds a partial reduction at `holder_device` as a contribution; `source` is the first contribution
 * that it combines. Returns the partial reduction's index. */
static int add_partial(Combining *combining, int holder_device, int source, Range part) {
    Devices holder = {0};
    array_push(combining->planner->arena, &holder, holder_device);
    add_contribution(combining, holder, ORIGIN_PARTIAL, source, part);
    return combining->contributions.count - 1;
}

/* Adds a result's transfer from `device`, from storage or (`partial`) scratch, to other targets. */
static void add_result(Combining *combining, int device, bool partial, Range part) {
    Segment segment = {.task = combining->reduction->task, .lo = part.lo, .hi = part.hi};
    segment.origin = partial ? ORIGIN_PARTIAL : ORIGIN_TO;
    push_result(combining->planner, &combining->planner->transfers, segment, device,
                &combining->task->targets);
}

/* Adds the leaves by which a device receives all contributions except its own and `except`. */
static void take_all(Combining *combining, int device, int except, int depth, Range part) {
    int own = index_find(combining->source, device);
    for (int p = 0; p < combining->task->source_count; p++)
        if (p != own && p != except) add_leaf(combining, combining->first + p, device, depth, part);
}

/* Lets one device combine a whole part. If the device is not a target, the result is in scratch. */
static void combine_alone(Combining *combining, int device, bool wants, Range part) {
    if (part.lo == part.hi) return;
    take_all(combining, device, -1, 0, part);
    add_reduced(combining, device, 0, !wants, part);
    add_result(combining, device, !wants, part);
}

/* Lets a helper combine all contributions but that of the reducer, which combines its own last. */
static void combine_before(Combining *combining, int helper, int reducer, Range part) {
    int own = index_find(combining->source, reducer);
    take_all(combining, helper, own, 1, part);
    add_reduced(combining, helper, 1, true, part);
    add_leaf(combining, add_partial(combining, helper, own ? 0 : 1, part), reducer, 0, part);
    add_reduced(combining, reducer, 0, false, part);
    add_result(combining, reducer, false, part);
}

/* ---- stretches in few rounds ---- */

/* Lets each reducer combine a part of its share, and helpers, one after another, the rest. */
static void combine_at_reducers(Combining *combining, const Stretch *stretch, const Job *job) {
    const Reduction *reduction = stretch->reduction;
    int64_t lo = stretch->lo, left = 0;
    int helper = stretch->count - 1;
    for (int r = 0; r < stretch->count; r++) {
        int reducer = reduction->reducers.at[stretch->first + r];
        int64_t hi = lo + reduction->shares[stretch->first + r],
                own = job ? lo + job->units[r] / job->grain : hi;
        combine_alone(combining, reducer, true, (Range){lo, own});
        for (lo = own; lo < hi;) {
            while (!left) left = job->units[++helper] / job->grain;
            int64_t width = left < hi - lo ? left : hi - lo;
            combine_before(combining, job->devices.at[helper], reducer, (Range){lo, lo + width});
            left -= width;
            lo += width;
        }
    }
}

/* Handles values of which no target holds a contribution: some targets combine parts of the value,
 * and holders of contributions combine the other parts. */
static void combine_anywhere(Combining *combining, const Stretch *stretch, const Job *job) {
    Range part = {stretch->lo, stretch->lo};
    for (int i = 0; i < job->devices.count; i++, part.lo = part.hi) {
        part.hi += job->units[i] / job->grain;
        combine_alone(combining, job->devices.at[i], i < job->first, part);
    }
}

/* ---- stretches along a tree ---- */

/* Returns the first contribution at each node or below it. */
static int *first_below(const Combining *combining, const Devices *nodes, const int *parent) {
    int *first = arena_array(combining->planner->arena, int, nodes->count);
    for (int i = 0; i < nodes->count; i++) first[i] = index_find(combining->source, nodes->at[i]);
    for (int i = 0; i < nodes->count; i++)
        for (int up = parent[i], own = index_find(combining->source, nodes->at[i]); up >= 0;
             up = parent[up])
            first[up] = own < first[up] ? own : first[up];
    return first;
}

/* Combines along a tree of one holder of each contribution, with the first node at the root. */
static void combine_tree(Combining *combining, const Stretch *stretch, const Devices *nodes,
                         const int *degree) {
    Range part = {stretch->lo, stretch->hi};
    Tree tree = tree_arrange(combining->planner, 1, nodes->count, degree);
    const int *first = first_below(combining, nodes, tree.parent);
    for (int i = 0; i < nodes->count; i++) {
        int device = nodes->at[i], up = i ? nodes->at[tree.parent[i]] : -1,
            round = i ? tree.depth[tree.parent[i]] : 0;
        if (degree[i])
            add_reduced(combining, device, tree.depth[i], i || !stretch->reduction->holds, part);
        if (i && degree[i])
            add_leaf(combining, add_partial(combining, device, first[i], part), up, round, part);
        else if (i)
            add_leaf(combining, combining->first + index_find(combining->source, device), up, round,
                     part);
    }
    add_result(combining, nodes->at[0], !stretch->reduction->holds, part);
}

/* Combines along a tree. A reducer that holds a contribution is the root, and receives one more
 * contribution than its job says; else the root is the node that receives most contributions. */
static void combine_along(Combining *combining, const Stretch *stretch, const Job *job) {
    int count = job->devices.count, top = 0,
        *degree = arena_array(combining->planner->arena, int, count);
    Devices nodes = {
        .at = arena_copy(combining->planner->arena, job->devices.at, sizeof(int) * (size_t)count),
        .count = count};
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

/* ---- the jobs of receiving ---- */

/* Returns the job in which reducers receive contributions, and holders of other contributions
 * receive the contributions that would overload reducers. */
static Job reducers_job(const Combining *combining, const Stretch *stretch) {
    const Reduction *reduction = stretch->reduction;
    const Task *task = combining->task;
    Devices reducers = {.at = reduction->reducers.at + stretch->first, .count = stretch->count};
    Job job = {.devices = devices_joined(combining->planner->arena, &reducers, &(Devices){0}),
               .first = stretch->count,
               .unit = task_element(combining->planner->plan, reduction->task),
               .grains = stretch->hi - stretch->lo,
               .grain = combining->extra,
               .limits = reduction->holds ? reduction->shares + stretch->first : NULL};
    int own = index_find(combining->source, reducers.at[0]);
    for (int p = 0; p < task->source_count; p++)
        for (int h = 0; h < task->sources[p].count && p != own; h++)
            array_push(combining->planner->arena, &job.devices, task->sources[p].at[h]);
    return job;
}

/* Returns the reducer whose share contains an element. */
static int reducer_at(const Reduction *reduction, int64_t element) {
    int r = 0;
    for (; element >= reduction->shares[r]; r++) element -= reduction->shares[r];
    return reduction->reducers.at[r];
}

/* Returns the job of a tree of devices, one for each contribution: holder `turn` modulo the number
 * of its holders. A reducer that holds a contribution stands for it and comes first. */
static Job tree_job(const Combining *combining, const Stretch *stretch, int turn) {
    const Task *task = combining->task;
    Arena *arena = combining->planner->arena;
    Job job = {.first = stretch->reduction->holds, .grains = combining->extra, .grain = 1};
    int own = -1;
    job.unit = task_element(combining->planner->plan, stretch->reduction->task) *
               (stretch->hi - stretch->lo);
    if (job.first) {
        array_push(arena, &job.devices, reducer_at(stretch->reduction, stretch->lo - task->lo));
        own = index_find(combining->source, job.devices.at[0]);
    }
    for (int p = 0; p < task->source_count; p++)
        if (p != own)
            array_push(arena, &job.devices, task->sources[p].at[turn % task->sources[p].count]);
    return job;
}

static void add_stretch(const Combining *combining, Stretches *stretches, Jobs *jobs,
                        Stretch stretch, int turn) {
    stretch.job = -1;
    if (combining->extra)
        stretch.job = add_job(combining->planner, jobs,
                              stretch.tree ? tree_job(combining, &stretch, turn)
                                           : reducers_job(combining, &stretch));
    array_push(combining->planner->arena, stretches, stretch);
}

/* Appends ranges of at most `fine` elements, a small part of the load cap, each with a tree. */
static void add_trees(const Combining *combining, Range all, int64_t fine, Stretches *stretches,
                      Jobs *jobs) {
    Stretch stretch = {.reduction = combining->reduction, .lo = all.lo, .tree = true};
    for (int turn = 0; stretch.lo < all.hi; turn++, stretch.lo = stretch.hi) {
        stretch.hi = all.hi - stretch.lo > fine ? stretch.lo + fine : all.hi;
        add_stretch(combining, stretches, jobs, stretch, turn);
    }
}

/* Appends a range and its job for each contribution that reducers hold. */
static void add_reducers(const Combining *combining, Stretches *stretches, Jobs *jobs) {
    const Reduction *reduction = combining->reduction;
    Stretch stretch = {.reduction = reduction, .lo = combining->task->lo};
    for (int r = 0; r < reduction->reducers.count; r = stretch.first + stretch.count) {
        int source = index_find(combining->source, reduction->reducers.at[r]);
        stretch.first = r;
        stretch.hi = stretch.lo;
        for (; r < reduction->reducers.count &&
               index_find(combining->source, reduction->reducers.at[r]) == source;
             r++)
            stretch.hi += reduction->shares[r];
        stretch.count = r - stretch.first;
        if (stretch.lo < stretch.hi) add_stretch(combining, stretches, jobs, stretch, 0);
        stretch.lo = stretch.hi;
    }
}

/* Appends the ranges of the current reduction to `stretches`, and their jobs to `jobs`. */
static void add_stretches(const Combining *combining, int64_t cap, Stretches *stretches,
                          Jobs *jobs) {
    const Reduction *reduction = combining->reduction;
    Segment all = task_segment(combining->planner->plan, reduction->task);
    int64_t fine = fine_grain(combining->planner->plan, &all, cap);
    if (combining->extra > fine)
        add_trees(combining, (Range){all.lo, all.hi}, fine, stretches, jobs);
    else if (reduction->holds) add_reducers(combining, stretches, jobs);
    else
        add_stretch(combining, stretches, jobs,
                    (Stretch){reduction, all.lo, all.hi, .count = reduction->reducers.count}, 0);
}

/* Adds to the loads the bytes that targets receive however the jobs are divided. Returns the bytes
 * that all devices receive, including those that the jobs divide. */
static int64_t count_receipts(Combining *combining, const Reductions *reductions) {
    PlanBuilder *planner = combining->planner;
    const Plan *plan = planner->plan;
    int64_t total = 0;
    count_moves(planner);
    for (int t = 0; t < planner->transfers.count; t++) {
        const Transfer *transfer = &planner->transfers.at[t];
        add_loads(plan, &transfer->receivers, segment_bytes(plan, &transfer->segment),
                  plan->received);
    }
    for (int r = 0; r < reductions->count; r++) {
        int64_t bytes = task_bytes(plan, reductions->at[r].task);
        take_up(combining, &reductions->at[r]);
        add_loads(plan, &combining->task->targets, bytes, plan->received);
        total += bytes * combining->extra;
    }
    for (int i = 0; i < plan->device_count; i++) total += plan->received[i];
    return total;
}

/* ---- whole reductions ---- */

static void combine_stretches(Combining *combining, const Stretches *stretches, const Jobs *jobs) {
    combining->reduction = NULL;
    for (int i = 0; i < stretches->count; i++) {
        const Stretch *stretch = &stretches->at[i];
        const Job *job = stretch->job < 0 ? NULL : &jobs->at[stretch->job];
        if (stretch->reduction != combining->reduction) {
            take_up(combining, stretch->reduction);
            combining->first = combining->contributions.count;
            Range all = {combining->task->lo, combining->task->lo + combining->task->volume};
            for (int p = 0; p < combining->task->source_count; p++)
                add_contribution(combining, combining->task->sources[p], combining->task->origin, p,
                                 all);
        }
        (stretch->tree               ? combine_along
         : stretch->reduction->holds ? combine_at_reducers
                                     : combine_anywhere)(combining, stretch, job);
    }
}

Combining *combining_plan(PlanBuilder *planner, Reductions *reductions) {
    Combining *combining = arena_new(planner->arena, Combining);
    Stretches stretches = {0};
    Jobs jobs = {0};
    *combining = (Combining){.planner = planner, .step = planner->plan->steps.count};
    if (!reductions->count) return combining;
    combining->source = index_create(planner);
    choose_shares(planner, reductions);
    int64_t cap = load_cap(planner->plan, count_receipts(combining, reductions));
    for (int r = 0; r < reductions->count; r++) {
        take_up(combining, &reductions->at[r]);
        add_stretches(combining, cap, &stretches, &jobs);
    }
    balance_jobs(planner, &jobs, cap, MANY_SWEEPS, planner->plan->received);
    combine_stretches(combining, &stretches, &jobs);
    for (int depth = combining->deepest; depth >= 0; depth--)
        add_step(planner, HT_EXCHANGE)->combine = true;
    return combining;
}

/* ---- sending ---- */

static int step_at(const Combining *combining, int depth) {
    return combining->step + combining->deepest - depth;
}

void combining_add(PlanBuilder *planner, Combining *combining, Jobs *jobs) {
    const Plan *plan = planner->plan;
    for (int c = 0; c < combining->contributions.count; c++) {
        PlannedContribution *contribution = &combining->contributions.at[c];
        Job job = {.devices = contribution->holders,
                   .first = contribution->holders.count,
                   .least = contribution->volume,
                   .grain = 1};
        job.unit = task_element(plan, contribution->segment.task);
        if (job.first == 1 || !job.least)
            plan->sent[plan_slot(plan, job.devices.at[0])] += job_load(&job);
        else contribution->job = add_job(planner, jobs, job);
    }
}

/* Sends the ranges of a contribution's leaves, given by number; holders send shares in turn. */
static void send_contribution(const Combining *combining, const PlannedContribution *contribution,
                              const int *leaves, int count, const Jobs *jobs) {
    const int64_t *shares = contribution->job < 0 ? NULL : jobs->at[contribution->job].units;
    int holder = 0;
    int64_t left = shares ? shares[0] : INT64_MAX;
    for (int i = 0; i < count; i++) {
        const Leaf *leaf = &combining->leaves.at[leaves[i]];
        Segment segment = contribution->segment;
        for (segment.lo = leaf->lo; segment.lo < leaf->hi; segment.lo = segment.hi) {
            while (!left) left = shares[++holder];
            segment.hi = leaf->hi - segment.lo < left ? leaf->hi : segment.lo + left;
            left -= segment.hi - segment.lo;
            send_segment(combining->planner, step_at(combining, leaf->depth),
                         contribution->holders.at[holder], leaf->receiver, segment);
        }
    }
}

/* Sends all contributions, partial reductions first. */
static void send_contributions(const Combining *combining, const Jobs *jobs) {
    Arena *arena = combining->planner->arena;
    int count = combining->contributions.count, *begin = arena_array(arena, int, count + 1),
        *key = arena_array(arena, int, combining->leaves.count);
    for (int i = 0; i < combining->leaves.count; i++) key[i] = combining->leaves.at[i].contribution;
    const int *leaves = sort_by_key(arena, key, combining->leaves.count, count, begin);
    for (int partial = 1; partial >= 0; partial--)
        for (int c = 0; c < count; c++)
            if ((combining->contributions.at[c].segment.origin == ORIGIN_PARTIAL) == partial)
                send_contribution(combining, &combining->contributions.at[c], leaves + begin[c],
                                  begin[c + 1] - begin[c], jobs);
}

void combining_send(PlanBuilder *planner, const Combining *combining, const Jobs *jobs) {
    for (int i = 0; i < combining->reduced.count; i++) {
        const Reduced *reduced = &combining->reduced.at[i];
        array_push(planner->arena,
                   &planner->plan->steps.at[step_at(combining, reduced->depth)].reductions,
                   reduced->reducing);
    }
    send_contributions(combining, jobs);
    for (int depth = 0; depth <= combining->deepest; depth++)
        close_messages(planner, step_at(combining, depth));
}
