/* Gradient buckets: gradients that are exchanged together, as one conversion of several tensors.
 *
 * Gradients may share a bucket if their conversions are async (op_is_async), have the same steps in
 * the same groups of devices, and one element type. They fill buckets in the order in which
 * backward makes them. A bucket is full when some device has `bucket` bytes of it; so B bytes need
 * at most ceil(B / bucket) exchanges.
 *
 * The size is option --bucket. Without it, a bucket has a sixteenth of all bytes that may share
 * buckets, so that little waits for the end of backward, and at most 25 MiB. Its tensors times the
 * devices of the exchange are then at most about MOST_PIECES, since each piece of a tensor is
 * packed by itself and has a row in the tables.
 */
#ifndef PASSES_GRADIENT_BUCKETS_H
#define PASSES_GRADIENT_BUCKETS_H

#include "ir/programs/device_programs.h"

enum { GRADIENT_BUCKET_BYTES = 25 << 20, MIN_GRADIENT_BUCKETS = 16, MOST_PIECES = 256 };

/* Joins async collectives into buckets: gives its operators conversions of several tensors, plans
 * them, and drops those that nobody uses any more. Requires plans of all conversions, each async
 * operator with one of its tensor alone. `bytes` is --bucket; 0: not given. */
void fill_gradient_buckets(Module *module, const Roles *roles, int64_t bytes);

#endif
