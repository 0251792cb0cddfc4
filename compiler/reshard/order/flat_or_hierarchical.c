/* Makes several plans and takes the cheapest one whose loads are well balanced. */
#include "reshard/devices.h"
#include "reshard/plan_builder.h"
#include "reshard/cost/communication.h"
#include "reshard/hierarchical/hierarchical.h"

#include <string.h>

enum { ATTEMPTS = 4 };

/* The most peers of a device for which messages replace its collectives. With more peers, the size
 * of a plan would grow with the square of the devices. Collectives move at most twice the necessary
 * bytes. */
enum { MOST_PEERS = 64 };

/* The most devices of a collective across hosts that is also tried as messages. */
enum { MOST_ACROSS = 256 };

/* The most parts of values in a hierarchical plan; parts grow with the devices times the hosts. */
enum { MOST_PARTS = 1 << 16 };

/* A plan that was made completely, to be compared with others. */
typedef struct Attempt {
    Plan plan;
    int64_t most_sent, most_received; // bytes of a device
} Attempt;

/* The state of the choice between attempts. */
typedef struct Choice {
    PlanBuilder *planner;
    Plan before; // the plan before the first attempt
    // lower bounds, for every plan, of the most bytes that a device sends and that one receives
    int64_t must_send, must_receive;
    Attempt attempts[ATTEMPTS];
    int count;
    bool *avoid; // by slot: no collective contains the device
} Choice;

static int64_t most_of(const int64_t *loads, int count) {
    int64_t most = 0;
    for (int i = 0; i < count; i++) most = loads[i] > most ? loads[i] : most;
    return most;
}

/* ---- bytes that every plan moves ---- */

/* Returns whether the task has a target that is not among `holders`. */
static bool others_want(const Task *task, const Index *holders) {
    for (int w = 0; w < task->targets.count; w++)
        if (index_find(holders, task->targets.at[w]) < 0) return true;
    return false;
}

/* Adds the bytes of a task in every plan: what sole holders must send, and targets receive. */
static void count_forced(PlanBuilder *planner, int t, Index *holders, int64_t *sent,
                         int64_t *received) {
    const Plan *plan = planner->plan;
    const Task *task = &plan->tasks.at[t];
    int64_t load = task->volume * task_element(plan, t);
    for (int p = 0; p < task->source_count; p++) {
        if (task->sources[p].count > 1 && task->source_count > 1) continue;
        index_devices(holders, &task->sources[p]);
        if (task->sources[p].count == 1 && others_want(task, holders))
            sent[plan_slot(plan, task->sources[p].at[0])] += load;
    }
    for (int w = 0; w < task->targets.count && task->source_count; w++)
        if (task->source_count > 1 || index_find(holders, task->targets.at[w]) < 0)
            received[plan_slot(plan, task->targets.at[w])] += load;
}

static void find_forced(Choice *choice) {
    PlanBuilder *planner = choice->planner;
    int count = planner->plan->device_count;
    int64_t *sent = arena_array(planner->arena, int64_t, count),
            *received = arena_array(planner->arena, int64_t, count);
    Index *holders = index_create(planner);
    for (int t = 0; t < planner->plan->tasks.count; t++)
        count_forced(planner, t, holders, sent, received);
    choice->must_send = most_of(sent, count);
    choice->must_receive = most_of(received, count);
}

/* Raises the lower bounds to an even share of the bytes that an attempt moves. */
static void raise_to_even(Choice *choice, const Attempt *attempt) {
    int64_t total = 0, count = choice->planner->plan->device_count;
    for (int i = 0; i < count; i++) total += attempt->plan.received[i];
    int64_t even = count ? (total + count - 1) / count : 0;
    choice->must_send = choice->must_send > even ? choice->must_send : even;
    choice->must_receive = choice->must_receive > even ? choice->must_receive : even;
}

/* ---- attempts ---- */

/* Makes an attempt from the tasks as they were before the first attempt. */
static void make_attempt(Choice *choice) {
    PlanBuilder *planner = choice->planner;
    Plan *plan = planner->plan;
    int count = plan->device_count;
    *plan = choice->before;
    plan->tasks.capacity = plan->tasks.count;
    plan->sent = arena_array(planner->arena, int64_t, count);
    plan->received = arena_array(planner->arena, int64_t, count);
    make_steps(planner);
    plan->seconds = price_steps(planner);
    choice->attempts[choice->count++] =
        (Attempt){*plan, most_of(plan->sent, count), most_of(plan->received, count)};
}

/* Returns whether a load is at most 3/4 above its lower bound. */
static bool is_fair(int64_t load, int64_t least) { return load - least <= least / 4 * 3; }

/* Returns, by slot, the most peers of a device in the collectives of one stage. */
static const int *count_peers(Arena *arena, const Plan *plan) {
    int *most = arena_array(arena, int, plan->device_count),
        *peers = arena_array(arena, int, plan->device_count);
    for (int s = 0; s < plan->steps.count; s++) {
        const Step *step = &plan->steps.at[s];
        if (s && step->stage != plan->steps.at[s - 1].stage)
            memset(peers, 0, sizeof *peers * (size_t)plan->device_count);
        for (int i = 0; i < step->group.count; i++) {
            int slot = plan_slot(plan, step->group.at[i]);
            peers[slot] += step->group.count - 1;
            most[slot] = peers[slot] > most[slot] ? peers[slot] : most[slot];
        }
    }
    return most;
}

