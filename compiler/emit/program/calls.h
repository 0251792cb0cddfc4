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
    ARGUMENT_NUMBER,  // a number of bytes or elements
    ARGUMENT_INDEX,   // the index of a transfer
    ARGUMENT_TURN,    // the address of the rows of the current micro-batch in a buffer
    ARGUMENT_TEXT     // C text as it stands
} ArgumentKind;

typedef struct Argument {
    ArgumentKind kind;
    int64_t number;    // ARGUMENT_TURN: the buffer
    const char *text;  // ARGUMENT_TEXT; ARGUMENT_TURN: the bytes of a micro-batch
    const char *label; // what the number stands for: "fused", "d_h0_attn_qkv_w"
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

typedef struct Calls {
    Arena *arena;
    Call **at;
    int count, capacity;
    LocalOp *local; // scratch
    Labels *labels; // of the role
} Calls;

Calls calls_create(Arena *arena, Labels *labels);

/* Appends a call without arguments to the list, and returns it. */
Call *call_new(Calls *calls, const char *opening, const Op *op);
void call_add(Calls *calls, Call *call, Argument argument);

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

/* ---- names of slots, values and places in the arena: labels.c ---- */

/* Fills the writer's labels. */
void labels_create(RoleWriter *writer);

/* Returns what emitted C calls a value: "h0_attn_qkv_w", "d_h0_attn_qkv_w", "fused", "linear". */
const char *value_label(const RoleWriter *writer, const Value *value);

/* Returns the name of a place in the arena, "gpt_loss_at.logits". */
const char *label_place(Arena *arena, Labels *labels, const char *label, int64_t offset);

/* Returns a buffer as an element of a table: "640", "HT_SLOT(gpt_loss_x)", "HT_KEPT + 64". */
const char *label_buffer(Arena *arena, const Labels *labels, int64_t buffer);

/* Returns a name for a column whose label is labels[turn] in each turn: "attn_qkv_w" for labels
 * "h0_attn_qkv_w", "h1_attn_qkv_w"; "gradient", "parameter" or "value" for unlike labels. */
const char *label_of_column(Arena *arena, const char *const *labels, int count);

/* Returns `name`, or NAME_2, NAME_3, ... where `used` has it already or C reserves it. */
const char *label_unique(Arena *arena, Intern *used, const char *name);

/* Appends the enumeration of a model's slots, and the table of a role's places in the arena. */
void labels_emit_slots(Text *out, const RoleWriter *writer);
void labels_emit_places(Text *out, const Labels *labels);
