/* Refuses expressions whose value depends on the order of operands, which C leaves open.
 *
 *     v + set(5)      set changes v: 6 or 10
 *     a[i] = i++      changes i, which the left side reads
 *     f(x) + g(y)     accepted, unless one function changes bytes that the other uses
 *
 * While operands are evaluated, their reads and stores of older objects are recorded as touches. An
 * operand that changes bytes which another uses is an error, unless gcc's order is known. */
#pragma once

#include "frontend/eval/memory.h"

/* Bytes [from, to) of an object that an operand read or changed. */
typedef struct Touch {
    Object *object;
    uint64_t born; // Object.born at the touch, since an Object may be reused
    int64_t from, to;
    bool written;
    bool second; // the operand that was evaluated last touched the bytes
} Touch;

typedef Array(Touch) Touches;

/* Side effects that an expression may have. */
typedef enum Effects {
    EFFECTS_NOT_LOOKED = 0, // not computed yet
    EFFECTS_NONE,
    EFFECTS_CALLS,  // effects only inside called functions, whose bodies C does not interleave
    EFFECTS_DIRECT, // the expression itself assigns or increments
} Effects;

/* Returns the side effects that an expression may have. */
Effects order_effects(const CExpr *expr);

/* The touches of operands that are being evaluated. */
typedef struct OrderLog {
    Touches touches;
    Touches compared;
    int from;       // index of the first touch of the current operand
    int most;       // number of the current operand's touches at which neighbours are joined
    uint64_t since; // only objects with `born` up to this are recorded; 0: none are recorded
} OrderLog;

/* An expression whose operands C evaluates in unspecified order, from order_begin to order_end. */
typedef struct Order {
    int begin;      // index of the first touch of this expression's first operand
    int middle;     // index of the first touch of this expression's current operand
    int from;       // OrderLog.from of the enclosing expression, which order_end restores
    uint64_t since; // only objects with `born` up to this can conflict
    uint64_t outer; // OrderLog.since of the enclosing expression; 0: none encloses this one
} Order;

/* Begins an expression and its first operand, whose touches are recorded from now on. */
Order order_begin(Eval *ev);

/* Begin the next operand, and end the expression. Both functions report a conflict of the last
 * operand with earlier operands, unless gcc's order is `known`. */
void order_next(Eval *ev, Order *order, Position at, bool known);
void order_end(Eval *ev, Order *order, Position at, bool known);

/* Records a touch of bytes of an older object. */
void order_note(Eval *ev, Place place, int64_t size, bool written);
