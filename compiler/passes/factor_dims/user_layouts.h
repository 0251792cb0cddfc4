/* What pass factor_dims makes of the layouts that the source writes. */
#ifndef PASSES_FACTOR_DIMS_USER_LAYOUTS_H
#define PASSES_FACTOR_DIMS_USER_LAYOUTS_H

#include "ir/module.h"

/* The written layout of a value over the dimensions that it has now; NULL after an error. `source`
 * is the value's type in the source, `origin` the dimension of it that each dimension belongs to
 * now. */
const UserLayout *factor_written(Module *module, const Value *value, Type source,
                                 const int8_t *origin);

#endif
