#include "syntax/undone.h"

static const struct {
    const char *fact, *advice;
} rows[] = {
    [UNDONE_PIPELINES] = {"a strategy has one pipeline", "use the axes of one mesh, which may be weighted, instead of several pipelines"},
    [UNDONE_STAGES] = {"a pipeline has one stage", "put all devices into one stage's mesh"},
    [UNDONE_SCHEDULE] = {"schedule is not available", "leave it out: where there is one stage, micro-batches run one after the other"},
    [UNDONE_INTERLEAVED] = {"schedule interleaved is not available",
                            "leave it out: where there is one stage, micro-batches run one after the other"},
    [UNDONE_ZERO_BUBBLE] = {"schedule zero_bubble is not available",
                            "leave it out: where there is one stage, micro-batches run one after the other"},
    [UNDONE_TURNS] = {"turns is not available", "split cuts the dimension, too, and gathers what is needed whole"},
    [UNDONE_FOLD] = {"fold is not available", "leave it out, or balance causal work by weights, as in: mesh(cp:2 by 3:2)"},
    [UNDONE_LAYERS] = {"layers(...) of a stage is not available", "leave it out: the one stage has all layers"},
};

bool undone_error(Diag *diag, Position at, Undone what)
{
    diag_error(diag, at, "%s in this version; %s", rows[what].fact, rows[what].advice);
    return false;
}
