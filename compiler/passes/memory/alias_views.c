/* Decides where slices and concatenations copy nothing. memory.c decides in-place updates. */
#include "passes/memory/alias_views.h"

#include "ir/analysis/phases.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"

static void fetch(Views *views, const Value *value) {
    if (value) views->fetched[value->id] = true;
}

Views views_of(Arena *arena, Module *module) {
    Views views = {.module = module, .arena = arena};
    views.readers = arena_array(arena, Readers, module->next_id);
    views.fetched = arena_array(arena, bool, module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            if (module->ops.at[i]->operands[k])
                array_push(arena, &views.readers[module->ops.at[i]->operands[k]->id],
                           module->ops.at[i]);
    fetch(&views, module->loss);
    for (int i = 0; i < module->outputs.count; i++) fetch(&views, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++) {
        fetch(&views, module->params.at[i]->updated);
        for (int s = 0; s < module->params.at[i]->state_count; s++)
            fetch(&views, module->params.at[i]->states_updated[s]);
    }
    return views;
}

/* ---- subviews ---- */

static void lie_within(Views *views, Value *value, const Value *whole, int dim, int64_t start) {
    Subview within = {whole, dim, start};
    value->subview = arena_copy(views->module->arena, &within, sizeof within);
}

/* Returns whether every device has one box of a value, whole along `dim`. `dim` -1: any box. */
static bool lies_whole(Views *views, const Value *value, int dim) {
    Module *module = views->module;
    for (int r = 0; r < module->devices->roles->role_count; r++) {
        const Role *role = &module->devices->roles->at[r];
        int64_t extent[IR_MAX_RANK];
        if (!role_has(module, role, value)) continue;
        if (!value_local(module, value, role->devices[0], extent) ||
            value_region(module, value, role->devices[0])->placing ||
            (dim >= 0 && extent[dim] && extent[dim] != value->type.extent[dim]))
            return false;
    }
    return true;
}

/* Returns whether an operator is a view that changes neither shape nor layout. */
static bool is_same_view(const Views *views, const Op *op) {
    const Value *x = op->operand_count == 1 ? op->operands[0] : NULL, *y = op->results[0];
    return op->def->rule->kind == RULE_VIEW && type_equal(x->type, y->type) &&
           micro_equal(x->micro, y->micro) &&
           module_layouts_equal(views->module, x->layout, y->layout, x->type);
}

/* Returns whether an operator's kernel accepts the strides of tensor k (operands, then results). */
static bool takes_tensor(Views *views, const Op *op, int k) {
    Module *module = views->module;
    bool result = k >= op->operand_count;
    int r = k - op->operand_count;
    const Value *value = result ? op->results[r] : op->operands[k];
    const BoundAccess *bound = result ? &op->binding->results[r] : &op->binding->operands[k];
    const Access *access =
        result ? &op->def->rule->results[bound->access] : &op->def->rule->operands[bound->access];
    bool takes = op->def->rule->kind == RULE_CALL && access->pitch >= 0;
    for (int i = 0; takes && i < module->devices->roles->role_count; i++) {
        int64_t pitch;
        if (role_runs(module, &module->devices->roles->at[i], op))
            takes = tensor_pitch(module, op, (BoundTensor){access, bound, value},
                                 module->devices->roles->at[i].devices[0], &pitch);
    }
    return takes;
}

/* Returns whether a kernel may overwrite an operand. */
static bool may_overwrite(const Op *op, int k) {
    for (int r = 0; r < op->result_count; r++)
        if (op->def->rule->results[op->binding->results[r].access].inplace ==
            op->binding->operands[k].access)
            return true;
    return false;
}

/* Returns whether all readers of a value and of its views, except `row`, accept its strides without
 * overwriting it, and no output fetches it. Makes views that it checks subviews of the value. */
static bool is_taken(Views *views, Value *value, const Op *row) {
    const Readers *readers = &views->readers[value->id];
    bool taken = !views->fetched[value->id];
    for (int i = 0; taken && i < readers->count; i++) {
        Op *op = readers->at[i];
        if (op == row) continue;
        if (is_same_view(views, op)) {
            lie_within(views, op->results[0], value, -1, 0);
            taken = is_taken(views, op->results[0], row);
        }
        for (int k = 0; taken && op->def->rule->kind != RULE_VIEW && k < op->operand_count; k++)
            taken =
                op->operands[k] != value || (takes_tensor(views, op, k) && !may_overwrite(op, k));
        taken = taken && (op->def->rule->kind != RULE_VIEW || op->results[0]->subview);
    }
    return taken;
}

/* Reverts the subviews that is_taken has set for a value and its views. */
static void lie_alone(Views *views, Value *value) {
    value->subview = NULL;
    for (int i = 0; i < views->readers[value->id].count; i++) {
        Op *op = views->readers[value->id].at[i];
        if (op->def->rule->kind == RULE_VIEW && op->results[0]->subview &&
            op->results[0]->subview->whole == value)
            lie_alone(views, op->results[0]);
    }
}

/* Returns the dimension of a tensor that is one factor of the rule; -1: there is none. */
static int dim_of_factor(const Op *op, const BoundAccess *bound, int factor) {
    for (int d = 0; d < bound->rank; d++)
        if (bound->dims[d].count == 1 &&
            op->binding->factors[bound->dims[d].factors[0]].factor == factor)
            return d;
    return -1;
}

/* Returns whether a value has the type and extents of the whole, `dim` aside, which it may lack. */
static bool fits_into(const Value *value, const Value *whole, int dim) {
    int lacking = whole->type.rank - value->type.rank;
    if (lacking < 0 || lacking > 1 || value->type.dtype != whole->type.dtype ||
        (value->micro.kind == MICRO_ROWS) != (whole->micro.kind == MICRO_ROWS))
        return false;
    for (int d = 0; d < value->type.rank; d++)
        if ((lacking || d != dim) &&
            value->type.extent[d] != whole->type.extent[d + (lacking && d >= dim)])
            return false;
    return true;
}

/* Returns the extent of a value along a dimension of the whole; 1: the value lacks it. */
static int64_t extent_along(const Value *value, const Value *whole, int dim) {
    return value->type.rank < whole->type.rank ? 1 : value->type.extent[dim];
}

/* Returns whether an operator other than a union, a part or a gather makes a value. */
static bool is_made(const Module *module, const Value *value) {
    const Op *def = value->def;
    return value->kind == VALUE_RESULT && def && def->def != module->builtin->stage_union &&
           def->def != module->builtin->local_part && !op_gathers(module, def);
}

/* ---- slices ---- */

bool view_slice(Views *views, Op *op) {
    const Module *module = views->module;
    const Rule *rule = op->def->rule;
    if (rule->kind != RULE_CALL || !rule->copy.shift || op->operand_count != 1 ||
        op->result_count != 1 || views->none)
        return false;
    Value *x = op->operands[0], *y = op->results[0];
    int dim = dim_of_factor(op, &op->binding->operands[0], rule->copy.whole);
    int64_t start;
    if (dim < 0 || !expr_integer(rule->copy.shift, op->attrs, NULL, &start) ||
        !is_made(module, value_storage(x)) || value_storage(x)->def->loop != op->loop ||
        !fits_into(y, x, dim) || !lies_whole(views, x, dim) || !lies_whole(views, y, -1))
        return false;
    lie_within(views, y, x, dim, start);
    if (is_taken(views, y, NULL)) return true;
    lie_alone(views, y);
    return false;
}

/* ---- concatenations ---- */

/* Returns the value that a member of a concatenation is a view of, or the member itself. */
static Value *maker_of(const Views *views, Value *member) {
    while (member->def && is_same_view(views, member->def)) member = member->def->operands[0];
    return member;
}

/* Returns whether the maker of a member can write the member's place in the concatenation. */
static bool is_made_there(Views *views, const Op *row, Value *made) {
    const Module *module = views->module;
    return is_made(module, made) && same_phase(module, made->def, row) &&
           made->def->loop == row->loop && !made->storage && is_taken(views, made, row) &&
           takes_tensor(views, made->def, made->def->operand_count + made->index);
}

bool view_members(Views *views, Op *op) {
    const Rule *rule = op->def->rule;
    if (rule->kind != RULE_CALL || rule->copy.row < 0 || op->result_count != 1 || views->none)
        return false;
    Value *y = op->results[0];
    int dim = dim_of_factor(op, &op->binding->results[0], rule->copy.row), count = 0;
    int64_t start = 0;
    bool made = dim >= 0 && lies_whole(views, y, dim);
    // assign places to members one after another, until one cannot be made in its place
    for (; made && count < op->operand_count; count++) {
        Value *member = op->operands[count], *own = maker_of(views, member);
        if (own->subview || !fits_into(member, y, dim) || !lies_whole(views, own, -1)) break;
        lie_within(views, own, y, dim, start);
        start += extent_along(member, y, dim);
        made = is_made_there(views, op, own);
    }
    made = made && count == op->operand_count && start == y->type.extent[dim];
    for (int k = 0; k < count && !made; k++) lie_alone(views, maker_of(views, op->operands[k]));
    return made;
}
