/* Finds equal conversions on disjoint devices (process groups), so that one is planned for all. */
#include "reshard/replica_groups.h"
#include "support/array.h"

#include <stdlib.h>
#include <string.h>

/* A cut: a state of each subgroup of both layouts that splits devices into replica groups. */
typedef struct Cut {
    StateKind kind;
    int dim;          // STATE_SPLIT: dimension of the view
    int parts;        // number of parts into which a state's coordinates are divided
    int kept;         // number of parts that contain elements
    const int *state; // by group, those of `from` first: index of the state
} Cut;

/* A device's part of a cut, and index among the part's devices on one side (from or to). */
typedef struct Seat {
    int part, place; // place -1: the device is not on that side
} Seat;

typedef struct Folding {
    Arena *arena;
    ReplicaGroups *replica_groups;
    Conversion *first; // the conversion, restricted to the first replica group
    Shape view;
} Folding;

static int64_t greatest_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- cuts that layouts have in common ---- */

static const Layout *side_of(const Folding *folding, int side) {
    return side ? folding->first->to : folding->first->from;
}

static const Group *group_at(const Folding *folding, int number) {
    int first = side_of(folding, 0)->group_count;
    return number < first ? &side_of(folding, 0)->groups[number]
                          : &side_of(folding, 1)->groups[number - first];
}

static int group_count(const Folding *folding) {
    return side_of(folding, 0)->group_count + side_of(folding, 1)->group_count;
}

/* Returns the first state of a subgroup that cuts a dimension; -1 if there is none, or if this
 * state has weights. Writes the number of states that cut the dimension to *count. */
static int first_cut(const Group *group, int dim, int *count) {
    int first = -1;
    *count = 0;
    for (int s = group->state_count - 1; s >= 0; s--)
        if (group->states[s].kind == STATE_SPLIT && group->states[s].dim == dim &&
            group->states[s].count > 1) {
            first = group->states[s].weights ? -1 : s;
            ++*count;
        }
    return first;
}

static bool top_cuts(const Layout *layout, int dim, bool inner) {
    return layout->group_count > 1 && layout->top == TOP_SPLIT && layout->top_dim == dim &&
           (inner || !layout->inner);
}

/* Returns whether `part` of a dimension of extent n, cut into equal parts, contains elements. */
static bool part_kept(const Cut *cut, int part, int64_t n) {
    return cut->kind != STATE_SPLIT || (part + 1) * n / cut->parts > part * n / cut->parts;
}

/* Finds a cut of a dimension into equal parts in which all subgroups agree. If all cut it once into
 * the same number of parts, above its extent, some parts are empty. False: there is no such cut. */
static bool find_split(const Folding *folding, int dim, Cut *cut) {
    int64_t n = folding->view.extent[dim], common = 0;
    int groups = group_count(folding), *state = arena_array(folding->arena, int, groups);
    bool alone =
        !top_cuts(side_of(folding, 0), dim, true) && !top_cuts(side_of(folding, 1), dim, true);
    if (top_cuts(side_of(folding, 0), dim, false) || top_cuts(side_of(folding, 1), dim, false))
        return false;
    if (layout_has_zigzag(side_of(folding, 0), dim) || layout_has_zigzag(side_of(folding, 1), dim))
        return false;
    for (int g = 0; g < groups; g++) {
        int count;
        state[g] = first_cut(group_at(folding, g), dim, &count);
        if (state[g] < 0) return false;
        int own = group_at(folding, g)->states[state[g]].count;
        alone = alone && count == 1 && (!g || own == common);
        common = greatest_divisor(own, common);
    }
    bool sparse = alone && n > 0 && n < common;
    *cut = (Cut){.kind = STATE_SPLIT, .dim = dim, .state = state};
    cut->parts = (int)(sparse ? common : greatest_divisor(common, n));
    cut->kept = sparse ? (int)n : cut->parts;
    return n > 0 && cut->parts > 1;
}

/* Makes a cut of state `from` of the old layout and state `to` of the new; each has one subgroup.
 * Returns false if one state is not `dup`, or their counts have no common divisor above 1. */
static bool find_pair(const Folding *folding, int from, int to, Cut *cut) {
    const State *a = &group_at(folding, 0)->states[from], *b = &group_at(folding, 1)->states[to];
    if (a->kind != STATE_DUP || b->kind != STATE_DUP) return false;
    int *state = arena_array(folding->arena, int, 2);
    state[0] = from;
    state[1] = to;
    *cut =
        (Cut){.kind = a->kind, .state = state, .parts = (int)greatest_divisor(a->count, b->count)};
    cut->kept = cut->parts;
    return cut->parts > 1;
}

/* ---- splitting along one cut ---- */

