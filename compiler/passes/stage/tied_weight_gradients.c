/* Gradients of tied weights. If several visits read a parameter, as the first and the last stage
 * read a tied embedding, each makes a part of its gradient. The parts go directly into the sum over
 * all devices, not from stage to stage. So do parts of other sums that are read after the loop.
 *
 *     before    dw = add(dw of visit 0, dw of visit 3)           a message between stages
 *     after     dw = union(dw of visit 0, dw of visit 3)         part of the gradient's reduction
 */
#include "ir/analysis/phases.h"
#include "passes/stage/stage.h"

/* Returns whether a value is a sum of two values of the loop and has one reader. */
static bool is_sum(const Staging *staging, const Value *value) {
    const Op *op = value->def;
    return op_is_addition(op) && staging->readers[value->id] == 1 && in_loop(op->operands[0]) &&
           in_loop(op->operands[1]);
}

/* Marks a sum that is read only after the loop, and the sums that it adds. */
static void mark_loose(Staging *staging, const Value *value) {
    if (!in_loop(value) || !is_sum(staging, value)) return;
    staging->loose[value->def->index] = true;
    mark_loose(staging, value->def->operands[0]);
    mark_loose(staging, value->def->operands[1]);
}

void find_loose(Staging *staging, const bool *read) {
    const Module *module = staging->module;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->def == module->builtin->accumulate) mark_loose(staging, op->operands[0]);
        else if (loop_repeats(op->loop) && op->result_count == 1 && read[op->results[0]->id])
            mark_loose(staging, op->results[0]);
    }
}

static void collect(Staging *staging, Value *value, Summands *summands) {
    Op *op = value->def;
    if (!is_sum(staging, value)) {
        array_push(staging->arena, summands, value);
        return;
    }
    collect(staging, op->operands[0], summands);
    collect(staging, op->operands[1], summands);
}

/* Marks the additions between a sum and its terms as dissolved. */
static void dissolve(Staging *staging, const Value *value, const Summands *summands) {
    for (int i = 0; i < summands->count; i++)
        if (summands->at[i] == value) return;
    staging->dissolved[value->def->index] = true;
    dissolve(staging, value->def->operands[0], summands);
    dissolve(staging, value->def->operands[1], summands);
}

/* Returns whether a value, or a term of it, is in another visit than the given one. */
static bool is_apart(const Staging *staging, const Value *value, int visit) {
    const Op *op = value->def;
    return staging->visit[op->index] != visit ||
           (is_sum(staging, value) && (is_apart(staging, op->operands[0], visit) ||
                                       is_apart(staging, op->operands[1], visit)));
}

Summands find_summands(Staging *staging, Value *value) {
    Summands summands = {0};
    collect(staging, value, &summands);
    if (is_apart(staging, value, staging->visit[summands.at[0]->def->index])) {
        dissolve(staging, value, &summands);
        return summands;
    }
    summands.count = 0;
    array_push(staging->arena, &summands, value);
    return summands;
}
