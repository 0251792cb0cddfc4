/* Sums over visits: what a parameter that several visits read has of each of them goes into the sum over all devices, not from stage to
 * stage. */
#include "ir/parts.h"
#include "passes/stage/stage.h"

static void collect(Staging *staging, Value *value, Summands *summands)
{
    Op *op = value->def;
    bool apart = op_is_addition(op) && staging->readers[value->id] == 1 && in_loop(op->operands[0]) && in_loop(op->operands[1]);
    if (!apart) {
        array_push(staging->arena, summands, value);
        return;
    }
    collect(staging, op->operands[0], summands);
    collect(staging, op->operands[1], summands);
}

/* Marks the additions between a sum and its summands. */
static void dissolve(Staging *staging, const Value *value, const Summands *summands)
{
    for (int i = 0; i < summands->count; i++)
        if (summands->at[i] == value)
            return;
    staging->dissolved[value->def->index] = true;
    dissolve(staging, value->def->operands[0], summands);
    dissolve(staging, value->def->operands[1], summands);
}

Summands find_summands(Staging *staging, Value *value)
{
    Summands summands = {0};
    bool apart = false;
    collect(staging, value, &summands);
    for (int i = 1; i < summands.count; i++)
        apart |= staging->visit[summands.at[i]->def->index] != staging->visit[summands.at[0]->def->index];
    if (apart) {
        dissolve(staging, value, &summands);
        return summands;
    }
    summands.count = 0;
    array_push(staging->arena, &summands, value);
    return summands;
}
