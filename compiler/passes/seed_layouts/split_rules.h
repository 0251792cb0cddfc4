/* What split rules say of an operator's factors, by the names of its tensors' dimensions.
 *
 * The earlier rule has the axis; but one whose dimension is two factors of the operator (the
 * queries and the keys of attention) could cut one alone and would leave the other whole, so it
 * stands behind those whose dimension is one: `split seq:cp heads:cp` cuts attention by heads, and
 * all else along the sequence. In a product of many matrices, one by one, a rule whose dimension
 * numbers the matrices stands before one whose dimension some of the tensors lack: experts stay
 * where their weights are.
 */
#ifndef PASSES_SEED_LAYOUTS_SPLIT_RULES_H
#define PASSES_SEED_LAYOUTS_SPLIT_RULES_H

#include "ir/module.h"

/* The dimension of an access that bound factor f is; -1 when it has none. */
int factor_dim(const BoundAccess *access, int f);

/* The name of a bound factor: that of any dimension that it is. */
DimName factor_name(const Op *op, int f);

/* Whether a kernel may have a piece of bound factor f alone, whatever becomes of its results. */
bool factor_takes_pieces(const Op *op, int f);

/* Whether the rule lets bound factor f be cut. */
bool factor_may_cut(const Op *op, int f);

/* Whether every tensor of the operator but numbers has the bound factor; and whether the operator
 * is a product of many matrices, one by one, which it numbers. */
bool factor_in_all(const Op *op, int f);
bool factor_numbers(const Op *op, int f);

/* What becomes of a rule of the mesh. */
typedef struct RuleUse {
    bool used;         // some operator was cut by it
    const Op *refused; // an operator whose rule forbade it, the axis being free
    bool turns;        // pieces moved on in turns along it
    const Op *stayed;  // an operator for which they could not
} RuleUse;

/* An axis that cuts a bound factor. */
typedef struct NamedCut {
    int axis, factor;
    bool zigzag;
} NamedCut;

/* The axes that split rules give factors of an operator, the first major; returns how many. Marks
 * rules as used or refused; `uses` may be NULL. */
int factors_named(const Mesh *mesh, const Op *op, RuleUse *uses, NamedCut cuts[MESH_MOST]);

/* Another factor that a rule gives the axis of a cut, and that every tensor of the operator has;
 * `rule` is its number, `after` or more. -1: there is none. */
int factor_beside(const Mesh *mesh, const Op *op, const NamedCut *cut, int after, int *rule);

#endif
