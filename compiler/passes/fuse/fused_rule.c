/* Writes the rule of a group: the equations of its members in order, with loops as factors.
 *
 *     y[i0, i1], z[i0, i1] = scale_gelu(x[i0, i1]) body(y[i0, i1] = 2 * x[i0, i1]; z[i0, i1] = ...)
 *
 * Values that only members read are local values. Values have the names from the members' rules,
 * with numbers where two have the same name. */
#include "rule/build.h"
#include "rule/equations.h"
#include "passes/fuse/fuse.h"

#include <string.h>

/* A tensor of the group's rule, or a local value of a member. */
typedef struct Item {
    Value *value; // NULL: a member's local value
    int rank;
    int loops[IR_MAX_FACTORS];
    const char *name;
    bool given; // a result of the group
    int number; // number of a value that is made: first the group's results, then local values
} Item;

typedef struct Statement {
    int item; // index into `made`
    const Expr *expr;
} Statement;

typedef struct Composer {
    Fuse *fuse;
    Arena *arena; // the module's arena
    const FuseGroup *group;
    // operands (EXPR_ACCESS is an index into `read`), and values (EXPR_RESULT is their `number`)
    Array(Item) read, made;
    Array(Statement) statements;
    Array(const char *) names; // used names: loops, results in their order, then all others
    int results;               // number of results of the group
    int given, inside;         // how many results, and how many local values, have numbers
    /* ---- the current member ---- */
    const Member *member;
    int first; // index in `made` of its first value: results, then its equations' local values
} Composer;

/* ---- names ---- */

static const char *new_name(Composer *composer, const char *base) {
    const char *name = base;
    for (int number = 1; text_find(composer->names.at, composer->names.count, name) >= 0; number++)
        name = arena_format(composer->arena, "%s_%d", base, number);
    array_push(composer->arena, &composer->names, name);
    return name;
}

/* ---- tensors ---- */

static Item item_of(const Composer *composer, Value *value, const BoundAccess *access) {
    Item item = {.value = value, .rank = access->rank};
    for (int d = 0; d < access->rank; d++)
        item.loops[d] = composer->member->loop[access->dims[d].factors[0]];
    return item;
}

static bool same_item(const Item *a, const Item *b) {
    return a->value == b->value && a->rank == b->rank &&
           !memcmp(a->loops, b->loops, sizeof *a->loops * (size_t)a->rank);
}

/* Returns the expression for a member's operand k: a value or an operand of the group. */
static const Expr *operand_leaf(Composer *composer, int k) {
    const Op *op = composer->member->op;
    Item item = item_of(composer, op->operands[k], &op->binding->operands[k]);
    for (int i = 0; i < composer->made.count; i++)
        if (composer->made.at[i].value == item.value)
            return expr_leaf(composer->arena, EXPR_RESULT, composer->made.at[i].number);
    for (int i = 0; i < composer->read.count; i++)
        if (same_item(&composer->read.at[i], &item))
            return expr_leaf(composer->arena, EXPR_ACCESS, i);
    item.name = new_name(composer, op->def->rule->operands[op->binding->operands[k].access].name);
    array_push(composer->arena, &composer->read, item);
    return expr_leaf(composer->arena, EXPR_ACCESS, composer->read.count - 1);
}

/* Returns the operand of the call bound to operand `index` of the rule; none is variadic. */
static int operand_of_rule(const Op *op, int index) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->binding->operands[k].access == index) return k;
    BUG("%s has no operand %d", op->def->name, index);
}

/* ---- expressions ---- */

static const Expr *size_leaf(const Composer *composer, int factor) {
    const Binding *binding = composer->member->op->binding;
    const Expr *size = expr_number(composer->arena, 1, NULL);
    for (int b = 0; b < binding->factor_count; b++)
        if (binding->factors[b].factor == factor)
            size = expr_binary(composer->arena, EXPR_MUL, size,
                               expr_leaf(composer->arena, EXPR_SIZE, composer->member->loop[b]));
    return size;
}

