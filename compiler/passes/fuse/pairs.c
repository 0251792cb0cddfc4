/* Pairs: two operators that one operator can compute together (clause `with`). The first computes
 * an operand of the second from other operands of the second.
 *
 *     rule of b: with(x: a, ab)
 *     before    x = a(u, v); y = b(x, u, v)
 *     after     x, y = ab(u, v)
 */
#include "passes/fuse/fuse.h"

#include "ir/analysis/phases.h"

#include <string.h>

static const OpDef *named_def(const Module *module, const char *name) {
    for (int i = 0; name && i < module->library->defs.count; i++)
        if (!strcmp(module->library->defs.at[i]->name, name)) return module->library->defs.at[i];
    return NULL;
}

/* Returns the operand of a call that is bound to operand `index` of its rule; none is variadic. */
static int operand_of_rule(const Op *op, int index) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->binding->operands[k].access == index) return k;
    return -1;
}

/* Returns whether the maker of operand `own` has only operands that `op` has, too. */
static bool shares_operands(const Op *op, int own) {
    const Op *first = op->operands[own]->def;
    for (int k = 0; k < first->operand_count; k++) {
        bool shared = first->operands[k] == NULL;
        for (int i = 0; i < op->operand_count && !shared; i++)
            shared = i != own && op->operands[i] == first->operands[k];
        if (!shared) return false;
    }
    return true;
}

/* Returns whether all readers of a value are at index `place` or later. */
static bool read_from(const Fuse *fuse, const Value *value, int place) {
    const Users *users = &fuse->users[value->id];
    for (int i = 0; i < users->count; i++)
        if (users->at[i]->index < place) return false;
    return true;
}

/* Returns the maker of an operand with which `op` can be computed together; NULL: there is none.
 * The operand must be complete on its devices, so that no conversion is needed. */
static const Op *partner(const Fuse *fuse, const Op *op, const bool *runs_again) {
    const Rule *rule = op->def->rule;
    int own = rule->with.whole ? operand_of_rule(op, rule->with.operand) : -1;
    const Value *value = own < 0 ? NULL : op->operands[own];
    const Op *first = value ? value->def : NULL;
    bool fits = first && !strcmp(first->def->name, rule->with.op) && first->result_count == 1 &&
                first->def->attr_count == 0 && op->def->attr_count == 0 &&
                layout_partial(value->layout) == STATE_DUP && same_phase(fuse->module, first, op) &&
                !first->source->recomputes && !op->source->recomputes &&
                !runs_again[first->index] && !runs_again[op->index] && !first->run_in_place &&
                !op->run_in_place;
    return fits && shares_operands(op, own) && read_from(fuse, value, op->index) ? first : NULL;
}

/* Returns the factor of a rule by its name; -1: there is none. */
static int factor_named(const Rule *rule, const char *name) {
    for (int f = 0; f < rule->factor_count; f++)
        if (!strcmp(rule->factors[f].name, name)) return f;
    return -1;
}

/* Returns whether two accesses of two rules have the same indices. */
static bool same_indices(const Rule *a, const Access *x, const Rule *b, const Access *y) {
    if (x->dim_count != y->dim_count) return false;
    for (int d = 0; d < x->dim_count; d++) {
        if (x->dims[d].count != 1 || y->dims[d].count != 1) return false;
        if (strcmp(a->factors[x->dims[d].factors[0]].name, b->factors[y->dims[d].factors[0]].name))
            return false;
    }
    return true;
}

/* Returns the binding of a tensor of `op` with the indices of this access of `rule`, or NULL. */
static const BoundAccess *bound_like(const Op *op, const Rule *rule, const Access *access) {
    for (int r = 0; r < op->result_count; r++)
        if (same_indices(rule, access, op->def->rule,
                         &op->def->rule->results[op->binding->results[r].access]))
            return &op->binding->results[r];
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] &&
            same_indices(rule, access, op->def->rule,
                         &op->def->rule->operands[op->binding->operands[k].access]))
            return &op->binding->operands[k];
    return NULL;
}

