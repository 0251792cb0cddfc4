/* Split rules on an operator: which axis cuts which of its factors, by the names of dimensions.
 *
 *     split seq:cp heads:cp
 *
 *     y[seq, heads] = x[seq, embed] * w[heads, embed]      cp cuts seq: the first rule that fits
 *     attention over q[seq, heads], k[seq', heads]          cp cuts heads
 *
 * The earliest rule gets the axis, with two exceptions:
 * - A rule whose dimension is two factors of the operator (the queries and the keys of attention)
 *   cuts one factor and leaves the other whole. Such a rule comes after rules for a single factor.
 * - In a batched matrix product, a rule for the batch factor comes before a rule for a factor that
 *   some tensors lack: each expert is computed where its weights are (expert parallelism). */
#pragma once

#include "ir/module.h"

/* Returns the dimension of an access that is bound factor f; -1: there is none. */
int factor_dim(const BoundAccess *access, int f);

/* Returns the name of a bound factor: that of the first named dimension which is this factor. */
DimName factor_name(const Op *op, int f);

/* Returns whether a kernel may compute a piece of bound factor f, perhaps with results to merge. */
bool factor_takes_pieces(const Op *op, int f);

/* Returns whether the rule allows bound factor f to be cut. */
bool factor_may_cut(const Op *op, int f);

/* Return whether every tensor of the operator except scalars has the bound factor; and whether the
 * operator is also a batched matrix product, so that f is its batch. */
bool factor_in_all(const Op *op, int f);
bool factor_numbers(const Op *op, int f);

/* The effects of a split rule, for errors about rules without effect. */
typedef struct RuleUse {
    bool used;         // the rule cut some operator
    const Op *refused; // an operator whose rule forbids the cut, though the axis was free
    bool turns;        // ring steps moved pieces along the rule's axis
    const Op *stayed;  // an operator that could not run in ring steps
} RuleUse;

/* An axis and the bound factor that it cuts. */
typedef struct NamedCut {
    int axis, factor;
    bool zigzag;
} NamedCut;

/* Writes the axes that cut factors of an operator to cuts[], the major ones first, and returns how
 * many. Marks rules in `uses` as used or refused; NULL: marks nothing. */
int factors_named(const Mesh *mesh, const Op *op, RuleUse *uses, NamedCut cuts[MESH_MOST]);

/* Returns another factor that a split rule gives the axis of `cut`, and that every tensor of the
 * operator has; -1: none. Writes to *rule the number of that rule, at least `after`. */
int factor_beside(const Mesh *mesh, const Op *op, const NamedCut *cut, int after, int *rule);
