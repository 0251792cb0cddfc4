/* Which dimensions are the same, and into which factors they split: the analysis behind pass
 * factor_dims.
 *
 * Every dimension of every value and every bound factor of every operator is a node; a rule that
 * puts a factor on a dimension makes the two one class. A merged dimension `(g r)`, or a reshape,
 * says that the dimensions of its two sides, in order, are products of the same elements: an
 * equation. Cuts (suffix products at which a class splits) travel along the equations until nothing
 * changes; where two sides do not nest, the equation is opaque and splits nothing. A class with
 * cuts consists of atoms, the first major; a class of extent 1 has none. Atoms of the two sides of
 * an equation are the same atoms.
 */
#ifndef PASSES_FACTOR_DIMS_EQUAL_DIMS_H
#define PASSES_FACTOR_DIMS_EQUAL_DIMS_H

#include "ir/module.h"

typedef struct Equation {
    const Op *op;
    int left_count, right_count;
    const int *left, *right; // nodes, the first major
    bool compound; // of a merged dimension in a rule (left is the one dimension); else of a reshape
    bool opaque;
} Equation;

typedef struct Classes {
    Arena *arena;
    int node_count;
    int *parent;     // union-find over nodes
    int64_t *extent; // by node
    int *value_node; // by value id: the node of its first dimension; -1 for values that are not in
                     // the module
    int *op_node;    // by op index: the node of its first bound factor
    Array(Equation) equations; // those of an operator stand in a row
    int *op_equation;          // by op index: its first equation
    int *first_atom;           // by class (root node)
    int *atom_count;           // by class
    int atom_total;
    int *atom_parent;   // union-find over atoms
    int64_t batch_rows; // 0 where no input has a batch
    int micro_atom;     // the atom of which a micro-batch has an interval; -1 where there is none
    int64_t *atom_extent;
} Classes;

/* Analyses a module whose bindings are those of ir_bind. */
Classes *classes_create(Arena *arena, const Module *module);

/* The class of a node. */
int classes_root(const Classes *classes, int node);

/* Atom j of the class of a node, as the representative of all equal atoms; and how many there
 * are. */
int classes_atom(const Classes *classes, int node, int j);
int classes_atoms(const Classes *classes, int node);

#endif
