/* Sets of devices: places in lists, and sets that belong together. */
#include "reshard/loads.h"

/* ---- positions ---- */

Index *index_create(Planner *planner)
{
    Index *index = arena_new(planner->arena, Index);
    int count = planner->plan->device_count;
    *index = (Index){planner->plan, arena_array(planner->arena, int, count), arena_array(planner->arena, int, count), 1};
    return index;
}

void index_clear(Index *index) { index->list++; }

void index_set(Index *index, int device, int place)
{
    int slot = plan_slot(index->plan, device);
    index->stamp[slot] = index->list;
    index->place[slot] = place;
}

void index_devices(Index *index, const Devices *devices)
{
    index_clear(index);
    for (int i = 0; i < devices->count; i++)
        index_set(index, devices->at[i], i);
}

int index_find(const Index *index, int device)
{
    int slot = plan_slot(index->plan, device);
    return slot >= 0 && index->stamp[slot] == index->list ? index->place[slot] : -1;
}

/* ---- components ---- */

static int find_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Joins the devices of each set; `parent` is by slot. */
static void join_sets(const Plan *plan, const Devices *sets, int count, int *parent)
{
    for (int s = 0; s < count; s++)
        for (int k = 1; k < sets[s].count; k++) {
            int a = find_root(parent, plan_slot(plan, sets[s].at[0])), b = find_root(parent, plan_slot(plan, sets[s].at[k]));
            parent[a > b ? a : b] = a > b ? b : a;
        }
}

/* Numbers the components of sets of one kind, from *count on. */
static void number_sets(const Plan *plan, const Devices *sets, int set_count, int *parent, int *number, int *component, int *count)
{
    for (int i = 0; i < plan->device_count; i++) {
        parent[i] = i;
        number[i] = 0;
    }
    join_sets(plan, sets, set_count, parent);
    for (int s = 0; s < set_count; s++) {
        int root = find_root(parent, plan_slot(plan, sets[s].at[0]));
        if (!number[root])
            number[root] = ++*count;
        component[s] = number[root] - 1;
    }
}

int *connect_sets(Planner *planner, const Devices *sets, const int *kinds, int count, int *component_count)
{
    int devices = planner->plan->device_count, *parent = arena_array(planner->arena, int, devices),
        *number = arena_array(planner->arena, int, devices), *component = arena_array(planner->arena, int, count);
    *component_count = 0;
    for (int s = 0, end; s < count; s = end) {
        for (end = s + 1; end < count && (!kinds || kinds[end] == kinds[s]);)
            end++;
        number_sets(planner->plan, sets + s, end - s, parent, number, component + s, component_count);
    }
    return component;
}

int *sort_by_component(Planner *planner, const int *component, int count, int components, int *begin)
{
    int *order = arena_array(planner->arena, int, count), *next = arena_array(planner->arena, int, components + 1);
    for (int i = 0; i < count; i++)
        begin[component[i] + 1]++;
    for (int c = 0; c < components; c++)
        next[c + 1] = begin[c + 1] += begin[c];
    next[0] = 0;
    for (int i = 0; i < count; i++)
        order[next[component[i]]++] = i;
    return order;
}
