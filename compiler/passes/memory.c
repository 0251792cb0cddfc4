/* Pass memory: which values share storage, and where in one arena a device keeps the rest.
 *
 * Requires: pass specialize. Leaves: Value.storage; in every role the offsets of values and of conversions' scratch space, and the arena's
 * size. A value shares storage where nothing has to move (reshapes, conversions that keep every element in place), where a rule says so
 * (`inplace`), where an elementwise body can write over an operand that nobody reads again, and where an updated parameter takes the
 * parameter's place. A role that needs more memory than its devices have is an error.
 */
#include "cost/cost.h"
#include "rule/equations.h"
#include "ir/liveness.h"
#include "ir/roles.h"
#include "passes/pipeline.h"

#include <string.h>

typedef struct Memory {
    Module *module;
    Arena *arena;
    Roles *roles;
    int *last;  // by value id: the operator that reads it last; for owners of storage, over all that share it
    int *dying; // by op index: the first value whose storage ends there; -1 none
    int *next;  // by value id: the next value that ends at the same operator
    int loop;   // the first operator of the loop over micro-batches; past the last when there is none
} Memory;

static bool in_arena(const Value *value) { return value->kind == VALUE_RESULT; }

/* ---- sharing ---- */

/* `value` takes the storage of `from`. */
static void share(Memory *memory, Value *value, const Value *from)
{
    const Value *owner = value_storage(from);
    value->storage = owner;
    if (memory->last[value->id] > memory->last[owner->id])
        memory->last[owner->id] = memory->last[value->id];
}

/* Whether nobody reads this value's storage after operator `op`. */
static bool dies_at(const Memory *memory, const Value *value, const Op *op)
{
    const Value *owner = value_storage(value);
    return in_arena(owner) && memory->last[owner->id] == op->index;
}

/* Whether two values take as much room on every device. */
static bool same_room(Memory *memory, const Value *a, const Value *b)
{
    for (int r = 0; r < memory->roles->role_count; r++)
        if (value_local_bytes(memory->module, a, memory->roles->at[r].devices[0]) !=
            value_local_bytes(memory->module, b, memory->roles->at[r].devices[0]))
            return false;
    return true;
}

static bool same_dims(const BoundAccess *a, const BoundAccess *b)
{
    if (a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d].count != 1 || b->dims[d].count != 1 || a->dims[d].factors[0] != b->dims[d].factors[0])
            return false;
    return true;
}

/* Whether every operand that lives in this storage is read at the indices of the result alone. */
static bool read_in_step(const Op *op, const Value *owner)
{
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && value_storage(op->operands[k]) == owner && !same_dims(&op->binding->operands[k], &op->binding->results[0]))
            return false;
    return true;
}

/* An elementwise body writes over the first operand that has the result's form and is not read again. */
static void share_body(Memory *memory, Op *op)
{
    if (op->def->rule->form != RULE_MAP)
        return;
    for (int k = 0; k < op->operand_count; k++) {
        Value *x = op->operands[k], *y = op->results[0];
        if (x && x->type.dtype == y->type.dtype && dies_at(memory, x, op) && read_in_step(op, value_storage(x)) &&
            same_room(memory, x, y)) {
            share(memory, y, x);
            return;
        }
    }
}

/* Whether no loop of the operator reads the operand after the one that makes the result, nor at other indices. */
static bool read_before(const Op *op, const EquationPlan *plan, int operand, int result)
{
    int made = plan->step[plan->equation[op->binding->results[result].access]].loop;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && value_storage(op->operands[k]) == value_storage(op->operands[operand]) &&
            (plan->reads[op->binding->operands[k].access] >> made > 1 ||
             !same_dims(&op->binding->operands[k], &op->binding->results[result])))
            return false;
    return true;
}

/* Whether a result of the operator has this storage already. */
static bool is_given_away(const Op *op, const Value *owner)
{
    for (int r = 0; r < op->result_count; r++)
        if (op->results[r]->storage && value_storage(op->results[r]) == owner)
            return true;
    return false;
}

/* Results of equations write over operands of their form that are not read again. */
static void share_equations(Memory *memory, Op *op)
{
    EquationPlan plan = equations_plan(memory->arena, op->def->rule);
    for (int r = 0; r < op->result_count; r++) {
        bool element = plan.step[plan.equation[op->binding->results[r].access]].form == EQUATION_ELEMENT;
        for (int k = 0; element && k < op->operand_count; k++) {
            Value *x = op->operands[k], *y = op->results[r];
            if (!x || x->type.dtype != y->type.dtype || !dies_at(memory, x, op) || is_given_away(op, value_storage(x)) ||
                !read_before(op, &plan, k, r) || !same_room(memory, x, y))
                continue;
            share(memory, y, x);
            break;
        }
    }
}

