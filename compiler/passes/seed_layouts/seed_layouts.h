/* Declarations that the files of pass seed_layouts share. */
#pragma once

#include "passes/seed_layouts/sharding.h"
#include "ir/module.h"

/* Makes the meshes and split rules of a module's strategy: of each stage of its pipeline templates,
 * and of all devices. With a single stage both are one mesh; without a strategy, device 0 alone.
 * Returns false after errors. */
bool meshes_create(Module *module);

/* ---- fewer key-value heads than tp (grouped_query_heads.c) ---- */

/* Returns the extent of the first factor of a merged dimension named `dim`, such as the number of
 * key-value heads, in the first parameter or result that has it; 0: there is none. */
int64_t head_extent(const Module *module, const char *dim);

/* Returns whether a split rule needs the axis in prime factors: some of them cut the first factor
 * of a merged dimension, and the others cut the second factor. */
bool axis_must_factor(const Module *module, const MeshAxis *axis);

/* Returns the greatest common divisor. */
int64_t head_gcd(int64_t a, int64_t b);

/* Returns the layout of a parameter's optimizer states on a mesh: the parameter's layout, which
 * `zero` cuts along replicating axes, too. `param` is the parameter, or a stage's part of it. */
const Layout *states_layout(Module *module, const Mesh *mesh, const Value *param);

/* Returns whether `zero` cuts gradients like their states, and a parameter like its states. */
bool zero_cuts_gradients(const Module *module);
bool zero_cuts_parameter(const Module *module, const Parameter *parameter);

/* Gives trained parameters and states the layouts that they have in `program`, the model under the
 * strategy that the statement `optimizer` names (optimizer_statement.c). All other layouts of pass
 * seed_layouts must be set. */
void place_as_home(Module *module, const Module *program);

/* ---- unions of layouts over the stages of all pipelines (stage_union.c) ---- */

/* Unions of layouts over the stages of all pipelines.
 *
 *     stage 0 on devices 0, 1: {dup:dp}   stage 1 on devices 2, 3: {dup:dp}
 *     union of copies (TOP_DUP):          {dup} over 0, 1 and {dup} over 2, 3
 *
 * So pipelines of different tp degrees add up a gradient: propagate_union of propagate_layouts.c
 * makes a union of sums (TOP_SUM), and reshard/intersection/intersection.h cuts the gradient
 * wherever any stage cuts it. */

/* Returns the union of the layouts of values on stages: a subgroup for each stage in each pipeline.
 * `top` says whether subgroups are copies or contributions to a sum. With one subgroup the result
 * is the value's own layout. */
const Layout *union_layout(Module *module, TopKind top, Value *const *values, int count);
