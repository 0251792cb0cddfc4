/* Internals of the one-device library: nodes, the tape for backward, and the memory of a step. */
#pragma once

#include "eager/eager.h"

#include <hetu/ops.h>
#include <hetu/rt.h>

#include <locale.h>

enum { EAGER_RESULTS = 4, EAGER_ATTRS = 8 };

/* A value of one step. */
typedef struct ht_node {
    ht_dtype dtype;
    ht_dims dims;
    int64_t count;
    void *data; // NULL in a dry evaluation, and while `zero` is true
    bool zero;  // all elements are zero and `data` is not allocated; eager_data allocates it
    bool needs_gradient;
    struct ht_node *gradient; // NULL: none yet
    bool owns_gradient; // `gradient` is this node's own sum, which further gradients may change
    bool used;          // an operator or gradient function read the node (check_ignored)
    eager_param *param; // the parameter; NULL: the node is not a parameter
    int64_t evaluation; // number of the evaluation that created the node
    int64_t number;     // number of the node, counted from 1 in its evaluation
} ht_node;

/* An operator call on the tape, as backward needs it. */
typedef struct Entry {
    const struct Operator *op; // operator of <hetu/ops.h>; NULL: a user's kernel, run by ht_apply
    void (*gradient)(ht_grad *g); // NULL: by the operator's rule
    int result_count, operand_count, attr_count;
    ht_node **result, **operand;
    const ht_attr *attr;
    int size_count;
    const int64_t *size;   // extents by factor of the rule
    const ht_called *note; // the call's name and place, for trace and profile; NULL: none
} Entry;

/* ---- memory of a step ---- */

void *eager_alloc(size_t bytes); // aligned, not cleared; valid until the next step of the tape

/* ---- nodes ---- */

ht_node *eager_node(ht_dtype dtype, ht_dims dims);

/* Returns a copy of `node`, numbered as a node of this evaluation. */
ht_node *eager_node_like(ht_node node);
ht_tensor eager_tensor(ht_node *node);

/* Return a node's elements. If the node has no memory (zeros), first allocate and clear it. */
void *eager_data(ht_node *node);
float *eager_f32(ht_node *node);

/* Returns the program whose model is being evaluated; ends the program if there is none. */
eager_program *eager_check_model(const char *function);

/* Returns whether this evaluation computes shapes alone. */
bool eager_dry(void);

/* Returns an operand's node. Ends the program if it is absent or of another evaluation. */
ht_node *eager_operand(const char *op, ht_tensor x);

/* Returns a shape as text, "(3, 4)"; the text is overwritten four calls later. */
const char *eager_shape_text(ht_dims dims);

/* End the program if a tensor cannot have this rank, or this shape. */
void eager_check_rank(int rank);
void eager_check_shape(ht_dims dims);

bool eager_same_shape(ht_dims a, ht_dims b);
int64_t eager_elements(ht_dims dims);

bool eager_is_integer(const ht_node *node);

/* ---- the tape ---- */

/* Copies an entry to the tape if an operand needs a gradient; the results then need one, too. */
void eager_record(const Entry *entry);

/* Adds `gradient` to a node's gradient. Does not change `gradient`, which nodes may share. */
void eager_add_gradient(ht_node *node, ht_node *gradient);

/* Returns a zero node with the type and shape of `like`. */
ht_node *eager_zeros(const ht_node *like);

/* Returns the gradient of a node; a zero node if backward has not reached the node. */
ht_node *eager_gradient_of(ht_node *node);

/* Runs the tape in reverse from `loss`, whose gradient is 1. */
void eager_backward(ht_node *loss);

/* Adds the gradients of an operator's operands by its rule. Without a rule, ends the program. */
void operator_backward(const Entry *entry);

typedef struct NodeList {
    ht_node *const *at;
    int count;
} NodeList;
/* Calls a kernel once on whole tensors, in the user's own locale (base/c_locale.h). */
void eager_run_kernel(ht_kernel *kernel, NodeList results, NodeList operands, const ht_attr *attr);

/* ---- the same program at every step ---- */

/* Hashes of the first evaluation's operators, arguments, parameters, inputs, outputs, in order. */
typedef struct Trace {
    int count, room, at; // `at`: index of the next hash to compare
    uint64_t *print;
    int forward;          // number of the forward part's hashes; -1: first evaluation has not ended
    bool whole;           // the hashes of the backward part are complete
    int call, call_count; // for trace and profile: index of the next call; length of `calls`
    ht_called **calls;
} Trace;

/* Begin an evaluation, end its forward part, and end its backward part. End the program if a part
 * has fewer hashes than in the first evaluation. */
void eager_trace_begin(Trace *trace);
void eager_trace_forward(Trace *trace);
void eager_trace_backward(Trace *trace);

/* Hash an operator's identity and tensors, or one argument. End the program if the first evaluation
 * had another hash at this point. */
void eager_trace_operator(const void *op, int result_count, ht_node *const *results,
                          int operand_count, ht_node *const *operands);
void eager_trace_argument(const ht_attr *argument);

/* Does the same as eager_trace_operator for a named value. `kind` is such as "the parameter ". */
void eager_trace_name(const char *kind, const char *name, ht_dtype dtype, ht_dims dims);

/* ---- trace and profile ---- */

/* Reports a finished call to the hooks (session/observe/hooks.h): trace, profile and NaN check. */
void eager_look(const char *name, const Entry *entry);

/* Reports the backward pass of an entry, if the gradient comes from the operator's rule. */
void eager_look_backward(const Entry *entry);

/* Reports the optimizer update of a parameter; creates *note if it is NULL. */
void eager_look_update(const ht_called **note, const char *name, const eager_param *param);

/* ---- the running program ---- */

typedef struct Run {
    eager_store *store;
    eager_program *program;
    Trace *trace;
    const char *op;          // name of the last operator called, for messages
    const ht_called *looked; // model operator that runs, forward or backward; NULL: not known
    int64_t evaluation;      // number of this evaluation, counted over all programs
    int64_t node_count;
    bool dry, training, recording, backward;
    int64_t step;
    uint64_t seed;
    const float *hyper; // hyperparameters by optimizer
    int64_t next_stream;
    locale_t own; // main's locale; the model is evaluated in the C locale, as in hetucc
    char scope[512];
    size_t scope_length;
} Run;
extern Run eager_run;

/* ---- what the store and the program do for the model's functions ---- */

eager_param *eager_store_make(eager_store *store, const char *name, ht_dims shape, ht_init init);
ht_node *eager_program_param(eager_program *program, eager_param *param, bool no_decay, bool frozen,
                             bool assigned);

/* Returns whether ht_param returns the average of a parameter (its state NAME.average). */
bool eager_program_averaged(const eager_program *program);
void eager_program_assign(eager_program *program, ht_node *state, ht_node *value);
ht_node *eager_program_input(eager_program *program, const char *name, ht_dtype dtype,
                             ht_dims dims);
void eager_program_output(eager_program *program, const char *name, ht_node *node);

/* The tape and step memory of a program. eager_tape_begin makes a tape the current one and discards
 * the entries and memory of its last step. */
typedef struct Tape Tape;
Tape *eager_tape_create(void);
void eager_tape_begin(Tape *tape);
