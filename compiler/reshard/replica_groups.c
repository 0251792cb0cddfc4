#include "reshard/replica_groups.h"

#include <stdlib.h>
#include <string.h>

/* One state of each group of both layouts, of which the devices' coordinates say which crew they are of. */
typedef struct Cut {
    StateKind kind;
    int dim;          // STATE_SPLIT: of the view
    int parts;        // into which the coordinates fall, in order
    int kept;         // parts in which there is anything of the tensor
    const int *state; // by group, those of `from` first; the state's number
} Cut;

/* Where a device stands in a side of its crew. */
typedef struct Seat {
    int part, place; // place -1: it is not there
} Seat;

typedef struct Folding {
    Arena *arena;
    ReplicaGroups *crews;
    Conversion *first; // what the first of them converts
    Shape view;
} Folding;

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- cuts that layouts have in common ---- */

static const Layout *side_of(const Folding *folding, int side) { return side ? folding->first->to : folding->first->from; }

static const Group *group_at(const Folding *folding, int number)
{
    int first = side_of(folding, 0)->group_count;
    return number < first ? &side_of(folding, 0)->groups[number] : &side_of(folding, 1)->groups[number - first];
}

static int group_count(const Folding *folding) { return side_of(folding, 0)->group_count + side_of(folding, 1)->group_count; }

/* The first state of a group that cuts a dimension; -1: none, or by weights. How many states do goes to *count. */
static int first_cut(const Group *group, int dim, int *count)
{
    int first = -1;
    *count = 0;
    for (int s = group->state_count - 1; s >= 0; s--)
        if (group->states[s].kind == STATE_SPLIT && group->states[s].dim == dim && group->states[s].count > 1) {
            first = group->states[s].weights ? -1 : s;
            ++*count;
        }
    return first;
}

static bool top_cuts(const Layout *layout, int dim, bool inner)
{
    return layout->group_count > 1 && layout->top == TOP_SPLIT && layout->top_dim == dim && (inner || !layout->inner);
}

/* The parts of which a dimension of extent n, cut into `count`, has anything: the last of those that are cut where an element ends. */
static bool part_kept(const Cut *cut, int part, int64_t n)
{
    return cut->kind != STATE_SPLIT || (part + 1) * n / cut->parts > part * n / cut->parts;
}

