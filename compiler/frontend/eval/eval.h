/* The evaluator: runs C at compile time on the C tree. Tensors are the only unknown values of a model function; each operator that it calls is appended to a module.
 *
 * Memory is bytes, as on the machine, in objects: a variable, a literal, what a call returns. A pointer is the number of an object with its generation and an offset, so that
 * every access is checked. A tensor's eight bytes hold the number of its Value. Errors are reported with the chain of calls and unwind to eval_try.
 *
 * The arguments of ht_train and ht_infer are evaluated leniently: what is known at run time only is marked unknown, and is an error where it decides something.
 */
#ifndef FRONTEND_EVAL_EVAL_H
#define FRONTEND_EVAL_EVAL_H

#include "frontend/ctree.h"
#include "frontend/pragma/pragma.h"
#include "ir/ir.h"
#include "support/text.h"

#include <setjmp.h>

/* What is known of a byte: its value, nothing before run time, or that nothing was stored there yet. */
typedef enum Knowledge { KNOWN, UNKNOWN, UNSET } Knowledge;

/* What a model does with the value that a variable of static storage has before. */
typedef struct Track {
    uint8_t *before;  // its bytes
    uint8_t *touched; // by byte
    Position read_at, written_at;
} Track;

typedef struct Object {
    uint8_t *bytes;
    uint8_t *unknown; // a Knowledge for each byte; NULL: all known
    int64_t size, capacity;
    uint32_t id, generation;
    bool live, has_unknown;
    const char *name; // for messages
    Track *track;     // NULL: nobody asks
} Object;

typedef struct Place {
    Object *object;
    int64_t offset;
} Place;

/* A value. Numbers are kept in 64 bits, normalised to their type; pointers as memory.c packs them; structs where they stand in memory. */
typedef struct Val {
    const CType *type;
    bool unknown;
    union {
        uint64_t i;
        double f;
        Place place;
    };
} Val;

typedef struct EvalFrame EvalFrame;
struct EvalFrame {
    const CFunction *function; // NULL: an initialiser at file scope
    Object **slots;
    int slot_count;
    EvalFrame *caller;
    Position called_at;
    Position user_at;    // where the model's own code called into hetu's headers; file NULL when it did not
    const Frame *frames; // for operators
    Val result;
    Object *result_object; // where a struct goes
    bool lenient;        // its variables are those of a function that runs later
};

/* A loop that is running. */
typedef struct EvalLoop EvalLoop;
struct EvalLoop {
    Position at;
    int64_t rounds;
    EvalLoop *outer;
};

typedef struct Names Names; // parameters, inputs and outputs of the module by name

typedef struct Eval {
    Arena *arena;   // of the module
    Diag *diag;
    CUnit *unit;
    Arena *scratch;
    Array(Object *) objects;      // by id; 0 is none
    Array(Object *) spare;        // dead ones
    Object **statics;             // by CVar.slot; NULL until first used
    Object **strings;             // by number
    EvalFrame *frame;
    EvalLoop *loop;
    int depth;
    int64_t steps;
    Position at;                  // of what changes memory
    jmp_buf *escape;
    bool lenient;
    /* the module that is being built */
    Module *module;
    Function *gradient;           // NULL: operators go to the module
    Array(Value *) values;        // by tensor number - 1
    Names *names;
    struct Memo *memo;            // gradients
    char *scope;                  // "h0.attn"
    int64_t stream;
    const char *tower;
    int layer;
} Eval;

/* A new evaluator, with the initial values of all variables; module NULL: nothing can be built. */
Eval *eval_create(CUnit *unit, Module *module);
void eval_destroy(Eval *ev);

/* Calls work(ev, data); false after it failed, the error reported. */
bool eval_try(Eval *ev, void (*work)(Eval *ev, void *data), void *data);

