/* Unions of layouts over the stages of all pipelines.
 *
 *     stage 0 on devices 0, 1: {dup:dp}   stage 1 on devices 2, 3: {dup:dp}
 *     union of copies (TOP_DUP):          {dup} over 0, 1 and {dup} over 2, 3
 *
 * So pipelines of different tp degrees add up a gradient: propagate_union of propagate_layouts.c
 * makes a union of sums (TOP_SUM), and reshard/intersection/intersection.h cuts the gradient
 * wherever any of them cuts it.
 */
#ifndef PASSES_SEED_LAYOUTS_STAGE_UNION_H
#define PASSES_SEED_LAYOUTS_STAGE_UNION_H

#include "ir/module.h"

/* Returns the union of the layouts of values on stages: a subgroup for each stage in each pipeline.
 * `top` says whether subgroups are copies or contributions to a sum. With one subgroup the result
 * is the value's own layout. */
const Layout *union_layout(Module *module, TopKind top, Value *const *values, int count);

#endif
