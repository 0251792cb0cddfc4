/* Planned conversions: the tensors that the `reshard` operators of a module convert, and the plans.
 *
 *     %9 = reshard(%8)   layout<[0-3]{sum:4}> to layout<[0-3]{dup:4}>, f32[8, 64]
 *
 * has a PlannedConversion of one tensor, whose plan is an all-reduce. Operators with equal types
 * and layouts share a PlannedConversion. Messages between two stages, and gradient buckets, convert
 * several tensors, each of which belongs to an operator of its own (Op.convert.tensor). */
#pragma once

#include "ir/module.h"
#include "reshard/replica_groups.h"

/* A tensor of a conversion. */
typedef struct ConvertedTensor {
    Type type;
    const Layout *from, *to;
} ConvertedTensor;

typedef struct PlannedConversion {
    int number; // index into module->devices->conversions
    Array(ConvertedTensor) tensors;
    const Op *user;       // the first operator with this conversion; NULL: none yet
    ReplicaGroups groups; // set by conversion_plan
    const Plan *plan;     // plan for the first replica group
    Position at;          // position of its line in IR text; file NULL: a pass made it
} PlannedConversion;

/* Appends an empty conversion to module->devices->conversions and returns it. */
PlannedConversion *conversion_add(Module *module);

/* Sets op->convert to one tensor of a conversion. The first such operator becomes its `user`. */
void conversion_use(PlannedConversion *conversion, int tensor, Op *op);

/* Plans a conversion for the module's cluster unless it has a plan. Conversions share one plan if
 * their first replica groups have equal shapes and layouts. */
void conversion_plan(Module *module, PlannedConversion *conversion);

/* Returns the plan that converts the tensors together, in their first replica group, for the
 * module's cluster. The plan is memoized: a conversion's price and its code use the same plan. */
const Plan *module_plan(Module *module, const Conversion *tensors, int count);

/* Returns the plan that converts an operator's tensor alone, in the first replica group. Writes the
 * replica groups of that conversion to *replica_groups. */
const Plan *op_plan_alone(Arena *arena, Module *module, const Op *op,
                          ReplicaGroups *replica_groups);

/* Returns how often all pipelines together run an operator in a step. */
int64_t conversion_runs(const Module *module, const Op *op);

/* Returns the device of the first replica group, for which the plan is made, that corresponds to
 * `device` in an operator's conversion; -1: `device` takes no part. */
int conversion_device(Module *module, const Op *op, int device);

/* Adds to `loads` the bytes that a conversion sends through uplinks, on its own devices. */
void conversion_load_uplinks(const PlannedConversion *conversion, UplinkLoads *loads);

/* Returns an element type as the runtime library names it. */
ht_dtype dtype_runtime(DType dtype);
