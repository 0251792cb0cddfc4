/* model.h: the parts of a model function besides operators: tensors, parameters, states, inputs,
 * outputs, scopes, optimizers, and a user's own operators. Included by hetu.h.
 */
#ifndef HETU_MODEL_H
#define HETU_MODEL_H

#include <hetu/kernel.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(_HSPMD) && defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* ---- tensors ---- */

/* A value of the model. Under hetucc the value is unknown at compile time; on one device it is a
 * node of the step's tape. An all-zero ht_tensor is "absent". */
typedef struct ht_tensor {
    struct ht_node *node;
} ht_tensor;

/* Several tensors, for operators that take any number: ht_list(a, b, c). */
typedef struct ht_tensors {
    int count;
    const ht_tensor *at;
} ht_tensors;

#define HT_NONE ((ht_tensor){0})
#define ht_list(...) ((ht_tensors){(int)(sizeof((ht_tensor[]){__VA_ARGS__}) / sizeof(ht_tensor)), (ht_tensor[]){__VA_ARGS__}})
#define ht_shape(...) ((ht_dims){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define ht_scalar_shape() ((ht_dims){0})

/* Return the extent of dimension d (negative: from the end), the rank, the shape, the dtype, and
 * whether a tensor is present. All are known at compile time. */
int64_t ht_extent(ht_tensor x, int d);
int ht_rank(ht_tensor x);
ht_dims ht_dims_of(ht_tensor x);
ht_dtype ht_dtype_of(ht_tensor x);
bool ht_present(ht_tensor x);

/* ---- parameters, inputs, outputs ---- */

typedef enum ht_init_kind { HT_INIT_ZEROS, HT_INIT_CONSTANT, HT_INIT_NORMAL, HT_INIT_UNIFORM } ht_init_kind;
typedef struct ht_init {
    ht_init_kind kind;
    double a;
} ht_init;

#define ht_zeros() ((ht_init){HT_INIT_ZEROS, 0})
#define ht_ones() ((ht_init){HT_INIT_CONSTANT, 1})
#define ht_constant(value) ((ht_init){HT_INIT_CONSTANT, (value)})
#define ht_normal(deviation) ((ht_init){HT_INIT_NORMAL, (deviation)})   /* mean 0 */
#define ht_uniform(bound) ((ht_init){HT_INIT_UNIFORM, (bound)})         /* [-bound, bound) */

typedef struct ht_param_options {
    const char *name;
    bool no_decay; // weight decay does not apply
    bool frozen;   // the parameter is not trained
} ht_param_options;

/* Declares a trained f32 tensor: ht_param(ht_shape(3, 4), ht_normal(0.02), "w"), with `.no_decay =
 * true` or `.frozen = true` after the name. The full name begins with the scopes: "h0.w". A second
 * call with the same full name returns the same parameter and must agree with the first. */
#define ht_param(shape, init, ...) ht_parameter((shape), (init), (ht_param_options){.name = __VA_ARGS__})
ht_tensor ht_parameter(ht_dims shape, ht_init init, ht_param_options options);

/* Declares an f32 tensor that the session keeps between runs and does not train, such as a cache or
 * a running mean. States are named as parameters are; programs that use one name share the state.
 * ht_get_param and ht_set_param accept the name. A model reads the value from before the run. */
ht_tensor ht_state(ht_dims shape, ht_init init, const char *name);

/* Sets the value that a state has in the next run. A model assigns each state at most once; no
 * gradient flows through `value`. */
void ht_assign(ht_tensor state, ht_tensor value);

/* Declares an input: the caller feeds its elements with ht_feed. */
ht_tensor ht_input(const char *name, ht_dtype dtype, ht_dims shape);

/* Names a value of the model for ht_fetch. The full name begins with the scopes, "h0.y", and must
 * differ from those of all other outputs. */
ht_tensor ht_output(ht_tensor x, const char *name);

