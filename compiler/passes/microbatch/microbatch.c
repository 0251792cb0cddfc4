/* Pass microbatch: turns the step into a loop over micro-batches (gradient accumulation).
 *
 *     pipeline microbatches(4) rows(2)      (rows_per_microbatch.c)
 *
 *     before    forward and backward on 8 rows, the optimizer
 *     after     before the loop   gathers of parameters and other work equal in every iteration
 *               in the loop       forward and backward on 2 rows; dw += gradient of the micro-batch
 *               after the loop    the optimizer, on the sum
 *
 * Requires: pass factor_dims, which marks the batch's dimension (Value.micro).
 *
 * Leaves: Op.loop, operators in the order of Op.loop, and Value.micro. In addition:
 * - an accumulation (builtin.accumulate) of every contribution that is used after the loop;
 * - a collection (builtin.collect) of every output that has rows of the batch;
 * - the rows of each micro-batch of every input (builtin.local_part).
 *
 * A value of the loop is cut by the loop, is a contribution to a sum over it, or is the same in
 * each iteration. An operator of the loop that needs a cut value as a whole, or the finished sum,
 * is an error. A sum of inputs alone, such as the number of rows that count, is needed earlier: a
 * separate loop in front computes it. Unequal pipelines need no weights: each mean divides by the
 * size of the whole batch, so that gradients are simply added. A batch that runs as a whole does
 * not change. A single micro-batch in several stages has all rows, so no value is cut. */
#include "passes/microbatch/rows_per_microbatch.h"
#include "passes/differentiate/differentiate.h"
#include "passes/pass_manager.h"

/* Most values that the pass makes of one value: counted copies, sums, parts, the value itself. */
enum { MOST_MADE = 6 };

typedef struct Loop {
    Module *module;
    Arena *arena;
    LoopPosition *turn;   // by value id: the loop, or before or after it, where it is computed
    Value **accumulated;  // by value id: the accumulation of a contribution
    bool *given;          // by value id: depends on inputs alone
    Value **counted;      // by value id: in the counting loop, the copy of a value that depends on
                          // inputs alone, or the finished sum of its rows
    Value **part;         // by value id of an input: the rows of the current micro-batch
    bool *fed;            // by value id: depends on an input, or is of a layer (place_whole)
    Array(Op *) turns[4]; // by LoopPosition: the operators
} Loop;

static bool is_cut(const Value *value) { return value && value->micro.kind == MICRO_ROWS; }

static bool any_cut(Value *const *values, int count) {
    for (int k = 0; k < count; k++)
        if (is_cut(values[k])) return true;
    return false;
}

static bool any_contribution(const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->micro.kind == MICRO_SUM) return true;
    return false;
}

static bool any_after(const Loop *loop, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && loop->turn[op->operands[k]->id] == LOOP_AFTER) return true;
    return false;
}

/* Returns whether an operator turns contributions into contributions: it is a view, or its
 * contributions are exactly the operands of one linear group of its rule (rule_linear). */
static bool passes_sum(const Op *op) {
    int group[64] = {0}, wanted = 0;
    if (op->def->rule->kind == RULE_VIEW) return true;
    rule_linear(op->def->rule, group);
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->micro.kind == MICRO_SUM)
            wanted = group[op->binding->operands[k].access];
    for (int k = 0; wanted && k < op->operand_count; k++)
        if (op->operands[k] && (group[op->binding->operands[k].access] == wanted) !=
                                   (op->operands[k]->micro.kind == MICRO_SUM))
            return false;
    return wanted != 0;
}

/* Returns the bound factor of an operator that the loop cuts; -1: none, or several factors. */
static int loop_factor(const Op *op) {
    int found = -1;
    for (int k = 0; k < op->operand_count + op->result_count; k++) {
        const Value *value =
            k < op->operand_count ? op->operands[k] : op->results[k - op->operand_count];
        const BoundAccess *access = k < op->operand_count
                                        ? &op->binding->operands[k]
                                        : &op->binding->results[k - op->operand_count];
        if (!is_cut(value) || access->dims[value->micro.dim].count != 1) continue;
        int own = access->dims[value->micro.dim].factors[0];
        if (found >= 0 && own != found) return -1;
        found = own;
    }
    return found;
}

static bool may_loop(const Op *op, int f) {
    int factor = op->binding->factors[f].factor;
    if (factor < 0) return op->def->rule->kind == RULE_VIEW;
    const Factor *own = &op->def->rule->factors[factor];
    return !own->replicate && !own->merge && own->reduction != REDUCE_MAX;
}

