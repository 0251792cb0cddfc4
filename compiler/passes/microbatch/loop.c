/* Pass microbatch: the step becomes a loop over micro-batches, with what does not depend on them before it and what needs their sum behind
 * it.
 *
 * Requires: pass refine, which gave values of the batch the loop's dimension. Leaves: Op.turn, operators in the order of their turns,
 * Value.micro, and an accumulation of every contribution that is used behind the loop. Nothing changes for one micro-batch. A value is cut
 * by the loop, is a contribution to a sum over it, or does not depend on it; an operator that needs the whole of a cut value, or works on
 * the sum inside the loop, is an error. What inputs alone add up to, such as the number of rows that count, is known before the loop: it is
 * computed there, of the whole inputs.
 */
#include "passes/gradient/differentiate.h"
#include "passes/pipeline.h"

#include <string.h>

typedef struct Loop {
    Module *module;
    Arena *arena;
    Turn *turn;          // by value id: when it is known
    Value **accumulated; // by value id: the accumulation of a contribution
    bool *given;         // by value id: computed from inputs alone
    Value **uncut;       // by value id: a cut value as a whole, before the loop
    Array(Op *) turns[3];
} Loop;

static bool is_cut(const Value *value) { return value && value->micro > 0; }

static bool any_cut(Value *const *values, int count)
{
    for (int k = 0; k < count; k++)
        if (is_cut(values[k]))
            return true;
    return false;
}

static bool any_contribution(const Op *op)
{
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->micro == MICRO_SUM)
            return true;
    return false;
}

static bool any_after(const Loop *loop, const Op *op)
{
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && loop->turn[op->operands[k]->id] == TURN_AFTER)
            return true;
    return false;
}

/* Whether contributions go through an operator: they are the whole of one linear group. */
static bool passes_sum(const Op *op)
{
    int group[64] = {0}, wanted = 0;
    if (op->def->rule->kind == RULE_VIEW)
        return true;
    rule_linear(op->def->rule, group);
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->micro == MICRO_SUM)
            wanted = group[op->binding->operands[k].access];
    for (int k = 0; wanted && k < op->operand_count; k++)
        if (op->operands[k] && (group[op->binding->operands[k].access] == wanted) != (op->operands[k]->micro == MICRO_SUM))
            return false;
    return wanted != 0;
}

/* The bound factor that the loop runs over in this operator; -1 when it has none. */
static int loop_factor(const Op *op)
{
    for (int k = 0; k < op->operand_count + op->result_count; k++) {
        const Value *value = k < op->operand_count ? op->operands[k] : op->results[k - op->operand_count];
        const BoundAccess *access = k < op->operand_count ? &op->binding->operands[k] : &op->binding->results[k - op->operand_count];
        if (is_cut(value) && access->dims[value->micro - 1].count == 1)
            return access->dims[value->micro - 1].factors[0];
    }
    return -1;
}

static bool may_loop(const Op *op, int f)
{
    int factor = op->binding->factors[f].factor;
    if (factor < 0)
        return op->def->rule->kind == RULE_VIEW;
    if (op->def->rule->factors[factor].replicate)
        return false;
    return op->def->rule->factors[factor].reduction != REDUCE_MAX;
}

static void refuse(Loop *loop, const Op *op)
{
    diag_error(loop->module->diag, op->at, "%s needs the whole batch at once, so the batch cannot run in %ld micro-batches", op->def->name,
               (long)loop->module->microbatches);
    diag_note(loop->module->diag, loop->module->strategy->pipelines.at[0].at, "use microbatches(1), or compute this per row");
}

/* An operator inside the loop: its results are cut where they have the loop's dimension, else contributions. */
static void place_inside(Loop *loop, const Op *op)
{
    int f = loop_factor(op);
    if (any_contribution(op) || any_after(loop, op) || f < 0 || !may_loop(op, f)) {
        refuse(loop, op);
        return;
    }
    for (int k = 0; k < op->result_count; k++) {
        if (!is_cut(op->results[k]))
            op->results[k]->micro = MICRO_SUM;
        loop->turn[op->results[k]->id] = TURN_EACH;
    }
}

