/* Shards replicas (as ZeRO does): devices that hold the same elements divide them evenly. */
#include "layout/layout.h"
#include "support/arena.h"

/* Converts a device's index in spread_group's result to its index in `group`. */
static int position_before(const Group *group, int index) {
    int coordinate[group->state_count + 1], position = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int s = group->state_count - 1; s >= 0; s--)
            if ((group->states[s].kind == STATE_DUP) == (pass == 0)) {
                coordinate[s] = index % group->states[s].count;
                index /= group->states[s].count;
            }
    for (int s = 0; s < group->state_count; s++)
        position = position * group->states[s].count + coordinate[s];
    return position;
}

/* Returns the group with its `dup` states moved to the end, as further cuts of dimension `dim`. */
static Group spread_group(Arena *arena, const Group *group, int dim) {
    State *states = arena_array(arena, State, group->state_count + 1);
    int *devices = arena_array(arena, int, group->device_count), count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int s = 0; s < group->state_count; s++)
            if ((group->states[s].kind == STATE_DUP) == (pass == 1)) {
                states[count] = group->states[s];
                if (pass)
                    states[count] =
                        (State){.kind = STATE_SPLIT, .dim = dim, .count = group->states[s].count};
                count++;
            }
    for (int i = 0; i < group->device_count; i++)
        devices[i] = group->devices[position_before(group, i)];
    return (Group){.device_count = group->device_count,
                   .state_count = count,
                   .devices = devices,
                   .states = states};
}

/* Returns the layout with replicas inside subgroups cut along dimension `inside`. Replicas across
 * subgroups are cut along `across`, in proportion to the subgroups' numbers of devices. */
static Layout *spread_along(Arena *arena, const Layout *layout, int across, int inside) {
    Group *groups = arena_array(arena, Group, layout->group_count);
    int64_t *weights = arena_array(arena, int64_t, layout->group_count);
    bool equal = true;
    for (int g = 0; g < layout->group_count; g++) {
        groups[g] = spread_group(arena, &layout->groups[g], inside);
        weights[g] = groups[g].device_count;
        equal = equal && weights[g] == weights[0];
    }
    Layout *spread = arena_copy(arena, layout, sizeof *layout);
    spread->groups = groups;
    if (layout->top == TOP_DUP) {
        spread->top = TOP_SPLIT;
        spread->top_dim = across;
        spread->inner = true;
        spread->top_weights = equal ? NULL : weights;
    }
    return spread;
}

static bool has_inner_copies(const Layout *layout) {
    for (int g = 0; g < layout->group_count; g++)
        for (int s = 0; s < layout->groups[g].state_count; s++)
            if (layout->groups[g].states[s].kind == STATE_DUP &&
                layout->groups[g].states[s].count > 1)
                return true;
    return false;
}

const Layout *layout_shard_replicas(Arena *arena, const Layout *layout, Shape shape) {
    int rank = layout_view(layout, shape).rank, across = layout->top == TOP_DUP ? rank : 1,
        inside = has_inner_copies(layout) ? rank : 1;
    const Layout *best = NULL;
    int64_t least = INT64_MAX;
    for (int a = 0; rank && a < across; a++)
        for (int i = 0; i < inside; i++) {
            const Layout *spread = spread_along(arena, layout, a, i);
            int64_t most = layout_fits(spread, shape) ? layout_most(spread, shape) : INT64_MAX;
            if (most < least) {
                best = spread;
                least = most;
            }
        }
    return best ? best : layout;
}
