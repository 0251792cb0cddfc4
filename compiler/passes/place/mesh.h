/* Meshes and spreads: layouts inside one stage, spoken in mesh axes.
 *
 * Deduction works on spreads: for every axis of the stage's mesh, what it does to a value. A spread becomes a layout with device numbers at
 * the end. An axis that has to cut two factors of a merged dimension (2 key-value heads, 4 devices) is factored into its primes beforehand:
 * `tp` of 4 becomes two axes of 2.
 */
#ifndef PASSES_PLACE_MESH_H
#define PASSES_PLACE_MESH_H

#include "ir/ir.h"
#include "reshard/reshard.h"
#include "support/intern.h"

enum { MESH_MOST = 12 };

/* What an axis does to a value, where it is no dimension. */
enum { SPREAD_DUP = -1, SPREAD_SUM = -2, SPREAD_MAX = -3 };

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

typedef struct Spread {
    int8_t at[MESH_MOST];    // a dimension, or SPREAD_*
    int8_t major[MESH_MOST]; // among the axes of one dimension: 0 is the major one
} Spread;

typedef struct Mesh {
    int axis_count, device_count;
    Axis axis[MESH_MOST]; // the last is the fastest over devices
    const int *devices;
    int *ordered; // room for the devices of a layout in its own order
    Array(MeshRule) rules;
    bool zero;
    bool zero_axis[MESH_MOST];
    const Spread **gradient; // by value id: of a parameter's gradient, the spread of the states to which it goes (NULL before deduction)
    const Cluster *cluster;  // of the module
    Arena *arena;            // of the module
    Intern *prices;          // what price_conversion remembers
} Mesh;

/* The mesh of a module's strategy (one device where there is none), with its split rules. NULL after errors: what one pipeline of one stage
 * cannot do. */
Mesh *mesh_create(Module *module);

/* The table in which the passes share layouts, so that equal ones are one pointer. */
Intern *module_shared(Module *module);

/* All devices hold the whole. */
Spread spread_whole(void);

/* Adds an axis to a dimension, inside what already cuts it; nothing for an axis of size 1. */
void spread_cut(const Mesh *mesh, Spread *spread, int axis, int dim);

/* How many pieces `dim` is in. */
int spread_pieces(const Mesh *mesh, const Spread *spread, int dim);

/* What the names of a value's dimensions say, earlier rules first. */
Spread spread_named(const Mesh *mesh, const Value *value);

bool spread_equal(const Mesh *mesh, const Spread *a, const Spread *b);

/* The layout of a spread; equal spreads give one pointer out of `layouts` (an intern table over the module's arena). */
const Layout *spread_layout(const Mesh *mesh, const Spread *spread, Intern *shared);

/* The spread of a layout that is made of whole axes of the mesh in their device order; false when it is not. */
bool spread_of_layout(const Mesh *mesh, const Layout *layout, Spread *spread);

#endif
