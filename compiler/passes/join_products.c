/* Pass join_products: computes a sum of equal products as one product of longer inner dimension.
 *
 * The gradient of a parameter that every step of a recurrent model uses is such a sum:
 *
 *     before    dw = add(add(dw_2(dy3, x3), dw_2(dy2, x2)), dw_2(dy1, x1))
 *               dw_2: dw[o, i] = dy[b, o] * x[b, i]
 *
 *     after     ys = concat(reshape(dy3), ...) : [3, b, o];  xs = concat(reshape(x3), ...)
 *               dw = dw_2_joined(ys, xs): dw[o, i] = dy[n, b, o] * x[n, b, i]
 *
 * Requires: pass concat_slice_gradients, and a module that concatenates and reshapes tensors.
 *
 * Leaves: products of up to MOST_JOINED terms, each in the place of its last term. Terms are of one
 * layer, and sum over few elements: large products are as fast alone. The new dimension is never
 * cut, so that layouts are those of the terms. */
#include "passes/differentiate/differentiate.h"
#include "passes/pass_manager.h"
#include "passes/sums.h"
#include "rule/build.h"

#include <string.h>

enum {
    FEWEST_JOINED = 4, // terms that are worth a concatenation
    MOST_JOINED = 16,  // tensors of a concatenation
    MOST_TERMS = 256   // elements that a term sums over for each element of the result
};

/* A concatenation that products share. */
typedef struct Stack {
    int count;
    Value *const *members;
    Value *result;
    int place; // op index behind which it is made
} Stack;

typedef struct Joining {
    Module *module;
    Arena *arena;
    const Sums *sums;
    const OpDef *concat, *reshape; // NULL: the module has none
    Array(Stack) stacks;
    Ops *behind;   // by op index: new operators that stand behind the operator
    bool *removed; // by op index
    int place;     // op index behind which operators are inserted
} Joining;

/* ---- operators of the module ---- */

/* Returns whether operator `def` concatenates along the dimension that its one argument gives. */
static bool concatenates(const OpDef *def) {
    const Rule *rule = def->rule;
    const Expr *count = rule->copy.row >= 0 && rule->operand_count == 1 && rule->result_count == 1
                            ? rule->factors[rule->results[0].dims[0].factors[0]].count
                            : NULL;
    return rule->kind == RULE_CALL && def->attr_count == 1 && count && count->kind == EXPR_ATTR;
}

static void find_operators(Joining *joining) {
    for (int i = 0; i < joining->module->library->defs.count; i++) {
        const OpDef *def = joining->module->library->defs.at[i];
        if (concatenates(def)) joining->concat = def;
        if (def->rule->kind == RULE_VIEW && def->attr_count == 1 && def->rule->shape_attr == 0)
            joining->reshape = def;
    }
}

/* Returns whether every dimension of a tensor is one factor. */
static bool is_plain(const Rule *rule, const Access *access) {
    for (int d = 0; d < access->dim_count; d++)
        if (access->dims[d].count != 1 || rule->factors[access->dims[d].factors[0]].ellipsis)
            return false;
    return !access->variadic && !access->optional;
}

/* Returns whether an operator multiplies two tensors of plain dimensions, and does nothing else. */
static bool is_product(const Op *op) {
    const Rule *rule = op->def->rule;
    return rule->kind == RULE_BODY && rule->form == RULE_PRODUCT && op->def->attr_count == 0 &&
           rule->operand_count == 2 && op->operand_count == 2 && op->operands[0] &&
           op->operands[1] && rule->body->kind == EXPR_MUL &&
           rule->body->arg[0]->kind == EXPR_ACCESS && rule->body->arg[1]->kind == EXPR_ACCESS &&
           is_plain(rule, &rule->operands[0]) && is_plain(rule, &rule->operands[1]) &&
           is_plain(rule, &rule->results[0]) && op->operands[0]->type.rank < IR_MAX_RANK &&
           op->operands[1]->type.rank < IR_MAX_RANK;
}

