/* The tables that say what devices hold of tensors (ht_pieces of <hetu/rt.h>). Devices that follow
 * each other, and boxes that do, are often in regular places: a row of a table is a run of them, so
 * that a table grows with the ways in which a tensor is cut, not with the devices.
 */
#ifndef EMIT_PROGRAM_BOX_TABLES_H
#define EMIT_PROGRAM_BOX_TABLES_H

#include "emit/program/role.h"

/* The number N of the table `pieces_N` of a value, written when there is none with the same pieces;
 * `device_count` is one more than the highest device, idle ones included. */
int pieces_write(Text *out, Emitter *emitter, Module *module, int device_count, const Value *value);

#endif
