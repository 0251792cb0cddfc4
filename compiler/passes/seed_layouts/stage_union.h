/* Layouts over the stages of all pipelines. */
#ifndef PASSES_SEED_LAYOUTS_STAGE_UNION_H
#define PASSES_SEED_LAYOUTS_STAGE_UNION_H

#include "ir/module.h"

/* What values that lie on stages are together: a subgroup of each, in every pipeline of the stage's
 * body. `top` says how subgroups belong together; of one subgroup the layout is the value's own. */
const Layout *union_layout(Module *module, TopKind top, Value *const *values, int count);

#endif
