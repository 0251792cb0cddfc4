/* Derived gradients against central differences: both the forward rule and the derived one are
 * interpreted, index by index, in double. */
#include "rule/expr.h"
#include "ir/module.h"
#include "passes/differentiate/gradient_rule.h"
#include "syntax/tokens.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4096, OPERANDS = 4 };

typedef struct World {
    Arena *arena;
    Diag *diag;
    Module *module;
} World;

static int world_setup(void **state) {
    World *world = calloc(1, sizeof *world);
    world->arena = arena_create();
    world->diag = diag_create(world->arena, stderr);
    world->module = module_create(world->arena, world->diag, "model");
    *state = world;
    return 0;
}

static int world_teardown(void **state) {
    World *world = *state;
    arena_destroy(world->arena);
    free(world);
    return 0;
}

/* ---- an interpreter of bodies ---- */

typedef struct Point {
    const Op *op;
    double *const *data;
    const int64_t *at; // by bound factor
} Point;

static int64_t offset_of(const Point *point, const BoundAccess *access) {
    int64_t offset = 0;
    for (int d = 0; d < access->rank; d++)
        for (int k = 0; k < access->dims[d].count; k++) {
            int factor = access->dims[d].factors[k];
            offset = offset * point->op->binding->factors[factor].extent + point->at[factor];
        }
    return offset;
}

static double size_of(const Op *op, int factor) {
    double size = 1;
    for (int b = 0; b < op->binding->factor_count; b++)
        if (op->binding->factors[b].factor == factor)
            size *= (double)op->binding->factors[b].extent;
    return size;
}

static double evaluate(const Point *point, const Expr *expr);

static double evaluate_call(const Point *point, const Expr *expr) {
    double a = evaluate(point, expr->arg[0]),
           b = expr->arg_count > 1 ? evaluate(point, expr->arg[1]) : 0;
    static const struct {
        const char *name;
        double (*one)(double);
        double (*two)(double, double);
    } table[] = {{"expf", exp, NULL},     {"logf", log, NULL},   {"tanhf", tanh, NULL},
                 {"sqrtf", sqrt, NULL},   {"powf", NULL, pow},   {"fabsf", fabs, NULL},
                 {"sinf", sin, NULL},     {"cosf", cos, NULL},   {"erff", erf, NULL},
                 {"fmaxf", NULL, fmax},   {"fminf", NULL, fmin}, {"log1pf", log1p, NULL},
                 {"atanf", atan, NULL},   {"tanf", tan, NULL},   {"sinhf", sinh, NULL},
                 {"coshf", cosh, NULL},   {"exp", exp, NULL},    {"erf", erf, NULL},
                 {"hypotf", NULL, hypot}, {"log2f", log2, NULL}, {"cbrtf", cbrt, NULL}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, expr->spelling))
            return table[i].one ? table[i].one(a) : table[i].two(a, b);
    fail_msg("the test does not know %s", expr->spelling);
    return 0;
}

static double evaluate(const Point *point, const Expr *expr) {
    const Expr *const *arg = expr->arg;
    switch (expr->kind) {
    case EXPR_NUMBER: return expr->number;
    case EXPR_ACCESS:
        return point
            ->data[expr->index][offset_of(point, &point->op->binding->operands[expr->index])];
    case EXPR_ATTR: return point->op->attrs[expr->index].f;
    case EXPR_SIZE: return size_of(point->op, expr->index);
    case EXPR_NEG: return -evaluate(point, arg[0]);
    case EXPR_ADD: return evaluate(point, arg[0]) + evaluate(point, arg[1]);
    case EXPR_SUB: return evaluate(point, arg[0]) - evaluate(point, arg[1]);
    case EXPR_MUL: return evaluate(point, arg[0]) * evaluate(point, arg[1]);
    case EXPR_DIV: return evaluate(point, arg[0]) / evaluate(point, arg[1]);
    case EXPR_LT: return evaluate(point, arg[0]) < evaluate(point, arg[1]);
    case EXPR_GT: return evaluate(point, arg[0]) > evaluate(point, arg[1]);
    case EXPR_EQ: return evaluate(point, arg[0]) == evaluate(point, arg[1]);
    case EXPR_NE: return evaluate(point, arg[0]) != evaluate(point, arg[1]);
    case EXPR_SELECT:
        return evaluate(point, arg[0]) != 0 ? evaluate(point, arg[1]) : evaluate(point, arg[2]);
    case EXPR_CALL: return evaluate_call(point, expr);
    default: fail_msg("the test does not know this expression"); return 0;
    }
}

