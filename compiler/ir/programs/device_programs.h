/* Device programs (roles): devices with equal operators on pieces of equal shapes share a program.
 *
 *     stage devices(0-3) mesh(dp:2, tp:2)     equal pieces: role 0 = devices 0, 1, 2, 3
 *     stage devices(4-5) mesh(tp:2 by 3:1)    unequal pieces: role 1 = device 4, role 2 = device 5
 *
 * Devices of one role differ in their peers, in the offsets of their pieces, and in whether they
 * add a bias; emitted tables hold these differences. Pass specialize makes the roles; pass memory
 * fills in the offsets of their arenas.
 *
 * Pipelines that share a template are laid out once, on the devices of the first pipeline, which
 * represent the devices of the other pipelines:
 *
 *     pipeline stage devices(0-1) mesh(tp:2)     template 0
 *     pipeline stage devices(2-3) mesh(tp:2)     template 0, too: 0 represents 2, 1 represents 3
 *
 * An operator of a stage has values on devices 0 and 1. Devices 2 and 3 run it on their own rows of
 * the batch. A device outside of pipelines represents itself. */
#pragma once

#include "ir/module.h"

enum { ARENA_ALIGNMENT = 64 }; // in bytes, of each offset into an arena

/* The program of some devices. Sizes and offsets are in bytes; pass memory sets them. */
typedef struct Role {
    int device_count;
    const int *devices;
    int64_t arena_bytes; // size of the arena; parameters and states lie elsewhere, in the session
    int64_t *offset;     // by value id: offset in the arena or a slot (see `kept`); -1: in neither
                         // (parameters, states, inputs, values that share another's storage)
    int64_t *scratch;    // by op index: a conversion's scratch offset in the arena or slot, or -1
    int64_t slot_bytes;  // size of a slot, for values that a micro-batch keeps between phases; 0:
                         // all values lie in the arena
    bool *kept;          // by value id: its offset is into a slot, not into the arena
} Role;

typedef struct Roles {
    int device_count;
    const int *devices; // all devices of the strategy, ascending
    const int *role_of; // by index in `devices`: index of the role in `at`
    int role_count;
    Role *at;
} Roles;

/* Returns the index of a device in roles->devices; -1: it is not there. */
int roles_index(const Roles *roles, int device);

/* Returns the number of slots of a device: the most micro-batches whose values its schedule keeps
 * at a time. 0: the role has no slots. Requires: pass schedule. */
int device_slots(Module *module, const Role *role, int device);

/* Returns whether the devices of a role are in a value's layout. */
bool role_has(Module *module, const Role *role, const Value *value);

/* Returns whether the devices of a role run an operator, or hold a side of a conversion. */
bool role_runs(Module *module, const Role *role, const Op *op);

/* Returns the operator that makes a value on a role's devices; for the result of operator `union`,
 * the maker of the operand on these devices. NULL: they lack the value, or no operator makes it. */
const Op *role_maker(Module *module, const Role *role, const Value *value);

/* Returns the largest number of bytes that a device of the role holds of a value. Devices differ
 * only in collected rows, because their pipelines may run different numbers of micro-batches. */
int64_t role_bytes(Module *module, const Role *role, const Value *value);

/* Returns the most bytes of scratch space that a conversion needs on a device of the role. The
 * operators of an async conversion share its space: 0 for all of them but the first. */
int64_t role_scratch_bytes(Module *module, const Role *role, const Op *op);

/* Returns the owner of a value's storage: an in-place result uses the storage of its operand. */
const Value *value_storage(const Value *value);

/* Returns value_storage on a role's devices. There, the result of operator `union` (ir/builtin.h)
 * has the storage of the operand that these devices hold. */
const Value *role_storage(Module *module, const Role *role, const Value *value);

/* ---- representative devices ---- */

/* Returns the device on which the work of `device` is laid out. */
int representative_device(Module *module, int device);

/* Returns representative_device for an operator of a stage, and `device` for one of STAGE_ALL. */
int op_representative_device(Module *module, const Op *op, int device);

/* Enumerate the devices that a device represents, itself included, ascending; -1: no more. */
int first_represented(Module *module, int representative);
int next_represented(Module *module, int device);

/* Returns the pipeline of a device, and writes the stage's index to *stage; NULL: it is in none. */
const PipelineRun *device_run(Module *module, int device, int *stage);
