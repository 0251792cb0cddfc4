/* Shares links and processors among tasks (contention), max-min fair. */
#include "schedule/link_contention.h"

#include "support/diag.h"

#include <math.h>

MaxMin max_min_create(Arena *arena, const EngineProblem *problem) {
    int resources = problem->resource_count, tasks = problem->task_count, uses = 0;
    MaxMin fair = {.problem = problem,
                   .rate = arena_array(arena, double, resources),
                   .speed = arena_array(arena, double, tasks),
                   .users = arena_array(arena, MaxMinUsers, resources),
                   .first_use = arena_array(arena, int, tasks),
                   .of_device = arena_array(arena, int, problem->device_count + 2),
                   .device = arena_array(arena, int, resources),
                   .disturbed = arena_array(arena, int, resources),
                   .tasks = arena_array(arena, int, tasks),
                   .resources = arena_array(arena, int, resources),
                   .seen_task = arena_array(arena, int, tasks),
                   .seen_resource = arena_array(arena, int, resources),
                   .left = arena_array(arena, double, resources),
                   .weight = arena_array(arena, double, resources)};
    for (int t = 0; t < tasks; uses += problem->tasks[t++].use_count) fair.first_use[t] = uses;
    fair.user = arena_array(arena, MaxMinUser, uses);
    fair.share = arena_array(arena, double, uses);
    for (int t = 0; t < tasks; t++)
        for (int u = 0; u < problem->tasks[t].use_count; u++)
            fair.share[fair.first_use[t] + u] = problem->tasks[t].uses[u].share;
    for (int r = 0; r < resources; r++) {
        fair.rate[r] = problem->resources[r].rate;
        fair.users[r] = (MaxMinUsers){.first = -1};
        if (problem->resources[r].device >= 0) fair.of_device[problem->resources[r].device + 2]++;
    }
    for (int d = 0; d < problem->device_count; d++) fair.of_device[d + 2] += fair.of_device[d + 1];
    for (int r = 0; r < resources; r++)
        if (problem->resources[r].device >= 0)
            fair.device[fair.of_device[problem->resources[r].device + 1]++] = r;
    fair.disturbed_count = 0;
    return fair;
}

/* ---- recording changes ---- */

/* Marks a resource as disturbed: sets its seen_resource to -1, the number of no search. */
void max_min_disturb(MaxMin *fair, int resource) {
    if (fair->seen_resource[resource] == -1) return;
    fair->seen_resource[resource] = -1;
    fair->disturbed[fair->disturbed_count++] = resource;
}

void max_min_disturb_device(MaxMin *fair, int device) {
    for (int i = fair->of_device[device]; i < fair->of_device[device + 1]; i++)
        max_min_disturb(fair, fair->device[i]);
}

void max_min_enter(MaxMin *fair, int task) {
    const EngineTask *own = &fair->problem->tasks[task];
    for (int u = 0; u < own->use_count; u++) {
        int number = fair->first_use[task] + u, resource = own->uses[u].resource;
        MaxMinUsers *users = &fair->users[resource];
        fair->user[number] = (MaxMinUser){task, -1, users->first};
        if (users->first >= 0) fair->user[users->first].before = number;
        *users = (MaxMinUsers){.first = number, .count = users->count + 1, .weight = FAIR_STALE};
        max_min_disturb(fair, resource);
    }
}

void max_min_leave(MaxMin *fair, int task) {
    const EngineTask *own = &fair->problem->tasks[task];
    fair->speed[task] = 0;
    for (int u = 0; u < own->use_count; u++) {
        const MaxMinUser *user = &fair->user[fair->first_use[task] + u];
        MaxMinUsers *users = &fair->users[own->uses[u].resource];
        if (user->after >= 0) fair->user[user->after].before = user->before;
        if (user->before >= 0) fair->user[user->before].after = user->after;
        else users->first = user->after;
        users->count--;
        users->weight = FAIR_STALE;
        max_min_disturb(fair, own->uses[u].resource);
    }
}

/* ---- connected sets ---- */

typedef struct Sharing {
    int task_count, resource_count; // entries used of fair->tasks and fair->resources
} Sharing;

static void add_resource(MaxMin *fair, Sharing *set, int resource) {
    if (fair->seen_resource[resource] == fair->turn) return;
    fair->seen_resource[resource] = fair->turn;
    fair->users[resource].seen = 0;
    fair->resources[set->resource_count++] = resource;
}

static void add_task(MaxMin *fair, Sharing *set, int task) {
    if (fair->seen_task[task] == fair->turn) return;
    fair->seen_task[task] = fair->turn;
    fair->tasks[set->task_count++] = task;
    const EngineTask *own = &fair->problem->tasks[task];
    for (int u = 0; u < own->use_count; u++) {
        add_resource(fair, set, own->uses[u].resource);
        fair->users[own->uses[u].resource].seen++;
    }
}

/* Collects the tasks and resources that are connected with a resource, by a breadth-first search,
 * which skips a resource whose users are all known. */
