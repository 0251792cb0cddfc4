/* Tables for the terminal: what -Rmemory, -Rsharding and -Rcomm say of a program as a whole. */
#ifndef PLANNER_REPORT_TABLES_H
#define PLANNER_REPORT_TABLES_H

#include "ir/unit.h"
#include "support/text.h"

/* Bytes of each device by kind, and its ten largest values. Of a module that has come through all
 * passes, as those below. */
void table_memory(Text *out, Module *module);

/* What a session keeps that has all programs of a strategy (NULL: one device), where they are
 * several. */
void table_session(Text *out, const Unit *unit, const Strategy *strategy);

/* The layout of every parameter, state, input and named value, and the devices of its stage. */
void table_sharding(Text *out, Module *module);

/* Bytes that all devices receive in a step, by layer and by reason. */
void table_comm(Text *out, Module *module);

#endif
