/* Device programs (roles): devices that run the same operators on pieces of the same shapes share
 * one program.
 *
 *     stage devices(0-3) mesh(dp:2, tp:2)     equal pieces: role 0 = devices 0, 1, 2, 3
 *     stage devices(4-5) mesh(tp:2 by 3:1)    unequal pieces: role 1 = device 4, role 2 = device 5
 *
 * Peers, offsets of pieces, and which device adds a bias differ between the devices of a role; the
 * emitted tables say them. Pass specialize makes the roles, and pass memory fills in the offsets of
 * their arenas.
 *
 * Pipelines that share a template are laid out once, on the devices of the first of them, which
 * represent those of the others:
 *
 *     pipeline stage devices(0-1) mesh(tp:2)     template 0
 *     pipeline stage devices(2-3) mesh(tp:2)     template 0, too: 0 represents 2, 1 represents 3
 *
 * An operator of a stage has values on devices 0 and 1. Devices 2 and 3 do the same with their own
 * rows of the batch. A device outside of pipelines represents itself.
 */
#ifndef IR_PROGRAMS_DEVICE_PROGRAMS_H
#define IR_PROGRAMS_DEVICE_PROGRAMS_H

#include "ir/module.h"

enum { ARENA_ALIGNMENT = 64 }; // bytes: of each place in an arena

/* The program of some devices. Sizes and offsets are in bytes, and there after pass memory. */
typedef struct Role {
    int device_count;
    const int *devices;
    int64_t arena_bytes; // peak of the program's own values; the session keeps parameters, states
    int64_t *offset;     // by value id: into the arena; -1: no storage there (parameters, states,
                         // inputs, and values that share another's storage)
    int64_t *scratch;    // by op index: into the arena, of a conversion's scratch space; -1: none
    int64_t slot_bytes;  // of the values that a micro-batch keeps from one phase to another; 0: all
                         // values lie in the arena
    bool *kept;          // by value id: its offset is into the slot
} Role;

typedef struct Roles {
    int device_count;
    const int *devices; // all devices of the strategy, ascending
    const int *role_of; // by index in devices
    int role_count;
    Role *at;
} Roles;

/* Returns the index of a device in roles->devices; -1: it is not there. */
int roles_index(const Roles *roles, int device);

/* Returns how many micro-batches a device keeps values of at a time, which its schedule says; 0:
 * the role has no slots. Requires: pass schedule. */
int device_slots(Module *module, const Role *role, int device);

/* Returns whether the devices of a role hold anything of a value. */
bool role_has(Module *module, const Role *role, const Value *value);

/* Returns whether the devices of a role run an operator, or hold a side of a conversion. */
bool role_runs(Module *module, const Role *role, const Op *op);

/* Returns the operator that makes what the devices of a role hold of a value, which may be a union;
 * NULL: they hold nothing, or no operator makes it. */
const Op *role_maker(Module *module, const Role *role, const Value *value);

/* Returns the most bytes that a device of the role holds of a value. They differ for collected
 * rows, of which pipelines have more and fewer. */
int64_t role_bytes(Module *module, const Role *role, const Value *value);

/* Returns the bytes of scratch space that an operator, a conversion, needs on any device of the
 * role. Async conversions of one plan share the space of the first. */
int64_t role_scratch_bytes(Module *module, const Role *role, const Op *op);

/* Returns the value that owns the storage of a value. A result in place shares its operand's. */
const Value *value_storage(const Value *value);

/* Returns the same on the devices of a role: a union has the storage of their operand. */
const Value *role_storage(Module *module, const Role *role, const Value *value);

/* ---- representative devices ---- */

/* Returns the device on which the work of `device` is laid out. */
int representative_device(Module *module, int device);

/* Returns the same for one operator: an operator on all devices represents none by another. */
int op_representative_device(Module *module, const Op *op, int device);

/* Enumerate the devices that a device represents, in ascending order; -1 ends them. */
int first_represented(Module *module, int representative);
int next_represented(Module *module, int device);

/* Returns the pipeline of a device, and its stage there in *stage; NULL: the batch runs as a
 * whole. */
const PipelineRun *device_run(Module *module, int device, int *stage);

#endif