static void mark_access(const BoundAccess *access, bool *factors) {
    for (int d = 0; d < access->rank; d++)
        for (int k = 0; k < access->dims[d].count; k++) factors[access->dims[d].factors[k]] = true;
}

static bool mark_factors(const Op *op, const Expr *expr, bool *factors) {
    bool present = true;
    if (expr->kind == EXPR_ACCESS) {
        present = op->operands[expr->index] != NULL;
        mark_access(&op->binding->operands[expr->index], factors);
    }
    for (int i = 0; i < expr->arg_count; i++) present &= mark_factors(op, expr->arg[i], factors);
    return present;
}

/* Adds one term, summed over the factors that it has. */
static void run_term(const Op *op, const ExprTerm *term, double *const *data, double *result) {
    int count = op->binding->factor_count;
    bool in[32] = {0};
    int64_t at[32] = {0};
    if (!mark_factors(op, term->expr, in)) return;
    mark_access(&op->binding->results[0], in);
    for (;;) {
        Point point = {op, data, at};
        result[offset_of(&point, &op->binding->results[0])] +=
            (term->negative ? -1 : 1) * evaluate(&point, term->expr);
        int b = 0;
        while (b < count && (!in[b] || ++at[b] == op->binding->factors[b].extent)) at[b++] = 0;
        if (b == count) return;
    }
}

static void run(const Op *op, double *const *data, double *result) {
    ExprTerm terms[64];
    int count = expr_terms(op->def->rule->body, terms, 64);
    memset(result, 0, sizeof *result * (size_t)type_elements(op->results[0]->type));
    for (int i = 0; i < count; i++) run_term(op, &terms[i], data, result);
}

/* ---- the check ---- */

typedef struct Case {
    const char *params, *rule;
    const char *shapes[OPERANDS]; // "2,3"; "-" absent; NULL: no more
} Case;

static const OpDef *make(World *world, const Case *test) {
    Array(OpParam) params = {0};
    char *copy = arena_string(world->arena, test->params);
    int attrs = 0;
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *colon = strchr(word, ':');
        if (colon) *colon = 0;
        attrs += colon != NULL;
        array_push(world->arena, &params, (OpParam){word, colon ? PARAM_FLOAT : PARAM_TENSOR});
    }
    OpDef *def = arena_new(world->arena, OpDef);
    *def = (OpDef){
        .name = "op", .param_count = params.count, .attr_count = attrs, .params = params.at};
    Tokens tokens = tokens_of(world->arena, world->diag, (Position){0}, test->rule);
    def->rule = rule_parse(&tokens, params.at, params.count);
    assert_non_null(def->rule);
    return def;
}

static Value *make_value(World *world, const char *shape) {
    Array(int64_t) extent = {0};
    if (!strcmp(shape, "-")) return NULL;
    for (char *next = (char *)shape; *next; next += *next == ',')
        array_push(world->arena, &extent, strtol(next, &next, 10));
    return ir_value(world->module, VALUE_INPUT, "v", (Type){DTYPE_F32, extent.count, extent.at},
                    (Position){0});
}

static unsigned seed = 1;

/* Numbers in (0.2, 1.8), away from where functions break off. */
static double *numbers(World *world, int64_t count) {
    double *data = arena_array(world->arena, double, count);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = 0.2 + 1.6 * (double)(seed >> 8) / (1 << 24);
    }
    return data;
}

static double weighted(const Op *op, double *const *data, const double *dy) {
    double y[MOST], total = 0;
    run(op, data, y);
    for (int64_t i = 0; i < type_elements(op->results[0]->type); i++) total += y[i] * dy[i];
    return total;
}

