/* Says which half of a ring step's join exists on a device (causal masks leave some out). */
#include "ir/analysis/joined_results.h"

#include "ir/programs/regions.h"

#include <string.h>

/* Returns the bound factor whose pieces the operator `name` joins (clause `merge`); -1: none. */
static int merged_factor(const Op *op, const char *name) {
    for (int f = 0; op->def->rule->kind != RULE_VIEW && f < op->binding->factor_count; f++) {
        const char *merge = op->def->rule->factors[op->binding->factors[f].factor].merge;
        if (merge && !strcmp(merge, name)) return f;
    }
    return -1;
}

/* Returns whether an operator joins a ring step's results with the results of earlier steps. */
static bool joins(const Op *op) {
    return op->run_in_place &&
           merged_factor(op->operands[op->result_count]->def, op->def->name) >= 0;
}

/* Returns whether a device holds elements of all operands that have a factor, in a ring step. */
static bool has_piece(Module *module, const Op *op, int factor, int device) {
    for (int k = 0; k < op->operand_count; k++)
        for (int d = 0; op->operands[k] && d < op->binding->operands[k].rank; d++)
            if (op->binding->operands[k].dims[d].factors[0] == factor &&
                !value_region(module, op->operands[k], device)->box_count)
                return false;
    return true;
}

/* Returns whether the results of an operator exist on a device. The operator is a ring step, or the
 * operator `name`, which joins the results of several ring steps. */
static bool has_results(Module *module, const Op *op, const char *name, int device) {
    if (joins(op))
        return has_results(module, op->operands[0]->def, name, device) ||
               has_results(module, op->operands[op->result_count]->def, name, device);
    int factor = merged_factor(op, name);
    return factor < 0 || has_piece(module, op, factor, device);
}

JoinedHalf op_joined(Module *module, const Op *op, int device) {
    if (!joins(op)) return JOINED_BOTH;
    bool first = has_results(module, op->operands[0]->def, op->def->name, device);
    bool second = has_results(module, op->operands[op->result_count]->def, op->def->name, device);
    return first == second ? JOINED_BOTH : first ? JOINED_FIRST : JOINED_SECOND;
}
