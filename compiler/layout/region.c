/* Regions: which elements a device holds, by the definitions of layout.h. */
#include "layout/layout.h"

#include "layout/fraction.h"
#include "support/array.h"

#include <stdlib.h>
#include <string.h>

/* A part of a dimension, as fractions of the whole. */
typedef struct Interval {
    Fraction lo, hi;
} Interval;

/* What is computed once for all devices of a layout. */
typedef struct Maker {
    Arena *arena;
    const Layout *layout;
    Shape view;
    const int64_t ***before;   // by group and state: before_of its weights
    const int64_t *top_before; // the same of the top's
    int edge_count;            // inner: every place where any subgroup cuts the top's dimension
    const Fraction *edges;
} Maker;

Shape layout_view(const Layout *layout, Shape shape) { return layout->view_rank ? (Shape){layout->view_rank, layout->view} : shape; }

StateKind layout_partial(const Layout *layout)
{
    if (layout->group_count > 1 && layout->top == TOP_SUM)
        return STATE_SUM;
    if (layout->group_count > 1 && layout->top == TOP_MAX)
        return STATE_MAX;
    for (int g = 0; g < layout->group_count; g++)
        for (int s = 0; s < layout->groups[g].state_count; s++) {
            const State *state = &layout->groups[g].states[s];
            if (state->count > 1 && (state->kind == STATE_SUM || state->kind == STATE_MAX))
                return state->kind;
        }
    return STATE_DUP;
}

const int *layout_devices(Arena *arena, const Layout *layout, int *count)
{
    *count = 0;
    for (int g = 0; g < layout->group_count; g++)
        *count += layout->groups[g].device_count;
    int *devices = arena_array(arena, int, *count), filled = 0;
    for (int g = 0; g < layout->group_count; g++) {
        const Group *group = &layout->groups[g];
        memcpy(devices + filled, group->devices, sizeof(int) * (size_t)group->device_count);
        filled += group->device_count;
    }
    return devices;
}

/* The sum of the weights in front of each piece, and of all behind the last; NULL when all weights are equal. */
static const int64_t *before_of(Arena *arena, const int64_t *weights, int count)
{
    int64_t *before = weights ? arena_array(arena, int64_t, count + 1) : NULL;
    for (int i = 0; weights && i < count; i++)
        before[i + 1] = before[i] + weights[i];
    return before;
}

/* Where piece `k` of `count` begins. */
static Fraction cut_at(const int64_t *before, int count, int k)
{
    return before ? fraction_make(before[k], before[count]) : fraction_make(k, count);
}

static bool is_partial(const State *state) { return state->kind == STATE_SUM || state->kind == STATE_MAX; }

/* The part of dimension `dim` that the device at `position` of subgroup g holds of what the subgroup holds. */
static Interval group_piece(const Maker *maker, int g, int position, int dim)
{
    const Group *group = &maker->layout->groups[g];
    int after = group->device_count;
    Interval piece = {FRACTION_ZERO, FRACTION_ONE};
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        after /= state->count;
        if (state->kind != STATE_SPLIT || state->dim != dim)
            continue;
        int k = position / after % state->count;
        Fraction lo = fraction_between(piece.lo, piece.hi, cut_at(maker->before[g][s], state->count, k));
        piece.hi = fraction_between(piece.lo, piece.hi, cut_at(maker->before[g][s], state->count, k + 1));
        piece.lo = lo;
    }
    return piece;
}

static int compare_fractions(const void *a, const void *b) { return fraction_compare(*(const Fraction *)a, *(const Fraction *)b); }

/* Whether the position is the first of those with its coordinates on `dim`: all other coordinates are zero. */
static bool leads_piece(const Group *group, int position, int dim)
{
    int after = group->device_count;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        after /= state->count;
        if ((state->kind != STATE_SPLIT || state->dim != dim) && position / after % state->count)
            return false;
    }
    return true;
}

/* Every place where any subgroup cuts the top's dimension, in order. */
static void collect_edges(Maker *maker)
{
    Array(Fraction) edges = {0};
    const Layout *layout = maker->layout;
    for (int g = 0; g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++) {
            if (!leads_piece(&layout->groups[g], i, layout->top_dim))
                continue;
            Interval piece = group_piece(maker, g, i, layout->top_dim);
            array_push(maker->arena, &edges, piece.lo);
            array_push(maker->arena, &edges, piece.hi);
        }
    qsort(edges.at, (size_t)edges.count, sizeof *edges.at, compare_fractions);
    int kept = 0;
    for (int i = 0; i < edges.count; i++)
        if (!i || fraction_compare(edges.at[i], edges.at[kept - 1]))
            edges.at[kept++] = edges.at[i];
    maker->edges = edges.at;
    maker->edge_count = kept;
}

static void sum_weights(Maker *maker)
{
    const Layout *layout = maker->layout;
    maker->top_before = before_of(maker->arena, layout->top_weights, layout->group_count);
    maker->before = arena_array(maker->arena, const int64_t **, layout->group_count);
    for (int g = 0; g < layout->group_count; g++) {
        const Group *group = &layout->groups[g];
        maker->before[g] = arena_array(maker->arena, const int64_t *, group->state_count);
        for (int s = 0; s < group->state_count; s++)
            maker->before[g][s] = before_of(maker->arena, group->states[s].weights, group->states[s].count);
    }
}

