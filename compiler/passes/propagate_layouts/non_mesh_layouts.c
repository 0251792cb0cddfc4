/* Operators on tensors whose layouts are not shardings of a mesh, such as parameters that several
 * stages read. Elementwise operators and reductions may keep such a layout (stays_in_pieces).
 *
 *     w : {dup} over devices 0, 1 and {dup} over 2, 3 (union of two stages)
 *     norm = sum(w * w)    computed in this layout; each piece counts once
 */
#include "ir/programs/regions.h"
#include "passes/propagate_layouts/propagate_layouts.h"

/* Returns whether no version of a value is a sharding of the mesh, and all versions are complete
 * and on no other stage than `user`. */
static bool in_pieces(const Propagation *propagation, const Value *value, const Op *user) {
    bool pieces = value->kind != VALUE_INPUT || value->micro.kind == MICRO_WHOLE;
    for (const Version *version = propagation->forms[value->id]; pieces && version;
         version = version->next)
        pieces = !VERSION_KNOWN(&propagation->assigner, version) &&
                 !propagate_crosses_stages(version->value, user) &&
                 layout_partial(version->value->layout) == STATE_DUP;
    return pieces;
}

/* Returns whether an operator keeps its operands' layout. True if it belongs to the update, depends
 * on parameters alone, or the source asks for this layout of its result. */
static bool stays_in_pieces(const Propagation *propagation, const Op *op, const Layout *layout) {
    const Value *result = op->results[0];
    return op->section == SECTION_UPDATE || propagation->origin[result->id] == ORIGIN_PARAMETERS ||
           (result->layout && result->type.rank &&
            module_layouts_equal(propagation->module, result->layout, layout, result->type));
}

/* Returns the layout that all operands share and that is not a sharding of the mesh; NULL: the
 * operator cannot use it. */
static const Layout *common_pieces(const Propagation *propagation, const Op *op) {
    const Layout *common = NULL;
    for (int k = 0; k < op->operand_count; k++) {
        const Value *operand = op->operands[k];
        if (!operand || !operand->type.rank) continue;
        const Layout *layout = propagate_newest(propagation, operand)->value->layout;
        if (!in_pieces(propagation, operand, op) ||
            (common && !module_layouts_equal(propagation->module, common, layout, operand->type)))
            return NULL;
        common = layout;
    }
    return common && op_takes_elements(op) && stays_in_pieces(propagation, op, common) ? common
                                                                                       : NULL;
}

/* Returns the sharding of the result of a full reduction: a contribution of each device. */
static Sharding contributions(const Propagation *propagation, const Op *op) {
    Sharding sharding = sharding_whole();
    bool max = false;
    for (int f = 0; f < op->binding->factor_count; f++)
        max |= op->def->rule->factors[op->binding->factors[f].factor].reduction == REDUCE_MAX;
    for (int a = 0; a < propagation->mesh->axis_count; a++)
        sharding.at[a] = max ? AXIS_MAX : AXIS_SUM;
    return sharding;
}

/* Returns a layout that counts every element once: of subgroups that are copies, only the first. */
static const Layout *apart(const Propagation *propagation, const Layout *layout) {
    if (layout->top != TOP_DUP) return layout;
    return layout_intern(propagation->shared,
                         &(Layout){.group_count = 1, .groups = layout->groups});
}

/* Returns a layout in which all devices together count each element once in an operator's scalar
 * result; NULL: there is none. Emitted loops skip all but one of several equal pieces. A kernel
 * skips none, so replicas are cut into distinct parts. */
static const Layout *counted_once(const Propagation *propagation, const Op *op,
                                  const Layout *layout) {
    int k = 0, count;
    int64_t held = 0, elements = 1;
    if (op->def->rule->kind != RULE_CALL) return apart(propagation, layout);
    while (!op->operands[k] || !op->operands[k]->type.rank) k++;
    Type type = op->operands[k]->type;
    Arena *scratch = arena_create();
    const Layout *spread = module_layout_shard_replicas(propagation->module, layout, type);
    const Region *regions =
        layout_regions(scratch, spread, (Shape){type.rank, type.extent}, &count);
    for (int i = 0; i < count; i++) held += regions[i].volume;
    arena_destroy(scratch);
    for (int d = 0; d < type.rank; d++) elements *= type.extent[d];
    return held == elements ? spread : NULL;
}

bool propagate_non_mesh(Propagation *propagation, Op *op) {
    const Layout *layout = common_pieces(propagation, op);
    if (layout && !op->results[0]->type.rank) layout = counted_once(propagation, op, layout);
    if (!layout) return false;
    Sharding whole = sharding_whole(), each = contributions(propagation, op);
    // convert operands to the common layout, and scalars to copies on every device
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k])
            op->operands[k] =
                op->operands[k]->type.rank
                    ? propagate_laid_out(propagation, op->operands[k], layout, op, NULL)
                    : propagate_converted(propagation, op->operands[k], &whole, op,
                                          propagate_reason(propagation, op, k));
    array_push(propagation->module->arena, &propagation->out, op);
    // give results the same layout, and scalars a contribution of each device
    for (int k = 0; k < op->result_count; k++) {
        bool number = !op->results[k]->type.rank;
        propagate_result(propagation, op, k,
                         number ? sharding_layout(propagation->mesh, &each, propagation->shared)
                                : layout,
                         number ? &each : NULL);
    }
    return true;
}
