/* Operands whose order C leaves open.
 *
 *     v + set(5)      set changes v: 6 or 10
 *     a[i] = i++      changes i, which the place reads
 *     f(x) + g(y)     any order gives the same, as long as neither changes what the other one uses
 *
 * While such operands are evaluated, what they read and change is noted: the bytes of objects that
 * are older than the expression. Where one changes what another one uses, the expression is
 * refused, unless its form is one of which gcc's order is known.
 */
#ifndef FRONTEND_EVAL_ORDER_H
#define FRONTEND_EVAL_ORDER_H

#include "frontend/eval/memory.h"

/* Bytes of an object that an operand has read or changed. */
typedef struct Touch {
    Object *object;
    uint64_t born; // of the object, when it was touched
    int64_t from, to;
    bool written, second;
} Touch;

typedef Array(Touch) Touches;

/* What evaluating an expression may do besides giving its value. */
typedef enum Effects {
    EFFECTS_NOT_LOOKED = 0,
    EFFECTS_NONE,
    EFFECTS_CALLS,  // only inside functions, which C does not interleave
    EFFECTS_DIRECT, // assignments and increments of its own
} Effects;

Effects order_effects(const CExpr *expr);

/* The touches of operands that are being evaluated. */
typedef struct OrderLog {
    Touches touches;
    Touches compared;
    int from;       // the first touch of the innermost expression
    int most;       // how many touches there may be before equal ones are joined
    uint64_t since; // objects created before it are noted; 0: nothing is noted
} OrderLog;

typedef struct Order {
    int begin;      // the first of the touches of all operands
    int middle;     // the first of those of the operand that is evaluated now
    int from;       // the same of the expression outside
    uint64_t since; // objects that are older are looked at
    uint64_t outer; // the same of the outermost expression; 0: this is it
} Order;

/* Begins to note; `order_end` ends it. */
Order order_begin(Eval *ev);
/* The next operand begins: the error where the last one and those before it are in conflict, unless
 * the order is `known`. */
void order_next(Eval *ev, Order *order, Position at, bool known);
/* The same at the end of the last operand. */
void order_end(Eval *ev, Order *order, Position at, bool known);

void order_note(Eval *ev, Place place, int64_t size, bool written);

#endif
