/* Planned conversions: what the `reshard` operators of a module convert, and the plan of each.
 *
 *     %9 = reshard(%8)   layout<[0-3]{sum:4}> to layout<[0-3]{dup:4}>, f32[8, 64]
 *
 * has a PlannedConversion of one tensor, whose plan is an all-reduce. Operators that convert the
 * same share one. Messages between two stages, and gradient buckets, are conversions of several
 * tensors, each of which belongs to an operator of its own (Op.convert.tensor).
 */
#ifndef IR_PROGRAMS_CONVERSIONS_H
#define IR_PROGRAMS_CONVERSIONS_H

#include "ir/module.h"
#include "reshard/replica_groups.h"

/* A tensor of a conversion. */
typedef struct ConvertedTensor {
    Type type;
    const Layout *from, *to;
} ConvertedTensor;

typedef struct PlannedConversion {
    int number; // in module->devices->conversions
    Array(ConvertedTensor) tensors;
    const Op *user;       // the first operator that converts so; NULL: none yet
    ReplicaGroups groups; // once there is a user
    const Plan *plan;     // of the first replica group
    Position at;          // of its line in IR text; without a file: a pass made it
} PlannedConversion;

/* Adds a conversion without tensors and user to module->devices->conversions. */
PlannedConversion *conversion_add(Module *module);

/* Makes an operator the user of one tensor of a conversion. */
void conversion_use(PlannedConversion *conversion, int tensor, Op *op);

/* Plans a conversion for the module's cluster unless it has a plan. Conversions whose first replica
 * groups convert the same share one plan. */
void conversion_plan(Module *module, PlannedConversion *conversion);

/* Returns the plan of tensors that the first replica groups convert together, for the module's
 * cluster. It is memoized, so that a price and a conversion cost one planning. */
const Plan *module_plan(Module *module, const Conversion *tensors, int count);

/* Returns the plan of one operator's tensor alone, for the first replica group, and writes the
 * replica groups. */
const Plan *op_plan_alone(Arena *arena, Module *module, const Op *op,
                          ReplicaGroups *replica_groups);

/* Returns the device of the plan of an operator's conversion, by its name in its replica group,
 * that does what `device` does; -1: it does nothing. */
int conversion_device(Module *module, const Op *op, int device);

/* Returns an element type as the runtime library names it. */
ht_dtype dtype_runtime(DType dtype);

#endif
