/* Roles: devices that run the same operators on pieces of the same shapes share one program.
 *
 * What differs between the devices of a role (peers, offsets of pieces, which of them adds a bias)
 * is a table. Made by pass specialize; the arena's offsets are filled in by pass memory.
 */
#ifndef IR_PROGRAMS_DEVICE_PROGRAMS_H
#define IR_PROGRAMS_DEVICE_PROGRAMS_H

#include "ir/module.h"
#include "reshard/replica_groups.h"

enum { ARENA_ALIGNMENT = 64 }; // bytes: of what has a place of its own in an arena

typedef struct Role {
    int device_count;
    const int *devices;
    int64_t
        arena_bytes; // peak of the program's own values (parameters and states are the session's)
    int64_t *offset; // by value id: bytes into the arena; -1: no storage there (parameters, states,
                     // inputs, and what shares another's storage)
    int64_t *scratch; // by op index: bytes into the arena of a conversion's scratch space; -1: none
    int64_t slot_bytes; // of what is kept of a micro-batch from one part to another; 0: nothing is
                        // apart from the arena
    bool *kept;         // by value id: its offset is into the slot
} Role;

typedef struct Roles {
    int device_count;
    const int *devices; // all devices of the strategy, ascending
    const int *role_of; // by index in devices
    int role_count;
    Role *at;
} Roles;

/* The index of a device in roles->devices; -1: it is not there. */
int roles_index(const Roles *roles, int device);

/* A tensor of a conversion. */
typedef struct ConvertedTensor {
    Type type;
    const Layout *from, *to;
} ConvertedTensor;

/* What operators of module->builtin.reshard convert, and what the planner makes of it: one tensor,
 * or what one part of a stage hands to another, each tensor by an operator of its own
 * (Op.convert.tensor), planned together. */
typedef struct PlannedConversion {
    int number; // in module->devices.conversions
    Array(ConvertedTensor) tensors;
    const Op *user;       // the first operator that converts so; NULL: none yet
    ReplicaGroups groups; // once there is a user
    const Plan *plan;     // of the first replica group
    Position at; // of its line in the text that it was read from; without a file: a pass made it
} PlannedConversion;

/* The pipeline that a device is of, and the number of its stage there; NULL where the batch runs as
 * a whole. */
const PipelineRun *device_run(Module *module, int device, int *stage);

/* Micro-batches of which a device keeps a slot at a time: those of its schedule where the role
 * keeps anything; after pass schedule. */
int device_slots(Module *module, const Role *role, int device);

/* The device on which what a stage does is laid out: the one of the body's first pipeline that does
 * what `device` does in its own. */
int representative_device(Module *module, int device);

/* What `device` holds of a value, computed once for each pair of layout and type. */
const Region *value_region(Module *module, const Value *value, int device);

/* A number that devices have in common which hold the same boxes of a value; -1: the device holds
 * nothing of it. */
int value_same_boxes(Module *module, const Value *value, int device);

/* What value_region says of all devices of the value's layout, which go to *devices in its order;
 * inside a loop over micro-batches these are stand-ins.
 */
const Region *value_regions(Module *module, const Value *value, const int **devices, int *count);

/* The devices that stand in a value's layout, or for which one that does stands in. */
const int *value_holders(Arena *arena, Module *module, const Value *value, int *count);

/* An element type as the run-time library names it. */
ht_dtype dtype_runtime(DType dtype);

/* Adds a conversion to module->devices.conversions, without tensors and a user. */
PlannedConversion *conversion_add(Module *module);

/* Makes one of its tensors what an operator converts. */
void conversion_use(PlannedConversion *conversion, int tensor, Op *op);

/* The plan of what first replica groups convert together, for the module's cluster: made when it is
 * first asked for, whether for a conversion or to know what one would cost. */
const Plan *module_plan(Module *module, const Conversion *tensors, int count);

/* Plans it, for the module's cluster, where that is not done; conversions whose first replica
 * groups convert the same have one plan. */
void conversion_plan(Module *module, PlannedConversion *conversion);

/* The plan of what one operator converts, by itself, for the first of the replica groups that go to
 * *replica groups; of a conversion of several tensors it is made in the arena. */
const Plan *op_plan_alone(Arena *arena, Module *module, const Op *op,
                          ReplicaGroups *replica_groups);

/* The device on which what an operator does is laid out for `device`. */
int op_representative_device(Module *module, const Op *op, int device);

/* The device of the plan of an operator's conversion, by its name in its replica group, that does
 * what `device` does; -1: it does nothing. */
int conversion_device(Module *module, const Op *op, int device);

/* The local extents of a value that lies as one tensor (zeros where there is nothing of it); false
 * where it is several boxes. */
bool value_local(Module *module, const Value *value, int device, int64_t *extent);

/* Whether an operator does the same with any set of elements, in any order: every tensor of it that
 * is no number has all factors of the operator, in one order, and none that must be whole or whose
 * place the kernel is told. */
bool op_takes_elements(const Op *op);

/* The local extents of a tensor of an operator. Where its pieces are several boxes, and the
 * operator takes elements in any order, those of one row of all elements: 1, ..., 1, n. False where
 * it does not, or where its tensors' boxes differ. */
bool op_local(Module *module, const Op *op, const Value *value, int device, int64_t *extent);

/* Bytes of a value on a device; of a collection, those of all its micro-batches. */
int64_t value_local_bytes(Module *module, const Value *value, int device);

/* The most scratch space that a device of the role needs for an operator: of conversions. Those
 * that are async together have it at the first of them. */
int64_t role_scratch_bytes(Module *module, const Role *role, const Op *op);

/* The most bytes that a device of the role has of a value: of collected rows, pipelines may have
 * more and fewer. */
int64_t role_bytes(Module *module, const Role *role, const Value *value);

/* Whether the devices of a role run an operator at all, or have a side of a conversion. */
bool role_runs(Module *module, const Role *role, const Op *op);

/* The operator that makes what the devices of a role have of a value, which may be a union; NULL:
 * they have nothing, or none makes it. */
const Op *role_maker(Module *module, const Role *role, const Value *value);

/* Whether the devices of a role have anything of a value. */
bool role_has(Module *module, const Role *role, const Value *value);

/* Where the value's storage is on the devices of a role: that of value_storage, and of a union what
 * they have of it. */
const Value *role_storage(Module *module, const Role *role, const Value *value);

/* Where the value's storage is: the value that owns it (a result that takes an operand's storage
 * shares that operand's). */
const Value *value_storage(const Value *value);

#endif
