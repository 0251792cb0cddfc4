/* Calls functions at compile time. Evaluates functions with a body, at most MOST_DEPTH calls deep,
 * and libc's functions (string.c, stdlib.c, number_calls.c, math.c); refuses all others. */
#include "frontend/eval/eval.h"
#include "ir/module.h"

#include <string.h>

enum { MOST_DEPTH = 15000 };

Object *call_result(Eval *ev, const Call *call) {
    return frame_object(ev, call->slot, call->function->result->size, call->function->name);
}

/* ---- functions with a body ---- */

static const Frame *operator_frames(Eval *ev, const Call *call) {
    if (call->function->library || !ev->frame->function) return ev->frame->frames;
    Frame *frame = arena_new(ev->arena, Frame);
    *frame = (Frame){.function = call->function->name,
                     .at = operator_position(ev, call->at),
                     .caller = ev->frame->frames};
    return frame;
}

static void bind_arguments(Eval *ev, const Call *call) {
    for (int i = 0; i < call->function->params.count; i++) {
        const CVar *param = call->function->params.at[i];
        Place place = {frame_object(ev, param->slot, param->type->size, param->name), 0};
        place_store(ev, place, val_convert(ev, call->args[i], param->type, call->at));
    }
}

static void release_slots(Eval *ev, EvalFrame *frame) {
    for (int i = 0; i < frame->slot_count; i++)
        if (frame->slots[i]) object_release(ev, frame->slots[i]);
}

enum { FEW_SLOTS = 256 };

static Val run_body(Eval *ev, const Call *call, Object **slots) {
    const CFunction *function = call->function;
    EvalFrame frame = {.function = function,
                       .slots = slots,
                       .slot_count = function->slot_count,
                       .caller = ev->frame,
                       .called_at = call->at};
    EvalLoop *loop = ev->loop;
    frame.frames = operator_frames(ev, call);
    frame.user_at = !function->library        ? (Position){0}
                    : ev->frame->user_at.file ? ev->frame->user_at
                                              : call->at;
    frame.result = (Val){.type = function->result};
    frame.result_object = function->result->kind == CT_STRUCT ? call_result(ev, call) : NULL;
    ev->frame = &frame;
    bind_arguments(ev, call);
    Flow flow = eval_statement(ev, function->body);
    if (flow != FLOW_RETURN && function->result->kind != CT_VOID)
        eval_error(ev, function->at, "%s ends without a return", function->name);
    release_slots(ev, &frame);
    ev->frame = frame.caller;
    ev->loop = loop;
    frame.result.literal = false;
    return frame.result;
}

static Val call_body(Eval *ev, const Call *call) {
    Object *few[FEW_SLOTS] = {0};
    if (ev->depth >= MOST_DEPTH)
        eval_error(ev, call->at, "the recursion of %s is deeper than %d calls",
                   call->function->name, MOST_DEPTH);
    ((CFunction *)call->function)->evaluated = true;
    ev->depth++;
    Val value = run_body(ev, call,
                         call->function->slot_count <= FEW_SLOTS
                             ? few
                             : arena_array(ev->scratch, Object *, call->function->slot_count));
    ev->depth--;
    return value;
}

/* ---- functions without a body ---- */

/* Returns an unknown result, for a call that happens at run time only. */
static Val run_time_result(Eval *ev, const Call *call) {
    if (call->function->result->kind != CT_STRUCT) return val_unknown(call->function->result);
    Place place = {call_result(ev, call), 0};
    place_mark(ev, place, call->function->result->size, UNKNOWN);
    return (Val){.type = call->function->result, .place = place};
}

static const Builtin *builtin_of(const CFunction *function) {
    if (!function->builtin) ((CFunction *)function)->builtin = builtin_find(function->name);
    return function->builtin;
}

Val call_argument(Eval *ev, const Call *call, int index) {
    if (call->args[index].unknown)
        eval_error(ev, call->at, "argument %d of %s is not known at compile time", index + 1,
                   call->function->name);
    return call->args[index];
}

bool call_unknown(const Call *call) {
    for (int i = 0; i < call->count; i++)
        if (call->args[i].unknown) return true;
    return false;
}

/* Reports why a function of the system, or of the C compiler, cannot be called. */
static _Noreturn void refuse_library(Eval *ev, const Call *call) {
    static const char *const output[] = {"printf", "puts",  "putchar", "fopen", "fclose", "fread",
                                         "fwrite", "fputs", "fputc",   "putc",  "fflush", "perror",
                                         "scanf",  "fgets", "getenv",  "read",  "write",  "open"};
    const char *name = call->function->name,
               *note =
                   "a model may call functions that have a body here, operators, snprintf, assert, "
                   "what math.h has for float and double, most of string.h and ctype.h, and of "
                   "stdlib.h abs, atoi, strtol, strtod and their kin, qsort and bsearch";
    for (size_t i = 0; i < sizeof output / sizeof *output; i++)
        if (strstr(name, output[i]))
            note = "input and output are for main: print there, and see with --strategies or "
                   "--emit=ir what the model has; a model may call functions that have a body "
                   "here, operators, math.h, string.h, snprintf and assert";
    if (!strncmp(name, "__builtin_", 10))
        note = "of what is built into the C compiler a model may call what has a name in math.h or "
               "string.h, and __builtin_expect, popcount, parity, clz, ctz, ffs, bswap and those "
               "of overflow; write anything else in C";
    diag_error(ev->diag, operator_position(ev, call->at),
               "%s cannot be called in a model, which is evaluated at compile time", name);
    diag_note(ev->diag, call->function->at, "%s", note);
    eval_fail(ev);
}

