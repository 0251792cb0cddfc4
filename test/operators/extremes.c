/* Every operator, forward and gradient, at zeros, tiny and huge numbers, infinities and NaN, against what PyTorch gives (extremes.txt, made by extremes_table.py).
 *
 * A case has operands that are inputs, filled with EXTREMES among ordinary numbers. From each a parameter is taken that is zero, so that a step of SGD at rate 1 leaves
 * the gradient there. The loss is the sum of fixed weights times the results, so that what flows back is finite. Dimensions that a rule allows to cut
 * are named f0 and f1.
 *
 * Usage: extremes TABLE. Prints a line for each disagreement, and "N numbers, M wrong".
 */
#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, WIDE = 8, MOST = N * N, OPERANDS = 3 };

static const float EXTREMES[N] = {0.0f,  -0.0f,  1e-30f,   -1e-30f,   88.0f, -88.0f, 1e4f,  -1e4f,
                                  3e38f, -3e38f, INFINITY, -INFINITY, NAN,   1.0f,   -1.0f, 0.5f};
static const float ORDINARY[] = {0.5f, -1, 2, 0.25f, 1.5f, -0.75f, 3, -2};
static const float WEIGHT[] = {1, -2, 0.5f, 3, 1.5f, -1, 2, 0.75f}, BIAS[] = {0.5f, 0, 1, -1, 2, 3, -2, 1}, SMALL[] = {1, -2, 0.5f, 0.25f, 3, -1};

/* How an operand is filled. */
typedef enum Fill {
    NONE,
    ALONG,    // element i is extreme i
    ACROSS,   // element (i, j) is extreme i
    DOWN,     // element (i, j) is extreme j
    ROWS,     // row i is ordinary but for extreme i in column `at`
    COLUMNS,  // the same of columns
    WEIGHTS,  // WEIGHT, BIAS, SMALL, a ramp
    BIASES,
    SMALLS,
    RAMP,
    PLAIN,    // heads without extremes
    HEADS,    // extreme b in row `at` of heads b
} Fill;

typedef struct Operand {
    Fill fill;
    int at;
    ht_dims shape;
    float scale; // PLAIN
} Operand;

typedef struct Case {
    const char *name;
    Operand operand[OPERANDS];
} Case;

#define SHAPE(...) {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}
#define WHOLE {ALONG, 0, SHAPE(N), 0}
#define PAIR {ACROSS, 0, SHAPE(N, N), 0}, {DOWN, 0, SHAPE(N, N), 0}
#define ROW {ROWS, 2, SHAPE(N, WIDE), 0}
#define HEAD SHAPE(N, 3, 1, 2)
#define USUAL(scale) {PLAIN, 0, HEAD, scale}

