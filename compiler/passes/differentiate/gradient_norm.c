/* The norm of all gradients, for gradient clipping.
 *
 *     n = square_sum(dw) + square_sum(db)      each rank takes its own pieces of dw and db
 *     w', m', v' = adamw(w, dw, m, v, n)       scales dw by min(1, clip / (sqrt(n) + 1e-6))
 *
 * Each element counts on one rank only. Layout propagation makes n a partial sum, and one
 * all-reduce adds it over all ranks (propagate_layouts/non_mesh_layouts.c, defer_reductions.c).
 *
 * The optimizer's kernels clip (clip_factor of runtime/cpu/optimizer.c). */
#include "passes/differentiate/differentiate.h"

#include "ir/module.h"

Value *gradient_norm(Differentiator *diff) {
    Module *module = diff->module;
    const OpDef *square = rule_inserted(
        module->arena, "square_sum",
        "n[] = square_sum(g[i..], ?more[]) reduction(+: i) plus(n: more) inplace(n: more) "
        "operations(2 * size(i)) kernel(ht_square_sum_kernel) grad(none)");
    Array(Value *) terms = {0};
    Value *norm = NULL;
    for (int i = 0; i < module->params.count; i++) {
        Value *operands[] = {module->params.at[i]->gradient, NULL};
        if (operands[0])
            array_push(module->arena, &terms, emit_op(diff, square, operands, 2, NULL));
    }
    for (int t = 0; t < terms.count; t++)
        norm = norm ? emit_sum(diff, norm, terms.at[t]) : terms.at[t];
    return norm;
}
