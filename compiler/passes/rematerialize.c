/* Pass rematerialize: repeats, in the backward section, conversions that enlarge a value, instead
 * of keeping their results. recompute/recompute.c is activation checkpointing (JAX's remat).
 * Nothing is offloaded to the host.
 *
 *     before    k' = reshard(k)      an all-gather from {seq:cp} to {dup:cp}, kept for backward
 *     after     k' = reshard(k)      forward
 *               k'' = reshard(k)     backward gathers again; only k is kept
 *
 * Requires: pass propagate_layouts.
 *
 * Leaves: a copy in the backward section of each forward conversion that gives devices more
 * elements than they had. Examples are gathers of keys, values, activations and parameters. */
#include "ir/analysis/phases.h"
#include "passes/recompute/clone.h"

#include "passes/pass_manager.h"
#include "support/array.h"

#include <stdlib.h>
#include <string.h>

/* Returns the elements that all devices hold together, divided by the elements of the tensor. */
static double layout_copies(const Layout *layout) {
    double copies = 0, weights = 0;
    for (int g = 0; g < layout->group_count; g++) {
        double group =
            layout->top == TOP_SPLIT && layout->top_weights ? (double)layout->top_weights[g] : 1;
        weights += group;
        for (int s = 0; s < layout->groups[g].state_count; s++)
            group *= layout->groups[g].states[s].kind == STATE_SPLIT
                         ? 1
                         : layout->groups[g].states[s].count;
        copies += group;
    }
    return layout->top == TOP_SPLIT ? copies / weights : copies;
}

/* Returns the devices of a layout in ascending order. */
static const int *sorted_devices(Arena *scratch, const Layout *layout, int *count) {
    const int *devices = layout_devices(scratch, layout, count);
    int *sorted = arena_copy(scratch, devices, sizeof *devices * (size_t)*count);
    qsort(sorted, (size_t)*count, sizeof *sorted, compare_ints);
    return sorted;
}

static bool same_devices(Arena *scratch, const Layout *a, const Layout *b) {
    int a_count, b_count;
    const int *of_a = sorted_devices(scratch, a, &a_count),
              *of_b = sorted_devices(scratch, b, &b_count);
    return a_count == b_count && !memcmp(of_a, of_b, sizeof *of_a * (size_t)a_count);
}

/* Returns whether a conversion gives the same devices more elements of a value than they had. */
static bool enlarges(Arena *scratch, const Module *module, const Op *op) {
    const double rounding = 1e-9;
    if (op->def != module->builtin->reshard || op_crosses_stages(module, op)) return false;
    const Layout *from = op->operands[0]->layout, *to = op->results[0]->layout;
    return layout_copies(to) > layout_copies(from) * (1 + rounding) &&
           same_devices(scratch, from, to);
}

/* Returns whether an operator is a view of a value that may be computed again. */
static bool reshapes(const Op *op, const bool *may) {
    return op->def->rule->kind == RULE_VIEW && op->operands[0]->def &&
           may[op->operands[0]->def->index];
}

void pass_rematerialize(Module *module, const PassContext *context) {
    (void)context;
    Arena *scratch = arena_create();
    bool *may = arena_array(scratch, bool, module->ops.count), any = false;
    int *region = arena_array(scratch, int, module->ops.count);
    ir_number(module);
    // select the conversions, and the views of their results
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        may[i] = op_in_step(module, op) && (enlarges(scratch, module, op) || reshapes(op, may));
        any |= may[i];
    }
    if (any) make_anew(module, &(Anew){may, region});
    arena_destroy(scratch);
}
