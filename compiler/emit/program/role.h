/* A role's program: operators become calls, repeated calls become loops, and phases become
 * functions.
 *
 *     forward of stage 0   ->   static void forward_gpt_loss_role0(ht_run *r) { gpt_linear_3(...);
 * }
 */
#ifndef EMIT_PROGRAM_ROLE_H
#define EMIT_PROGRAM_ROLE_H

#include "emit/emitter.h"
#include "ir/analysis/phases.h"
#include "ir/programs/device_programs.h"

typedef Array(int64_t) Row;

/* Numbers that differ between the devices of a role, a row for each device. Equal columns are
 * stored once. */
typedef struct NumberTable {
    int device_count, width;
    Row *rows;     // by index of the device in its role
    Intern *known; // 1 + column, by content
    Intern *made;  // 2 + column, by layouts and factors that the numbers follow from
} NumberTable;

/* The devices that add a term to a partial result. */
typedef struct AddedTerm {
    const bool *by; // by index in module->devices->roles
    bool flagged;   // some device of the role does not add it
} AddedTerm;

/* One role while it is written. */
typedef struct RoleWriter {
    Emitter *emitter;
    Module *module;
    const char *name; // "gpt_gpt_loss": prefix of the symbols that the module's files define
    int role_index;
    const Role *role;
    const int64_t *slot_of; // by value id: slot of a parameter, state or input; -1: none
    // by value id: slot into which the new value of a parameter or state is computed; -1: none
    const int64_t *updated_of;
    NumberTable numbers;
    Intern *flags; // AddedTerm *, by layouts and factors
} RoleWriter;

RoleWriter role_writer(Emitter *emitter, Module *module, const char *name, int role);

/* Text of the tables of notes on a part's calls (call_notes.c); all NULL where there are none. */
typedef struct Notes {
    int call_count;
    const char *call, *calls, *made, *buffer, *whose; // by the field of ht_part that they fill
    int whose_count;
} Notes;

/* A part that a role runs (ir/analysis/phases.h). */
typedef struct RolePart {
    Phase phase;
    int visit;
    const char *name;         // "forward", "backward_1"
    bool runs;                // it has operators to run
    Array(int) receive, send; // indices of RoleText.transfers
    Notes notes;
} RolePart;

/* A message between stages that a role sends or receives: operators that cross stages, one
 * asynchronous exchange, or the gather of a prefetched parameter (op_prefetch_point). */
typedef struct RoleTransfer {
    const Op *op; // its first operator
    bool flies;   // asynchronous
    bool ahead, sends, receives;
    int tensor_count;
    int64_t *from, *to; // by tensor: buffers; 0 where the role has none
    int64_t *turn;      // by tensor: bytes of one micro-batch's rows of `from`; 0: all of `from`
    int64_t scratch;    // buffer; 0: none
    // of an asynchronous one: producers of the tensors that this role sends; empty: it receives
    Array(const Op *) makers;
    int number; // of an asynchronous one: its place in the order in which all devices begin them
} RoleTransfer;

typedef struct RoleText {
    // in the order of Phase; within a phase along the visits, backward against them
    Array(RolePart) parts;
    Array(RoleTransfer) transfers;
} RoleText;

/* Returns the index of a role's part; -1 where the role has none. */
int role_part(const RoleText *text, Phase phase, int visit);

/* Appends the C text of a role, part by part. */
RoleText emit_role(Text *out, RoleWriter *writer);

/* Returns the buffer (<hetu/rt.h>) of a value in a role. */
int64_t value_buffer(const RoleWriter *writer, const Value *value);

#endif
