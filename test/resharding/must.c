/* What the busiest device must move: lower bounds from the sets of devices that alone can do some
 * of the work. */
#include "oracle.h"
#include "support/arena.h"

#include <math.h>

/* Elements that the devices of a set, as bits, must send or receive at least. */
typedef struct Demand {
    uint32_t set;
    long count;
} Demand;

typedef struct Demands {
    Demand *at;
    int count;
} Demands;

static void add_demand(Demands *demands, uint32_t set, long count) {
    int i = 0;
    while (i < demands->count && demands->at[i].set != set) i++;
    demands->count += i == demands->count;
    demands->at[i].set = set;
    demands->at[i].count += count;
}

/* An even share of all that the devices of a set must do together, rounded up: one of them does as
 * much. */
static double share_of(const Demands *demands, uint32_t set) {
    long inside = 0;
    for (int k = 0; k < demands->count; k++)
        inside += demands->at[k].set & ~set ? 0 : demands->at[k].count;
    return ceil((double)inside / __builtin_popcount(set));
}

/* Loads that are nearly as even as can be: the mean of many divisions, each of which gives the
 * demands to the devices with the smallest mean so far. */
static void even_loads(const Demands *demands, double *load) {
    enum { DIVISIONS = 200 };
    for (int division = 0; division < DIVISIONS; division++)
        for (int k = 0; k < demands->count; k++) {
            int least = __builtin_ctz(demands->at[k].set);
            for (uint32_t left = demands->at[k].set; left; left &= left - 1)
                least = load[__builtin_ctz(left)] < load[least] ? __builtin_ctz(left) : least;
            load[least] += (double)demands->at[k].count / DIVISIONS;
        }
}

/* What the busiest device must do at least: an even share of what some set of devices must do; the
 * sets of the devices with the highest loads are tried. */