static Sharing sharing_of(MaxMin *fair, int resource) {
    Sharing set = {0};
    fair->turn++;
    add_resource(fair, &set, resource);
    for (int r = 0; r < set.resource_count; r++) {
        const MaxMinUsers *users = &fair->users[fair->resources[r]];
        for (int u = users->first; u >= 0 && users->seen < users->count; u = fair->user[u].after)
            add_task(fair, &set, fair->user[u].task);
    }
    return set;
}

/* ---- progressive filling ---- */

/* Subtracts a task's use at its final speed from the rates left of its resources. */
static void freeze(MaxMin *fair, int task, double speed) {
    const EngineTask *own = &fair->problem->tasks[task];
    for (int u = 0; u < own->use_count; u++) {
        fair->left[own->uses[u].resource] -= own->uses[u].share * speed;
        fair->weight[own->uses[u].resource] = FAIR_STALE;
    }
}

/* Returns the sum of the shares of a resource's tasks whose speeds still grow. Sums them again,
 * since differences would leave rounding errors. */
static double growing_weight(const MaxMin *fair, int resource, const int *grows) {
    double weight = 0;
    for (int u = fair->users[resource].first; u >= 0; u = fair->user[u].after)
        weight += grows[fair->user[u].task] ? fair->share[u] : 0;
    return weight;
}

/* Returns the sum of the shares of all tasks of a resource, cached until its tasks change. */
static double whole_weight(MaxMin *fair, int resource) {
    MaxMinUsers *users = &fair->users[resource];
    if (users->weight < 0) {
        users->weight = 0;
        for (int u = users->first; u >= 0; u = fair->user[u].after) users->weight += fair->share[u];
    }
    return users->weight;
}

/* Returns the resource that is exhausted first when all growing speeds grow alike, and sets *speed
 * to the speed at which the resource is exhausted; -1: no resource is used. */
static int tightest(MaxMin *fair, const Sharing *set, const int *grows, double *speed) {
    int best = -1;
    for (int i = 0; i < set->resource_count; i++) {
        int r = fair->resources[i];
        if (fair->weight[r] < 0) fair->weight[r] = growing_weight(fair, r, grows);
        double own = fair->weight[r] > 0 ? fair->left[r] / fair->weight[r] : INFINITY;
        if (own < *speed) {
            *speed = own;
            best = r;
        }
    }
    return best;
}

typedef struct Settling {
    double (*rate_of)(void *state, int resource);
    void (*set_speed)(void *state, int task, double speed);
    void *state;
} Settling;

/* Returns how many tasks of a resource have a speed that still grows. */
static int growing_users(const MaxMin *fair, int resource, const int *grows) {
    int count = 0;
    for (int u = fair->users[resource].first; u >= 0; u = fair->user[u].after)
        count += grows[fair->user[u].task] != 0;
    return count;
}

/* Fixes the speeds of an exhausted resource's tasks that still grow; `left` speeds grow in all.
 * Returns how many were fixed. If these are all, skips the bookkeeping of the rates left. */
static int freeze_users(MaxMin *fair, int resource, double speed, int left,
                        const Settling *settling) {
    int *grows = fair->seen_task;
    int count = growing_users(fair, resource, grows);
    for (int u = fair->users[resource].first; u >= 0; u = fair->user[u].after) {
        int task = fair->user[u].task;
        if (!grows[task]) continue;
        grows[task] = 0;
        if (count < left) freeze(fair, task, speed);
        if (speed < fair->speed[task] || fair->speed[task] < speed)
            settling->set_speed(settling->state, task, speed);
    }
    return count;
}

static void fill(MaxMin *fair, const Sharing *set, const Settling *settling) {
    int *grows = fair->seen_task, left = set->task_count;
    double floor = 0;
    for (int i = 0; i < set->resource_count; i++) {
        int r = fair->resources[i];
        fair->left[r] = settling->rate_of(settling->state, r);
        fair->weight[r] = whole_weight(fair, r);
    }
    while (left) {
        double speed = INFINITY;
        int resource = tightest(fair, set, grows, &speed);
        if (resource < 0) BUG("%d tasks use nothing", left);
        floor = fmax(floor, speed);
        left -= freeze_users(fair, resource, floor, left, settling);
    }
}

void max_min_settle(MaxMin *fair, double (*rate_of)(void *state, int resource),
                    void (*set_speed)(void *state, int task, double speed), void *state) {
    Settling settling = {rate_of, set_speed, state};
    int least = fair->turn;
    for (int i = 0; i < fair->disturbed_count; i++) {
        int resource = fair->disturbed[i];
        if (fair->seen_resource[resource] > least || !fair->users[resource].count) continue;
        Sharing set = sharing_of(fair, resource);
        fill(fair, &set, &settling);
    }
    for (int i = 0; i < fair->disturbed_count; i++) fair->seen_resource[fair->disturbed[i]] = 0;
    fair->disturbed_count = 0;
}
