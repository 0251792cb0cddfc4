/* Pass memory: decides which values share storage, and where in a device's arena each lies.
 *
 *     h = reshape(x)       h has the storage of x
 *     y = gelu(h)          y overwrites h, which has no later reader
 *     q = slice(qkv)       q is a subview of qkv
 *
 * Requires: pass schedule.
 *
 * Leaves: Value.storage and Value.subview; in every role the offsets of values and of conversions'
 * scratch space, and the arena's size. A value shares storage
 * - if no element has to move: reshapes, conversions that keep every element in place;
 * - if a rule says so (clause inplace);
 * - if a slice or a member of a concatenation can be a subview (memory/alias_views.h);
 * - if an elementwise operator can overwrite an operand without later readers;
 * - if it is the new value of a parameter.
 *
 * A role that needs more memory than its devices have is an error. */
#include "cost/cost.h"
#include "rule/equations.h"
#include "ir/analysis/liveness.h"
#include "ir/analysis/async_collectives.h"
#include "ir/analysis/phases.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"
#include "passes/memory/arena_packing.h"
#include "passes/pass_manager.h"
#include "passes/memory/alias_views.h"

#include <string.h>

typedef struct Memory {
    Module *module;
    bool estimate_only; // CompileOptions.estimate_only
    Arena *arena;
    Roles *roles;
    int *last; // by value id: index of its last reader; for an owner of storage, index of the last
               // reader of any value in that storage
    int *readers; // by value id: number of operands that are this value
    Views views;
} Memory;

static bool in_arena(const Value *value) { return value->kind == VALUE_RESULT; }

/* ---- sharing ---- */

/* Extends the lifetimes of the operands of each `union` to the last use of its result. */
static void extend_unions(Memory *memory) {
    for (int i = memory->module->ops.count - 1; i >= 0; i--) {
        const Op *op = memory->module->ops.at[i];
        for (int k = 0; op->def == memory->module->builtin->stage_union && k < op->operand_count;
             k++) {
            int *last = &memory->last[value_storage(op->operands[k])->id];
            *last =
                memory->last[op->results[0]->id] > *last ? memory->last[op->results[0]->id] : *last;
        }
    }
}

/* Gives `value` the storage of `from`. */
static void share(Memory *memory, Value *value, const Value *from) {
    const Value *owner = value_storage(from);
    value->storage = owner;
    if (memory->last[value->id] > memory->last[owner->id])
        memory->last[owner->id] = memory->last[value->id];
}

/* Returns whether `op` is the last reader of a value's arena storage; false for a subview. */
static bool dies_at(const Memory *memory, const Value *value, const Op *op) {
    const Value *owner = value_storage(value);
    return in_arena(owner) && memory->last[owner->id] == op->index && !value->subview;
}

/* Returns whether two values have equal numbers of bytes on every device. */
static bool same_room(Memory *memory, const Value *a, const Value *b) {
    for (int r = 0; r < memory->roles->role_count; r++)
        if (value_local_bytes(memory->module, a, memory->roles->at[r].devices[0]) !=
            value_local_bytes(memory->module, b, memory->roles->at[r].devices[0]))
            return false;
    return true;
}

static bool same_dims(const BoundAccess *a, const BoundAccess *b) {
    if (a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d].count != 1 || b->dims[d].count != 1 ||
            a->dims[d].factors[0] != b->dims[d].factors[0])
            return false;
    return true;
}

/* Returns whether every operand with this storage is read only at the indices of the result. */
static bool read_in_step(const Op *op, const Value *owner) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && value_storage(op->operands[k]) == owner &&
            !same_dims(&op->binding->operands[k], &op->binding->results[0]))
            return false;
    return true;
}

/* Gives the result of an elementwise body the storage of the first operand of its size and type
 * that has no later reader. */
static void share_body(Memory *memory, Op *op) {
    if (op->def->rule->form != RULE_MAP) return;
    for (int k = 0; k < op->operand_count; k++) {
        Value *x = op->operands[k], *y = op->results[0];
        if (x && x->type.dtype == y->type.dtype && dies_at(memory, x, op) &&
            read_in_step(op, value_storage(x)) && same_room(memory, x, y)) {
            share(memory, y, x);
            return;
        }
    }
}

