/* Declarations that the files of pass fuse share. fuse.c selects groups of operators, and
 * fusion_conditions.c says whether two groups can be one. epilogue.c handles epilogues of products,
 * and fused_rule.c writes the rule of a group. fused_addition.c handles sums, pairs.c pairs of
 * operators, hoist_casts.c conversions of parameters, side_reductions.c sums before products.
 *
 *     a[b, i] = x[b, i] + bias[i]; y[b, i] = gelu(a[b, i])
 *     one group of two members with loops 0 (b) and 1 (i); member `a` has the loops {0, 1}
 *
 * A group has an index space: loops, numbered from 0. Every bound factor of a member is one of the
 * loops. Where members have rows, some loops go along the rows (rule/equations.h). */
#pragma once

#include "ir/module.h"

typedef struct Member {
    Op *op;
    const int *loop; // by bound factor: the loop of the group
} Member;

typedef struct FuseGroup {
    Array(Member) members; // in the order of the module
    int rank;              // number of loops
    const int64_t *extent; // global extents of the loops
    bool rows;             // some loops go along rows
    uint32_t inner;        // bit l: loop l goes along rows
    const char *epilogue;  // epilogue of a product; NULL: the group has none
} FuseGroup;

typedef Array(Op *) Users;

typedef struct Fuse {
    Module *module;
    Arena *arena;      // scratch
    FuseGroup **group; // by op index; NULL: the operator cannot be fused
    Users *users;      // by value id: the operators that read it
    bool *wanted;      // by value id: loss, output, gradient, updated parameter or state
    int *place;        // by op index: the number of operators before it, without recomputed ones
    int *visited;      // by op index: the last walk that visited it
    int walk;          // number of the current walk
} Fuse;

/* Lets the operator of one term of a sum add the other term (clause `plus`), and removes the sum.
 * Requires fuse->users and leaves them outdated. Runs ir_number. */
void accumulate_in_place(Fuse *fuse);

/* Replaces pairs of operators by the operator that computes both (clause `with`). Requires
 * fuse->users and leaves them outdated. Runs ir_number. */
void join_pairs(Fuse *fuse);

/* Moves sums before products whose kernels can add them up. Needs fuse->users. Runs ir_number. */
void place_side_reductions(Fuse *fuse);

/* Moves forward conversions of parameters to the front if backward reads their results or the
 * results are small. Requires fuse->users. Runs ir_number. */
void hoist_casts(Fuse *fuse);

/* Makes the group of one operator; NULL: it cannot be fused. */
FuseGroup *group_of_op(Fuse *fuse, Op *op);

/* Joins two groups: one makes `value` and one reads it, or both read it. NULL: they do not fit. */
FuseGroup *groups_joined(Fuse *fuse, const FuseGroup *a, const FuseGroup *b, const Value *value);

/* Makes the group of a product and its epilogue (clause `epilogue`); NULL: there can be none. */
FuseGroup *group_of_product(Fuse *fuse, Op *product, Op *applied);

/* Returns whether a group can be one operator: one phase, few tensors, no operator in between. */
bool group_is_sound(Fuse *fuse, const FuseGroup *group);

/* Returns whether a value can stay in registers: no pending reduction, one factor a dimension. */
bool value_is_complete(const Value *value, const BoundAccess *access);

/* Returns whether a value of the group is used outside of it. */
bool group_gives(const Fuse *fuse, const FuseGroup *group, const Value *value);

/* Makes one operator that computes all results of members that are used outside the group. */
Op *group_op(Fuse *fuse, const FuseGroup *group);
