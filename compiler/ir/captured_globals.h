/* Numbers in a row that the model's evaluation read of a variable of static storage, and that the
 * program may set to others before it runs: a compiled program compares them with what is there
 * when it runs. */
#ifndef IR_CAPTURED_GLOBALS_H
#define IR_CAPTURED_GLOBALS_H

#include "support/diag.h"

#include <stdint.h>

typedef enum NumberKind { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOATING } NumberKind;
typedef struct CapturedGlobal {
    const char *name;     // "seq"; of an array's elements the array: "grid.sizes"
    const char *variable; // at file scope
    bool far;             // the main file does not declare it: another source of the program does
    int64_t offset;       // of the first one there, in bytes
    int64_t first, count; // its index; -1: it is in no array
    NumberKind kind;
    int size;             // of one, in bytes
    const uint8_t *bytes; // what was read
    Position at;
} CapturedGlobal;

#endif
