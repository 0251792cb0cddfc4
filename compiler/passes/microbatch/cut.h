/* Where the batch is cut into micro-batches: pass factor_dims marks its dimension, pass microbatch
 * makes the loop (loop.c). */
#ifndef PASSES_MICROBATCH_CUT_H
#define PASSES_MICROBATCH_CUT_H

#include "ir/unit.h"

/* Whether a step runs several micro-batches, each with some rows of the batch; and whether it is a
 * loop over micro-batches at all: over one, too, where it goes through several stages. */
bool microbatch_cuts(const Module *module);
bool microbatch_loops(const Module *module);

/* The input whose leading dimension is the batch: the first that has one; NULL when no input
 * has. */
const Value *microbatch_input(const Module *module);

/* Finds the pipelines that run and the bodies that they share (ir/pipeline_template.h), without
 * meshes; `variants` is of ModuleLinks, `batch` the rows of the whole batch, 0 for no input that
 * has them, and `unit` how many rows belong together. False after an error: pipelines whose rows do
 * not add up to the batch. */
bool microbatch_bodies(Module *module, const LengthVariant *variants, int64_t batch, int64_t unit);

#endif
