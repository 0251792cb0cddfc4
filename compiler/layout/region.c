/* Computes regions, the elements that a device holds, by the definitions in layout.h. Piece [a, b)
 * of n elements is floor(n * a) to floor(n * b). */
#include "layout/zigzag.h"

#include <stdlib.h>
#include <string.h>

typedef Array(Range) Ranges;

/* Tables that are computed once for all devices of a layout. */
typedef struct Maker {
    Arena *arena, *scratch;
    const Layout *layout;
    Shape view;
    const int64_t ***before;   // by group and state: prefix sums of the pieces' weights (before_of)
    const int64_t *top_before; // prefix sums of the top's weights (before_of)
    const int *like;           // by group: the first group with the same states
    const int *contributions;  // by group: number of contributions of the groups before it, under a
                               // top with a pending reduction; else 0
    Intervals ***parts; // cache of group_piece, by group (only those with like[g] = g), dimension
                        // and piece; `at` NULL: not computed yet
    // by group, dimension and piece: cache of device_ranges; `at` NULL: not computed yet
    Ranges ***ranges;
    int edge_count;        // number of `edges`
    const Fraction *edges; // inner top: places where subgroups cut the top's dimension, ascending
} Maker;

Shape layout_view(const Layout *layout, Shape shape) {
    return layout->view_rank ? (Shape){layout->view_rank, layout->view} : shape;
}

StateKind layout_partial(const Layout *layout) {
    if (layout->group_count > 1 && layout->top == TOP_SUM) return STATE_SUM;
    if (layout->group_count > 1 && layout->top == TOP_MAX) return STATE_MAX;
    for (int g = 0; g < layout->group_count; g++)
        for (int s = 0; s < layout->groups[g].state_count; s++) {
            const State *state = &layout->groups[g].states[s];
            if (state->count > 1 && (state->kind == STATE_SUM || state->kind == STATE_MAX))
                return state->kind;
        }
    return STATE_DUP;
}

const int *layout_devices(Arena *arena, const Layout *layout, int *count) {
    *count = 0;
    for (int g = 0; g < layout->group_count; g++) *count += layout->groups[g].device_count;
    int *devices = arena_array(arena, int, *count), filled = 0;
    for (int g = 0; g < layout->group_count; g++) {
        const Group *group = &layout->groups[g];
        memcpy(devices + filled, group->devices, sizeof(int) * (size_t)group->device_count);
        filled += group->device_count;
    }
    return devices;
}

/* Returns the `count` + 1 prefix sums of weights; NULL if `weights` is NULL (all are equal). */
static const int64_t *before_of(Arena *arena, const int64_t *weights, int count) {
    int64_t *before = weights ? arena_array(arena, int64_t, count + 1) : NULL;
    for (int i = 0; weights && i < count; i++) before[i + 1] = before[i] + weights[i];
    return before;
}

static bool is_partial(const State *state) {
    return state->kind == STATE_SUM || state->kind == STATE_MAX;
}

static bool cuts_dim(const State *state, int dim) {
    return state->kind == STATE_SPLIT && state->dim == dim;
}

/* Return the number of pieces into which a subgroup cuts a dimension, and the index of a position's
 * piece. The two pieces of a zigzag pair count as one. */
static int dim_pieces(const Group *group, int dim) {
    int count = 1;
    for (int s = 0; s < group->state_count; s++)
        count *= cuts_dim(&group->states[s], dim) ? group->states[s].count : 1;
    return count;
}

static int piece_number(const Group *group, int position, int dim) {
    int after = group->device_count, number = 0;
    for (int s = 0; s < group->state_count; s++) {
        after /= group->states[s].count;
        if (cuts_dim(&group->states[s], dim))
            number = number * group->states[s].count + position / after % group->states[s].count;
    }
    return number;
}

/* Returns what the device at `position` of subgroup g holds of `dim`, as fractions of g's part. */
static Intervals make_piece(const Maker *maker, int g, int position, int dim) {
    const Group *group = &maker->layout->groups[g];
    int after = group->device_count;
    Intervals parts = {.at = arena_array(maker->scratch, Interval, 1), .count = 1, .capacity = 1};
    parts.at[0] = (Interval){FRACTION_ZERO, FRACTION_ONE};
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        after /= state->count;
        if (!cuts_dim(state, dim)) continue;
        cut_intervals(maker->scratch, &parts, state, maker->before[g][s],
                      position / after % state->count);
    }
    return parts;
}

