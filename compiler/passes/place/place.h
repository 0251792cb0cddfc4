/* What the files of pass place share. */
#ifndef PASSES_PLACE_PLACE_H
#define PASSES_PLACE_PLACE_H

#include "passes/place/sharding.h"

/* The mesh of a module's strategy (one device where there is none), with its split rules. NULL after errors. */
Mesh *mesh_create(Module *module);

/* The layout of a parameter's optimizer states: the parameter's own, and under `zero` cut further over the axes along which it has copies.
 */
const Layout *states_layout(Module *module, const Value *param);

#endif
