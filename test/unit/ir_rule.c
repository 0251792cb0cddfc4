/* Rules: every form parses, binds and infers types; errors point at the token. */
#include "rule/gradient.h"
#include "ir/module.h"
#include "syntax/tokens.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct World {
    Arena *arena;
    Diag *diag;
    Module *module;
    FILE *out;
    char *text; // what the diagnostics printed
    size_t size;
} World;

static int world_setup(void **state) {
    World *world = calloc(1, sizeof *world);
    world->arena = arena_create();
    world->out = open_memstream(&world->text, &world->size);
    world->diag = diag_create(world->arena, world->out);
    world->module = module_create(world->arena, world->diag, "model");
    *state = world;
    return 0;
}

static int world_teardown(void **state) {
    World *world = *state;
    fclose(world->out);
    free(world->text);
    arena_destroy(world->arena);
    free(world);
    return 0;
}

static const char *printed(World *world) {
    fflush(world->out);
    return world->text;
}

/* An operator from a list of parameters such as "x w? dim:i shape:s" and a rule. */
static const OpDef *make(World *world, const char *params, const char *text) {
    Array(OpParam) list = {0};
    char *copy = arena_string(world->arena, params);
    int attrs = 0;
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *colon = strchr(word, ':');
        ParamKind kind = PARAM_TENSOR;
        if (colon) {
            *colon = 0;
            kind = colon[1] == 'i'   ? PARAM_INT
                   : colon[1] == 'f' ? PARAM_FLOAT
                   : colon[1] == 's' ? PARAM_SHAPE
                   : colon[1] == 'd' ? PARAM_DTYPE
                                     : PARAM_TENSORS;
        }
        attrs += kind != PARAM_TENSOR && kind != PARAM_TENSORS;
        array_push(world->arena, &list, (OpParam){word, kind});
    }
    Tokens tokens = tokens_of(world->arena, world->diag, (Position){"model.c", 3, 18}, text);
    const Rule *rule = rule_parse(&tokens, list.at, list.count);
    if (!rule) return NULL;
    OpDef *def = arena_new(world->arena, OpDef);
    *def = (OpDef){.name = "op",
                   .param_count = list.count,
                   .attr_count = attrs,
                   .params = list.at,
                   .rule = rule};
    return def;
}

static Value *tensor(World *world, DType dtype, int rank, ...) {
    int64_t *extent = arena_array(world->arena, int64_t, rank + 1);
    va_list list;
    va_start(list, rank);
    for (int d = 0; d < rank; d++) extent[d] = va_arg(list, int);
    va_end(list);
    return ir_value(world->module, VALUE_INPUT, "v", (Type){dtype, rank, extent},
                    (Position){"model.c", 10 + rank, 1});
}

#define F32(...)                                                                                   \
    tensor(world, DTYPE_F32, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), __VA_ARGS__)
#define SCALAR() tensor(world, DTYPE_F32, 0)

static Op *call(World *world, const OpDef *def, const Attr *attrs, int count, ...) {
    Value *operands[8];
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++) operands[i] = va_arg(list, Value *);
    va_end(list);
    return ir_op(world->module, def, operands, count, attrs, (Position){"model.c", 20, 5});
}

static void check_shape(const Value *value, int rank, ...) {
    va_list list;
    va_start(list, rank);
    assert_int_equal(value->type.rank, rank);
    for (int d = 0; d < rank; d++) assert_int_equal(value->type.extent[d], va_arg(list, int));
    va_end(list);
}

/* ---- parsing ---- */

static void products(void **state) {
    World *world = *state;
    const OpDef *def =
        make(world, "x w bias", "y[b.., o..] = x[b.., i] * w[o.., i]\\\n   + ?bias[o..]");
    assert_non_null(def);
    assert_string_equal(def->rule->text, "y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]");
    assert_int_equal(def->rule->form, RULE_PRODUCT);
    assert_int_equal(def->rule->factor_count, 3);
    assert_true(def->rule->factors[2].contracted);
    assert_int_equal(def->rule->factors[2].reduction, REDUCE_SUM);
    Op *op = call(world, def, NULL, 3, F32(4, 8, 6), F32(5, 6), F32(5));
    check_shape(op->results[0], 3, 4, 8, 5);
    op = call(world, def, NULL, 3, F32(4, 6), F32(3, 5, 6), NULL);
    check_shape(op->results[0], 3, 4, 3, 5);
    assert_int_equal(op->binding->operands[2].rank, 0);
    assert_int_equal(op->binding->factor_count, 4);
}