static Turn place(Loop *loop, const Op *op)
{
    if (any_cut(op->operands, op->operand_count) || any_cut(op->results, op->result_count)) {
        place_inside(loop, op);
        return TURN_EACH;
    }
    Turn turn = TURN_BEFORE;
    if (op->section == SECTION_UPDATE || any_after(loop, op))
        turn = TURN_AFTER;
    else if (any_contribution(op))
        turn = passes_sum(op) ? TURN_EACH : TURN_AFTER;
    for (int k = 0; k < op->result_count; k++) {
        op->results[k]->micro = turn == TURN_EACH ? MICRO_SUM : 0;
        loop->turn[op->results[k]->id] = turn;
    }
    return turn;
}

/* What a contribution adds up to, made once; other values are themselves. The line is that of `user`, which needs the sum, the layer that
 * of the contribution. */
static Value *whole(Loop *loop, Value *value, const Op *user)
{
    Module *module = loop->module;
    if (!value || value->micro != MICRO_SUM)
        return value;
    if (!loop->accumulated[value->id]) {
        Op *op = ir_op_like(module, module->accumulate_def, &value, 1, NULL, value->def);
        op->at = user->at;
        op->frames = user->frames;
        op->turn = TURN_EACH;
        op->results[0]->type = value->type;
        op->results[0]->dims = value->dims;
        op->results[0]->name = value->name;
        loop->accumulated[value->id] = op->results[0];
    }
    return loop->accumulated[value->id];
}

/* ---- what inputs alone add up to ---- */

static bool is_given(const Loop *loop, const Op *op)
{
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && !loop->given[op->operands[k]->id])
            return false;
    return true;
}

static void place_before(Loop *loop, Op *op)
{
    op->turn = TURN_BEFORE;
    array_push(loop->module->arena, &loop->turns[TURN_BEFORE], op);
}

/* The whole of an input, which lies in its storage. */
static Value *whole_input(Loop *loop, Value *input, const Op *user)
{
    Op *op = ir_op_like(loop->module, loop->module->reshard_def, &input, 1, NULL, user);
    op->reason = "what is computed before the loop over micro-batches";
    op->results[0]->type = input->type;
    op->results[0]->dims = input->dims;
    op->results[0]->name = input->name;
    place_before(loop, op);
    return op->results[0];
}

static Value *uncut(Loop *loop, Value *value, const Op *user);

/* The operator once more, of whole operands. */
static void repeat_uncut(Loop *loop, const Op *op, const Op *user)
{
    Value **operands = arena_array(loop->arena, Value *, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++)
        operands[k] = uncut(loop, op->operands[k], user);
    Op *copy = ir_clone(loop->module, op, operands);
    for (int k = 0; k < op->result_count; k++)
        loop->uncut[op->results[k]->id] = copy->results[k];
    place_before(loop, copy);
}

/* A value that is computed from inputs alone as a whole, before the loop. */
static Value *uncut(Loop *loop, Value *value, const Op *user)
{
    if (!is_cut(value))
        return value;
    if (!loop->uncut[value->id] && value->def)
        repeat_uncut(loop, value->def, user);
    if (!loop->uncut[value->id])
        loop->uncut[value->id] = whole_input(loop, value, user);
    return loop->uncut[value->id];
}

/* Whether the operator adds up what inputs alone give. */
static bool sums_given(const Loop *loop, const Op *op)
{
    return is_given(loop, op) && any_cut(op->operands, op->operand_count) && !any_cut(op->results, op->result_count);
}

