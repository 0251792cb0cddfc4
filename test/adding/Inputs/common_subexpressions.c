/* Pass common_subexpressions: computes what two operators compute alike once.
 *
 *     a = exp(x); b = exp(x); c = add(a, b)
 *     a = exp(x); c = add(a, a)                  after this pass
 *
 * Requires: nothing. Leaves: no two operators of one definition and section with the same operands,
 * operators with attributes aside.
 */
#include "passes/pass_manager.h"

#include <string.h>

static bool computes_the_same(const Op *a, const Op *b) {
    return a->def == b->def && a->section == b->section && !a->def->attr_count &&
           a->result_count == 1 && a->operand_count == b->operand_count &&
           !memcmp(a->operands, b->operands, sizeof *a->operands * (size_t)a->operand_count);
}

/* Returns the operator in front of number `at` that computes the same; NULL: there is none. */
static const Op *find_equal(const Module *module, int at) {
    for (int i = 0; i < at; i++)
        if (computes_the_same(module->ops.at[i], module->ops.at[at])) return module->ops.at[i];
    return NULL;
}

static void replace_value(Module *module, const Value *old, Value *value) {
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            if (module->ops.at[i]->operands[k] == old) module->ops.at[i]->operands[k] = value;
    for (int i = 0; i < module->outputs.count; i++)
        if (module->outputs.at[i].value == old) module->outputs.at[i].value = value;
    if (module->loss == old) module->loss = value;
}

void pass_common_subexpressions(Module *module, const PassContext *context) {
    (void)context;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *equal = find_equal(module, i);
        if (!equal) continue;
        replace_value(module, module->ops.at[i]->results[0], equal->results[0]);
        memmove(&module->ops.at[i], &module->ops.at[i + 1],
                sizeof *module->ops.at * (size_t)(module->ops.count - i - 1));
        module->ops.count--;
        i--;
    }
}