/* A cut of a dimension by all groups into equal parts, or by all in one way into parts of one element or none. */
static bool find_split(const Folding *folding, int dim, Cut *cut)
{
    int64_t n = folding->view.extent[dim], common = 0;
    int groups = group_count(folding), *state = arena_array(folding->arena, int, groups);
    bool alone = !top_cuts(side_of(folding, 0), dim, true) && !top_cuts(side_of(folding, 1), dim, true);
    if (top_cuts(side_of(folding, 0), dim, false) || top_cuts(side_of(folding, 1), dim, false))
        return false;
    if (layout_has_zigzag(side_of(folding, 0), dim) || layout_has_zigzag(side_of(folding, 1), dim))
        return false;
    for (int g = 0; g < groups; g++) {
        int count;
        state[g] = first_cut(group_at(folding, g), dim, &count);
        if (state[g] < 0)
            return false;
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

/* A state of each side, which are one group each, that copies alike. */
static bool find_pair(const Folding *folding, int from, int to, Cut *cut)
{
    const State *a = &group_at(folding, 0)->states[from], *b = &group_at(folding, 1)->states[to];
    if (a->kind != STATE_DUP || b->kind != STATE_DUP)
        return false;
    int *state = arena_array(folding->arena, int, 2);
    state[0] = from;
    state[1] = to;
    *cut = (Cut){.kind = a->kind, .state = state, .parts = (int)greatest_divisor(a->count, b->count)};
    cut->kept = cut->parts;
    return cut->parts > 1;
}

/* ---- one cut ---- */

/* The part of a cut that a position of a group is of. */
static int part_of(const Group *group, int state, int parts, int position)
{
    int after = 1;
    for (int s = state + 1; s < group->state_count; s++)
        after *= group->states[s].count;
    int count = group->states[state].count;
    return position / after % count / (count / parts);
}

/* The seats of the devices of a side, by member of the first crew so far; the devices of a part are as many as *count says. */
static Seat *find_seats(const Folding *folding, const Cut *cut, int side, int *count)
{
    const ReplicaGroups *crews = folding->crews;
    Seat *seats = arena_array(folding->arena, Seat, crews->size);
    int *filled = arena_array(folding->arena, int, cut->parts), first = side ? side_of(folding, 0)->group_count : 0;
    for (int i = 0; i < crews->size; i++)
        seats[i].place = -1;
    for (int g = 0; g < side_of(folding, side)->group_count; g++) {
        const Group *group = &side_of(folding, side)->groups[g];
        for (int i = 0; i < group->device_count; i++) {
            int part = part_of(group, cut->state[first + g], cut->parts, i);
            seats[crews->member[group->devices[i] - crews->least]] = (Seat){part, filled[part]++};
        }
    }
    *count = filled[0];
    return seats;
}

/* The members so far by part and place, the devices of `from` before those that `to` alone has; NULL where the parts differ in more than
 * their pieces. Their number in each part goes to *size. */
static const int *seat_members(const Folding *folding, const Cut *cut, int *size)
{
    int had, has, members = folding->crews->size;
    const Seat *from = find_seats(folding, cut, 0, &had), *to = find_seats(folding, cut, 1, &has);
    if (members % cut->parts)
        return NULL;
    *size = members / cut->parts;
    int *seated = arena_array(folding->arena, int, members), *beside = arena_array(folding->arena, int, has);
    for (int i = 0; i < members; i++)
        seated[i] = -1;
    for (int p = 0; p < has; p++)
        beside[p] = -2;
    int *extra = arena_array(folding->arena, int, cut->parts);
    for (int i = 0; i < members; i++) {
        int part = from[i].place >= 0 ? from[i].part : to[i].part, place = from[i].place;
        if (from[i].place >= 0 && to[i].place >= 0 && from[i].part != to[i].part)
            return NULL;
        place = place >= 0 ? place : had + extra[part]++;
        if (place >= *size || (to[i].place >= 0 && beside[to[i].place] != -2 && beside[to[i].place] != place))
            return NULL;
        if (to[i].place >= 0)
            beside[to[i].place] = place;
        seated[part * *size + place] = i;
    }
    for (int i = 0; i < members; i++)
        if (seated[i] < 0)
            return NULL;
    return seated;
}

/* A group's devices in one part of a cut. */
static void keep_part(const Folding *folding, const Group *group, int state, const Cut *cut, int part, Group *kept)
{
    State *states = arena_array(folding->arena, State, group->state_count);
    int *devices = arena_array(folding->arena, int, group->device_count / cut->parts);
    memcpy(states, group->states, sizeof *states * (size_t)group->state_count);
    states[state].count /= cut->parts;
    *kept = (Group){.state_count = group->state_count, .states = states, .devices = devices};
    for (int i = 0; i < group->device_count; i++)
        if (part_of(group, state, cut->parts, i) == part)
            devices[kept->device_count++] = group->devices[i];
}

/* A layout of one part of what is cut; `first` is the number of its first group. */
static const Layout *part_layout(const Folding *folding, const Layout *layout, const Cut *cut, int first, int part)
{
    Layout *own = arena_copy(folding->arena, layout, sizeof *layout);
    Group *groups = arena_array(folding->arena, Group, layout->group_count);
    for (int g = 0; g < layout->group_count; g++)
        keep_part(folding, &layout->groups[g], cut->state[first + g], cut, part, &groups[g]);
    own->groups = groups;
    if (layout->view_rank && cut->kind == STATE_SPLIT) {
        int64_t *view = arena_copy(folding->arena, layout->view, sizeof *view * (size_t)layout->view_rank);
        view[cut->dim] = view[cut->dim] / cut->parts ? view[cut->dim] / cut->parts : 1;
        own->view = view;
    }
    return own;
}

/* The tensor's shape in one part. */
static Shape part_shape(const Folding *folding, const Cut *cut)
{
    Shape shape = folding->first->shape;
    const Layout *from = folding->first->from;
    if (cut->kind != STATE_SPLIT)
        return shape;
    int64_t *extent = arena_copy(folding->arena, shape.extent, sizeof *extent * (size_t)shape.rank);
    int64_t *own = &extent[from->view_rank ? from->view_dim[cut->dim] : cut->dim], n = folding->view.extent[cut->dim];
    *own = *own / n * (n / cut->parts ? n / cut->parts : 1);
    shape.extent = extent;
    return shape;
}

/* The places of the members of the first crew. */
static void number_members(Arena *arena, ReplicaGroups *crews, int crew_count)
{
    int *member = arena_array(arena, int, crews->span);
    for (int i = 0; i < crews->span; i++)
        member[i] = -1;
    for (int i = 0; i < crew_count * crews->size; i++)
        member[crews->devices[i] - crews->least] = i % crews->size;
    crews->member = member;
}

/* Divides all crews along a cut, where the parts are alike. */
static void fold(Folding *folding, const Cut *cut)
{
    ReplicaGroups *crews = folding->crews;
    int size = 0, first = -1, count = 0;
    const int *seated = seat_members(folding, cut, &size);
    if (!seated)
        return;
    int *devices = arena_array(folding->arena, int, crews->count * cut->kept * size);
    for (int c = 0; c < crews->count; c++)
        for (int part = 0; part < cut->parts; part++) {
            if (!part_kept(cut, part, folding->view.extent[cut->dim]))
                continue;
            first = first < 0 ? part : first;
            for (int i = 0; i < size; i++)
                devices[count++] = crews->devices[c * crews->size + seated[part * size + i]];
        }
    folding->first->shape = part_shape(folding, cut);
    const Layout *from = folding->first->from;
    folding->first->from = part_layout(folding, from, cut, 0, first);
    folding->first->to = part_layout(folding, folding->first->to, cut, from->group_count, first);
    crews->count *= cut->kept;
    crews->size = size;
    crews->devices = devices;
    folding->view = layout_view(folding->first->from, folding->first->shape);
    number_members(folding->arena, crews, 1);
}

/* ---- all ---- */

/* Widens what `crews` covers by the devices of a layout. */
static void cover(ReplicaGroups *crews, const int *devices, int count)
{
    for (int i = 0; i < count; i++) {
        int most = crews->least + crews->span - 1;
        most = !crews->span || devices[i] > most ? devices[i] : most;
        crews->least = !crews->span || devices[i] < crews->least ? devices[i] : crews->least;
        crews->span = most - crews->least + 1;
    }
}

/* All devices of all layouts as one crew. */
static ReplicaGroups one_crew(Arena *arena, const Conversion *conversions, int count)
{
    ReplicaGroups crews = {.count = 1};
    int total = 0, *counts = arena_array(arena, int, 2 * count), *all;
    const int **sides = arena_array(arena, const int *, 2 * count);
    for (int side = 0; side < 2 * count; side++) {
        const Conversion *own = &conversions[side / 2];
        sides[side] = layout_devices(arena, side % 2 ? own->to : own->from, &counts[side]);
        cover(&crews, sides[side], counts[side]);
        total += counts[side];
    }
    bool *seen = arena_array(arena, bool, crews.span);
    crews.devices = all = arena_array(arena, int, total);
    for (int side = 0; side < 2 * count; side++)
        for (int i = 0; i < counts[side]; i++)
            if (!seen[sides[side][i] - crews.least]) {
                seen[sides[side][i] - crews.least] = true;
                all[crews.size++] = sides[side][i];
            }
    crews.first = arena_copy(arena, conversions, sizeof *conversions * (size_t)count);
    number_members(arena, &crews, 1);
    return crews;
}

/* Whether states of both layouts number the same dimensions. */
static bool same_view(const Layout *a, const Layout *b)
{
    size_t rank = (size_t)a->view_rank;
    return a->view_rank == b->view_rank &&
           (!rank || (!memcmp(a->view, b->view, sizeof *a->view * rank) && !memcmp(a->view_dim, b->view_dim, sizeof *a->view_dim * rank)));
}

/* Copies of a reduction are no crews: they share the work, and make it once, so that all get the same bits. */
static void fold_pairs(Folding *folding)
{
    Cut cut;
    if (layout_partial(side_of(folding, 0)) != STATE_DUP || layout_partial(side_of(folding, 1)) != STATE_DUP)
        return;
    for (int a = 0; side_of(folding, 0)->group_count == 1 && a < side_of(folding, 0)->groups[0].state_count; a++)
        for (int b = 0; side_of(folding, 1)->group_count == 1 && b < side_of(folding, 1)->groups[0].state_count; b++)
            if (find_pair(folding, a, b, &cut))
                fold(folding, &cut);
}

static ReplicaGroups crews_of_one(Arena *arena, const Conversion *conversion)
{
    Cut cut;
    ReplicaGroups crews = one_crew(arena, conversion, 1);
    Conversion *first = arena_copy(arena, conversion, sizeof *conversion);
    Folding folding = {arena, &crews, first, layout_view(conversion->from, conversion->shape)};
    crews.first = first;
    if (!same_view(conversion->from, conversion->to))
        return crews;
    for (int d = 0; d < folding.view.rank; d++)
        if (find_split(&folding, d, &cut))
            fold(&folding, &cut);
    fold_pairs(&folding);
    number_members(arena, &crews, crews.count);
    return crews;
}

static int compare_ints(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

/* The members' names: the first crew's devices, counted in their order; on a cluster, those of the first that were alike, in that order. */
static const int *find_names(Arena *arena, const ReplicaGroups *crews, const Cluster *cluster, Intern *alike)
{
    int *sorted = arena_copy(arena, crews->devices, sizeof *sorted * (size_t)crews->size), *name = arena_array(arena, int, crews->size);
    qsort(sorted, (size_t)crews->size, sizeof *sorted, compare_ints);
    const int *first = cluster ? cluster_equivalent_devices(alike, cluster, sorted, crews->size) : NULL;
    for (int i = 0; i < crews->size; i++)
        name[crews->member[sorted[i] - crews->least]] = first ? first[i] : i;
    return name;
}

/* A layout by the names of the first crew's devices. */
static const Layout *named_layout(Arena *arena, const ReplicaGroups *crews, const Layout *layout)
{
    Layout *own = arena_copy(arena, layout, sizeof *layout);
    Group *groups = arena_copy(arena, layout->groups, sizeof *groups * (size_t)layout->group_count);
    for (int g = 0; g < layout->group_count; g++) {
        int *devices = arena_array(arena, int, groups[g].device_count);
        for (int i = 0; i < groups[g].device_count; i++)
            devices[i] = crews->name[crews->member[groups[g].devices[i] - crews->least]];
        groups[g].devices = devices;
    }
    own->groups = groups;
    return own;
}

/* Gives the first crew's devices their names. */
static void name_members(Arena *arena, ReplicaGroups *crews, const Cluster *cluster, Intern *alike, int count)
{
    Conversion *first = arena_copy(arena, crews->first, sizeof *first * (size_t)count);
    crews->name = find_names(arena, crews, cluster, alike);
    for (int t = 0; t < count; t++) {
        first[t].from = named_layout(arena, crews, first[t].from);
        first[t].to = named_layout(arena, crews, first[t].to);
    }
    crews->first = first;
}

static bool same_crews(const ReplicaGroups *a, const ReplicaGroups *b)
{
    return a->count == b->count && a->size == b->size && !memcmp(a->devices, b->devices, sizeof *a->devices * (size_t)(a->count * a->size));
}

/* The crews of conversions that fall apart alike; else one. */
static ReplicaGroups common_crews(Arena *arena, const Conversion *conversions, int count)
{
    ReplicaGroups crews = crews_of_one(arena, &conversions[0]);
    Conversion *first = arena_copy(arena, conversions, sizeof *conversions * (size_t)count);
    first[0] = crews.first[0];
    for (int t = 1; t < count; t++) {
        ReplicaGroups own = crews_of_one(arena, &conversions[t]);
        if (!same_crews(&own, &crews))
            return one_crew(arena, conversions, count);
        first[t] = own.first[0];
    }
    crews.first = first;
    return crews;
}

ReplicaGroups replica_groups_of(Arena *arena, const Cluster *cluster, Intern *alike, const Conversion *conversions, int count)
{
    ReplicaGroups crews = cluster ? one_crew(arena, conversions, count) : common_crews(arena, conversions, count);
    crews.name = crews.devices;
    if (!cluster || alike)
        name_members(arena, &crews, cluster, alike, count);
    return crews;
}

int replica_groups_name(const ReplicaGroups *crews, int device)
{
    int at = device - crews->least;
    return at < 0 || at >= crews->span || crews->member[at] < 0 ? -1 : crews->name[crews->member[at]];
}

int64_t replica_groups_bytes(const ReplicaGroups *crews, const Plan *plan)
{
    int64_t bytes;
    return __builtin_mul_overflow(plan_bytes(plan), (int64_t)crews->count, &bytes) ? INT64_MAX : bytes;
}
