/* What the language has and this version does not do. Nothing of it is accepted and ignored: who reads it refuses it, with what to do
 * instead. */
#ifndef SYNTAX_UNDONE_H
#define SYNTAX_UNDONE_H

#include "support/diag.h"

#include <stdbool.h>

typedef enum Undone {
    UNDONE_ZERO_STAGES // zero with several stages or pipelines
} Undone;

/* Reports what stands at `at`. False. */
bool undone_error(Diag *diag, Position at, Undone what);

#endif
