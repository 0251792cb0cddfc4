/* A role's program: operators become calls, repeated calls become loops, and phases become
 * functions. */
#ifndef EMIT_PROGRAM_ROLE_H
#define EMIT_PROGRAM_ROLE_H

#include "emit/emitter.h"
#include "ir/analysis/phases.h"
#include "ir/programs/device_programs.h"

typedef Array(int64_t) Row;

/* Numbers that differ between the devices of a role, a row for each device; equal columns are
 * stored once. */
typedef struct NumberTable {
    int device_count, width;
    Row *rows;     // by device of the role
    Intern *known; // one more than the column, by content
    Intern *made;  // two more than the column, by what the numbers follow from
} NumberTable;

/* Which devices add a term. */
typedef struct AddedTerm {
    const bool *by; // by index in module->devices.roles
    bool flagged;   // some device of the role does not
} AddedTerm;

/* One role while it is written. */
typedef struct RoleWriter {
    Emitter *emitter;
    Module *module;
    const char *name; // "gpt_gpt_loss": prefix of what the module's files define
    int role_index;
    const Role *role;
    const int64_t *slot_of;    // by value id: of parameters, states and inputs; -1: none
    const int64_t *updated_of; // by value id: the slot that takes the new value of a parameter or
                               // state; -1: none
    NumberTable numbers;
    Intern *flags; // AddedTerm * by layouts
} RoleWriter;

RoleWriter role_writer(Emitter *emitter, Module *module, const char *name, int role);

/* Rows of the tables of notes on a part's calls (emit/program/call_notes.h); NULL where there are
 * none. */
typedef struct Notes {
    int call_count;
    const char *call, *calls, *made, *buffer, *whose; // of ht_part
    int whose_count;
} Notes;

/* A part that a role runs (ir/analysis/phases.h). */
typedef struct RolePart {
    Phase phase;
    int visit;
    const char *name;         // "forward", "backward_1"
    bool runs;                // it has something to compute
    Array(int) receive, send; // transfers, of RoleText
    Notes notes;
} RolePart;

/* A message between stages that a role sends or receives: operators that cross; or one that is
 * async; or a gather ahead (ir/analysis/prefetch.h). */
typedef struct RoleTransfer {
    const Op *op; // the first
    bool flies, ahead, sends, receives;
    int tensor_count;
    int64_t *from, *to; // by tensor: buffers; 0 where the role has none
    int64_t *turn;      // by tensor: bytes of a micro-batch where that is a part of `from`; else 0
    int64_t scratch;    // a buffer; 0: none
    Array(const Op *)
        makers; // of one that is async: what makes what the role has of it; none: it only receives
    int number; // of one that is async: in the order in which all devices begin them
} RoleTransfer;

typedef struct RoleText {
    Array(RolePart)
        parts; // in the order of Phase, forward along the visits and backward against them
    Array(RoleTransfer) transfers;
} RoleText;

/* The number of a role's part; -1 where it has none. */
int role_part(const RoleText *text, Phase phase, int visit);

/* Appends the C text of a role: its parts. */
RoleText emit_role(Text *out, RoleWriter *writer);

/* The buffer (rt.h) of a value in a role. */
int64_t value_buffer(const RoleWriter *writer, const Value *value);

#endif