static void refuse(Loop *loop, const Op *op) {
    diag_error(loop->module->diag, op->at,
               "%s needs the whole batch at once, so the batch cannot run in %ld micro-batches",
               op->def->name, (long)module_microbatches(loop->module));
    diag_note(loop->module->diag, loop->module->strategy->pipelines.at[0].at,
              "use microbatches(1), or compute this per row");
}

/* Places an operator in the loop, or reports that it cannot be there. Results without the batch's
 * dimension become terms of a sum over micro-batches. */
static void place_inside(Loop *loop, const Op *op) {
    int f = loop_factor(op);
    if (any_contribution(op) || any_after(loop, op) || f < 0 || !may_loop(op, f)) {
        refuse(loop, op);
        return;
    }
    for (int k = 0; k < op->result_count; k++) {
        if (!is_cut(op->results[k])) op->results[k]->micro = (Micro){MICRO_SUM, 0};
        loop->turn[op->results[k]->id] = LOOP_EACH;
    }
}

static LoopPosition place(Loop *loop, const Op *op) {
    if (any_cut(op->operands, op->operand_count) || any_cut(op->results, op->result_count)) {
        place_inside(loop, op);
        return LOOP_EACH;
    }
    LoopPosition turn = LOOP_BEFORE;
    if (op->section == SECTION_UPDATE || any_after(loop, op)) turn = LOOP_AFTER;
    else if (any_contribution(op)) turn = passes_sum(op) ? LOOP_EACH : LOOP_AFTER;
    for (int k = 0; k < op->result_count; k++) {
        op->results[k]->micro = (Micro){turn == LOOP_EACH ? MICRO_SUM : MICRO_WHOLE, 0};
        loop->turn[op->results[k]->id] = turn;
    }
    return turn;
}

/* Returns the result of a new operator that accumulates a value, or collects its rows, in the loop.
 * The operator has the layer of `like` and the source position of `user`. */
static Value *gather_turns(Loop *loop, const OpDef *def, Value *value, const Op *like,
                           const Op *user, LoopPosition turn) {
    Module *module = loop->module;
    Op *op = ir_op_like(module, &(OpCall){def, &value, 1, NULL}, like);
    op->at = user->at;
    op_change_source(module->arena, op)->frames = user->source->frames;
    op->loop = turn;
    op->results[0]->type = value->type;
    op->results[0]->dims = value->dims;
    op->results[0]->name = value->name;
    return op->results[0];
}

/* Makes an accumulation of `value`. In the main loop, order_turns inserts the accumulation. */
static void add_accumulation(Loop *loop, Value *value, const Op *like, const Op *user,
                             LoopPosition turn) {
    loop->accumulated[value->id] =
        gather_turns(loop, loop->module->builtin->accumulate, value, like, user, turn);
    if (turn != LOOP_EACH)
        array_push(loop->module->arena, &loop->turns[turn], loop->accumulated[value->id]->def);
}

/* Returns the finished sum of a contribution, made once; any other value as it is. The accumulation
 * has the source position of `user`, which needs it, and the layer of the contribution. */
static Value *whole(Loop *loop, Value *value, const Op *user) {
    if (value && loop->turn[value->id] == LOOP_COUNT) return loop->counted[value->id];
    if (!value || value->micro.kind != MICRO_SUM) return value;
    if (!loop->accumulated[value->id]) add_accumulation(loop, value, value->def, user, LOOP_EACH);
    return loop->accumulated[value->id];
}

/* ---- inputs ---- */

/* Returns the current micro-batch's rows of an input, which a new operator in loop `turn` makes. */
static Value *part_of(Loop *loop, Value *input, LoopPosition turn, const Op *user) {
    Op *op = ir_op_like(loop->module, &(OpCall){loop->module->builtin->local_part, &input, 1, NULL},
                        user);
    op->section = SECTION_FORWARD;
    OpSource *source = op_change_source(loop->module->arena, op);
    source->layer = NULL;
    source->scope = NULL;
    source->op = -1;
    op->loop = turn;
    op->results[0]->type = input->type;
    op->results[0]->dims = input->dims;
    op->results[0]->name = input->name;
    op->results[0]->at = input->at;
    op->results[0]->micro = input->micro;
    op->results[0]->user_layout = input->user_layout;
    array_push(loop->module->arena, &loop->turns[turn], op);
    return op->results[0];
}

/* Replaces inputs among the operands of a loop's operator by the rows of the micro-batch. */
static void take_parts(Loop *loop, Op *op) {
    for (int k = 0; k < op->operand_count; k++) {
        Value *value = op->operands[k];
        if (!value || value->kind != VALUE_INPUT || value->micro.kind == MICRO_WHOLE) continue;
        if (!loop->part[value->id]) loop->part[value->id] = part_of(loop, value, LOOP_EACH, op);
        op->operands[k] = loop->part[value->id];
    }
}

