/* Balances the load of devices: divides jobs so that no device does much more than an even share.
 * copy/senders.c makes the jobs of messages (who sends), reduce/messages.c those of sums.
 *
 * Step 1: divide the jobs one after another, each as well as the current loads allow. Step 2:
 * divide again the jobs that overloaded devices take part in, until nothing changes. Each division
 * minimises the sum of the squares of the loads' excess over the cap, given the other jobs. This
 * sum of squares is convex, so the iteration reaches its minimum over all divisions. A device stays
 * above the cap only when no exchange of work could relieve it. */
#include "reshard/load/balance_load.h"

#include "reshard/devices.h"

#include <stdlib.h>
#include <string.h>

int add_job(PlanBuilder *planner, Jobs *jobs, Job job) {
    if (!job.units) job.units = arena_array(planner->arena, int64_t, job.devices.count);
    array_push(planner->arena, jobs, job);
    return jobs->count - 1;
}

int64_t job_load(const Job *job) { return (job->least + job->grains * job->grain) * job->unit; }

int64_t load_cap(const Plan *plan, int64_t total) {
    int64_t even = total / plan->device_count + 1;
    return even + even / 4;
}

int64_t fine_grain(const Plan *plan, const Segment *segment, int64_t cap) {
    enum { PARTS = 4 }; // an indivisible part of a segment is at most 1/PARTS of the cap
    int64_t fine = cap / task_element(plan, segment->task) / PARTS;
    return fine > 1 ? fine : 1;
}

/* A device that may do a part of a job: its load without the job, the most grains that it may do,
 * and its index in the job. */
typedef struct Worker {
    int64_t load, limit;
    int index;
} Worker;

static int compare_workers(const void *a, const void *b) {
    const Worker *x = a, *y = b;
    return x->load != y->load ? (x->load > y->load) - (x->load < y->load) : x->index - y->index;
}

/* Returns how many units of `cost` bytes fit a device's limit and a load of up to `level` bytes. */
static int64_t room_of(const Worker *worker, int64_t level, int64_t cost) {
    int64_t room = worker->load < level ? (level - worker->load) / cost : 0;
    return room < worker->limit ? room : worker->limit;
}

static int64_t room_below(const Worker *workers, int count, int64_t level, int64_t cost) {
    int64_t room = 0;
    for (int i = 0; i < count; i++) room += room_of(&workers[i], level, cost);
    return room;
}

/* Returns the step of preferred devices' shares, in units: 1 if job->least is set, else a grain. */
static int64_t first_step(const Job *job) { return job->least ? 1 : job->grain; }

/* Returns how many grains the preferred devices can do with loads of at most `level` bytes. */
static int64_t first_grains(const Job *job, const Worker *workers, int64_t level) {
    int64_t step = first_step(job),
            room = room_below(workers, job->first, level, job->unit * step) * step - job->least;
    return room < 0 ? 0 : room / job->grain < job->grains ? room / job->grain : job->grains;
}

/* Returns whether all grains can be done without raising a load above `level` bytes. The work that
 * preferred devices do in any case does not count. */
static bool is_enough(const Job *job, const Worker *workers, int64_t level) {
    int64_t own = first_grains(job, workers, level);
    return own + room_below(workers + job->first, job->devices.count - job->first, level,
                            job->unit * job->grain) >=
           job->grains;
}

/* Returns the lowest load in bytes, at least the cap, up to which all grains can be done. */
static int64_t find_level(const Job *job, const Worker *workers, int64_t cap) {
    int64_t low = cap, high = cap;
    for (int64_t step = job->unit * job->grain; !is_enough(job, workers, high); step *= 2) {
        low = high;
        high += step;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (is_enough(job, workers, middle)) high = middle;
        else low = middle;
    }
    return high;
}

/* Divides the grains of a part of a job among its devices, the least loaded first. Each is loaded
 * up to `level` bytes, or to the lowest sufficient level above. */
static void share_out(const Job *part, Worker *workers, int64_t level) {
    int64_t left = part->grains;
    level = find_level(part, workers, level);
    qsort(workers, (size_t)part->devices.count, sizeof *workers, compare_workers);
    for (int k = 0; k < part->devices.count; k++) {
        int64_t room = room_of(&workers[k], level, part->unit * part->grain),
                share = room < left ? room : left;
        part->units[workers[k].index] = share * part->grain;
        left -= share;
    }
}

