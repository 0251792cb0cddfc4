/* Converts between shardings (axes on dimensions, as PartitionSpec) and layouts over devices. */
#include "passes/seed_layouts/sharding.h"

#include <string.h>

Sharding sharding_whole(void) {
    Sharding sharding;
    memset(&sharding, 0, sizeof sharding);
    memset(sharding.at, AXIS_DUP, sizeof sharding.at);
    return sharding;
}

void sharding_cut(const Mesh *mesh, Sharding *sharding, int axis, int dim, bool zigzag) {
    int major = 0;
    if (mesh->axis[axis].count == 1) return;
    for (int a = 0; a < mesh->axis_count; a++) major += a != axis && sharding->at[a] == dim;
    sharding->at[axis] = (int8_t)dim;
    sharding->major[axis] = (int8_t)major;
    sharding->zigzag[axis] = zigzag;
}

int sharding_pieces(const Mesh *mesh, const Sharding *sharding, int dim) {
    int pieces = 1;
    for (int a = 0; a < mesh->axis_count; a++)
        if (sharding->at[a] == dim) pieces *= mesh->axis[a].count;
    return pieces;
}

Sharding sharding_named(const Mesh *mesh, const Value *value, uint16_t without) {
    Sharding sharding = sharding_whole();
    for (int i = 0; value->dims && i < mesh->rules.count; i++) {
        const MeshRule *rule = &mesh->rules.at[i];
        for (int d = 0; d < value->type.rank && !(without >> rule->axis & 1); d++)
            if (dim_equal(dim_name(value->dims, d), rule->dim) &&
                sharding.at[rule->axis] == AXIS_DUP) {
                sharding_cut(mesh, &sharding, rule->axis, d, rule->zigzag);
                break;
            }
    }
    return sharding;
}

Sharding sharding_complete(Sharding sharding) {
    for (int a = 0; a < MESH_MOST; a++)
        if (sharding.at[a] < AXIS_DUP) sharding.at[a] = AXIS_DUP;
    return sharding;
}

bool sharding_equal(const Mesh *mesh, const Sharding *a, const Sharding *b) {
    for (int i = 0; i < mesh->axis_count; i++)
        if (mesh->axis[i].count > 1 &&
            (a->at[i] != b->at[i] ||
             (a->at[i] >= 0 && (a->major[i] != b->major[i] || a->zigzag[i] != b->zigzag[i]))))
            return false;
    return true;
}

/* ---- layouts ---- */

/* Writes the mesh's axes to order[]: in order, but the major one of a dimension's axes first. */
static void order_axes(const Mesh *mesh, const Sharding *sharding, int *order) {
    bool placed[MESH_MOST] = {false};
    for (int n = 0; n < mesh->axis_count; n++)
        for (int a = 0; a < mesh->axis_count; a++) {
            bool ready = !placed[a];
            for (int b = 0; ready && b < mesh->axis_count; b++)
                ready = placed[b] || b == a || sharding->at[a] < 0 ||
                        sharding->at[b] != sharding->at[a] ||
                        sharding->major[b] > sharding->major[a];
            if (ready) {
                placed[order[n] = a] = true;
                break;
            }
        }
}

/* Returns the device at mixed-radix position `index` over the axes in `order`, after the pieces
 * have moved by `moved` along each axis. */
static int device_at(const Mesh *mesh, const int *order, const int *moved, int index) {
    int coordinate[MESH_MOST], position = 0;
    for (int n = mesh->axis_count - 1; n >= 0; n--) {
        int count = mesh->axis[order[n]].count;
        coordinate[order[n]] = (index % count + count - moved[order[n]]) % count;
        index /= count;
    }
    for (int a = 0; a < mesh->axis_count; a++)
        position = position * mesh->axis[a].count + coordinate[a];
    return mesh->devices[position];
}

static State axis_state(const Mesh *mesh, const Sharding *sharding, int axis) {
    int at = sharding->at[axis];
    State state;
    memset(&state, 0, sizeof state);
    state.kind = at >= 0          ? STATE_SPLIT
                 : at == AXIS_DUP ? STATE_DUP
                 : at == AXIS_SUM ? STATE_SUM
                                  : STATE_MAX;
    state.dim = at >= 0 ? at : 0;
    state.count = mesh->axis[axis].count;
    state.weights = at >= 0 ? mesh->axis[axis].weights : NULL;
    state.zigzag = at >= 0 && sharding->zigzag[axis];
    return state;
}

/* Writes the axes' states to states[] in order, equal neighbours merged. Returns their number. */
static int states_of(const Mesh *mesh, const Sharding *sharding, const int *order, State *states) {
    int count = 0;
    for (int n = 0; n < mesh->axis_count; n++) {
        State state = axis_state(mesh, sharding, order[n]);
        State *last = count ? &states[count - 1] : NULL;
        if (state.count == 1) continue;
        if (last && last->kind == state.kind && last->dim == state.dim &&
            last->zigzag == state.zigzag && !last->weights && !state.weights)
            last->count *= state.count;
        else states[count++] = state;
    }
    return count;
}

const Layout *sharding_layout(const Mesh *mesh, const Sharding *sharding, Intern *shared) {
    static const int nowhere[MESH_MOST];
    return sharding_moved_layout(mesh, sharding, nowhere, shared);
}

