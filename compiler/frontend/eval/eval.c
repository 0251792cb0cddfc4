/* Runs a model function at compile time (eval_model, by call.c and expr.c), which makes IR. Reports
 * errors with the chain of calls. */
#include "frontend/eval/eval.h"

#include <uthash.h>

Eval *eval_create(CUnit *unit, Module *module) {
    Arena *scratch = arena_create();
    Eval *ev = arena_new(scratch, Eval);
    *ev = (Eval){.arena = unit->arena,
                 .diag = unit->diag,
                 .unit = unit,
                 .scratch = scratch,
                 .module = module,
                 .build = {.scope = ""}};
    ev->heap.statics = arena_array(scratch, Object *, unit->vars.count + 1);
    ev->heap.strings = arena_array(scratch, Object *, unit->string_count + 1);
    array_push(scratch, &ev->heap.objects, NULL);
    return ev;
}

void eval_destroy(Eval *ev) { arena_destroy(ev->scratch); }

enum { MOST_NOTES = 8 };

/* Returns whether an error has a note for a frame: its call has a position in a source. */
static bool is_shown(const EvalFrame *frame) {
    return frame->function && frame->caller && frame->called_at.file;
}

static void note_calls(Eval *ev) {
    int depth = 0, shown = 0;
    for (const EvalFrame *frame = ev->frame; frame; frame = frame->caller) depth += is_shown(frame);
    for (const EvalFrame *frame = ev->frame; frame; frame = frame->caller) {
        if (!is_shown(frame)) continue;
        shown++;
        if (shown == MOST_NOTES && depth > MOST_NOTES)
            diag_note(ev->diag, (Position){0}, "%d more calls", depth - MOST_NOTES);
        else if (shown < MOST_NOTES || shown == depth)
            diag_note(ev->diag, frame->called_at, "in the call of %s", frame->function->name);
    }
}

void eval_fail(Eval *ev) {
    note_calls(ev);
    longjmp(*ev->escape, 1);
}

void eval_error(Eval *ev, Position at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = arena_vformat(ev->arena, format, arguments);
    va_end(arguments);
    Position where = ev->frame ? operator_position(ev, at) : at;
    diag_error(ev->diag, where, "%s", text);
    eval_fail(ev);
}

void eval_bodiless(Eval *ev, Position at, const CFunction *function) {
    if (function->alias) {
        diag_error(ev->diag, at, "%s is another name of a function, which cannot be evaluated",
                   function->name);
        diag_note(ev->diag, function->at,
                  "the attribute alias is here; call the function by the name that its body has");
        eval_fail(ev);
    }
    diag_error(ev->diag, at, "%s has no body in what hetucc is given, so it cannot be evaluated",
               function->name);
    diag_note(ev->diag, function->at,
              "it is declared here; give hetucc the file that has its body, too, which must "
              "include <hetu/hetu.h>, or the object or archive that hetucc -c made of it");
    eval_fail(ev);
}

bool eval_try(Eval *ev, void (*work)(Eval *ev, void *data), void *data) {
    jmp_buf escape, *outer = ev->escape;
    EvalFrame *frame = ev->frame;
    EvalLoop *loop = ev->loop;
    int depth = ev->depth, touches = ev->order.touches.count, from = ev->order.from;
    uint64_t since = ev->order.since;
    bool good = false;
    ev->escape = &escape;
    if (!setjmp(escape)) {
        work(ev, data);
        good = true;
    }
    ev->escape = outer;
    ev->frame = frame;
    ev->loop = loop;
    ev->target = NULL;
    ev->depth = depth;
    ev->order.touches.count = touches;
    ev->order.from = from;
    ev->order.since = since;
    return good;
}

typedef struct ModelRun {
    const CFunction *function;
    Value *value;
} ModelRun;

static void run_model(Eval *ev, void *data) {
    ModelRun *run = data;
    Object *slot = NULL;
    EvalFrame frame = {.slots = &slot, .slot_count = 1};
    ev->frame = &frame;
    Val value = call_function(ev, &(Call){.function = run->function, .slot = 0});
    run->value = tensor_load(ev, value.place, run->function->at);
    if (!run->value)
        eval_error(ev, run->function->at, "the model %s gives no tensor", run->function->name);
    ev->frame = NULL;
}

Value *eval_model(Eval *ev, const CFunction *function) {
    ModelRun run = {.function = function};
    return eval_try(ev, run_model, &run) ? run.value : NULL;
}

typedef struct IntegerRun {
    const CExpr *expr;
    int slots;
    int64_t value;
} IntegerRun;

static void run_integer(Eval *ev, void *data) {
    IntegerRun *run = data;
    EvalFrame frame = {.slots = arena_array(ev->scratch, Object *, run->slots + 1),
                       .slot_count = run->slots};
    ev->frame = &frame;
    Val value = eval(ev, run->expr);
    if (value.unknown || !ctype_is_integer(value.type))
        eval_error(ev, run->expr->at, "this is not an integer known at compile time");
    run->value = (int64_t)value.i;
    ev->frame = NULL;
}

bool eval_integer(Eval *ev, const CExpr *expr, int slots, int64_t *value) {
    IntegerRun run = {.expr = expr, .slots = slots};
    if (!eval_try(ev, run_integer, &run)) return false;
    *value = run.value;
    return true;
}
