#include "passes/place/mesh.h"

#include "cluster/cluster.h"

#include <string.h>

/* ---- axes ---- */

/* The name of dimension "heads.2" without its number, as a length. */
static size_t stem(const char *name) { return strcspn(name, "."); }

/* The extent of the first factor of a name that goes on in a second one ("heads" of "heads.1"); 0 when no value has such a pair. */
static int64_t run_head(const Value *value, const char *dim)
{
    for (int d = 0; value->dims && d + 1 < value->type.rank; d++)
        if (value->dims[d] && value->dims[d + 1] && !strcmp(value->dims[d], dim) && value->dims[d + 1][stem(value->dims[d + 1])] &&
            !strncmp(value->dims[d], value->dims[d + 1], stem(dim)) && stem(value->dims[d + 1]) == stem(dim))
            return value->type.extent[d];
    return 0;
}

/* The extent of the first factor of `dim` in any value of the module in which it goes on; 0 when there is none. */
static int64_t head_extent(const Module *module, const char *dim)
{
    int64_t extent = 0;
    for (int i = 0; !extent && i < module->params.count; i++)
        extent = run_head(module->params.at[i]->value, dim);
    for (int i = 0; !extent && i < module->ops.count; i++)
        for (int r = 0; !extent && r < module->ops.at[i]->result_count; r++)
            extent = run_head(module->ops.at[i]->results[r], dim);
    return extent;
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

static const MeshAxis *find_axis(const Stage *stage, const char *name)
{
    for (int i = 0; i < stage->mesh.count; i++)
        if (!strcmp(stage->mesh.at[i].name, name))
            return &stage->mesh.at[i];
    return NULL;
}

/* Whether some split rule needs this axis in parts: its dimension's first factor takes a part of it and the next the rest. */
static bool must_factor(const Module *module, const MeshAxis *axis)
{
    const Strategy *strategy = module->strategy;
    for (int i = 0; !axis->weights && i < strategy->splits.count; i++)
        for (int k = 0; k < strategy->splits.at[i].axis_count; k++)
            if (!strcmp(strategy->splits.at[i].axes[k], axis->name)) {
                int64_t head = head_extent(module, strategy->splits.at[i].dim);
                if (head && head % axis->count && gcd(head, axis->count) > 1)
                    return true;
            }
    return false;
}

static void add_axis(Module *module, Mesh *mesh, const MeshAxis *axis, int count, const int64_t *weights)
{
    if (mesh->axis_count == MESH_MOST) {
        diag_error(module->diag, axis->at, "the mesh has more than %d axes, counting the prime factors of those that cut merged dimensions",
                   MESH_MOST);
        return;
    }
    mesh->axis[mesh->axis_count++] = (Axis){axis->name, count, weights};
}

/* An axis of the strategy, as a whole or as its primes. */
static void add_axes(Module *module, Mesh *mesh, const MeshAxis *axis)
{
    if (!must_factor(module, axis)) {
        add_axis(module, mesh, axis, axis->count, axis->weights);
        return;
    }
    for (int rest = axis->count, p = 2; rest > 1; p++)
        for (; rest % p == 0; rest /= p)
            add_axis(module, mesh, axis, p, NULL);
}

/* ---- rules ---- */

static void add_rule(Module *module, Mesh *mesh, const char *dim, int axis, Position at)
{
    array_push(module->arena, &mesh->rules, (MeshRule){.dim = dim, .axis = axis, .at = at});
}

/* One `name:axis`: every part of the axis goes to the name's first factor while that divides, then to the next. */
static void add_rules(Module *module, Mesh *mesh, const SplitRule *split, const char *axis, int64_t *cut)
{
    int64_t head = head_extent(module, split->dim);
    const char *next = arena_format(module->arena, "%s.1", split->dim);
    for (int a = 0; a < mesh->axis_count; a++) {
        if (strcmp(mesh->axis[a].name, axis))
            continue;
        bool fits = !head || head % (*cut * mesh->axis[a].count) == 0 || gcd(head, mesh->axis[a].count) == 1;
        if (fits)
            *cut *= mesh->axis[a].count;
        add_rule(module, mesh, fits ? split->dim : next, a, split->at);
    }
}

static void read_zero(Module *module, Mesh *mesh)
{
    const Strategy *strategy = module->strategy;
    mesh->zero = strategy->zero > 0;
    for (int a = 0; a < mesh->axis_count; a++) {
        mesh->zero_axis[a] = strategy->zero_axes.count == 0;
        for (int k = 0; k < strategy->zero_axes.count; k++)
            mesh->zero_axis[a] |= !strcmp(strategy->zero_axes.at[k], mesh->axis[a].name);
    }
}

/* Whether the cluster has all devices of a stage; reports the first that it lacks. */
static bool is_on_cluster(const Module *module, const Stage *stage)
{
    const Cluster *cluster = module->options.cluster;
    for (int i = 0; cluster && i < stage->devices.count; i++)
        if (stage->devices.at[i] >= cluster->device_count) {
            diag_error(module->diag, stage->device_at.at[i], "the cluster has no device %d: %s lists %d, from 0", stage->devices.at[i],
                       module->options.cluster_file, cluster->device_count);
            return false;
        }
    return true;
}

static Mesh *new_mesh(Module *module)
{
    Mesh *mesh = arena_new(module->arena, Mesh);
    mesh->arena = module->arena;
    mesh->cluster = module->options.cluster;
    mesh->microbatches = module->microbatches;
    mesh->prices = intern_create(module->arena);
    return mesh;
}

static Mesh *single_device(Module *module)
{
    static const int zero = 0;
    Mesh *mesh = new_mesh(module);
    mesh->device_count = 1;
    mesh->devices = &zero;
    mesh->ordered = arena_new(module->arena, int);
    return mesh;
}

Mesh *mesh_create(Module *module)
{
    if (!module->strategy)
        return single_device(module);
    const Stage *stage = &module->strategy->pipelines.at[0].stages.at[0];
    if (!is_on_cluster(module, stage))
        return NULL;
    Mesh *mesh = new_mesh(module);
    mesh->device_count = stage->devices.count;
    mesh->devices = stage->devices.at;
    mesh->ordered = arena_array(module->arena, int, mesh->device_count);
    for (int i = 0; i < stage->mesh.count; i++)
        add_axes(module, mesh, &stage->mesh.at[i]);
    for (int i = 0; i < module->strategy->splits.count; i++) {
        const SplitRule *split = &module->strategy->splits.at[i];
        int64_t cut = 1;
        for (int k = 0; k < split->axis_count; k++)
            if (find_axis(stage, split->axes[k]))
                add_rules(module, mesh, split, split->axes[k], &cut);
    }
    read_zero(module, mesh);
    return diag_errors(module->diag) ? NULL : mesh;
}

/* ---- shardings ---- */

Sharding sharding_whole(void)
{
    Sharding sharding;
    memset(&sharding, 0, sizeof sharding);
    memset(sharding.at, AXIS_DUP, sizeof sharding.at);
    return sharding;
}

void sharding_cut(const Mesh *mesh, Sharding *sharding, int axis, int dim)
{
    int major = 0;
    if (mesh->axis[axis].count == 1)
        return;
    for (int a = 0; a < mesh->axis_count; a++)
        major += a != axis && sharding->at[a] == dim;
    sharding->at[axis] = (int8_t)dim;
    sharding->major[axis] = (int8_t)major;
}

int sharding_pieces(const Mesh *mesh, const Sharding *sharding, int dim)
{
    int pieces = 1;
    for (int a = 0; a < mesh->axis_count; a++)
        if (sharding->at[a] == dim)
            pieces *= mesh->axis[a].count;
    return pieces;
}

Sharding sharding_named(const Mesh *mesh, const Value *value)
{
    Sharding sharding = sharding_whole();
    for (int i = 0; value->dims && i < mesh->rules.count; i++)
        for (int d = 0; d < value->type.rank; d++)
            if (value->dims[d] && !strcmp(value->dims[d], mesh->rules.at[i].dim) && sharding.at[mesh->rules.at[i].axis] == AXIS_DUP) {
                sharding_cut(mesh, &sharding, mesh->rules.at[i].axis, d);
                break;
            }
    return sharding;
}

bool sharding_equal(const Mesh *mesh, const Sharding *a, const Sharding *b)
{
    for (int i = 0; i < mesh->axis_count; i++)
        if (mesh->axis[i].count > 1 && (a->at[i] != b->at[i] || (a->at[i] >= 0 && a->major[i] != b->major[i])))
            return false;
    return true;
}

/* ---- layouts ---- */

/* The axes in an order in which the major axes of every dimension come first; that of the mesh wherever it is one. */
static void order_axes(const Mesh *mesh, const Sharding *sharding, int *order)
{
    bool placed[MESH_MOST] = {false};
    for (int n = 0; n < mesh->axis_count; n++)
        for (int a = 0; a < mesh->axis_count; a++) {
            bool ready = !placed[a];
            for (int b = 0; ready && b < mesh->axis_count; b++)
                ready = placed[b] || b == a || sharding->at[a] < 0 || sharding->at[b] != sharding->at[a] ||
                        sharding->major[b] > sharding->major[a];
            if (ready) {
                placed[order[n] = a] = true;
                break;
            }
        }
}

/* The device at mixed-radix position `index` over the axes in `order`. */
static int device_at(const Mesh *mesh, const int *order, int index)
{
    int coordinate[MESH_MOST], position = 0;
    for (int n = mesh->axis_count - 1; n >= 0; n--) {
        coordinate[order[n]] = index % mesh->axis[order[n]].count;
        index /= mesh->axis[order[n]].count;
    }
    for (int a = 0; a < mesh->axis_count; a++)
        position = position * mesh->axis[a].count + coordinate[a];
    return mesh->devices[position];
}

static State axis_state(const Mesh *mesh, const Sharding *sharding, int axis)
{
    int at = sharding->at[axis];
    State state;
    memset(&state, 0, sizeof state);
    state.kind = at >= 0 ? STATE_SPLIT : at == AXIS_DUP ? STATE_DUP : at == AXIS_SUM ? STATE_SUM : STATE_MAX;
    state.dim = at >= 0 ? at : 0;
    state.count = mesh->axis[axis].count;
    state.weights = at >= 0 ? mesh->axis[axis].weights : NULL;
    return state;
}

/* The states in order, neighbours that do the same in one; returns how many. */
static int states_of(const Mesh *mesh, const Sharding *sharding, const int *order, State *states)
{
    int count = 0;
    for (int n = 0; n < mesh->axis_count; n++) {
        State state = axis_state(mesh, sharding, order[n]);
        State *last = count ? &states[count - 1] : NULL;
        if (state.count == 1)
            continue;
        if (last && last->kind == state.kind && last->dim == state.dim && !last->weights && !state.weights)
            last->count *= state.count;
        else
            states[count++] = state;
    }
    return count;
}

const Layout *sharding_layout(const Mesh *mesh, const Sharding *sharding, Intern *shared)
{
    int order[MESH_MOST];
    State states[MESH_MOST];
    memset(states, 0, sizeof states);
    order_axes(mesh, sharding, order);
    for (int i = 0; i < mesh->device_count; i++)
        mesh->ordered[i] = device_at(mesh, order, i);
    Group group;
    Layout layout;
    memset(&group, 0, sizeof group);
    memset(&layout, 0, sizeof layout);
    group.device_count = mesh->device_count;
    group.state_count = states_of(mesh, sharding, order, states);
    group.devices = intern(shared, mesh->ordered, sizeof *mesh->ordered * (size_t)mesh->device_count);
    group.states = intern(shared, states, sizeof *states * (size_t)group.state_count);
    layout.top = TOP_NONE;
    layout.group_count = 1;
    layout.groups = intern(shared, &group, sizeof group);
    return intern(shared, &layout, sizeof layout);
}

/* The sharding that gives a layout's one group its states in turn; false when an axis would have to be cut in two. */
static bool assign_states(const Mesh *mesh, const Group *group, const int *order, Sharding *sharding)
{
    int n = 0;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        int rest = state->count;
        while (rest > 1) {
            if (n == mesh->axis_count || rest % mesh->axis[order[n]].count || state->weights != mesh->axis[order[n]].weights)
                return false;
            rest /= mesh->axis[order[n]].count;
            if (state->kind == STATE_SPLIT)
                sharding_cut(mesh, sharding, order[n], state->dim);
            else
                sharding->at[order[n]] = state->kind == STATE_DUP ? AXIS_DUP : state->kind == STATE_SUM ? AXIS_SUM : AXIS_MAX;
            n++;
        }
    }
    return true;
}

bool sharding_of_layout(const Mesh *mesh, const Layout *layout, Sharding *sharding)
{
    int order[MESH_MOST];
    *sharding = sharding_whole();
    if (layout->group_count != 1 || layout->view_rank || layout->groups[0].device_count != mesh->device_count)
        return false;
    for (int i = 0; i < mesh->device_count; i++)
        if (layout->groups[0].devices[i] != mesh->devices[i])
            return false;
    for (int a = 0; a < mesh->axis_count; a++)
        order[a] = a;
    return assign_states(mesh, &layout->groups[0], order, sharding);
}