/* The derived gradient of one operand. */
static void derived(World *world, const Op *op, int operand, double *const *data, const double *dy,
                    double *dx) {
    GradientRule rule = gradient_rule(world->module, op, operand);
    int64_t count = type_elements(op->operands[operand]->type);
    double y[MOST];
    run(op, data, y);
    if (rule.kind == GRADIENT_ZERO) {
        memset(dx, 0, sizeof *dx * (size_t)count);
        return;
    }
    if (rule.kind == GRADIENT_SAME) {
        memcpy(dx, dy, sizeof *dx * (size_t)count);
        return;
    }
    Value *operands[8];
    double *values[8];
    for (int i = 0; i < rule.operand_count; i++) {
        int k = rule.operands[i];
        operands[i] = k < 0 ? op->results[0] : op->operands[k];
        values[i] = k == GRADIENT_OF_RESULT ? (double *)dy : k == THE_RESULT ? y : data[k];
    }
    Op *back = ir_op(world->module, rule.def, operands, rule.operand_count, NULL, (Position){0});
    assert_non_null(back);
    assert_true(type_equal(back->results[0]->type, op->operands[operand]->type));
    run(back, values, dx);
}

static void check(World *world, const Case *test) {
    const OpDef *def = make(world, test);
    Value *operands[OPERANDS];
    double *data[OPERANDS] = {0};
    int count = 0;
    for (; count < OPERANDS && test->shapes[count]; count++) {
        operands[count] = make_value(world, test->shapes[count]);
        if (operands[count]) data[count] = numbers(world, type_elements(operands[count]->type));
    }
    Op *op = ir_op(world->module, def, operands, count, &(Attr){.f = 0.75}, (Position){0});
    assert_non_null(op);
    double *dy = numbers(world, type_elements(op->results[0]->type)), dx[MOST];
    for (int k = 0; k < count; k++) {
        if (!operands[k]) continue;
        derived(world, op, k, data, dy, dx);
        for (int64_t i = 0; i < type_elements(operands[k]->type); i++) {
            double kept = data[k][i], step = 1e-5;
            data[k][i] = kept + step;
            double up = weighted(op, data, dy);
            data[k][i] = kept - step;
            double down = weighted(op, data, dy);
            data[k][i] = kept;
            double expected = (up - down) / (2 * step);
            if (fabs(expected - dx[i]) > 1e-6 * (1 + fabs(expected)))
                fail_msg("%s: operand %d element %lld: %g, differences give %g", test->rule, k,
                         (long long)i, dx[i], expected);
        }
    }
}

