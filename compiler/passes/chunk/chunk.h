/* What the files of pass chunk share: chunk.c chooses what is computed by chunks of rows, and how
 * many; region.c finds the operators of that; cut_region.c makes them once for each chunk.
 *
 * A region begins with a product whose result is large, such as logits. Its operators are those
 * that read this, or what is as large and made of it, and all between two of them. Where each of
 * them works on rows by themselves, or adds up rows, the region can be computed for some rows after
 * others, so that what is large never stands whole. Nothing but its first operator may be a product
 * whose result the region reads: a whole layer is none.
 */
#ifndef PASSES_CHUNK_CHUNK_H
#define PASSES_CHUNK_CHUNK_H

#include "ir/module.h"

enum { CHUNK_BYTES = 1 << 30, MOST_CHUNKS = 16, LEAST_ROWS = 2048 };

typedef struct Chunked {
    Module *module;
    Arena *arena;     // scratch
    Op *product;      // the first operator
    int cut;          // the dimension of its result that is cut into chunks
    int64_t elements; // of that result: what has as many is large
    bool *in;         // by op index: it is one of the region's
    bool *given;      // by op index: it is, and needs nothing that the region makes of the product
    bool *behind;     // by op index: it needs what the region makes, and is none of it
    bool *needed;     // by op index: the region needs what it makes, and it is none of it
    int *factor;      // by op index, of the region: the bound factor that is cut
    int *dim;      // by value id, of what the region makes: 1 + the dimension that is cut; 0: none
    bool *outside; // by value id: something that is none of the region's reads it
    Section section; // in which it runs
} Chunked;

/* The region of a product whose result is cut along a dimension; NULL where it cannot be computed
 * by chunks. Requires a module that is numbered. */
Chunked *chunked_of(Arena *arena, Module *module, Op *product, int dim);

/* The operator that takes a piece of a tensor, and the one that puts pieces in a row, with their
 * arguments. */
typedef struct SliceConcat {
    const OpDef *piece, *row;
    int piece_dim, piece_start, piece_length, row_dim; // arguments
} SliceConcat;

/* Finds them among what the module knows of, by their rules: clauses shift and row. False where
 * there are none. */
bool slice_concat_find(const Module *module, SliceConcat *movers);

/* Puts the operators of `count` chunks into the place of the region's. Leaves the module
 * numbered. */
void chunked_cut(Chunked *region, const SliceConcat *movers, int count);

#endif
