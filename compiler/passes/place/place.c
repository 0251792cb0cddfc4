/* Pass place: parameters, inputs and optimizer states get their layouts.
 *
 * Requires: pass refine. Leaves: a layout on every parameter, state and input.
 */
#include "passes/place/place.h"

#include "passes/pipeline.h"

bool place_stored(const Mesh *mesh, const Value *value, Sharding *sharding)
{
    if (value->shard)
        return sharding_of_layout(mesh, value->shard, sharding);
    *sharding = sharding_named(mesh, value);
    return true;
}

/* The dimension in which `pieces` more pieces are most even: the first that divides, else the longest. -1 for scalars. */
static int best_dim(const Mesh *mesh, const Value *value, const Sharding *sharding, int pieces)
{
    int best = -1;
    for (int d = 0; d < value->type.rank; d++) {
        int64_t most = (int64_t)sharding_pieces(mesh, sharding, d) * pieces;
        if (value->type.extent[d] % most == 0 && value->type.extent[d])
            return d;
        if (best < 0 ||
            value->type.extent[d] / sharding_pieces(mesh, sharding, d) > value->type.extent[best] / sharding_pieces(mesh, sharding, best))
            best = d;
    }
    return best;
}

Sharding place_states(const Mesh *mesh, const Value *param, Sharding sharding)
{
    int pieces = 1;
    for (int a = 0; a < mesh->axis_count; a++)
        if (mesh->zero && mesh->zero_axis[a] && sharding.at[a] == AXIS_DUP)
            pieces *= mesh->axis[a].count;
    int dim = best_dim(mesh, param, &sharding, pieces);
    for (int a = 0; a < mesh->axis_count && dim >= 0 && mesh->zero; a++)
        if (mesh->zero_axis[a] && sharding.at[a] == AXIS_DUP)
            sharding_cut(mesh, &sharding, a, dim);
    return sharding;
}

/* ---- the pass ---- */

static void place_value(const Mesh *mesh, Value *value, Intern *shared)
{
    Sharding sharding;
    value->layout = place_stored(mesh, value, &sharding) ? sharding_layout(mesh, &sharding, shared) : value->shard;
}

static void place_parameter(const Mesh *mesh, Parameter *parameter, Intern *shared)
{
    Sharding sharding;
    place_value(mesh, parameter->value, shared);
    for (int s = 0; s < parameter->state_count; s++) {
        parameter->states[s]->layout = parameter->value->layout;
        if (place_stored(mesh, parameter->value, &sharding)) {
            Sharding states = place_states(mesh, parameter->value, sharding);
            parameter->states[s]->layout = sharding_layout(mesh, &states, shared);
        }
    }
}

void pass_place(Module *module)
{
    Mesh *mesh = mesh_create(module);
    Intern *shared = module_shared(module);
    if (!mesh)
        return;
    for (int i = 0; i < module->params.count; i++)
        place_parameter(mesh, module->params.at[i], shared);
    for (int i = 0; i < module->inputs.count; i++)
        place_value(mesh, module->inputs.at[i], shared);
}
