/* Evaluates math.h and the integer functions of stdlib.h, in the precision that their names say.
 *
 * gcc folds calls of constants, even without optimization: it rounds the exact result once. For
 * some functions (tanh, tgamma, ...) C libraries return a neighbouring number. MPFR therefore
 * computes calls of constants here, as in gcc, and the C library computes all other calls. */
#include "frontend/eval/eval.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

typedef struct Math1 {
    const char *name;
    double (*wide)(double);
    float (*narrow)(float);
} Math1;
typedef struct Math2 {
    const char *name;
    double (*wide)(double, double);
    float (*narrow)(float, float);
} Math2;

#define BOTH(name) {#name, name, name##f}
static const Math1 unary[] = {
    BOTH(acos),  BOTH(acosh), BOTH(asin),      BOTH(asinh),  BOTH(atan),  BOTH(atanh), BOTH(cbrt),
    BOTH(ceil),  BOTH(cos),   BOTH(cosh),      BOTH(erf),    BOTH(erfc),  BOTH(exp),   BOTH(exp2),
    BOTH(expm1), BOTH(fabs),  BOTH(floor),     BOTH(lgamma), BOTH(log),   BOTH(log10), BOTH(log1p),
    BOTH(log2),  BOTH(logb),  BOTH(nearbyint), BOTH(rint),   BOTH(round), BOTH(sin),   BOTH(sinh),
    BOTH(sqrt),  BOTH(tan),   BOTH(tanh),      BOTH(tgamma), BOTH(trunc),
};
static const Math2 binary[] = {
    BOTH(atan2), BOTH(copysign), BOTH(fdim),      BOTH(fmax), BOTH(fmin),
    BOTH(fmod),  BOTH(hypot),    BOTH(nextafter), BOTH(pow),  BOTH(remainder),
};

