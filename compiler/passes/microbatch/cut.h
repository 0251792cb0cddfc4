/* Where the batch is cut into micro-batches: pass refine splits its dimension there, pass microbatch makes the loop (loop.c). */
#ifndef PASSES_MICROBATCH_CUT_H
#define PASSES_MICROBATCH_CUT_H

#include "ir/ir.h"

/* The input whose leading dimension is the batch: the first that has one; NULL when no input has. */
const Value *microbatch_input(const Module *module);

/* The rows of a micro-batch, all of the batch where there is one; 0 for no input. False after an error: a strategy that does not divide the
 * batch. */
bool microbatch_rows(const Module *module, int64_t *rows);

#endif