/* Reports an error at `at`, with a note for every call that led there, and gives up. */
_Noreturn void eval_error(Eval *ev, Position at, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The notes, and giving up, after the error has been reported. */
_Noreturn void eval_fail(Eval *ev);

/* A function without a body is called, or named, at `at`: reports it with the place of its declaration, and leaves. */
_Noreturn void eval_bodiless(Eval *ev, Position at, const CFunction *function);

/* Runs a model function: its value, NULL after an error. */
Value *eval_model(Eval *ev, const CFunction *function);

/* An integer expression at file scope; false after an error. */
bool eval_integer(Eval *ev, const CExpr *expr, int slots, int64_t *value);

/* ---- memory ---- */

enum { POINTER_FUNCTION = 0xFFFFFF };

Object *object_create(Eval *ev, int64_t size, const char *name);
void object_release(Eval *ev, Object *object);
/* From here on what is read of the object, and what is stored there, is noted. */
void object_track(Eval *ev, Object *object);
/* Whether bytes whose value from before was read have another one now. */
bool object_changed(const Object *object);
/* Whether the value from before of a byte was read. */
bool track_read(const Track *track, int64_t offset);
/* Says that bytes are read, or stored, at `at`; the functions below say so themselves. */
void memory_read(Eval *ev, Place place, int64_t size, Position at);
void memory_written(Eval *ev, Place place, int64_t size, Position at);
uint64_t pointer_to(Place place);
uint64_t pointer_to_function(const CFunction *function);
const CFunction *pointer_function(Eval *ev, uint64_t pointer); // NULL: it points to none
uint64_t pointer_moved(Eval *ev, uint64_t pointer, int64_t bytes, Position at);
/* The place of `size` bytes; an error when they do not lie in a living object. */
Place pointer_place(Eval *ev, uint64_t pointer, int64_t size, Position at);
Val place_load(Eval *ev, Place place, const CType *type, Position at);
void place_store(Eval *ev, Place place, Val value);
void place_copy(Eval *ev, Place to, Place from, int64_t size);
void place_clear(Eval *ev, Place place, int64_t size);
void place_mark(Eval *ev, Place place, int64_t size, Knowledge knowledge);
/* The least that is known of a byte of the place. */
Knowledge place_known(Place place, int64_t size);
/* A string that ends inside its object. */
const char *pointer_string(Eval *ev, uint64_t pointer, Position at);

Value *tensor_load(Eval *ev, Place place, Position at); // NULL: absent
void tensor_store(Eval *ev, Place place, Value *value);

/* ---- numbers ---- */

Val val_int(const CType *type, int64_t value);
Val val_float(const CType *type, double value);
Val val_unknown(const CType *type);
Val val_convert(Eval *ev, Val value, const CType *type, Position at);
Val val_binary(Eval *ev, COperation op, const CType *type, Val a, Val b, Position at);
bool val_true(Eval *ev, Val value, Position at); // an error when it is unknown

/* ---- expressions and statements ---- */

typedef enum Flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN } Flow;

Val eval(Eval *ev, const CExpr *expr);
Place eval_place(Eval *ev, const CExpr *expr);
void eval_init(Eval *ev, Place place, const CType *type, const CExpr *init);
Object *eval_variable(Eval *ev, const CVar *var, Position at);
Object *frame_object(Eval *ev, int slot, int64_t size, const char *name);
Flow eval_statement(Eval *ev, const CStmt *stmt);
void eval_step(Eval *ev);
void eval_steps(Eval *ev, int64_t count);
void eval_declared(Eval *ev, const CVar *var);

/* ---- calls ---- */

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

typedef Val BuiltinFunction(Eval *ev, const Call *call);
typedef struct Builtin {
    const char *name;
    int args; // how many at least
    BuiltinFunction *function;
} Builtin;
const Builtin *builtin_find(const char *name);
extern const Builtin string_builtins[], tensor_builtins[]; // name NULL at the end
Val math_call(Eval *ev, const Call *call, bool *found);

/* printf's formatting of args[first...] under the format at args[first - 1]. */
const char *format_values(Eval *ev, const Call *call, int format);

/* ---- operators ---- */

Val operator_call(Eval *ev, const Call *call);
/* Where an operator of this call is said to be: in the model's own code. */
Position operator_position(const Eval *ev, Position at);
void operator_emit(Eval *ev, Op *op);
const Function *gradient_of(Eval *ev, const Op *op);
void value_name(Value *value, const CExpr *target);
void eval_pragma(Eval *ev, const Pragma *pragma);
void eval_mark(Eval *ev, const Pragma *pragma);

#endif