/* Returns whether `operand`'s storage is read only at the result's indices, in no later loop. */
static bool read_before(const Op *op, const EquationPlan *plan, int operand, int result) {
    int made = plan->step[plan->equation[op->binding->results[result].access]].loop;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] &&
            value_storage(op->operands[k]) == value_storage(op->operands[operand]) &&
            (plan->reads[op->binding->operands[k].access] >> made > 1 ||
             !same_dims(&op->binding->operands[k], &op->binding->results[result])))
            return false;
    return true;
}

/* Returns whether another result of the operator has this storage already. */
static bool is_given_away(const Op *op, const Value *owner) {
    for (int r = 0; r < op->result_count; r++)
        if (op->results[r]->storage && value_storage(op->results[r]) == owner) return true;
    return false;
}

/* Gives results of equations the storage of operands of equal size that have no later reader. */
static void share_equations(Memory *memory, Op *op) {
    EquationPlan plan = equations_plan(memory->arena, op->def->rule);
    for (int r = 0; r < op->result_count; r++) {
        bool element =
            plan.step[plan.equation[op->binding->results[r].access]].form == EQUATION_ELEMENT;
        for (int k = 0; element && k < op->operand_count; k++) {
            Value *x = op->operands[k], *y = op->results[r];
            if (!x || x->type.dtype != y->type.dtype || !dies_at(memory, x, op) ||
                is_given_away(op, value_storage(x)) || !read_before(op, &plan, k, r) ||
                !same_room(memory, x, y))
                continue;
            share(memory, y, x);
            break;
        }
    }
}

/* Returns whether a value must not share the storage of `from`: it is an output, and the storage is
 * a parameter that training changes. */
static bool must_copy(const Memory *memory, const Value *value, const Value *from) {
    return memory->last[value->id] == memory->module->ops.count &&
           value_storage(from)->kind == VALUE_PARAM &&
           param_changes(memory->module, value_storage(from));
}

/* Gives results the storage of `inplace` operands that die here or that the optimizer updates. */
static void share_inplace(Memory *memory, Op *op) {
    const bool updates = op->def == memory->module->optimizer->op;
    for (int r = 0; r < op->result_count; r++) {
        int wanted = op->def->rule->results[op->binding->results[r].access].inplace;
        for (int k = 0; wanted >= 0 && k < op->operand_count; k++)
            if (op->operands[k] && op->binding->operands[k].access == wanted &&
                (dies_at(memory, op->operands[k], op) ||
                 (updates && (op->operands[k]->kind == VALUE_STATE ||
                              op->operands[k]->kind == VALUE_PARAM)))) {
                share(memory, op->results[r], op->operands[k]);
                break;
            }
    }
}

/* Returns whether a value has one reader and, if it is a `union`, so has each of its operands. */
static bool reads_alone(const Memory *memory, const Value *value) {
    const Op *def = value->def;
    for (int k = 0; def->def == memory->module->builtin->stage_union && k < def->operand_count; k++)
        if (!reads_alone(memory, def->operands[k])) return false;
    return memory->readers[value->id] == 1;
}

static void share_conversion(Memory *memory, Op *op) {
    const Plan *plan = op->convert.plan->plan;
    Value *x = op->operands[0], *y = op->results[0];
    if (op_crosses_stages(memory->module, op)) return;
    if ((plan_nothing(plan) && !must_copy(memory, y, x)) ||
        (plan_in_place(plan) && dies_at(memory, x, op) && same_room(memory, x, y) &&
         (!op_is_async(memory->module, op) || reads_alone(memory, x))))
        share(memory, y, x);
}

/* Gives the operands of a concatenation, and all values that share their storage, the storage of
 * the result. The result is then alive from the first operand on. */
static void share_row(Memory *memory, const Op *op) {
    Value *row = op->results[0];
    for (int k = 0; k < op->operand_count; k++) {
        Value *made = op->operands[k];
        while (made->subview->dim < 0) made = made->def->operands[0];
        share(memory, made, row);
    }
}

