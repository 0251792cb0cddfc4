#include "oracle.h"

#include "generate.h"

#include <math.h>

/* Enters a box: the places of its elements follow one another from `next` on. */
static int enter_box(const Box *box, Shape view, int *offset, int next)
{
    int count = 1;
    for (int d = 0; d < view.rank; d++)
        count *= (int)(box->dim[d].hi - box->dim[d].lo);
    for (int i = 0; i < count; i++) {
        int element = 0, step = 1, rest = i;
        for (int d = view.rank - 1; d >= 0; d--) {
            int width = (int)(box->dim[d].hi - box->dim[d].lo);
            element += ((int)box->dim[d].lo + rest % width) * step;
            rest /= width;
            step *= (int)view.extent[d];
        }
        offset[element] = next++;
    }
    return next;
}

Held held_under(Arena *arena, const Layout *layout, Shape shape)
{
    Held held = {.volume = 1, .partial = layout_partial(layout), .replica_count = layout->group_count};
    for (int d = 0; d < shape.rank; d++)
        held.volume *= (int)shape.extent[d];
    held.devices = layout_devices(arena, layout, &held.device_count);
    Region *regions = arena_array(arena, Region, held.device_count);
    held.regions = regions;
    held.offset = arena_array(arena, int *, held.device_count);
    held.ids = arena_array(arena, uint32_t *, held.replica_count);
    for (int r = 0; r < held.replica_count; r++)
        held.ids[r] = arena_array(arena, uint32_t, held.volume);
    for (int i = 0; i < held.device_count; i++) {
        regions[i] = layout_region(arena, layout, shape, held.devices[i]);
        held.offset[i] = arena_array(arena, int, held.volume);
        for (int e = 0; e < held.volume; e++)
            held.offset[i][e] = -1;
        for (int b = 0, next = 0; b < regions[i].box_count; b++)
            next = enter_box(&regions[i].boxes[b], layout_view(layout, shape), held.offset[i], next);
        for (int e = 0; e < held.volume; e++)
            if (held.offset[i][e] >= 0)
                held.ids[regions[i].replica][e] |= 1u << regions[i].partial;
    }
    return held;
}

static float mixed(uint64_t seed, int a, int b, int c)
{
    Random random = {seed + (uint64_t)a * 0x9e3779b9u + (uint64_t)b * 0x85ebca6bu + (uint64_t)c * 0xc2b2ae35u};
    random_real(&random);
    return random_real(&random);
}

float element_value(uint64_t seed, int element) { return mixed(seed, -1, -1, element); }

float contribution_value(const Held *held, uint64_t seed, int replica, int id, int element)
{
    uint32_t ids = held->ids[replica][element];
    float value = element_value(seed, element);
    int first = __builtin_ctz(ids);
    if (held->partial == STATE_MAX)
        return id == first ? value : value - 1 - mixed(seed, replica, id, element);
    if (id != first)
        return mixed(seed, replica, id, element);
    for (int other = first + 1; other < 32; other++)
        if (ids >> other & 1)
            value -= mixed(seed, replica, other, element);
    return value;
}

/* Whether a device holds the whole value of an element: its replica has one contribution. */
static bool holds_whole(const Held *held, int i, int element)
{
    return held->offset[i][element] >= 0 && __builtin_popcount(held->ids[held->regions[i].replica][element]) == 1;
}

static int find_device(const Held *held, int device)
{
    for (int i = 0; i < held->device_count; i++)
        if (held->devices[i] == device)
            return i;
    return -1;
}

static bool device_holds(const Held *held, int device, int element)
{
    int i = find_device(held, device);
    return i >= 0 && held->offset[i][element] >= 0;
}

static int wanters(const Held *to, int element)
{
    int count = 0;
    for (int i = 0; i < to->device_count; i++)
        count += to->offset[i][element] >= 0;
    return count;
}

static bool any_whole(const Held *from, int element)
{
    for (int i = 0; i < from->device_count; i++)
        if (holds_whole(from, i, element))
            return true;
    return false;
}

/* The target is partial: one contribution of each replica keeps the value. */
static int partial_bound(const Held *from, const Held *to, int element)
{
    int total = 0;
    for (int r = 0; r < to->replica_count; r++) {
        int best = 0;
        for (int id = 0; id < 32; id++) {
            int missing = 0;
            for (int i = 0; i < to->device_count; i++)
                missing += to->regions[i].replica == r && to->regions[i].partial == id && to->offset[i][element] >= 0 &&
                           !device_holds(from, to->devices[i], element);
            if (to->ids[r][element] >> id & 1 && (!best || missing + 1 < best))
                best = missing + 1;
        }
        total += best ? best - 1 : 0;
    }
    return total;
}