/* ---- sums of inputs: the counting loop ---- */

static bool is_given(const Loop *loop, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && !loop->given[op->operands[k]->id]) return false;
    return true;
}

static Value *counted(Loop *loop, Value *value, const Op *user);

/* Copies an operator into the counting loop. */
static Op *count_op(Loop *loop, const Op *op, const Op *user) {
    Value **operands = arena_array(loop->arena, Value *, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++) operands[k] = counted(loop, op->operands[k], user);
    Op *copy = ir_clone(loop->module, op, operands);
    copy->loop = LOOP_COUNT;
    array_push(loop->module->arena, &loop->turns[LOOP_COUNT], copy);
    return copy;
}

/* Returns the copy of a value, which depends on inputs alone, in the counting loop. */
static Value *counted(Loop *loop, Value *value, const Op *user) {
    if (!value || loop->counted[value->id]) return value ? loop->counted[value->id] : NULL;
    if (!value->def)
        return loop->counted[value->id] = value->micro.kind != MICRO_WHOLE
                                              ? part_of(loop, value, LOOP_COUNT, user)
                                              : value;
    const Op *op = value->def;
    if (op->def == loop->module->builtin->local_part)
        return loop->counted[value->id] = counted(loop, op->operands[0], user);
    Op *copy = count_op(loop, op, user);
    for (int k = 0; k < op->result_count; k++) loop->counted[op->results[k]->id] = copy->results[k];
    return loop->counted[value->id];
}

/* Returns whether the operator sums over rows and depends on inputs alone. */
static bool sums_given(const Loop *loop, const Op *op) {
    return is_given(loop, op) && any_cut(op->operands, op->operand_count) &&
           !any_cut(op->results, op->result_count);
}

static void add_accumulation(Loop *loop, Value *value, const Op *like, const Op *user,
                             LoopPosition turn);

/* Replaces a sum over rows by a sum in the counting loop, and its results by the finished sums. */
static void place_count(Loop *loop, Op *op) {
    int f = loop_factor(op);
    if (f < 0 || !may_loop(op, f)) {
        refuse(loop, op);
        return;
    }
    const Op *copy = count_op(loop, op, op);
    for (int k = 0; k < op->result_count; k++) {
        copy->results[k]->micro = (Micro){MICRO_SUM, 0};
        add_accumulation(loop, copy->results[k], copy, op, LOOP_COUNT);
        loop->counted[op->results[k]->id] = loop->accumulated[copy->results[k]->id];
        loop->turn[op->results[k]->id] = LOOP_COUNT;
    }
}

/* Records whether the results depend on inputs alone. If the operator sums rows of inputs alone,
 * moves it to the counting loop and returns true. */
static bool place_given(Loop *loop, Op *op) {
    bool sums = sums_given(loop, op);
    for (int k = 0; k < op->result_count; k++)
        loop->given[op->results[k]->id] = is_given(loop, op) && !sums;
    if (sums) place_count(loop, op);
    return sums;
}

/* Replaces operands that the counting loop computes by the finished sums. */
static void take_counts(Loop *loop, Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && loop->turn[op->operands[k]->id] == LOOP_COUNT)
            op->operands[k] = loop->counted[op->operands[k]->id];
}

/* ---- one micro-batch in several stages ---- */

/* Returns where an operator runs if the loop has one micro-batch. Seeds of gradients run before the
 * loop, for all stages; so does an operator that is in no layer and depends on no input. */
static LoopPosition place_whole(const Loop *loop, const Op *op) {
    bool fed = op->source->layer || (op->section != SECTION_FORWARD && op->operand_count);
    for (int k = 0; k < op->operand_count; k++)
        fed |= op->operands[k] &&
               (op->operands[k]->kind == VALUE_INPUT || loop->fed[op->operands[k]->id]);
    for (int k = 0; k < op->result_count; k++) loop->fed[op->results[k]->id] = fed;
    return op->section == SECTION_UPDATE ? LOOP_AFTER : fed ? LOOP_EACH : LOOP_BEFORE;
}

/* Reports parameters that have rows of the batch. A parameter is updated whole, once a step. */
static void check_parameters(const Module *module) {
    for (int i = 0; i < module->params.count; i++) {
        const Value *value = module->params.at[i]->value;
        if (!is_cut(value)) continue;
        diag_error(
            module->diag, value->at,
            "the %s \"%s\" has the rows of the batch, so the batch cannot run in %ld micro-batches",
            module->params.at[i]->state ? "state" : "parameter", value->name,
            (long)module_microbatches(module));
        diag_note(module->diag, module->strategy->pipelines.at[0].at, "use microbatches(1)");
    }
}