#define EXTREME_CASES(X) \
    X(scale, WHOLE) \
    X(relu, WHOLE) \
    X(relu_steep, WHOLE) \
    X(gelu, WHOLE) \
    X(silu, WHOLE) \
    X(exp, WHOLE) \
    X(cast_bf16, WHOLE) \
    X(cast_f64, WHOLE) \
    X(add, PAIR) \
    X(sub, PAIR) \
    X(mul, PAIR) \
    X(div, PAIR) \
    X(sum, ROW) \
    X(mean, ROW) \
    X(softmax, ROW) \
    X(layer_norm, ROW, {WEIGHTS, 0, SHAPE(WIDE), 0}, {BIASES, 0, SHAPE(WIDE), 0}) \
    X(layer_norm_weight, {RAMP, 0, SHAPE(2, N), 0}, WHOLE) \
    X(rms_norm, ROW, {WEIGHTS, 0, SHAPE(WIDE), 0}) \
    X(l2_norm, ROW) \
    X(row_max, ROW) \
    X(cross_entropy_hit, ROW) \
    X(cross_entropy_miss, ROW) \
    X(cross_entropy_ignored, ROW) \
    X(cross_entropy_same, {ACROSS, 0, SHAPE(N, 3), 0}) \
    X(linear, {ROWS, 1, SHAPE(N, 3), 0}, {SMALLS, 0, SHAPE(2, 3), 0}) \
    X(linear_weight, {SMALLS, 0, SHAPE(2, 3), 0}, {ROWS, 1, SHAPE(N, 3), 0}, WHOLE) \
    X(matmul, {SMALLS, 0, SHAPE(2, 3), 0}, {COLUMNS, 1, SHAPE(3, N), 0}) \
    X(attention_whole_q, {HEADS, 1, HEAD, 0}, USUAL(2), USUAL(-1.5f)) \
    X(attention_whole_k, USUAL(1), {HEADS, 1, HEAD, 0}, USUAL(-1.5f)) \
    X(attention_whole_v, USUAL(1), USUAL(2), {HEADS, 1, HEAD, 0}) \
    X(attention_causal_q, {HEADS, 2, HEAD, 0}, USUAL(2), USUAL(-1.5f)) \
    X(attention_causal_k, USUAL(1), {HEADS, 2, HEAD, 0}, USUAL(-1.5f)) \
    X(attention_causal_v, USUAL(1), USUAL(2), {HEADS, 2, HEAD, 0})

enum {
#define X(name, ...) CASE_##name,
    EXTREME_CASES(X)
#undef X
    CASE_COUNT
};

static const Case case_table[CASE_COUNT] = {
#define X(name, ...) [CASE_##name] = {#name, {__VA_ARGS__}},
    EXTREME_CASES(X)
#undef X
};

/* ---- the model ---- */

static ht_tensor arg(int which, int k)
{
    char name[80], zero[80];
    snprintf(name, sizeof name, "%s.%d", case_table[which].name, k);
    snprintf(zero, sizeof zero, "%s.zero%d", case_table[which].name, k);
    ht_dims shape = case_table[which].operand[k].shape;
    return ht_sub(ht_input(name, HT_F32, shape), ht_param(shape, ht_zeros(), zero));
}

/* The sums, or the means, of the rows of x. */
static ht_tensor totals(ht_tensor x, bool mean)
{
    ht_tensor total[N];
    for (int i = 0; i < N; i++) {
        ht_tensor row = ht_slice(x, 0, i, 1);
        total[i] = ht_reshape(mean ? ht_mean(row) : ht_sum(row), ht_shape(1));
    }
    return ht_concat((ht_tensors){N, total}, 0);
}

static ht_tensor element(int which, ht_tensor x)
{
    switch (which) {
    case CASE_scale: return ht_scale(x, -2.5f);
    case CASE_relu: return ht_relu(x);
    case CASE_relu_steep: return ht_scale(ht_relu(x), INFINITY); // what flows back is infinite
    case CASE_gelu: return ht_gelu(x);
    case CASE_silu: return ht_silu(x);
    case CASE_exp: return ht_exp(x);
    case CASE_cast_bf16: return ht_cast(ht_cast(x, HT_BF16), HT_F32);
    default: return ht_cast(ht_cast(x, HT_F64), HT_F32);
    }
}

static ht_tensor pair(int which, ht_tensor x, ht_tensor z)
{
    switch (which) {
    case CASE_add: return ht_add(x, z);
    case CASE_sub: return ht_sub(x, z);
    case CASE_mul: return ht_mul(x, z);
    default: return ht_div(x, z);
    }
}

static ht_tensor row(int which, ht_tensor x)
{
    switch (which) {
    case CASE_softmax: return ht_softmax(x);
    case CASE_layer_norm: return ht_layer_norm(x, arg(which, 1), arg(which, 2), 1e-5f);
    case CASE_layer_norm_weight: return ht_layer_norm(x, arg(which, 1), HT_NONE, 1e-5f);
    case CASE_rms_norm: return ht_rms_norm(x, arg(which, 1), 1e-5f);
    default: return ht_l2_norm(x, 1e-6f);
    }
}

