/* Declarations that the files of pass seed_layouts share. */
#ifndef PASSES_SEED_LAYOUTS_SEED_LAYOUTS_H
#define PASSES_SEED_LAYOUTS_SEED_LAYOUTS_H

#include "passes/seed_layouts/sharding.h"

/* Makes the meshes and split rules of a module's strategy: of each stage of its pipeline templates,
 * and of all devices. With a single stage both are one mesh; without a strategy, device 0 alone.
 * Returns false after errors. */
bool meshes_create(Module *module);

/* Returns the layout of a parameter's optimizer states on a mesh: its own, and under `zero` cut
 * further along axes that replicate it. `param` is the parameter, or a stage's part of it. */
const Layout *states_layout(Module *module, const Mesh *mesh, const Value *param);

/* Gives trained parameters and states the layouts that they have in `program`, the model under the
 * strategy that the statement `optimizer` names (optimizer_statement.c). All other layouts of pass
 * seed_layouts must be set. */
void place_as_home(Module *module, const Module *program);

#endif