static const Layout *make_layout(const Mesh *mesh, const Sharding *sharding, const int *moved,
                                 Intern *shared) {
    int order[MESH_MOST];
    State states[MESH_MOST];
    Arena *scratch = arena_create();
    int *devices = arena_array(scratch, int, mesh->device_count);
    order_axes(mesh, sharding, order);
    for (int i = 0; i < mesh->device_count; i++) devices[i] = device_at(mesh, order, moved, i);
    Group group = {.device_count = mesh->device_count, .devices = devices, .states = states};
    group.state_count = states_of(mesh, sharding, order, states);
    const Layout *layout = layout_intern(shared, &(Layout){.group_count = 1, .groups = &group});
    arena_destroy(scratch);
    return layout;
}

/* The key of a cached layout in `shared`: everything that the layout depends on. */
typedef struct Spoken {
    const Mesh *mesh;
    int at[MESH_MOST], major[MESH_MOST], zigzag[MESH_MOST], moved[MESH_MOST];
} Spoken;

const Layout *sharding_moved_layout(const Mesh *mesh, const Sharding *sharding, const int *moved,
                                    Intern *shared) {
    Spoken spoken;
    memset(&spoken, 0, sizeof spoken);
    spoken.mesh = mesh;
    for (int a = 0; a < mesh->axis_count; a++) {
        spoken.at[a] = sharding->at[a];
        spoken.major[a] = sharding->at[a] >= 0 ? sharding->major[a] : 0;
        spoken.zigzag[a] = sharding->at[a] >= 0 && sharding->zigzag[a];
        spoken.moved[a] = moved[a];
    }
    const Layout *layout = *(const Layout **)intern_slot(shared, &spoken, sizeof spoken);
    if (layout) return layout;
    // make_layout may resize the table, so the entry is looked up again
    layout = make_layout(mesh, sharding, moved, shared);
    return *(const Layout **)intern_slot(shared, &spoken, sizeof spoken) = layout;
}

/* Returns the distance between neighbours along an axis in the mesh's list of devices. */
static int stride_of(const Mesh *mesh, int axis) {
    int stride = 1;
    for (int a = axis + 1; a < mesh->axis_count; a++) stride *= mesh->axis[a].count;
    return stride;
}

/* Writes to order[] the axes as a group counts its devices, the last axis fastest. Skips axes of
 * size 1. Returns the number of axes; -1: the group follows no such order. */
static int find_order(const Mesh *mesh, const Group *group, int *order) {
    int step = 1, count = 0;
    bool placed[MESH_MOST] = {false};
    for (int a = 0; a < mesh->axis_count; a++) count += mesh->axis[a].count > 1;
    for (int n = count - 1; n >= 0; n--) {
        order[n] = -1;
        for (int a = 0; a < mesh->axis_count; a++)
            if (mesh->axis[a].count > 1 && !placed[a] &&
                group->devices[step] == mesh->devices[stride_of(mesh, a)])
                order[n] = a;
        if (order[n] < 0) return -1;
        placed[order[n]] = true;
        step *= mesh->axis[order[n]].count;
    }
    return count;
}

/* Returns whether a group lists the devices of the mesh in this order of the axes. */
static bool counts_devices(const Mesh *mesh, const Group *group, const int *order, int count) {
    for (int i = 0; i < mesh->device_count; i++) {
        int position = 0, rest = i;
        for (int n = count - 1; n >= 0; n--) {
            position += rest % mesh->axis[order[n]].count * stride_of(mesh, order[n]);
            rest /= mesh->axis[order[n]].count;
        }
        if (group->devices[i] != mesh->devices[position]) return false;
    }
    return true;
}

/* Returns whether a split state has the same weights as the axis; true for other states. */
static bool same_weights(const State *state, const Axis *axis) {
    if (state->kind != STATE_SPLIT || !state->weights || !axis->weights)
        return state->kind != STATE_SPLIT || state->weights == axis->weights;
    return state->count == axis->count &&
           !memcmp(state->weights, axis->weights, sizeof *axis->weights * (size_t)axis->count);
}

/* Assigns a group's states to axes in order. Returns false if a state covers a part of an axis. */
static bool assign_states(const Mesh *mesh, const Group *group, const int *order, int count,
                          Sharding *sharding) {
    static const int8_t uses[] = {
        [STATE_DUP] = AXIS_DUP, [STATE_SUM] = AXIS_SUM, [STATE_MAX] = AXIS_MAX};
    for (int s = 0, n = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        for (int rest = state->count; rest > 1; n++) {
            if (n == count || rest % mesh->axis[order[n]].count ||
                !same_weights(state, &mesh->axis[order[n]]))
                return false;
            rest /= mesh->axis[order[n]].count;
            if (state->kind == STATE_SPLIT)
                sharding_cut(mesh, sharding, order[n], state->dim, state->zigzag);
            else sharding->at[order[n]] = uses[state->kind];
        }
    }
    return true;
}

bool sharding_of_layout(const Mesh *mesh, const Layout *layout, Sharding *sharding) {
    int order[MESH_MOST];
    const Group *group = &layout->groups[0];
    *sharding = sharding_whole();
    if (layout->group_count != 1 || layout->view_rank || group->device_count != mesh->device_count)
        return false;
    int count = find_order(mesh, group, order);
    return count >= 0 && counts_devices(mesh, group, order, count) &&
           assign_states(mesh, group, order, count, sharding);
}