typedef struct ht_scope_mark {
    size_t length;
} ht_scope_mark;
ht_scope_mark ht_scope_enter(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ht_scope_leave(ht_scope_mark *mark);
#define HT_JOIN_(a, b) a##b
#define HT_JOIN(a, b) HT_JOIN_(a, b)
/* Opens a scope of names, printf style, until the end of the block: ht_scope("h%d", layer); */
#define ht_scope(...) __attribute__((cleanup(ht_scope_leave), unused)) ht_scope_mark HT_JOIN(ht_scope_at_, __LINE__) = ht_scope_enter(__VA_ARGS__)

/* Returns 0, 1, 2, ...: a new number at each call while a model is evaluated. An operator with
 * random numbers takes one as its stream. */
int64_t ht_stream(void);

/* ---- optimizers ---- */

enum { HT_HYPER = 8, HT_GROUPS = 8 }; // maximum numbers: of hyper-parameters of an optimizer; of optimizers of a program

/* Arguments of an optimizer rule, for one parameter. */
typedef struct ht_update {
    ht_tensor p, g; // the parameter, and its gradient
    ht_tensor norm; // the square of the global gradient norm; absent without clipping
    bool decay;     // whether weight decay applies
    int first;      // hyper-parameter i of the optimizer is ht_hyper(first + i)
} ht_update;

/* How a parameter is updated: by an operator, or by a rule.
 *
 * The operator is one (p, g, states..., ?norm; bool decay, int first) -> (p, states...) over the
 * elements of a parameter; its kernel finds its numbers from call->hyper[first] on. An operator
 * without `first` supports no parameter groups. The rule is a function that builds the new value
 * from operators. The rule declares its states with ht_state, under the parameter's scope:
 * "w.momentum". `after` is an optional second rule, which runs after the update: its `p` is the new
 * value, its `g` is absent, and its result is ignored (ht_averaged).
 *
 * All fields but `hyper` must be known at compile time. hyper[0] is the learning rate; the last
 * number belongs to `after`; each optimizer defines the other numbers. */
typedef struct ht_optimizer {
    void (*update)(void); // the operator; NULL: `rule` updates
    int states;           // number of states that the operator has for each parameter; of the parameter's shape, 0 at the start
    bool clipped;         // the update needs the square of the global gradient norm
    ht_kernel *kernel;    // the operator's kernel, for the one-device library
    float hyper[HT_HYPER];
    ht_tensor (*rule)(const ht_update *u);
    ht_tensor (*after)(const ht_update *u);
    const char *name; // recorded in checkpoints: ht_resume compares the names; NULL: no comparison
    const char *rule_name, *after_name; // names of `rule` and `after`, by which ht_train compares static functions across files; NULL: by address
} ht_optimizer;

/* A parameter group with its own optimizer: the parameters whose full names match a glob pattern
 * (*, ?, [...]). */
typedef struct ht_param_group {
    const char *names;
    ht_optimizer optimizer;
} ht_param_group;
typedef struct ht_group_list {
    int count;
    const ht_param_group *at;
} ht_group_list;
#define ht_groups(...) ((ht_group_list){(int)(sizeof((ht_param_group[]){__VA_ARGS__}) / sizeof(ht_param_group)), (ht_param_group[]){__VA_ARGS__}})

/* ---- a user's own operators ---- */

/* Operands and results of one call, for the function that the clause grad(g) names. The function
 * builds dx[k], the gradient of operand k, from operators; hetucc evaluates it at compile time, and
 * the one-device library runs it. The function leaves dx[k] absent where no gradient flows. x[k] is
 * absent where the operand is; dy[k] is zero where no gradient flows back. A loss that depends on a
 * result whose dy[k] the function does not use is an error.
 *
 *     static inline void my_softmax_gradient(ht_grad *g) { g->dx[0] = my_softmax_backward(g->dy[0],
 *         g->y[0]); }
 */
typedef struct ht_grad {
    const ht_tensor *dy; // gradient of each result
    const ht_tensor *y;  // the results
    const ht_tensor *x;  // the operands, in the rule's order
    const ht_attr *attr; // the arguments that are not tensors
    ht_tensor *dx;       // gradient of each operand, to be set
} ht_grad;

typedef struct ht_result {
    ht_dtype dtype;
    ht_dims shape;
} ht_result;
/* The body of an operator on one device. ht_apply runs `kernel` on whole tensors, writes the
 * results and records `gradient` (NULL: no gradient flows) for backward. Kernel and gradient are
 * those that the operator's pragma names. See examples/custom. */
typedef struct ht_application {
    ht_kernel *kernel;
    void (*gradient)(ht_grad *g);
    int result_count, operand_count, attr_count;
    ht_result result[4];
    const ht_tensor *operand;
    const ht_attr *attr;
} ht_application;
void ht_apply(const ht_application *application, ht_tensor *results);

#endif
