/* Pass fuse: combines several elementwise or row operators into one, so that values stay in
 * registers and operands are read once.
 *
 *     before    a = add(x, bias); h = gelu(a); y = mul(h, mask)
 *     after     y = fused(x, bias, mask)      one kernel, one loop
 *
 * Steps: operators that can add (clause `plus`) compute sums of their results. Pairs of operators
 * become one (clause `with`). Groups of operators grow along values (conditions:
 * fusion_conditions.c). Sums move directly before products whose kernels can compute them, except
 * under zero 2 and 3, where the order of gradients determines how many exist at a time.
 *
 * Requires: pass propagate_layouts.
 *
 * Leaves: an operator of equations in the place of each group. A value that is used outside its
 * group is a result; all other values disappear. A result that its own operator reads is first
 * rounded to its type, as it would be in memory. */
#include "passes/fuse/fuse.h"

#include "passes/pass_manager.h"

static void want(Fuse *fuse, const Value *value) {
    if (value) fuse->wanted[value->id] = true;
}

static void find_users(Fuse *fuse) {
    Module *module = fuse->module;
    fuse->users = arena_array(fuse->arena, Users, module->next_id);
    fuse->wanted = arena_array(fuse->arena, bool, module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            if (module->ops.at[i]->operands[k])
                array_push(fuse->arena, &fuse->users[module->ops.at[i]->operands[k]->id],
                           module->ops.at[i]);
    want(fuse, module->loss);
    for (int i = 0; i < module->outputs.count; i++) want(fuse, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        want(fuse, param->gradient);
        want(fuse, param->updated);
        for (int s = 0; s < param->state_count; s++) want(fuse, param->states_updated[s]);
    }
}

/* Returns whether an operator is fused with others. */
static bool is_joined(const Fuse *fuse, const Op *op) {
    return fuse->group[op->index] && fuse->group[op->index]->members.count > 1;
}

/* Returns whether two operators may be fused with regard to recomputation. A recomputed operator
 * must give the same bits, so it is fused with copies of the operators of its original's group. */
static bool run_alike(const Fuse *fuse, const Op *a, const Op *b) {
    if (!a->source->recomputes || !b->source->recomputes)
        return a->source->recomputes == b->source->recomputes;
    return is_joined(fuse, a->source->recomputes) &&
           fuse->group[a->source->recomputes->index] == fuse->group[b->source->recomputes->index];
}

/* Joins the groups of two operators if possible. */
static void join(Fuse *fuse, const Op *a, const Op *b, const Value *value) {
    const FuseGroup *first = fuse->group[a->index], *second = fuse->group[b->index];
    if (!first || !second || first == second || !run_alike(fuse, a, b)) return;
    FuseGroup *joined = groups_joined(fuse, first, second, value);
    for (int i = 0; joined && i < joined->members.count; i++)
        fuse->group[joined->members.at[i].op->index] = joined;
}

/* Joins an operator with the makers of its operands. */
static void join_makers(Fuse *fuse, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->def)
            join(fuse, op->operands[k]->def, op, op->operands[k]);
}

/* Joins an operator with earlier readers of the same operands. */
static void join_siblings(Fuse *fuse, const Op *op) {
    for (int k = 0; k < op->operand_count; k++) {
        const Users *users = op->operands[k] ? &fuse->users[op->operands[k]->id] : NULL;
        for (int i = 0; users && i < users->count && users->at[i]->index < op->index; i++)
            join(fuse, users->at[i], op, op->operands[k]);
    }
}

/* If possible, makes a lone operator the epilogue of the product that makes its only operand. */
static void join_product(Fuse *fuse, Op *op) {
    const FuseGroup *own = fuse->group[op->index];
    Op *product = op->operand_count == 1 && op->operands[0] ? op->operands[0]->def : NULL;
    bool alone = product && own && own->members.count == 1 && run_alike(fuse, product, op);
    FuseGroup *group = alone ? group_of_product(fuse, product, op) : NULL;
    if (group && !fuse->group[product->index])
        fuse->group[product->index] = fuse->group[op->index] = group;
}