static void place_all(Loop *loop) {
    Module *module = loop->module;
    bool cuts = microbatch_cuts(module);
    for (int i = 0; i < module->inputs.count; i++) loop->given[module->inputs.at[i]->id] = true;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        take_counts(loop, op);
        if (cuts && place_given(loop, op)) continue;
        // an operator after the loop reads finished sums; one in the loop reads parts of inputs
        op->loop = cuts ? place(loop, op) : place_whole(loop, op);
        if (diag_errors(module->diag)) return;
        for (int k = 0; op->loop == LOOP_AFTER && k < op->operand_count; k++)
            op->operands[k] = whole(loop, op->operands[k], op);
        if (op->loop == LOOP_EACH) take_parts(loop, op);
        array_push(module->arena, &loop->turns[op->loop], op);
    }
}

/* Returns an output's rows of all micro-batches, which a new operator collects. */
static Value *collected(Loop *loop, Value *value, const Op *end) {
    Op place = op_place_at(end->at);
    const Op *like = value->def ? value->def : &place;
    if (value->kind == VALUE_INPUT) {
        if (!loop->part[value->id]) loop->part[value->id] = part_of(loop, value, LOOP_EACH, end);
        value = loop->part[value->id];
    }
    Value *rows = gather_turns(loop, loop->module->builtin->collect, value, like, end, LOOP_EACH);
    array_push(loop->module->arena, &loop->turns[LOOP_EACH], rows->def);
    return rows;
}

/* Sets the loss, outputs and gradients to their values after the loop. */
static void finish(Loop *loop) {
    Module *module = loop->module;
    Op end = op_place_at(module->source->at);
    module->loss = whole(loop, module->loss, &end);
    for (int i = 0; i < module->outputs.count; i++) {
        Output *output = &module->outputs.at[i];
        output->value = is_cut(output->value) ? collected(loop, output->value, &end)
                                              : whole(loop, output->value, &end);
    }
    for (int i = 0; i < module->params.count; i++) {
        Parameter *parameter = module->params.at[i];
        const Value *gradient = parameter->gradient;
        if (gradient && loop->turn[gradient->id] == LOOP_COUNT)
            parameter->gradient = loop->counted[gradient->id];
        else if (gradient && loop->accumulated[gradient->id])
            parameter->gradient = loop->accumulated[gradient->id];
    }
}

/* Appends an operator, and after it the accumulations of its results. */
static void put_op(Loop *loop, Op *op) {
    Module *module = loop->module;
    array_push(module->arena, &module->ops, op);
    for (int r = 0; r < op->result_count && op->loop == LOOP_EACH; r++)
        if (loop->accumulated[op->results[r]->id])
            array_push(module->arena, &module->ops, loop->accumulated[op->results[r]->id]->def);
}

static void order_turns(Loop *loop) {
    Module *module = loop->module;
    static const LoopPosition order[] = {LOOP_COUNT, LOOP_BEFORE, LOOP_EACH, LOOP_AFTER};
    module->ops.at = NULL;
    module->ops.count = module->ops.capacity = 0;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < loop->turns[order[t]].count; i++)
            put_op(loop, loop->turns[order[t]].at[i]);
    ir_number(module);
}

void pass_microbatch(Module *module, const PassContext *context) {
    (void)context;
    if (!microbatch_loops(module)) return;
    Loop loop = {.module = module, .arena = arena_create()};
    int values = MOST_MADE * module->next_id;
    loop.turn = arena_array(loop.arena, LoopPosition, values);
    loop.accumulated = arena_array(loop.arena, Value *, values);
    loop.given = arena_array(loop.arena, bool, values);
    loop.counted = arena_array(loop.arena, Value *, values);
    loop.part = arena_array(loop.arena, Value *, values);
    loop.fed = arena_array(loop.arena, bool, values);
    module->builtin->accumulate =
        module_def(module, rule_inserted(module->arena, "accumulate", "y[i..] = x[i..]"));
    module->builtin->local_part =
        module_def(module, rule_inserted(module->arena, "part", "y[i..] = x[i..]"));
    module->builtin->collect =
        module_def(module, rule_inserted(module->arena, "collect", "y[i..] = x[i..]"));
    // 1: place operators; 2: replace outputs and gradients; 3: order operators
    check_parameters(module);
    if (!diag_errors(module->diag)) place_all(&loop);
    if (!diag_errors(module->diag)) {
        finish(&loop);
        order_turns(&loop);
        remove_dead_ops(module);
        ir_number(module);
    }
    arena_destroy(loop.arena);
}
