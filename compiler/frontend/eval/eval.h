/* The evaluator: runs C at compile time on the C tree.
 *
 *     ht_tensor mlp(ht_tensor x) {             the body runs; n and i are numbers,
 *         for (int i = 0; i < n; i++)          x is a symbolic tensor
 *             x = ht_relu(x);          ─▶      %2 = relu(%1)
 *         return x;                            %3 = relu(%2)
 *     }
 *
 * Tensors are the only unknown values of a model function; each operator call appends an op to the
 * module. Variables are objects in the evaluator's memory (memory.h). Errors are reported with the
 * chain of calls and unwind to eval_try.
 *
 * The arguments of ht_train and ht_infer are evaluated leniently: values known at run time only are
 * marked unknown. An unknown value is an error only where the evaluation depends on it. */
#pragma once

#include "frontend/eval/call.h"
#include "frontend/eval/memory.h"
#include "frontend/eval/order.h"
#include "frontend/pragma/pragma.h"
#include "support/text.h"

#include <setjmp.h>

typedef struct Frame Frame; // ir/op.h
typedef struct Function Function;
typedef struct Layer Layer;   // strategy/strategy.h
typedef struct Module Module; // ir/module.h
typedef struct Op Op;
typedef struct Parameter Parameter;

typedef struct EvalFrame EvalFrame;
struct EvalFrame {
    const CFunction *function; // NULL: an initializer at file scope
    Object **slots;
    int slot_count;
    EvalFrame *caller;
    Position called_at;
    Position user_at;    // position of the model's call into hetu's headers; file NULL: none
    const Frame *frames; // call stack that ops record
    Val result;
    Object *result_object; // holds a result that is a struct
    bool lenient;          // frame of the caller of ht_train, whose body is not evaluated
};

/* A loop that is running. */
typedef struct EvalLoop EvalLoop;
struct EvalLoop {
    Position at;
    int64_t rounds;
    EvalLoop *outer;
};

typedef struct CLayout CLayout;
typedef struct Names Names; // parameters, inputs and outputs of the module by name

/* The state of the module that is being built. */
typedef struct Build {
    Function *gradient; // gradient that takes the ops evaluated now; NULL: the module takes them
    // Assignments of the model and optimizer rules; appended to the module last.
    Array(Op *) updates;
    const Parameter *updated; // parameter whose optimizer rule is being evaluated; NULL: none
    Names *names;
    struct Memo *memo;  // memoization cache of gradients
    char *scope;        // names of the open scopes, such as "h0.attn"
    int64_t stream;     // next result of ht_stream
    const Layer *layer; // layer of the ops that are created now; NULL: none
    int recompute;      // number of the statement under `recompute` that runs now; 0: none
    int recomputes;     // number of statements under `recompute` that have begun
} Build;

struct Eval {
    Arena *arena; // arena of the C tree and of the module
    Diag *diag;
    CUnit *unit;
    Arena *scratch;
    Heap heap;
    OrderLog order;
    EvalFrame *frame;
    EvalLoop *loop;
    int depth;                  // number of nested calls
    int64_t steps;              // steps evaluated so far; their limit ends endless loops
    Position at;                // position that errors of stores report
    Array(Val) values_of_lists; // values in initializer lists that are being evaluated
    Text formatted;             // last text of format_values
    const CStmt *target;        // label to which a switch or goto is jumping; NULL: no jump
    jmp_buf *escape;            // environment of the innermost eval_try
    bool lenient;               // unknown values are allowed
    Module *module;             // the module that is being built; NULL: operators are errors
    Build build;
    struct Products *products; // products that were rounded (rounding.c); NULL: none yet
};

/* Creates an evaluator. With `module` NULL, a call of an operator is an error. */
Eval *eval_create(CUnit *unit, Module *module);
void eval_destroy(Eval *ev);

/* Calls work(ev, data). Returns false after an error, which is reported already. */
bool eval_try(Eval *ev, void (*work)(Eval *ev, void *data), void *data);

