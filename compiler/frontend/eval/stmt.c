/* Evaluates statements: unrolls a model's loops, takes one branch of `if`, MOST_STEPS in all. */
#include "frontend/eval/eval.h"

#include <string.h>

enum { MOST_STEPS = 200000000 };

static _Noreturn void out_of_steps(Eval *ev) {
    const EvalLoop *longest = ev->loop;
    for (const EvalLoop *loop = ev->loop; loop; loop = loop->outer)
        if (loop->rounds >= longest->rounds) longest = loop;
    if (!longest)
        eval_error(ev, ev->frame->called_at, "this does not end: %d million steps were evaluated",
                   MOST_STEPS / 1000000);
    eval_error(ev, longest->at,
               "this loop is too long to be evaluated at compile time, or does not end: after %lld "
               "rounds and %d million steps the evaluation was stopped; a model's tables are best "
               "made by operators (ht_arange, ...) or given as inputs",
               (long long)longest->rounds, MOST_STEPS / 1000000);
}

void eval_steps(Eval *ev, int64_t count) {
    ev->steps += count;
    if (ev->steps > MOST_STEPS) out_of_steps(ev);
}

void eval_step(Eval *ev) {
    if (++ev->steps > MOST_STEPS) out_of_steps(ev);
}

/* ---- blocks ---- */

/* Returns whether a statement is, or contains, the label that a switch or a goto jumps to. */
static bool has_target(const CStmt *stmt, const CStmt *target) {
    if (!stmt || stmt == target) return stmt;
    if (has_target(stmt->then, target) || has_target(stmt->other, target)) return true;
    for (int i = 0; i < stmt->body.count; i++)
        if (has_target(stmt->body.at[i], target)) return true;
    return false;
}

/* Skips a statement in front of a jump's label; the variables that it declares become unset. */
static void skip(Eval *ev, const CStmt *stmt) {
    for (int i = 0; i < stmt->vars.count; i++) eval_skipped(ev, stmt->vars.at[i]);
}

/* Evaluates the statements of a block. A goto to a label in the block continues at the statement
 * with the label; on the way forward it skips declarations. */
static Flow sequence(Eval *ev, const CStmt *block) {
    Flow flow = FLOW_NEXT;
    for (int i = 0, next; i < block->body.count && flow == FLOW_NEXT; i = next) {
        next = i + 1;
        if (ev->target && !has_target(block->body.at[i], ev->target)) skip(ev, block->body.at[i]);
        else flow = eval_statement(ev, block->body.at[i]);
        if (flow != FLOW_GOTO || !has_target(block, ev->target)) continue;
        if (block->scoped)
            eval_error(ev, block->at,
                       "a goto inside a block with an ht_scope cannot be evaluated at compile "
                       "time; put what it repeats into a loop");
        flow = FLOW_NEXT;
        for (int k = 0; k <= i; k++)
            if (has_target(block->body.at[k], ev->target)) next = k;
    }
    return flow;
}

/* Evaluates a block. Its variables and its ht_scope end with it. */
static Flow block_statement(Eval *ev, const CStmt *block) {
    size_t length = strlen(ev->build.scope);
    Flow flow = sequence(ev, block);
    for (int slot = block->first_slot; slot < block->last_slot && slot < ev->frame->slot_count;
         slot++)
        if (ev->frame->slots[slot]) object_end(ev->frame->slots[slot]);
    if (block->scoped && strlen(ev->build.scope) > length)
        ev->build.scope = arena_substring(ev->scratch, ev->build.scope, length);
    return flow;
}

/* ---- loops ---- */

static bool condition(Eval *ev, const CExpr *expr) {
    return val_true(ev, eval(ev, expr), expr->at);
}