/* Returns the part of a cut that contains a position of a subgroup. */
static int part_of(const Group *group, int state, int parts, int position) {
    int after = 1;
    for (int s = state + 1; s < group->state_count; s++) after *= group->states[s].count;
    int count = group->states[state].count;
    return position / after % count / (count / parts);
}

/* Returns the positions of a side's devices, by member of the current first replica group; writes
 * the number of devices in a part to *count. */
static Seat *find_seats(const Folding *folding, const Cut *cut, int side, int *count) {
    const ReplicaGroups *replica_groups = folding->replica_groups;
    Seat *seats = arena_array(folding->arena, Seat, replica_groups->size);
    int *filled = arena_array(folding->arena, int, cut->parts),
        first = side ? side_of(folding, 0)->group_count : 0;
    for (int i = 0; i < replica_groups->size; i++) seats[i].place = -1;
    for (int g = 0; g < side_of(folding, side)->group_count; g++) {
        const Group *group = &side_of(folding, side)->groups[g];
        for (int i = 0; i < group->device_count; i++) {
            int part = part_of(group, cut->state[first + g], cut->parts, i);
            seats[replica_groups->member[group->devices[i] - replica_groups->least]] =
                (Seat){part, filled[part]++};
        }
    }
    *count = filled[0];
    return seats;
}

/* Returns the current members by part and position; devices only in `to` come last in a part. *size
 * is a part's number of members. Returns NULL if the parts differ in more than their pieces. */
static const int *seat_members(const Folding *folding, const Cut *cut, int *size) {
    int had, has, members = folding->replica_groups->size;
    const Seat *from = find_seats(folding, cut, 0, &had), *to = find_seats(folding, cut, 1, &has);
    if (members % cut->parts) return NULL;
    *size = members / cut->parts;
    int *seated = arena_array(folding->arena, int, members),
        *beside = arena_array(folding->arena, int, has);
    for (int i = 0; i < members; i++) seated[i] = -1;
    for (int p = 0; p < has; p++) beside[p] = -2;
    int *extra = arena_array(folding->arena, int, cut->parts);
    for (int i = 0; i < members; i++) {
        int part = from[i].place >= 0 ? from[i].part : to[i].part, place = from[i].place;
        if (from[i].place >= 0 && to[i].place >= 0 && from[i].part != to[i].part) return NULL;
        place = place >= 0 ? place : had + extra[part]++;
        if (place >= *size ||
            (to[i].place >= 0 && beside[to[i].place] != -2 && beside[to[i].place] != place))
            return NULL;
        if (to[i].place >= 0) beside[to[i].place] = place;
        seated[part * *size + place] = i;
    }
    for (int i = 0; i < members; i++)
        if (seated[i] < 0) return NULL;
    return seated;
}

/* Returns a subgroup reduced to the devices of one part of a cut. */
static Group kept_part(const Folding *folding, const Group *group, int state, const Cut *cut,
                       int part) {
    State *states = arena_array(folding->arena, State, group->state_count);
    int *devices = arena_array(folding->arena, int, group->device_count / cut->parts);
    memcpy(states, group->states, sizeof *states * (size_t)group->state_count);
    states[state].count /= cut->parts;
    Group kept = {.state_count = group->state_count, .states = states, .devices = devices};
    for (int i = 0; i < group->device_count; i++)
        if (part_of(group, state, cut->parts, i) == part)
            devices[kept.device_count++] = group->devices[i];
    return kept;
}

/* Returns `layout` with only the devices and elements of one part of a cut. cut->state[first + g]
 * is the state that is divided in subgroup g of `layout`. */
static const Layout *part_layout(const Folding *folding, const Layout *layout, const Cut *cut,
                                 int first, int part) {
    Layout *own = arena_copy(folding->arena, layout, sizeof *layout);
    Group *groups = arena_array(folding->arena, Group, layout->group_count);
    for (int g = 0; g < layout->group_count; g++)
        groups[g] = kept_part(folding, &layout->groups[g], cut->state[first + g], cut, part);
    own->groups = groups;
    if (layout->view_rank && cut->kind == STATE_SPLIT) {
        int64_t *view =
            arena_copy(folding->arena, layout->view, sizeof *view * (size_t)layout->view_rank);
        view[cut->dim] = view[cut->dim] / cut->parts ? view[cut->dim] / cut->parts : 1;
        own->view = view;
    }
    return own;
}

/* Returns the tensor's shape within one part. */
static Shape part_shape(const Folding *folding, const Cut *cut) {
    Shape shape = folding->first->shape;
    const Layout *from = folding->first->from;
    if (cut->kind != STATE_SPLIT) return shape;
    int64_t *extent = arena_copy(folding->arena, shape.extent, sizeof *extent * (size_t)shape.rank);
    int64_t *own = &extent[from->view_rank ? from->view_dim[cut->dim] : cut->dim],
            n = folding->view.extent[cut->dim];
    *own = *own / n * (n / cut->parts ? n / cut->parts : 1);
    shape.extent = extent;
    return shape;
}

