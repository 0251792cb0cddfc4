/* What every operator computes, a second time: plain loops in double. */
#include "cases.h"

#include <math.h>
#include <stdlib.h>

typedef const double *const *Operands;

/* A case's extents: of operand k, dimension d. */
static int64_t extent(int which, int k, int d)
{
    return case_table[which].operand[k].shape.extent[d];
}

static int64_t count(int which, int k)
{
    return shape_count(&case_table[which].operand[k].shape);
}

/* Elements of one row, the last dimension of operand 0, and the number of rows. */
static int64_t row(int which)
{
    return extent(which, 0, case_table[which].operand[0].shape.rank - 1);
}

static int64_t rows(int which)
{
    return count(which, 0) / row(which);
}

/* y(r, o) = sum over i of x(r, i) w(o, i) + b(o) */
static void linear(int which, Operands x, double *y, const double *bias)
{
    int64_t inner = row(which), outs = shape_count(&case_table[which].result) / rows(which);
    for (int64_t r = 0; r < rows(which); r++)
        for (int64_t o = 0; o < outs; o++) {
            double sum = bias ? bias[o] : 0;
            for (int64_t i = 0; i < inner; i++)
                sum += x[0][r * inner + i] * x[1][o * inner + i];
            y[r * outs + o] = sum;
        }
}

static void matmul(const double *a, const double *b, double *y, int64_t batch, int64_t m, int64_t k, int64_t n)
{
    for (int64_t at = 0; at < batch; at++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += a[(at * m + i) * k + l] * b[(at * k + l) * n + j];
                y[(at * m + i) * n + j] = sum;
            }
}

static double gelu(double v)
{
    return 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
}

/* One row of a normalisation. */
static void softmax(const double *x, double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i]);
    for (int64_t i = 0; i < n; i++)
        y[i] = exp(x[i]) / sum;
}

static void layer_norm(const double *x, const double *weight, const double *bias, double *y, int64_t n)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(variance + 1e-5) * (weight ? weight[i] : 1) + (bias ? bias[i] : 0);
}

static void rms_norm(const double *x, const double *weight, double *y, int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += x[i] * x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / sqrt(square + 1e-5) * (weight ? weight[i] : 1);
}