static void broadcasts(void **state) {
    World *world = *state;
    const OpDef *def = make(world, "x z", "y[a.., b..] = x[a.., b..] + z[b..]");
    check_shape(call(world, def, NULL, 2, F32(2, 3, 4), F32(3, 4))->results[0], 3, 2, 3, 4);
    check_shape(call(world, def, NULL, 2, F32(2, 3), SCALAR())->results[0], 2, 2, 3);
    assert_null(call(world, def, NULL, 2, F32(4), F32(3, 4)));
    assert_non_null(
        strstr(printed(world), "x has 1 dimension, but the rule's x[a.., b..] needs at least 2"));
}

static void transposes(void **state) {
    World *world = *state;
    const OpDef *def = make(world, "x d0:i d1:i",
                            "y[a..{d0}, q, m..{d1 - d0 - 1}, p, z..] = x[a.., p, m.., q, z..]");
    Attr attrs[2] = {{.i = 1}, {.i = 3}};
    check_shape(call(world, def, attrs, 1, F32(2, 3, 4, 5, 6))->results[0], 5, 2, 5, 4, 3, 6);
    attrs[1].i = 1;
    assert_null(call(world, def, attrs, 1, F32(2, 3, 4, 5, 6)));
    assert_non_null(strstr(printed(world), "the number of dimensions that 'm..' stands for is -1"));
}

static void merged_factors(void **state) {
    World *world = *state;
    const OpDef *def = make(world, "q k",
                            "y[b.., s, (g r), d] = attention(q[b.., s, (g r), d], k[b.., t, g, d]) "
                            "replicate(s, t, d) kernel(f) grad(none)");
    Op *op = call(world, def, NULL, 2, F32(2, 7, 8, 16), F32(2, 9, 4, 16));
    check_shape(op->results[0], 4, 2, 7, 8, 16);
    assert_int_equal(op->binding->results[0].dims[2].count, 2);
    assert_int_equal(op->binding->factors[op->binding->results[0].dims[2].factors[1]].extent, 2);
    assert_null(call(world, def, NULL, 2, F32(2, 7, 8, 16), F32(2, 9, 3, 16)));
    assert_non_null(
        strstr(printed(world), "dimension 2 of q has extent 8, which is not a multiple of 3"));
}

static void sizes_and_dtypes(void **state) {
    World *world = *state;
    const OpDef *iota =
        make(world, "n:i to:d",
             "y[i] = iota() size(i: 2 * n) dtype(y: to) offset(i) kernel(f) grad(none)");
    Attr attrs[2] = {{.i = 5}, {.i = DTYPE_I64}};
    Op *op = call(world, iota, attrs, 0);
    check_shape(op->results[0], 1, 10);
    assert_int_equal(op->results[0]->type.dtype, DTYPE_I64);
    const OpDef *sum = make(world, "x", "y[] = x[i..] / size(i)");
    check_shape(call(world, sum, NULL, 1, F32(2, 3))->results[0], 0);
}

static void variadic(void **state) {
    World *world = *state;
    const OpDef *concat = make(world, "xs:t dim:i",
                               "y[a..{dim}, n, z..] = concat(xs[][a.., m, z..]) size(n: +m) "
                               "replicate(n, m) kernel(f) grad(none)");
    Attr attr = {.i = 1};
    Op *op = call(world, concat, &attr, 3, F32(2, 3, 4), F32(2, 5, 4), F32(2, 1, 4));
    check_shape(op->results[0], 3, 2, 9, 4);
    assert_int_equal(op->binding->operand_count, 3);
    assert_int_equal(op->binding->operands[2].access, 0);
    assert_null(call(world, concat, &attr, 2, F32(2, 3, 4), F32(2, 5, 5)));
    assert_non_null(
        strstr(printed(world), "dimension 2 of xs has extent 5, but dimension 2 of xs has 4"));
}

