/* What the files of pass seed_layouts share. */
#ifndef PASSES_SEED_LAYOUTS_SEED_LAYOUTS_H
#define PASSES_SEED_LAYOUTS_SEED_LAYOUTS_H

#include "passes/seed_layouts/sharding.h"

/* Makes the meshes of a module's strategy with their split rules: of the stages of its bodies, and
 * of all devices, which is that of the stage where there is one alone (device 0 without a
 * strategy). False after errors. */
bool meshes_create(Module *module);

/* The layout of a parameter's optimizer states on the devices of a mesh: the parameter's own, and
 * under `zero` cut further over the axes along which it has copies. `param` is the parameter, or
 * what a stage has of it. */
const Layout *states_layout(Module *module, const Mesh *mesh, const Value *param);

/* Lays what training keeps as it lies in `program`, the one under the strategy that `optimizer`
 * names, of a module of which all else that is given has its layout (optimizer_layouts.c). */
void place_as_home(Module *module, const Module *program);

#endif