/* Returns make_piece's result, cached for all subgroups and positions with the same piece. */
static Intervals group_piece(const Maker *maker, int g, int position, int dim) {
    const Group *group = &maker->layout->groups[g];
    Intervals **by_dim = maker->parts[maker->like[g]];
    if (!by_dim[dim]) by_dim[dim] = arena_array(maker->scratch, Intervals, dim_pieces(group, dim));
    Intervals *piece = &by_dim[dim][piece_number(group, position, dim)];
    if (!piece->at) *piece = make_piece(maker, g, position, dim);
    return *piece;
}

static int compare_fractions(const void *a, const void *b) {
    return fraction_compare(*(const Fraction *)a, *(const Fraction *)b);
}

/* Returns whether the position is the first one with its piece of `dim`: its coordinates in states
 * that do not cut `dim` are zero. */
static bool leads_piece(const Group *group, int position, int dim) {
    int after = group->device_count;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        after /= state->count;
        if (!cuts_dim(state, dim) && position / after % state->count) return false;
    }
    return true;
}

/* Sets maker->edges to the places where any subgroup cuts the top's dimension, ascending. */
static void collect_edges(Maker *maker) {
    Array(Fraction) edges = {0};
    const Layout *layout = maker->layout;
    for (int g = 0; g < layout->group_count; g++)
        for (int i = 0; maker->like[g] == g && i < layout->groups[g].device_count; i++) {
            if (!leads_piece(&layout->groups[g], i, layout->top_dim)) continue;
            Intervals piece = group_piece(maker, g, i, layout->top_dim);
            for (int p = 0; p < piece.count; p++) {
                array_push(maker->scratch, &edges, piece.at[p].lo);
                array_push(maker->scratch, &edges, piece.at[p].hi);
            }
        }
    qsort(edges.at, (size_t)edges.count, sizeof *edges.at, compare_fractions);
    int kept = 0;
    for (int i = 0; i < edges.count; i++)
        if (!i || fraction_compare(edges.at[i], edges.at[kept - 1])) edges.at[kept++] = edges.at[i];
    maker->edges = edges.at;
    maker->edge_count = kept;
}

static void sum_weights(Maker *maker) {
    const Layout *layout = maker->layout;
    maker->top_before = before_of(maker->scratch, layout->top_weights, layout->group_count);
    maker->before = arena_array(maker->scratch, const int64_t **, layout->group_count);
    for (int g = 0; g < layout->group_count; g++) {
        const Group *group = &layout->groups[g];
        maker->before[g] = arena_array(maker->scratch, const int64_t *, group->state_count);
        for (int s = 0; s < group->state_count; s++)
            maker->before[g][s] =
                before_of(maker->scratch, piece_weights(maker->scratch, &group->states[s]),
                          piece_count(&group->states[s]));
    }
}

static bool same_weights(const int64_t *a, const int64_t *b, int count) {
    return a == b || (a && b && !memcmp(a, b, sizeof *a * (size_t)count));
}

static bool same_states(const Group *a, const Group *b) {
    bool same = a->state_count == b->state_count;
    for (int s = 0; same && a->states != b->states && s < a->state_count; s++) {
        const State *x = &a->states[s], *y = &b->states[s];
        same = x->kind == y->kind && x->count == y->count && x->zigzag == y->zigzag &&
               (x->kind != STATE_SPLIT || x->dim == y->dim) &&
               same_weights(x->weights, y->weights, x->count);
    }
    return same;
}

/* Sets maker->like: by subgroup, the first one with the same states. Allocates the caches. */
static void find_like(Maker *maker) {
    int count = maker->layout->group_count, kinds = 0,
        *like = arena_array(maker->scratch, int, count),
        *first = arena_array(maker->scratch, int, count);
    for (int g = 0; g < count; g++) {
        int k = 0;
        while (k < kinds &&
               !same_states(&maker->layout->groups[first[k]], &maker->layout->groups[g]))
            k++;
        if (k == kinds) first[kinds++] = g;
        like[g] = first[k];
    }
    maker->like = like;
    maker->parts = arena_array(maker->scratch, Intervals **, count);
    maker->ranges = arena_array(maker->scratch, Ranges **, count);
    for (int g = 0; g < count; g++) {
        maker->parts[g] =
            like[g] == g ? arena_array(maker->scratch, Intervals *, maker->view.rank) : NULL;
        maker->ranges[g] = arena_array(maker->scratch, Ranges *, maker->view.rank);
    }
}

/* Returns the number of the contribution, in its subgroup, that a position holds. */
static int group_contribution(const Group *group, int position) {
    int after = group->device_count, id = 0;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        after /= state->count;
        if (is_partial(state)) id = id * state->count + position / after % state->count;
    }
    return id;
}

