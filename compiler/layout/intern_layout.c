/* Interns layouts: layouts with equal texts are one object. Structs are filled member by member in
 * zeroed memory, so that equal layouts have equal padding. */
#include "layout/layout.h"
#include "support/arena.h"

#include <string.h>

static const int64_t *share_numbers(Intern *shared, const int64_t *numbers, int count) {
    return numbers ? intern(shared, numbers, sizeof *numbers * (size_t)count) : NULL;
}

static void share_state(Intern *shared, const State *state, State *own) {
    own->kind = state->kind;
    own->dim = state->kind == STATE_SPLIT ? state->dim : 0;
    own->count = state->count;
    own->weights = share_numbers(shared, state->weights, state->count);
    own->zigzag = state->zigzag;
}

static void share_group(Intern *shared, const Group *group, Group *own) {
    State states[group->state_count + 1];
    memset(states, 0, sizeof states);
    for (int s = 0; s < group->state_count; s++) share_state(shared, &group->states[s], &states[s]);
    own->device_count = group->device_count;
    own->state_count = group->state_count;
    own->devices =
        intern(shared, group->devices, sizeof *group->devices * (size_t)group->device_count);
    own->states = intern(shared, states, sizeof *states * (size_t)group->state_count);
}

const Layout *layout_intern(Intern *shared, const Layout *layout) {
    Layout own;
    Group groups[layout->group_count];
    memset(&own, 0, sizeof own);
    memset(groups, 0, sizeof groups);
    for (int g = 0; g < layout->group_count; g++)
        share_group(shared, &layout->groups[g], &groups[g]);
    own.top = layout->top;
    own.top_dim = layout->top == TOP_SPLIT ? layout->top_dim : 0;
    own.inner = layout->inner;
    own.top_weights = share_numbers(shared, layout->top_weights, layout->group_count);
    own.group_count = layout->group_count;
    own.groups = intern(shared, groups, sizeof groups);
    own.view_rank = layout->view_rank;
    own.view = share_numbers(shared, layout->view, layout->view_rank);
    own.view_dim = layout->view_rank ? intern(shared, layout->view_dim,
                                              sizeof *layout->view_dim * (size_t)layout->view_rank)
                                     : NULL;
    return intern(shared, &own, sizeof own);
}

/* Returns the layout with device d renamed by_number[d], or its index if `by_number` is NULL. */
static const Layout *with_devices(Arena *arena, const Layout *layout, const int *by_number) {
    Layout *renamed = arena_copy(arena, layout, sizeof *layout);
    Group *groups = arena_copy(arena, layout->groups, sizeof *groups * (size_t)layout->group_count);
    for (int g = 0, next = 0; g < layout->group_count; g++) {
        int *devices = arena_array(arena, int, groups[g].device_count);
        for (int i = 0; i < groups[g].device_count; i++, next++)
            devices[i] = by_number ? by_number[groups[g].devices[i]] : next;
        groups[g].devices = devices;
    }
    renamed->groups = groups;
    return renamed;
}

const Layout *layout_renumbered(Arena *arena, const Layout *layout) {
    return with_devices(arena, layout, NULL);
}

const Layout *layout_of_devices(Arena *arena, const Layout *numbered, const int *devices) {
    return with_devices(arena, numbered, devices);
}
