/* Inside the emitter: what its files share.
 *
 * emit.c writes a unit; for each module and role, emit_role.c turns operators into calls, folds repeated ones into loops and writes them;
 * emit_kernel.c, emit_product.c, emit_call.c and loops*.c write the functions that are called; emit_image.c writes the tables. emit_op.c says what an
 * operator is on one device.
 */
#ifndef EMIT_EMITTER_H
#define EMIT_EMITTER_H

#include "emit/backend.h"
#include "emit/emit.h"
#include "ir/roles.h"
#include "support/intern.h"
#include "support/text.h"

/* ---- the unit ---- */

typedef struct Emitter {
    Arena *arena;
    const Unit *unit;
    const char *base;   // "gpt"
    const char *prefix; // "gpt", or "gpt_1f0a5e2b" where other sources of the program may have the same name
    const Backend *backend;
    Intern *kernels; // Kernel * by key
    int kernel_count;
    Text kernel_text;              // the functions so far
    Text kernel_externs;           // declarations of the C kernels that they run
    Text key;                      // reused for keys
    Intern *pieces, *pieces_known; // tables of pieces so far, by content, and by layout and type
    int pieces_count;
} Emitter;

/* The name of the unit's fingerprint in emitted C. */
const char *fingerprint_name(const Emitter *emitter);

/* A generated function. */
typedef struct Kernel {
    const char *name;
    const char *opening;   // of a call: "gpt_add_3(", "gpt_softmax_4(r, "
    const char *prototype; // "void gpt_add_3(void *y, void *x, void *z)"
    bool ranked;           // takes the rank first, and the place in the source last
    bool pieced;           // takes a row of piece numbers
} Kernel;

/* ---- an operator on one device ---- */

enum { EMIT_MAX_TENSORS = IR_MAX_OPERANDS, EMIT_MAX_FACTORS = IR_MAX_FACTORS };

/* A tensor of an operator: the local extents and the bound factor of each dimension. */
typedef struct Tensor {
    const Value *value; // NULL: absent
    const Access *access;
    const BoundAccess *bound;
    const char *name; // in emitted C
    bool empty;       // this device holds nothing of it
    int64_t extent[IR_MAX_RANK];
} Tensor;

/* One of the terms that a body adds up. */
typedef struct Term {
    const Expr *expr;
    bool minus;
    uint32_t contracted; // the bound factors over which it is summed
    bool flagged;        // added only where the device's number says so
} Term;

typedef struct LocalOp {
    Module *module;
    const Backend *backend;
    const Op *op;
    int device; // the role's first
    const Rule *rule;
    int result_count, operand_count;
    Tensor results[IR_MAX_RESULTS], operands[EMIT_MAX_TENSORS];
    int factor_count;
    int64_t extent[EMIT_MAX_FACTORS]; // local, by bound factor
    uint32_t contracted;              // bound factors that no result has
    int term_count;
    Term *terms; // RULE_BODY, and the product in front of an epilogue
} LocalOp;

typedef Array(int64_t) Row;

/* Numbers that differ between the devices of a role, a row for each device; equal columns are stored once. */
typedef struct PieceTable {
    int device_count, width;
    Row *rows;     // by device of the role
    Intern *known; // one more than the column, by content
} PieceTable;

/* The conversions of a module: a table for each pair of a plan and an element type. */
typedef struct Conversions {
    int count;
    const Op **user; // the first operator that runs it
    int *of;         // by op index; -1: none
} Conversions;

/* One role while it is written. */
typedef struct Target {
    Emitter *emitter;
    Module *module;
    const char *name; // "gpt_gpt_loss": prefix of what the module's files define
    int role_index;
    const Role *role;
    const int64_t *slot_of;    // by value id; -1: none
    const int64_t *updated_of; // by value id: the slot that takes the new value of a parameter or state; -1: none
    const Conversions *conversions;
    PieceTable pieces;
    Intern *flags; // what term_added found, by layouts
} Target;

/* Fills in `local`; false after an error was reported: pieces of several boxes. */
bool local_op(LocalOp *local, Target *target, const Op *op);

