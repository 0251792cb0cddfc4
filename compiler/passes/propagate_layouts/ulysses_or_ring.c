/* Context parallelism where an axis cuts the sequence: a ring (ring attention) or Ulysses.
 *
 *     turns seq:cp              keys and values move round cp; each device keeps its queries
 *     split seq:cp heads:cp     all-to-alls give each device all rows of some heads (Ulysses)
 *
 * This file selects a ring if the strategy has `turns`. Otherwise split rules cut a factor of the
 * operator (assign_axes.c), and conversions of its operands become all-to-alls or all-gathers. */
#include "passes/propagate_layouts/assign_axes.h"

/* Returns whether no tensor has both factors: every tensor has pieces along one factor at most. */
static bool are_apart(const Op *op, int f, int g) {
    for (int k = 0; k < op->operand_count + op->result_count; k++) {
        const BoundAccess *access = k < op->operand_count
                                        ? &op->binding->operands[k]
                                        : &op->binding->results[k - op->operand_count];
        if (factor_dim(access, f) >= 0 && factor_dim(access, g) >= 0) return false;
    }
    return true;
}

/* Returns whether every present term of a body has the factor. A term without it would be added in
 * each ring step. */
static bool terms_have(const Op *op, const Expr *expr, int factor) {
    const Rule *rule = op->def->rule;
    if (expr->kind == EXPR_ADD || expr->kind == EXPR_SUB)
        return terms_have(op, expr->arg[0], factor) && terms_have(op, expr->arg[1], factor);
    if (expr->kind == EXPR_NEG) return terms_have(op, expr->arg[0], factor);
    bool has = false;
    for (int k = 0; k < op->operand_count; k++) {
        int access = op->binding->operands[k].access;
        bool mentions = expr_mentions(expr, EXPR_ACCESS, access);
        if (mentions && !op->operands[k]) return true;
        has = has || (mentions && access_has(&rule->operands[access], factor));
    }
    return has;
}

/* Returns whether some operand with the factor has no version that is whole along the axis. */
static bool arrives_cut(const Assigner *assigner, const Op *op, Version *const *versions, int axis,
                        int f) {
    for (int k = 0; k < op->operand_count; k++) {
        bool whole = !op->operands[k] || factor_dim(&op->binding->operands[k], f) < 0;
        for (const Version *version = versions[k]; !whole && version; version = version->next)
            whole = VERSION_KNOWN(assigner, version) && version->sharding.at[axis] == AXIS_DUP;
        if (!whole) return true;
    }
    return false;
}

/* Returns the RuleUse of the split rule that gives a factor an axis, if the strategy has `turns` of
 * the factor along the axis; otherwise NULL. */
static RuleUse *rule_of_turns(const Assigner *assigner, const Op *op, int axis, int f) {
    const Mesh *mesh = assigner->mesh;
    DimName name = factor_name(op, f);
    if (!name.name || !assigner->module->strategy ||
        !strategy_turns(assigner->module->strategy, name.name, mesh->axis[axis].name))
        return NULL;
    for (int i = 0; i < mesh->rules.count; i++)
        if (mesh->rules.at[i].axis == axis && dim_equal(mesh->rules.at[i].dim, name))
            return &assigner->rules[i];
    return NULL;
}

/* Returns whether an operator cut along factor g allows a ring step for each piece of factor f. */
static bool may_turn(const Op *op, int f, int g) {
    const Rule *rule = op->def->rule;
    int factor = op->binding->factors[f].factor;
    if (rule->kind == RULE_VIEW || factor < 0 || !factor_takes_pieces(op, f) ||
        !are_apart(op, f, g))
        return false;
    if (!rule->factors[factor].merge && !rule->factors[factor].reduction) return false;
    return rule->kind != RULE_BODY || terms_have(op, rule->body, factor);
}

void choose_ring(const Assigner *assigner, const Op *op, Version *const *versions,
                 Assignment *assignment) {
    for (int i = 0; i < assignment->order_count; i++) {
        int a = assignment->order[i], cut = assignment->factor[a];
        for (int f = 0; f < op->binding->factor_count && assigner->mesh->axis[a].count > 1; f++) {
            RuleUse *use = f != cut && (assignment->ring_factor < 0 || assignment->ring_factor == f)
                               ? rule_of_turns(assigner, op, a, f)
                               : NULL;
            if (!use || !arrives_cut(assigner, op, versions, a, f)) continue;
            if (may_turn(op, f, cut)) {
                assignment->ring_factor = f;
                assignment->ring_axes |= UINT32_C(1) << a;
            } else {
                use->stayed = op;
            }
        }
    }
}
