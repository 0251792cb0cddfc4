/* Every operator, forward and gradient, against a reference in double.
 *
 * One model builds all cases of cases.h: the operands are parameters, the loss is the sum over the cases of <random weights, result>. A step of SGD at rate 1 without
 * momentum changes each parameter by its gradient, so one step shows both results (as outputs) and gradients. The results are compared with reference.c, the gradients
 * with its central differences. Dimensions that an operator's rule allows to cut are named f0, f1, f2, f3, so that a strategy cuts each factor in turn.
 *
 * -DCASES=NUMBER selects cases by the bits of a number. Prints a line for each disagreement, `mask` lines that must be the same on any devices, and
 * "N cases, M wrong".
 */
#include <hetu/hetu.h>

#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CASES
#define CASES (~0ull)
#endif

static bool chosen(int which)
{
    return CASES >> which & 1;
}

/* ---- the model ---- */

static ht_dims dims_of(Shape shape)
{
    ht_dims dims = {0};
    dims.rank = shape.rank;
    for (int d = 0; d < shape.rank; d++)
        dims.extent[d] = shape.extent[d];
    return dims;
}

/* Operand k of a case: a parameter, or integers that are fed. */
static ht_tensor arg(int which, int k)
{
    char name[80];
    Operand o = case_table[which].operand[k];
    snprintf(name, sizeof name, "%s.%d", case_table[which].name, k);
    return o.below > 0 ? ht_input(name, HT_I32, dims_of(o.shape)) : ht_param(dims_of(o.shape), ht_zeros(), name);
}

/* A case's loss: the result, weighted by fed numbers. */
static ht_tensor weigh(int which, ht_tensor y)
{
    char name[80];
    snprintf(name, sizeof name, "%s.weight", case_table[which].name);
    ht_tensor weight = ht_input(name, HT_F32, dims_of(case_table[which].result));
    return ht_sum(ht_mul(ht_output(y, case_table[which].name), weight));
}

static ht_tensor build_products(int which)
{
    ht_tensor x = arg(which, 0);
    if (which == CASE_linear) {
        ht_tensor w = arg(which, 1);
#pragma hspmd dims(x: f0, f1, f2)
#pragma hspmd dims(w: f3, f2)
        return ht_linear(x, w, arg(which, 2));
    }
    if (which == CASE_linear_wide) {
        ht_tensor w = arg(which, 1);
#pragma hspmd dims(x: f3, f2)
#pragma hspmd dims(w: f0, f1)
        return ht_linear(x, w, HT_NONE);
    }
    if (which == CASE_matmul) {
        ht_tensor w = arg(which, 1);
#pragma hspmd dims(x: f0, f1, f2)
#pragma hspmd dims(w: f0, f2, f3)
        return ht_matmul(x, w);
    }
    if (which == CASE_matmul_flat) {
        ht_tensor w = arg(which, 1);
#pragma hspmd dims(x: f2, f0)
#pragma hspmd dims(w: f0, f1)
        return ht_matmul(x, w);
    }
#pragma hspmd dims(x: f0, f1)
    return ht_linear(x, x, HT_NONE);
}

static ht_tensor build_elements(int which)
{
    ht_tensor x = arg(which, 0), z = case_table[which].count > 1 ? arg(which, 1) : HT_NONE;
#pragma hspmd dims(x: f0, f1)
    switch (which) {
    case CASE_scale: return ht_scale(x, -2.5f);
    case CASE_relu: return ht_relu(x);
    case CASE_gelu: return ht_gelu(x);
    case CASE_silu: return ht_silu(x);
    case CASE_exp: return ht_exp(x);
    case CASE_add_same: return ht_add(x, z);
    case CASE_detach: return ht_add(ht_mul(x, ht_detach(z)), z);
    case CASE_cast: return ht_cast(ht_cast(x, HT_F64), HT_F32);
    default: return ht_cast(ht_cast(x, HT_BF16), HT_F32);
    }
}

static ht_tensor build_broadcasts(int which)
{
    ht_tensor x = arg(which, 0);
#pragma hspmd dims(x: f0, f1, f2)
    switch (which) {
    case CASE_add: return ht_add(x, arg(which, 1));
    case CASE_sub: return ht_sub(x, arg(which, 1));
    case CASE_mul: return ht_mul(x, arg(which, 1));
    case CASE_div: return ht_div(x, ht_exp(arg(which, 1)));
    case CASE_sum: return ht_sum(x);
    case CASE_mean: return ht_mean(x);
    default: return ht_transpose(x, -1, 0);
    }
}

