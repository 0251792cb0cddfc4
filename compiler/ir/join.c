/* Calls that put any number of tensors into a row (clause `row`), in groups that a call can take:
 *
 *     concat(t0, ..., t63)     64 tensors: more than a call may have (IR_MAX_FACTORS)
 *
 *     u0 = concat(t0, ..., t15)   ...   u3 = concat(t48, ..., t63)   y = concat(u0, u1, u2, u3)
 */
#include "ir/module.h"

enum { GROUP = IR_MAX_FACTORS / 2 }; // most tensors of a group

/* Returns the most tensors that one call puts into a row. Each tensor has a factor of its own, and
 * each dimension of the result has one. */
static int most_tensors(const OpCall *call) {
    int most = IR_MAX_FACTORS - call->operands[0]->type.rank;
    return most < IR_MAX_OPERANDS ? most : IR_MAX_OPERANDS;
}

static Op *join_one(Module *module, const OpCall *call, Position at, Ops *joins) {
    Op *op = ir_op(module, call, at);
    if (op) array_push(module->arena, joins, op);
    return op;
}

bool ir_join(Module *module, const OpCall *call, Position at, Ops *joins) {
    const Rule *rule = call->def->rule;
    bool row = rule->kind == RULE_CALL && rule->copy.row >= 0 && rule->operand_count == 1;
    OpCall left = *call;
    // replace groups of neighbouring tensors by what a call of each group gives, until they fit
    while (row && left.operand_count && left.operands[0] &&
           left.operand_count > most_tensors(&left)) {
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
