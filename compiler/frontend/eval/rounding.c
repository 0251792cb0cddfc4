/* Refuses floating-point operations whose value a compiler option leaves open (clang/rounding.c).
 *
 * If the C compiler may fuse multiply and add, a * b + c is computed with one and with two
 * roundings and refused if the values differ. A product may reach the sum through variables and
 * calls, so products are found by value: each product that was rounded is kept with its factors.
 *
 *     t = 1.1f * 2.3f;  t - 2.53f        0 with two roundings, 3.1e-8 with one: refused
 *     t = 2 * 3.0;      t + 1            7 in any case
 *
 * Under -ffast-math, x / 3 may become x * (1 / 3) and is refused. Operations that gcc folds
 * exactly are allowed: 0.02f / sqrtf(24), on constants or, if it optimizes, constant variables. */
#include "frontend/eval/eval.h"

#include <math.h>
#include <uthash.h>

/* The product a * b, which was rounded to `value`: of floats if `narrow`, else of doubles. */
typedef struct Product {
    double value, a, b;
    bool narrow;
    UT_hash_handle hh;
} Product;

struct Products {
    Product *by_value;
};

static double fused(const Product *product, double sign, double sum) {
    double a = sign * product->a;
    return product->narrow ? (double)fmaf((float)a, (float)product->b, (float)sum)
                           : fma(a, product->b, sum);
}

static void keep_product(Eval *ev, double value, double a, double b, bool narrow) {
    bool exact = narrow ? a * b == value : fma(a, b, -value) == 0;
    if (exact || !isfinite(value)) return;
    if (!ev->products) ev->products = arena_new(ev->scratch, struct Products);
    Product *product;
    HASH_FIND(hh, ev->products->by_value, &value, sizeof value, product);
    if (!product) {
        product = arena_new(ev->scratch, Product);
        product->value = value;
        HASH_ADD(hh, ev->products->by_value, value, sizeof product->value, product);
    }
    product->a = a;
    product->b = b;
    product->narrow = narrow;
}

/* Returns a rounded product with this value and type; NULL when there is none. */
static const Product *product_of(const Eval *ev, double value, bool narrow) {
    Product *product = NULL;
    if (ev->products) HASH_FIND(hh, ev->products->by_value, &value, sizeof value, product);
    return product && product->narrow == narrow ? product : NULL;
}

/* Returns whether a sum or difference changes if a product is not rounded before it is added. */
static bool differs(const Eval *ev, const Binary *e, double result) {
    bool narrow = e->a.type->kind == CT_FLOAT;
    double sign = e->op == OP_SUB ? -1 : 1, x = e->a.f, y = e->b.f;
    const Product *first = product_of(ev, x, narrow), *second = product_of(ev, y, narrow);
    return (first && fused(first, 1, sign * y) != result) ||
           (second && fused(second, sign, x) != result);
}

/* Returns whether options cannot change a number: it is not NaN, infinity, subnormal or -0. */
static bool is_plain(const Val *value) {
    int class = value->type->kind == CT_FLOAT ? fpclassify((float)value->f) : fpclassify(value->f);
    return class == FP_NORMAL || (class == FP_ZERO && !signbit(value->f));
}

/* Returns whether options leave the result of an operation open, and records rounded products. */
static bool is_open(Eval *ev, const Binary *e, const Val *result) {
    COperation op = e->op;
    const Val *a = &e->a, *b = &e->b;
    bool narrow = a->type->kind == CT_FLOAT, compares = op >= OP_LT && op <= OP_NE;
    bool vanishes = (op == OP_MUL || op == OP_DIV) && a->f != 0 && b->f != 0 && result->f == 0,
         folded = a->literal && b->literal && is_plain(a) && is_plain(b) &&
                  (compares || (is_plain(result) && !vanishes));
    if (ev->unit->arithmetic.free_option)
        return !folded && (!compares || !isfinite(a->f) || !isfinite(b->f));
    if (op == OP_MUL) keep_product(ev, result->f, a->f, b->f, narrow);
    return (op == OP_ADD || op == OP_SUB) && differs(ev, e, result->f);
}

static _Noreturn void refuse(Eval *ev, Position at) {
    if (ev->unit->arithmetic.free_option)
        eval_error(ev, at,
                   "%s leaves open what this floating-point operation gives, so that it cannot be "
                   "evaluated at compile time; leave the option "
                   "out, or write the number that it shall be",
                   ev->unit->arithmetic.free_option);
    eval_error(ev, at,
               "the C compiler may round the product and the sum of this once or twice (its "
               "options have fused multiply-add), and the two "
               "values differ here; give -ffp-contract=off");
}

Val rounding_check(Eval *ev, const Binary *e, Val result) {
    bool open = (ev->unit->arithmetic.free_option || ev->unit->arithmetic.contracts) &&
                is_open(ev, e, &result);
    if (open && !ev->lenient) refuse(ev, e->at);
    return open ? val_unknown(result.type) : result;
}

void rounding_negated(Eval *ev, Val value) {
    bool narrow = value.type->kind == CT_FLOAT;
    const Product *product = product_of(ev, value.f, narrow);
    if (product) keep_product(ev, -value.f, -product->a, product->b, narrow);
}

bool rounding_call_open(Eval *ev, const Call *call) {
    bool floating = ctype_is_floating(call->function->result), folded = call->count > 0;
    for (int i = 0; i < call->count; i++) {
        bool number = ctype_is_floating(call->args[i].type);
        floating |= number;
        folded &= call->args[i].literal && (!number || is_plain(&call->args[i]));
    }
    if (!ev->unit->arithmetic.free_option || !floating || folded) return false;
    if (!ev->lenient) refuse(ev, call->at);
    return true;
}
