/* Pass stage: pipeline parallelism. Copies the loop once for each pipeline template
 * (ir/pipeline_template.h) and gives each operator a stage.
 *
 *     pipeline microbatches(4) rows(2)
 *       stage devices(0-1) layers(0-5)
 *       stage devices(2) layers(6-11, head)
 *
 *     before    h6 = block(h5, w5); h7 = block(h6, w6); dw accumulated in the loop
 *     after     h6 = block(h5, w5) stage 0 visit 0    its weights are a local part of w
 *               h7 = block(h6, w6) stage 1 visit 1    h6 is sent from stage 0 to stage 1
 *               dw = union(dw of stage 0, dw of stage 1)    after the loop, for the optimizer
 *
 * Requires: pass microbatch.
 *
 * Leaves: values of the loop with the rows of one micro-batch; Op.stage and Op.visit; operators in
 * the order of their phases. With several pipelines or stages, a stage reads its own part of each
 * parameter, input and sum, and repeats operators that depend on no input. With one stage of one
 * pipeline only the types change. */
#include "ir/analysis/phases.h"
#include "passes/differentiate/differentiate.h"
#include "passes/pass_manager.h"
#include "passes/stage/stage.h"

#include <string.h>

/* ---- rows ---- */

/* Shortens a value with rows of the batch to the rows of the template's micro-batch. */
static void take_rows(Module *module, Value *value, int64_t rows) {
    if (value->micro.kind != MICRO_ROWS) return;
    int64_t *extent =
        arena_copy(module->arena, value->type.extent, sizeof *extent * (size_t)value->type.rank);
    extent[value->micro.dim] = rows / module->templates->row_unit;
    value->type.extent =
        intern(module_interned(module), extent, sizeof *extent * (size_t)value->type.rank);
}

static void take_rows_of_results(Module *module, const Op *op, int64_t rows) {
    for (int r = 0; r < op->result_count; r++) take_rows(module, op->results[r], rows);
}

/* ---- readers ---- */

static void note_reader(Staging *staging, const Value *value) {
    if (value) staging->readers[value->id]++;
}

static void find_readers(Staging *staging) {
    const Module *module = staging->module;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            note_reader(staging, module->ops.at[i]->operands[k]);
    note_reader(staging, module->loss);
    for (int i = 0; i < module->outputs.count; i++)
        note_reader(staging, module->outputs.at[i].value);
}

/* ---- values on stages ---- */

static Value *on_stage(Staging *staging, Value *value, int stage);
static Value *behind_loop(Staging *staging, Value *value);

/* Appends an operator to the operators of a loop position, and sets its stage. */
static void push(Staging *staging, Op *op, int stage, LoopPosition turn) {
    op->stage = stage;
    op->loop = turn;
    array_push(staging->module->arena, &staging->turns[turn], op);
}

/* Returns the part of a value that a stage holds, which a new operator takes from the value. */
static Value *make_part(Staging *staging, Value *value, const Op *like, int stage) {
    Module *module = staging->module;
    Op *op = ir_op_like(module, &(OpCall){module->builtin->local_part, &value, 1, NULL}, like);
    op->section = SECTION_FORWARD;
    op->results[0]->type = value->type;
    op->results[0]->dims = value->dims;
    op->results[0]->name = value->name;
    op->results[0]->micro = value->micro;
    push(staging, op, stage, LOOP_BEFORE);
    return op->results[0];
}

/* Copies to a stage an operator from before the loop, or a local_part of an input. */
static void repeat_on_stage(Staging *staging, const Op *op, int stage) {
    Value **operands = arena_array(staging->arena, Value *, op->operand_count + 1);
    bool part = op->def == staging->module->builtin->local_part;
    for (int k = 0; k < op->operand_count; k++)
        operands[k] = part ? op->operands[k] : on_stage(staging, op->operands[k], stage);
    Op *copy = ir_clone(staging->module, op, operands);
    take_lengths(staging, op, copy);
    for (int r = 0; r < op->result_count; r++) {
        staging->held[(size_t)stage * (size_t)staging->values + (size_t)op->results[r]->id] =
            copy->results[r];
        copy->results[r]->user_layout = op->results[r]->user_layout;
    }
    take_rows_of_results(staging->module, copy,
                         staging->module->templates->at.at[staging->run->template_index].rows);
    push(staging, copy, stage, op->loop);
}

