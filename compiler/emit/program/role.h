/* A role's program: operators become calls, repeated calls become loops, and phases become functions. */
#ifndef EMIT_PROGRAM_ROLE_H
#define EMIT_PROGRAM_ROLE_H

#include "emit/emitter.h"
#include "ir/roles.h"

typedef Array(int64_t) Row;

/* Numbers that differ between the devices of a role, a row for each device; equal columns are stored once. */
typedef struct NumberTable {
    int device_count, width;
    Row *rows;     // by device of the role
    Intern *known; // one more than the column, by content
} NumberTable;

/* One role while it is written. */
typedef struct RoleWriter {
    Emitter *emitter;
    Module *module;
    const char *name; // "gpt_gpt_loss": prefix of what the module's files define
    int role_index;
    const Role *role;
    const int64_t *slot_of;    // by value id: of parameters, states and inputs; -1: none
    const int64_t *updated_of; // by value id: the slot that takes the new value of a parameter or state; -1: none
    NumberTable numbers;
    Intern *flags; // by layouts: which devices add a term
} RoleWriter;

RoleWriter role_writer(Emitter *emitter, Module *module, const char *name, int role);

typedef enum Phase { PHASE_BEFORE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE, PHASE_COUNT } Phase;
const char *phase_name(Phase phase);

/* Which phases a role has. */
typedef struct RoleText {
    bool has[PHASE_COUNT];
} RoleText;

/* Appends the C text of a role: its phases. */
RoleText emit_role(Text *out, RoleWriter *writer);

/* The buffer (rt.h) of a value in a role. */
int64_t value_buffer(const RoleWriter *writer, const Value *value);

#endif
