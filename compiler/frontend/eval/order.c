/* Detects unsequenced side effects by the bytes that operands touch. */
#include "frontend/eval/eval.h"

#include <stdlib.h>

enum { MANY_TOUCHES = 4096 };

static Effects own_effects(const CExpr *expr) {
    bool increments = expr->kind == C_UNARY && expr->op >= OP_PRE_INC && expr->op <= OP_POST_DEC;
    if (expr->kind == C_ASSIGN || expr->kind == C_STATEMENT || increments) return EFFECTS_DIRECT;
    return expr->kind == C_CALL ? EFFECTS_CALLS : EFFECTS_NONE;
}

static Effects greater(Effects a, const CExpr *expr) {
    Effects b = expr ? order_effects(expr) : EFFECTS_NONE;
    return a > b ? a : b;
}

Effects order_effects(const CExpr *expr) {
    if (expr->effects == EFFECTS_NOT_LOOKED) {
        Effects effects = greater(greater(greater(own_effects(expr), expr->a), expr->b), expr->c);
        for (int i = 0; i < expr->args.count; i++) effects = greater(effects, expr->args.at[i]);
        ((CExpr *)expr)->effects = (uint8_t)effects;
    }
    return (Effects)expr->effects;
}

static void compact(Eval *ev);

void order_note(Eval *ev, Place place, int64_t size, bool written) {
    Object *object = place.object;
    if (object->born > ev->order.since || object->constant || size <= 0) return;
    Touch touch = {.object = object,
                   .born = object->born,
                   .from = place.offset,
                   .to = place.offset + size,
                   .written = written};
    Touch *last = ev->order.touches.count > ev->order.from
                      ? &ev->order.touches.at[ev->order.touches.count - 1]
                      : NULL;
    if (last && last->object == object && last->born == touch.born && last->written == written &&
        touch.from <= last->to && touch.to >= last->from) {
        last->from = touch.from < last->from ? touch.from : last->from;
        last->to = touch.to > last->to ? touch.to : last->to;
        return;
    }
    array_push(ev->scratch, &ev->order.touches, touch);
    if (ev->order.touches.count - ev->order.from >= ev->order.most) compact(ev);
}

static int by_object(const Touch *x, const Touch *y) {
    if (x->object != y->object) return x->object->id < y->object->id ? -1 : 1;
    return (x->born > y->born) - (x->born < y->born);
}

static int by_kind(const void *a, const void *b) {
    const Touch *x = a, *y = b;
    int order = by_object(x, y);
    if (!order) order = x->written - y->written;
    return order ? order : (x->from > y->from) - (x->from < y->from);
}

static int by_place(const void *a, const void *b) {
    const Touch *x = a, *y = b;
    int order = by_object(x, y);
    return order ? order : (x->from > y->from) - (x->from < y->from);
}

/* Sorts the touches of the current operand, and joins those of one kind that overlap or adjoin. */
static void compact(Eval *ev) {
    Touch *touches = ev->order.touches.at + ev->order.from;
    int count = ev->order.touches.count - ev->order.from, kept = 0;
    qsort(touches, (size_t)count, sizeof *touches, by_kind);
    for (int i = 1; i < count; i++) {
        Touch *last = &touches[kept];
        if (by_object(last, &touches[i]) || last->written != touches[i].written ||
            touches[i].from > last->to)
            touches[++kept] = touches[i];
        else if (touches[i].to > last->to) last->to = touches[i].to;
    }
    ev->order.touches.count = ev->order.from + kept + 1;
    ev->order.most = 2 * (kept + 1) > MANY_TOUCHES ? 2 * (kept + 1) : MANY_TOUCHES;
}

/* Returns an object of which one operand changes bytes that another uses; NULL: there is none. */
static const Object *conflict(Eval *ev, const Order *order) {
    int count = ev->order.touches.count - order->begin;
    if (order->middle == order->begin || order->middle == ev->order.touches.count) return NULL;
    int64_t end[2][2] = {{0}}; // end of the bytes touched so far: [operand][written]
    // Copy the touches, and sort them by object and offset.
    ev->order.compared.count = 0;
    for (int i = order->begin; i < ev->order.touches.count; i++) {
        array_push(ev->scratch, &ev->order.compared, ev->order.touches.at[i]);
        ev->order.compared.at[i - order->begin].second = i >= order->middle;
    }
    Touch *all = ev->order.compared.at;
    qsort(all, (size_t)count, sizeof *all, by_place);
    // Find a touch that begins before the end of the other operand's bytes.
    for (int i = 0; i < count; i++) {
        const Touch *touch = &all[i];
        if (touch->born > order->since) continue;
        if (i && by_object(touch, &all[i - 1])) end[0][0] = end[0][1] = end[1][0] = end[1][1] = 0;
        bool other = !touch->second;
        if (touch->from < end[other][true] || (touch->written && touch->from < end[other][false]))
            return touch->object;
        int64_t *reached = &end[touch->second][touch->written];
        *reached = touch->to > *reached ? touch->to : *reached;
    }
    return NULL;
}

Order order_begin(Eval *ev) {
    Order order = {.begin = ev->order.touches.count,
                   .middle = ev->order.touches.count,
                   .since = ev->heap.born,
                   .outer = ev->order.since};
    order.from = ev->order.from;
    if (!ev->order.since) ev->order.since = ev->heap.born;
    ev->order.from = ev->order.touches.count;
    ev->order.most = MANY_TOUCHES;
    return order;
}

void order_next(Eval *ev, Order *order, Position at, bool known) {
    const Object *object = known ? NULL : conflict(ev, order);
    if (object)
        eval_error(ev, at,
                   "C leaves open which operand of this is evaluated first, and one of them "
                   "changes %s, which another one uses; make it two statements",
                   object->name ? object->name : "an object");
    order->middle = ev->order.from = ev->order.touches.count;
}

void order_end(Eval *ev, Order *order, Position at, bool known) {
    order_next(ev, order, at, known);
    ev->order.since = order->outer;
    ev->order.from = order->from;
    if (!ev->order.since) ev->order.touches.count = 0;
}
