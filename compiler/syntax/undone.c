#include "syntax/undone.h"

static const struct {
    const char *fact, *advice;
} rows[] = {
    [UNDONE_ZERO_STAGES] = {"zero 2 and zero 3 are for strategies of one pipeline of one stage", "zero 1 cuts the optimizer's states"},
};

bool undone_error(Diag *diag, Position at, Undone what)
{
    diag_error(diag, at, "%s in this version; %s", rows[what].fact, rows[what].advice);
    return false;
}