/* Runs the body once; sets *flow, FLOW_NEXT if break or continue ended it. False: the loop ends. */
static bool round_of(Eval *ev, EvalLoop *loop, const CStmt *body, Flow *flow) {
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

/* Evaluates a loop. A jump to a label in its body skips `init` and the first test. */
static Flow loop_statement(Eval *ev, const CStmt *stmt) {
    EvalLoop loop = {.at = stmt->at, .outer = ev->loop};
    Flow flow = FLOW_NEXT;
    bool inside = ev->target;
    ev->loop = &loop;
    if (stmt->init && inside) skip(ev, stmt->init);
    else if (stmt->init) eval_statement(ev, stmt->init);
    for (; inside || stmt->kind == CS_DO || !stmt->expr || condition(ev, stmt->expr);
         inside = false) {
        if (!round_of(ev, &loop, stmt->then, &flow) ||
            (stmt->kind == CS_DO && !condition(ev, stmt->expr)))
            break;
        if (stmt->step) eval_effects(ev, stmt->step);
    }
    ev->loop = loop.outer;
    for (int i = 0; stmt->init && i < stmt->init->vars.count; i++)
        if (stmt->init->vars.at[i]->local && ev->frame->slots[stmt->init->vars.at[i]->slot])
            object_end(ev->frame->slots[stmt->init->vars.at[i]->slot]);
    return flow;
}

/* ---- switch ---- */

static bool matches(Eval *ev, const CStmt *label, Val value) {
    Val first = val_convert(ev, eval(ev, label->first), value.type, label->at);
    Val last = label->last == label->first
                   ? first
                   : val_convert(ev, eval(ev, label->last), value.type, label->at);
    if (value.type->is_signed)
        return (int64_t)value.i >= (int64_t)first.i && (int64_t)value.i <= (int64_t)last.i;
    return value.i >= first.i && value.i <= last.i;
}

/* Returns the case label of a switch for a value or, with `fallback`, its default label; NULL when
 * there is none. The labels of inner switches do not count. */
static const CStmt *find_label(Eval *ev, const CStmt *stmt, Val value, bool fallback) {
    if (!stmt || stmt->kind == CS_SWITCH || stmt->kind == CS_REFUSED) return NULL;
    if ((stmt->kind == CS_DEFAULT && fallback) ||
        (stmt->kind == CS_CASE && !fallback && matches(ev, stmt, value)))
        return stmt;
    const CStmt *found = find_label(ev, stmt->then, value, fallback);
    if (!found) found = find_label(ev, stmt->other, value, fallback);
    for (int i = 0; i < stmt->body.count && !found; i++)
        found = find_label(ev, stmt->body.at[i], value, fallback);
    return found;
}

static Flow switch_statement(Eval *ev, const CStmt *stmt) {
    Val value = ev->target ? (Val){0} : eval(ev, stmt->expr); // a goto may jump inside
    if (value.unknown)
        eval_error(ev, stmt->expr->at, "the value of this switch is not known at compile time");
    if (!ev->target) {
        const CStmt *label = find_label(ev, stmt->then, value, false);
        ev->target = label ? label : find_label(ev, stmt->then, value, true);
        if (!ev->target) return FLOW_NEXT;
    }
    Flow flow = eval_statement(ev, stmt->then);
    return flow == FLOW_BREAK ? FLOW_NEXT : flow;
}

/* ---- goto ---- */

static const CStmt *find_named(const CStmt *stmt, const void *label) {
    if (!stmt || (stmt->kind == CS_LABEL && stmt->label == label)) return stmt;
    const CStmt *found = find_named(stmt->then, label);
    if (!found) found = find_named(stmt->other, label);
    for (int i = 0; i < stmt->body.count && !found; i++)
        found = find_named(stmt->body.at[i], label);
    return found;
}

/* Begins a goto: FLOW_GOTO ends statements up to the block that has the label. */
static Flow jump(Eval *ev, const CStmt *stmt) {
    ev->target = find_named(ev->frame->function->body, stmt->label);
    if (!ev->target)
        eval_error(ev, stmt->at,
                   "a goto to a label in a statement expression cannot be evaluated at compile "
                   "time; write a loop");
    return FLOW_GOTO;
}

/* ---- other statements ---- */

static Flow return_statement(Eval *ev, const CStmt *stmt) {
    EvalFrame *frame = ev->frame;
    if (!stmt->expr && frame->function->result->kind != CT_VOID)
        eval_error(ev, stmt->at, "%s returns no value here, and is declared to return %s",
                   frame->function->name, frame->function->result->name);
    if (!stmt->expr) return FLOW_RETURN;
    Val value = val_convert(ev, eval(ev, stmt->expr), frame->function->result, stmt->at);
    if (value.type->kind == CT_STRUCT && frame->result_object) {
        Place place = {frame->result_object, 0};
        if (value.unknown) place_mark(ev, place, value.type->size, UNKNOWN);
        else place_assign(ev, place, value.place, value.type);
        value = (Val){.type = value.type, .place = place};
    }
    frame->result = value;
    return FLOW_RETURN;
}

static Flow marked_statement(Eval *ev, const CStmt *stmt) {
    const Layer *layer = ev->build.layer;
    int recompute = ev->build.recompute;
    for (int i = 0; i < stmt->pragmas.count; i++) eval_mark(ev, stmt->pragmas.at[i]);
    Flow flow = eval_statement(ev, stmt->then);
    ev->build.layer = layer;
    ev->build.recompute = recompute;
    return flow;
}

static Flow declaration(Eval *ev, const CStmt *stmt) {
    for (int i = 0; i < stmt->vars.count; i++) eval_declared(ev, stmt->vars.at[i]);
    return FLOW_NEXT;
}

/* Evaluates an `if`. A jump to a label in one of its branches skips the condition. */
static Flow branch(Eval *ev, const CStmt *stmt) {
    if (ev->target ? has_target(stmt->then, ev->target) : condition(ev, stmt->expr))
        return eval_statement(ev, stmt->then);
    return stmt->other ? eval_statement(ev, stmt->other) : FLOW_NEXT;
}

/* Evaluates a statement; during a jump, from the jump's label on. */
Flow eval_statement(Eval *ev, const CStmt *stmt) {
    eval_step(ev);
    if (ev->target == stmt) ev->target = NULL;
    switch (stmt->kind) {
    case CS_EXPR:
        if (stmt->expr) eval_effects(ev, stmt->expr);
        return FLOW_NEXT;
    case CS_DECL: return declaration(ev, stmt);
    case CS_COMPOUND: return block_statement(ev, stmt);
    case CS_IF: return branch(ev, stmt);
    case CS_FOR:
    case CS_WHILE:
    case CS_DO: return loop_statement(ev, stmt);
    case CS_SWITCH: return switch_statement(ev, stmt);
    case CS_CASE:
    case CS_DEFAULT:
    case CS_LABEL: return eval_statement(ev, stmt->then);
    case CS_GOTO: return jump(ev, stmt);
    case CS_BREAK: return FLOW_BREAK;
    case CS_CONTINUE: return FLOW_CONTINUE;
    case CS_RETURN: return return_statement(ev, stmt);
    case CS_PRAGMA: eval_pragma(ev, stmt->pragmas.at[0]); return FLOW_NEXT;
    case CS_MARKED: return marked_statement(ev, stmt);
    case CS_REFUSED:
        eval_error(ev, stmt->at,
                   "%s cannot be evaluated at compile time; write the model without it",
                   stmt->text);
    }
    BUG("statement %d", stmt->kind);
}