static void count_contributions(Maker *maker) {
    const Layout *layout = maker->layout;
    int *before = arena_array(maker->scratch, int, layout->group_count + 1);
    bool partial = layout->top == TOP_SUM || layout->top == TOP_MAX;
    for (int g = 0; partial && g < layout->group_count; g++)
        before[g + 1] = before[g] +
                        group_contribution(&layout->groups[g], layout->groups[g].device_count - 1) +
                        1;
    maker->contributions = before;
}

/* Returns the tables of a layout; the caller destroys maker.scratch. */
static Maker maker_for(Arena *arena, const Layout *layout, Shape shape) {
    Maker maker = {.arena = arena,
                   .scratch = arena_create(),
                   .layout = layout,
                   .view = layout_view(layout, shape)};
    sum_weights(&maker);
    find_like(&maker);
    count_contributions(&maker);
    if (layout->top == TOP_SPLIT && layout->inner) collect_edges(&maker);
    return maker;
}

/* Appends the range of an interval of a dimension of length n, unless it is empty. */
static void add_range(Arena *arena, Ranges *ranges, Interval part, int64_t n) {
    Range range = {fraction_floor(part.lo, n), fraction_floor(part.hi, n)};
    if (range.lo < range.hi) array_push(arena, ranges, range);
}

