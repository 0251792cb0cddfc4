#include "frontend/eval/eval.h"

#include <string.h>

enum { MOST_STEPS = 200000000 };

static _Noreturn void out_of_steps(Eval *ev)
{
    const EvalLoop *longest = ev->loop;
    for (const EvalLoop *loop = ev->loop; loop; loop = loop->outer)
        if (loop->rounds >= longest->rounds)
            longest = loop;
    if (!longest)
        eval_error(ev, ev->frame->called_at, "this does not end: %d million steps were evaluated", MOST_STEPS / 1000000);
    eval_error(ev, longest->at, "this loop does not end: after %lld rounds and %d million steps the evaluation was stopped",
               (long long)longest->rounds, MOST_STEPS / 1000000);
}

void eval_steps(Eval *ev, int64_t count)
{
    ev->steps += count;
    if (ev->steps > MOST_STEPS)
        out_of_steps(ev);
}

void eval_step(Eval *ev)
{
    if (++ev->steps > MOST_STEPS)
        out_of_steps(ev);
}

/* ---- blocks ---- */

static Flow sequence(Eval *ev, const CStmt *block, int first)
{
    Flow flow = FLOW_NEXT;
    for (int i = first; i < block->body.count && flow == FLOW_NEXT; i++)
        flow = eval_statement(ev, block->body.at[i]);
    return flow;
}

/* A block from statement `first` on; ht_scope ends with it. */
static Flow block_from(Eval *ev, const CStmt *block, int first)
{
    size_t length = strlen(ev->scope);
    Flow flow = sequence(ev, block, first);
    if (block->scoped && strlen(ev->scope) > length)
        ev->scope = arena_substring(ev->scratch, ev->scope, length);
    return flow;
}

/* ---- loops ---- */

static bool condition(Eval *ev, const CExpr *expr) { return val_true(ev, eval(ev, expr), expr->at); }

/* Runs the body once; whether the loop goes on. */
static bool round_of(Eval *ev, EvalLoop *loop, const CStmt *body, Flow *flow)
{
    loop->rounds++;
    eval_step(ev);
    *flow = eval_statement(ev, body);
    if (*flow == FLOW_BREAK || *flow == FLOW_CONTINUE) {
        bool stops = *flow == FLOW_BREAK;
        *flow = FLOW_NEXT;
        return !stops;
    }
    return *flow == FLOW_NEXT;
}

static Flow loop_statement(Eval *ev, const CStmt *stmt)
{
    EvalLoop loop = {.at = stmt->at, .outer = ev->loop};
    Flow flow = FLOW_NEXT;
    ev->loop = &loop;
    if (stmt->init)
        eval_statement(ev, stmt->init);
    if (stmt->kind == CS_DO)
        while (round_of(ev, &loop, stmt->then, &flow) && condition(ev, stmt->expr))
            ;
    else
        while ((!stmt->expr || condition(ev, stmt->expr)) && round_of(ev, &loop, stmt->then, &flow))
            if (stmt->step)
                eval(ev, stmt->step);
    ev->loop = loop.outer;
    return flow;
}

/* ---- switch ---- */

static bool matches(Eval *ev, const CStmt *label, Val value)
{
    Val first = val_convert(ev, eval(ev, label->first), value.type, label->at);
    Val last = label->last == label->first ? first : val_convert(ev, eval(ev, label->last), value.type, label->at);
    if (value.type->is_signed)
        return (int64_t)value.i >= (int64_t)first.i && (int64_t)value.i <= (int64_t)last.i;
    return value.i >= first.i && value.i <= last.i;
}

/* Whether one of the labels in front of a statement is the one that is looked for: a case of `value`, or `default`. */
static bool is_target(Eval *ev, const CStmt *stmt, Val value, bool fallback)
{
    for (; stmt->kind == CS_CASE || stmt->kind == CS_DEFAULT || stmt->kind == CS_LABEL || stmt->kind == CS_MARKED; stmt = stmt->then) {
        if (stmt->kind == CS_DEFAULT && fallback)
            return true;
        if (stmt->kind == CS_CASE && !fallback && matches(ev, stmt, value))
            return true;
    }
    return false;
}

static Flow switch_statement(Eval *ev, const CStmt *stmt)
{
    Val value = eval(ev, stmt->expr);
    if (value.unknown)
        eval_error(ev, stmt->expr->at, "the value of this switch is not known at compile time");
    if (stmt->then->kind != CS_COMPOUND)
        eval_error(ev, stmt->at, "a switch without a block cannot be evaluated");
    for (int fallback = 0; fallback < 2; fallback++)
        for (int i = 0; i < stmt->then->body.count; i++)
            if (is_target(ev, stmt->then->body.at[i], value, fallback)) {
                Flow flow = block_from(ev, stmt->then, i);
                return flow == FLOW_BREAK ? FLOW_NEXT : flow;
            }
    return FLOW_NEXT;
}

/* ---- the rest ---- */

static Flow return_statement(Eval *ev, const CStmt *stmt)
{
    EvalFrame *frame = ev->frame;
    if (!stmt->expr)
        return FLOW_RETURN;
    Val value = val_convert(ev, eval(ev, stmt->expr), frame->function->result, stmt->at);
    if (value.type->kind == CT_STRUCT && frame->result_object) {
        Place place = {frame->result_object, 0};
        if (value.unknown)
            place_mark(ev, place, value.type->size, UNKNOWN);
        else
            place_copy(ev, place, value.place, value.type->size);
        value = (Val){.type = value.type, .place = place};
    }
    frame->result = value;
    return FLOW_RETURN;
}

static Flow marked_statement(Eval *ev, const CStmt *stmt)
{
    const Layer *layer = ev->layer;
    int recompute = ev->recompute;
    for (int i = 0; i < stmt->pragmas.count; i++)
        eval_mark(ev, stmt->pragmas.at[i]);
    Flow flow = eval_statement(ev, stmt->then);
    ev->layer = layer;
    ev->recompute = recompute;
    return flow;
}

static Flow declaration(Eval *ev, const CStmt *stmt)
{
    for (int i = 0; i < stmt->vars.count; i++)
        eval_declared(ev, stmt->vars.at[i]);
    return FLOW_NEXT;
}

Flow eval_statement(Eval *ev, const CStmt *stmt)
{
    eval_step(ev);
    switch (stmt->kind) {
    case CS_EXPR:
        if (stmt->expr)
            eval(ev, stmt->expr);
        return FLOW_NEXT;
    case CS_DECL: return declaration(ev, stmt);
    case CS_COMPOUND: return block_from(ev, stmt, 0);
    case CS_IF:
        if (condition(ev, stmt->expr))
            return eval_statement(ev, stmt->then);
        return stmt->other ? eval_statement(ev, stmt->other) : FLOW_NEXT;
    case CS_FOR:
    case CS_WHILE:
    case CS_DO: return loop_statement(ev, stmt);
    case CS_SWITCH: return switch_statement(ev, stmt);
    case CS_CASE:
    case CS_DEFAULT:
    case CS_LABEL: return eval_statement(ev, stmt->then);
    case CS_BREAK: return FLOW_BREAK;
    case CS_CONTINUE: return FLOW_CONTINUE;
    case CS_RETURN: return return_statement(ev, stmt);
    case CS_PRAGMA: eval_pragma(ev, stmt->pragmas.at[0]); return FLOW_NEXT;
    case CS_MARKED: return marked_statement(ev, stmt);
    case CS_REFUSED: eval_error(ev, stmt->at, "%s cannot be evaluated at compile time", stmt->text);
    }
    BUG("statement %d", stmt->kind);
}
