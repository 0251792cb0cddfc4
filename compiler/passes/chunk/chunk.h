/* Declarations that the files of pass chunk share. chunk.c selects products and the number of
 * chunks, region.c finds the operators to cut, cut_region.c makes them once for each chunk.
 *
 *     logits = linear(x, table)           region: linear, cross_entropy and its gradient, the two
 *     loss = cross_entropy(logits, t)             products of the backward section
 *     dlogits = ...; dx = dlogits * table; dtable = dlogits * x
 *
 * A region begins with a product whose result is large. The region has all operators that read this
 * result, or large values computed from it, and all operators on paths between them. The region can
 * be cut if each operator computes rows independently or sums over rows. No operator of the region
 * may read the result of a second product of the region: that would cut whole layers. */
#pragma once

#include "ir/module.h"

enum { CHUNK_BYTES = 1 << 30, MOST_CHUNKS = 16, LEAST_ROWS = 2048 };

typedef struct Chunked {
    Module *module;
    Arena *arena;     // scratch
    Op *product;      // the region's first operator
    int cut;          // the dimension of the product's result that is cut into chunks
    int64_t elements; // elements of the product's result; values that have fewer are not large
    bool *in;         // by op index: in the region
    bool *given;      // by op index: in the region, and does not depend on the product
    bool *behind;     // by op index: outside the region, and depends on the region
    bool *needed;     // by op index: outside the region; the region depends on it
    int *factor;      // by op index, in the region: the bound factor that is cut
    int *dim;         // by value id, results of the region: 1 + the dimension that is cut; 0: none
    bool *outside;    // by value id: read outside the region
    Section section;  // section in which the region runs
} Chunked;

/* Returns the region of a product whose result is cut along a dimension; NULL: it cannot be
 * computed in chunks. Requires op indices (ir_number). */
Chunked *chunked_of(Arena *arena, Module *module, Op *product, int dim);

/* The operators that take a slice of a tensor and that concatenate slices, with their arguments. */
typedef struct SliceConcat {
    const OpDef *piece, *row;                          // slice, concatenation
    int piece_dim, piece_start, piece_length, row_dim; // indices of attributes
} SliceConcat;

/* Finds both operators by their clauses `shift` and `row`; sets *movers. False: one is missing. */
bool slice_concat_find(const Module *module, SliceConcat *movers);

/* Replaces the region by the operators of `count` chunks. Runs ir_number. */
void chunked_cut(Chunked *region, const SliceConcat *movers, int count);
