/* Meshes: the devices of a stage as a grid of named axes, and which axes cut which named
 * dimensions.
 *
 * Pass seed_layouts makes the mesh of a strategy, once. An axis that has to cut two factors of a
 * merged dimension (2 key-value heads, 4 devices) is factored into its primes: `tp` of 4 becomes
 * two axes of 2.
 */
#ifndef IR_MESH_H
#define IR_MESH_H

#include "ir/dim.h"
#include "support/array.h"
#include "support/diag.h"

enum { MESH_MOST = 12 }; // axes

typedef struct Axis {
    const char *name; // of the strategy
    int count;
    const int64_t *weights; // count; NULL when all are equal
} Axis;

typedef struct MeshRule { // the axis cuts dimensions of this name; the earlier rule wins
    DimName dim;
    int axis;
    bool zigzag; // position k of n has pieces k and 2n-1-k
    Position at;
} MeshRule;

typedef struct Mesh {
    int axis_count, device_count;
    Axis axis[MESH_MOST]; // the last is the fastest over devices
    const int *devices;
    Array(MeshRule) rules;
} Mesh;

#endif