/* Whether every result is empty on this device; whether some factor is (the non-empty results of a C kernel are then identities). */
bool local_nothing(const LocalOp *local);
bool local_empty(const LocalOp *local);

/* Elements of a tensor on this device. */
int64_t tensor_count(const Tensor *tensor);

/* The numbers that a call reads for a device (flags of terms, then offsets of views) and how many: 0 when it reads none. */
int local_pieces(const LocalOp *local, Target *target, int device, int64_t *numbers);

/* Where in a device's row the numbers of this operator stand; added when new. -1 when it reads none. */
int piece_column(Target *target, const LocalOp *local);

/* Whether a tensor of an operator is a micro-batch's part of an input, which may begin anywhere; `value` as the operator has it. */
bool value_turns(const Module *module, const Op *op, const Value *value);

/* The index of the operand of the call that rule operand `index` stands for; -1 when absent. */
int operand_of(const LocalOp *local, int index);

const Conversions *conversions_of(Arena *arena, const Module *module);

/* ---- functions ---- */

/* The function for an operator, written to the kernels' file when there is none yet. */
const Kernel *kernel_for(Target *target, const LocalOp *local);

/* Writers of bodies: append the statements of a function whose parameters are the tensors' names, `at` for the piece numbers, and where a C
 * kernel is run `r` and `where`. Loops are the back end's (backend.h). */
void emit_call(Text *out, const LocalOp *local, const char *kernel, bool update);
void emit_identity(Text *out, const LocalOp *local);

/* A body that ht_product computes: operands x and w, the bias or -1, a factor or NULL; the result, and the one that takes what is in front of an epilogue, or -1. */
typedef struct Product {
    int x, w, bias, y, aux;
    bool bias_flagged; // added only where at[0] says so
    const Expr *scale;
} Product;
bool product_of(const LocalOp *local, Product *product);
void emit_product(Text *out, const LocalOp *local, const Product *product);

/* An expression of a body as C; `access` appends the text of an operand, or of value -1 - `operand` of equations. */
typedef void AccessWriter(Text *out, const LocalOp *local, int operand, void *context);
void emit_expr(Text *out, const LocalOp *local, const Expr *expr, AccessWriter *access, void *context);

/* Whether a kernel uses where the pieces of a dimension of its view start. */
bool written_has_offset(const LocalOp *local, const Tensor *tensor, int written);

/* ---- files ---- */

/* The C text of a role: its phases. Fills in which phases exist. */
typedef enum Phase { PHASE_BEFORE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE, PHASE_COUNT } Phase;
const char *phase_name(Phase phase);
typedef struct RoleText {
    bool has[PHASE_COUNT];
} RoleText;
RoleText emit_role(Text *out, Target *target);

/* Buffers (rt.h) of a value in a role. */
int64_t value_buffer(const Target *target, const Value *value);

/* Slots of parameters, states and inputs, by value id. */
const int64_t *slots_of(Arena *arena, const Module *module);

/* The slots that the values which become new parameters and states are computed into, where the arena has no storage for them. */
const int64_t *updated_slots_of(Arena *arena, const Module *module, const int64_t *slots);

/* The tables of a module. `roles` and `targets` have one entry a role. */
void emit_image(Text *out, Emitter *emitter, Module *module, const char *name, Target *targets, const RoleText *roles);

/* ---- words ---- */

/* `text` as a C identifier, as the inside of a C string, and as the inside of a comment. */
const char *c_identifier(Arena *arena, const char *text);
const char *c_string(Arena *arena, const char *text);
const char *c_comment(Arena *arena, const char *text);

/* Whether `name` stands in `text` as a whole word. */
bool has_word(const char *text, const char *name);

/* "float", "uint16_t", ...; "HT_F32", ... */
const char *c_type(DType dtype);
const char *c_dtype(DType dtype);

/* "(16, 128, 256)". */
void text_shape(Text *out, int rank, const int64_t *extent);

/* "gpt.c:42 h3"; the scope is left out when NULL. */
const char *op_place(Arena *arena, const Op *op, const char *scope);

#endif
