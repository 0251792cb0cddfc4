/* Gradient buckets: gradients that are exchanged together, as one conversion of several tensors.
 *
 *     dw1, dw2 {sum:dp} -> {dup:dp}, 2 MiB each, in two all-reduces
 *     with a bucket of 4 MiB: one all-reduce of both, started when dw1 (the later one) exists
 *
 * Gradients may share a bucket if their conversions are async (op_is_async), have the same steps in
 * the same groups of devices, and one element type. Gradients fill buckets in the order in which
 * backward makes them. A bucket is full when its tensors have `bucket` bytes, counted for each
 * tensor on the device that has most of it. So --bucket makes at most ceil(bytes / bucket) buckets.
 *
 * Option --bucket gives the size. The default is a sixteenth of all bytes that may share buckets,
 * so that little communication remains after backward, and at most 25 MiB. By default a bucket is
 * also full when its tensors times the devices of the exchange reach MOST_PIECES: each piece of a
 * tensor is packed by itself and needs a row in the tables. */
#pragma once

#include "ir/programs/device_programs.h"

enum { GRADIENT_BUCKET_BYTES = 25 << 20, MIN_GRADIENT_BUCKETS = 16, MOST_PIECES = 256 };

/* Joins async collectives into buckets: gives their operators conversions of several tensors, plans
 * the new conversions, and drops unused ones. Requires a plan of every conversion; each async
 * operator has a conversion of its tensor alone. `bytes` is --bucket; 0: not given. */
void fill_gradient_buckets(Module *module, const Roles *roles, int64_t bytes);
