/* Inside the one-device library: nodes, the tape, and the step's memory. */
#ifndef EAGER_TAPE_H
#define EAGER_TAPE_H

#include "eager/eager.h"

#include <hetu/rt.h>

#include <locale.h>

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
typedef struct Entry {
    const struct Operator *op;    // of <hetu/ops.h>; NULL: one that ht_apply ran
    void (*gradient)(ht_grad *g); // NULL: by the operator's rule
    int result_count, operand_count, attr_count;
    ht_node **result, **operand;
    const ht_attr *attr;
    int size_count;
    const int64_t *size;   // of the rule's factors
    const ht_called *note; // for windows; NULL: there is none
} Entry;

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

/* Ends the program unless a model is evaluated. */
eager_program *eager_check_model(const char *function);

/* Whether this evaluation only finds shapes. */
bool eager_dry(void);

/* The node of an operand, which must be present. */
ht_node *eager_operand(const char *op, ht_tensor x);

/* A shape as text: "(3, 4)"; valid until the fourth next call. */
const char *eager_shape_text(ht_dims dims);

/* End the program where a tensor cannot have so many dimensions, or this shape. */
void eager_check_rank(int rank);
void eager_check_shape(ht_dims dims);

bool eager_same_shape(ht_dims a, ht_dims b);
int64_t eager_elements(ht_dims dims);

bool eager_is_integer(const ht_node *node);

/* ---- the tape ---- */

/* Puts an operator on the tape when it takes part in the gradient; the results then need gradients,
 * too. What the entry points to is copied. */
void eager_record(const Entry *entry);

/* Adds to the gradient of a node; `gradient` may be shared by several nodes and is not changed. */
void eager_add_gradient(ht_node *node, ht_node *gradient);

/* A node of zeros like another. */
ht_node *eager_zeros(const ht_node *like);

/* The gradient of a result, zero where nothing flows back. */
ht_node *eager_gradient_of(ht_node *node);

/* Runs the operators behind `loss` backwards. */
void eager_backward(ht_node *loss);

/* What flows back through an operator of <hetu/ops.h> whose gradient its rule gives. */
void operator_backward(const Entry *entry);

/* Runs a kernel on whole tensors. */
void eager_run_kernel(ht_kernel *kernel, ht_node *const *results, int result_count,
                      ht_node *const *operands, int operand_count, const ht_attr *attr);

/* ---- the same program at every step ---- */

/* What the first evaluation of a model did, in order: a fingerprint each of operators, parameters,
 * inputs and outputs. */
typedef struct Trace {
    int count, room, at; // `at` is the next one
    uint64_t *print;
    int forward; // how many belong to the model; the others to gradients. -1 until they are known,
                 // which is after the first evaluation
    bool whole;  // those of gradients are known, too
    int call, call_count; // for windows: the next call of an operator, and those that are known
    ht_called **calls;
} Trace;

/* Begins an evaluation, and ends its forward and its backward part. */
void eager_trace_begin(Trace *trace);
void eager_trace_forward(Trace *trace);
void eager_trace_backward(Trace *trace);

/* Notes an operator by what it is, its tensors and its numbers. Ends the program when the first
 * evaluation did something else here. */
void eager_trace_operator(const void *op, int result_count, ht_node *const *results,
                          int operand_count, ht_node *const *operands);
void eager_trace_argument(const ht_attr *argument);

/* The same for what has a name; `kind` is "the parameter ". */
void eager_trace_name(const char *kind, const char *name, ht_dtype dtype, ht_dims dims);

/* ---- windows ---- */

/* Tells the windows that an operator has made its results; its name is kept by reference. Of
 * `entry` they read results, operands and arguments. */
void eager_look(const char *name, const Entry *entry);

/* The same of what flows back through an entry whose rule gives the gradient. */
void eager_look_backward(const Entry *entry);

/* The same of the update of a parameter; *note is NULL the first time. */
void eager_look_update(const ht_called **note, const char *name, const eager_param *param);

/* ---- the running program ---- */

typedef struct Run {
    eager_store *store;
    eager_program *program;
    Trace *trace;
    const char *op;          // the last one whose operands were looked at
    const ht_called *looked; // of the operator of the model that is at work, forward or backward;
                             // NULL: not known
    int64_t evaluation;      // counts evaluations of all programs
    int64_t node_count;
    bool dry, training, recording, backward;
    int64_t step;
    uint64_t seed;
    const float *hyper; // of the optimizers
    int64_t next_stream;
    locale_t own; // of main, while the model is evaluated in the C locale, which hetucc evaluates
                  // it in, too
    char scope[512];
    size_t scope_length;
} Run;
extern Run eager_run;

/* ---- what the store and the program do for the model's functions ---- */

eager_param *eager_store_make(eager_store *store, const char *name, ht_dims shape, ht_init init);
ht_node *eager_program_param(eager_program *program, eager_param *param, bool no_decay, bool frozen,
                             bool assigned);

/* Whether parameters stand for their averages. */
bool eager_program_averaged(const eager_program *program);
void eager_program_assign(eager_program *program, ht_node *state, ht_node *value);
ht_node *eager_program_input(eager_program *program, const char *name, ht_dtype dtype,
                             ht_dims dims);
void eager_program_output(eager_program *program, const char *name, ht_node *node);

/* The tape and memory of a program, made with it; eager_tape_begin makes it the current one and
 * forgets the step before. */
typedef struct Tape Tape;
Tape *eager_tape_create(void);
void eager_tape_destroy(Tape *tape);
void eager_tape_begin(Tape *tape);

#endif