static double busiest(const Demands *demands) {
    double load[32] = {0}, most = 0;
    uint32_t set = 0, all = 0;
    for (int k = 0; k < demands->count; k++) all |= demands->at[k].set;
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

/* Who takes part in one element, as bits by device. */
typedef struct Element {
    int contributions;    // to the value; 0 where several replicas may be reduced
    uint32_t holders[32]; // of each
    uint32_t wanters, sources, reducers,
        devices; // sources hold contributions; reducers also want the value; devices are all that
                 // take part
    long contributed; // messages of contributions
    long moved;       // elements that all receive together at the bound
} Element;

static long bits(uint32_t set) { return __builtin_popcount(set); }

static uint32_t holders_of(const Held *held, int element, int replica, int id) {
    uint32_t holders = 0;
    for (int i = 0; i < held->device_count; i++)
        if (held->offset[i][element] >= 0 && held->regions[i].replica == replica &&
            held->regions[i].partial == id)
            holders |= 1u << held->devices[i];
    return holders;
}

/* The reduction of one replica. */
static Element replica_element(const Held *from, uint32_t wanters, int element, int replica) {
    Element found = {.wanters = wanters, .devices = wanters};
    for (int id = 0; id < 32; id++)
        if (from->ids[replica][element] >> id & 1) {
            uint32_t holders = holders_of(from, element, replica, id);
            found.holders[found.contributions++] = holders;
            found.reducers |= holders & wanters;
            found.sources |= holders;
            found.devices |= holders;
        }
    found.contributed = found.contributions - (found.reducers != 0);
    found.moved = found.contributed + bits(wanters) - 1;
    return found;
}

/* The value where replicas hold it whole; their holders are those of its only contribution. */
static Element whole_element(const Held *from, uint32_t wanters, int element) {
    Element found = {.wanters = wanters};
    for (int r = 0; r < from->replica_count; r++)
        if (bits(from->ids[r][element]) == 1)
            found.holders[0] |= holders_of(from, element, r, __builtin_ctz(from->ids[r][element]));
    found.contributions = found.holders[0] != 0;
    found.devices = found.holders[0] | wanters;
    found.moved = bits(wanters & ~found.holders[0]);
    return found;
}

/* The cheapest replica's reduction; where several are as cheap, their holders together send the
 * fewest contributions. */
static Element cheapest_element(const Held *from, uint32_t wanters, int element) {
    Element best = {0};
    for (int r = 0; r < from->replica_count; r++) {
        Element next = replica_element(from, wanters, element, r);
        if (!next.contributions || (best.devices && next.moved > best.moved)) continue;
        if (best.devices && next.moved == best.moved) {
            best.contributions = 0;
            best.contributed =
                next.contributed < best.contributed ? next.contributed : best.contributed;
            best.sources |= next.sources;
            best.reducers = 0;
            best.devices |= next.devices;
        } else best = next;
    }
    return best;
}

static Element element_of(const Held *from, const Held *to, int element) {
    uint32_t wanters = 0;
    for (int i = 0; i < to->device_count; i++)
        wanters |= to->offset[i][element] >= 0 ? 1u << to->devices[i] : 0;
    Element found = whole_element(from, wanters, element);
    return found.contributions ? found : cheapest_element(from, wanters, element);
}

/* ---- demands ---- */

/* Who wants a value and does not hold it receives it. The contributions that are received beyond
 * are combined by holders of others; or, where no reducer holds one, by any who takes part. */
static void demand_received(const Element *element, Demands *demands) {
    uint32_t needers =
        element->contributions == 1 ? element->wanters & ~element->holders[0] : element->wanters;
    add_demand(demands, element->reducers ? element->sources : element->devices,
               element->moved - bits(needers));
    for (; needers; needers &= needers - 1) add_demand(demands, needers & -needers, 1);
}

/* A holder sends the value, and who has it may pass it on. */
static void demand_copies(const Element *element, Demands *demands) {
    if (!element->moved) return;
    add_demand(demands, element->holders[0], 1);
    add_demand(demands, element->devices, element->moved - 1);
}

/* Holders of each contribution but one send it, or what they combined it with. Where reducers hold
 * none, those of all do; the value is then made by any who takes part. Else the value is made by a
 * reducer, as nobody else can at the bound, and the others get it from those that want it: the
 * first from one of the reducers. */
static void demand_reduction(const Element *element, Demands *demands) {
    int single = -1;
    for (int p = 0; p < element->contributions; p++) {
        single = element->reducers && !(element->reducers & ~element->holders[p]) ? p : single;
        if (p != single) add_demand(demands, element->holders[p], 1);
    }
    long left = element->moved - element->contributions + (single >= 0);
    if (single >= 0 && left) {
        add_demand(demands, element->reducers, 1);
        left--;
    }
    add_demand(demands, element->reducers ? element->wanters : element->devices, left);
}

/* The same where reducers hold several contributions, seen from the values: one message less stands
 * for the reducers' own contributions. */
static void demand_values(const Element *element, Demands *demands) {
    long left = element->moved - (bits(element->wanters) - 1);
    add_demand(demands, element->wanters, bits(element->wanters) - 1);
    for (int p = 0; p < element->contributions; p++)
        if (!(element->holders[p] & element->reducers)) {
            add_demand(demands, element->holders[p], 1);
            left--;
        }
    add_demand(demands, element->devices, left);
}

static void demand_sent(const Element *element, bool values, Demands *demands) {
    if (!element->contributions) {
        add_demand(demands, element->sources, element->contributed);
        add_demand(demands, element->devices, element->moved - element->contributed);
    } else if (element->contributions == 1) demand_copies(element, demands);
    else if (values && element->reducers) demand_values(element, demands);
    else demand_reduction(element, demands);
}

void must_move(Arena *arena, const Held *from, const Held *to, double *send, double *receive) {
    int most = 36 * from->volume + 1;
    Demands sent = {.at = arena_array(arena, Demand, most)},
            handed = {.at = arena_array(arena, Demand, most)},
            received = {.at = arena_array(arena, Demand, most)};
    for (int e = 0; e < from->volume && to->partial == STATE_DUP; e++) {
        Element element = element_of(from, to, e);
        if (!element.wanters) continue;
        demand_sent(&element, false, &sent);
        demand_sent(&element, true, &handed);
        demand_received(&element, &received);
    }
    *send = fmax(busiest(&sent), busiest(&handed));
    *receive = busiest(&received);
}
