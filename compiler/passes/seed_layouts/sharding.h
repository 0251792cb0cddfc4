/* Shardings: layouts spoken in the axes of a mesh.
 *
 * Layout propagation works on shardings: for every axis, what it does to a value. In the end a
 * sharding becomes a layout in device numbers.
 */
#ifndef PASSES_SEED_LAYOUTS_SHARDING_H
#define PASSES_SEED_LAYOUTS_SHARDING_H

#include "ir/module.h"

/* What an axis does to a value, where it is no dimension. */
enum { AXIS_DUP = -1, AXIS_SUM = -2, AXIS_MAX = -3 };

typedef struct Sharding {
    int8_t at[MESH_MOST];    // a dimension, or AXIS_*
    int8_t major[MESH_MOST]; // among the axes of one dimension: 0 is the major one
    bool zigzag[MESH_MOST];  // of an axis that cuts a dimension: its split is zigzag
} Sharding;

/* All devices hold the whole. */
Sharding sharding_whole(void);

/* Adds an axis to a dimension, inside what already cuts it; nothing for an axis of size 1. */
void sharding_cut(const Mesh *mesh, Sharding *sharding, int axis, int dim, bool zigzag);

/* How many pieces `dim` is in. */
int sharding_pieces(const Mesh *mesh, const Sharding *sharding, int dim);

/* What the names of a value's dimensions say, earlier rules first; axes of `without`, a bit each,
 * are left out. */
Sharding sharding_named(const Mesh *mesh, const Value *value, uint16_t without);

/* The sharding with nothing left to reduce. */
Sharding sharding_complete(Sharding sharding);

bool sharding_equal(const Mesh *mesh, const Sharding *a, const Sharding *b);

/* The layout of a sharding; equal shardings give one pointer out of `shared`. */
const Layout *sharding_layout(const Mesh *mesh, const Sharding *sharding, Intern *shared);

/* The same when pieces have moved on: along axis a, the device at coordinate c has what that at
 * coordinate c + moved[a], modulo the axis, had. */
const Layout *sharding_moved_layout(const Mesh *mesh, const Sharding *sharding, const int *moved,
                                    Intern *shared);

/* The sharding of a layout that is made of whole axes of the mesh; false when it is not. */
bool sharding_of_layout(const Mesh *mesh, const Layout *layout, Sharding *sharding);

#endif