static ht_tensor build(int which)
{
    ht_tensor x = arg(which, 0);
    if (which <= CASE_cast_f64) {
#pragma hspmd dims(x: f0)
        return element(which, x);
    }
    if (which <= CASE_div) {
#pragma hspmd dims(x: f0, f1)
        return pair(which, x, arg(which, 1));
    }
    if (which <= CASE_mean)
        return totals(x, which == CASE_mean);
    if (which <= CASE_l2_norm) {
#pragma hspmd dims(x: f0)
        return row(which, x);
    }
    if (which <= CASE_cross_entropy_same) {
#pragma hspmd dims(x: f0, f1)
        if (which == CASE_row_max)
            return ht_row_max(x);
        char name[80];
        snprintf(name, sizeof name, "%s.target", case_table[which].name);
        return ht_cross_entropy(x, ht_input(name, HT_I32, ht_shape(N)));
    }
    if (which <= CASE_matmul) {
        ht_tensor w = arg(which, 1);
#pragma hspmd dims(x: _, f1)
        return which == CASE_matmul ? ht_matmul(x, w) : ht_linear(x, w, which == CASE_linear ? HT_NONE : arg(which, 2));
    }
#pragma hspmd dims(x: f0)
    return ht_attention(x, arg(which, 1), arg(which, 2), HT_NONE, which >= CASE_attention_causal_q);
}

/* Numbers that differ along the result, the same as in extremes_table.py. */
static ht_tensor loss_of(int which)
{
    char name[80];
    ht_tensor y = build(which);
    snprintf(name, sizeof name, "%s.weight", case_table[which].name);
    return ht_sum(ht_mul(ht_output(y, case_table[which].name), ht_input(name, HT_F32, ht_dims_of(y))));
}

ht_tensor extremes(void)
{
    ht_tensor loss = loss_of(0);
    for (int which = 1; which < CASE_COUNT; which++)
        loss = ht_add(loss, loss_of(which));
    return loss;
}

/* ---- what goes in ---- */

static int64_t count_of(const ht_dims *shape)
{
    int64_t count = shape->rank > 0;
    for (int d = 0; d < shape->rank; d++)
        count *= shape->extent[d];
    return count;
}

static float filled(const Operand *o, int64_t i)
{
    int64_t columns = o->shape.extent[o->shape.rank - 1], r = i / columns, c = i % columns, head = i / 6, within = i % 6;
    float plain = (float)(within * 5 % 7 - 3) * 0.25f;
    switch (o->fill) {
    case ALONG: return EXTREMES[i];
    case ACROSS: return EXTREMES[r];
    case DOWN: return EXTREMES[c];
    case ROWS: return c == o->at ? EXTREMES[r] : ORDINARY[c];
    case COLUMNS: return r == o->at ? EXTREMES[c] : ORDINARY[r];
    case WEIGHTS: return WEIGHT[i];
    case BIASES: return BIAS[i];
    case SMALLS: return SMALL[i];
    case RAMP: return c == 3 ? EXTREMES[13 + r] : (float)(c * 3 % 7) - 2.5f;
    case PLAIN: return o->scale * (within == 0 ? -0.5f : plain);
    default: return within == 2 * o->at ? EXTREMES[head] : plain;
    }
}

static const char *text(const char *format, const char *name, int k)
{
    char *to = malloc(80);
    if (!to)
        exit(1);
    snprintf(to, 80, format, name, k);
    return to;
}

static int64_t result_count(const char *name);

