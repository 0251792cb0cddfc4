/* Calls of functions of the model, and of functions that the evaluator implements.
 *
 *     strlen("up")    eval_call ─▶ builtin_find("strlen") ─▶ a BuiltinFunction with Call.args
 *     block(x, 3)     eval_call ─▶ call_function: a frame, and the body
 */
#pragma once

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

/* Evaluate a call expression, and a call whose arguments are evaluated already. */
Val eval_call(Eval *ev, const CExpr *expr);
Val call_function(Eval *ev, const Call *call);

/* Returns the object, in the caller's frame, of a result that is a struct. */
Object *call_result(Eval *ev, const Call *call);

/* Returns an argument of a call; an error when it is unknown. */
Val call_argument(Eval *ev, const Call *call, int index);

/* Returns whether some argument is unknown. */
bool call_unknown(const Call *call);

/* A function that the evaluator implements. */
typedef Val BuiltinFunction(Eval *ev, const Call *call);
typedef struct Builtin {
    const char *name;
    int args; // minimum number of arguments
    BuiltinFunction *function;
} Builtin;

/* Returns the implementation of the function `name`; NULL when the evaluator has none. */
const Builtin *builtin_find(const char *name);

/* The tables of implementations. The last entry of each has the name NULL. */
extern const Builtin tensor_builtins[], number_builtins[], stdlib_builtins[];

/* Sets *value to the result of a math.h function; false: another function, or unknown arguments. */
bool math_call(Eval *ev, const Call *call, Val *value);

/* Returns the text that printf makes of argument `format` and those after it; the next call
 * overwrites it. Refuses arguments that overlap the `room` bytes at `to`; `to` 0: no such bytes. */
const Text *format_values(Eval *ev, const Call *call, int format, uint64_t to, int64_t room);