static const Case cases[] = {
    {"x w bias", "y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]", {"2,3,4", "5,4", "5"}},
    {"x w bias", "y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]", {"2,4", "3,2,4", "-"}},
    {"x w", "y[b.., m, n] = x[b.., m, k] * w[b.., k, n]", {"2,3,4", "2,4,2"}},
    {"x z", "y[a.., b..] = x[a.., b..] + z[b..]", {"2,3,4", "3,4"}},
    {"x z", "y[a.., b..] = x[a.., b..] - z[b..]", {"2,3", "2,3"}},
    {"x z", "y[a.., b..] = x[a.., b..] * z[b..]", {"2,3,2", "2"}},
    {"x z", "y[a.., b..] = x[a.., b..] * z[b..]", {"2,3", ""}},
    {"x f:f", "y[i..] = f * x[i..]", {"2,3"}},
    {"x", "y[i..] = x[i..] > 1 ? x[i..] : 0", {"3,4"}},
    {"x",
     "y[i..] = 0.5f * x[i..] * (1 + tanhf(0.7978845608f * (x[i..] + 0.044715f * x[i..] * x[i..] * "
     "x[i..])))",
     {"7"}},
    {"x", "y[i..] = x[i..] / (1 + expf(-x[i..]))", {"7"}},
    {"x", "y[i..] = expf(x[i..])", {"2,2"}},
    {"x", "y[] = x[i..]", {"2,3"}},
    {"x", "y[] = x[i..] / size(i)", {"2,3"}},
    {"x", "y[r..] = x[r.., c] * x[r.., c] / size(c)", {"2,3"}},
    {"x", "y[] = x[i..] / size(i) * x[i..] * 0.5f + x[i..] / size(i)", {"2,3"}},
    {"x p", "y[r] = 2 * (x[r, c] + p[])", {"2,3", ""}},
    {"x p", "y[r] = x[r, c] - p[r] + 3 * p[r]", {"2,3", "2"}},
    {"x p", "y[r] = expf(x[r, c]) * p[] + p[]", {"2,3", ""}},
    {"x", "y[(g r), d] = x[g, r, d]", {"2,3,2"}},
    {"x k", "y[b, (g r)] = x[b, (g r)] * k[b, g]", {"2,6", "2,3"}},
    {"x z", "y[i..] = powf(x[i..], z[i..])", {"5", "5"}},
    {"x z", "y[i..] = x[i..] / z[i..]", {"5", "5"}},
    {"x z",
     "y[i..] = hypotf(x[i..], z[i..]) - fmaxf(x[i..], z[i..]) * fminf(x[i..], z[i..])",
     {"5", "5"}},
    {"x", "y[i..] = logf(x[i..]) + sqrtf(x[i..]) * sinf(x[i..]) - cosf(x[i..])", {"5"}},
    {"x", "y[i..] = erff(x[i..]) + log1pf(x[i..]) * atanf(x[i..]) + cbrtf(x[i..])", {"5"}},
    {"x", "y[i..] = tanhf(x[i..])", {"5"}},
    {"x", "y[i..] = sqrtf(1 + x[i..] * x[i..])", {"5"}},
    {"x", "y[i..] = tanf(x[i..] / 2) + sinhf(x[i..]) / coshf(x[i..]) - log2f(x[i..])", {"5"}},
    {"x", "y[i..] = fabsf(x[i..] - 1)", {"5"}},
    {"x z v", "y[b, o] = x[b, i] * z[i, o] - x[b, i] * v[i]", {"2,3", "3,2", "3"}},
    {"x", "y[b] = expf(x[b, i])", {"2,3"}},
    {"x z", "y[b] = expf(x[b, i] * z[i])", {"2,3", "3"}},
    {"x", "y[] = sqrtf(x[b, i]) / size(i)", {"2,3"}},
    {"x", "y[b] = tanhf(x[b, i]) - powf(x[b, i], 3)", {"2,3"}},
    {"x z", "y[a, i] = z[i] / (1 + expf(-x[a, i]))", {"3", "2,3"}},
    {"x z", "y[i] = logf(z[i] * expf(x[i]) + coshf(x[i]) - x[i] * z[i] / 4)", {"5", "5"}},
    {"x z",
     "y[i] = log1pf(expf(x[i] * x[i]) / z[i]) + atanf(expf(x[i])) * tanhf(x[i] * z[i] * x[i])",
     {"5", "5"}},
    {"x", "y[] = 1.0f / size(i) * x[i]", {"5"}},
    {"x z", "y[b] = x[a, b] > 1 ? z[b] : z[b]", {"2,3", "3"}},
    {"x b0", "y[b.., c] = x[b.., c] * b0[c]", {"2,3,2", "2"}},
    {"y dy", "z[i..] = y[i..] * dy[i..]", {"3", "3"}},
};

static void central_differences(void **state) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(*state, &cases[i]);
}

static void same_accesses(const Access *a, const Access *b, int count) {
    for (int i = 0; i < count; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_int_equal(a[i].element.kind, b[i].element.kind);
        assert_int_equal(a[i].dim_count, b[i].dim_count);
        for (int d = 0; d < a[i].dim_count; d++) {
            assert_int_equal(a[i].dims[d].count, b[i].dims[d].count);
            assert_memory_equal(a[i].dims[d].factors, b[i].dims[d].factors,
                                sizeof(int) * (size_t)a[i].dims[d].count);
        }
    }
}