static void share_op(Memory *memory, Op *op) {
    const Module *module = memory->module;
    if (op->def == module->builtin->reshard) share_conversion(memory, op);
    else if (op->def == module->builtin->local_part) share(memory, op->results[0], op->operands[0]);
    else if (op->def == module->builtin->stage_union) return;
    else if (op->def->rule->kind == RULE_VIEW &&
             !must_copy(memory, op->results[0], op->operands[0]))
        share(memory, op->results[0], op->operands[0]);
    else if (view_slice(&memory->views, op)) share(memory, op->results[0], op->operands[0]);
    else if (view_members(&memory->views, op)) share_row(memory, op);
    else if (op->def->rule->kind == RULE_CALL) share_inplace(memory, op);
    else if (op->def->rule->kind == RULE_EQUATIONS) share_equations(memory, op);
    else if (!op_gathers(module, op)) share_body(memory, op);
}

/* Gives a new value the storage of the old value, if the old value's last reader runs before the
 * new value's maker. Does nothing if the optimizer's operator gave the new value a storage. */
static void share_update(Memory *memory, const Value *old, Value *made) {
    if (made && made != old && made->def && !made->storage &&
        memory->last[old->id] < made->def->index)
        made->storage = old;
}

static void share_updates(Memory *memory) {
    for (int i = 0; i < memory->module->params.count; i++) {
        Parameter *parameter = memory->module->params.at[i];
        share_update(memory, parameter->value, parameter->updated);
        for (int s = 0; s < parameter->state_count; s++)
            share_update(memory, parameter->states[s], parameter->states_updated[s]);
    }
}

/* ---- slots of micro-batches ---- */

/* Returns whether the role sends or receives messages between stages. */
static bool has_messages(const Memory *memory, const Role *role) {
    for (int i = 0; i < memory->module->ops.count; i++) {
        const Op *op = memory->module->ops.at[i];
        if (op_crosses_stages(memory->module, op) &&
            (role_has(memory->module, role, op->operands[0]) ||
             role_has(memory->module, role, op->results[0])))
            return true;
    }
    return false;
}

/* Returns whether a device of the role has several micro-batches in progress at a time. */
static bool has_several(const Memory *memory, const Role *role) {
    for (int i = 0; i < role->device_count; i++) {
        int stage;
        const PipelineRun *run = device_run(memory->module, role->devices[i], &stage);
        if (run && run->schedule->slot_count[stage] > 1) return true;
    }
    return false;
}

static void keep(const Memory *memory, Role *role, const Value *value) {
    const Value *owner = value_storage(value);
    if (in_arena(owner) && loop_repeats(owner->def->loop) &&
        !op_gathers(memory->module, owner->def))
        role->kept[owner->id] = true;
}

/* Moves values of the loop that operators after it read directly, not as a sum over micro-batches,
 * from the slot to the arena. Such values exist only in steps of one micro-batch. */
static void release_read_behind(const Memory *memory, Role *role) {
    for (int i = 0; i < memory->module->ops.count; i++) {
        const Op *op = memory->module->ops.at[i];
        for (int k = 0; op->loop == LOOP_AFTER && k < op->operand_count; k++)
            if (op->operands[k]) role->kept[value_storage(op->operands[k])->id] = false;
    }
}

/* Sets role->kept of values that lie in their micro-batch's slot: values that cross phases, and
 * messages. Only roles with messages, or several micro-batches in progress, have slots. */
static void find_kept(const Memory *memory, Role *role) {
    const Module *module = memory->module;
    role->kept = arena_array(module->arena, bool, module->next_id);
    if (!has_messages(memory, role) && !has_several(memory, role)) return;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op_crosses_stages(module, op)) keep(memory, role, op->results[0]);
        for (int k = 0; k < op->operand_count && op->loop == LOOP_EACH; k++)
            if (op->operands[k] && op->operands[k]->def &&
                !same_phase(module, op->operands[k]->def, op))
                keep(memory, role, op->operands[k]);
    }
    release_read_behind(memory, role);
}

/* ---- the arena ---- */

typedef Array(PackItem) PackItems;

