/* Layouts that the source writes, in terms of the dimensions after pass factor_dims. */
#ifndef PASSES_FACTOR_DIMS_USER_LAYOUTS_H
#define PASSES_FACTOR_DIMS_USER_LAYOUTS_H

#include "ir/module.h"

/* Returns the layout that the source writes for a value, for its new dimensions; NULL after an
 * error. `source` is the value's type in the source; `origin` gives for each new dimension the
 * source's dimension that it is part of. */
const UserLayout *factor_written(Module *module, const Value *value, Type source,
                                 const int8_t *origin);

#endif