typedef int Exact1(mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int Exact2(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

static int lgamma_exact(mpfr_t to, const mpfr_t x, mpfr_rnd_t round) {
    int sign;
    return mpfr_lgamma(to, &sign, x, round);
}

static const struct {
    const char *name;
    Exact1 *one;
    Exact2 *two;
} exact[] = {
    {"acos", mpfr_acos, NULL},   {"acosh", mpfr_acosh, NULL}, {"asin", mpfr_asin, NULL},
    {"asinh", mpfr_asinh, NULL}, {"atan", mpfr_atan, NULL},   {"atanh", mpfr_atanh, NULL},
    {"cbrt", mpfr_cbrt, NULL},   {"cos", mpfr_cos, NULL},     {"cosh", mpfr_cosh, NULL},
    {"erf", mpfr_erf, NULL},     {"erfc", mpfr_erfc, NULL},   {"exp", mpfr_exp, NULL},
    {"exp2", mpfr_exp2, NULL},   {"expm1", mpfr_expm1, NULL}, {"lgamma", lgamma_exact, NULL},
    {"log", mpfr_log, NULL},     {"log10", mpfr_log10, NULL}, {"log1p", mpfr_log1p, NULL},
    {"log2", mpfr_log2, NULL},   {"sin", mpfr_sin, NULL},     {"sinh", mpfr_sinh, NULL},
    {"tan", mpfr_tan, NULL},     {"tanh", mpfr_tanh, NULL},   {"tgamma", mpfr_gamma, NULL},
    {"atan2", NULL, mpfr_atan2}, {"hypot", NULL, mpfr_hypot}, {"pow", NULL, mpfr_pow},
};

bool math_literal(const CExpr *expr) {
    if (!expr) return false;
    switch (expr->kind) {
    case C_INT:
    case C_FLOAT: return true;
    case C_CAST: return math_literal(expr->a);
    case C_UNARY: return expr->op >= OP_PLUS && expr->op <= OP_LOGICAL_NOT && math_literal(expr->a);
    case C_BINARY: return math_literal(expr->a) && math_literal(expr->b);
    case C_SELECT:
        return expr->b && math_literal(expr->a) && math_literal(expr->b) && math_literal(expr->c);
    case C_CALL:
        for (int i = 0; i < expr->args.count; i++)
            if (!math_literal(expr->args.at[i])) return false;
        return expr->args.count && cexpr_function(expr->a) && !cexpr_function(expr->a)->body;
    default: return false;
    }
}

/* Sets *value to the exact result of a function, rounded once. Returns false when gcc leaves the
 * call to the library: an argument or the result is not finite, or the result is out of range. */
static bool rounded_once(Exact1 *one, Exact2 *two, const double *x, bool narrow, double *value) {
    mpfr_t a, b, result;
    mpfr_inits2(53, a, b, (mpfr_ptr)NULL);
    mpfr_init2(result, narrow ? 24 : 53);
    mpfr_set_d(a, x[0], MPFR_RNDN);
    mpfr_set_d(b, two ? x[1] : 0, MPFR_RNDN);
    mpfr_clear_flags();
    (void)(one ? one(result, a, MPFR_RNDN) : two(result, a, b, MPFR_RNDN));
    *value = mpfr_get_d(result, MPFR_RNDN);
    bool whole = isfinite(x[0]) && (!two || isfinite(x[1])) && mpfr_number_p(result) &&
                 !mpfr_overflow_p() && !mpfr_underflow_p();
    double held = narrow ? (double)(float)*value : *value;
    bool good = whole && isfinite(held) && mpfr_cmp_d(result, held) == 0;
    mpfr_clears(a, b, result, (mpfr_ptr)NULL);
    return good;
}

/* Returns whether `name` is `function`, or `function` followed by f; *narrow tells which. */
static bool names(const char *name, const char *function, bool *narrow) {
    size_t length = strlen(function);
    if (strncmp(name, function, length)) return false;
    *narrow = name[length] == 'f' && !name[length + 1];
    return *narrow || !name[length];
}

/* Evaluates a call of a function in `exact` whose arguments are constants. False: any other. */
static bool folded_call(const Call *call, const char *name, Val *value) {
    double x[2] = {0}, result;
    bool narrow;
    if (!call->expr || !math_literal(call->expr)) return false;
    for (int i = 0; i < 2 && i < call->count; i++) x[i] = call->args[i].f;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (call->count == (exact[i].one ? 1 : 2) && names(name, exact[i].name, &narrow))
            return rounded_once(exact[i].one, exact[i].two, x, narrow, &result) &&
                   (*value = val_float(call->function->result, result), true);
    return false;
}

static bool floating_call(const Call *call, const char *name, Val *value) {
    const CType *type = call->function->result;
    double x = call->count ? call->args[0].f : 0, y = call->count > 1 ? call->args[1].f : 0;
    bool narrow;
    for (size_t i = 0; i < sizeof unary / sizeof *unary && call->count == 1; i++)
        if (names(name, unary[i].name, &narrow))
            return *value = val_float(type, narrow ? (double)unary[i].narrow((float)x)
                                                   : unary[i].wide(x)),
                   true;
    for (size_t i = 0; i < sizeof binary / sizeof *binary && call->count == 2; i++)
        if (names(name, binary[i].name, &narrow))
            return *value = val_float(type, narrow ? (double)binary[i].narrow((float)x, (float)y)
                                                   : binary[i].wide(x, y)),
                   true;
    return false;
}

static Val fma_call(const Call *call, bool narrow) {
    const Val *a = call->args;
    return val_float(call->function->result,
                     narrow ? (double)fmaf((float)a[0].f, (float)a[1].f, (float)a[2].f)
                            : fma(a[0].f, a[1].f, a[2].f));
}

/* Evaluates functions that round to integers, abs, labs, ldexp, scalbn; false: another function. */
static bool integer_call(Eval *ev, const Call *call, const char *name, Val *value) {
    static const struct {
        const char *name;
        double (*wide)(double);
    } rounding[] = {{"lround", round}, {"llround", round}, {"lrint", rint}, {"llrint", rint}};
    const CType *type = call->function->result;
    bool narrow;
    for (size_t i = 0; i < sizeof rounding / sizeof *rounding; i++)
        if (names(name, rounding[i].name, &narrow))
            return *value = val_convert(ev,
                                        val_float(&(CType){.kind = CT_DOUBLE, .size = 8},
                                                  rounding[i].wide(call->args[0].f)),
                                        type, call->at),
                   true;
    if (!strcmp(name, "abs") || !strcmp(name, "labs") || !strcmp(name, "llabs")) {
        bool negative = (int64_t)call->args[0].i < 0;
        return *value = negative ? val_binary(ev, &(Binary){OP_SUB, type, val_int(type, 0),
                                                            call->args[0], call->at})
                                 : call->args[0],
               true;
    }
    if (names(name, "ldexp", &narrow) || names(name, "scalbn", &narrow))
        return *value = val_float(type, ldexp(call->args[0].f, (int)call->args[1].i)), true;
    return false;
}

/* Returns the fpclassify class of a number in its own type: subnormal floats are normal doubles. */
static int class_of(const Val *value) {
    return value->type->kind == CT_FLOAT ? fpclassify((float)value->f) : fpclassify(value->f);
}

/* Evaluates fpclassify, whose first arguments are its possible results, and comparisons such as
 * isless, which raise no exception for NaNs. False: another function. */
static bool comparison_call(const Call *call, const char *name, Val *value) {
    static const int classes[] = {FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO};
    const CType *type = call->function->result;
    const Val *a = call->args;
    if (call->count == 6 && !strcmp(name, "fpclassify"))
        for (int i = 0; i < 5; i++)
            if (class_of(&a[5]) == classes[i]) return *value = val_int(type, (int64_t)a[i].i), true;
    if (call->count != 2 || !ctype_is_floating(a[0].type) || !ctype_is_floating(a[1].type))
        return false;
    bool unordered = isnan(a[0].f) || isnan(a[1].f), less = a[0].f<a[1].f, greater = a[0].f> a[1].f;
    const struct {
        const char *name;
        bool holds;
    } relations[] = {{"isgreater", greater},
                     {"isgreaterequal", !unordered && !less},
                     {"isless", less},
                     {"islessequal", !unordered && !greater},
                     {"islessgreater", less || greater},
                     {"isunordered", unordered}};
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if (!strcmp(name, relations[i].name))
            return *value = val_int(type, relations[i].holds), true;
    return false;
}

/* Evaluates signbit as gcc does: 1 if negative, or INT32_MIN for a float that gcc does not fold. */
static Val sign_bit(const Eval *ev, const Call *call) {
    const Val *x = &call->args[0];
    bool whole = x->type->kind == CT_FLOAT && !x->literal && !ev->unit->arithmetic.optimizes;
    return val_int(call->function->result, !signbit(x->f) ? 0 : whole ? INT32_MIN : 1);
}

/* Evaluates the builtin functions that macros of math.h expand to; false: another function. */
static bool macro_call(const Eval *ev, const Call *call, const char *name, Val *value) {
    const CType *type = call->function->result;
    double x = call->count ? call->args[0].f : 0;
    if (!strncmp(name, "huge_val", 8) || !strncmp(name, "inf", 3))
        return *value = val_float(type, (double)INFINITY), true;
    if (!strcmp(name, "isnan")) return *value = val_int(type, isnan(x) != 0), true;
    if (!strcmp(name, "isinf") || !strcmp(name, "isinf_sign"))
        return *value = val_int(type, isinf(x) ? (x > 0 ? 1 : -1) : 0), true;
    if (!strcmp(name, "isfinite")) return *value = val_int(type, isfinite(x) != 0), true;
    if (!strncmp(name, "signbit", 7)) return *value = sign_bit(ev, call), true;
    if (!strcmp(name, "isnormal"))
        return *value = val_int(type, class_of(&call->args[0]) == FP_NORMAL), true;
    return comparison_call(call, name, value);
}

/* Returns whether both arguments are NaN, with different signs. */
static bool has_two_nans(const Call *call) {
    const Val *a = call->args;
    return call->count == 2 && ctype_is_floating(call->function->result) &&
           ctype_is_floating(a[0].type) && ctype_is_floating(a[1].type) && isnan(a[0].f) &&
           isnan(a[1].f) && signbit(a[0].f) != signbit(a[1].f);
}

static bool evaluated(Eval *ev, const Call *call, Val *value) {
    const char *name = call->function->name;
    bool builtin = !strncmp(name, "__builtin_", 10), narrow;
    if (builtin) name += 10;
    if (call_unknown(call)) return false;
    if (rounding_call_open(ev, call)) return *value = val_unknown(call->function->result), true;
    if (builtin && !strcmp(name, "expect")) return *value = call->args[0], true;
    if (call->count == 3 && names(name, "fma", &narrow))
        return *value = fma_call(call, narrow), true;
    if (call->count && call->args[0].type->kind == CT_STRUCT) return false;
    if (has_two_nans(call) && !names(name, "copysign", &narrow))
        eval_error(ev, call->at, "C leaves open which of two NaNs %s gives", name);
    return folded_call(call, name, value) || floating_call(call, name, value) ||
           (call->count && integer_call(ev, call, name, value)) ||
           (builtin && macro_call(ev, call, name, value));
}

bool math_call(Eval *ev, const Call *call, Val *value) {
    if (!evaluated(ev, call, value)) return false;
    value->literal = call->count > 0;
    for (int i = 0; i < call->count; i++) value->literal &= call->args[i].literal;
    return true;
}
