/* Calls: of functions of the model, and of functions that the evaluator implements.
 *
 *     strlen("up")    eval_call ─▶ builtin_find("strlen") ─▶ a BuiltinFunction with Call.args
 *     block(x, 3)     eval_call ─▶ call_function: a frame, and the body
 */
#ifndef FRONTEND_EVAL_CALL_H
#define FRONTEND_EVAL_CALL_H

#include "frontend/eval/memory.h"
#include "support/text.h"

typedef struct Call {
    const CFunction *function;
    const CExpr *expr; // NULL: called by the evaluator itself
    Position at;
    const Val *args;
    int count;
    int slot; // frame slot of a result that is a struct
} Call;

/* Evaluates a call expression; call_function calls with arguments that are evaluated already. */
Val eval_call(Eval *ev, const CExpr *expr);
Val call_function(Eval *ev, const Call *call);

/* Returns the object for a result that is a struct. */
Object *call_result(Eval *ev, const Call *call);

/* Returns an argument of a call; an error when it is unknown. */
Val call_argument(Eval *ev, const Call *call, int index);

/* Returns whether some argument is unknown. */
bool call_unknown(const Call *call);

/* A function that the evaluator implements. */
typedef Val BuiltinFunction(Eval *ev, const Call *call);
typedef struct Builtin {
    const char *name;
    int args; // number of arguments at least
    BuiltinFunction *function;
} Builtin;

/* Returns the implementation of a function by its name; NULL: none. */
const Builtin *builtin_find(const char *name);

/* The tables of implementations; name NULL at the end. */
extern const Builtin string_builtins[], tensor_builtins[], number_builtins[], stdlib_builtins[];

/* Evaluates a function of math.h; false for any other function. */
bool math_call(Eval *ev, const Call *call, Val *value);

/* Formats the arguments behind argument `format` as printf does, for `room` bytes at `to` (0: no
 * destination), which must not overlap the arguments. The text is valid until the next call. */
const Text *format_values(Eval *ev, const Call *call, int format, uint64_t to, int64_t room);

#endif
