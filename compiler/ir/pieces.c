#include "ir/pieces.h"

#include "ir/roles.h"

#include <string.h>

/* Whether operands of an operator from `first` on are the results of one other, in order. */
static bool are_results(const Op *op, int first)
{
    const Op *maker = op->operands[first] ? op->operands[first]->def : NULL;
    bool all = maker && maker->result_count == op->result_count;
    for (int k = 0; all && k < op->result_count; k++)
        all = op->operands[first + k] == maker->results[k];
    return all;
}

/* The bound factor whose pieces the operator `name` joins; -1 when there is none. */
static int merged_factor(const Op *op, const char *name)
{
    for (int f = 0; op->def->rule->kind != RULE_VIEW && f < op->binding->factor_count; f++) {
        const char *merge = op->def->rule->factors[op->binding->factors[f].factor].merge;
        if (merge && !strcmp(merge, name))
            return f;
    }
    return -1;
}

/* Whether an operator joins the results of a piece with those of others. */
static bool joins(const Op *op)
{
    int count = op->result_count;
    if (op->operand_count != 2 * count || !are_results(op, 0) || !are_results(op, count))
        return false;
    const Op *first = op->operands[0]->def, *second = op->operands[count]->def;
    return merged_factor(second, op->def->name) >= 0 && (first->def == second->def || first->def == op->def);
}

/* Whether a device has a piece of a factor. */
static bool has_piece(Module *module, const Op *op, int factor, int device)
{
    for (int k = 0; k < op->operand_count; k++)
        for (int d = 0; op->operands[k] && d < op->binding->operands[k].rank; d++)
            if (op->binding->operands[k].dims[d].factors[0] == factor && !value_region(module, op->operands[k], device)->box_count)
                return false;
    return true;
}

/* Whether a device has results of an operator, which joins results by that of this name or makes them. */
static bool has_results(Module *module, const Op *op, const char *name, int device)
{
    if (joins(op))
        return has_results(module, op->operands[0]->def, name, device) ||
               has_results(module, op->operands[op->result_count]->def, name, device);
    int factor = merged_factor(op, name);
    return factor < 0 || has_piece(module, op, factor, device);
}

JoinedHalf op_joined(Module *module, const Op *op, int device)
{
    if (!joins(op))
        return JOINED_BOTH;
    bool first = has_results(module, op->operands[0]->def, op->def->name, device);
    bool second = has_results(module, op->operands[op->result_count]->def, op->def->name, device);
    return first == second ? JOINED_BOTH : first ? JOINED_FIRST : JOINED_SECOND;
}

bool op_joins_everywhere(Module *module, const Op *op)
{
    const Mesh *mesh = op_mesh(module, op);
    for (int i = 0; joins(op) && i < mesh->device_count; i++)
        if (op_joined(module, op, mesh->devices[i]) != JOINED_BOTH)
            return false;
    return true;
}
