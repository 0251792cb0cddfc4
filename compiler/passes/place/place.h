/* Where parameters, inputs and optimizer states live. */
#ifndef PASSES_PLACE_PLACE_H
#define PASSES_PLACE_PLACE_H

#include "passes/place/mesh.h"

/* The sharding in which a parameter or input is stored: what its names say. False when an explicit `shard` gave it a layout that is no
 * sharding. */
bool place_stored(const Mesh *mesh, const Value *value, Sharding *sharding);

/* The sharding of a parameter's optimizer states: the parameter's own, and under `zero` cut further over the axes along which it has
 * copies.
 */
Sharding place_states(const Mesh *mesh, const Value *param, Sharding sharding);

/* Reads the layout of a `shard` or `reshard` pragma: device numbers in brackets, or `{name:axis*axis, ...}` over the mesh's axes; NULL
 * after an error. `source` is the value's type in the source, `origin` the dimension of it that each dimension belongs to now. */
const Layout *place_written(Module *module, const Mesh *mesh, const Value *value, Type source, const int8_t *origin);

#endif
