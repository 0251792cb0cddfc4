/* Statement `zero` (ZeRO): the layout of optimizer states, and which levels give it to gradients
 * and parameters, too.
 *
 *     w : [ffn, embed]  {dup:dp, ffn:tp}     zero     ->   states {embed:dp, ffn:tp}
 *
 * All axes (or those that `zero` names) that replicate a parameter cut one dimension. From level 2
 * on, propagate_layouts.c converts gradients (reduce_gradients, kept_layout); on level 3,
 * seed_layouts.c lays out parameters (place_parameter), and propagate_layouts.c drops their
 * gathered copies after each layer (end_layer). These layouts decide whether a gradient has a
 * reduce-scatter or an all-reduce (reshard/reduce/reduce.h). */
#include "passes/seed_layouts/seed_layouts.h"

#include <string.h>

/* Returns the dimension whose pieces are each cut into `pieces` again: the first that allows equal
 * pieces, else the dimension with the longest pieces; -1: the value is a scalar. */
static int best_dim(const Mesh *mesh, const Value *value, const Sharding *sharding, int pieces) {
    int best = -1;
    for (int d = 0; d < value->type.rank; d++) {
        int64_t most = (int64_t)sharding_pieces(mesh, sharding, d) * pieces;
        if (value->type.extent[d] % most == 0 && value->type.extent[d]) return d;
        if (best < 0 || value->type.extent[d] / sharding_pieces(mesh, sharding, d) >
                            value->type.extent[best] / sharding_pieces(mesh, sharding, best))
            best = d;
    }
    return best;
}

/* Returns whether `zero` cuts states along this axis of a mesh. */
static bool is_zero_axis(const Module *module, const Mesh *mesh, int axis) {
    const Strategy *strategy = module->strategy;
    bool cuts = module_zero(module) > 0 && !strategy->zero_axes.count;
    for (int k = 0; module_zero(module) > 0 && k < strategy->zero_axes.count; k++)
        cuts |= !strcmp(strategy->zero_axes.at[k], mesh->axis[axis].name);
    return cuts;
}

/* Returns the layout of the states of a parameter without sharding; `zero` cuts its replicas. */
static const Layout *spread_layout(Module *module, const Value *param) {
    if (module_zero(module) == 0 || module->strategy->zero_axes.count) return param->layout;
    return module_layout_shard_replicas(module, param->layout, param->type);
}

const Layout *states_layout(Module *module, const Mesh *mesh, const Value *param) {
    Sharding sharding;
    int pieces = 1;
    if (!sharding_of_layout(mesh, param->layout, &sharding)) return spread_layout(module, param);
    for (int a = 0; a < mesh->axis_count; a++)
        if (is_zero_axis(module, mesh, a) && sharding.at[a] == AXIS_DUP)
            pieces *= mesh->axis[a].count;
    int dim = best_dim(mesh, param, &sharding, pieces);
    for (int a = 0; a < mesh->axis_count && dim >= 0; a++)
        if (is_zero_axis(module, mesh, a) && sharding.at[a] == AXIS_DUP)
            sharding_cut(mesh, &sharding, a, dim, false);
    return sharding_layout(mesh, &sharding, module_interned(module));
}

bool zero_cuts_gradients(const Module *module) { return module_zero(module) >= 2; }

/* Level 3 cuts parameters, unless the source writes a layout. Every level cuts a value that an
 * optimizer rule keeps. */
bool zero_cuts_parameter(const Module *module, const Parameter *parameter) {
    return module_zero(module) >= (parameter->kept ? 1 : 3) && !parameter->value->user_layout;
}