static ht_tensor build_rows(int which)
{
    ht_tensor x = arg(which, 0);
#pragma hspmd dims(x: f0)
    switch (which) {
    case CASE_layer_norm_bare: return ht_layer_norm(x, HT_NONE, HT_NONE, 1e-5f);
    case CASE_rms_norm_bare: return ht_rms_norm(x, HT_NONE, 1e-5f);
    default: break;
    }
#pragma hspmd dims(x: f0, f1)
    switch (which) {
    case CASE_softmax: return ht_softmax(x);
    case CASE_layer_norm: return ht_layer_norm(x, arg(which, 1), arg(which, 2), 1e-5f);
    case CASE_rms_norm: return ht_rms_norm(x, arg(which, 1), 1e-5f);
    default: return ht_l2_norm(x, 1e-6f);
    }
}

/* The statistics of rows, in most cases with the rows themselves, weighed. */
static ht_tensor build_stats(int which)
{
    ht_tensor x = arg(which, 0);
#pragma hspmd dims(x: f0, f1)
    if (which == CASE_layer_norm_stats) {
        ht_layer_norm_result n = ht_layer_norm_stats(x, arg(which, 1), arg(which, 2), 1e-5f);
        return ht_add(ht_linear(n.y, arg(which, 3), HT_NONE), ht_mul(n.mean, n.rstd));
    }
    if (which == CASE_layer_norm_mean)
        return ht_layer_norm_stats(x, HT_NONE, HT_NONE, 1e-5f).mean;
    if (which == CASE_rms_norm_stats) {
        ht_rms_norm_result n = ht_rms_norm_stats(x, arg(which, 1), 1e-5f);
        return ht_mul(ht_linear(n.y, arg(which, 2), HT_NONE), n.rstd);
    }
    ht_l2_norm_result n = ht_l2_norm_stats(x, 1e-6f);
    return ht_sub(n.rnorm, ht_linear(n.y, arg(which, 1), HT_NONE));
}

static ht_tensor build_attention(int which)
{
    ht_tensor q = arg(which, 0), k = arg(which, 1), v = arg(which, 2);
#pragma hspmd dims(k, v: f0, _, f1)
    if (which == CASE_attention_grouped) {
#pragma hspmd dims(q: f0, _, (f1 f2))
        return ht_attention(q, k, v, HT_NONE, true);
    }
    if (which == CASE_attention_lse) {
#pragma hspmd dims(q: f0, _, (f1 f2))
        ht_attention_result a = ht_attention_stats(q, k, v, HT_NONE, HT_NONE, true);
        return ht_add(a.lse, ht_linear(a.y, arg(which, 3), HT_NONE));
    }
#pragma hspmd dims(q: f0, _, f1)
    if (which == CASE_attention_segments)
        return ht_attention_packed(q, k, v, arg(which, 3), arg(which, 4), false);
    return ht_attention(q, k, v, which == CASE_attention_packed ? arg(which, 3) : HT_NONE, which != CASE_attention_cross);
}

static ht_tensor build_tables(int which)
{
    ht_tensor x = arg(which, 0);
    if (which == CASE_embedding) {
        ht_tensor id = arg(which, 1);
#pragma hspmd dims(x: f2, f3)
#pragma hspmd dims(id: f0, f1)
        return ht_embedding(x, id);
    }
    if (which == CASE_cross_entropy) {
#pragma hspmd dims(x: f0, f1, f2)
        return ht_cross_entropy(x, arg(which, 1));
    }
    if (which == CASE_cross_entropy_ignored) {
#pragma hspmd dims(x: f1, f0)
        return ht_cross_entropy(x, arg(which, 1));
    }
#pragma hspmd dims(x: f0, f1, f2)
    return which == CASE_rope ? ht_rope(x, 10000) : ht_rope_positions(x, arg(which, 1), 10000);
}

static ht_tensor build_shapes(int which)
{
    ht_tensor x = arg(which, 0);
    if (which == CASE_reshape_split) {
#pragma hspmd dims(x: f0, (f1 f2))
        return ht_reshape(x, ht_shape(5, 3, 4));
    }
    if (which == CASE_reshape_merge) {
#pragma hspmd dims(x: f0, f1, f2)
        return ht_reshape(x, ht_shape(15, 4));
    }
    if (which == CASE_transpose_inner) {
#pragma hspmd dims(x: f0, f1, f2, f3)
        return ht_transpose(x, 1, 2);
    }
    if (which == CASE_iota) {
        ht_tensor n = ht_cast(ht_iota(7, HT_I32), HT_F32);
#pragma hspmd dims(x: f0)
        return ht_mul(x, n);
    }
#pragma hspmd dims(x: f0, _, f1)
    if (which == CASE_slice)
        return ht_slice(x, 1, 3, 4);
    return ht_concat(ht_list(x, arg(which, 1), arg(which, 2)), -2);
}

