/* Call lists: the straight-line program of a phase, and how the emitter writes the program as C.
 *
 * A call has a function and arguments, most of which are numbers: buffers, and columns of the
 * device's numbers. Where a sequence of calls repeats with other numbers (layers), it becomes one
 * function, and a table of the numbers that differ:
 *
 *     gpt_norm_1(r, 3, 4); gpt_linear_2(r, 4, 7);
 *     gpt_norm_1(r, 8, 9); gpt_linear_2(r, 9, 12);    ->   a loop over {3, 4, 7}, {8, 9, 12}
 */
#pragma once

#include "emit/kernel/kernel.h"
#include "emit/program/role.h"

typedef enum ArgumentKind {
    ARGUMENT_BUFFER,  // the address of a buffer
    ARGUMENT_NUMBERS, // a column of the device's row of numbers
    ARGUMENT_NUMBER,  // an integer
    ARGUMENT_TURN,    // the address of the rows of the current micro-batch in a buffer
    ARGUMENT_TEXT     // C text as it stands
} ArgumentKind;

typedef struct Argument {
    ArgumentKind kind;
    int64_t number;   // ARGUMENT_TURN: the buffer
    const char *text; // ARGUMENT_TEXT; ARGUMENT_TURN: the bytes of a micro-batch
} Argument;

typedef struct Call {
    const char *opening; // "gpt_add_3(" or "ht_convert(r, "
    Array(Argument) arguments;
    bool places; // the last argument is the source position
    const Op *op;
    const Value *makes; // the value that the call makes; NULL: the operator's results
    bool copies;        // a copy that the emitter adds, not the operator itself
    bool aside;         // the call is left out of traces and profiles
    const char *comment;
    int key; // equal for calls that differ only in numbers
} Call;

/* The kernels that a role calls, without duplicates. */
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

/* Appends a call without arguments to the list, and returns it. */
Call *call_new(Calls *calls, const char *opening, const Op *op);
void call_add(Calls *calls, Call *call, Argument argument);

/* Records that the list calls a kernel. */
void calls_use(Calls *calls, const Kernel *kernel);

/* Appends declarations of the kernels and tables that a role uses. */
void calls_externs(Text *out, const RoleWriter *writer, const UsedKernels *used);

/* Appends the comment `phase`, function `name`, which runs the calls, and parts of it: NAME_0... */
void calls_emit(Text *out, Calls *calls, const char *name, const char *phase);

/* Returns notes on a list of calls, as rows of the tables of ht_part: call_notes.c. */
Notes notes_of(const RoleWriter *writer, const Calls *calls);

/* ---- buffers of values: buffers.c ---- */

/* Returns the slots (numbers in the image) of parameters, states, inputs, by value id; -1: none. */
const int64_t *slots_of(Arena *arena, const Module *module);

/* Returns, by value id, the slot of the parameter or state that gets the value; -1: none. The value
 * is computed into the slot if the arena has no storage for it. */
const int64_t *updated_slots_of(Arena *arena, const Module *module, const int64_t *slots);

/* Return the buffer (<hetu/rt.h>) of a value in a role, and its bytes on the role's devices. */
int64_t value_buffer(const RoleWriter *writer, const Value *value);
int64_t role_value_bytes(const RoleWriter *writer, const Value *value);

/* Appends the argument for a tensor. Inputs are whole in their slots, collected rows in the arena.
 * Inside the loop over micro-batches both are passed as the micro-batch's rows. */
void call_tensor(Calls *calls, Call *call, const RoleWriter *writer, const Value *value);

/* Appends a copy of the bytes of `from`, unless `from` shares the storage of `to` or is empty. */
void call_copy(Calls *calls, const RoleWriter *writer, const Op *op, const Value *to,
               const Value *from);

/* Sets the comment after a call: "NAME = OPERATOR", or the operator if no result has a name. */
void call_describe(Calls *calls, Call *call);
