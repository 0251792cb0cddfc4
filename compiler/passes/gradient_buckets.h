/* Buckets: gradients that are exchanged together, as one conversion of several tensors.
 *
 * async collectives (ir/analysis/phases.h) and is converted alike, by the same steps in the same
 * groups with elements of one type, is taken in the order in which backward makes it, until there
 * are as many bytes as a bucket has on some device; the next one begins behind it. So a sum of B
 * bytes takes at most ceil(B / bucket) exchanges, and what does not belong together is not put
 * together.
 *
 * Unless option --bucket says another size it is a sixteenth of what is converted alike, so that
 * little waits for the end of backward, and at most 25 MiB; and its tensors times the devices that
 * exchange them are then at most about MOST_PIECES, since every piece of a tensor is packed by
 * itself and has a line in the tables.
 */
#ifndef PASSES_GRADIENT_BUCKETS_H
#define PASSES_GRADIENT_BUCKETS_H

#include "ir/programs/device_programs.h"

enum { GRADIENT_BUCKET_BYTES = 25 << 20, MIN_GRADIENT_BUCKETS = 16, MOST_PIECES = 256 };

/* Joins async collectives into buckets: gives its operators conversions of several tensors, plans
 * them, and drops those that nobody uses any more. Requires plans of all conversions, each async
 * operator with one of its tensor alone. */
void fill_gradient_buckets(Module *module, const Roles *roles);

#endif