static ht_tensor build(int which)
{
    switch (which) {
    case CASE_linear: case CASE_linear_wide: case CASE_matmul: case CASE_matmul_flat: case CASE_tied: return build_products(which);
    case CASE_add: case CASE_sub: case CASE_mul: case CASE_div: case CASE_sum: case CASE_mean: case CASE_transpose: return build_broadcasts(which);
    case CASE_softmax: case CASE_layer_norm: case CASE_layer_norm_bare: case CASE_rms_norm: case CASE_rms_norm_bare: case CASE_l2_norm:
        return build_rows(which);
    case CASE_layer_norm_stats: case CASE_layer_norm_mean: case CASE_rms_norm_stats: case CASE_l2_norm_stats: return build_stats(which);
    case CASE_attention_lse: case CASE_attention: case CASE_attention_cross: case CASE_attention_grouped: case CASE_attention_packed: case CASE_attention_segments: return build_attention(which);
    case CASE_embedding: case CASE_cross_entropy: case CASE_cross_entropy_ignored: case CASE_rope: case CASE_rope_positions: return build_tables(which);
    case CASE_reshape_split: case CASE_reshape_merge: case CASE_transpose_inner: case CASE_iota: case CASE_slice: case CASE_concat: return build_shapes(which);
    default: return build_elements(which);
    }
}

enum { DROP_ROWS = 13, DROP_WIDTH = 37 };

/* Dropout's mask is random: it is only checked to be one, and to be the same on any devices. */
static ht_tensor dropped(void)
{
    ht_tensor x = ht_param(ht_shape(DROP_ROWS, DROP_WIDTH), ht_ones(), "dropout.0");
#pragma hspmd dims(x: f0, f1)
    return ht_sum(ht_output(ht_dropout(x, 0.25f), "dropout"));
}

ht_tensor operators(void)
{
    ht_tensor loss = dropped();
    for (int which = 0; which < CASE_COUNT; which++)
        if (chosen(which))
            loss = ht_add(loss, weigh(which, build(which)));
    return loss;
}

/* ---- the comparison ---- */

/* A case's numbers: operands and weights of the loss, as floats for the program and as doubles for the reference. */
typedef struct Numbers {
    double *x[OPERANDS], *weight;
    float *f[OPERANDS], *f_weight;
    int32_t *i[OPERANDS];
} Numbers;

static int wrong_count;

static void *memory(int64_t count, size_t size)
{
    void *at = calloc((size_t)count, size);
    if (!at)
        exit(1);
    return at;
}

static uint64_t draw_state = 7;

/* Uniform in [-1, 1). */
static double draw(void)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(draw_state >> 33) / (double)(1u << 30) - 1;
}

static void operand_draw(int which, int k, Numbers *n)
{
    const Operand *o = &case_table[which].operand[k];
    int64_t count = shape_count(&o->shape);
    n->x[k] = memory(count, sizeof(double));
    n->f[k] = memory(count, sizeof(float));
    n->i[k] = memory(count, sizeof(int32_t));
    for (int64_t at = 0; at < count; at++) {
        n->f[k][at] = (float)(1.5 * draw());
        n->i[k][at] = o->below ? (int32_t)((draw() + 1) / 2 * o->below) % o->below : 0;
        if (which == CASE_cross_entropy_ignored && at % 3 == 1)
            n->i[k][at] = -100;
        n->x[k][at] = o->below ? n->i[k][at] : n->f[k][at];
    }
}

static void numbers_draw(int which, Numbers *n)
{
    const Case *c = &case_table[which];
    int64_t count = shape_count(&c->result);
    n->weight = memory(count, sizeof(double));
    n->f_weight = memory(count, sizeof(float));
    for (int64_t at = 0; at < count; at++)
        n->weight[at] = n->f_weight[at] = (float)draw();
    for (int k = 0; k < c->count; k++)
        operand_draw(which, k, n);
}

/* Compares `count` elements; the allowed error is relative to the largest. */
static void compare(const char *name, const char *what, const float *found, const double *wanted, int64_t count, double tolerance)
{
    double largest = 0, worst = 0;
    int64_t where = 0;
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(found[i] - wanted[i]);
        largest = fmax(largest, fabs(wanted[i]));
        if (!(error <= worst)) {
            worst = error;
            where = i;
        }
    }
    if (worst <= tolerance * (1 + largest))
        return;
    printf("wrong: %s: %s: element %lld is %.8g, not %.8g\n", name, what, (long long)where, (double)found[where], wanted[where]);
    wrong_count++;
}

static double tolerance_of(int which)
{
    return which == CASE_cast_bf16 ? 1e-2 : 1e-5;
}