/* Reports an error at `at`, with a note for every call on the stack, and unwinds to eval_try. */
_Noreturn void eval_error(Eval *ev, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the notes to an error that is reported already, and unwinds to eval_try. */
_Noreturn void eval_fail(Eval *ev);

/* Reports the use at `at` of a function without a body, and unwinds. */
_Noreturn void eval_bodiless(Eval *ev, Position at, const CFunction *function);

/* Evaluates a model function and returns the tensor that it returns; NULL after an error. */
Value *eval_model(Eval *ev, const CFunction *function);

/* Runs an optimizer's functions for a parameter: `rule` builds its new value, `after` reads that
 * value. Either function may be NULL. Returns false after an error. */
bool eval_update(Eval *ev, Parameter *param, const CFunction *rule, const CFunction *after);

/* Sets *value to an integer expression at file scope that uses `slots` slots; false on error. */
bool eval_integer(Eval *ev, const CExpr *expr, int slots, int64_t *value);

/* ---- expressions and statements (expr.c, init.c, stmt.c) ---- */

/* The place at which evaluation continues after a statement. */
typedef enum Flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_GOTO } Flow;

/* Return an expression's value, and the place of an lvalue; run an expression's side effects. */
Val eval(Eval *ev, const CExpr *expr);
Place eval_place(Eval *ev, const CExpr *expr);
void eval_effects(Eval *ev, const CExpr *expr);

/* Initializes the object of `type` at a place. `init`: an expression, or a list in braces. */
void eval_init(Eval *ev, Place place, const CType *type, const CExpr *init);

/* Return the object of a variable used at `at`, and of a frame slot; create a missing object. */
Object *eval_variable(Eval *ev, const CVar *var, Position at);
Object *frame_object(Eval *ev, int slot, int64_t size, const char *name);

/* Evaluates a statement. Returns where evaluation continues. */
Flow eval_statement(Eval *ev, const CStmt *stmt);

/* Evaluate a declaration, and pass over one that a jump skips, whose variable becomes unset. */
void eval_declared(Eval *ev, const CVar *var);
void eval_skipped(Eval *ev, const CVar *var);

/* Count one step, and `count` steps. Both functions report an evaluation that takes too many. */
void eval_step(Eval *ev);
void eval_steps(Eval *ev, int64_t count);

/* ---- arithmetic that options leave open (rounding.c, math.c) ---- */

/* Returns the result of a floating-point operation. If options of the C compiler leave the result
 * open, it is unknown in a lenient evaluation, and an error in any other. */
Val rounding_check(Eval *ev, const Binary *operation, Val result);

/* Records that a value is negated: a C compiler may fuse a negated product with a sum (FMA). */
void rounding_negated(Eval *ev, Val value);

/* Returns whether options leave the result of a math.h function open; an error unless lenient. */
bool rounding_call_open(Eval *ev, const Call *call);

/* Returns whether an expression is computed from literals only, so that a C compiler folds it. */
bool math_literal(const CExpr *expr);

/* ---- operators (op.c, update.c, gradient.c, pragma.c) ---- */

/* Evaluates a call of an operator: adds an Op to the module and returns the call's value. */
Val operator_call(Eval *ev, const Call *call);

/* Returns `at` or, inside hetu's headers, the position of the model's call into them. */
Position operator_position(const Eval *ev, Position at);

/* Append an op: _update to the update section, _emit to the module, gradient or rule evaluated. */
void operator_emit(Eval *ev, Op *op);
void operator_update(Eval *ev, Op *op);

/* Appends an op that makes `value` a parameter's or state's new value; returns the op's result. */
Value *update_to(Eval *ev, Value *value, Position at);

/* Stores a value in the member `name` of the struct, of type `type`, at a place. */
void place_set(Eval *ev, const CType *type, Place place, const char *name, Val value);

/* Returns the gradient of an op, evaluated once for all equal calls; NULL: the op has none. */
const Function *gradient_of(Eval *ev, const Op *op);

/* Names an operator's nameless result after the variable or member to which C assigns it. */
void value_name(Value *value, const CExpr *target);

/* Evaluate a pragma that is a statement, and a pragma that marks the next statement. */
void eval_pragma(Eval *ev, const Pragma *pragma);
void eval_mark(Eval *ev, const Pragma *pragma);
