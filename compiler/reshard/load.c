/* The division of work: so that nobody has much more than an even share.
 *
 * The works are divided one after another, each as well as the loads at that moment allow; then those that devices above the cap take part
 * in are divided anew, until nothing changes. Each division minimises the sum of the squares of what lies above the cap, given the others;
 * that sum is convex, so that this comes to its minimum over all divisions: a device stays above the cap only when no sequence of exchanges
 * could relieve it.
 */
#include "reshard/loads.h"

#include <stdlib.h>
#include <string.h>

int64_t load_cap(const Plan *plan, int64_t total)
{
    int64_t even = total / plan->device_count + 1;
    return even + even / 4;
}

/* ---- one division ---- */

/* A device among those that may do a work: its load without the work, and how much of it it may do. */
typedef struct Doer {
    int64_t load, limit;
    int index;
} Doer;

static int compare_doers(const void *a, const void *b)
{
    const Doer *x = a, *y = b;
    return x->load != y->load ? (x->load > y->load) - (x->load < y->load) : x->index - y->index;
}

/* How often a device can take on `cost` before it is above a level. */
static int64_t room_of(const Doer *doer, int64_t level, int64_t cost)
{
    int64_t room = doer->load < level ? (level - doer->load) / cost : 0;
    return room < doer->limit ? room : doer->limit;
}

static int64_t room_below(const Doer *doers, int count, int64_t level, int64_t cost)
{
    int64_t room = 0;
    for (int i = 0; i < count; i++)
        room += room_of(&doers[i], level, cost);
    return room;
}

/* In what the first devices divide their units: at will where there are some that they do in any case. */
static int64_t first_step(const Work *work) { return work->least ? 1 : work->grain; }

/* Grains that the first do when nobody shall be above a level. */
static int64_t first_grains(const Work *work, const Doer *doers, int64_t level)
{
    int64_t step = first_step(work), room = room_below(doers, work->first, level, work->unit * step) * step - work->least;
    return room < 0 ? 0 : room / work->grain < work->grains ? room / work->grain : work->grains;
}

/* Whether nobody need be above a level, save for what the first do in any case. */
static bool is_enough(const Work *work, const Doer *doers, int64_t level)
{
    int64_t own = first_grains(work, doers, level);
    return own + room_below(doers + work->first, work->devices.count - work->first, level, work->unit * work->grain) >= work->grains;
}

/* The lowest level from the cap on to which all grains can be done. */
static int64_t find_level(const Work *work, const Doer *doers, int64_t cap)
{
    int64_t low = cap, high = cap;
    for (int64_t step = work->unit * work->grain; !is_enough(work, doers, high); step *= 2) {
        low = high;
        high += step;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (is_enough(work, doers, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Divides `amount`, in steps of so many units, among the devices: the least loaded take all that brings them up to the level, or to the
 * lowest one above it that is enough. */
static void spread(const Work *work, Doer *doers, int count, int64_t amount, int64_t step, int64_t level)
{
    Work part = {.devices.count = count, .unit = work->unit, .grains = amount, .grain = step};
    level = find_level(&part, doers, level);
    qsort(doers, (size_t)count, sizeof *doers, compare_doers);
    for (int k = 0; k < count; k++) {
        int64_t room = room_of(&doers[k], level, work->unit * step), share = room < amount ? room : amount;
        work->units[doers[k].index] = share * step;
        amount -= share;
    }
}

/* Divides a work anew, given the other loads. */
static void divide(Builder *builder, Work *work, int64_t cap, int64_t *load, Doer *doers)
{
    int count = work->devices.count, others = count - work->first;
    for (int i = 0; i < count; i++) {
        int64_t *at = &load[plan_slot(builder->plan, work->devices.at[i])];
        *at -= work->units[i] * work->unit;
        doers[i] = (Doer){*at, work->limits && i < work->first ? work->limits[i] : INT64_MAX, i};
    }
    int64_t level = find_level(work, doers, cap), step = first_step(work), own = others ? first_grains(work, doers, level) : work->grains;
    if (work->first)
        spread(work, doers, work->first, (work->least + own * work->grain) / step, step, level);
    if (others)
        spread(work, doers + work->first, others, work->grains - own, work->grain, level);
    for (int i = 0; i < count; i++)
        load[plan_slot(builder->plan, work->devices.at[i])] += work->units[i] * work->unit;
}

/* ---- all divisions ---- */

int64_t work_load(const Work *work) { return (work->least + work->grains * work->grain) * work->unit; }

/* A work and its place in the list. */
typedef struct Ranked {
    int choice, place;
} Ranked;

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;
    return x->choice != y->choice ? x->choice - y->choice : x->place - y->place;
}

/* The works, those with the least choice in front. */
static const Ranked *rank_works(Builder *builder, const Works *works)
{
    Ranked *order = arena_array(builder->arena, Ranked, works->count);
    for (int w = 0; w < works->count; w++)
        order[w] = (Ranked){works->at[w].first, w};
    if (works->count)
        qsort(order, (size_t)works->count, sizeof *order, compare_ranked);
    return order;
}

/* Whether somebody who does some of a work is above the cap. */
static bool is_overloaded(const Builder *builder, const Work *work, int64_t cap, const int64_t *load)
{
    for (int i = 0; i < work->devices.count; i++)
        if (work->units[i] && load[plan_slot(builder->plan, work->devices.at[i])] > cap)
            return true;
    return false;
}

void balance_works(Builder *builder, Works *works, int64_t cap, int sweeps, int64_t *load)
{
    const Ranked *order = rank_works(builder, works);
    int most = 0;
    for (int w = 0; w < works->count; w++)
        most = works->at[w].devices.count > most ? works->at[w].devices.count : most;
    Doer *doers = arena_array(builder->arena, Doer, most);
    int64_t *before = arena_array(builder->arena, int64_t, most);
    for (int w = 0; w < works->count; w++)
        divide(builder, &works->at[order[w].place], cap, load, doers);
    bool changed = true;
    for (int sweep = 0; sweep < sweeps && changed; sweep++) {
        changed = false;
        for (int w = 0; w < works->count; w++) {
            Work *work = &works->at[order[w].place];
            if (work->devices.count < 2 || !is_overloaded(builder, work, cap, load))
                continue;
            size_t size = sizeof *before * (size_t)work->devices.count;
            memcpy(before, work->units, size);
            divide(builder, work, cap, load, doers);
            changed = changed || memcmp(before, work->units, size) != 0;
        }
    }
}
