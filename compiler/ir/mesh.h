/* Meshes: the devices of a stage as a grid of named axes, and the dimensions that the axes cut.
 *
 *     split batch:dp heads:tp
 *     stage devices(0-3) mesh(dp:2, tp:2)        mesh 0-3 axes dp:2, tp:2
 *                                                split batch axis 0, split heads axis 1
 *
 * Pass seed_layouts makes the meshes of a strategy. The pass replaces an axis that must cut two
 * factors of a merged dimension by one axis for each prime factor of its size: for 2 key-value
 * heads, `tp:4` becomes two axes of size 2. */
#pragma once

#include "ir/dim.h"
#include "support/array.h"
#include "support/diag.h"

enum { MESH_MOST = 12 }; // most axes of a mesh

typedef struct Axis {
    const char *name; // as the strategy names it
    int count;
    const int64_t *weights; // `count` weights of the pieces; NULL: equal pieces
} Axis;

/* A split rule: `axis` cuts dimensions named `dim`. An axis follows its first rule that fits. */
typedef struct MeshRule {
    DimName dim;
    int axis;
    bool zigzag; // position k of n on the axis has pieces k and 2n-1-k of 2n
    Position at;
} MeshRule;

typedef struct Mesh {
    int axis_count, device_count;
    Axis axis[MESH_MOST]; // neighbours along the last axis are neighbours in `devices`
    const int *devices;
    Array(MeshRule) rules;
} Mesh;
