/* Fewer key-value heads than tp devices (grouped-query attention): a tp axis larger than the number
 * of key-value heads is divided into prime factors.
 *
 *     split heads:tp
 *     stage devices(0-5) mesh(tp:6)          ->  mesh axes tp:2, tp:3 where `heads` is the merged
 *                                               dimension (kv:2 group:3): 2 cuts kv, 3 cuts group
 */
#include "passes/seed_layouts/seed_layouts.h"

/* Returns the extent of the first factor of a dimension named `dim` that is split into two
 * neighbouring dimensions of the value; 0: the value has no such pair. */
static int64_t run_head(const Value *value, const char *dim) {
    for (int d = 0; d + 1 < value->type.rank; d++) {
        DimName first = dim_name(value->dims, d), next = dim_name(value->dims, d + 1);
        if (dim_equal(first, (DimName){dim, 0}) && next.part &&
            dim_equal(next, (DimName){dim, next.part}))
            return value->type.extent[d];
    }
    return 0;
}

int64_t head_extent(const Module *module, const char *dim) {
    int64_t extent = 0;
    for (int i = 0; !extent && i < module->params.count; i++)
        extent = run_head(module->params.at[i]->value, dim);
    for (int i = 0; !extent && i < module->ops.count; i++)
        for (int r = 0; !extent && r < module->ops.at[i]->result_count; r++)
            extent = run_head(module->ops.at[i]->results[r], dim);
    return extent;
}

int64_t head_gcd(int64_t a, int64_t b) { return b ? head_gcd(b, a % b) : a; }

bool axis_must_factor(const Module *module, const MeshAxis *axis) {
    const Strategy *strategy = module->strategy;
    for (int i = 0; !axis->weights && i < strategy->splits.count; i++)
        for (int k = 0; k < strategy->splits.at[i].axis_count; k++)
            if (!strcmp(strategy->splits.at[i].axes[k], axis->name)) {
                int64_t head = head_extent(module, strategy->splits.at[i].dim);
                if (head && head % axis->count && head_gcd(head, axis->count) > 1) return true;
            }
    return false;
}