/* Returns how many elements a product sums over for each element of its result. */
static int64_t summed_elements(const Op *op) {
    int64_t elements = 1;
    for (int f = 0; f < op->binding->factor_count; f++)
        if (!access_has(&op->def->rule->results[0], op->binding->factors[f].factor))
            elements *= op->binding->factors[f].extent;
    return elements;
}

/* Returns an access with a first dimension of factor `first`; other factors count from `offset`. */
static Access longer(const RuleDraft *draft, Arena *arena, const Access *access, int first,
                     int offset) {
    int *factors = arena_array(arena, int, access->dim_count + 1), count = 0;
    if (first >= 0) factors[count++] = first;
    for (int d = 0; d < access->dim_count; d++)
        factors[count++] = access->dims[d].factors[0] + offset;
    Access made = draft_access(draft, access->name, count, factors);
    made.element = access->element;
    return made;
}

/* Returns a name that no factor of the rule has. */
static const char *new_factor_name(Arena *arena, const Rule *rule) {
    const char *name = "n";
    for (int number = 0, f = 0; f < rule->factor_count; f++)
        if (!strcmp(rule->factors[f].name, name)) {
            name = arena_format(arena, "n%d", number++);
            f = -1;
        }
    return name;
}

/* Returns the product of the rule, whose operands have one more dimension that is summed over. */
static const OpDef *joined_def(Joining *joining, const OpDef *def) {
    Arena *arena = joining->module->arena;
    const Rule *rule = def->rule;
    RuleDraft *draft = rule_draft(arena);
    int joined = draft_factor(draft, (Factor){.name = new_factor_name(arena, rule)});
    for (int f = 0; f < rule->factor_count; f++)
        draft_factor(draft, (Factor){.name = rule->factors[f].name});
    draft_result(draft, longer(draft, arena, &rule->results[0], -1, 1));
    for (int k = 0; k < 2; k++)
        draft_operand(draft, longer(draft, arena, &rule->operands[k], joined, 1));
    draft_body(draft, rule->body);
    return module_def(joining->module,
                      draft_op(draft, arena_format(arena, "%s_joined", def->name)));
}

/* ---- new operators ---- */

/* Makes an operator with the source of `like`, behind the current place. */
static Value *insert(Joining *joining, const OpCall *call, const Op *like) {
    Op *op = ir_op_like(joining->module, call, like);
    array_push(joining->arena, &joining->behind[joining->place], op);
    return op->results[0];
}

/* Returns the value with a first dimension of extent 1. */
static Value *lengthened(Joining *joining, Value *value, const Op *like) {
    int64_t *extent = arena_array(joining->module->arena, int64_t, value->type.rank + 1);
    extent[0] = 1;
    memcpy(extent + 1, value->type.extent, sizeof *extent * (size_t)value->type.rank);
    Attr shape = {.count = value->type.rank + 1, .ints = extent};
    return insert(joining, &(OpCall){joining->reshape, &value, 1, &shape}, like);
}

/* Returns operand `k` of the terms as one tensor, perhaps one that another product reads. */
static Value *stacked(Joining *joining, const Ops *terms, int k) {
    Value **members = arena_array(joining->arena, Value *, terms->count);
    for (int i = 0; i < terms->count; i++) members[i] = terms->at[i]->operands[k];
    for (int s = 0; s < joining->stacks.count; s++) {
        const Stack *stack = &joining->stacks.at[s];
        if (stack->count == terms->count && stack->place <= joining->place &&
            !memcmp(stack->members, members, sizeof *members * (size_t)terms->count))
            return stack->result;
    }
    Value **parts = arena_array(joining->arena, Value *, terms->count);
    const Op *like = terms->at[terms->count - 1];
    for (int i = 0; i < terms->count; i++) parts[i] = lengthened(joining, members[i], like);
    Attr dim = {.i = 0};
    Value *result = insert(joining, &(OpCall){joining->concat, parts, terms->count, &dim}, like);
    array_push(joining->arena, &joining->stacks,
               (Stack){terms->count, members, result, joining->place});
    return result;
}

/* ---- sums ---- */

/* Returns whether `term` is a product that can be joined with others of the sum. */
static bool may_join(const Joining *joining, const Value *term) {
    return term->def && joining->sums->sum_of[term->id] && is_product(term->def) &&
           term->def->section == SECTION_BACKWARD && summed_elements(term->def) <= MOST_TERMS;
}

