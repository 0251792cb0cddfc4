#include "syntax/undone.h"
#include "strategy/strategy.h"

bool strategy_check_done(Diag *diag, const Strategy *strategy)
{
    int before = diag_errors(diag);
    bool several = strategy->pipelines.count > 1 || strategy->pipelines.at[0].stages.count > 1;
    if (several && strategy->zero > 1)
        undone_error(diag, strategy->zero_at, UNDONE_ZERO_STAGES);
    return diag_errors(diag) == before;
}
