/* The resharding planner: from any layout to any other of the same shape, with the fewest bytes and few steps.
 *
 * A plan is data that does not depend on the rank that computes it: steps, each with the devices that act in it, buffers and boxes. The run-time
 * library executes it (include/hetu/reshard.h has the form in which emitted programs carry it).
 */
#ifndef LAYOUT_RESHARD_H
#define LAYOUT_RESHARD_H

#include "layout/layout.h"

typedef struct Cluster Cluster; // devices, hosts and links with latency and bandwidth (layout/cluster.h)
typedef struct Plan Plan;       // layout/plan.h

/* The cheapest plan found; never NULL. `cluster` NULL: one host, equal links. The layouts were checked and have the same kind of reduction,
 * where both have one; `element` is the size of an element in bytes. */
const Plan *reshard_plan(Arena *arena, const Cluster *cluster, Shape shape, int element, const Layout *from, const Layout *to);

/* Bytes that all devices together receive, and those that one device receives. */
int64_t plan_bytes(const Plan *plan);
int64_t plan_bytes_received(const Plan *plan, int device);

/* Bytes of scratch space that a device needs; whether source and target may be one buffer; whether no element moves at all. */
int64_t plan_scratch_bytes(const Plan *plan, int device);
bool plan_in_place(const Plan *plan);
bool plan_nothing(const Plan *plan);

/* Bytes of scratch that a device needs to run the plan; a multiple of 64. */
int64_t plan_scratch_bytes(const Plan *plan, int device);

/* Whether the tensor may be converted in its own storage; then `from` and `to` may be one buffer. */
bool plan_in_place(const Plan *plan);

/* Whether there is nothing to do when `from` and `to` are one buffer. */
bool plan_nothing(const Plan *plan);

/* Seconds by the cluster's latency-bandwidth model. */
double plan_seconds(const Plan *plan);

/* The field's word for what the plan does: "nothing", "local slice", "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast",
 * "reduce", "permute", "send-receive", or a sequence such as "reduce-scatter, all-gather". */
const char *plan_name(const Plan *plan);

#endif
