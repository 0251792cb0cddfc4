/* Inside the one-device library: nodes, the tape, and the step's memory. */
#ifndef EAGER_TAPE_H
#define EAGER_TAPE_H

#include "eager/eager.h"

enum { EAGER_RESULTS = 4, EAGER_ATTRS = 8 };

/* A value of one step. */
typedef struct ht_node {
    ht_dtype dtype;
    ht_dims dims;
    int64_t count;
    void *data; // NULL in a dry evaluation, and while `zero` holds
    bool zero;  // all elements are zero; eager_data makes them
    bool needs_gradient;
    struct ht_node *gradient; // NULL: none yet
    bool owns_gradient;       // it was made by adding up, and may be added to
    bool used;                // of what a gradient function gets: an operator took it
    eager_param *param;       // of a parameter
    int64_t evaluation;       // in which it was made
    int64_t number;           // in that evaluation
} ht_node;

/* An operator that ran: what backward needs. */
typedef struct Entry Entry;
struct Entry {
    void (*backward)(Entry *entry);
    void (*gradient)(ht_grad *g); // where an operator names one
    int result_count, operand_count, attr_count;
    ht_node *result[EAGER_RESULTS];
    ht_node **operand;
    ht_attr attr[EAGER_ATTRS];
};

/* ---- memory of a step ---- */

void *eager_alloc(size_t bytes);

/* ---- nodes ---- */

ht_node *eager_node(ht_dtype dtype, ht_dims dims);

/* A node of this evaluation with the given members. */
ht_node *eager_node_like(ht_node node);
ht_tensor eager_tensor(ht_node *node);

/* The elements of a node; makes those of a zero node. */
void *eager_data(ht_node *node);
float *eager_f32(ht_node *node);

/* Whether this evaluation only finds shapes. */
bool eager_dry(void);

/* The node of an operand, which must be present. */
ht_node *eager_operand(const char *operator, ht_tensor x);

/* Ends the program with both shapes in the message: "ht_add: x (3, 4) and z (5): WHY". */
_Noreturn void eager_mismatch(const char *operator, const ht_node * x, const ht_node *z, const char *why);

/* A shape as text: "(3, 4)"; valid until the fourth next call. */
const char *eager_shape_text(ht_dims dims);

/* End the program where a tensor cannot have so many dimensions, or this shape. */
void eager_check_rank(int rank);
void eager_check_shape(ht_dims dims);

bool eager_same_shape(ht_dims a, ht_dims b);
int64_t eager_elements(ht_dims dims);

/* ---- element types ---- */

bool eager_is_integer(const ht_node *node);

/* Each ends the program where an operand's type is not what the operator's rule asks for: one of `types` (a bit a type), `dtype`, an
 * integer, no integer since the result has fractions, or the same as another's. */
void eager_need_types(const char *operator, const char * name, const ht_node *node, unsigned types);
void eager_need_type(const char *operator, const char * name, const ht_node *node, ht_dtype dtype);
void eager_need_integers(const char *operator, const char * name, const ht_node *node);
void eager_need_fractions(const char *operator, const char * name, const ht_node *node);
void eager_need_alike(const char *operator, const char * x_name, const ht_node *x, const char *z_name, const ht_node *z);

/* The type in which elements of a type are computed with, and their sums kept: f32 for bf16, i64 for i32, else the type itself. */
ht_dtype eager_working(ht_dtype dtype);

/* A node's elements in that type: its own, or a copy. Where to write them, and what to call when they are written. */
void *eager_read(ht_node *node);
void *eager_target(ht_node *node);
void eager_written(ht_node *node, const void *from);

/* ---- the tape ---- */

/* Puts an operator on the tape when it takes part in the gradient; the results then need gradients, too. NULL otherwise. */
Entry *eager_record(void (*backward)(Entry *), int result_count, ht_node *const *results, int operand_count, ht_node *const *operands);

/* Adds to the gradient of a node; `gradient` may be shared by several nodes and is not changed. */
void eager_add_gradient(ht_node *node, ht_node *gradient);

/* A node of zeros like another. */
ht_node *eager_zeros(const ht_node *like);

/* The gradient of a result, zero where nothing flows back. */
ht_node *eager_gradient_of(ht_node *node);

/* Runs the operators behind `loss` backwards. */
void eager_backward(ht_node *loss);

/* An operator with a kernel: as ht_apply, and `whole` says that the kernel takes empty operands. */
void eager_apply(const ht_application *application, ht_tensor *results, bool whole);

/* ---- the same program at every step ---- */

/* What the first evaluation of a model did, in order: a fingerprint each of operators, parameters, inputs and outputs. */
typedef struct Trace {
    int count, room, at; // `at` is the next one
    uint64_t *print;
    int forward; // how many belong to the model; the others to gradients. -1 until they are known, which is after the first evaluation
    bool whole;  // those of gradients are known, too
} Trace;

/* Begins an evaluation, and ends its forward and its backward part. */
void eager_trace_begin(Trace *trace);
void eager_trace_forward(Trace *trace);
void eager_trace_backward(Trace *trace);

/* Notes an operator by its function, its tensors and its numbers. Ends the program when the first evaluation did something else here. */
void eager_trace_operator(void (*function)(void), int result_count, ht_node *const *results, int operand_count, ht_node *const *operands);
void eager_trace_argument(const ht_attr *argument);

/* The same for what has a name; `kind` is "the parameter ". */
void eager_trace_name(const char *kind, const char *name, ht_dtype dtype, ht_dims dims);

/* ---- the running program ---- */

typedef struct Run {
    eager_store *store;
    eager_program *program;
    Trace *trace;
    const char *operator; // the last one whose operands were looked at
    int64_t evaluation;   // counts evaluations of all programs
    int64_t node_count;
    bool dry, training, recording, backward;
    int64_t step;
    uint64_t seed;
    int64_t next_stream;
    char scope[512];
    size_t scope_length;
} Run;
extern Run eager_run;

/* ---- what the store and the program do for the model's functions ---- */

eager_param *eager_store_make(eager_store *store, const char *name, ht_dims shape, ht_init init);
ht_node *eager_program_param(eager_program *program, eager_param *param, bool no_decay, bool frozen);
ht_node *eager_program_input(eager_program *program, const char *name, ht_dtype dtype, ht_dims dims);
void eager_program_output(eager_program *program, const char *name, ht_node *node);

/* The tape and memory of a program, made with it; eager_tape_begin makes it the current one and forgets the step before. */
typedef struct Tape Tape;
Tape *eager_tape_create(void);
void eager_tape_destroy(Tape *tape);
void eager_tape_begin(Tape *tape);

#endif
