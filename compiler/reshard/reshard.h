/* The resharding planner: converts one or many tensors from any layout to any other layout of the
 * same shape, with the fewest bytes and few steps.
 *
 *     const Plan *plan = reshard_plan(arena, NULL, &(Conversion){shape, HT_F32, before, after});
 *     const Plan *plan = reshard_plan_all(arena, cluster, conversions, count);
 *
 * A plan is data that does not depend on the rank that computes it: steps, each with the devices
 * that act in it, buffers and boxes. The run-time library executes it (include/hetu/reshard.h has
 * the form in which emitted programs carry it). Tensors that are planned together share the steps:
 * the bytes that each device sends and receives are balanced over all tensors, and a step has one
 * message for each pair of sender and receiver.
 *
 * The passes of the planner, in the order of their calls; each folder's header says more:
 *
 *     intersection/  equal_conversions.c  plans tensors that are converted alike as one
 *                    intersection.c    finds what both layouts have in common: bundles of cells,
 *                                      each with its holders on either side
 *                    tasks.c           finds the contributions and target devices of each value
 *     order/         flat_or_hierarchical.c  makes the steps several times and takes the cheapest:
 *                                      by cost/communication.c, on a cluster by cost/resources.c
 *                    order_steps.c     orders the steps: all at once, or first inside hosts, then
 *                                      across hosts; for each stage:
 *       hierarchical/  reduce.c          reductions inside hosts, and across them
 *                      transfer.c        sends values once to each host, then on inside the host
 *       reduce/        all_reduce.c      recognises all-reduces
 *                      reduce_scatter.c  groups that reduce together: reduce-scatters, reduces
 *                      messages.c        all other reductions: who combines what, in which round
 *       copy/          all_gather.c      transfers that are all-gathers or broadcasts
 *                      senders.c         all others: who sends, and who passes on
 *                      all_to_all.c      recognises all-to-alls among exchanges
 *       load/          balance_load.c    divides the remaining work evenly among the devices
 *     order/         fuse_collectives.c  joins collectives of small tensors
 *     finish/        finish.c name.c   types, groups, tensors that stay in place, the plan's name
 *                    copy.c            copies the plan without scratch data
 *     lower/         lower.c           makes one device's tables of <hetu/reshard.h>, on demand
 */
#pragma once

#include "hetu/reshard.h"
#include "cluster/cluster.h"
#include "layout/layout.h"

typedef struct Plan Plan; // defined in reshard/plan.h

/* A tensor to convert. The two layouts must have been checked against the shape; where both have
 * pending reductions, these must be of one kind. */
typedef struct Conversion {
    Shape shape;
    ht_dtype dtype;
    const Layout *from, *to;
} Conversion;

enum { RESHARD_MOST_CELLS = 1 << 28 };
/* Returns whether the layouts cut the tensor into at most RESHARD_MOST_CELLS cells
 * (intersection/intersection.h), so that its conversion can be planned. */
bool conversion_plannable(const Conversion *conversion);

/* Returns the cheapest plan found for a tensor. `cluster` NULL: one host with equal links. */
const Plan *reshard_plan(Arena *arena, const Cluster *cluster, const Conversion *conversion);

/* Returns the plan of `count` tensors converted together. Layouts must outlive the plan. */
const Plan *reshard_plan_all(Arena *arena, const Cluster *cluster, const Conversion *conversions,
                             int count);

/* Returns a plan that has messages and no collectives, for many tensors of many layouts, such as
 * the tensors that a switch of strategies converts. */
const Plan *reshard_plan_messages(Arena *arena, const Cluster *cluster,
                                  const Conversion *conversions, int count);

/* Returns the bytes of an element. */
int ht_dtype_size(ht_dtype dtype);

/* Return the bytes that all devices together receive, and that one device receives or sends. */
int64_t plan_bytes(const Plan *plan);
int64_t plan_bytes_received(const Plan *plan, int device);
int64_t plan_bytes_sent(const Plan *plan, int device);

/* Returns the bytes of scratch that a device needs to run the plan; a multiple of 64. */
int64_t plan_scratch_bytes(const Plan *plan, int device);

/* Returns whether every tensor may be converted in place: `from` and `to` may be one buffer. */
bool plan_in_place(const Plan *plan);

/* Returns whether the plan does nothing if `from` and `to` are one buffer. */
bool plan_nothing(const Plan *plan);

/* Returns the plan's seconds by the cluster's latency-bandwidth model and its measurements. */
double plan_seconds(const Plan *plan);

/* Returns the name of what the plan does: "nothing", "local slice", "all-reduce", "reduce-scatter",
 * "all-gather", "all-to-all", "broadcast", "reduce", "permute", "send-receive", or a sequence such
 * as "reduce-scatter, all-gather". */
const char *plan_name(const Plan *plan);
