/* Which plan is made: several attempts, of which the cheapest is taken among those whose loads are spread well. */
#include "reshard/devices.h"
#include "reshard/order/order.h"
#include "reshard/price.h"

#include <string.h>

enum { ATTEMPTS = 4 };

/* A finished plan. */
typedef struct Attempt {
    Plan plan;
    int64_t *sent, *received;
    int64_t most_sent, most_received;
    double seconds;
} Attempt;

/* What decides about attempts. */
typedef struct Chooser {
    Planner *planner;
    int64_t must_send, must_receive; // of the device that must do most, whatever the plan; an even share at least
    Attempt attempts[ATTEMPTS];
    int count;
    bool *avoid; // by slot: in no collective
    TaskList tasks;
} Chooser;

static int64_t most_of(const int64_t *loads, int count)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++)
        most = loads[i] > most ? loads[i] : most;
    return most;
}

/* ---- what must be moved ---- */

/* Whether a device that wants the task's value is not in the index. */
static bool others_want(const Task *task, const Index *holders)
{
    for (int w = 0; w < task->targets.count; w++)
        if (index_find(holders, task->targets.at[w]) < 0)
            return true;
    return false;
}

/* Adds what the only holders of values and contributions must send, and what those that want values must receive. */
static void count_forced(Planner *planner, int t, Index *holders, int64_t *sent, int64_t *received)
{
    const Plan *plan = planner->plan;
    const Task *task = &plan->tasks.at[t];
    int64_t load = task->volume * task_element(plan, t);
    for (int p = 0; p < task->source_count; p++) {
        if (task->sources[p].count > 1 && task->source_count > 1)
            continue;
        index_devices(holders, &task->sources[p]);
        if (task->sources[p].count == 1 && others_want(task, holders))
            sent[plan_slot(plan, task->sources[p].at[0])] += load;
    }
    for (int w = 0; w < task->targets.count && task->source_count; w++)
        if (task->source_count > 1 || index_find(holders, task->targets.at[w]) < 0)
            received[plan_slot(plan, task->targets.at[w])] += load;
}

static void find_forced(Chooser *chooser)
{
    Planner *planner = chooser->planner;
    int count = planner->plan->device_count;
    int64_t *sent = arena_array(planner->arena, int64_t, count), *received = arena_array(planner->arena, int64_t, count);
    Index *holders = index_create(planner);
    for (int t = 0; t < planner->plan->tasks.count; t++)
        count_forced(planner, t, holders, sent, received);
    chooser->must_send = most_of(sent, count);
    chooser->must_receive = most_of(received, count);
}

/* An even share of all that is moved must be moved by somebody, too. */
static void raise_to_even(Chooser *chooser, const Attempt *attempt)
{
    int64_t total = 0, count = chooser->planner->plan->device_count;
    for (int i = 0; i < count; i++)
        total += attempt->received[i];
    int64_t even = count ? (total + count - 1) / count : 0;
    chooser->must_send = chooser->must_send > even ? chooser->must_send : even;
    chooser->must_receive = chooser->must_receive > even ? chooser->must_receive : even;
}

/* ---- attempts ---- */

/* Makes the plan from its tasks as they were before the first attempt. */
static void make_attempt(Chooser *chooser)
{
    Planner *planner = chooser->planner;
    Plan *plan = planner->plan;
    size_t size = sizeof(int64_t) * (size_t)plan->device_count;
    memset(&plan->steps, 0, sizeof plan->steps);
    plan->tasks = chooser->tasks;
    plan->tasks.capacity = plan->tasks.count;
    make_steps(planner);
    Attempt attempt = {.plan = *plan, .seconds = price_steps(planner)};
    attempt.sent = arena_copy(planner->arena, plan->sent, size);
    attempt.received = arena_copy(planner->arena, plan->received, size);
    attempt.most_sent = most_of(plan->sent, plan->device_count);
    attempt.most_received = most_of(plan->received, plan->device_count);
    chooser->attempts[chooser->count++] = attempt;
}

