#include "syntax/undone.h"

static const struct {
    const char *fact, *advice;
} rows[] = {
    [UNDONE_PIPELINES] = {"a strategy has one pipeline", "use the axes of one mesh, which may be weighted, instead of several pipelines"},
    [UNDONE_STAGES] = {"a pipeline has one stage", "put all devices into one stage's mesh"},
    [UNDONE_SCHEDULE] = {"schedule is not available", "leave it out: where there is one stage, micro-batches run one after the other"},
    [UNDONE_LAYERS] = {"layers(...) of a stage is not available", "leave it out: the one stage has all layers"},
    [UNDONE_STAGE_RECOMPUTE] = {"recompute(...) of a stage is not available", "leave it out"},
    [UNDONE_CLASS] = {"a class of devices is not available", "list the devices by number alone"},
    [UNDONE_RECOMPUTE] = {"recompute is not available", "leave it out: backward keeps what it needs"},
};

bool undone_error(Diag *diag, Position at, Undone what)
{
    diag_error(diag, at, "%s in this version; %s", rows[what].fact, rows[what].advice);
    return false;
}