static void views(void **state) {
    World *world = *state;
    const OpDef *reshape = make(world, "x dims:s", "y = reshape(x) shape(dims)");
    Attr attr = {.count = 4, .ints = (int64_t[]){4, 6, 8, -1}};
    Op *op = call(world, reshape, &attr, 1, F32(4, 6, 24));
    check_shape(op->results[0], 4, 4, 6, 8, 3);
    assert_int_equal(op->binding->factor_count, 4);
    assert_int_equal(op->binding->operands[0].dims[2].count, 2);
    attr = (Attr){.count = 2, .ints = (int64_t[]){4, 6}};
    op = call(world, reshape, &attr, 1, F32(6, 4));
    assert_int_equal(op->binding->factor_count, 4);
    attr.count = 1;
    assert_null(call(world, reshape, &attr, 1, F32(6, 4)));
    assert_non_null(
        strstr(printed(world), "f32[6, 4] has 24 elements, which the shape [4] cannot hold"));
}

static void sharing(void **state) {
    World *world = *state;
    const OpDef *def = make(world, "x f:f", "y[i..] = f * x[i..]");
    Attr attr = {.f = 2};
    Op *a = call(world, def, &attr, 1, F32(2, 3)), *b = call(world, def, &attr, 1, F32(2, 3)),
       *c = call(world, def, &(Attr){.f = 3}, 1, F32(2, 3));
    assert_ptr_equal(a->binding, b->binding);
    assert_ptr_equal(a->attrs, b->attrs);
    assert_ptr_not_equal(a->attrs, c->attrs);
}

static void linearity(void **state) {
    World *world = *state;
    int group[3];
    rule_linear(make(world, "x z", "y[i..] = x[i..] - z[i..]")->rule, group);
    assert_true(group[0] == 1 && group[1] == 1);
    rule_linear(make(world, "x w", "y[b, o] = x[b, i] * w[o, i]")->rule, group);
    assert_true(group[0] == 1 && group[1] == 2);
    rule_linear(make(world, "x", "y[i..] = expf(x[i..])")->rule, group);
    assert_int_equal(group[0], 0);
    rule_linear(make(world, "x", "y[i..] = x[i..] + 1")->rule, group);
    assert_int_equal(group[0], 0);
    rule_linear(make(world, "x z", "y[i..] = x[i..] / z[i..]")->rule, group);
    assert_true(group[0] == 1 && group[1] == 0);
}

/* ---- errors ---- */

typedef struct BadRule {
    const char *params, *text;
    int line, column; // of the error; the text begins at 3:18
    const char *message;
} BadRule;