/* Returns a value as operators of a stage read it. */
static Value *on_stage(Staging *staging, Value *value, int stage) {
    if (!value) return NULL;
    bool part = value->def && value->def->def == staging->module->builtin->local_part;
    if (in_loop(value) && !part && value->def->def != staging->module->builtin->accumulate)
        return staging->copy[value->id];
    Value **held = &staging->held[(size_t)stage * (size_t)staging->values + (size_t)value->id];
    Op place = op_place_at(value->at);
    if (!*held && value->def && (part || !in_loop(value)))
        repeat_on_stage(staging, value->def, stage);
    else if (!*held)
        *held =
            make_part(staging, in_loop(value) ? behind_loop(staging, value) : value, &place, stage);
    return *held;
}

/* ---- operators of the loop ---- */

static void note_copy(Staging *staging, const Value *value, Value *copy) {
    staging->copy[value->id] = copy;
}

/* Returns the position at which the results of a loop are read. */
static LoopPosition behind(LoopPosition turn) {
    return turn == LOOP_COUNT ? LOOP_BEFORE : LOOP_AFTER;
}

static Op *add_two(Staging *staging, const Value *value, Value *a, Value *b) {
    Op *add =
        ir_op_like(staging->module, &(OpCall){value->def->def, (Value *[]){a, b}, 2, NULL}, a->def);
    add->results[0]->dims = value->dims;
    return add;
}

/* Returns the sum of the terms in the phase of term `first`, and marks these terms as taken. */
static Value *add_part(Staging *staging, const Value *value, const Summands *summands, int first,
                       bool *taken) {
    Value *sum = staging->copy[summands->at[first]->id];
    for (int i = first + 1; i < summands->count; i++) {
        Value *other = staging->copy[summands->at[i]->id];
        if (taken[i] || !same_phase(staging->module, other->def, sum->def)) continue;
        Op *add = add_two(staging, value, sum, other);
        push(staging, add, sum->def->stage, sum->def->loop);
        sum = add->results[0];
        sum->micro = value->micro;
        taken[i] = true;
    }
    return sum;
}

/* Adds a visit's sum to its stage's sum in `given`, after the loop; appends a stage's first sum. */
static void add_visit(Staging *staging, const Value *value, Value *sum, LoopPosition turn,
                      Summands *given) {
    for (int i = 0; i < given->count; i++)
        if (given->at[i]->def->stage == sum->def->stage) {
            Op *add = add_two(staging, value, given->at[i], sum);
            add->stage = sum->def->stage;
            add->loop = behind(turn);
            add->section = turn == LOOP_COUNT ? SECTION_FORWARD : SECTION_UPDATE;
            add->visit = 0;
            add->is_wgrad = false;
            array_push(staging->module->arena, &staging->unions[turn], add);
            given->at[i] = add->results[0];
            return;
        }
    array_push(staging->arena, given, sum);
}

/* Makes the terms that stages contribute to a value which is read after the loop. Terms of one
 * stage are summed, and accumulated over micro-batches if there is an `accumulation`. */
static void add_summands(Staging *staging, const Op *accumulation, Value *value) {
    Value *read = accumulation ? accumulation->results[0] : value;
    Summands summands = find_summands(staging, value);
    bool *taken = arena_array(staging->arena, bool, summands.count + 1);
    for (int i = 0; i < summands.count; i++) {
        if (taken[i]) continue;
        Value *sum = add_part(staging, value, &summands, i, taken);
        if (accumulation) {
            Op *copy = ir_clone(staging->module, accumulation, &sum);
            copy->visit = sum->def->visit;
            push(staging, copy, sum->def->stage, accumulation->loop);
            sum = copy->results[0];
        }
        add_visit(staging, value, sum, value->def->loop, &staging->summands[read->id]);
    }
}

