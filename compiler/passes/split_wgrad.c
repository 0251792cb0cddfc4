/* Pass split_wgrad: marks weight-gradient operators, on which nothing but the optimizer depends.
 * The schedule zero_bubble runs them later, in a phase of their own.
 *
 *     dx = linear_dx(dy, w)     backward: the stage before waits for it
 *     dw = linear_dw(dy, x)     wgrad
 *
 * Requires: pass rematerialize.
 *
 * Leaves, under zero_bubble: Op.is_wgrad, and operators ordered by phase. A wgrad op's results flow
 * only into sums over micro-batches, through operators of its own layer, or conversions, views and
 * additions of any layer. Both ends of a message between visits stay in the backward phase, because
 * schedules have messages only between forward phases and between backward phases. */
#include "ir/analysis/phases.h"
#include "passes/pass_manager.h"

/* Where an operator's results are needed, from the least to the most urgent. */
typedef enum Lead {
    LEAD_SUMS,  // only in sums over micro-batches, through conversions, views and additions
    LEAD_LAYER, // only in such sums, also through operators of its own layer
    LEAD_OTHER  // elsewhere
} Lead;

typedef struct Weighing {
    const Module *module;
    Lead *lead;   // by op index
    Lead *reader; // by value id: the most urgent need of its readers (seen_by)
} Weighing;

static bool hands_on(const Module *module, const Op *op) {
    const Rule *rule = op->def->rule;
    return (op->def == module->builtin->reshard && !op_crosses_stages(module, op)) ||
           rule->kind == RULE_VIEW || rule_is_copy(rule) || op_is_addition(op);
}

static bool is_backward(const Op *op) {
    return op->loop == LOOP_EACH && op->section == SECTION_BACKWARD;
}

/* Returns where `reader` needs results of `maker`; LEAD_LAYER becomes LEAD_OTHER between layers. */
static Lead seen_by(const Weighing *weighing, const Op *maker, const Op *reader) {
    if (!loop_repeats(reader->loop) || op_gathers(weighing->module, reader)) return LEAD_SUMS;
    if (!is_backward(reader) || op_crosses_stages(weighing->module, reader)) return LEAD_OTHER;
    Lead lead = weighing->lead[reader->index];
    return lead == LEAD_LAYER && !layer_same(reader->source->layer, maker->source->layer)
               ? LEAD_OTHER
               : lead;
}

static void find_lead(Weighing *weighing, const Op *op) {
    const Module *module = weighing->module;
    Lead worst = LEAD_SUMS;
    for (int r = 0; r < op->result_count; r++)
        worst = weighing->reader[op->results[r]->id] > worst ? weighing->reader[op->results[r]->id]
                                                             : worst;
    worst = worst == LEAD_SUMS && !hands_on(module, op) ? LEAD_LAYER : worst;
    weighing->lead[op->index] = op_crosses_stages(module, op) ? LEAD_OTHER : worst;
    for (int k = 0; k < op->operand_count; k++) {
        const Op *maker = op->operands[k] ? op->operands[k]->def : NULL;
        Lead seen = maker ? seen_by(weighing, maker, op) : LEAD_SUMS;
        if (maker && seen > weighing->reader[op->operands[k]->id])
            weighing->reader[op->operands[k]->id] = seen;
    }
}

static bool reads_weights(const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->def && op->operands[k]->def->is_wgrad) return true;
    return false;
}

/* Sets Op.is_wgrad. Conversions, views and additions are wgrad if the maker of an operand is. */
static void mark(const Weighing *weighing, Op *op) {
    bool with_maker = op_gathers(weighing->module, op) || weighing->lead[op->index] == LEAD_SUMS;
    op->is_wgrad = is_backward(op) &&
                   (with_maker ? reads_weights(op) : weighing->lead[op->index] == LEAD_LAYER);
}

void pass_split_wgrad(Module *module, const PassContext *context) {
    (void)context;
    if (!module->templates->at.count || strategy_schedule(module->strategy) != SCHEDULE_ZERO_BUBBLE)
        return;
    Arena *scratch = arena_create();
    Weighing weighing = {module, arena_array(scratch, Lead, module->ops.count),
                         arena_array(scratch, Lead, module->next_id)};
    ir_number(module);
    for (int i = module->ops.count - 1; i >= 0; i--) find_lead(&weighing, module->ops.at[i]);
    for (int i = 0; i < module->ops.count; i++) mark(&weighing, module->ops.at[i]);
    arena_destroy(scratch);
    ir_order_parts(module);
}
