/* The evaluator: runs C at compile time on the C tree. Tensors are the only unknown values of a
 * model function; each operator that it calls is appended to a module.
 *
 * Variables are objects in the evaluator's memory (memory.h); what the model calls is a function of
 * its own, an operator, or one of the C library (call.h). Errors are reported with the chain of
 * calls and unwind to eval_try.
 *
 * The arguments of ht_train and ht_infer are evaluated leniently: what is known at run time only is
 * marked unknown, and is an error where it decides something.
 */
#ifndef FRONTEND_EVAL_EVAL_H
#define FRONTEND_EVAL_EVAL_H

#include "frontend/eval/call.h"
#include "frontend/eval/memory.h"
#include "frontend/eval/order.h"
#include "frontend/pragma/pragma.h"
#include "support/text.h"

#include <setjmp.h>

typedef struct EvalFrame EvalFrame;
struct EvalFrame {
    const CFunction *function; // NULL: an initialiser at file scope
    Object **slots;
    int slot_count;
    EvalFrame *caller;
    Position called_at;
    Position
        user_at; // where the model's own code called into hetu's headers; file NULL when it did not
    const Frame *frames; // for operators
    Val result;
    Object *result_object; // where a struct goes
    bool lenient;          // its variables are those of a function that runs later
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

struct Eval {
    Arena *arena; // of the module
    Diag *diag;
    CUnit *unit;
    Arena *scratch;
    Array(Object *) objects; // by id; 0 is none
    Array(Object *) spare;   // dead ones
    Object **statics;        // by CVar.slot; NULL until first used
    Object **strings;        // by number
    EvalFrame *frame;
    EvalLoop *loop;
    int depth;
    int64_t steps;
    Position at;                // of what changes memory
    Array(Val) values_of_lists; // of initialisers that are being evaluated
    Text formatted;             // what snprintf makes
    Object *characters[3];      // pointers to the tables of ctype.h; NULL until first used
    Touches touches;            // of operands that are being evaluated (order.h)
    Touches compared;
    int touches_from, touches_most;
    uint64_t born, since; // how many objects there were; since which of them touches are noted, 0:
                          // they are not
    const CStmt *target;  // the label that a switch or a goto jumps to; NULL: none
    jmp_buf *escape;
    bool lenient;
    /* the module that is being built */
    Module *module;
    Function *gradient;  // NULL: operators go to the module
    Array(Op *) updates; // of what the model assigns, and of rules of optimizers; behind all others
                         // in the end
    const Parameter *updated; // that a rule of an optimizer is evaluated for; NULL: none is
    Array(Value *) values;    // by tensor number - 1
    Names *names;
    struct Memo *memo;         // gradients
    struct Products *products; // that were rounded (rounding.c); NULL: none
    char *scope;               // "h0.attn"
    int64_t stream;
    const Layer *layer;        // of the operators that are made now; NULL none
    int recompute, recomputes; // the run of a marked statement that is at work, 0 for none; how
                               // many there were
};

/* A new evaluator, with the initial values of all variables; module NULL: nothing can be built. */
Eval *eval_create(CUnit *unit, Module *module);
void eval_destroy(Eval *ev);

/* Calls work(ev, data); false after it failed, the error reported. */
bool eval_try(Eval *ev, void (*work)(Eval *ev, void *data), void *data);

/* Reports an error at `at`, with a note for every call that led there, and gives up. */
_Noreturn void eval_error(Eval *ev, Position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The notes, and giving up, after the error has been reported. */
_Noreturn void eval_fail(Eval *ev);

/* A function without a body is called, or named, at `at`: reports it with the place of its
 * declaration, and leaves. */
_Noreturn void eval_bodiless(Eval *ev, Position at, const CFunction *function);

/* Runs a model function: its value, NULL after an error. */
Value *eval_model(Eval *ev, const CFunction *function);

/* What evaluates the rules of an optimizer for a parameter: `rule`, which makes its new value, and
 * `after`; either may be NULL. False after an error. */
bool eval_update(Eval *ev, Parameter *param, const CFunction *rule, const CFunction *after);

/* An integer expression at file scope; false after an error. */
bool eval_integer(Eval *ev, const CExpr *expr, int slots, int64_t *value);

/* ---- expressions and statements ---- */

typedef enum Flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_GOTO } Flow;

Val eval(Eval *ev, const CExpr *expr);
Place eval_place(Eval *ev, const CExpr *expr);
void eval_init(Eval *ev, Place place, const CType *type, const CExpr *init);
Object *eval_variable(Eval *ev, const CVar *var, Position at);
Object *frame_object(Eval *ev, int slot, int64_t size, const char *name);
Flow eval_statement(Eval *ev, const CStmt *stmt);
void eval_step(Eval *ev);
void eval_steps(Eval *ev, int64_t count);
void eval_declared(Eval *ev, const CVar *var);
/* A jump has gone past the declaration of a variable: it has no value. */
void eval_skipped(Eval *ev, const CVar *var);
/* Evaluates an expression whose value nobody asks for: a variable is not read. */
void eval_effects(Eval *ev, const CExpr *expr);

/* ---- what options leave open (rounding.c) ---- */

/* The value of a floating-point operation: `result`, where options of the C compiler do not leave
 * it open. */
Val rounding_check(Eval *ev, COperation op, Val a, Val b, Val result, Position at);
/* Notes that a value is negated, which may be a product. */
void rounding_negated(Eval *ev, Val value);
/* Whether options leave open what a function of math.h gives: an error where the value is
 * needed. */
bool rounding_call_open(Eval *ev, const Call *call);
/* Whether an expression is made of numbers alone, of which a C compiler knows the value as it
 * reads. */
bool math_literal(const CExpr *expr);

/* ---- operators ---- */

Val operator_call(Eval *ev, const Call *call);
/* Where an operator of this call is said to be: in the model's own code. */
Position operator_position(const Eval *ev, Position at);
/* Gives an operator what is known of the call that makes it. */
void operator_place(Eval *ev, Op *op, Section section);
void operator_emit(Eval *ev, Op *op);
/* Puts an operator behind all others of the module. */
void operator_update(Eval *ev, Op *op);
/* The new value of a parameter or state. */
Value *update_to(Eval *ev, Value *value, Position at);
void place_set(Eval *ev, const CType *type, Place place, const char *name, Val value);
const Function *gradient_of(Eval *ev, const Op *op);
void value_name(Value *value, const CExpr *target);
void eval_pragma(Eval *ev, const Pragma *pragma);
void eval_mark(Eval *ev, const Pragma *pragma);

#endif
