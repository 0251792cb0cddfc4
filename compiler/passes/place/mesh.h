/* Meshes and shardings: layouts inside one stage, spoken in mesh axes.
 *
 * Deduction works on shardings: for every axis of the stage's mesh, what it does to a value. A sharding becomes a layout with device
 * numbers at the end. An axis that has to cut two factors of a merged dimension (2 key-value heads, 4 devices) is factored into its primes
 * beforehand: `tp` of 4 becomes two axes of 2.
 */
#ifndef PASSES_PLACE_MESH_H
#define PASSES_PLACE_MESH_H

#include "ir/ir.h"
#include "reshard/reshard.h"
#include "support/intern.h"

enum { MESH_MOST = 12 };

/* What an axis does to a value, where it is no dimension. */
enum { AXIS_DUP = -1, AXIS_SUM = -2, AXIS_MAX = -3 };

typedef struct Axis {
    const char *name; // of the strategy
    int count;
    const int64_t *weights; // count, or NULL
} Axis;

typedef struct MeshRule { // the axis cuts dimensions of this name; the earlier rule wins
    const char *dim;
    int axis;
    Position at;
    bool used;         // some operator was cut by it
    const Op *refused; // an operator whose rule forbade it, the axis being free
} MeshRule;

typedef struct Sharding {
    int8_t at[MESH_MOST];    // a dimension, or AXIS_*
    int8_t major[MESH_MOST]; // among the axes of one dimension: 0 is the major one
} Sharding;

typedef struct Mesh {
    int axis_count, device_count;
    Axis axis[MESH_MOST]; // the last is the fastest over devices
    const int *devices;
    int *ordered; // room for the devices of a layout in its own order
    Array(MeshRule) rules;
    bool zero;
    bool zero_axis[MESH_MOST];
    const Sharding *
        *gradient;          // by value id: of a parameter's gradient, the sharding of the states to which it goes (NULL before deduction)
    const Cluster *cluster; // of the module
    int64_t microbatches;   // of the module
    Arena *arena;           // of the module
    Intern *prices;         // what price_conversion remembers
} Mesh;

/* The mesh of a module's strategy (one device where there is none), with its split rules. NULL after errors. */
Mesh *mesh_create(Module *module);

/* All devices hold the whole. */
Sharding sharding_whole(void);

/* Adds an axis to a dimension, inside what already cuts it; nothing for an axis of size 1. */
void sharding_cut(const Mesh *mesh, Sharding *sharding, int axis, int dim);

/* How many pieces `dim` is in. */
int sharding_pieces(const Mesh *mesh, const Sharding *sharding, int dim);

/* What the names of a value's dimensions say, earlier rules first. */
Sharding sharding_named(const Mesh *mesh, const Value *value);

bool sharding_equal(const Mesh *mesh, const Sharding *a, const Sharding *b);

/* The layout of a sharding; equal shardings give one pointer out of `layouts` (an intern table over the module's arena). */
const Layout *sharding_layout(const Mesh *mesh, const Sharding *sharding, Intern *shared);

/* The sharding of a layout that is made of whole axes of the mesh in their device order; false when it is not. */
bool sharding_of_layout(const Mesh *mesh, const Layout *layout, Sharding *sharding);

#endif