/* Marks overloaded devices of at most MOST_PEERS peers in `avoid`; returns false if none exists. */
static bool avoid_overloaded(Choice *choice, const Attempt *attempt) {
    bool found = false;
    const int *peers = count_peers(choice->planner->arena, &attempt->plan);
    for (int i = 0; i < choice->planner->plan->device_count; i++)
        if (peers[i] <= MOST_PEERS && (!is_fair(attempt->plan.sent[i], choice->must_send) ||
                                       !is_fair(attempt->plan.received[i], choice->must_receive)))
            found = choice->avoid[i] = true;
    return found;
}

/* Returns whether a load is fair, or at most 1/8 above the least of all attempts. */
static bool is_acceptable(int64_t load, int64_t must, int64_t least) {
    return is_fair(load, must) || load - least <= least / 8;
}

/* Returns the cheapest attempt with acceptable loads; the last attempt if there is none. */
static const Attempt *choose(const Choice *choice) {
    const Attempt *best = NULL;
    int64_t sent = INT64_MAX, received = INT64_MAX;
    for (int i = 0; i < choice->count; i++) {
        sent = choice->attempts[i].most_sent < sent ? choice->attempts[i].most_sent : sent;
        received = choice->attempts[i].most_received < received ? choice->attempts[i].most_received
                                                                : received;
    }
    for (int i = 0; i < choice->count; i++) {
        const Attempt *attempt = &choice->attempts[i];
        if (is_acceptable(attempt->most_sent, choice->must_send, sent) &&
            is_acceptable(attempt->most_received, choice->must_receive, received) &&
            (!best || attempt->plan.seconds < best->plan.seconds))
            best = attempt;
    }
    return best ? best : &choice->attempts[choice->count - 1];
}

/* Tries plans on one host: first with collectives of all closed groups, then without collectives
 * that overload a device, finally without any. */
static void try_collectives(Choice *choice) {
    make_attempt(choice);
    raise_to_even(choice, &choice->attempts[0]);
    while (choice->count < ATTEMPTS &&
           avoid_overloaded(choice, &choice->attempts[choice->count - 1])) {
        if (choice->count == ATTEMPTS - 1)
            memset(choice->avoid, 1,
                   sizeof *choice->avoid * (size_t)choice->planner->plan->device_count);
        make_attempt(choice);
    }
}

/* Returns whether messages are tried, too: no collective has more than MOST_ACROSS devices. */
static bool may_message(const Attempt *attempt) {
    for (int s = 0; s < attempt->plan.steps.count; s++)
        if (attempt->plan.steps.at[s].group.count > MOST_ACROSS) return false;
    return true;
}

/* Returns the largest number of the devices that are on one host; `counts` is scratch, by host. */
static int most_on_host(Hosts *hosts, const Devices *devices, int *counts) {
    int most = 0;
    memset(counts, 0, sizeof *counts * (size_t)hosts->count);
    for (int i = 0; i < devices->count; i++) {
        int count = ++counts[host_of(hosts, devices->at[i])];
        most = count > most ? count : most;
    }
    return most;
}

/* Returns an upper bound of the parts of a value that a hierarchical plan moves or reduces. */
static int64_t tiered_parts(Hosts *hosts, const Task *task, int *counts) {
    int64_t wanting = task->targets.count,
            bringing = task->source_count < hosts->count ? task->source_count : hosts->count;
    if (task->source_count < 2) return wanting;
    int holders = task->sources[0].count,
        whole = holders / most_on_host(hosts, &task->sources[0], counts);
    return wanting * whole + bringing * most_on_host(hosts, &task->targets, counts);
}

/* Returns whether some host has several of the devices and a hierarchical plan is not too large. */
static bool has_tiers(PlanBuilder *planner) {
    const Plan *plan = planner->plan;
    Hosts *hosts = hosts_of(planner);
    int *counts = arena_array(planner->arena, int, hosts->count);
    int64_t parts = 0;
    for (int t = 0; t < plan->tasks.count && parts <= MOST_PARTS; t++)
        parts += tiered_parts(hosts, &plan->tasks.at[t], counts);
    return hosts->count < plan->device_count && parts <= MOST_PARTS;
}

/* Tries hierarchical plans, if possible, and flat ones, each with collectives and, if these have
 * few devices, without collectives. */
static void try_tiers(Choice *choice) {
    const int tiers = has_tiers(choice->planner) ? 2 : 1;
    bool messages[2];
    for (int attempt = 0; attempt < 2 * tiers; attempt++) {
        if (attempt >= tiers && !messages[attempt % tiers]) continue;
        choice->planner->tiers = tiers == 2 && attempt % 2 == 0;
        memset(choice->avoid, attempt / tiers,
               sizeof *choice->avoid * (size_t)choice->planner->plan->device_count);
        make_attempt(choice);
        if (attempt < tiers) messages[attempt] = may_message(&choice->attempts[attempt]);
    }
}

static const Attempt *cheapest(const Choice *choice) {
    const Attempt *best = &choice->attempts[0];
    for (int i = 1; i < choice->count; i++)
        best = choice->attempts[i].plan.seconds < best->plan.seconds ? &choice->attempts[i] : best;
    return best;
}

static bool on_one_host(const Plan *plan) {
    for (int i = 1; i < plan->device_count; i++)
        if (cluster_host(plan->cluster, plan->devices[i]) !=
            cluster_host(plan->cluster, plan->devices[0]))
            return false;
    return true;
}

void choose_steps(PlanBuilder *planner) {
    Choice choice = {.planner = planner, .before = *planner->plan};
    bool single = on_one_host(planner->plan);
    planner->avoid = choice.avoid = arena_array(planner->arena, bool, planner->plan->device_count);
    if (single) find_forced(&choice);
    (planner->messages ? make_attempt : single ? try_collectives : try_tiers)(&choice);
    *planner->plan = (single ? choose : cheapest)(&choice)->plan;
}
