/* Moves a sum directly before a product whose kernel can compute it (ir/analysis/side_reduction.h).
 *
 *     before    dx = product(dy, w); dw = product(dy, x); db = sum(dy)
 *     after     dx = product(dy, w); db = sum(dy); dw = product(dy, x)    one kernel for both
 */
#include "ir/analysis/side_reduction.h"

#include "passes/fuse/fuse.h"

#include "ir/analysis/phases.h"

/* Returns whether a sum may move before a product: no operator reads the sum earlier. */
static bool may_stand_before(const Fuse *fuse, const Op *sum, const Op *product) {
    const Users *users = &fuse->users[sum->results[0]->id];
    for (int i = 0; i < users->count; i++)
        if (users->at[i]->index < product->index) return false;
    return true;
}

/* Returns a product that can compute the sum and has no other sum yet; NULL: there is none. */
static const Op *product_for(const Fuse *fuse, const Op *sum, Op *const *before) {
    const Users *users =
        sum->operand_count == 1 && sum->operands[0] ? &fuse->users[sum->operands[0]->id] : NULL;
    for (int i = 0; users && i < users->count; i++) {
        const Op *product = users->at[i];
        if (product != sum && !before[product->index] && !product->source->recomputes &&
            !sum->source->recomputes && !sum->run_in_place && !product->run_in_place &&
            same_phase(fuse->module, sum, product) && summed_operand(sum, product) >= 0 &&
            may_stand_before(fuse, sum, product))
            return product;
    }
    return NULL;
}

void place_side_reductions(Fuse *fuse) {
    Module *module = fuse->module;
    Op **before = arena_array(fuse->arena, Op *, module->ops.count + 1);
    bool *moved = arena_array(fuse->arena, bool, module->ops.count + 1);
    Ops ops = {0};
    for (int i = 0; i < module->ops.count; i++) {
        const Op *product = product_for(fuse, module->ops.at[i], before);
        if (!product) continue;
        before[product->index] = module->ops.at[i];
        moved[i] = true;
    }
    for (int i = 0; i < module->ops.count; i++) {
        if (before[i]) array_push(module->arena, &ops, before[i]);
        if (!moved[i]) array_push(module->arena, &ops, module->ops.at[i]);
    }
    module->ops.at = ops.at;
    module->ops.count = ops.count;
    module->ops.capacity = ops.capacity;
    ir_number(module);
}