/* Whether a value must be kept from what becomes of this storage: an output beside a parameter that training changes. */
static bool must_copy(const Memory *memory, const Value *value, const Value *from)
{
    return memory->last[value->id] == memory->module->ops.count && value_storage(from)->kind == VALUE_PARAM &&
           memory->module->kind == MODULE_TRAIN;
}

/* Results that a rule puts into the storage of an operand that is not read again; an optimizer's into that of parameters and states. */
static void share_inplace(Memory *memory, Op *op)
{
    const bool updates = op->def == memory->module->update;
    for (int r = 0; r < op->result_count; r++) {
        int wanted = op->def->rule->results[op->binding->results[r].access].inplace;
        for (int k = 0; wanted >= 0 && k < op->operand_count; k++)
            if (op->operands[k] && op->binding->operands[k].access == wanted &&
                (dies_at(memory, op->operands[k], op) ||
                 (updates && (op->operands[k]->kind == VALUE_STATE || op->operands[k]->kind == VALUE_PARAM)))) {
                share(memory, op->results[r], op->operands[k]);
                break;
            }
    }
}

static void share_conversion(Memory *memory, Op *op)
{
    const Plan *plan = op->conversion->plan;
    Value *x = op->operands[0], *y = op->results[0];
    if ((plan_nothing(plan) && !must_copy(memory, y, x)) || (plan_in_place(plan) && dies_at(memory, x, op) && same_room(memory, x, y)))
        share(memory, y, x);
}

static void share_op(Memory *memory, Op *op)
{
    if (op->def == memory->module->reshard_def)
        share_conversion(memory, op);
    else if (op->def->rule->kind == RULE_VIEW && !must_copy(memory, op->results[0], op->operands[0]))
        share(memory, op->results[0], op->operands[0]);
    else if (op->def->rule->kind == RULE_CALL)
        share_inplace(memory, op);
    else if (op->def->rule->kind == RULE_EQUATIONS)
        share_equations(memory, op);
    else if (op->def != memory->module->accumulate_def)
        share_body(memory, op);
}

/* The new values of parameters and states that were made elsewhere are written where the old ones are. */
static void share_updates(Memory *memory)
{
    for (int i = 0; i < memory->module->params.count; i++) {
        Parameter *parameter = memory->module->params.at[i];
        if (parameter->updated && parameter->updated != parameter->value && !parameter->updated->storage)
            parameter->updated->storage = parameter->value;
        for (int s = 0; s < parameter->state_count; s++)
            if (parameter->states_updated[s] && parameter->states_updated[s] != parameter->states[s] &&
                !parameter->states_updated[s]->storage)
                parameter->states_updated[s]->storage = parameter->states[s];
    }
}

/* ---- the arena ---- */

typedef struct Hole {
    int64_t offset, bytes;
} Hole;

/* Offsets in one arena: a best-fit allocator that runs at compile time, in the order in which the program will run. */
typedef struct ArenaPlan {
    Arena *arena;
    Array(Hole) holes; // ascending, never adjacent
    int64_t end, peak; // the arena in use ends here; the most it ever was
} ArenaPlan;

static int64_t rounded(int64_t bytes) { return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT; }

static void remove_hole(ArenaPlan *plan, int at)
{
    memmove(plan->holes.at + at, plan->holes.at + at + 1, sizeof(Hole) * (size_t)(plan->holes.count - at - 1));
    plan->holes.count--;
}

static void insert_hole(ArenaPlan *plan, int at, Hole hole)
{
    array_push(plan->arena, &plan->holes, hole);
    memmove(plan->holes.at + at + 1, plan->holes.at + at, sizeof(Hole) * (size_t)(plan->holes.count - 1 - at));
    plan->holes.at[at] = hole;
}

/* The smallest hole that fits, else the end. `bytes` are rounded up to the alignment; 0 bytes take none. */
static int64_t arena_plan_take(ArenaPlan *plan, int64_t bytes)
{
    int best = -1;
    bytes = rounded(bytes);
    for (int i = 0; i < plan->holes.count; i++)
        if (plan->holes.at[i].bytes >= bytes && (best < 0 || plan->holes.at[i].bytes < plan->holes.at[best].bytes))
            best = i;
    if (best < 0) {
        int64_t offset = plan->end;
        plan->end += bytes;
        plan->peak = plan->end > plan->peak ? plan->end : plan->peak;
        return offset;
    }
    Hole *hole = &plan->holes.at[best];
    int64_t offset = hole->offset;
    hole->offset += bytes;
    hole->bytes -= bytes;
    if (!hole->bytes)
        remove_hole(plan, best);
    return offset;
}

