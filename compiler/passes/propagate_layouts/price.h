/* What an assignment costs, as layout propagation weighs it.
 *
 * With a cluster file: seconds of a step, of conversions and of computing (cost/cost.h). Where a
 * device's class does not say how fast it is, an operation counts like the time in which its host's
 * links move BYTES_AN_OPERATION. Without a cluster file: bytes that a device receives on average by
 * the planner's own plans, an operation counting like BYTES_AN_OPERATION.
 */
#ifndef PASSES_PROPAGATE_LAYOUTS_PRICE_H
#define PASSES_PROPAGATE_LAYOUTS_PRICE_H

#include "passes/propagate_layouts/assign.h"

/* Of a value that goes from one sharding to another; infinite where it cannot. */
double price_conversion(const Assigner *assigner, const Value *value, const Sharding *from,
                        const Sharding *to);

/* Of a value in a layout that is no sharding of the mesh of the operator at hand, as one of another
 * stage's. */
double price_crossing(const Assigner *assigner, const Value *value, const Sharding *to);

/* Of computing an operator, on the slowest of its devices. */
double price_computing(const Assigner *assigner, const Op *op, const Assignment *assignment);

#endif