/* Returns whether two products have the same rule, operands of the same types, and layer. */
static bool are_equal(const Op *a, const Op *b) {
    return a->def == b->def && a->binding == b->binding && a->section == b->section &&
           layer_same(a->source->layer, b->source->layer) &&
           a->source->recompute == b->source->recompute;
}

/* Returns the sum of a group of equal products, made behind the last one. */
static Value *join(Joining *joining, const Ops *group) {
    for (int i = 0; i < group->count; i++)
        if (group->at[i]->index > joining->place) joining->place = group->at[i]->index;
    Value *operands[2];
    for (int k = 0; k < 2; k++) operands[k] = stacked(joining, group, k);
    const Op *last = joining->module->ops.at[joining->place];
    return insert(joining, &(OpCall){joined_def(joining, last->def), operands, 2, NULL}, last);
}

/* Sorts the terms of a sum into groups of equal products, of up to MOST_JOINED. Writes the sums of
 * groups that are worth it to `parts`, and all other terms. Returns whether there is a group. */
static bool join_terms(Joining *joining, const Values *terms, Values *parts) {
    bool *done = arena_array(joining->arena, bool, terms->count), found = false;
    for (int i = 0; i < terms->count; i++) {
        Ops group = {0};
        int first = i;
        for (int j = first; j < terms->count && group.count < MOST_JOINED; j++)
            if (!done[j] && may_join(joining, terms->at[j]) &&
                (j == first || (group.count && are_equal(group.at[0], terms->at[j]->def))))
                array_push(joining->arena, &group, terms->at[j]->def);
        bool worth = group.count >= FEWEST_JOINED;
        for (int j = first, k = 0; worth && j < terms->count && k < group.count; j++)
            if (terms->at[j]->def == group.at[k]) done[j] = true, k++;
        if (worth) array_push(joining->arena, parts, join(joining, &group));
        else if (!done[i]) array_push(joining->arena, parts, terms->at[i]);
        found |= worth;
    }
    return found;
}

/* Replaces a sum that has groups of equal products. */
static void join_sum(Joining *joining, Op *sum) {
    Values terms = {0}, parts = {0};
    sum_terms(joining->sums, sum, &terms);
    joining->place = 0;
    if (terms.count < FEWEST_JOINED || !join_terms(joining, &terms, &parts)) return;
    Value *total = parts.at[0];
    joining->place = sum->index;
    for (int i = 1; i < parts.count; i++) {
        Value *added[2] = {total, parts.at[i]};
        total = insert(joining, &(OpCall){sum->def, added, 2, sum->attrs}, sum);
    }
    Op *maker = total->def;
    maker->results[0] = sum->results[0];
    maker->results[0]->def = maker;
    joining->removed[sum->index] = true;
}

static void rebuild(Joining *joining) {
    Module *module = joining->module;
    Ops ops = {0};
    for (int i = 0; i < module->ops.count; i++) {
        if (!joining->removed[i]) array_push(joining->arena, &ops, module->ops.at[i]);
        for (int k = 0; k < joining->behind[i].count; k++)
            array_push(joining->arena, &ops, joining->behind[i].at[k]);
    }
    module->ops.count = 0;
    for (int i = 0; i < ops.count; i++) array_push(module->arena, &module->ops, ops.at[i]);
}

void pass_join_products(Module *module, const PassContext *context) {
    (void)context;
    ir_number(module);
    Arena *arena = arena_create();
    Sums sums = sums_of(arena, module);
    Joining joining = {.module = module,
                       .arena = arena,
                       .sums = &sums,
                       .behind = arena_array(arena, Ops, module->ops.count + 1),
                       .removed = arena_array(arena, bool, module->ops.count + 1)};
    find_operators(&joining);
    for (int i = 0; joining.concat && joining.reshape && i < module->ops.count; i++)
        if (is_outer_sum(&sums, module->ops.at[i])) join_sum(&joining, module->ops.at[i]);
    rebuild(&joining);
    remove_dead_ops(module);
    ir_number(module);
    arena_destroy(arena);
}
