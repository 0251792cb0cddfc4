/* Which dimensions tensor parallelism cuts. */
#ifndef SEARCH_SPLITS_H
#define SEARCH_SPLITS_H

#include "search/candidate.h"
#include "search/trial.h"

/* Tries the names of the model, each alone and then together, on a few devices: one stays that makes seconds times bytes of a device less.
 * Names that parameters have come first, so that what several rules could cut is cut as parameters are. None: tensor parallelism does not
 * pay off, or there are no devices for it. */
SplitList splits_find(Arena *arena, const Workshop *shop);

#endif