static void l2_norm(const double *x, double *y, int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += x[i] * x[i];
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / fmax(sqrt(square), 1e-6);
}

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* The result of one row of the cases of statistics. */
static double stats(int which, Operands x, const double *row, int64_t n)
{
    double y[16], mean = 0, variance = 0, length = dot(row, row, n);
    for (int64_t i = 0; i < n; i++)
        mean += row[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += (row[i] - mean) * (row[i] - mean) / (double)n;
    switch (which) {
    case CASE_layer_norm_mean: return mean;
    case CASE_layer_norm_stats: layer_norm(row, x[1], x[2], y, n); return dot(y, x[3], n) + mean / sqrt(variance + 1e-5);
    case CASE_rms_norm_stats: rms_norm(row, x[1], y, n); return dot(y, x[2], n) / sqrt(length / (double)n + 1e-5);
    default: l2_norm(row, y, n); return 1 / sqrt(length) - dot(y, x[1], n);
    }
}

/* x (b, s, h, d) turned by its position. */
static void rope(int which, const double *x, const double *position, double *y)
{
    int64_t length = extent(which, 0, 1), heads = extent(which, 0, 2), width = extent(which, 0, 3), half = width / 2;
    for (int64_t p = 0; p < extent(which, 0, 0) * length; p++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < half; i++) {
                const double *from = x + (p * heads + h) * width;
                double *to = y + (p * heads + h) * width;
                double angle = (position ? position[p] : (double)(p % length)) * pow(10000, -2.0 * (double)i / (double)width);
                to[i] = from[i] * cos(angle) - from[i + half] * sin(angle);
                to[i + half] = from[i + half] * cos(angle) + from[i] * sin(angle);
            }
}

/* One query's row of attention over the keys that it sees; the sum of its exponentials. Segments: of the queries and the keys, or NULL. */
static double attend(int which, Operands x, const double *segment, const double *key_segment, int causal, int64_t b, int64_t s, int64_t h, double *y)
{
    int64_t length = extent(which, 0, 1), heads = extent(which, 0, 2), width = extent(which, 0, 3);
    int64_t keys = extent(which, 1, 1), groups = extent(which, 1, 2), g = h / (heads / groups);
    const double *q = x[0] + ((b * length + s) * heads + h) * width;
    double mass = 0;
    for (int64_t d = 0; d < width; d++)
        y[d] = 0;
    for (int64_t t = 0; t < keys; t++) {
        const double *k = x[1] + ((b * keys + t) * groups + g) * width, *v = x[2] + ((b * keys + t) * groups + g) * width;
        if ((causal && t > s) || (segment && segment[b * length + s] != key_segment[b * keys + t]))
            continue;
        double score = 0;
        for (int64_t d = 0; d < width; d++)
            score += q[d] * k[d] / sqrt((double)width);
        mass += exp(score);
        for (int64_t d = 0; d < width; d++)
            y[d] += exp(score) * v[d];
    }
    for (int64_t d = 0; d < width; d++)
        y[d] /= mass > 0 ? mass : 1;
    return mass;
}

static void attention(int which, Operands x, const double *segment, const double *key_segment, int causal, double *y)
{
    int64_t length = extent(which, 0, 1), heads = extent(which, 0, 2), width = extent(which, 0, 3);
    for (int64_t b = 0; b < extent(which, 0, 0); b++)
        for (int64_t s = 0; s < length; s++)
            for (int64_t h = 0; h < heads; h++)
                attend(which, x, segment, key_segment, causal, b, s, h, y + ((b * length + s) * heads + h) * width);
}

/* The logarithms of attention's sums, and its rows weighed. */
static void attention_lse(int which, Operands x, double *y)
{
    int64_t length = extent(which, 0, 1), heads = extent(which, 0, 2), width = extent(which, 0, 3);
    double row[16];
    for (int64_t i = 0; i < extent(which, 0, 0) * length * heads; i++) {
        y[i] = log(attend(which, x, NULL, NULL, 1, i / heads / length, i / heads % length, i % heads, row));
        y[i] += dot(row, x[3], width);
    }
}

static double cross_entropy(const double *x, double target, int64_t n)
{
    double mass = 0;
    if (target < 0)
        return 0;
    for (int64_t i = 0; i < n; i++)
        mass += exp(x[i]);
    return log(mass) - x[(int64_t)target];
}

/* y(i, j, k, l) = x(i, k, j, l), extents of x. */
static void swap_middle(const double *x, double *y, const int64_t *n)
{
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++)
                for (int64_t l = 0; l < n[3]; l++)
                    y[((i * n[2] + k) * n[1] + j) * n[3] + l] = x[((i * n[1] + j) * n[2] + k) * n[3] + l];
}

static void swap_ends(const double *x, double *y, const int64_t *n)
{
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++)
                y[(k * n[1] + j) * n[0] + i] = x[(i * n[1] + j) * n[2] + k];
}

/* Joins operands of shape (outer, own, inner) along the middle. */
static void concat(int which, Operands x, double *y)
{
    const Case *c = &case_table[which];
    int64_t at = 0, total = c->result.extent[1], inner = c->result.extent[2];
    for (int k = 0; k < c->count; at += extent(which, k++, 1))
        for (int64_t i = 0; i < c->result.extent[0]; i++)
            for (int64_t j = 0; j < extent(which, k, 1) * inner; j++)
                y[(i * total + at) * inner + j] = x[k][i * extent(which, k, 1) * inner + j];
}

static void rows_run(int which, Operands x, double *y)
{
    int64_t n = row(which);
    for (int64_t r = 0; r < rows(which); r++) {
        const double *from = x[0] + r * n;
        double *to = y + r * n;
        switch (which) {
        case CASE_softmax: softmax(from, to, n); break;
        case CASE_layer_norm: layer_norm(from, x[1], x[2], to, n); break;
        case CASE_layer_norm_bare: layer_norm(from, NULL, NULL, to, n); break;
        case CASE_rms_norm: rms_norm(from, x[1], to, n); break;
        case CASE_rms_norm_bare: rms_norm(from, NULL, to, n); break;
        case CASE_l2_norm: l2_norm(from, to, n); break;
        case CASE_layer_norm_stats: case CASE_layer_norm_mean: case CASE_rms_norm_stats: case CASE_l2_norm_stats: y[r] = stats(which, x, from, n); break;
        default: y[r] = cross_entropy(from, x[1][r], n); break;
        }
    }
}