/* One replica is reduced at one place, and the value handed out. */
static int reduction_bound(const Held *from, const Held *to, int element)
{
    int best = -1, wanted = wanters(to, element);
    for (int r = 0; r < from->replica_count && wanted; r++) {
        if (!from->ids[r][element])
            continue;
        bool held = false;
        for (int i = 0; i < from->device_count; i++)
            held = held || (from->regions[i].replica == r && from->offset[i][element] >= 0 && device_holds(to, from->devices[i], element));
        int cost = __builtin_popcount(from->ids[r][element]) - held + wanted - 1;
        best = best < 0 || cost < best ? cost : best;
    }
    return best < 0 ? 0 : best;
}

long lower_bound(const Held *from, const Held *to)
{
    long total = 0;
    for (int e = 0; e < from->volume; e++) {
        if (to->partial != STATE_DUP)
            total += partial_bound(from, to, e);
        else if (!any_whole(from, e))
            total += reduction_bound(from, to, e);
        else
            for (int i = 0; i < to->device_count; i++) {
                int k = find_device(from, to->devices[i]);
                total += to->offset[i][e] >= 0 && (k < 0 || !holds_whole(from, k, e));
            }
    }
    return total;
}

long textbook_slack(const Held *from, const Held *to)
{
    long total = 0;
    for (int e = 0; e < from->volume && from->partial != STATE_DUP && to->partial == STATE_DUP; e++) {
        long most = 0;
        for (int r = 0; r < from->replica_count; r++) {
            int contributions = __builtin_popcount(from->ids[r][e]), fewest = wanters(to, e);
            for (int id = 0; id < 32; id++) {
                int holders = 0;
                for (int i = 0; i < from->device_count; i++)
                    holders += from->regions[i].replica == r && from->regions[i].partial == id && from->offset[i][e] >= 0;
                fewest = holders && holders < fewest ? holders : fewest;
            }
            long extra = contributions > 1 && fewest > 1 ? (long)(fewest - 1) * (contributions - 2) : 0;
            most = extra > most ? extra : most;
        }
        total += most;
    }
    return total;
}

/* ---- what must be moved ---- */

/* Elements that the devices of a set, as bits, must send or receive at least. */
typedef struct Demand {
    uint32_t set;
    long count;
} Demand;

typedef struct Demands {
    Demand *at;
    int count;
} Demands;

static void add_demand(Demands *demands, uint32_t set, long count)
{
    int i = 0;
    while (i < demands->count && demands->at[i].set != set)
        i++;
    demands->count += i == demands->count;
    demands->at[i].set = set;
    demands->at[i].count += count;
}

/* An even share of all that the devices of a set must do together, rounded up: one of them does as much. */
static double share_of(const Demands *demands, uint32_t set)
{
    long inside = 0;
    for (int k = 0; k < demands->count; k++)
        inside += demands->at[k].set & ~set ? 0 : demands->at[k].count;
    return ceil((double)inside / __builtin_popcount(set));
}

/* Loads that are nearly as even as can be: the mean of many divisions, each of which gives the demands to the devices with the smallest
 * mean so far. */
static void even_loads(const Demands *demands, double *load)
{
    enum { DIVISIONS = 200 };
    for (int division = 0; division < DIVISIONS; division++)
        for (int k = 0; k < demands->count; k++) {
            int least = __builtin_ctz(demands->at[k].set);
            for (uint32_t left = demands->at[k].set; left; left &= left - 1)
                least = load[__builtin_ctz(left)] < load[least] ? __builtin_ctz(left) : least;
            load[least] += (double)demands->at[k].count / DIVISIONS;
        }
}

/* What the busiest device must do at least: an even share of what some set of devices must do; the sets of the devices with the highest
 * loads are tried. */
static double busiest(const Demands *demands)
{
    double load[32] = {0}, most = 0;
    uint32_t set = 0, all = 0;
    for (int k = 0; k < demands->count; k++)
        all |= demands->at[k].set;
    even_loads(demands, load);
    while (set != all) {
        int next = -1;
        for (uint32_t left = all & ~set; left; left &= left - 1)
            next = next < 0 || load[__builtin_ctz(left)] > load[next] ? __builtin_ctz(left) : next;
        set |= 1u << next;
        most = fmax(most, share_of(demands, set));
    }
    return most;
}

