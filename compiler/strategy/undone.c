#include "syntax/undone.h"
#include "strategy/strategy.h"

static void check_splits(Diag *diag, const Strategy *strategy)
{
    for (int i = 0; i < strategy->splits.count; i++)
        if (strategy->splits.at[i].fold)
            undone_error(diag, strategy->splits.at[i].at, UNDONE_FOLD);
}

bool strategy_check_done(Diag *diag, const Strategy *strategy)
{
    int before = diag_errors(diag);
    bool several = strategy->pipelines.count > 1 || strategy->pipelines.at[0].stages.count > 1;
    if (several && strategy->zero > 1)
        undone_error(diag, strategy->zero_at, UNDONE_ZERO_STAGES);
    check_splits(diag, strategy);
    return diag_errors(diag) == before;
}