/* Converts a leaf of a member's rule to the group's rule. Implements ExprLeafMap. */
static const Expr *group_leaf(const Expr *leaf, void *context) {
    Composer *composer = context;
    const Op *op = composer->member->op;
    switch (leaf->kind) {
    case EXPR_ACCESS: return operand_leaf(composer, operand_of_rule(op, leaf->index));
    case EXPR_RESULT:
        return expr_leaf(composer->arena, EXPR_RESULT,
                         composer->made.at[composer->first + leaf->index].number);
    case EXPR_ATTR: return argument_number(composer->arena, op, leaf->index);
    case EXPR_SIZE: return size_leaf(composer, leaf->index);
    default: return leaf;
    }
}

static const Expr *group_expr(Composer *composer, const Expr *expr) {
    const Op *op = composer->member->op;
    bool *present = arena_array(composer->arena, bool, op->def->rule->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++)
        present[op->binding->operands[k].access] = op->operands[k] != NULL;
    expr = equations_present(composer->arena, op->def->rule, expr, present);
    return expr_mapped(composer->arena, expr, group_leaf, composer);
}

/* Adds the equation of a value. A local value gets its number here, after the group's results. */
static void add_statement(Composer *composer, int item, const Expr *expr) {
    if (!composer->made.at[item].given)
        composer->made.at[item].number = composer->results + composer->inside++;
    array_push(composer->arena, &composer->statements, (Statement){item, expr});
}

/* ---- members ---- */

/* Adds the values of a member: its results, and the local values of its rule. */
static void add_values(Composer *composer) {
    const Op *op = composer->member->op;
    const Rule *rule = op->def->rule;
    composer->first = composer->made.count;
    for (int r = 0; r < op->result_count; r++) {
        Item item = item_of(composer, op->results[r], &op->binding->results[r]);
        item.given = group_gives(composer->fuse, composer->group, op->results[r]);
        item.number = item.given ? composer->given++ : -1;
        item.name = item.given ? composer->names.at[composer->group->rank + item.number]
                               : new_name(composer, rule->results[r].name);
        array_push(composer->arena, &composer->made, item);
    }
    for (int i = 0; i < rule->equations.local_count; i++)
        array_push(composer->arena, &composer->made,
                   (Item){.name = new_name(composer, rule->equations.locals[i].name)});
}

/* Writes to item->loops the loops of a member's local value, in ascending order. */
static void local_loops(const Composer *composer, const Access *access, Item *item) {
    const Binding *binding = composer->member->op->binding;
    for (int loop = 0; loop < composer->group->rank; loop++)
        for (int b = 0; b < binding->factor_count; b++)
            if (composer->member->loop[b] == loop && access_has(access, binding->factors[b].factor))
                item->loops[item->rank++] = loop;
}

static void add_member(Composer *composer, const Member *member) {
    const Rule *rule = member->op->def->rule;
    composer->member = member;
    add_values(composer);
    for (int i = 0; i < rule->equations.local_count; i++)
        local_loops(composer, &rule->equations.locals[i],
                    &composer->made.at[composer->first + rule->result_count + i]);
    if (!rule->equations.count)
        add_statement(composer, composer->first, group_expr(composer, rule->body));
    for (int e = 0; e < rule->equations.count; e++)
        add_statement(composer, composer->first + rule->equations.at[e].value,
                      group_expr(composer, rule->equations.at[e].expr));
}

/* ---- the rule ---- */

/* Returns the smallest extent of members along a loop, such as a micro-batch's rows. */
static int64_t loop_extent(const FuseGroup *group, int loop) {
    int64_t extent = group->extent[loop];
    for (int i = 0; i < group->members.count; i++) {
        const Member *member = &group->members.at[i];
        for (int f = 0; f < member->op->binding->factor_count; f++)
            if (member->loop[f] == loop && op_extent(member->op, f) < extent)
                extent = op_extent(member->op, f);
    }
    return extent;
}

