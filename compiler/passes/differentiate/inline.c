/* Inlines gradient functions: copies into the backward section the operators on which needed
 * gradients depend. Leaves out terms that are 0 because no gradient arrives at some results.
 *
 *     y, s = f(x) with the gradient function dx = g(dy) + h(ds)
 *     inlined when only y is read:   dx = g(dy)
 */
#include "passes/differentiate/differentiate.h"

#include "rule/expr.h"

/* Returns whether the gradient of `operand` that the function returns is needed. */
static bool return_wanted(const Differentiator *diff, int operand) {
    const Op *op = diff->forward;
    const Value *value = op->gradient->returns.at[operand];
    return op->operands[operand] && diff->needs[op->operands[operand]->id] && value &&
           !diff->vanishes[value->id];
}

/* ---- zeros ---- */

/* Returns the operand of the rule that an operator's operand is bound to. */
static int rule_operand(const Op *op, int operand) { return op->binding->operands[operand].access; }

static bool operand_vanishes(const Differentiator *diff, const Op *op, int operand) {
    return op->operands[operand] && diff->vanishes[op->operands[operand]->id];
}

/* Returns whether a group of operands in which the rule is linear has members and all are 0. */
static bool group_vanishes(const Differentiator *diff, const Op *op, const int *groups, int group) {
    bool any = false;
    for (int k = 0; k < op->operand_count; k++) {
        if (!op->operands[k] || groups[rule_operand(op, k)] != group) continue;
        if (!diff->vanishes[op->operands[k]->id]) return false;
        any = true;
    }
    return any;
}

static bool result_vanishes(const Differentiator *diff, const Op *op) {
    int *groups = arena_array(diff->module->arena, int, op->def->rule->operand_count + 1);
    rule_linear(op->def->rule, groups);
    for (int k = 0; k < op->def->rule->operand_count; k++)
        if (groups[k] && group_vanishes(diff, op, groups, groups[k])) return true;
    return false;
}

/* Returns whether a term mentions an operand that is 0. */
static bool term_vanishes(const Differentiator *diff, const Op *op, const Expr *term) {
    for (int k = 0; k < op->operand_count; k++)
        if (operand_vanishes(diff, op, k) && expr_mentions(term, EXPR_ACCESS, rule_operand(op, k)))
            return true;
    return false;
}

/* Returns the only nonzero term of a sum if it is an operand: x in x + z with z = 0; else NULL. */
static Value *remaining_operand(const Differentiator *diff, const Op *op) {
    enum { MOST = 8 };
    ExprTerm terms[MOST];
    int left = -1,
        count = op->def->rule->kind == RULE_BODY ? expr_terms(op->def->rule->body, terms, MOST) : 0;
    if (count < 2 || count > MOST) return NULL;
    for (int t = 0; t < count; t++) {
        if (terms[t].expr->kind != EXPR_ACCESS ||
            (!term_vanishes(diff, op, terms[t].expr) && (left >= 0 || terms[t].negative)))
            return NULL;
        if (!term_vanishes(diff, op, terms[t].expr)) left = t;
    }
    for (int k = 0; left >= 0 && k < op->operand_count; k++)
        if (rule_operand(op, k) == terms[left].expr->index && op->operands[k] &&
            type_equal(op->operands[k]->type, op->results[0]->type))
            return op->operands[k];
    return NULL;
}

/* Marks values that are 0: missing gradients of results, and values linear in such zeros. */
static void find_vanishing(Differentiator *diff) {
    const Function *function = diff->forward->gradient;
    for (int i = 0; i < function->params.count; i++)
        if (function->params.at[i])
            diff->vanishes[function->params.at[i]->id] =
                i < diff->forward->result_count && !diff->gradient[diff->forward->results[i]->id];
    for (int i = 0; i < function->ops.count; i++) {
        const Op *op = function->ops.at[i];
        bool vanishes = result_vanishes(diff, op);
        for (int k = 0; k < op->result_count; k++) diff->vanishes[op->results[k]->id] = vanishes;
    }
}

/* ---- needed values ---- */

static bool any_wanted(const Differentiator *diff, const Op *op) {
    for (int k = 0; k < op->result_count; k++)
        if (diff->wanted[op->results[k]->id]) return true;
    return false;
}

/* Returns whether an operator's copy lacks an operand, because the operand is 0 and optional. */
static bool left_out(const Differentiator *diff, const Op *op, int operand) {
    return operand_vanishes(diff, op, operand) &&
           op->def->rule->operands[rule_operand(op, operand)].optional;
}

static void want_operands(Differentiator *diff, const Op *op) {
    Value *remaining = remaining_operand(diff, op);
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && !left_out(diff, op, k) &&
            (!remaining || op->operands[k] == remaining))
            diff->wanted[op->operands[k]->id] = true;
}