/* Index of the first hole at or behind an offset. */
static int hole_after(const ArenaPlan *plan, int64_t offset)
{
    int low = 0, high = plan->holes.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (plan->holes.at[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The end of the arena moves back over a hole that reaches it. */
static void trim(ArenaPlan *plan)
{
    const Hole *last = plan->holes.count ? &plan->holes.at[plan->holes.count - 1] : NULL;
    if (last && last->offset + last->bytes == plan->end) {
        plan->end = last->offset;
        plan->holes.count--;
    }
}

/* Gives back what arena_plan_take returned for `bytes`. */
static void arena_plan_give(ArenaPlan *plan, int64_t offset, int64_t bytes)
{
    bytes = rounded(bytes);
    if (!bytes)
        return;
    int at = hole_after(plan, offset);
    Hole *before = at ? &plan->holes.at[at - 1] : NULL, *after = at < plan->holes.count ? &plan->holes.at[at] : NULL;
    if (before && before->offset + before->bytes == offset) {
        before->bytes += bytes;
        if (after && after->offset == offset + bytes) {
            before->bytes += after->bytes;
            remove_hole(plan, at);
        }
    } else if (after && after->offset == offset + bytes) {
        after->offset = offset;
        after->bytes += bytes;
    } else
        insert_hole(plan, at, (Hole){offset, bytes});
    trim(plan);
}

/* ---- offsets ---- */

/* Chains the owners of storage by the operator at which it ends. */
static void find_ends(Memory *memory)
{
    const Module *module = memory->module;
    for (int i = 0; i <= module->ops.count; i++)
        memory->dying[i] = -1;
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++) {
            const Value *value = module->ops.at[i]->results[r];
            if (value->storage)
                continue;
            memory->next[value->id] = memory->dying[memory->last[value->id]];
            memory->dying[memory->last[value->id]] = value->id;
        }
}

static void take_results(Memory *memory, ArenaPlan *plan, Role *role, int64_t *bytes, const Op *op)
{
    for (int r = 0; r < op->result_count; r++)
        if (!op->results[r]->storage) {
            int id = op->results[r]->id;
            bytes[id] = value_local_bytes(memory->module, op->results[r], role->devices[0]);
            role->offset[id] = arena_plan_take(plan, bytes[id]);
        }
}

static void lay_out(Memory *memory, Role *role)
{
    const Module *module = memory->module;
    ArenaPlan plan = {.arena = memory->arena};
    int64_t *bytes = arena_array(memory->arena, int64_t, module->next_id);
    role->offset = arena_array(module->arena, int64_t, module->next_id);
    role->scratch = arena_array(module->arena, int64_t, module->ops.count);
    memset(role->offset, -1, sizeof *role->offset * (size_t)module->next_id);
    for (int i = 0; i < module->ops.count; i++) {
        for (int k = i; i == memory->loop && k < module->ops.count; k++)
            if (module->ops.at[k]->def == module->accumulate_def)
                take_results(memory, &plan, role, bytes, module->ops.at[k]);
        if (module->ops.at[i]->def != module->accumulate_def || i < memory->loop)
            take_results(memory, &plan, role, bytes, module->ops.at[i]);
        int64_t scratch = role_scratch_bytes(role, module->ops.at[i]);
        role->scratch[i] = scratch ? arena_plan_take(&plan, scratch) : -1;
        if (scratch)
            arena_plan_give(&plan, role->scratch[i], scratch);
        for (int id = memory->dying[i]; id >= 0; id = memory->next[id])
            arena_plan_give(&plan, role->offset[id], bytes[id]);
    }
    role->arena_bytes = plan.peak;
}

void pass_memory(Module *module)
{
    Memory memory = {.module = module, .arena = arena_create(), .roles = module->roles};
    ir_number(module);
    memory.last = last_uses(memory.arena, module);
    memory.next = arena_array(memory.arena, int, module->next_id);
    memory.dying = arena_array(memory.arena, int, module->ops.count + 1);
    memory.loop = 0;
    while (memory.loop < module->ops.count && module->ops.at[memory.loop]->turn != TURN_EACH)
        memory.loop++;
    for (int i = 0; i < module->ops.count; i++)
        share_op(&memory, module->ops.at[i]);
    share_updates(&memory);
    find_ends(&memory);
    for (int r = 0; r < memory.roles->role_count; r++)
        lay_out(&memory, &memory.roles->at[r]);
    arena_destroy(memory.arena);
    memory_check(module);
}