/* Returns a member's bound extent for dimension `dim` of `tensor` if the member runs over fewer
 * elements; 0: the member runs over all elements, or `value` is another tensor. */
static int64_t whole_along(const Op *op, const Value *value, const BoundAccess *access,
                           const Value *tensor, int dim) {
    if (value != tensor || dim >= access->rank || access->dims[dim].count != 1) return 0;
    int factor = access->dims[dim].factors[0];
    int64_t whole = op->binding->factors[factor].extent;
    return op_extent(op, factor) != whole ? whole : 0;
}

/* Returns whole_along of the first member for which it is not 0: the batch's rows where tensors
 * have a micro-batch's rows; the padded length where a pipeline reads a shorter length. */
static int64_t whole_extent(const FuseGroup *group, const Value *tensor, int dim) {
    int64_t whole = 0;
    for (int i = 0; i < group->members.count && !whole; i++) {
        const Op *op = group->members.at[i].op;
        for (int k = 0; k < op->operand_count && !whole; k++)
            whole = whole_along(op, op->operands[k], &op->binding->operands[k], tensor, dim);
        for (int k = 0; k < op->result_count && !whole; k++)
            whole = whole_along(op, op->results[k], &op->binding->results[k], tensor, dim);
    }
    return whole;
}

static void take_along(const FuseGroup *group, BoundFactor *factors, const Value *tensor,
                       const BoundAccess *access) {
    for (int d = 0; tensor && d < access->rank; d++) {
        int64_t whole = access->dims[d].count == 1 ? whole_extent(group, tensor, d) : 0;
        if (whole) factors[access->dims[d].factors[0]].extent = whole;
    }
}

/* Sets factors that are rows of a micro-batch to the extent of the batch. Sets factors that are cut
 * to a padding length to the whole length. */
static void take_extents(Composer *composer, Op *op) {
    Binding *binding = arena_copy(composer->arena, op->binding, sizeof *binding);
    BoundFactor *factors = arena_copy(composer->arena, binding->factors,
                                      sizeof *factors * (size_t)binding->factor_count);
    for (int k = 0; k < op->operand_count; k++)
        take_along(composer->group, factors, op->operands[k], &binding->operands[k]);
    for (int k = 0; k < op->result_count; k++)
        take_along(composer->group, factors, op->results[k], &binding->results[k]);
    binding->factors = factors;
    op->binding = binding;
}

/* Adds the loops as factors, with a size where no operand has the factor. Factors along rows may
 * not be split over devices. */
static void add_loops(const Composer *composer, RuleDraft *draft) {
    const FuseGroup *group = composer->group;
    for (int loop = 0; loop < group->rank; loop++) {
        bool known = false;
        for (int i = 0; i < composer->read.count; i++)
            for (int d = 0; d < composer->read.at[i].rank; d++)
                known |= composer->read.at[i].loops[d] == loop;
        draft_factor(draft,
                     (Factor){.name = composer->names.at[loop],
                              .size = known ? NULL
                                            : expr_number(composer->arena,
                                                          (double)loop_extent(group, loop), NULL),
                              .replicate = group->rows && group->inner >> loop & 1});
    }
}

/* Makes the access of a result or local value. A result gets a fixed type if its type is not the
 * first operand's type; a local value gets one if its type is not f32. */
static Access made_access(const Composer *composer, const RuleDraft *draft, const Item *item) {
    DType follows = composer->read.count ? composer->read.at[0].value->type.dtype : DTYPE_F32;
    Access access = draft_access(draft, item->name, item->rank, item->loops);
    if (item->value && item->value->type.dtype != (item->given ? follows : DTYPE_F32))
        access.element = (Element){ELEMENT_FIXED, (int)item->value->type.dtype};
    return access;
}