/* A rule that was built is the one that its text reads as. */
static void check_text(World *world, const Rule *built) {
    const Rule *rule = rule_inserted(world->arena, "f", built->text)->rule;
    assert_int_equal(built->form, rule->form);
    assert_int_equal(built->factor_count, rule->factor_count);
    assert_int_equal(built->operand_count, rule->operand_count);
    for (int f = 0; f < rule->factor_count; f++) {
        assert_string_equal(built->factors[f].name, rule->factors[f].name);
        assert_int_equal(built->factors[f].size != NULL, rule->factors[f].size != NULL);
        assert_int_equal(built->factors[f].contracted, rule->factors[f].contracted);
    }
    same_accesses(built->results, rule->results, rule->result_count);
    same_accesses(built->operands, rule->operands, rule->operand_count);
    assert_true(expr_equal(built->body, rule->body));
}

static const char *derived_text(World *world, const Case *test, int operand) {
    Value *operands[OPERANDS];
    int count = 0;
    for (; count < OPERANDS && test->shapes[count]; count++)
        operands[count] = make_value(world, test->shapes[count]);
    GradientRule rule = gradient_rule(
        world->module,
        ir_op(world->module, make(world, test), operands, count, &(Attr){.f = 0.75}, (Position){0}),
        operand);
    if (rule.kind == GRADIENT_RULE) check_text(world, rule.def->rule);
    return rule.kind == GRADIENT_SAME   ? "same"
           : rule.kind == GRADIENT_ZERO ? "zero"
                                        : rule.def->rule->text;
}

static void texts(void **state) {
    World *world = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < OPERANDS && cases[i].shapes[k]; k++)
            if (strcmp(cases[i].shapes[k], "-")) derived_text(world, &cases[i], k);
    assert_string_equal(derived_text(world, &cases[0], 0),
                        "dx[b0, b1, i] = dy[b0, b1, o0] * w[o0, i]");
    assert_string_equal(derived_text(world, &cases[0], 1),
                        "dw[o0, i] = dy[b0, b1, o0] * x[b0, b1, i]");
    assert_string_equal(derived_text(world, &cases[0], 2), "dbias[o0] = dy[b0, b1, o0]");
    assert_string_equal(derived_text(world, &cases[3], 0), "same");
    assert_string_equal(derived_text(world, &cases[4], 1), "dz[b0, b1] = -dy[b0, b1]");
    assert_string_equal(derived_text(world, &cases[7], 0), "dx[i0, i1] = dy[i0, i1] * 0.75f");
    assert_string_equal(derived_text(world, &cases[11], 0), "dx[i0, i1] = dy[i0, i1] * y[i0, i1]");
    assert_string_equal(derived_text(world, &cases[12], 0),
                        "dx[i0, i1] = dy[] size(i0: 2) size(i1: 3)");
    assert_string_equal(derived_text(world, &cases[16], 1), "dp[] = dy[r] * 2 * 3");
    assert_string_equal(derived_text(world, &cases[19], 0),
                        "dx[g, r, d] = dy[(g r), d] size(g: 2)");
    const Case summed = {"x", "y[b] = expf(x[b, i])", {"2,3"}},
               narrow = {"x", "y[i] = expf(x[i]) dtype(y: bf16)", {"3"}};
    assert_string_equal(derived_text(world, &summed, 0), "dx[b, i] = dy[b] * expf(x[b, i])");
    assert_string_equal(derived_text(world, &narrow, 0),
                        "dx[i] = dy[i] * expf(x[i]) dtype(dx: f32)");
    const Case halves = {"x", "y[i] = 1 / 2 * x[i] + 1 / size(i) * x[i]", {"3"}},
               many = {"x", "y[i] = x[i] * 60000 * 60000 - x[i] * 2L / 4", {"3"}};
    assert_string_equal(derived_text(world, &halves, 0),
                        "dx[i] = dy[i] * (1 / 2) + dy[i] * (1 / size(i))");
    assert_string_equal(derived_text(world, &many, 0),
                        "dx[i] = dy[i] * (60000.0f * 60000) - dy[i] * (2.0f / 4)");
    assert_int_equal(
        rule_inserted(world->arena, "f", derived_text(world, &cases[0], 0))->rule->form,
        RULE_PRODUCT);
    assert_int_equal(
        rule_inserted(world->arena, "f", derived_text(world, &cases[2], 1))->rule->form,
        RULE_PRODUCT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(central_differences, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(texts, world_setup, world_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