/* Returns whether an operator only accumulates or collects. */
static bool gathers(const Staging *staging, const Op *op) {
    return op->def == staging->module->builtin->accumulate ||
           op->def == staging->module->builtin->collect;
}

static Handed *find_handed(Handed *list, int stage, int visit) {
    while (list && (list->stage != stage || (visit >= 0 && list->visit != visit)))
        list = list->next;
    return list;
}

static Value *note_handed(Staging *staging, const Value *original, int stage, int visit,
                          Value *value) {
    Handed *last = arena_new(staging->arena, Handed), **end = &staging->handed[original->id];
    *last = (Handed){.stage = stage, .visit = visit, .value = value};
    while (*end) end = &(*end)->next;
    *end = last;
    return value;
}

/* Returns the value that a visit reads for a loop's value. Each visit stores its own micro-batches:
 * if another visit of the stage has the value first, a conversion before `reader` passes it on. */
static Value *in_visit(Staging *staging, const Value *original, Value *value, const Op *reader,
                       int stage, int visit) {
    Module *module = staging->module;
    const Handed *known = find_handed(staging->handed[original->id], stage, visit);
    if (known) return known->value ? known->value : value;
    Op *hand = ir_op_like(module, &(OpCall){module->builtin->reshard, &value, 1, NULL}, reader);
    hand->visit = visit;
    hand->results[0]->type = value->type;
    hand->results[0]->dims = value->dims;
    hand->results[0]->name = value->name;
    hand->results[0]->micro = value->micro;
    push(staging, hand, stage, reader->loop);
    return note_handed(staging, original, stage, visit, hand->results[0]);
}

/* Returns the position of an operator's visit in a micro-batch's run: forward, then backward. */
static int run_order(const Staging *staging, const Op *op) {
    int visit = staging->visit[op->index],
        visits = staging->module->templates->at.at[staging->run->template_index].visit_count;
    return op->section == SECTION_FORWARD ? visit : 2 * visits - visit;
}

/* Records the visit in which a stage first has a value of the loop: the visit that makes it,
 * otherwise the first that reads it. */
static void note_home(Staging *staging, const Value *original, const Op *reader) {
    const Op *maker = in_loop(original) && original->id < staging->values ? original->def : NULL;
    if (!maker || maker->loop != LOOP_EACH || maker->def == staging->module->builtin->local_part ||
        gathers(staging, maker))
        return;
    int stage = stage_of(staging, reader);
    bool here = stage_of(staging, maker) == stage;
    int own = run_order(staging, here ? maker : reader),
        visit = staging->visit[here ? maker->index : reader->index];
    Handed *home = find_handed(staging->handed[original->id], stage, -1);
    if (!home) {
        note_handed(staging, original, stage, visit, NULL);
        home = find_handed(staging->handed[original->id], stage, -1);
        home->order = own;
    } else if (own < home->order) {
        home->visit = visit;
        home->order = own;
    }
}

/* Returns operand k of an operator as its stage and visit read it. */
static Value *read_operand(Staging *staging, const Op *op, int k, int stage) {
    Value *original = op->operands[k], *value = on_stage(staging, original, stage);
    bool made = value && op->loop == LOOP_EACH && value->def && value->def->loop == LOOP_EACH &&
                original->id < staging->values && staging->copy[original->id] == value;
    return made ? in_visit(staging, original, value, op, stage, staging->visit[op->index]) : value;
}

static void copy_op(Staging *staging, const Op *op) {
    Module *module = staging->module;
    int stage = stage_of(staging, op);
    Value **operands = arena_array(staging->arena, Value *, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++) operands[k] = read_operand(staging, op, k, stage);
    Op *copy = ir_clone(module, op, operands);
    copy->visit = op->loop == LOOP_COUNT ? 0 : staging->visit[op->index];
    take_lengths(staging, op, copy);
    for (int r = 0; r < op->result_count; r++) {
        copy->results[r]->user_layout = op->results[r]->user_layout;
        note_copy(staging, op->results[r], copy->results[r]);
        if (op->def == module->builtin->collect)
            array_push(staging->arena, &staging->summands[op->results[r]->id], copy->results[r]);
    }
    take_rows_of_results(module, copy, module->templates->at.at[staging->run->template_index].rows);
    push(staging, copy, stage, op->loop);
}

