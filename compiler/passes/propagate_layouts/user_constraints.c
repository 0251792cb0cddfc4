/* Constraints from layouts in the source. A layout that a pragma gives a tensor also holds for
 * values computed from it, until a split rule or another pragma changes it.
 *
 *     #pragma hspmd shard(x: batch:dp, embed:tp)
 *     y = gelu(x)      {batch:dp, embed:tp}, although split rules do not cut embed
 *     z = linear(y, w) the product needs y whole along embed: a warning that the layout is undone
 */
#include "passes/propagate_layouts/propagate_layouts.h"

/* Reports, once for each pragma, that an operator needs another layout than the source gives. */
static void report_undone(Propagation *propagation, const Op *op, int k, const UserConstraint *held,
                          const Sharding *need) {
    Text layout = {.arena = propagation->arena};
    if (*held->reported || op->section != SECTION_FORWARD) return;
    *held->reported = true;
    layout_print(&layout, sharding_layout(propagation->mesh, need, propagation->shared));
    diag_warning(propagation->module->diag, op->at,
                 "the layout that the source gives \"%s\" is undone here: %s is %s", held->name,
                 propagate_reason(propagation, op, k), text_bytes(&layout));
    diag_note(propagation->module->diag, held->at,
              "it is given here; where the change is meant, #pragma hspmd reshard(%s: %s) in front "
              "of it says so",
              held->name, text_bytes(&layout));
}

/* Returns the axes along which an operator keeps the constraint of an operand; bit a: axis a. */
static uint32_t followed_axes(Propagation *propagation, const Op *op, int k,
                              const UserConstraint *held, const Assignment *assignment) {
    Sharding need = assignment_operand(propagation->mesh, op, assignment, k);
    uint32_t axes = 0;
    for (int a = 0; a < propagation->mesh->axis_count; a++) {
        bool same = need.at[a] == held->sharding.at[a] &&
                    (need.at[a] < 0 || need.zigzag[a] == held->sharding.zigzag[a]);
        axes |= same ? held->axes & UINT32_C(1) << a : 0;
        if (!same && held->axes >> a & 1 && held->sharding.at[a] >= 0 &&
            propagation->mesh->axis[a].count > 1)
            report_undone(propagation, op, k, held, &need);
    }
    return axes;
}

void propagate_user_constraints(Propagation *propagation, const Op *op, int k,
                                Value *const *results, const Assignment *assignment) {
    const UserConstraint *held = constraint_operand(&propagation->assigner, op, k);
    uint32_t axes = held ? followed_axes(propagation, op, k, held, assignment) : 0;
    for (int r = 0; r < op->result_count && axes; r++) {
        UserConstraint own = *held;
        own.sharding = assignment_result(propagation->mesh, op, assignment, r);
        own.axes = 0;
        for (int a = 0; a < propagation->mesh->axis_count; a++)
            if (axes >> a & 1 && (own.sharding.at[a] >= 0) == (held->sharding.at[a] >= 0) &&
                own.sharding.at[a] >= AXIS_DUP)
                own.axes |= UINT32_C(1) << a;
        own.gradient = op->section != SECTION_FORWARD;
        if (own.axes && !propagation->assigner.constraints[results[r]->id])
            propagation->assigner.constraints[results[r]->id] =
                arena_copy(propagation->arena, &own, sizeof own);
    }
}

void propagate_user_layout(Propagation *propagation, const Value *value) {
    Sharding sharding;
    if (!value->layout_at.file || !value->layout ||
        !sharding_of_layout(propagation->mesh, value->layout, &sharding))
        return;
    UserConstraint *held = arena_new(propagation->arena, UserConstraint);
    *held = (UserConstraint){.at = value->layout_at,
                             .name = value->name ? value->name : "a value",
                             .mesh = propagation->mesh,
                             .sharding = sharding,
                             .axes = UINT32_MAX,
                             .reported = arena_new(propagation->arena, bool)};
    propagation->assigner.constraints[value->id] = held;
}