/* Marks the values on which needed gradients depend, after clearing the function's marks. */
static void find_wanted(Differentiator *diff) {
    const Function *function = diff->forward->gradient;
    for (int i = 0; i < function->ops.count; i++)
        for (int k = 0; k < function->ops.at[i]->result_count; k++)
            diff->wanted[function->ops.at[i]->results[k]->id] = false;
    for (int i = 0; i < function->params.count; i++)
        if (function->params.at[i]) diff->wanted[function->params.at[i]->id] = false;
    for (int i = 0; i < function->returns.count; i++)
        if (return_wanted(diff, i)) diff->wanted[function->returns.at[i]->id] = true;
    for (int i = function->ops.count - 1; i >= 0; i--)
        if (any_wanted(diff, function->ops.at[i])) want_operands(diff, function->ops.at[i]);
}

/* ---- copies ---- */

/* Returns the gradient of a result; zeros where no gradient arrives. */
static Value *gradient_or_zeros(Differentiator *diff, Value *result) {
    Value *gradient = diff->gradient[result->id];
    if (gradient) return gradient;
    gradient = emit_fill(diff, "zeros", result->type, 0);
    gradient->dims = result->dims;
    return gradient;
}

/* Sets `mapped` of wanted arguments: gradients of results, then results, then operands. */
static void map_arguments(Differentiator *diff) {
    const Op *op = diff->forward;
    const Function *function = op->gradient;
    for (int i = 0; i < function->params.count; i++) {
        const Value *param = function->params.at[i];
        if (!param || !diff->wanted[param->id]) continue;
        int result = i - op->result_count, operand = i - 2 * op->result_count;
        diff->mapped[param->id] = result < 0    ? gradient_or_zeros(diff, op->results[i])
                                  : operand < 0 ? op->results[result]
                                                : op->operands[operand];
    }
}

static void copy_op(Differentiator *diff, const Op *op) {
    Module *module = diff->module;
    Value *remaining = remaining_operand(diff, op);
    if (remaining) {
        diff->mapped[op->results[0]->id] = diff->mapped[remaining->id];
        return;
    }
    Value **operands = arena_array(module->arena, Value *, op->operand_count + 1);
    bool fewer = false;
    for (int i = 0; i < op->operand_count; i++) {
        fewer |= left_out(diff, op, i);
        operands[i] =
            op->operands[i] && !left_out(diff, op, i) ? diff->mapped[op->operands[i]->id] : NULL;
    }
    Op *copy = ir_clone(module, op, operands);
    op_take_place(diff->module->arena, copy, diff->forward);
    copy->section = diff->section;
    for (int i = 0; i < op->result_count; i++) {
        copy->results[i]->name = NULL;
        diff->mapped[op->results[i]->id] = copy->results[i];
    }
    if (fewer) ir_rebind(module, copy);
    array_push(module->arena, &module->ops, copy);
}

/* ---- ignored gradients, and inlining ---- */

/* Returns whether the gradient function uses an argument. */
static bool uses(const Function *function, const Value *param) {
    for (int i = 0; i < function->returns.count; i++)
        if (function->returns.at[i] == param) return true;
    for (int i = 0; i < function->ops.count; i++)
        for (int k = 0; k < function->ops.at[i]->operand_count; k++)
            if (function->ops.at[i]->operands[k] == param) return true;
    return false;
}

/* Reports a result at which a gradient arrives, but whose gradient the function ignores. */
static void check_ignored(const Differentiator *diff) {
    const Op *op = diff->forward;
    const Function *function = op->gradient;
    for (int i = 0; i < op->result_count; i++) {
        const Value *dy = function->params.at[i]; // NULL where the function makes no use of it
        if (!diff->gradient[op->results[i]->id] || (dy && uses(function, dy))) continue;
        diag_error(diff->module->diag, op->at,
                   "the loss depends on the result '%s' of %s, but the gradient ignores it",
                   op->def->rule->results[i].name, op->def->name);
        diag_note(diff->module->diag, op->def->at,
                  "%s does not use dy[%d]: use it there, or give the result to ht_detach where no "
                  "gradient shall flow",
                  function->name, i);
    }
}

void inline_gradient(Differentiator *diff) {
    const Op *op = diff->forward;
    const Function *function = op->gradient;
    // 1: find values that are 0, and values that are needed
    check_ignored(diff);
    find_vanishing(diff);
    find_wanted(diff);
    // 2: copies of the operators
    map_arguments(diff);
    for (int i = 0; i < function->ops.count; i++)
        if (any_wanted(diff, function->ops.at[i])) copy_op(diff, function->ops.at[i]);
    // 3: gradients of the operands
    for (int i = 0; i < op->operand_count; i++)
        if (return_wanted(diff, i))
            add_gradient(diff, op->operands[i], diff->mapped[function->returns.at[i]->id]);
}
