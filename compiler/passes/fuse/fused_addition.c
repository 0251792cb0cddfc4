/* Lets a term's operator compute the sum (clause `plus`), with the other term as an operand.
 *
 *     before    dw = product(dy, x); s = add(dw, acc)
 *     after     s = product(dy, x, acc)
 */
#include "passes/fuse/fuse.h"

#include "ir/analysis/phases.h"

/* State of one run. Indices of removed sums stay unused until the end. */
typedef struct Adding {
    Fuse *fuse;
    bool *runs_again; // by op index: another operator recomputes it
} Adding;

/* Returns the unused operand that an operator adds to a result (clause `plus`); -1: none. */
static int free_operand(const Op *op, int result) {
    int plus = op->def->rule->results[op->binding->results[result].access].plus;
    for (int k = 0; plus >= 0 && k < op->operand_count; k++)
        if (op->binding->operands[k].access == plus) return op->operands[k] ? -1 : k;
    return -1;
}

/* Returns whether a sum adds elementwise two values of the layout and micro-batch of the result. */
static bool adds_alike(Module *module, const Op *sum) {
    const Value *result = sum->results[0];
    bool alike = op_adds_alike(sum) && !sum->source->recomputes && !sum->run_in_place;
    for (int k = 0; alike && k < 2; k++) {
        const Value *value = sum->operands[k];
        alike = micro_equal(value->micro, result->micro) &&
                layout_partial(value->layout) != STATE_MAX &&
                module_layouts_equal(module, value->layout, result->layout, result->type);
    }
    return alike;
}

/* Returns whether all readers of the operator's results except `value` come after index `place`. */
static bool read_behind(const Fuse *fuse, const Op *op, const Value *value, int place) {
    for (int r = 0; r < op->result_count; r++) {
        const Users *users = &fuse->users[op->results[r]->id];
        for (int i = 0; op->results[r] != value && i < users->count; i++)
            if (users->at[i]->index <= place) return false;
    }
    return true;
}

/* Returns whether a term's operator can compute the whole sum, in its own or the sum's place. */
static bool may_add(const Adding *adding, const Op *sum, int term) {
    const Fuse *fuse = adding->fuse;
    const Value *value = sum->operands[term], *other = sum->operands[1 - term];
    const Op *op = value->def;
    if (!op || value == other || op->source->recomputes || op->run_in_place ||
        adding->runs_again[op->index] || adding->runs_again[sum->index] ||
        !same_phase(fuse->module, op, sum) || free_operand(op, value->index) < 0 ||
        fuse->wanted[value->id] || fuse->users[value->id].count != 1)
        return false;
    return !other->def || other->def->index < op->index || read_behind(fuse, op, value, sum->index);
}

/* Sets an operand of the operator to `value`, with the factors of result `result`. */
static void take_operand(Module *module, Op *op, int operand, int result, Value *value) {
    Binding *binding = arena_copy(module->arena, op->binding, sizeof *binding);
    BoundAccess *operands =
        arena_copy(module->arena, binding->operands, sizeof *operands * (size_t)op->operand_count);
    Value **values =
        arena_copy(module->arena, op->operands, sizeof(Value *) * (size_t)op->operand_count);
    int access = operands[operand].access;
    operands[operand] = binding->results[result];
    operands[operand].access = access;
    values[operand] = value;
    binding->operands = operands;
    op->binding = binding;
    op->operands = values;
}

/* Lets the term's maker compute the sum, in the sum's place if other results are read later. */
static void add_there(Adding *adding, Op *sum, int term) {
    Fuse *fuse = adding->fuse;
    Module *module = fuse->module;
    Op *op = sum->operands[term]->def;
    int result = sum->operands[term]->index;
    bool moves = read_behind(fuse, op, sum->operands[term], sum->index);
    take_operand(module, op, free_operand(op, result), result, sum->operands[1 - term]);
    array_push(fuse->arena, &fuse->users[sum->operands[1 - term]->id], op);
    op->results[result] = sum->results[0];
    op->results[result]->def = op;
    op->results[result]->index = result;
    module->ops.at[moves ? op->index : sum->index] = NULL;
    if (moves) {
        module->ops.at[sum->index] = op;
        op->index = sum->index;
    }
}

void accumulate_in_place(Fuse *fuse) {
    Module *module = fuse->module;
    Adding adding = {fuse, arena_array(fuse->arena, bool, module->ops.count + 1)};
    int count = 0;
    // recomputed operators must give the same bits as before
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]->source->recomputes)
            adding.runs_again[module->ops.at[i]->source->recomputes->index] = true;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        for (int term = 1; op && term >= 0 && module->ops.at[i] == op; term--)
            if (adds_alike(module, op) && may_add(&adding, op, term)) add_there(&adding, op, term);
    }
    // close the gaps of removed sums
    for (int i = 0; i < module->ops.count; i++)
        if (module->ops.at[i]) module->ops.at[count++] = module->ops.at[i];
    module->ops.count = count;
    ir_number(module);
}