static void result_check(ht_program *program, int which, const Numbers *n)
{
    const Case *c = &case_table[which];
    int64_t count = shape_count(&c->result);
    float *found = memory(count, sizeof *found);
    double *wanted = memory(count, sizeof *wanted);
    ht_fetch(program, c->name, found);
    reference_run(which, (const double *const *)n->x, (const double *const *)n->x, wanted);
    compare(c->name, "result", found, wanted, count, tolerance_of(which));
    free(found);
    free(wanted);
}

/* The weighted result with one element of operand k moved. */
static double loss_moved(int which, const Numbers *n, int k, int64_t at, double by, double *y)
{
    const Case *c = &case_table[which];
    double *moved = memory(shape_count(&c->operand[k].shape), sizeof *moved), loss = 0;
    const double *x[OPERANDS];
    memcpy(x, n->x, sizeof x);
    memcpy(moved, n->x[k], (size_t)shape_count(&c->operand[k].shape) * sizeof *moved);
    moved[at] += by;
    x[k] = moved;
    reference_run(which, x, (const double *const *)n->x, y);
    for (int64_t i = 0; i < shape_count(&c->result); i++)
        loss += n->weight[i] * y[i];
    free(moved);
    return loss;
}

/* The gradient of operand k: what the step took off the parameter, against central differences. */
static void gradient_check(ht_session *session, int which, const Numbers *n, int k)
{
    const Case *c = &case_table[which];
    const double step = 1e-5;
    int64_t count = shape_count(&c->operand[k].shape);
    char name[80], what[20];
    float *after = memory(count, sizeof *after);
    double *wanted = memory(count, sizeof *wanted), *y = memory(shape_count(&c->result), sizeof *y);
    snprintf(name, sizeof name, "%s.%d", c->name, k);
    snprintf(what, sizeof what, "gradient %d", k);
    ht_get_param(session, name, after, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        wanted[i] = (loss_moved(which, n, k, i, step, y) - loss_moved(which, n, k, i, -step, y)) / (2 * step);
        after[i] = n->f[k][i] - after[i];
    }
    compare(c->name, what, after, wanted, count, tolerance_of(which));
    free(after);
    free(wanted);
    free(y);
}

/* What goes in: parameters are set, inputs join the feeds. */
static int case_feed(ht_session *session, int which, const Numbers *n, ht_fed *feed)
{
    const Case *c = &case_table[which];
    int fed = 0;
    for (int k = 0; k < c->count; k++) {
        char *name = memory(80, 1);
        snprintf(name, 80, "%s.%d", c->name, k);
        if (c->operand[k].below)
            feed[fed++] = ht_feed(name, n->i[k]);
        else
            ht_set_param(session, name, n->f[k], (size_t)shape_count(&c->operand[k].shape));
    }
    char *name = memory(80, 1);
    snprintf(name, 80, "%s.weight", c->name);
    feed[fed++] = ht_feed(name, n->f_weight);
    return fed;
}

static void dropout_check(ht_session *session, ht_program *program)
{
    enum { COUNT = DROP_ROWS * DROP_WIDTH };
    float y[COUNT], after[COUNT];
    int zeros = 0, bad = 0;
    unsigned mask = 0;
    ht_fetch(program, "dropout", y);
    ht_get_param(session, "dropout.0", after, COUNT);
    for (int i = 0; i < COUNT; i++) {
        zeros += y[i] == 0;
        mask = mask * 31 + (y[i] == 0);
        bad += (y[i] != 0 && fabsf(y[i] - 1 / 0.75f) > 1e-6f) || fabsf(1 - after[i] - y[i]) > 1e-6f;
    }
    printf("mask %08x\n", mask);
    if (bad || abs(zeros - COUNT / 4) > 40) {
        printf("wrong: dropout: %d of %d are zero, %d are neither\n", zeros, COUNT, bad);
        wrong_count++;
    }
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, operators, ht_sgd(.lr = 1));
    static Numbers numbers[CASE_COUNT];
    static ht_fed feed[CASE_COUNT * OPERANDS + 1];
    int fed = 0, cases = 0;
    for (int which = 0; which < CASE_COUNT; which++) {
        numbers_draw(which, &numbers[which]);
        if (chosen(which))
            fed += case_feed(session, which, &numbers[which], feed + fed);
    }
    ht_step_with(program, feed);
    for (int which = 0; which < CASE_COUNT; which++) {
        if (!chosen(which))
            continue;
        cases++;
        result_check(program, which, &numbers[which]);
        for (int k = 0; k < case_table[which].count; k++)
            if (!case_table[which].operand[k].below)
                gradient_check(session, which, &numbers[which], k);
    }
    dropout_check(session, program);
    printf("%d cases, %d wrong\n", cases, wrong_count);
    return wrong_count > 0;
}
