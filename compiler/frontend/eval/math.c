/* math.h and the integer functions of stdlib.h, in the precision of their names. */
#include "frontend/eval/eval.h"

#include <math.h>
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
    BOTH(acos), BOTH(acosh), BOTH(asin),  BOTH(asinh), BOTH(atan), BOTH(atanh), BOTH(cbrt),      BOTH(ceil),   BOTH(cos), BOTH(cosh),  BOTH(erf), BOTH(erfc),
    BOTH(exp),  BOTH(exp2),  BOTH(expm1), BOTH(fabs),  BOTH(floor), BOTH(lgamma), BOTH(log),     BOTH(log10),  BOTH(log1p), BOTH(log2), BOTH(logb),
    BOTH(nearbyint), BOTH(rint), BOTH(round), BOTH(sin), BOTH(sinh), BOTH(sqrt), BOTH(tan),      BOTH(tanh),   BOTH(tgamma), BOTH(trunc),
};
static const Math2 binary[] = {
    BOTH(atan2), BOTH(copysign), BOTH(fdim), BOTH(fmax), BOTH(fmin), BOTH(fmod), BOTH(hypot), BOTH(nextafter), BOTH(pow), BOTH(remainder),
};

/* Whether `name` is `function`, or `function` followed by f, which sets *narrow. */
static bool names(const char *name, const char *function, bool *narrow)
{
    size_t length = strlen(function);
    if (strncmp(name, function, length))
        return false;
    *narrow = name[length] == 'f' && !name[length + 1];
    return *narrow || !name[length];
}

static bool floating_call(const Call *call, const char *name, Val *value)
{
    const CType *type = call->function->result;
    double x = call->count ? call->args[0].f : 0, y = call->count > 1 ? call->args[1].f : 0;
    bool narrow;
    for (size_t i = 0; i < sizeof unary / sizeof *unary && call->count == 1; i++)
        if (names(name, unary[i].name, &narrow))
            return *value = val_float(type, narrow ? (double)unary[i].narrow((float)x) : unary[i].wide(x)), true;
    for (size_t i = 0; i < sizeof binary / sizeof *binary && call->count == 2; i++)
        if (names(name, binary[i].name, &narrow))
            return *value = val_float(type, narrow ? (double)binary[i].narrow((float)x, (float)y) : binary[i].wide(x, y)), true;
    return false;
}

static Val fma_call(const Call *call, bool narrow)
{
    const Val *a = call->args;
    return val_float(call->function->result, narrow ? (double)fmaf((float)a[0].f, (float)a[1].f, (float)a[2].f) : fma(a[0].f, a[1].f, a[2].f));
}

/* Functions that round to integers, and those of integers. */
static bool integer_call(Eval *ev, const Call *call, const char *name, Val *value)
{
    static const struct {
        const char *name;
        double (*wide)(double);
    } rounding[] = {{"lround", round}, {"llround", round}, {"lrint", rint}, {"llrint", rint}};
    const CType *type = call->function->result;
    bool narrow;
    for (size_t i = 0; i < sizeof rounding / sizeof *rounding; i++)
        if (names(name, rounding[i].name, &narrow))
            return *value = val_convert(ev, val_float(&(CType){.kind = CT_DOUBLE, .size = 8}, rounding[i].wide(call->args[0].f)), type,
                                        call->at),
                   true;
    if (!strcmp(name, "abs") || !strcmp(name, "labs") || !strcmp(name, "llabs"))
        return *value = val_int(type, (int64_t)call->args[0].i < 0 ? (int64_t)(0 - call->args[0].i) : (int64_t)call->args[0].i), true;
    if (names(name, "ldexp", &narrow) || names(name, "scalbn", &narrow))
        return *value = val_float(type, ldexp(call->args[0].f, (int)call->args[1].i)), true;
    return false;
}

/* What the macros of math.h become. */
static bool macro_call(const Call *call, const char *name, Val *value)
{
    const CType *type = call->function->result;
    double x = call->count ? call->args[0].f : 0;
    if (!strncmp(name, "huge_val", 8) || !strncmp(name, "inf", 3))
        return *value = val_float(type, (double)INFINITY), true;
    if (!strcmp(name, "nan") || !strcmp(name, "nanf"))
        return *value = val_float(type, (double)NAN), true;
    if (!strcmp(name, "isnan"))
        return *value = val_int(type, isnan(x) != 0), true;
    if (!strcmp(name, "isinf") || !strcmp(name, "isinf_sign"))
        return *value = val_int(type, isinf(x) ? (x > 0 ? 1 : -1) : 0), true;
    if (!strcmp(name, "isfinite"))
        return *value = val_int(type, isfinite(x) != 0), true;
    if (!strncmp(name, "signbit", 7))
        return *value = val_int(type, signbit(x) != 0), true;
    return false;
}

bool math_call(Eval *ev, const Call *call, Val *value)
{
    const char *name = call->function->name;
    bool builtin = !strncmp(name, "__builtin_", 10), narrow;
    if (builtin)
        name += 10;
    if (call_unknown(call))
        return false;
    if (builtin && !strcmp(name, "expect"))
        return *value = call->args[0], true;
    if (call->count == 3 && names(name, "fma", &narrow))
        return *value = fma_call(call, narrow), true;
    if (call->count && call->args[0].type->kind == CT_STRUCT)
        return false;
    return floating_call(call, name, value) || (call->count && integer_call(ev, call, name, value)) ||
           (builtin && macro_call(call, name, value));
}
