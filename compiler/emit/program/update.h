/* Parameters' updates. The optimizer's operators are called in the phase `update` as any others are
 * (role.h); here stands where parameters and their states lie, and how new values get there. */
#ifndef EMIT_PROGRAM_UPDATE_H
#define EMIT_PROGRAM_UPDATE_H

#include "emit/program/role.h"

struct Calls;

/* Slots of parameters, states and inputs, by value id; -1: none. */
const int64_t *slots_of(Arena *arena, const Module *module);

/* The slots that the values which become new parameters and states are computed into, where the
 * arena has no storage for them. */
const int64_t *updated_slots_of(Arena *arena, const Module *module, const int64_t *slots);

/* Copies new values that were not computed in place to where parameters and states lie. */
void emit_updates(struct Calls *calls, const RoleWriter *writer);

#endif