static void number_members(Arena *arena, ReplicaGroups *replica_groups, int replica_group_count) {
    int *member = arena_array(arena, int, replica_groups->span);
    for (int i = 0; i < replica_groups->span; i++) member[i] = -1;
    for (int i = 0; i < replica_group_count * replica_groups->size; i++)
        member[replica_groups->devices[i] - replica_groups->least] = i % replica_groups->size;
    replica_groups->member = member;
}

/* Splits all replica groups along a cut, unless its parts differ (seat_members). */
static void fold(Folding *folding, const Cut *cut) {
    ReplicaGroups *replica_groups = folding->replica_groups;
    int size = 0, first = -1, count = 0;
    const int *seated = seat_members(folding, cut, &size);
    if (!seated) return;
    int *devices = arena_array(folding->arena, int, replica_groups->count * cut->kept * size);
    for (int c = 0; c < replica_groups->count; c++)
        for (int part = 0; part < cut->parts; part++) {
            if (!part_kept(cut, part, folding->view.extent[cut->dim])) continue;
            first = first < 0 ? part : first;
            for (int i = 0; i < size; i++)
                devices[count++] =
                    replica_groups->devices[c * replica_groups->size + seated[part * size + i]];
        }
    folding->first->shape = part_shape(folding, cut);
    const Layout *from = folding->first->from;
    folding->first->from = part_layout(folding, from, cut, 0, first);
    folding->first->to = part_layout(folding, folding->first->to, cut, from->group_count, first);
    replica_groups->count *= cut->kept;
    replica_groups->size = size;
    replica_groups->devices = devices;
    folding->view = layout_view(folding->first->from, folding->first->shape);
    number_members(folding->arena, replica_groups, 1);
}

/* ---- replica groups of conversions ---- */

/* Extends the range of device numbers by the devices of a layout. */
static void cover(ReplicaGroups *replica_groups, const int *devices, int count) {
    for (int i = 0; i < count; i++) {
        int most = replica_groups->least + replica_groups->span - 1;
        most = !replica_groups->span || devices[i] > most ? devices[i] : most;
        replica_groups->least = !replica_groups->span || devices[i] < replica_groups->least
                                    ? devices[i]
                                    : replica_groups->least;
        replica_groups->span = most - replica_groups->least + 1;
    }
}

/* Returns all devices of all layouts as one replica group. */
static ReplicaGroups one_replica_group(Arena *arena, const Conversion *conversions, int count) {
    ReplicaGroups replica_groups = {.count = 1};
    int total = 0, *counts = arena_array(arena, int, 2 * count), *all;
    const int **sides = arena_array(arena, const int *, 2 * count);
    for (int side = 0; side < 2 * count; side++) {
        const Conversion *own = &conversions[side / 2];
        sides[side] = layout_devices(arena, side % 2 ? own->to : own->from, &counts[side]);
        cover(&replica_groups, sides[side], counts[side]);
        total += counts[side];
    }
    bool *seen = arena_array(arena, bool, replica_groups.span);
    replica_groups.devices = all = arena_array(arena, int, total);
    for (int side = 0; side < 2 * count; side++)
        for (int i = 0; i < counts[side]; i++)
            if (!seen[sides[side][i] - replica_groups.least]) {
                seen[sides[side][i] - replica_groups.least] = true;
                all[replica_groups.size++] = sides[side][i];
            }
    replica_groups.first = arena_copy(arena, conversions, sizeof *conversions * (size_t)count);
    number_members(arena, &replica_groups, 1);
    return replica_groups;
}

static bool same_view(const Layout *a, const Layout *b) {
    size_t rank = (size_t)a->view_rank;
    return a->view_rank == b->view_rank &&
           (!rank || (!memcmp(a->view, b->view, sizeof *a->view * rank) &&
                      !memcmp(a->view_dim, b->view_dim, sizeof *a->view_dim * rank)));
}

/* Splits along pairs of `dup` states, unless a reduction is pending. All copies of a reduction
 * share its work, which is done once, so that they get the same bits. */
static void fold_pairs(Folding *folding) {
    Cut cut;
    if (layout_partial(side_of(folding, 0)) != STATE_DUP ||
        layout_partial(side_of(folding, 1)) != STATE_DUP)
        return;
    for (int a = 0;
         side_of(folding, 0)->group_count == 1 && a < side_of(folding, 0)->groups[0].state_count;
         a++)
        for (int b = 0; side_of(folding, 1)->group_count == 1 &&
                        b < side_of(folding, 1)->groups[0].state_count;
             b++)
            if (find_pair(folding, a, b, &cut)) fold(folding, &cut);
}