static void find_places(Fuse *fuse) {
    const Module *module = fuse->module;
    fuse->place = arena_array(fuse->arena, int, module->ops.count);
    for (int i = 1; i < module->ops.count; i++)
        fuse->place[i] = fuse->place[i - 1] + !module->ops.at[i - 1]->source->recomputes;
}

static void find_groups(Fuse *fuse) {
    Module *module = fuse->module;
    fuse->group = arena_array(fuse->arena, FuseGroup *, module->ops.count);
    fuse->visited = arena_array(fuse->arena, int, module->ops.count);
    for (int i = 0; i < module->ops.count; i++)
        fuse->group[i] = group_of_op(fuse, module->ops.at[i]);
    // groups grow from makers to readers, among readers of one value, then by products' epilogues
    for (int i = 0; i < module->ops.count; i++) join_makers(fuse, module->ops.at[i]);
    for (int i = 0; i < module->ops.count; i++) join_siblings(fuse, module->ops.at[i]);
    for (int i = 0; i < module->ops.count; i++) join_product(fuse, module->ops.at[i]);
}

typedef struct Order {
    Fuse *fuse;
    Array(Op *) ops;
    bool *placed; // by index of the old operators
} Order;

static void place(Order *order, Op *op);

static void place_makers(Order *order, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->def) place(order, op->operands[k]->def);
}

/* Places a group as one operator, after everything that it needs. */
static void place_group(Order *order, const FuseGroup *group) {
    for (int i = 0; i < group->members.count; i++)
        order->placed[group->members.at[i].op->index] = true;
    for (int i = 0; i < group->members.count; i++) place_makers(order, group->members.at[i].op);
    array_push(order->fuse->module->arena, &order->ops, group_op(order->fuse, group));
}

/* Places an operator after everything that it needs, unless it is placed already or is new. */
static void place(Order *order, Op *op) {
    bool old =
        op->index < order->fuse->module->ops.count && order->fuse->module->ops.at[op->index] == op;
    if (!old || order->placed[op->index]) return;
    const FuseGroup *group = order->fuse->group[op->index];
    if (group && (is_joined(order->fuse, op) ||
                  (op->source->recomputes && is_joined(order->fuse, op->source->recomputes)))) {
        place_group(order, group);
        return;
    }
    order->placed[op->index] = true;
    place_makers(order, op);
    array_push(order->fuse->module->arena, &order->ops, op);
}

/* Returns whether a later operator is the last member of the operator's group. */
static bool waits(const Fuse *fuse, const Op *op) {
    const FuseGroup *group = fuse->group[op->index];
    return group && group->members.at[group->members.count - 1].op->index > op->index;
}

/* Reorders the operators. A group stands where its last member was, or earlier if its results are
 * needed earlier. */
static void reorder(Fuse *fuse) {
    Module *module = fuse->module;
    Order order = {.fuse = fuse, .placed = arena_array(fuse->arena, bool, module->ops.count)};
    for (int i = 0; i < module->ops.count; i++)
        if (!waits(fuse, module->ops.at[i])) place(&order, module->ops.at[i]);
    module->ops.at = order.ops.at;
    module->ops.count = order.ops.count;
    module->ops.capacity = order.ops.capacity;
    ir_number(module);
}

void pass_fuse(Module *module, const PassContext *context) {
    (void)context;
    Fuse fuse = {.module = module, .arena = arena_create()};
    // 1: sums that an operator makes by itself, and pairs
    ir_number(module);
    find_users(&fuse);
    accumulate_in_place(&fuse);
    find_users(&fuse);
    join_pairs(&fuse);
    // 2: groups
    find_users(&fuse);
    find_places(&fuse);
    find_groups(&fuse);
    reorder(&fuse);
    // 3: conversions of parameters, and sums that products make
    find_users(&fuse);
    hoist_casts(&fuse);
    if (module_zero(module) < 2) place_side_reductions(&fuse);
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->source->recomputes)
            op_change_source(module->arena, module->ops.at[i])->recomputes = NULL;
    arena_destroy(fuse.arena);
}
