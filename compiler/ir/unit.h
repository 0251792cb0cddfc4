/* A unit: everything that one source file gives: its models, its strategies, and what the emitter must know to register them. */
#ifndef IR_UNIT_H
#define IR_UNIT_H

#include "ir/ir.h"

typedef struct ShapeVariable { // #pragma hspmd shape(seq, batch)
    const char *name;
    const char *type; // its C type, "int"
    int64_t value;    // under the chosen strategy
    Position at;
} ShapeVariable;

typedef struct Unit {
    Arena *arena;
    Diag *diag;
    const char *file;             // as given on the command line
    Array(Module *) modules;      // in the order of the first ht_train or ht_infer that names them
    Array(Strategy *) strategies; // of the source, or of --strategy=FILE
    const Strategy *chosen;       // NULL: one device
    Array(ShapeVariable) shapes;
    Array(const char *) bodiless; // operators of the user's that this source declares only
    const char *std;              // of -std, "c17"
} Unit;

#endif