/* ---- one element ---- */

/* Who takes part in one element: the contributions to the value, whose holders and wanters are bits by device. */
typedef struct Element {
    int contributions;
    long moved;                                       // what all receive together at the bound
    uint32_t holders[32], wanters, reducers, devices; // reducers want the value and hold a contribution; devices are all that take part
} Element;

static int wanted_by(const Element *element) { return __builtin_popcount(element->wanters); }

/* What the devices receive of one element when replica r is reduced: the contributions that the device that reduces does not hold, and the
 * value at all others. */
static int reduction_cost(const Held *from, const Held *to, int element, int r)
{
    bool held = false;
    for (int i = 0; i < from->device_count; i++)
        held = held || (from->regions[i].replica == r && from->offset[i][element] >= 0 && device_holds(to, from->devices[i], element));
    return __builtin_popcount(from->ids[r][element]) - held + wanters(to, element) - 1;
}

/* The only replica whose reduction is at the bound; -1 when there are several. */
static int only_replica(const Held *from, const Held *to, int element)
{
    int best = -1, least = reduction_bound(from, to, element);
    for (int r = 0; r < from->replica_count; r++) {
        if (!from->ids[r][element] || reduction_cost(from, to, element, r) > least)
            continue;
        if (best >= 0)
            return -1;
        best = r;
    }
    return best;
}

/* Where several replicas may be reduced, their holders only take part; no contribution must be sent. */
static Element element_of(const Held *from, const Held *to, int element)
{
    Element found = {0};
    bool whole = any_whole(from, element);
    int r = whole ? -1 : only_replica(from, to, element);
    for (int i = 0; i < to->device_count; i++)
        found.wanters |= to->offset[i][element] >= 0 ? 1u << to->devices[i] : 0;
    for (int id = 0; id < 32; id++) {
        uint32_t holders = 0;
        for (int i = 0; i < from->device_count; i++) {
            bool holds = from->offset[i][element] >= 0;
            if (whole ? !id && holds_whole(from, i, element) : holds && from->regions[i].replica == r && from->regions[i].partial == id)
                holders |= 1u << from->devices[i];
            found.devices |=
                holds && (whole ? holds_whole(from, i, element) : r < 0 || from->regions[i].replica == r) ? 1u << from->devices[i] : 0;
        }
        if (holders)
            found.holders[found.contributions++] = holders;
        found.reducers |= holders & found.wanters;
    }
    found.devices |= found.wanters;
    found.moved = whole ? wanted_by(&found) - __builtin_popcount(found.reducers) : reduction_bound(from, to, element);
    return found;
}

/* The holders of each contribution send it, or what it was combined with, when others want the value. Where only holders of one
 * contribution can make the value, as nobody else can at the bound, these send it when more than one want it. All that is sent beyond is
 * sent by somebody who takes part. */
static void demand_sent(const Element *element, Demands *demands)
{
    int sent = 0;
    for (int p = 0; p < element->contributions; p++) {
        uint32_t holders = element->holders[p];
        bool makes = element->contributions > 1 && element->reducers && !(element->reducers & ~holders);
        if (makes ? wanted_by(element) == 1 : !(element->wanters & ~holders))
            continue;
        add_demand(demands, makes ? element->reducers : holders, 1);
        sent++;
    }
    add_demand(demands, element->devices, element->moved - sent);
}

/* Who wants a value and does not hold it receives it; and who takes part receives the contributions. */
static void demand_received(const Element *element, Demands *demands)
{
    uint32_t needers = element->contributions == 1 ? element->wanters & ~element->holders[0] : element->wanters;
    add_demand(demands, element->devices, element->moved - __builtin_popcount(needers));
    for (; needers; needers &= needers - 1)
        add_demand(demands, needers & -needers, 1);
}

void must_move(Arena *arena, const Held *from, const Held *to, double *send, double *receive)
{
    Demands sent = {.at = arena_array(arena, Demand, 34 * from->volume + 1)},
            received = {.at = arena_array(arena, Demand, 34 * from->volume + 1)};
    for (int e = 0; e < from->volume && to->partial == STATE_DUP; e++) {
        Element element = element_of(from, to, e);
        if (!element.wanters)
            continue;
        demand_sent(&element, &sent);
        demand_received(&element, &received);
    }
    *send = busiest(&sent);
    *receive = busiest(&received);
}
