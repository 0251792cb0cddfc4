/* What the files of pass fuse share: fuse.c finds operators that can be computed together, group.c
 * says whether two groups of them can be one, epilogue.c puts what follows a product behind it,
 * fused_rule.c writes the rule of a group; accumulate.c gives sums to operators that add, pairs.c
 * joins two operators for which there is a third, hoist_casts.c puts conversions of parameters
 * together, side_reductions.c puts sums in front of products.
 *
 * A group has an index space: loops, numbered from 0, that every bound factor of every member is
 * one of. Where members have rows, some loops go along them (rule/equations.h).
 */
#ifndef PASSES_FUSE_FUSE_H
#define PASSES_FUSE_FUSE_H

#include "ir/module.h"

typedef struct Member {
    Op *op;
    const int *loop; // by bound factor: the group's loop
} Member;

typedef struct FuseGroup {
    Array(Member) members; // in their order in the module
    int rank;              // loops
    const int64_t *extent; // of the loops, global
    bool rows;
    uint32_t inner;       // loops along rows
    const char *epilogue; // of a product and what is applied to it; NULL elsewhere
} FuseGroup;

typedef Array(Op *) Users;

typedef struct Fuse {
    Module *module;
    Arena *arena;      // scratch
    FuseGroup **group; // by op index: NULL where an operator stays as it is
    Users *users;      // by value id
    bool *wanted;      // by value id: it is used outside of operators, too
    int *place;   // by op index: how many operators stand before it, those that run again left out
    int *visited; // by op index: the number of the walk that was there last
    int walk;
} Fuse;

/* Sums that the operators of their terms can make (clause plus) go. Requires users; leaves the
 * module numbered, and users out of date. */
void accumulate_in_place(Fuse *fuse);

/* Pairs of operators that another one computes together (clause with) become that one. Requires
 * users; leaves the module numbered, and users out of date. */
void join_pairs(Fuse *fuse);

/* Sums go in front of products that can make them on their way. Requires users; leaves the module
 * numbered. */
void place_side_reductions(Fuse *fuse);

/* Parameters in another type go in front, where that takes no more memory. Requires users. */
void hoist_casts(Fuse *fuse);

/* The group of one operator; NULL where it cannot be part of any. */
FuseGroup *group_of_op(Fuse *fuse, Op *op);

/* Two groups as one, brought together by a value that one makes and the other reads, or that both
 * read; NULL where that does not fit. */
FuseGroup *groups_joined(Fuse *fuse, const FuseGroup *a, const FuseGroup *b, const Value *value);

/* A product and an operator that its rule says can be applied to it (clause epilogue); NULL where
 * that does not fit. */
FuseGroup *group_of_product(Fuse *fuse, Op *product, Op *applied);

/* Whether the group may be one operator: what its members do at one time, with nothing between
 * them. */
bool group_is_sound(Fuse *fuse, const FuseGroup *group);

/* Whether a value is complete on its devices, so that it can go through registers, and every
 * dimension of it is one factor. */
bool value_is_complete(const Value *value, const BoundAccess *access);

/* Whether an operator is one of the group's. */
bool group_has(const FuseGroup *group, const Op *op);

/* Whether a value of the group is used outside of it. */
bool group_gives(const Fuse *fuse, const FuseGroup *group, const Value *value);

/* One operator that computes what the members do; their results are its results. */
Op *group_op(Fuse *fuse, const FuseGroup *group);

#endif
