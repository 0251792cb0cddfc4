/* Call lists: the straight-line program of a phase, and how it is written.
 *
 * A call is a function and arguments, most of them numbers: buffers, and columns of the device's
 * numbers. Where the same functions follow each other again and again with other numbers (layers),
 * the repeats become one function and a table of those numbers that differ.
 */
#ifndef EMIT_PROGRAM_CALLS_H
#define EMIT_PROGRAM_CALLS_H

#include "emit/kernel/kernel.h"

typedef enum ArgumentKind {
    ARGUMENT_BUFFER,
    ARGUMENT_NUMBERS,
    ARGUMENT_NUMBER,
    ARGUMENT_TURN,
    ARGUMENT_TEXT
} ArgumentKind;

typedef struct Argument {
    ArgumentKind kind;
    int64_t number;   // ARGUMENT_TURN: the buffer
    const char *text; // ARGUMENT_TEXT; ARGUMENT_TURN: the bytes of a micro-batch
} Argument;

typedef struct Call {
    const char *opening; // "gpt_add_3(" or "ht_convert(r, "
    Array(Argument) arguments;
    bool places; // the last argument is the place in the source
    const Op *op;
    const Value *makes; // what it makes; NULL: the operator's results
    bool copies;        // it is no operator's, but a copy
    bool aside;         // nobody looks on
    const char *comment;
    int key; // equal where the calls differ in numbers only
} Call;

/* The kernels that a role calls, each once. */
typedef struct UsedKernels {
    Intern *known;
    Array(const Kernel *) list;
} UsedKernels;

typedef struct Calls {
    Arena *arena;
    Call **at;
    int count, capacity;
    LocalOp *local; // scratch
    UsedKernels *used;
} Calls;

Calls calls_create(Arena *arena, UsedKernels *used);

/* A new call at the end of the list; its arguments follow. */
Call *call_new(Calls *calls, const char *opening, const Op *op);
void call_add(Calls *calls, Call *call, Argument argument);

/* A copy of a value's bytes, unless it lies there already or has none. */
void call_copy(Calls *calls, const RoleWriter *writer, const Op *op, const Value *to,
               const Value *from);

/* Notes that the list calls a kernel. */
void calls_use(Calls *calls, const Kernel *kernel);

/* Declarations of the kernels and tables that a role uses. */
void calls_externs(Text *out, const RoleWriter *writer, const UsedKernels *used);

/* The function `name` that runs the calls, and the functions that it is split into; `phase` names
 * those. */
void calls_emit(Text *out, Calls *calls, const char *name, const char *phase);

#endif