static int case_feed(int which, ht_fed *feed)
{
    const Case *c = &case_table[which];
    int fed = 0;
    for (int k = 0; k < OPERANDS && c->operand[k].fill; k++) {
        float *data = malloc(MOST * sizeof *data);
        for (int64_t i = 0; data && i < count_of(&c->operand[k].shape); i++)
            data[i] = filled(&c->operand[k], i);
        feed[fed++] = ht_feed(text("%s.%d", c->name, k), data);
    }
    float *weight = malloc(MOST * sizeof *weight);
    for (int i = 0; weight && i < MOST; i++)
        weight[i] = ((float)(i * 7 % 5) - 1.5f) * 0.4f;
    feed[fed++] = ht_feed(text("%s.weight", c->name, 0), weight);
    if (which < CASE_cross_entropy_hit || which > CASE_cross_entropy_same)
        return fed;
    int32_t *target = malloc(N * sizeof *target);
    for (int i = 0; target && i < N; i++)
        target[i] = which == CASE_cross_entropy_hit       ? 2
                    : which == CASE_cross_entropy_miss    ? 0
                    : which == CASE_cross_entropy_ignored ? -100
                                                          : 1;
    feed[fed++] = ht_feed(text("%s.target", c->name, 0), target);
    return fed;
}

/* ---- the comparison ---- */

enum { LINE = 1 << 14, LINES = 128 };
static char table[LINES][LINE];
static int line_count, checked, wrong;

static void table_read(const char *path)
{
    FILE *file = fopen(path, "r");
    while (file && line_count < LINES && fgets(table[line_count], LINE, file))
        line_count++;
    if (!file || !line_count || line_count == LINES)
        exit(1);
    fclose(file);
}

/* The numbers of the line that begins with "NAME: ". */
static const char *table_line(const char *name)
{
    size_t length = strlen(name);
    for (int l = 0; l < line_count; l++)
        if (!strncmp(table[l], name, length) && table[l][length] == ':')
            return table[l] + length + 1;
    printf("wrong: the table has no %s\n", name);
    exit(1);
}

static int64_t result_count(const char *name)
{
    int64_t count = 0;
    for (const char *c = table_line(name); *c; c++)
        count += *c == ' ';
    return count;
}

/* Infinities and NaN where they are wanted, and other numbers but for rounding. */
static bool agrees(float found, float wanted)
{
    if (isnan(wanted) || isinf(wanted) || isnan(found) || isinf(found))
        return isnan(wanted) ? isnan(found) : found == wanted;
    return fabsf(found - wanted) <= 1e-5f * fabsf(wanted) + 1e-37f || fabsf(found - wanted) <= 2e-6f;
}

static void compare(const char *name, const float *found)
{
    const char *at = table_line(name);
    int64_t count = result_count(name);
    for (int64_t i = 0; i < count; i++) {
        char *end;
        at += strspn(at, " ");
        float wanted = strtof(at, &end);
        if (*at == '?') {
            at++;
            continue;
        }
        checked++;
        if (!agrees(found[i], wanted) && ++wrong)
            printf("wrong: %s: element %lld is %.8g, not %.8g\n", name, (long long)i, (double)found[i], (double)wanted);
        at = end;
    }
}

static void case_check(ht_session *session, ht_program *program, int which)
{
    const Case *c = &case_table[which];
    float found[MOST];
    ht_fetch(program, c->name, found);
    compare(text("%s_y", c->name, 0), found);
    for (int k = 0; k < OPERANDS && c->operand[k].fill; k++) {
        ht_get_param(session, text("%s.zero%d", c->name, k), found, (size_t)count_of(&c->operand[k].shape));
        compare(text("%s_d%d", c->name, k), found);
    }
}

int main(int argc, char **argv)
{
    static ht_fed feed[CASE_COUNT * (OPERANDS + 2) + 1];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, extremes, ht_sgd(.lr = 1));
    int fed = 0;
    table_read(argc > 1 ? argv[1] : "extremes.txt");
    for (int which = 0; which < CASE_COUNT; which++)
        fed += case_feed(which, feed + fed);
    ht_step_with(program, feed);
    for (int which = 0; which < CASE_COUNT; which++)
        case_check(session, program, which);
    printf("%d numbers, %d wrong\n", checked, wrong);
    return wrong > 0;
}