static Val call_library(Eval *ev, const Call *call) {
    const Builtin *builtin = builtin_of(call->function);
    Val value;
    if (builtin && call->count >= builtin->args && !(ev->lenient && call_unknown(call)))
        return builtin->function(ev, call);
    if (math_call(ev, call, &value)) return value;
    if (ev->lenient) return run_time_result(ev, call);
    bool built_in = !strncmp(call->function->name, "__builtin_", 10); // declared where it is called
    if (!call->function->system && !call->function->library && !built_in)
        eval_bodiless(ev, operator_position(ev, call->at), call->function);
    refuse_library(ev, call);
}

/* Refuses a weak function: a linker may replace it, and the model would change. */
static void check_strong(Eval *ev, const Call *call) {
    const CFunction *function = call->function;
    if (!function->weak || ev->lenient || function->library || function->system) return;
    diag_error(
        ev->diag, call->at,
        "%s is weak, so that the linker may take another body than the one that is known here",
        function->name);
    diag_note(ev->diag, function->weak_at,
              "leave out `weak` here, and give hetucc the one body that the model shall have");
    eval_fail(ev);
}

/* Refuses an external function with a library function's name: gcc may compute its calls itself. */
static void check_name(Eval *ev, const Call *call) {
    const CFunction *function = call->function;
    Val value;
    if (function->is_static || function->library || function->system || ev->lenient) return;
    if (!builtin_of(function) && !math_call(ev, call, &value)) return;
    diag_error(ev->diag, call->at,
               "%s is a function of C's library to the C compiler, which may not call this body; "
               "give it another name",
               function->name);
    diag_note(ev->diag, function->at, "it is defined here");
    eval_fail(ev);
}

Val call_function(Eval *ev, const Call *call) {
    eval_step(ev);
    ev->at = call->at;
    if (call->function->op) return operator_call(ev, call);
    check_strong(ev, call);
    if (!call->function->body) return call_library(ev, call);
    if (call->count < call->function->params.count)
        eval_error(ev, call->at, "%s is called with too few arguments", call->function->name);
    if (!call->function->evaluated) check_name(ev, call);
    return call_body(ev, call);
}

/* ---- call expressions ---- */

static const CFunction *callee(Eval *ev, const CExpr *expr) {
    const CExpr *a = expr->a;
    while (a->kind == C_CAST && (a->a->type->kind == CT_FUNCTION || a->a->kind == C_FUNCTION))
        a = a->a;
    if (a->kind == C_FUNCTION) return a->function;
    Val pointer = eval(ev, a);
    const CFunction *function = pointer.unknown ? NULL : pointer_function(ev, pointer.i);
    if (!function)
        eval_error(ev, expr->at, "the function that is called here is not known at compile time");
    return function;
}

/* Returns whether one of several operands of a call assigns or increments. C leaves the order of
 * operands open, and gcc reads variables after all assignments. */
static bool args_conflict(const CExpr *expr) {
    if (order_effects(expr->a) == EFFECTS_DIRECT) return true;
    for (int i = 0; i < expr->args.count; i++)
        if (order_effects(expr->args.at[i]) == EFFECTS_DIRECT)
            return expr->args.count > 1 || expr->a->kind != C_FUNCTION;
    return false;
}

/* Evaluates a call. Arguments are evaluated from the last to the first, as gcc does on x86-64, so
 * that calls of ht_stream among the arguments return the same numbers as in the C program. */
Val eval_call(Eval *ev, const CExpr *expr) {
    enum { MOST_ARGUMENTS = 64 };
    Val args[MOST_ARGUMENTS];
    bool ordered = args_conflict(expr);
    Order order = ordered ? order_begin(ev) : (Order){0};
    Call call = {.function = callee(ev, expr),
                 .expr = expr,
                 .at = expr->at,
                 .args = args,
                 .count = expr->args.count,
                 .slot = expr->slot};
    if (call.count > MOST_ARGUMENTS)
        eval_error(ev, expr->at, "a call with more than %d arguments", MOST_ARGUMENTS);
    for (int i = call.count; i-- > 0;) {
        if (ordered) order_next(ev, &order, expr->at, false);
        args[i] = eval(ev, expr->args.at[i]);
    }
    if (ordered) order_end(ev, &order, expr->at, false);
    return call_function(ev, &call);
}