static Maker maker_for(Arena *arena, const Layout *layout, Shape shape)
{
    Maker maker = {.arena = arena, .layout = layout, .view = layout_view(layout, shape)};
    sum_weights(&maker);
    if (layout->top == TOP_SPLIT && layout->inner)
        collect_edges(&maker);
    return maker;
}

/* Appends the range of a dimension of length n that an interval holds. */
static int add_range(Range *ranges, int count, Interval part, int64_t n)
{
    Range range = {fraction_floor(part.lo, n), fraction_floor(part.hi, n)};
    if (range.lo < range.hi)
        ranges[count++] = range;
    return count;
}

/* The number of a place among the edges. */
static int find_edge(const Maker *maker, Fraction place)
{
    int low = 0, high = maker->edge_count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (fraction_compare(maker->edges[middle], place) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The non-empty ranges of dimension `dim` that a device holds, in order, which go to a new list. */
static int device_ranges(const Maker *maker, int g, int position, int dim, Range **ranges)
{
    const Layout *layout = maker->layout;
    int64_t n = maker->view.extent[dim];
    Interval own = group_piece(maker, g, position, dim);
    bool cut = layout->top == TOP_SPLIT && layout->top_dim == dim;
    int first = cut && layout->inner ? find_edge(maker, own.lo) : 0, last = cut && layout->inner ? find_edge(maker, own.hi) : 1;
    *ranges = arena_array(maker->arena, Range, last - first);
    if (!cut)
        return add_range(*ranges, 0, own, n);
    Fraction a = cut_at(maker->top_before, layout->group_count, g), b = cut_at(maker->top_before, layout->group_count, g + 1);
    if (!layout->inner)
        return add_range(*ranges, 0, (Interval){fraction_between(a, b, own.lo), fraction_between(a, b, own.hi)}, n);
    int count = 0;
    for (int e = first; e < last; e++) {
        Fraction p = maker->edges[e], q = maker->edges[e + 1];
        count = add_range(*ranges, count, (Interval){fraction_between(p, q, a), fraction_between(p, q, b)}, n);
    }
    return count;
}

/* Which contribution of its subgroup a position holds. */
static int group_contribution(const Group *group, int position)
{
    int after = group->device_count, id = 0;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        after /= state->count;
        if (is_partial(state))
            id = id * state->count + position / after % state->count;
    }
    return id;
}

static int contribution_id(const Layout *layout, int g, int position)
{
    int before = 0;
    if (layout->top == TOP_SUM || layout->top == TOP_MAX)
        for (int u = 0; u < g; u++)
            before += group_contribution(&layout->groups[u], layout->groups[u].device_count - 1) + 1;
    return before + group_contribution(&layout->groups[g], position);
}

/* All combinations of the ranges of the dimensions, the last fastest. */
static void combine_ranges(const Maker *maker, Region *region, Range *const *ranges, const int *counts)
{
    region->box_count = 1;
    for (int d = 0; d < region->rank; d++)
        region->box_count *= counts[d];
    Box *boxes = arena_array(maker->arena, Box, region->box_count);
    for (int b = 0; b < region->box_count; b++) {
        int64_t volume = 1;
        for (int d = region->rank - 1, rest = b; d >= 0; rest /= counts[d--]) {
            boxes[b].dim[d] = ranges[d][rest % counts[d]];
            volume *= boxes[b].dim[d].hi - boxes[b].dim[d].lo;
        }
        region->volume += volume;
    }
    region->boxes = boxes;
}

static Region region_at(const Maker *maker, int g, int position)
{
    const Layout *layout = maker->layout;
    Region region = {.member = true, .rank = maker->view.rank, .replica = layout->top == TOP_DUP ? g : 0};
    region.partial = contribution_id(layout, g, position);
    Range *ranges[LAYOUT_MAX_RANK];
    int counts[LAYOUT_MAX_RANK];
    for (int d = 0; d < region.rank; d++)
        counts[d] = device_ranges(maker, g, position, d, &ranges[d]);
    combine_ranges(maker, &region, ranges, counts);
    return region;
}

Region layout_region(Arena *arena, const Layout *layout, Shape shape, int device)
{
    for (int g = 0; g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++)
            if (layout->groups[g].devices[i] == device) {
                Maker maker = maker_for(arena, layout, shape);
                return region_at(&maker, g, i);
            }
    return (Region){.rank = layout_view(layout, shape).rank};
}

const Region *layout_regions(Arena *arena, const Layout *layout, Shape shape, int *count)
{
    layout_devices(arena, layout, count);
    Region *regions = arena_array(arena, Region, *count);
    Maker maker = maker_for(arena, layout, shape);
    for (int g = 0, at = 0; g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++)
            regions[at++] = region_at(&maker, g, i);
    return regions;
}
