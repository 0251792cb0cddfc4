/* Says whether a product also computes a bias's gradient. passes/fuse/side_reductions.c moves the
 * sum right before the product. */
#include "ir/analysis/side_reduction.h"

#include "ir/analysis/phases.h"

static bool has_factor(const BoundAccess *access, int factor) {
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].count == 1 && access->dims[d].factors[0] == factor) return true;
    return false;
}

/* Returns whether an operator sums its operand without computing anything else, in f32. */
static bool is_plain_sum(const Op *op) {
    const Rule *rule = op->def->rule;
    return rule->kind == RULE_BODY && rule->form == RULE_REDUCTION &&
           rule->body->kind == EXPR_ACCESS && op->operand_count == 1 && op->operands[0] &&
           op->results[0]->type.dtype == DTYPE_F32;
}

/* Returns the index of `value` if exactly one of a product's two operands is `value`; else -1. */
static int operand_of(const Op *product, const Value *value) {
    int found = -1, present = 0, times = 0;
    for (int k = 0; k < product->operand_count; k++) {
        present += product->operands[k] != NULL;
        times += product->operands[k] == value;
        found = product->operands[k] == value ? k : found;
    }
    return present == 2 && times == 1 ? found : -1;
}

int summed_operand(const Op *sum, const Op *product) {
    int k = is_plain_sum(sum) && product->def->rule->kind == RULE_BODY &&
                    product->def->rule->form == RULE_PRODUCT
                ? operand_of(product, sum->operands[0])
                : -1;
    const BoundAccess *own = &sum->binding->operands[0],
                      *there = k < 0 ? NULL : &product->binding->operands[k];
    for (int d = 0; k >= 0 && d < own->rank; d++)
        if (own->dims[d].count != 1 || there->dims[d].count != 1 ||
            has_factor(&sum->binding->results[0], own->dims[d].factors[0]) !=
                has_factor(&product->binding->results[0], there->dims[d].factors[0]))
            k = -1;
    return k;
}

const Op *op_side_reduction(const Module *module, const Op *sum) {
    const Op *next = sum->index + 1 < module->ops.count ? module->ops.at[sum->index + 1] : NULL;
    return next && same_phase(module, sum, next) && !sum->run_in_place && !next->run_in_place &&
                   summed_operand(sum, next) >= 0
               ? next
               : NULL;
}
