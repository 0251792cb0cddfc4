/* Matrix products with an epilogue: an elementwise operator on the product's result. */
#include "passes/fuse/fuse.h"

/* Returns whether every tensor is complete (value_is_complete) and no operand is f64. */
static bool tensors_fit(const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && (!value_is_complete(op->operands[k], &op->binding->operands[k]) ||
                                op->operands[k]->type.dtype == DTYPE_F64))
            return false;
    return value_is_complete(op->results[0], &op->binding->results[0]);
}

/* Returns the product's loop for each bound factor of the epilogue. */
static const int *applied_loops(Fuse *fuse, const Op *product, const Op *applied) {
    int *loop = arena_array(fuse->arena, int, applied->binding->factor_count + 1);
    const BoundAccess *made = &product->binding->results[0], *read = &applied->binding->operands[0];
    for (int d = 0; d < read->rank; d++) loop[read->dims[d].factors[0]] = made->dims[d].factors[0];
    return loop;
}

/* Returns the bound factors that the product sums over; bit f: bound factor f. */
static uint32_t contracted(const Op *product) {
    const BoundAccess *made = &product->binding->results[0];
    uint32_t set = (UINT32_C(1) << product->binding->factor_count) - 1;
    for (int d = 0; d < made->rank; d++) set &= ~(UINT32_C(1) << made->dims[d].factors[0]);
    return set;
}

FuseGroup *group_of_product(Fuse *fuse, Op *product, Op *applied) {
    int count = product->binding->factor_count, *loop = arena_array(fuse->arena, int, count + 1);
    int64_t *extent = arena_array(fuse->arena, int64_t, count + 1);
    if (product->def->rule->form != RULE_PRODUCT || !applied->def->rule->epilogue ||
        count >= IR_MAX_FACTORS || !tensors_fit(product) || !tensors_fit(applied) ||
        product->results[0]->type.dtype != applied->results[0]->type.dtype)
        return NULL;
    for (int f = 0; f < count; f++) {
        loop[f] = f;
        extent[f] = product->binding->factors[f].extent;
    }
    FuseGroup *group = arena_new(fuse->arena, FuseGroup);
    *group = (FuseGroup){.rank = count,
                         .extent = extent,
                         .rows = true,
                         .inner = contracted(product),
                         .epilogue = applied->def->rule->epilogue};
    array_push(fuse->arena, &group->members, (Member){product, loop});
    array_push(fuse->arena, &group->members,
               (Member){applied, applied_loops(fuse, product, applied)});
    return group_is_sound(fuse, group) ? group : NULL;
}
