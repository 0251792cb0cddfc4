/* The division of work: so that nobody has much more than an even share.
 *
 * The works are divided one after another, each as well as the loads at that moment allow; then those that devices above the cap take part
 * in are divided anew, until nothing changes. Each division minimises the sum of the squares of what lies above the cap, given the others;
 * that sum is convex, so that this comes to its minimum over all divisions: a device stays above the cap only when no sequence of exchanges
 * could relieve it.
 */
#include "layout/plan_loads.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 64 };

int64_t load_cap(const Plan *plan, int64_t total)
{
    int64_t even = total / plan->device_count + 1;
    return even + even / 4;
}

/* ---- one division ---- */

/* The load of a work's device without the work. */
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

/* Divides `amount`, each of which loads a device with `cost`: the least loaded take all that brings them up to the cap; where that is not
 * enough for all, the loads end as even as they can. Each amount counts for `units` of the work. */
static void spread(Load *loads, int count, int64_t amount, int64_t cost, int64_t cap, int64_t units, int64_t *shares)
{
    qsort(loads, (size_t)count, sizeof *loads, compare_loads);
    double level = 0;
    int active = find_level(loads, count, (double)amount * (double)cost, &level);
    level = level > (double)cap ? level : (double)cap;
    for (int k = 0; k < count; k++)
        shares[loads[k].index] = 0;
    for (int k = 0; k < active; k++) {
        int64_t share = (int64_t)((level - (double)loads[k].load) / (double)cost);
        share = share < 0 ? 0 : share > amount ? amount : share;
        shares[loads[k].index] = share * units;
        amount -= share;
    }
    for (int k = 0; amount > 0; k = (k + 1) % active, amount--)
        shares[loads[k].index] += units;
}

/* How often the devices can take on `cost` before they are above a level. */
static int64_t room_below(const Load *loads, int count, int64_t level, int64_t cost)
{
    int64_t room = 0;
    for (int i = 0; i < count; i++)
        room += loads[i].load < level ? (level - loads[i].load) / cost : 0;
    return room;
}

/* In what the first devices divide their units: at will where there are some that they do in any case. */
static int64_t first_step(const Work *work) { return work->least ? 1 : work->grain; }

/* Grains that the first do when nobody shall be above a level. */
static int64_t first_grains(const Work *work, const Load *loads, int64_t level)
{
    int64_t step = first_step(work), grains = (room_below(loads, work->first, level, work->unit * step) * step - work->least) / work->grain;
    return grains < 0 ? 0 : grains < work->grains ? grains : work->grains;
}

static bool is_enough(const Work *work, const Load *loads, int64_t level)
{
    int others = work->devices.count - work->first;
    return first_grains(work, loads, level) + room_below(loads + work->first, others, level, work->unit * work->grain) >= work->grains;
}

/* The lowest level from the cap on to which all grains can be done. */
static int64_t find_ceiling(const Work *work, const Load *loads, int64_t cap)
{
    if (is_enough(work, loads, cap))
        return cap;
    int64_t low = cap, high = cap;
    for (int64_t step = work->unit * work->grain; !is_enough(work, loads, high); step *= 2) {
        low = high;
        high += step;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (is_enough(work, loads, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Divides a work anew, given the other loads. */
static void divide(Builder *builder, Work *work, int64_t cap, int64_t *load, Load *loads)
{
    int count = work->devices.count, others = count - work->first;
    for (int i = 0; i < count; i++) {
        int64_t *at = &load[plan_slot(builder->plan, work->devices.at[i])];
        *at -= work->units[i] * work->unit;
        loads[i] = (Load){*at, i};
    }
    int64_t ceiling = find_ceiling(work, loads, cap), own = others ? first_grains(work, loads, ceiling) : work->grains,
            step = first_step(work);
    if (work->first)
        spread(loads, work->first, (work->least + own * work->grain) / step, work->unit * step, ceiling, step, work->units);
    if (others)
        spread(loads + work->first, others, work->grains - own, work->unit * work->grain, ceiling, work->grain, work->units);
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

void balance_works(Builder *builder, Works *works, int64_t cap, int64_t *load)
{
    const Ranked *order = rank_works(builder, works);
    int most = 0;
    for (int w = 0; w < works->count; w++)
        most = works->at[w].devices.count > most ? works->at[w].devices.count : most;
    Load *loads = arena_array(builder->arena, Load, most);
    int64_t *before = arena_array(builder->arena, int64_t, most);
    for (int w = 0; w < works->count; w++)
        divide(builder, &works->at[order[w].place], cap, load, loads);
    bool changed = true;
    for (int sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        for (int w = 0; w < works->count; w++) {
            Work *work = &works->at[order[w].place];
            if (work->devices.count < 2 || !is_overloaded(builder, work, cap, load))
                continue;
            size_t size = sizeof *before * (size_t)work->devices.count;
            memcpy(before, work->units, size);
            divide(builder, work, cap, load, loads);
            changed = changed || memcmp(before, work->units, size) != 0;
        }
    }
}