/* Returns, by value id, whether a value is read after the loop directly, not accumulated. */
static bool *find_read_behind(const Staging *staging) {
    const Module *module = staging->module;
    bool *read = arena_array(staging->arena, bool, staging->values);
    if (module->loss && in_loop(module->loss)) read[module->loss->id] = true;
    for (int i = 0; i < module->outputs.count; i++) read[module->outputs.at[i].value->id] = true;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0;
             !loop_repeats(module->ops.at[i]->loop) && k < module->ops.at[i]->operand_count; k++)
            if (module->ops.at[i]->operands[k]) read[module->ops.at[i]->operands[k]->id] = true;
    return read;
}

/* Makes the operators of one loop for the current template. First finds the additions that only
 * operators after the loop need, which unions replace. */
static void make_body(Staging *staging, const bool *read, LoopPosition turn) {
    Module *module = staging->module;
    memset(staging->dissolved, 0, sizeof *staging->dissolved * (size_t)staging->ops);
    memset(staging->copy, 0, sizeof *staging->copy * (size_t)staging->values);
    memset(staging->handed, 0, sizeof *staging->handed * (size_t)staging->values);
    // 1: dissolved additions
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->def == module->builtin->accumulate) find_summands(staging, op->operands[0]);
        else if (op->loop == turn && op->result_count == 1 && read[op->results[0]->id] &&
                 !gathers(staging, op))
            find_summands(staging, op->results[0]);
    }
    // 2: the first visit of each value on each stage
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0;
             module->ops.at[i]->loop == LOOP_EACH && k < module->ops.at[i]->operand_count; k++)
            note_home(staging, module->ops.at[i]->operands[k], module->ops.at[i]);
    // 3: copies of the operators
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->loop != turn || op->def == module->builtin->local_part) continue;
        if (op->def == module->builtin->accumulate) add_summands(staging, op, op->operands[0]);
        else if (!staging->dissolved[i]) copy_op(staging, op);
        for (int r = 0; r < op->result_count && !gathers(staging, op); r++)
            if (read[op->results[r]->id]) add_summands(staging, NULL, op->results[r]);
    }
}

/* ---- after the loop ---- */

/* Returns the value that operators outside of the loop read: the union of the stages' values. */
static Value *behind_loop(Staging *staging, Value *value) {
    Module *module = staging->module;
    if (!in_loop(value)) return value;
    Value **total = &staging->total[value->id];
    if (*total) return *total;
    const Summands *summands = &staging->summands[value->id];
    Op *op = ir_op_like(
        module, &(OpCall){module->builtin->stage_union, summands->at, summands->count, NULL},
        value->def);
    op->visit = 0;
    op->is_wgrad = false;
    op->section = value->def->loop == LOOP_COUNT ? SECTION_FORWARD : SECTION_UPDATE;
    op->results[0]->type = value->type;
    op->results[0]->dims = value->dims;
    op->results[0]->name = value->name;
    op->stage = STAGE_ALL;
    op->loop = behind(value->def->loop);
    array_push(module->arena, &staging->unions[value->def->loop], op);
    return *total = op->results[0];
}

static void read_behind_loop(Staging *staging, Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k]) op->operands[k] = behind_loop(staging, op->operands[k]);
    array_push(staging->module->arena, &staging->turns[op->loop], op);
}

/* Replaces the loss, outputs and gradients that the loop makes by unions of the stages' values. */
static void finish(Staging *staging) {
    Module *module = staging->module;
    if (module->loss) module->loss = behind_loop(staging, module->loss);
    for (int i = 0; i < module->outputs.count; i++)
        module->outputs.at[i].value = behind_loop(staging, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++)
        if (module->params.at[i]->gradient)
            module->params.at[i]->gradient = behind_loop(staging, module->params.at[i]->gradient);
}

