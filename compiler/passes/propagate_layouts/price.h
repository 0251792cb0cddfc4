/* Prices of assignments in layout propagation.
 *
 *     all-gather of x {batch:dp} -> {dup:dp}, 8 MiB on 4 devices
 *         without a cluster file: 6 MiB, which a device receives
 *         with a cluster file:    the seconds of the planned all-gather on its links
 *
 * With a cluster file a price is in seconds of a step, for conversions and for computing
 * (cost/cost.h). If a device class does not give its speed, one operation counts as the time in
 * which the host's links move BYTES_AN_OPERATION. Without a cluster file a price is in bytes that a
 * device receives on average, and one operation counts as BYTES_AN_OPERATION.
 */
#ifndef PASSES_PROPAGATE_LAYOUTS_PRICE_H
#define PASSES_PROPAGATE_LAYOUTS_PRICE_H

#include "passes/propagate_layouts/assign_axes.h"

/* Returns the price of converting a value from one sharding to another; infinite: impossible. */
double price_conversion(const Assigner *assigner, const Value *value, const Sharding *from,
                        const Sharding *to);

/* Returns the price of converting a value whose layout is not a sharding of the current operator's
 * mesh, for example a value of another stage. */
double price_crossing(const Assigner *assigner, const Value *value, const Sharding *to);

/* Returns the price of computing an operator, on the slowest device of the mesh. */
double price_computing(const Assigner *assigner, const Op *op, const Assignment *assignment);

#endif
