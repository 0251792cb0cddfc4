/* Shardings: layouts in terms of mesh axes. A sharding says for each axis which dimension the axis
 * cuts, or that it replicates or leaves partial sums.
 *
 *     mesh(dp:2, tp:2), x : [batch, embed]
 *     sharding {dp: batch, tp: AXIS_DUP}    ->   layout {batch:dp, dup:tp} over devices 0, 1, 2, 3
 *
 * Layout propagation chooses shardings, and converts them to layouts over device numbers. */
#pragma once

#include "ir/module.h"

/* The states of an axis that cuts no dimension: copies, partial sums, partial maxima. */
enum { AXIS_DUP = -1, AXIS_SUM = -2, AXIS_MAX = -3 };

typedef struct Sharding {
    int8_t at[MESH_MOST];    // by axis: the dimension that the axis cuts, or AXIS_*
    int8_t major[MESH_MOST]; // by axis: position among the axes of its dimension; 0: major one
    bool zigzag[MESH_MOST];  // by axis: it cuts its dimension in a zigzag
} Sharding;

/* Returns the sharding in which every device has the whole value. */
Sharding sharding_whole(void);

/* Cuts a dimension along an axis, inside the axes that cut it already. Skips an axis of size 1. */
void sharding_cut(const Mesh *mesh, Sharding *sharding, int axis, int dim, bool zigzag);

/* Returns the number of pieces of a dimension. */
int sharding_pieces(const Mesh *mesh, const Sharding *sharding, int dim);

/* Returns the sharding that split rules give the named dimensions of a value, earlier rules first.
 * Bit a of `without`: axis a is not used. */
Sharding sharding_named(const Mesh *mesh, const Value *value, uint16_t without);

/* Returns the sharding with copies in place of partial sums and maxima. */
Sharding sharding_complete(Sharding sharding);

bool sharding_equal(const Mesh *mesh, const Sharding *a, const Sharding *b);

/* Returns the layout of a sharding. Equal shardings give the same pointer, from `shared`. */
const Layout *sharding_layout(const Mesh *mesh, const Sharding *sharding, Intern *shared);

/* Returns the layout after pieces have moved. Along axis a, coordinate c now has the piece that
 * coordinate (c + moved[a]) modulo the axis's size had. */
const Layout *sharding_moved_layout(const Mesh *mesh, const Sharding *sharding, const int *moved,
                                    Intern *shared);

/* Sets *sharding to that of a layout; false: the layout does not use whole axes of the mesh. */
bool sharding_of_layout(const Mesh *mesh, const Layout *layout, Sharding *sharding);