static const BadRule bad_rules[] = {
    {"x", "y[i..] = x[i..", 3, 32, "expected ',' between two indices, not the end"},
    {"x", "y[i..] = z[i..]", 3, 27, "'z' is not a tensor parameter of the function"},
    {"x", "y[i..] = x[i..] + q", 3, 36, "'q' is not a tensor parameter of the function"},
    {"x", "y[i..] = tanf(x[i..]) +\n  exq(x[i..])", 4, 3, "a rule's body cannot call 'exq'"},
    {"x", "y[i..] = f(x[i..]) kernal(f)", 3, 37, "'kernal' is not a clause of a rule"},
    {"x", "y[r..] = f(x[r.., c]) kernel(f)", 3, 36, "the results lack the factor 'c'"},
    {"x", "y[r.., k] = f(x[r..]) kernel(f)", 3, 25, "no operand has the factor 'k'"},
    {"x", "y[r..] = f(x[r..]) kernel(f) replicate(s)", 3, 57, "'s' is not a factor of the rule"},
    {"x", "y[i..] = x[i]", 3, 29, "the factor 'i' is written once with '..' and once without"},
    {"x", "y[i] = x[i, i]", 3, 25, "the factor 'i' stands twice"},
    {"x", "y[i..] = f(x[i..])", 3, 18, "needs the clause kernel(f)"},
    {"x w", "y[i..] = x[i..]", 3, 18, "the rule does not mention the parameter 'w'"},
    {"x", "x[i..] = x[i..]", 3, 18, "the result 'x' has the name of a parameter"},
    {"x", "y[i..], z[i..] = x[i..]", 3, 26, "a body gives one result"},
    {"x", "y = reshape(x)", 3, 18, "a view needs the clause shape"},
    {"x", "y[i..] = powf(x[i..])", 3, 27, "powf takes 2 arguments"},
    {"x", "y[i..] = f(x[i..]) kernel(f) dtype(y: f31)", 3, 56, "'f31' is not an element type"},
    {"x", "y[i..] = f(x[i..]) kernel(f) inplace(z: x)", 3, 55, "'z' is not a result of the rule"},
    {"x", "y[i..] = f(x[i..]) kernel(f) reduction(v)", 3, 57, "expected '+:' or 'max:'"},
    {"x", "y[i..] = f(x[i..]) kernel(f) reduction(+: i)", 3, 20, "which every result has"},
    {"x", "y[a..{n}, b..] = x[a.., b..]", 3, 24, "'n' is not an integer parameter"},
    {"x", "y[i..] = x[i..] kernel(f)", 3, 41, "the clause kernel would say it twice"},
    {"xs:t", "y[i..] = f(xs[i..]) kernel(f)", 3, 29, "write xs[][...]"},
    {"x", "y[i..] = x[i..] @ 2", 3, 34, "expected an operator or a clause, not '@'"},
    {"x", "y[i..] = f(x[i..]) kernel(f) kernel(g)", 3, 54,
     "the rule names a kernel for this already: 'f'"},
    {"x", "y[i..] = f(x[i..]) kernel(f) grad(g) grad(none)", 3, 55,
     "the clause grad stands here a second time"},
    {"x", "y[i..] = f(x[i..]) kernel(f) operations(3) operations(4)", 3, 61,
     "the clause operations stands here a second time"},
    {"x", "y[r.., c] = f(x[r.., c]) kernel(f) replicate(c) replicate(r, c)", 3, 79,
     "this clause says something of 'c' a second time"},
    {"x", "y[r..] = f(x[r.., c]) kernel(f) reduction(+: c) reduction(max: c)", 3, 81,
     "this clause says something of 'c' a second time"},
    {"x", "y[i..] = f(x[i..]) kernel(f) reads(x: 3) reads(x: 4)", 3, 65,
     "this clause says something of 'x' a second time"},
    {"x", "y[i..] = f(x[i..]) kernel(f) dtype(y: f32, y: f64)", 3, 61,
     "this clause says something of 'y' a second time"},
    {"x", "y[i..] = f(x[i..]) kernel(f) types(f32, f32)", 3, 58,
     "this clause says something of 'f32' a second time"},
    {"x", "y[i..] = f(x[i..]) kernel(f) linear(x) linear(x)", 3, 64,
     "this clause says something of 'x' a second time"},
    {"x", "y[i..] = f(x[i..]) kernel(f) inplace(y: x) inplace(y: x)", 3, 69,
     "this clause says something of 'y' a second time"},
    {"x", "y[i..] = x[i..] * x[i..] linear(x)", 3, 18,
     "the body is not linear in the operands of the clause linear(x, ...)"},
    {"x", "", 3, 18, "expected a result such as y[i], not the end"},
};

static void errors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_rules / sizeof *bad_rules; i++) {
        const BadRule *bad = &bad_rules[i];
        void *inner;
        world_setup(&inner);
        World *world = inner;
        char place[64];
        snprintf(place, sizeof place, "model.c:%d:%d: error: ", bad->line, bad->column);
        assert_null(make(world, bad->params, bad->text));
        if (!strstr(printed(world), place) || !strstr(printed(world), bad->message))
            fail_msg("rule %s\nexpected %s%s\nprinted %s", bad->text, place, bad->message,
                     printed(world));
        world_teardown(&inner);
    }
}

static void shape_errors(void **state) {
    World *world = *state;
    const OpDef *def = make(world, "x w", "y[b.., o] = x[b.., i] * w[o, i]");
    assert_null(call(world, def, NULL, 2, F32(4, 8, 6), F32(5, 7)));
    assert_non_null(
        strstr(printed(world), "model.c:20:5: error: op: dimension 1 of w has extent 7, but "
                               "dimension 2 of x has 6; they must be equal (factor i)"));
    assert_non_null(strstr(printed(world), "model.c:13:1: note: x is made here: f32[4, 8, 6]"));
    assert_non_null(strstr(printed(world), "model.c:12:1: note: w is made here: f32[5, 7]"));
    assert_null(call(world, def, NULL, 2, F32(4, 8), NULL));
    assert_non_null(strstr(printed(world), "the tensor 'w' is absent, and may not be"));
    assert_null(call(world, def, NULL, 1, F32(4, 8)));
    assert_non_null(strstr(printed(world), "op takes 2 tensors, not 1"));
}