static void append_ops(Module *module, const Ops *ops) {
    for (int i = 0; i < ops->count; i++) array_push(module->arena, &module->ops, ops->at[i]);
}

/* Orders the operators by position. Unions come after their loop. */
static void order_turns(Staging *staging) {
    static const LoopPosition order[] = {LOOP_COUNT, LOOP_BEFORE, LOOP_EACH, LOOP_AFTER};
    Module *module = staging->module;
    module->ops.at = NULL;
    module->ops.count = module->ops.capacity = 0;
    for (int t = 0; t < 4; t++) {
        append_ops(module, &staging->turns[order[t]]);
        append_ops(module, &staging->unions[order[t]]);
    }
    ir_number(module);
}

/* ---- the pass ---- */

static void begin(Staging *staging) {
    Module *module = staging->module;
    ir_number(module);
    staging->values = module->next_id;
    staging->ops = module->ops.count;
    staging->readers = arena_array(staging->arena, int, staging->values);
    staging->dissolved = arena_array(staging->arena, bool, staging->ops);
    staging->loose = arena_array(staging->arena, bool, staging->ops);
    staging->visit = arena_array(staging->arena, int, staging->ops);
    staging->copy = arena_array(staging->arena, Value *, staging->values);
    staging->handed = arena_array(staging->arena, Handed *, staging->values);
    staging->total = arena_array(staging->arena, Value *, staging->values);
    staging->held =
        arena_array(staging->arena, Value *, staging->values * module->templates->stages.count);
    staging->summands = arena_array(staging->arena, Summands, staging->values);
    module->builtin->stage_union =
        module_def(module, rule_inserted(module->arena, "union",
                                         "y[i..] = union(xs[][i..]) replicate(i) kernel(union)"));
    find_readers(staging);
}

/* Makes one of the two loops for all templates. Returns false after errors. */
static bool make_loop(Staging *staging, const bool *read, LoopPosition turn) {
    Module *module = staging->module;
    for (int b = 0; b < module->templates->at.count; b++) {
        staging->run = template_first_run(module->templates, b);
        staging->shorter = staging->links->variants
                               ? staging->links->variants[staging->run->pipeline].module
                               : NULL;
        if (!find_visits(staging)) return false;
        make_body(staging, read, turn);
    }
    return true;
}

/* Makes the loops of all templates, one after another, and the operators around the loops. All
 * templates can read counted sums. */
static void make_bodies(Staging *staging) {
    Module *module = staging->module;
    begin(staging);
    const bool *read = find_read_behind(staging);
    find_loose(staging, read);
    // the counting loop comes first, because the main loop reads its sums
    if (!make_loop(staging, read, LOOP_COUNT) || !make_loop(staging, read, LOOP_EACH)) return;
    for (int i = 0; i < module->ops.count; i++)
        if (!loop_repeats(module->ops.at[i]->loop)) read_behind_loop(staging, module->ops.at[i]);
    finish(staging);
    order_turns(staging);
    remove_dead_ops(module);
    ir_order_parts(module);
}

/* Shortens values of a module with one pipeline of one stage to the rows of a micro-batch. */
static void shrink_rows(Module *module) {
    for (int i = 0; i < module->ops.count; i++)
        if (loop_repeats(module->ops.at[i]->loop))
            take_rows_of_results(module, module->ops.at[i], module->templates->at.at[0].rows);
}

void pass_stage(Module *module, const PassContext *context) {
    if (!module->templates->at.count) return;
    if (!lengths_fit(module, context->links)) return;
    if (module->templates->stages.count == 1 && module->templates->runs.count == 1 &&
        !module->templates->at.at[0].short_rows) {
        shrink_rows(module);
        return;
    }
    Staging staging = {.module = module, .links = context->links, .arena = arena_create()};
    make_bodies(&staging);
    arena_destroy(staging.arena);
}