/* Returns the index of the first edge that is not before `place`; the last edge if all are. */
static int find_edge(const Maker *maker, Fraction place) {
    int low = 0, high = maker->edge_count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (fraction_compare(maker->edges[middle], place) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Appends, for each finest slice (between two edges) in `own`, the range of its fraction `part`. */
static void add_slices(const Maker *maker, Ranges *ranges, Interval own, Interval part, int64_t n) {
    int last = find_edge(maker, own.hi);
    for (int e = find_edge(maker, own.lo); e < last; e++) {
        Fraction p = maker->edges[e], q = maker->edges[e + 1];
        add_range(maker->scratch, ranges,
                  (Interval){fraction_between(p, q, part.lo), fraction_between(p, q, part.hi)}, n);
    }
}

static bool cut_by_top(const Layout *layout, int dim) {
    return layout->top == TOP_SPLIT && layout->top_dim == dim;
}

static bool cuts_slices(const Layout *layout, int dim) {
    return cut_by_top(layout, dim) && layout->inner;
}

/* Returns the non-empty ranges of dimension `dim` that a device holds, in order. */
static Ranges make_ranges(const Maker *maker, int g, int position, int dim) {
    const Layout *layout = maker->layout;
    int64_t n = maker->view.extent[dim];
    Intervals own = group_piece(maker, g, position, dim);
    Ranges ranges = {.at = arena_array(maker->scratch, Range, own.count + 1),
                     .capacity = own.count + 1};
    bool cut = cut_by_top(layout, dim);
    Interval part = {FRACTION_ZERO, FRACTION_ONE}; // the subgroup's part of the dimension
    if (cut)
        part = (Interval){cut_at(maker->top_before, layout->group_count, g),
                          cut_at(maker->top_before, layout->group_count, g + 1)};
    for (int i = 0; i < own.count; i++)
        if (cuts_slices(layout, dim)) add_slices(maker, &ranges, own.at[i], part, n);
        else if (cut)
            add_range(maker->scratch, &ranges,
                      (Interval){fraction_between(part.lo, part.hi, own.at[i].lo),
                                 fraction_between(part.lo, part.hi, own.at[i].hi)},
                      n);
        else add_range(maker->scratch, &ranges, own.at[i], n);
    return ranges;
}

/* Returns make_ranges's result, cached for all positions with the same piece, and for all subgroups
 * with the same states when the top does not cut the dimension. */
static Ranges device_ranges(const Maker *maker, int g, int position, int dim) {
    const Group *group = &maker->layout->groups[g];
    Ranges **by_dim = maker->ranges[cut_by_top(maker->layout, dim) ? g : maker->like[g]];
    if (!by_dim[dim]) by_dim[dim] = arena_array(maker->scratch, Ranges, dim_pieces(group, dim));
    Ranges *ranges = &by_dim[dim][piece_number(group, position, dim)];
    if (!ranges->at) *ranges = make_ranges(maker, g, position, dim);
    return *ranges;
}

static int contribution_id(const Maker *maker, int g, int position) {
    return maker->contributions[g] + group_contribution(&maker->layout->groups[g], position);
}

static int64_t range_length(Range range) { return range.hi - range.lo; }

/* Returns the sum of the lengths of the first `count` ranges. */
static int64_t ranges_length(const Ranges *ranges, int count) {
    int64_t length = 0;
    for (int i = 0; i < count; i++) length += range_length(ranges->at[i]);
    return length;
}

/* Sets the boxes and volume of a region: all combinations of its dimensions' ranges, row-major. */
static void combine_ranges(const Maker *maker, Region *region, const Ranges *ranges) {
    region->box_count = 1;
    for (int d = 0; d < region->rank; d++) region->box_count *= ranges[d].count;
    Box *boxes = arena_array(maker->arena, Box, region->box_count);
    for (int b = 0; b < region->box_count; b++) {
        int64_t volume = 1;
        for (int d = region->rank - 1, rest = b; d >= 0; rest /= ranges[d--].count) {
            boxes[b].dim[d] = ranges[d].at[rest % ranges[d].count];
            volume *= range_length(boxes[b].dim[d]);
        }
        region->volume += volume;
    }
    region->boxes = boxes;
}

/* Returns the storage of box `b`. The finest slices of an inner split are stored as tensors one
 * after another; in each tensor the ranges of the other dimensions are adjacent. */
static Placing place_box(const Maker *maker, const Region *region, const Ranges *ranges, int b) {
    Placing placing = {0};
    int64_t slice = 1, in_front = 0, step = 1, offset = 0;
    for (int d = region->rank - 1, rest = b; d >= 0; rest /= ranges[d--].count) {
        int number = rest % ranges[d].count;
        bool apart = cuts_slices(maker->layout, d);
        placing.extent[d] =
            apart ? range_length(ranges[d].at[number]) : ranges_length(&ranges[d], ranges[d].count);
        offset += apart ? 0 : ranges_length(&ranges[d], number) * step;
        in_front += apart ? ranges_length(&ranges[d], number) : 0;
        slice *= apart ? 1 : placing.extent[d];
        step *= placing.extent[d];
    }
    placing.at = in_front * slice + offset;
    return placing;
}

/* Sets region->placing if zigzag splits store several boxes as one tensor. */
static void place_boxes(const Maker *maker, Region *region, const Ranges *ranges) {
    bool joined = false;
    for (int d = 0; d < region->rank; d++)
        joined |= ranges[d].count > 1 && !cuts_slices(maker->layout, d);
    if (!joined) return;
    Placing *placing = arena_array(maker->arena, Placing, region->box_count);
    for (int b = 0; b < region->box_count; b++) placing[b] = place_box(maker, region, ranges, b);
    region->placing = placing;
}

static Region region_at(const Maker *maker, int g, int position) {
    const Layout *layout = maker->layout;
    Region region = {
        .member = true, .rank = maker->view.rank, .replica = layout->top == TOP_DUP ? g : 0};
    region.partial = contribution_id(maker, g, position);
    Ranges ranges[LAYOUT_MAX_RANK];
    for (int d = 0; d < region.rank; d++) ranges[d] = device_ranges(maker, g, position, d);
    combine_ranges(maker, &region, ranges);
    place_boxes(maker, &region, ranges);
    return region;
}

Region layout_region(Arena *arena, const Layout *layout, Shape shape, int device) {
    for (int g = 0; g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++)
            if (layout->groups[g].devices[i] == device) {
                Maker maker = maker_for(arena, layout, shape);
                Region region = region_at(&maker, g, i);
                arena_destroy(maker.scratch);
                return region;
            }
    return (Region){.rank = layout_view(layout, shape).rank};
}

const Region *layout_regions(Arena *arena, const Layout *layout, Shape shape, int *count) {
    layout_devices(arena, layout, count);
    Region *regions = arena_array(arena, Region, *count);
    Maker maker = maker_for(arena, layout, shape);
    for (int g = 0, at = 0; g < layout->group_count; g++)
        for (int i = 0; i < layout->groups[g].device_count; i++)
            regions[at++] = region_at(&maker, g, i);
    arena_destroy(maker.scratch);
    return regions;
}

/* Returns the most elements that a device of a subgroup holds: a product of longest pieces. */
static int64_t group_most(const Maker *maker, int g) {
    const Group *group = &maker->layout->groups[g];
    int64_t volume = 1;
    for (int d = 0; d < maker->view.rank; d++) {
        int64_t most = 0;
        for (int i = 0; i < group->device_count; i++)
            if (leads_piece(group, i, d)) {
                Ranges ranges = device_ranges(maker, g, i, d);
                int64_t length = ranges_length(&ranges, ranges.count);
                most = length > most ? length : most;
            }
        volume *= most;
    }
    return volume;
}

int64_t layout_most(const Layout *layout, Shape shape) {
    Arena *scratch = arena_create();
    Maker maker = maker_for(scratch, layout, shape);
    int64_t most = 0;
    for (int g = 0; g < layout->group_count; g++) {
        int64_t volume = group_most(&maker, g);
        most = volume > most ? volume : most;
    }
    arena_destroy(maker.scratch);
    arena_destroy(scratch);
    return most;
}
