/* The analysis of pass factor_dims: finds equal dimensions and the factors into which they split.
 *
 *     qkv = linear(x, w)                     node of qkv's dimension 1: class A, extent 2304
 *     r = reshape(qkv, [b, 3, 12, 64])       equation A = B * C * D, extents 3, 12, 64
 *
 *     cuts of A at the suffix products 64 and 768: A has atoms 3, 12, 64, those of B, C and D. So
 *     dimension 0 of w, which is of class A too, splits into 3, 12, 64.
 *
 * Every dimension of every value and every bound factor of every operator is a node. A rule that
 * puts a factor on a dimension unites both into one class. A merged dimension `(g r)` or a reshape
 * is an equation: two lists of nodes with equal products. Cuts (suffix products at which a class
 * splits) propagate along equations until nothing changes. Where cuts of two sides do not divide
 * each other, the equation is opaque. The cuts split a class into atoms, the major one first; a
 * class of extent 1 has no atom. Corresponding atoms of the two sides of an equation are united. */
#pragma once

#include "ir/module.h"

typedef struct Equation {
    const Op *op;
    int left_count, right_count;
    const int *left, *right; // nodes, the major one first
    bool compound;           // from a rule whose merged dimension is `left`; false: from a reshape
    bool opaque;
} Equation;

typedef struct Classes {
    Arena *arena;
    int node_count;
    int *parent;     // union-find forest over nodes
    int64_t *extent; // by node
    int *value_node; // by value id: the node of its first dimension; -1: not in the module
    int *op_node;    // by op index: the node of its first bound factor
    Array(Equation) equations; // equations of one operator are neighbours
    int *op_equation;          // by op index: its first equation
    int *first_atom;           // by class (root node): its first atom
    int *atom_count;           // by class: number of its atoms
    int atom_total;
    int *atom_parent;     // union-find forest over atoms
    int64_t batch_rows;   // extent of the batch dimension; 0: no input has a batch
    int micro_atom;       // the atom that micro-batches cut; -1: none
    int64_t *atom_extent; // by atom
} Classes;

/* Returns classes and atoms of a module's dimensions and factors. Requires bindings (ir_bind). */
Classes *classes_create(Arena *arena, const Module *module);

/* Returns the representative node of a node's class. */
int classes_root(const Classes *classes, int node);

/* Return the representative of atom j of a node's class, and the number of atoms of that class. */
int classes_atom(const Classes *classes, int node, int j);
int classes_atoms(const Classes *classes, int node);