/* Operators of one element; z is broadcast over leading dimensions. */
static double element(int which, double x, double z, double fixed)
{
    switch (which) {
    case CASE_add: case CASE_add_same: return x + z;
    case CASE_sub: return x - z;
    case CASE_mul: return x * z;
    case CASE_div: return x / exp(z);
    case CASE_scale: return x * -2.5;
    case CASE_relu: return x > 0 ? x : 0;
    case CASE_gelu: return gelu(x);
    case CASE_silu: return x / (1 + exp(-x));
    case CASE_exp: return exp(x);
    case CASE_detach: return x * fixed + z;
    default: return x;
    }
}

static void elements_run(int which, Operands x, Operands fixed, double *y)
{
    int second = case_table[which].count > 1;
    for (int64_t i = 0; i < count(which, 0); i++) {
        int64_t at = second ? i % count(which, 1) : 0;
        y[i] = element(which, x[0][i], second ? x[1][at] : 0, second ? fixed[1][at] : 0);
    }
}

static void sum(int which, Operands x, double *y)
{
    y[0] = 0;
    for (int64_t i = 0; i < count(which, 0); i++)
        y[0] += x[0][i] / (which == CASE_mean ? (double)count(which, 0) : 1);
}

static void embedding(int which, Operands x, double *y)
{
    for (int64_t i = 0; i < count(which, 1); i++)
        for (int64_t e = 0; e < row(which); e++)
            y[i * row(which) + e] = x[0][(int64_t)x[1][i] * row(which) + e];
}

static void slice(int which, Operands x, double *y)
{
    const int64_t *n = case_table[which].result.extent;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1] * n[2]; j++)
            y[i * n[1] * n[2] + j] = x[0][(i * extent(which, 0, 1) + 3) * n[2] + j];
}

void reference_run(int which, Operands x, Operands fixed, double *y)
{
    switch (which) {
    case CASE_linear: linear(which, x, y, x[2]); break;
    case CASE_linear_wide: linear(which, x, y, NULL); break;
    case CASE_matmul: matmul(x[0], x[1], y, 3, 5, 6, 7); break;
    case CASE_matmul_flat: matmul(x[0], x[1], y, 1, 7, 9, 5); break;
    case CASE_sum: case CASE_mean: sum(which, x, y); break;
    case CASE_softmax: case CASE_layer_norm: case CASE_layer_norm_bare: case CASE_rms_norm: case CASE_rms_norm_bare: case CASE_l2_norm:
    case CASE_layer_norm_stats: case CASE_layer_norm_mean: case CASE_rms_norm_stats: case CASE_l2_norm_stats:
    case CASE_cross_entropy: case CASE_cross_entropy_ignored: rows_run(which, x, y); break;
    case CASE_embedding: embedding(which, x, y); break;
    case CASE_rope: rope(which, x[0], NULL, y); break;
    case CASE_rope_positions: rope(which, x[0], x[1], y); break;
    case CASE_attention: case CASE_attention_grouped: attention(which, x, NULL, NULL, 1, y); break;
    case CASE_attention_lse: attention_lse(which, x, y); break;
    case CASE_attention_cross: attention(which, x, NULL, NULL, 0, y); break;
    case CASE_attention_packed: attention(which, x, x[3], x[3], 1, y); break;
    case CASE_attention_segments: attention(which, x, x[3], x[4], 0, y); break;
    case CASE_transpose: swap_ends(x[0], y, case_table[which].operand[0].shape.extent); break;
    case CASE_transpose_inner: swap_middle(x[0], y, case_table[which].operand[0].shape.extent); break;
    case CASE_slice: slice(which, x, y); break;
    case CASE_concat: concat(which, x, y); break;
    case CASE_iota:
        for (int64_t i = 0; i < row(which); i++)
            y[i] = x[0][i] * (double)i;
        break;
    case CASE_tied: linear(which, (const double *[]){x[0], x[0]}, y, NULL); break;
    default: elements_run(which, x, fixed, y); break;
    }
}