/* ---- expressions ---- */

static void leaf(Text *out, const Expr *expr, void *context) {
    const Rule *rule = context;
    text_string(out, expr->kind == EXPR_ACCESS ? rule->operands[expr->index].name
                     : expr->kind == EXPR_CALL ? expr->spelling
                                               : "n");
}

static const char *derivative(World *world, const char *text, int operand) {
    const Rule *rule = make(world, operand ? "x z" : strstr(text, "z[") ? "x z" : "x", text)->rule;
    Text out = {.arena = world->arena};
    expr_print(&out, expr_derivative(world->arena, rule->body, operand, 0), leaf, (void *)rule);
    return text_bytes(&out);
}

static void derivatives(void **state) {
    World *world = *state;
    assert_string_equal(derivative(world, "y[i..] = expf(x[i..])", 0), "expf(x)");
    assert_string_equal(derivative(world, "y[i..] = 3 * x[i..] - z[i..]", 1), "-1");
    assert_string_equal(derivative(world, "y[i..] = x[i..] / z[i..]", 0), "1.0f / z");
    assert_string_equal(derivative(world, "y[i..] = x[i..] / z[i..]", 1), "-(x / z / z)");
    assert_string_equal(derivative(world, "y[i..] = x[i..] > 0 ? x[i..] : 0", 0), "x > 0 ? 1 : 0");
    assert_string_equal(derivative(world, "y[i..] = tanh(2 * x[i..])", 0),
                        "2 * (1 - tanh(2 * x) * tanh(2 * x))");
    assert_string_equal(derivative(world, "y[i..] = sqrt(x[i..])", 0), "0.5 / sqrt(x)");
    assert_string_equal(derivative(world, "y[i..] = fmaxf(x[i..], z[i..])", 1),
                        "x == z ? 0.5f : (x > z ? 0 : 1)");
    assert_string_equal(derivative(world, "y[i..] = z[i..] * fabsf(x[i..])", 1),
                        "x > 0 ? z : (x < 0 ? -z : 0)");
    assert_string_equal(derivative(world, "y[i..] = powf(x[i..], 2)", 0), "2 * powf(x, 2 - 1)");
    assert_string_equal(derivative(world, "y[i..] = powf(x[i..], 0)", 0), "0");
    assert_string_equal(derivative(world, "y[i..] = powf(x[i..], z[i..])", 1),
                        "x == 0 ? (z >= 0 ? 0 : powf(x, z) * logf(x)) : powf(x, z) * logf(x)");
    assert_string_equal(derivative(world, "y[i..] = 1 / (1 + expf(-x[i..]))", 0),
                        "1 / (1 + expf(-x)) / (1 + 1.0f / expf(-x))");
    assert_string_equal(derivative(world, "y[i..] = (x[i..] > 0) * x[i..] / size(i)", 0),
                        "1.0f * (x > 0) / n");
    assert_string_equal(derivative(world, "y[i..] = logf(1 + expf(x[i..]))", 0),
                        "1.0f / (1 + 1.0f / expf(x))");
    assert_string_equal(
        derivative(world, "y[i..] = tanhf(x[i..] * x[i..])", 0),
        "1 - tanhf(x * x) * tanhf(x * x) != 0 ? (x + x) * (1 - tanhf(x * x) * tanhf(x * x)) : 0");
    assert_string_equal(derivative(world, "y[i..] = x[i..] / (z[i..] * z[i..])", 1),
                        "-((x / (z * z) != 0 ? (z + z) * (x / (z * z)) : 0) / (z * z))");
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(products),         TEST(broadcasts),   TEST(transposes),  TEST(merged_factors),
        TEST(sizes_and_dtypes), TEST(variadic),     TEST(views),       TEST(sharing),
        TEST(linearity),        TEST(shape_errors), TEST(derivatives), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