/* Whether a load is little above one that cannot be less. */
static bool is_fair(int64_t load, int64_t least) { return load - least <= least / 4 * 3; }

/* Keeps the devices with too much to do out of collectives. False when there is none. */
static bool avoid_overloaded(Chooser *chooser, const Attempt *attempt)
{
    bool found = false;
    for (int i = 0; i < chooser->planner->plan->device_count; i++)
        if (!is_fair(attempt->sent[i], chooser->must_send) || !is_fair(attempt->received[i], chooser->must_receive))
            found = chooser->avoid[i] = true;
    return found;
}

/* Whether a load is little above what must be, or above the least of all attempts. */
static bool is_acceptable(int64_t load, int64_t must, int64_t least) { return is_fair(load, must) || load - least <= least / 8; }

/* The cheapest of the attempts whose busiest devices have little more to do than they must, or than in the others. */
static const Attempt *choose(const Chooser *chooser)
{
    const Attempt *best = NULL;
    int64_t sent = INT64_MAX, received = INT64_MAX;
    for (int i = 0; i < chooser->count; i++) {
        sent = chooser->attempts[i].most_sent < sent ? chooser->attempts[i].most_sent : sent;
        received = chooser->attempts[i].most_received < received ? chooser->attempts[i].most_received : received;
    }
    for (int i = 0; i < chooser->count; i++) {
        const Attempt *attempt = &chooser->attempts[i];
        if (is_acceptable(attempt->most_sent, chooser->must_send, sent) &&
            is_acceptable(attempt->most_received, chooser->must_receive, received) && (!best || attempt->seconds < best->seconds))
            best = attempt;
    }
    return best ? best : &chooser->attempts[chooser->count - 1];
}

/* Where all devices are on one host: collectives wherever teams are closed, and then without those that load a device too much. */
static void try_collectives(Chooser *chooser)
{
    make_attempt(chooser);
    raise_to_even(chooser, &chooser->attempts[0]);
    while (chooser->count < ATTEMPTS && avoid_overloaded(chooser, &chooser->attempts[chooser->count - 1])) {
        if (chooser->count == ATTEMPTS - 1)
            memset(chooser->avoid, 1, sizeof *chooser->avoid * (size_t)chooser->planner->plan->device_count);
        make_attempt(chooser);
    }
}

/* Where there are several hosts: in two tiers and in one, with collectives and without. */
static void try_tiers(Chooser *chooser)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        chooser->planner->tiers = attempt % 2 == 0;
        memset(chooser->avoid, attempt / 2, sizeof *chooser->avoid * (size_t)chooser->planner->plan->device_count);
        make_attempt(chooser);
    }
}

static const Attempt *cheapest(const Chooser *chooser)
{
    const Attempt *best = &chooser->attempts[0];
    for (int i = 1; i < chooser->count; i++)
        best = chooser->attempts[i].seconds < best->seconds ? &chooser->attempts[i] : best;
    return best;
}

static bool on_one_host(const Plan *plan)
{
    for (int i = 1; i < plan->device_count; i++)
        if (cluster_host(plan->cluster, plan->devices[i]) != cluster_host(plan->cluster, plan->devices[0]))
            return false;
    return true;
}

void choose_steps(Planner *planner)
{
    Plan *plan = planner->plan;
    Chooser chooser = {.planner = planner, .tasks = plan->tasks, .avoid = arena_array(planner->arena, bool, plan->device_count)};
    bool single = on_one_host(plan);
    planner->avoid = chooser.avoid;
    if (single)
        find_forced(&chooser);
    (single ? try_collectives : try_tiers)(&chooser);
    const Attempt *best = (single ? choose : cheapest)(&chooser);
    plan->steps = best->plan.steps;
    plan->tasks = best->plan.tasks;
    memcpy(plan->sent, best->sent, sizeof *plan->sent * (size_t)plan->device_count);
    memcpy(plan->received, best->received, sizeof *plan->received * (size_t)plan->device_count);
}
