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
 * marked unknown, and are errors where they decide something.
 */
#ifndef FRONTEND_EVAL_EVAL_H
#define FRONTEND_EVAL_EVAL_H

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
    Position user_at;    // where the model called into hetu's headers; file NULL: it did not
    const Frame *frames; // for ops
    Val result;
    Object *result_object; // for a result that is a struct
    bool lenient;          // a function that runs later, with ht_train inside
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
    Function *gradient; // NULL: operators go to the module
    Array(
        Op *) updates; // assignments of the model and optimizer rules; appended to the module last
    const Parameter *updated; // whose optimizer rule is evaluated; NULL: none
    Names *names;
    struct Memo *memo; // gradients that were evaluated already
    char *scope;       // "h0.attn"
    int64_t stream;
    const Layer *layer; // of the ops that are made now; NULL: none
    int recompute;      // number of the statement under `recompute` that runs now; 0: none
    int recomputes;     // how many of these have begun
} Build;

struct Eval {
    Arena *arena; // of the module
    Diag *diag;
    CUnit *unit;
    Arena *scratch;
    Heap heap;
    OrderLog order;
    EvalFrame *frame;
    EvalLoop *loop;
    int depth;                  // of calls
    int64_t steps;              // so far, to end endless loops
    Position at;                // of the statement that changes memory
    Array(Val) values_of_lists; // of initializers that are being evaluated
    Text formatted;             // by snprintf
    const CStmt *target;        // the label of a running jump of a switch or goto; NULL: none
    jmp_buf *escape;
    bool lenient;
    Module *module; // that is being built
    Build build;
    struct Products *products; // rounded ones (rounding.c); NULL: none
};

/* Creates an evaluator with the initial values of all variables. `module` NULL: no operators. */
Eval *eval_create(CUnit *unit, Module *module);
void eval_destroy(Eval *ev);

/* Calls work(ev, data). Returns false when it failed; the error is reported. */
bool eval_try(Eval *ev, void (*work)(Eval *ev, void *data), void *data);

/* Reports an error at `at`, with a note for every call on the stack, and unwinds to eval_try. */
_Noreturn void eval_error(Eval *ev, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the notes to an error that is reported already, and unwinds to eval_try. */
_Noreturn void eval_fail(Eval *ev);

/* Reports the use at `at` of a function without a body, and unwinds. */
_Noreturn void eval_bodiless(Eval *ev, Position at, const CFunction *function);

/* Runs a model function and returns its value; NULL after an error. */
Value *eval_model(Eval *ev, const CFunction *function);

/* Runs the optimizer's functions for a parameter: `rule`, which makes its new value, and `after`.
 * Either may be NULL. False after an error. */
bool eval_update(Eval *ev, Parameter *param, const CFunction *rule, const CFunction *after);

/* Evaluates an integer expression at file scope; false after an error. */
bool eval_integer(Eval *ev, const CExpr *expr, int slots, int64_t *value);

/* ---- expressions and statements (expr.c, init.c, stmt.c) ---- */

/* Where evaluation continues after a statement. */
typedef enum Flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_GOTO } Flow;

/* Evaluates an expression: to its value, to an lvalue, and for its side effects alone. */
Val eval(Eval *ev, const CExpr *expr);
Place eval_place(Eval *ev, const CExpr *expr);
void eval_effects(Eval *ev, const CExpr *expr);

/* Initializes an lvalue of a type. */
void eval_init(Eval *ev, Place place, const CType *type, const CExpr *init);

/* Returns the object of a variable that is used at `at`, and of a slot of the current frame. */
Object *eval_variable(Eval *ev, const CVar *var, Position at);
Object *frame_object(Eval *ev, int slot, int64_t size, const char *name);

/* Evaluates a statement. */
Flow eval_statement(Eval *ev, const CStmt *stmt);

/* Evaluates a declaration, and skips one behind which a jump goes: the variable has no value. */
void eval_declared(Eval *ev, const CVar *var);
void eval_skipped(Eval *ev, const CVar *var);

/* Count steps, and report an evaluation that takes too many. */
void eval_step(Eval *ev);
void eval_steps(Eval *ev, int64_t count);

/* ---- arithmetic that options leave open (rounding.c, math.c) ---- */

/* Returns the result of a floating-point operation, or an unknown value or an error when options of
 * the C compiler leave the result open. */
Val rounding_check(Eval *ev, const Binary *operation, Val result);

/* Records that a value, which may be a rounded product, is negated. */
void rounding_negated(Eval *ev, Val value);

/* Returns whether options leave the result of a math.h function open; an error unless lenient. */
bool rounding_call_open(Eval *ev, const Call *call);

/* Returns whether an expression has literals only, so that a C compiler folds it. */
bool math_literal(const CExpr *expr);

/* ---- operators (op.c, update.c, gradient.c, pragma.c) ---- */

/* Evaluates a call of an operator. */
Val operator_call(Eval *ev, const Call *call);

/* Returns the position of an op in messages: in the model's own code. */
Position operator_position(const Eval *ev, Position at);

/* Append an op to the module, or to the gradient that is being evaluated; and behind all others. */
void operator_emit(Eval *ev, Op *op);
void operator_update(Eval *ev, Op *op);

/* Makes a value the new value of a parameter or state. */
Value *update_to(Eval *ev, Value *value, Position at);

/* Sets a member of a struct. */
void place_set(Eval *ev, const CType *type, Place place, const char *name, Val value);

/* Returns the gradient of an op, evaluated once for each kind of call; NULL: none. */
const Function *gradient_of(Eval *ev, const Op *op);

/* Names a value after the variable or member that it is assigned to. */
void value_name(Value *value, const CExpr *target);

/* Evaluate a pragma that is a statement, and one that marks the next statement. */
void eval_pragma(Eval *ev, const Pragma *pragma);
void eval_mark(Eval *ev, const Pragma *pragma);

#endif
