/* Cuts the batch into micro-batches. Pass factor_dims marks the batch's dimension by these
 * functions; pass microbatch makes the loop (microbatch.c).
 *
 *     batch of 32 rows, pipeline microbatches(4) rows(2), pipeline microbatches(8) rows(3)
 *     runs: rows 0-7 in 4 micro-batches of 2, rows 8-31 in 8 micro-batches of 3
 */
#pragma once

#include "ir/unit.h"

/* Return whether a step cuts the batch into micro-batches (several, or one with padding lengths),
 * and whether it has a loop over them. One micro-batch in several stages makes a loop, too. */
bool microbatch_cuts(const Module *module);
bool microbatch_loops(const Module *module);

/* Returns the input whose leading dimension is the batch: the first with dimensions; NULL: none. */
const Value *microbatch_input(const Module *module);

/* Sets module->templates: the pipelines that run, and their templates, without meshes. `variants`:
 * ModuleLinks.variants. `batch`: rows of the batch; 0: no input has rows. `unit`: rows that are
 * never parted. Returns false after an error, such as rows that do not add up to the batch. */
bool microbatch_bodies(Module *module, const LengthVariant *variants, int64_t batch, int64_t unit);