/* Returns the names of the first NAMED members without "ht_", joined by "_". */
static const char *group_name(const Composer *composer) {
    enum { NAMED = 4 };
    Text name = {.arena = composer->arena};
    for (int i = 0; i < composer->group->members.count && i < NAMED; i++) {
        const char *own = composer->group->members.at[i].op->def->name;
        text_print(&name, i ? "_%s" : "%s", strncmp(own, "ht_", 3) ? own : own + 3);
    }
    return text_bytes(&name);
}

static const OpDef *group_def(Composer *composer) {
    RuleDraft *draft = rule_draft(composer->arena);
    add_loops(composer, draft);
    for (int i = 0; i < composer->made.count; i++)
        if (composer->made.at[i].given)
            draft_result(draft, made_access(composer, draft, &composer->made.at[i]));
    for (int i = 0; i < composer->read.count; i++)
        draft_operand(draft, draft_access(draft, composer->read.at[i].name,
                                          composer->read.at[i].rank, composer->read.at[i].loops));
    for (int i = 0; i < composer->statements.count; i++) {
        const Item *item = &composer->made.at[composer->statements.at[i].item];
        if (!item->given) draft_local(draft, made_access(composer, draft, item));
        draft_equation(draft, item->number, composer->statements.at[i].expr);
    }
    draft_epilogue(draft, composer->group->epilogue);
    return draft_op(draft, group_name(composer));
}

/* ---- the operator ---- */

/* Records the source positions of all members but the first. */
static void set_places(Composer *composer, Op *op) {
    const FuseGroup *group = composer->group;
    Position *also = arena_array(composer->arena, Position, group->members.count);
    for (int i = 1; i < group->members.count; i++) also[i - 1] = group->members.at[i].op->at;
    OpSource *source = op_change_source(composer->arena, op);
    source->fused_at = also;
    source->fused_count = group->members.count - 1;
}

/* Gives the operator the source positions and the results of the members. */
static void take_over(Composer *composer, Op *op) {
    int result = 0;
    set_places(composer, op);
    for (int i = 0; i < composer->made.count; i++) {
        const Item *item = &composer->made.at[i];
        if (!item->given) continue;
        if (!type_equal(op->results[result]->type, item->value->type))
            BUG("%s makes another type than its member does: %s", op->def->name,
                op->def->rule->text);
        op->results[result] = item->value;
        item->value->def = op;
        item->value->index = result++;
    }
}

/* Reserves the names of loops and results. */
static void take_names(Composer *composer) {
    const FuseGroup *group = composer->group;
    for (int loop = 0; loop < group->rank; loop++)
        array_push(composer->arena, &composer->names, arena_format(composer->arena, "i%d", loop));
    for (int i = 0; i < group->members.count; i++) {
        const Op *op = group->members.at[i].op;
        for (int r = 0; r < op->result_count; r++)
            if (group_gives(composer->fuse, group, op->results[r]))
                new_name(composer, op->def->rule->results[r].name);
    }
    composer->results = composer->names.count - group->rank;
}

Op *group_op(Fuse *fuse, const FuseGroup *group) {
    Composer composer = {.fuse = fuse, .arena = fuse->module->arena, .group = group};
    // 1: names, then the equations of the members
    take_names(&composer);
    for (int i = 0; i < group->members.count; i++) add_member(&composer, &group->members.at[i]);
    // 2: the rule and the operator
    const OpDef *def = group_def(&composer);
    Value **operands = arena_array(fuse->arena, Value *, composer.read.count + 1);
    for (int i = 0; i < composer.read.count; i++) operands[i] = composer.read.at[i].value;
    Op *op = ir_op_like(fuse->module, &(OpCall){def, operands, composer.read.count, NULL},
                        group->members.at[0].op);
    take_over(&composer, op);
    take_extents(&composer, op);
    return op;
}