/* Divides a job anew, given the loads of other work: sets job->units, and updates `load`. */
static void divide(PlanBuilder *planner, Job *job, int64_t cap, int64_t *load, Worker *workers) {
    int count = job->devices.count, others = count - job->first;
    for (int i = 0; i < count; i++) {
        int64_t *at = &load[plan_slot(planner->plan, job->devices.at[i])];
        *at -= job->units[i] * job->unit;
        workers[i] = (Worker){*at, job->limits && i < job->first ? job->limits[i] : INT64_MAX, i};
    }
    int64_t level = find_level(job, workers, cap), step = first_step(job),
            own = others ? first_grains(job, workers, level) : job->grains;
    Job first = {.devices.count = job->first,
                 .unit = job->unit,
                 .units = job->units,
                 .grains = (job->least + own * job->grain) / step,
                 .grain = step},
        rest = {.devices.count = others,
                .unit = job->unit,
                .units = job->units,
                .grains = job->grains - own,
                .grain = job->grain};
    if (job->first) share_out(&first, workers, level);
    if (others) share_out(&rest, workers + job->first, level);
    for (int i = 0; i < count; i++)
        load[plan_slot(planner->plan, job->devices.at[i])] += job->units[i] * job->unit;
}

/* Returns the job numbers, those with the fewest preferred devices first. */
static const int *rank_jobs(PlanBuilder *planner, const Jobs *jobs, int most) {
    int *choice = arena_array(planner->arena, int, jobs->count);
    for (int w = 0; w < jobs->count; w++) choice[w] = jobs->at[w].first;
    return sort_by_key(planner->arena, choice, jobs->count, most + 1,
                       arena_array(planner->arena, int, most + 2));
}

/* Returns whether a device that does some of a job exceeds the cap. */
static bool is_overloaded(const PlanBuilder *planner, const Job *job, int64_t cap,
                          const int64_t *load) {
    for (int i = 0; i < job->devices.count; i++)
        if (job->units[i] && load[plan_slot(planner->plan, job->devices.at[i])] > cap) return true;
    return false;
}

void balance_jobs(PlanBuilder *planner, Jobs *jobs, int64_t cap, int sweeps, int64_t *load) {
    int most = 0;
    for (int w = 0; w < jobs->count; w++)
        most = jobs->at[w].devices.count > most ? jobs->at[w].devices.count : most;
    const int *order = rank_jobs(planner, jobs, most);
    Worker *workers = arena_array(planner->arena, Worker, most);
    int64_t *before = arena_array(planner->arena, int64_t, most);
    for (int w = 0; w < jobs->count; w++) divide(planner, &jobs->at[order[w]], cap, load, workers);
    bool changed = true;
    for (int sweep = 0; sweep < sweeps && changed; sweep++) {
        changed = false;
        for (int w = 0; w < jobs->count; w++) {
            Job *job = &jobs->at[order[w]];
            if (job->devices.count < 2 || !is_overloaded(planner, job, cap, load)) continue;
            size_t size = sizeof *before * (size_t)job->devices.count;
            memcpy(before, job->units, size);
            divide(planner, job, cap, load, workers);
            changed = changed || memcmp(before, job->units, size) != 0;
        }
    }
}

typedef struct Node {
    int degree, node;
} Node;

static int compare_nodes(const void *a, const void *b) {
    const Node *x = a, *y = b;
    return x->degree != y->degree ? y->degree - x->degree : x->node - y->node;
}

Tree tree_arrange(PlanBuilder *planner, int tops, int count, const int *degree) {
    Tree tree = {arena_array(planner->arena, int, count), arena_array(planner->arena, int, count)};
    Node *order = arena_array(planner->arena, Node, count);
    for (int i = 0; i < count; i++) order[i] = (Node){degree[i], i};
    qsort(order + tops, (size_t)(count - tops), sizeof *order, compare_nodes);
    for (int i = 0; i < tops; i++) tree.parent[i] = -1;
    for (int i = 0, next = tops; i < count; i++)
        for (int k = 0; k < order[i].degree; k++, next++) {
            tree.parent[order[next].node] = order[i].node;
            tree.depth[order[next].node] = tree.depth[order[i].node] + 1;
        }
    return tree;
}
