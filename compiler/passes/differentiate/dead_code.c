/* Dead code elimination. Equal operators are not merged (no common subexpression elimination).
 *
 *     before    a = f(x); b = g(a); loss = h(x)     nothing reads b
 *     after     loss = h(x)
 */
#include "passes/differentiate/differentiate.h"

static void mark(bool *live, const Value *value) {
    if (value) live[value->id] = true;
}

static void mark_ends(const Module *module, bool *live) {
    mark(live, module->loss);
    for (int i = 0; i < module->outputs.count; i++) mark(live, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        mark(live, param->updated);
        for (int k = 0; k < param->state_count; k++) mark(live, param->states_updated[k]);
    }
}

/* Returns whether any result is live; if so, marks the operands as live. */
static bool keep(const Op *op, bool *live) {
    bool kept = false;
    for (int k = 0; k < op->result_count; k++) kept |= live[op->results[k]->id];
    for (int k = 0; kept && k < op->operand_count; k++) mark(live, op->operands[k]);
    return kept;
}

void remove_dead_ops(Module *module) {
    bool *live = arena_array(module->arena, bool, module->next_id + 1);
    bool *kept = arena_array(module->arena, bool, module->ops.count + 1);
    int count = 0;
    mark_ends(module, live);
    // operands are marked before their makers are visited
    for (int i = module->ops.count - 1; i >= 0; i--) kept[i] = keep(module->ops.at[i], live);
    for (int i = 0; i < module->ops.count; i++)
        if (kept[i]) module->ops.at[count++] = module->ops.at[i];
    module->ops.count = count;
}