static ReplicaGroups replica_groups_of_one(Arena *arena, const Conversion *conversion) {
    Cut cut;
    ReplicaGroups replica_groups = one_replica_group(arena, conversion, 1);
    Conversion *first = arena_copy(arena, conversion, sizeof *conversion);
    Folding folding = {arena, &replica_groups, first,
                       layout_view(conversion->from, conversion->shape)};
    replica_groups.first = first;
    if (!same_view(conversion->from, conversion->to)) return replica_groups;
    for (int d = 0; d < folding.view.rank; d++)
        if (find_split(&folding, d, &cut)) fold(&folding, &cut);
    fold_pairs(&folding);
    number_members(arena, &replica_groups, replica_groups.count);
    return replica_groups;
}

/* Returns the members' names: the ranks of the first group's devices in ascending order, or on a
 * cluster the devices of the first equivalent group. */
static const int *find_names(Arena *arena, const ReplicaGroups *replica_groups,
                             const Cluster *cluster, Intern *alike) {
    int *sorted = arena_copy(arena, replica_groups->devices,
                             sizeof *sorted * (size_t)replica_groups->size),
        *name = arena_array(arena, int, replica_groups->size);
    qsort(sorted, (size_t)replica_groups->size, sizeof *sorted, compare_ints);
    const int *first =
        cluster ? cluster_equivalent_devices(alike, cluster, sorted, replica_groups->size) : NULL;
    for (int i = 0; i < replica_groups->size; i++)
        name[replica_groups->member[sorted[i] - replica_groups->least]] = first ? first[i] : i;
    return name;
}

/* Returns a layout with the first replica group's devices renamed. */
static const Layout *named_layout(Arena *arena, const ReplicaGroups *replica_groups,
                                  const Layout *layout) {
    Layout *own = arena_copy(arena, layout, sizeof *layout);
    Group *groups = arena_copy(arena, layout->groups, sizeof *groups * (size_t)layout->group_count);
    for (int g = 0; g < layout->group_count; g++) {
        int *devices = arena_array(arena, int, groups[g].device_count);
        for (int i = 0; i < groups[g].device_count; i++)
            devices[i] =
                replica_groups
                    ->name[replica_groups->member[groups[g].devices[i] - replica_groups->least]];
        groups[g].devices = devices;
    }
    own->groups = groups;
    return own;
}

/* Sets `name`, and renames the devices in the first replica group's conversions. */
static void name_members(Arena *arena, ReplicaGroups *replica_groups, const Cluster *cluster,
                         Intern *alike, int count) {
    Conversion *first = arena_copy(arena, replica_groups->first, sizeof *first * (size_t)count);
    replica_groups->name = find_names(arena, replica_groups, cluster, alike);
    for (int t = 0; t < count; t++) {
        first[t].from = named_layout(arena, replica_groups, first[t].from);
        first[t].to = named_layout(arena, replica_groups, first[t].to);
    }
    replica_groups->first = first;
}

static bool same_replica_groups(const ReplicaGroups *a, const ReplicaGroups *b) {
    return a->count == b->count && a->size == b->size &&
           !memcmp(a->devices, b->devices, sizeof *a->devices * (size_t)(a->count * a->size));
}

/* Returns the common replica groups of conversions; one group if the conversions' groups differ. */
static ReplicaGroups common_replica_groups(Arena *arena, const Conversion *conversions, int count) {
    ReplicaGroups replica_groups = replica_groups_of_one(arena, &conversions[0]);
    Conversion *first = arena_copy(arena, conversions, sizeof *conversions * (size_t)count);
    first[0] = replica_groups.first[0];
    for (int t = 1; t < count; t++) {
        ReplicaGroups own = replica_groups_of_one(arena, &conversions[t]);
        if (!same_replica_groups(&own, &replica_groups))
            return one_replica_group(arena, conversions, count);
        first[t] = own.first[0];
    }
    replica_groups.first = first;
    return replica_groups;
}

ReplicaGroups replica_groups_of(Arena *arena, const Cluster *cluster, Intern *alike,
                                const Conversion *conversions, int count) {
    ReplicaGroups replica_groups = cluster ? one_replica_group(arena, conversions, count)
                                           : common_replica_groups(arena, conversions, count);
    replica_groups.name = replica_groups.devices;
    if (!cluster || alike) name_members(arena, &replica_groups, cluster, alike, count);
    return replica_groups;
}

int replica_groups_name(const ReplicaGroups *replica_groups, int device) {
    int at = device - replica_groups->least;
    return at < 0 || at >= replica_groups->span || replica_groups->member[at] < 0
               ? -1
               : replica_groups->name[replica_groups->member[at]];
}

int64_t replica_groups_bytes(const ReplicaGroups *replica_groups, const Plan *plan) {
    int64_t bytes;
    return __builtin_mul_overflow(plan_bytes(plan), (int64_t)replica_groups->count, &bytes)
               ? INT64_MAX
               : bytes;
}
