#include "syntax/undone.h"
#include "strategy/strategy.h"

static void check_stage(Diag *diag, const Stage *stage)
{
    if (stage->layers.count)
        undone_error(diag, stage->layers_at, UNDONE_LAYERS);
}

static void check_schedule(Diag *diag, const Strategy *strategy)
{
    static const Undone what[] = {UNDONE_SCHEDULE, UNDONE_SCHEDULE, UNDONE_INTERLEAVED, UNDONE_ZERO_BUBBLE};
    if (strategy->schedule)
        undone_error(diag, strategy->schedule_at, what[strategy_schedule(strategy)]);
}

static void check_splits(Diag *diag, const Strategy *strategy)
{
    for (int i = 0; i < strategy->splits.count; i++)
        if (strategy->splits.at[i].fold)
            undone_error(diag, strategy->splits.at[i].at, UNDONE_FOLD);
    if (strategy->turns.count)
        undone_error(diag, strategy->turns.at[0].at, UNDONE_TURNS);
}

bool strategy_check_done(Diag *diag, const Strategy *strategy)
{
    int before = diag_errors(diag);
    if (strategy->pipelines.count != 1)
        undone_error(diag, strategy->pipelines.at[1].at, UNDONE_PIPELINES);
    else if (strategy->pipelines.at[0].stages.count != 1)
        undone_error(diag, strategy->pipelines.at[0].at, UNDONE_STAGES);
    else
        check_stage(diag, &strategy->pipelines.at[0].stages.at[0]);
    check_splits(diag, strategy);
    check_schedule(diag, strategy);
    return diag_errors(diag) == before;
}
