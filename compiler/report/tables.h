/* Tables for the terminal: what -Rmemory, -Rsharding and -Rcomm say of a program as a whole. */
#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H

#include "ir/roles.h"
#include "support/text.h"

/* Bytes of each device by kind, and its ten largest values. Of a module that has come through all passes, as those below. */
void table_memory(Text *out, Module *module);

/* The layout of every parameter, state, input and named value, and the devices of its stage. */
void table_sharding(Text *out, Module *module);

/* Bytes that all devices receive in a step, by layer and by reason. */
void table_comm(Text *out, Module *module);

#endif