/* Notes what the operator computes from inputs alone; where that is a sum, it moves in front of the loop. Returns whether it does. */
static bool place_given(Loop *loop, Op *op)
{
    bool sums = sums_given(loop, op);
    for (int k = 0; k < op->result_count; k++)
        loop->given[op->results[k]->id] = is_given(loop, op);
    for (int k = 0; sums && k < op->operand_count; k++)
        op->operands[k] = uncut(loop, op->operands[k], op);
    if (sums)
        place_before(loop, op);
    return sums;
}

/* A parameter is updated once in a step, as a whole. */
static void check_parameters(const Module *module)
{
    for (int i = 0; i < module->params.count; i++) {
        const Value *value = module->params.at[i]->value;
        if (!is_cut(value))
            continue;
        diag_error(module->diag, value->at, "the parameter \"%s\" has the rows of the batch, so the batch cannot run in %ld micro-batches",
                   value->name, (long)module->microbatches);
        diag_note(module->diag, module->strategy->pipelines.at[0].at, "use microbatches(1)");
    }
}

static void place_all(Loop *loop)
{
    Module *module = loop->module;
    for (int i = 0; i < module->inputs.count; i++)
        loop->given[module->inputs.at[i]->id] = true;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        if (place_given(loop, op))
            continue;
        op->turn = place(loop, op);
        if (diag_errors(module->diag))
            return;
        for (int k = 0; op->turn == TURN_AFTER && k < op->operand_count; k++)
            op->operands[k] = whole(loop, op->operands[k], op);
        array_push(module->arena, &loop->turns[op->turn], op);
    }
}

/* The loss, the outputs and the gradients are what is known behind the loop. */
static void finish(Loop *loop)
{
    Module *module = loop->module;
    Op end = op_place_at(module->at);
    module->loss = whole(loop, module->loss, &end);
    for (int i = 0; i < module->outputs.count; i++) {
        Output *output = &module->outputs.at[i];
        if (is_cut(output->value))
            diag_error(module->diag, output->value->at,
                       "the output \"%s\" has the rows of the batch, which are there only a micro-batch at a time", output->name);
        output->value = whole(loop, output->value, &end);
    }
    for (int i = 0; i < module->params.count; i++) {
        Parameter *parameter = module->params.at[i];
        if (parameter->gradient && loop->accumulated[parameter->gradient->id])
            parameter->gradient = loop->accumulated[parameter->gradient->id];
    }
}

/* An operator, and behind it the sums over micro-batches of what it makes. */
static void put_op(Loop *loop, Op *op)
{
    Module *module = loop->module;
    array_push(module->arena, &module->ops, op);
    for (int r = 0; r < op->result_count && op->turn == TURN_EACH; r++)
        if (loop->accumulated[op->results[r]->id])
            array_push(module->arena, &module->ops, loop->accumulated[op->results[r]->id]->def);
}

static void order_turns(Loop *loop)
{
    Module *module = loop->module;
    module->ops.at = NULL;
    module->ops.count = module->ops.capacity = 0;
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < loop->turns[turn].count; i++)
            put_op(loop, loop->turns[turn].at[i]);
    ir_number(module);
}

void pass_microbatch(Module *module)
{
    if (module->microbatches <= 1)
        return;
    Loop loop = {.module = module, .arena = arena_create()};
    loop.turn = arena_array(loop.arena, Turn, module->next_id);
    loop.accumulated = arena_array(loop.arena, Value *, module->next_id);
    loop.given = arena_array(loop.arena, bool, module->next_id);
    loop.uncut = arena_array(loop.arena, Value *, module->next_id);
    module->accumulate_def = module_def(module, rule_inserted(module->arena, "accumulate", "y[i..] = x[i..]"));
    check_parameters(module);
    if (!diag_errors(module->diag))
        place_all(&loop);
    if (!diag_errors(module->diag)) {
        finish(&loop);
        order_turns(&loop);
        remove_dead_ops(module);
        ir_number(module);
    }
    arena_destroy(loop.arena);
}
