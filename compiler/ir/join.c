#include "ir/join.h"

enum { GROUP = IR_MAX_FACTORS / 2 }; // most tensors of a group

/* Returns the most tensors that one call puts into a row. Each tensor has a factor of its own, and
 * each dimension of the result has one. */
static int most_tensors(const OpCall *call) {
    int most = IR_MAX_FACTORS - call->operands[0]->type.rank;
    return most < IR_MAX_OPERANDS ? most : IR_MAX_OPERANDS;
}

static Op *join_one(Module *module, const OpCall *call, Position at, Joins *joins) {
    Op *op = ir_op(module, call, at);
    if (op) array_push(module->arena, joins, op);
    return op;
}

bool ir_join(Module *module, const OpCall *call, Position at, Joins *joins) {
    const Rule *rule = call->def->rule;
    bool row = rule->kind == RULE_CALL && rule->copy.row >= 0 && rule->operand_count == 1;
    OpCall left = *call;
    // replace groups of neighbouring tensors by what a call of each group gives, until they fit
    while (row && left.operand_count && left.operand_count > most_tensors(&left)) {
        int groups = (left.operand_count + GROUP - 1) / GROUP;
        Value **joined = arena_array(module->arena, Value *, groups);
        for (int g = 0; g < groups; g++) {
            int first = (int)((int64_t)left.operand_count * g / groups),
                end = (int)((int64_t)left.operand_count * (g + 1) / groups);
            OpCall part = {left.def, left.operands + first, end - first, left.attrs};
            Op *op = join_one(module, &part, at, joins);
            if (!op) return false;
            joined[g] = op->results[0];
        }
        left.operands = joined;
        left.operand_count = groups;
    }
    return join_one(module, &left, at, joins) != NULL;
}
