/* The table of functions of math.h in rules, with their derivatives. */
#include "rule/gradient.h"

#include <string.h>

static const MathFunction functions[] = {
    {"expf", {"y"}, SETTLES_FAST, "1"},
    {"exp2f", {"0.6931471805599453f * y"}, SETTLES_FAST, "0.6931471805599453f"},
    {"expm1f", {"expf(a)"}, SETTLES_FAST, NULL},
    {"logf", {"1.0f / a"}, SETTLES | SINGULAR | LOGARITHM, NULL},
    {"log2f", {"1.4426950408889634f / a"}, SETTLES | SINGULAR | LOGARITHM, NULL},
    {"log10f", {"0.4342944819032518f / a"}, SETTLES | SINGULAR | LOGARITHM, NULL},
    {"log1pf", {"1.0f / (1 + a)"}, SETTLES | SINGULAR | LOGARITHM, NULL},
    {"sqrtf", {"0.5f / y"}, SETTLES | SINGULAR, NULL},
    {"cbrtf", {"1.0f / (3 * y * y)"}, SETTLES | SINGULAR, NULL},
    {"powf",
     {"b == 0 ? 0 : b * powf(a, b - 1)", "a == 0 ? b >= 0 ? 0 : y * logf(a) : y * logf(a)"},
     SETTLES | SINGULAR,
     NULL},
    {"fabsf", {"a > 0 ? 1 : a < 0 ? -1 : 0"}, 0, NULL},
    {"sinf", {"cosf(a)"}, 0, NULL},
    {"cosf", {"-sinf(a)"}, 0, NULL},
    {"tanf", {"1 + y * y"}, SINGULAR, NULL},
    {"asinf", {"1.0f / sqrtf((1 - a) * (1 + a))"}, SINGULAR, NULL},
    {"acosf", {"-1.0f / sqrtf((1 - a) * (1 + a))"}, SINGULAR, NULL},
    {"atanf", {"1.0f / (1 + a * a)"}, SETTLES, NULL},
    {"sinhf", {"coshf(a)"}, 0, NULL},
    {"coshf", {"sinhf(a)"}, 0, "tanhf(a)"},
    {"tanhf", {"1 - y * y"}, SETTLES_FAST, NULL},
    {"erff", {"1.1283791670955126f * expf(-(a * a))"}, SETTLES_FAST, NULL},
    {"erfcf", {"-1.1283791670955126f * expf(-(a * a))"}, SETTLES_FAST, NULL},
    {"fmaxf", {"a == b ? 0.5f : a < b ? 0 : 1", "a == b ? 0.5f : a > b ? 0 : 1"}, 0, NULL},
    {"fminf", {"a == b ? 0.5f : a > b ? 0 : 1", "a == b ? 0.5f : a < b ? 0 : 1"}, 0, NULL},
    {"hypotf", {"a / y", "b / y"}, SINGULAR, NULL},
    {"floorf", {"0"}, 0, NULL},
    {"ceilf", {"0"}, 0, NULL},
    {"roundf", {"0"}, 0, NULL},
    {"rintf", {"0"}, 0, NULL},
    {"truncf", {"0"}, 0, NULL},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

const MathFunction *math_function(const char *name, bool *wide) {
    size_t length = strlen(name);
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        const char *single = functions[i].name;
        bool twin = strlen(single) == length + 1 && !strncmp(single, name, length);
        if (twin || !strcmp(single, name)) {
            *wide = twin;
            return &functions[i];
        }
    }
    return NULL;
}

int expr_function_arity(const char *name) {
    bool wide;
    const MathFunction *function = math_function(name, &wide);
    return function ? 1 + (function->derivative[1] != NULL) : 0;
}

const char *const *expr_function_names(void) {
    static const char *names[FUNCTION_COUNT + 1];
    for (int i = 0; i < FUNCTION_COUNT; i++) names[i] = functions[i].name;
    return names;
}
