/* Calls: of the model's own functions, and of those that the evaluator knows by name. */
#ifndef FRONTEND_EVAL_CALL_H
#define FRONTEND_EVAL_CALL_H

#include "frontend/eval/memory.h"
#include "support/text.h"

typedef struct Call {
    const CFunction *function;
    const CExpr *expr; // NULL: made by the evaluator itself
    Position at;
    const Val *args;
    int count;
    int slot; // for a struct that it returns
} Call;

Val eval_call(Eval *ev, const CExpr *expr);
Val call_function(Eval *ev, const Call *call);
/* The object for the struct that a call gives. */
Object *call_result(Eval *ev, const Call *call);

/* An argument of a call; an error when it is not known. */
Val call_argument(Eval *ev, const Call *call, int index);
/* Whether some argument is not known. */
bool call_unknown(const Call *call);

typedef Val BuiltinFunction(Eval *ev, const Call *call);
typedef struct Builtin {
    const char *name;
    int args; // how many at least
    BuiltinFunction *function;
} Builtin;
const Builtin *builtin_find(const char *name);
extern const Builtin string_builtins[], tensor_builtins[], number_builtins[],
    stdlib_builtins[];                                  // name NULL at the end
bool math_call(Eval *ev, const Call *call, Val *value); // false where math.h has no such function

/* printf's formatting of the arguments behind the format, for `room` bytes at `to` (0: nowhere),
 * which must be none that are read. The text is gone with the next one. */
const Text *format_values(Eval *ev, const Call *call, int format, uint64_t to, int64_t room);

#endif