/* Items of the arena, or of a micro-batch's slot. */
typedef struct Packing {
    PackItems items;
    Array(int64_t *) offsets; // by item: where its offset is stored
} Packing;

static void add_item(Memory *memory, Packing *packing, PackItem item, int64_t *offset) {
    array_push(memory->arena, &packing->items, item);
    array_push(memory->arena, &packing->offsets, offset);
}

/* Adds the values of an operator that own storage, and its scratch space. The scratch space of a
 * message lies in the slot and is alive at all times. */
static void add_items(Memory *memory, Role *role, const Op *op, Packing *arena, Packing *slot) {
    const Module *module = memory->module;
    for (int r = 0; r < op->result_count && op->def != module->builtin->stage_union; r++) {
        const Value *value = op->results[r];
        if (!value->storage)
            add_item(memory, role->kept[value->id] ? slot : arena,
                     (PackItem){.begin = first_use_of(memory->module, role, value, memory->last),
                                .end = memory->last[value->id],
                                .bytes = role_bytes(memory->module, role, value)},
                     &role->offset[value->id]);
    }
    int64_t scratch = role_scratch_bytes(memory->module, role, op);
    bool message = op_crosses_stages(module, op);
    if (scratch)
        add_item(memory, message ? slot : arena,
                 (PackItem){.begin = message ? 0 : first_use(memory->module, role, op),
                            .end = message ? module->ops.count : op->index,
                            .bytes = scratch},
                 &role->scratch[op->index]);
}

static int64_t place_items(Memory *memory, Packing *packing) {
    int64_t bytes = (memory->estimate_only ? pack_roughly : pack)(memory->arena, packing->items.at,
                                                                  packing->items.count);
    for (int i = 0; i < packing->items.count; i++)
        *packing->offsets.at[i] = packing->items.at[i].offset;
    return bytes;
}

/* Sets the offset of each `union` to the offset of the operand that the role has; -1: none. */
static void place_unions(Memory *memory, Role *role) {
    for (int i = 0; i < memory->module->ops.count; i++) {
        const Op *op = memory->module->ops.at[i];
        if (op->def != memory->module->builtin->stage_union) continue;
        const Value *owner = role_storage(memory->module, role, op->results[0]);
        role->offset[op->results[0]->id] = owner == op->results[0] ? -1 : role->offset[owner->id];
    }
}

static void lay_out(Memory *memory, Role *role) {
    const Module *module = memory->module;
    Packing arena = {0}, slot = {0};
    role->offset = arena_array(module->arena, int64_t, module->next_id);
    role->scratch = arena_array(module->arena, int64_t, module->ops.count);
    memset(role->offset, -1, sizeof *role->offset * (size_t)module->next_id);
    memset(role->scratch, -1, sizeof *role->scratch * (size_t)module->ops.count);
    find_kept(memory, role);
    for (int i = 0; i < module->ops.count; i++)
        add_items(memory, role, module->ops.at[i], &arena, &slot);
    role->arena_bytes = place_items(memory, &arena);
    role->slot_bytes = place_items(memory, &slot);
    place_unions(memory, role);
}

void pass_memory(Module *module, const PassContext *context) {
    Memory memory = {.module = module,
                     .estimate_only = context->options->estimate_only,
                     .arena = arena_create(),
                     .roles = module->devices->roles};
    ir_number(module);
    // 1: lifetimes and numbers of readers
    memory.last = last_uses(memory.arena, module);
    memory.readers = arena_array(memory.arena, int, module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            if (module->ops.at[i]->operands[k])
                memory.readers[module->ops.at[i]->operands[k]->id]++;
    memory.views = views_of(memory.arena, module);
    memory.views.none = context->options->no_views;
    // 2: sharing of storage
    for (int i = 0; i < module->ops.count; i++) share_op(&memory, module->ops.at[i]);
    share_updates(&memory);
    extend_unions(&memory);
    // 3: offsets of each role
    for (int r = 0; r < memory.roles->role_count; r++) lay_out(&memory, &memory.roles->at[r]);
    arena_destroy(memory.arena);
    memory_check(module);
}