/* Writes to bound[] the bindings of tensors of `op` with equal indices; false if `op` lacks one. */
static bool bind_like(const Op *op, const Rule *rule, const Access *accesses, int count,
                      BoundAccess *bound) {
    for (int i = 0; i < count; i++) {
        const BoundAccess *like = bound_like(op, rule, &accesses[i]);
        if (!like) return false;
        bound[i] = *like;
        bound[i].access = i;
    }
    return true;
}

/* Returns the binding of an operator of `rule` whose tensors have the dimensions of the tensors of
 * `op`; NULL: the rule has other indices. The rule cannot be bound to the tensors directly, because
 * pass factor_dims has split or removed dimensions. */
static const Binding *binding_like(Arena *arena, const Op *op, const Rule *rule) {
    BoundFactor *factors = arena_copy(arena, op->binding->factors,
                                      sizeof *factors * (size_t)op->binding->factor_count);
    BoundAccess *operands = arena_array(arena, BoundAccess, rule->operand_count + 1);
    BoundAccess *results = arena_array(arena, BoundAccess, rule->result_count + 1);
    for (int f = 0; f < op->binding->factor_count; f++) {
        factors[f].factor =
            factor_named(rule, op->def->rule->factors[op->binding->factors[f].factor].name);
        if (factors[f].factor < 0) return NULL;
    }
    if (!bind_like(op, rule, rule->operands, rule->operand_count, operands) ||
        !bind_like(op, rule, rule->results, rule->result_count, results))
        return NULL;
    Binding binding = {op->binding->factor_count,
                       rule->operand_count,
                       rule->result_count,
                       factors,
                       operands,
                       results};
    return arena_copy(arena, &binding, sizeof binding);
}

/* Makes the operator that computes both `first` and `op`; NULL: `def` has other tensors. */
static Op *joined(const Fuse *fuse, const Op *first, const Op *op, const OpDef *def) {
    Arena *arena = fuse->module->arena;
    const Binding *binding = binding_like(arena, op, def->rule);
    int own = operand_of_rule(op, op->def->rule->with.operand);
    if (!binding || def->attr_count || binding->operand_count != op->operand_count - 1 ||
        binding->result_count != op->result_count + 1)
        return NULL;
    Op *whole = arena_copy(arena, op, sizeof *op);
    whole->def = def;
    whole->binding = binding;
    whole->operand_count = whole->result_count = 0;
    whole->operands = arena_array(arena, Value *, binding->operand_count + 1);
    whole->results = arena_array(arena, Value *, binding->result_count);
    for (int k = 0; k < op->operand_count; k++)
        if (k != own) whole->operands[whole->operand_count++] = op->operands[k];
    for (int r = 0; r < binding->result_count; r++) {
        Value *result = r ? op->results[r - 1] : first->results[0];
        result->def = whole;
        result->index = whole->result_count++;
        whole->results[r] = result;
    }
    return whole;
}

void join_pairs(Fuse *fuse) {
    Module *module = fuse->module;
    bool *runs_again = arena_array(fuse->arena, bool, module->ops.count + 1);
    int count = 0;
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->source->recomputes)
            runs_again[module->ops.at[i]->source->recomputes->index] = true;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i], *first = op ? partner(fuse, op, runs_again) : NULL;
        const OpDef *def = first ? named_def(module, op->def->rule->with.whole) : NULL;
        Op *whole = def ? joined(fuse, first, op, def) : NULL;
        if (!whole) continue;
        whole->index = i;
        module->ops.at[first->index] = NULL;
        module->ops.at[i] = whole;
    }
    // close the gaps of replaced operators
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]) module->ops.at[count++] = module->ops.at[i];
    module->ops.count = count;
    ir_number(module);
}
