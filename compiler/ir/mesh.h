/* Meshes: the devices of a stage as a grid of named axes, and the dimensions that the axes cut.
 *
 *     split batch:dp heads:tp
 *     stage devices(0-3) mesh(dp:2, tp:2)        mesh 0-3 axes dp:2, tp:2
 *                                                split batch axis 0, split heads axis 1
 *
 * Pass seed_layouts makes the meshes of a strategy. An axis that has to cut two factors of a merged
 * dimension is factored into its primes: for 2 key-value heads and tp:4, `tp` becomes two axes of
 * 2.
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
    const int64_t *weights; // of the pieces, `count`; NULL: equal pieces
} Axis;

typedef struct MeshRule { // the axis cuts dimensions of this name; of several rules the first holds
    DimName dim;
    int axis;
    bool zigzag; // position k of n has pieces k and 2n-1-k of 2n
    Position at;
} MeshRule;

typedef struct Mesh {
    int axis_count, device_count;
    Axis axis[MESH_MOST]; // neighbours along the last axis are neighbours in `devices`
    const int *devices;
    Array(MeshRule) rules;
} Mesh;

#endif
