/* Convolutions and their gradients: by oneDNN where it is there, else by matrix products (sgemm).
 *
 * A product takes the windows of one image as columns: a matrix (inputs * p * q, h * w). Its column
 * (h, w) has the elements that the weights meet there. With weights (outputs, inputs * p * q):
 *
 *     result = weights columns,   columns' gradient = weightsᵀ result,   weights' = result columnsᵀ
 *
 * f64 is summed element by element. */
#include "device/convolution.h"
#include "cpu/cpu.h"
#include "cpu/onednn.h"
#include "cpu/rows.h"
#include "operators/kernels.h"

#include <cblas.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- windows as columns ---- */

/* Consecutive windows [first, end) for which a position of the weights meets the image. */
typedef struct Span {
    int64_t first, end;
} Span;

/* Returns the windows along dimension d whose position p lies inside the image. */
static Span windows_inside(const Convolution *c, int d, int64_t p) {
    int64_t shift = p * c->dilation[d] - c->padding[d], stride = c->stride[d];
    int64_t first = shift < 0 ? (stride - 1 - shift) / stride : 0;
    int64_t last = c->image[d] - 1 - shift; // the largest start that is inside, before the stride
    int64_t end = last < 0 ? 0 : last / stride + 1;
    if (end > c->result[d]) end = c->result[d];
    return (Span){first < end ? first : end, end};
}

static int64_t image_size(const Convolution *c) { return c->inputs * c->image[0] * c->image[1]; }
static int64_t result_area(const Convolution *c) { return c->result[0] * c->result[1]; }
static int64_t column_size(const Convolution *c) { return c->inputs * c->window[0] * c->window[1]; }

/* Returns whether the columns of an image are the image itself: windows of one element. */
static bool columns_are_image(const Convolution *c) {
    bool same = true;
    for (int d = 0; d < 2; d++)
        same &= c->window[d] == 1 && c->stride[d] == 1 && c->padding[d] == 0 &&
                c->result[d] == c->image[d];
    return same;
}

/* Row `r` of the columns: one input channel and one position of the weights. */
typedef struct ColumnRow {
    int64_t start; // element of the image at window (0, 0); may lie outside the image
    Span down, across;
} ColumnRow;

static ColumnRow column_row(const Convolution *c, int64_t r) {
    int64_t q = r % c->window[1], p = r / c->window[1] % c->window[0],
            i = r / (c->window[0] * c->window[1]);
    int64_t j = p * c->dilation[0] - c->padding[0], k = q * c->dilation[1] - c->padding[1];
    return (ColumnRow){(i * c->image[0] + j) * c->image[1] + k, windows_inside(c, 0, p),
                       windows_inside(c, 1, q)};
}

/* Writes the columns of one image. */
static void fill_columns(const Convolution *c, float *columns, const float *image) {
    int64_t area = result_area(c), width = c->result[1];
#pragma omp parallel for schedule(static) if (column_size(c) * area > CPU_PARALLEL)
    for (int64_t r = 0; r < column_size(c); r++) {
        ColumnRow row = column_row(c, r);
        float *to = columns + r * area;
        memset(to, 0, (size_t)area * sizeof(float));
        for (int64_t h = row.down.first; h < row.down.end; h++) {
            const float *from = image + row.start + h * c->stride[0] * c->image[1];
            for (int64_t w = row.across.first; w < row.across.end; w++)
                to[h * width + w] = from[w * c->stride[1]];
        }
    }
}

/* Sets an image to the sums of the columns' elements that it met. */
static void sum_columns(const Convolution *c, float *image, const float *columns) {
    int64_t area = result_area(c), width = c->result[1], positions = c->window[0] * c->window[1];
    int64_t plane = c->image[0] * c->image[1];
#pragma omp parallel for schedule(static) if (column_size(c) * area > CPU_PARALLEL)
    for (int64_t i = 0; i < c->inputs; i++) {
        memset(image + i * plane, 0, (size_t)plane * sizeof(float));
        for (int64_t r = i * positions; r < (i + 1) * positions; r++) {
            ColumnRow row = column_row(c, r);
            for (int64_t h = row.down.first; h < row.down.end; h++) {
                float *to = image + row.start + h * c->stride[0] * c->image[1];
                const float *from = columns + r * area + h * width;
                for (int64_t w = row.across.first; w < row.across.end; w++)
                    to[w * c->stride[1]] += from[w];
            }
        }
    }
}

/* ---- products ---- */

/* The three tensors of a convolution; two are operands, one is the result. */
typedef struct Tensors {
    float *images, *results, *weights;
} Tensors;

/* Returns element 0 of image and result `n`, which counts pairs of batch and group, and of that
 * group's weights. */
static Tensors tensors_at(const Convolution *c, Tensors t, int64_t n) {
    return (Tensors){t.images + n * image_size(c), t.results + n * c->outputs * result_area(c),
                     t.weights + n % c->groups * c->outputs * column_size(c)};
}

static void convolve(const Convolution *c, Tensors t, float *columns) {
    blasint m = (blasint)c->outputs, n = (blasint)result_area(c), k = (blasint)column_size(c);
    const float *from = columns_are_image(c) ? t.images : columns;
    if (from == columns) fill_columns(c, columns, t.images);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, t.weights, k, from, n, 0,
                t.results, n);
}

static void convolve_images(const Convolution *c, Tensors t, float *columns) {
    blasint m = (blasint)column_size(c), n = (blasint)result_area(c), k = (blasint)c->outputs;
    float *to = columns_are_image(c) ? t.images : columns;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, t.weights, m, t.results, n, 0,
                to, n);
    if (to == columns) sum_columns(c, t.images, columns);
}

/* Adds an image's share to the weights' gradient if `more`, else sets the gradient. */
static void convolve_weights(const Convolution *c, Tensors t, float *columns, bool more) {
    blasint m = (blasint)c->outputs, n = (blasint)column_size(c), k = (blasint)result_area(c);
    const float *from = columns_are_image(c) ? t.images : columns;
    if (from == columns) fill_columns(c, columns, t.images);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, t.results, k, from, k, more,
                t.weights, n);
}

static float *alloc_columns(const Convolution *c) {
    int64_t count = columns_are_image(c) ? 0 : column_size(c) * result_area(c);
    return cpu_alloc((size_t)count * sizeof(float));
}

typedef void Convolve(const Convolution *c, Tensors t, float *columns);

/* Runs `one` for each image and group; several at a time if there are enough for all threads. */
static void for_each_image(const Convolution *c, Tensors t, Convolve *one) {
    int64_t count = c->batch * c->groups;
#pragma omp parallel if (count >= omp_get_max_threads())
    {
        float *columns = alloc_columns(c);
#pragma omp for schedule(static)
        for (int64_t n = 0; n < count; n++) one(c, tensors_at(c, t, n), columns);
        free(columns);
    }
}

/* Sums the weights' gradient over the batch in a fixed order: one image after another. */
static void sum_weights(const Convolution *c, Tensors t) {
#pragma omp parallel if (c->groups >= omp_get_max_threads())
    {
        float *columns = alloc_columns(c);
#pragma omp for schedule(static)
        for (int64_t g = 0; g < c->groups; g++)
            for (int64_t b = 0; b < c->batch; b++)
                convolve_weights(c, tensors_at(c, t, b * c->groups + g), columns, b > 0);
        free(columns);
    }
}

/* ---- f64 ---- */

/* Adds all products of one group: of an image and its result if `wanted` is not weights. */
static void sum_f64(const Convolution *c, ConvolutionTensor wanted, double *x, double *y,
                    double *z) {
    int64_t area = result_area(c);
    for (int64_t o = 0; o < c->outputs; o++)
        for (int64_t r = 0; r < column_size(c); r++) {
            ColumnRow row = column_row(c, r);
            double *weight = z + o * column_size(c) + r;
            for (int64_t h = row.down.first; h < row.down.end; h++)
                for (int64_t w = row.across.first; w < row.across.end; w++) {
                    double *image =
                               x + row.start + h * c->stride[0] * c->image[1] + w * c->stride[1],
                           *result = y + o * area + h * c->result[1] + w;
                    if (wanted == CONV_RESULTS) *result += *image * *weight;
                    else if (wanted == CONV_IMAGES) *image += *result * *weight;
                    else *weight += *image * *result;
                }
        }
}

static void convolve_f64(const Convolution *c, ConvolutionTensor wanted, double *x, double *y,
                         double *z) {
#pragma omp parallel for schedule(static)
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t b = 0; b < c->batch; b++) {
            int64_t n = b * c->groups + g;
            sum_f64(c, wanted, x + n * image_size(c), y + n * c->outputs * result_area(c),
                    z + g * c->outputs * column_size(c));
        }
}

/* ---- kernels ---- */

/* Returns a view as f32: memory for it if it is the result, else its elements. */
static float *view_f32(const ht_view *view, const ht_view *result, Copies *copies) {
    return view == result ? view_target(view, "convolution", copies)
                          : (float *)view_load(view, "convolution", copies);
}

static void convolve_f32(const Convolution *c, const ConvolutionViews *views, const ht_view *to) {
    Copies copies = {0};
    Tensors t = {view_f32(views->view[CONV_IMAGES], to, &copies),
                 view_f32(views->view[CONV_RESULTS], to, &copies),
                 view_f32(views->view[CONV_WEIGHTS], to, &copies)};
    switch (views->wanted) {
    case CONV_IMAGES: for_each_image(c, t, convolve_images), view_store(to, t.images); break;
    case CONV_RESULTS: for_each_image(c, t, convolve), view_store(to, t.results); break;
    default: sum_weights(c, t), view_store(to, t.weights);
    }
    copies_free(&copies);
}

static void run(const ht_call *call, const ConvolutionViews *views) {
    const ht_view *x = views->view[CONV_IMAGES], *y = views->view[CONV_RESULTS],
                  *z = views->view[CONV_WEIGHTS], *to = views->view[views->wanted];
    Convolution c = convolution_of(call, x, y, z);
    if (to->dtype == HT_F64) {
        memset(to->data, 0, (size_t)cpu_count(to) * sizeof(double));
        convolve_f64(&c, views->wanted, x->data, y->data, z->data);
    } else if (!onednn_convolve(&c, views)) convolve_f32(&c, views, to);
}

void ht_convolution_kernel(const ht_call *call) {
    run(call, &(ConvolutionViews){{&call->operand[0], &call->result[0], &call->operand[1]},
                                  CONV_RESULTS});
}

void ht_convolution_images_kernel(const ht_call *call) {
    run(call,
        &(ConvolutionViews){{&call->result[0], &call->operand[0], &call->operand[1]}, CONV_IMAGES});
}

void ht_convolution_weights_kernel(const ht_call *call) {
    run(call, &(ConvolutionViews){{&call->operand[0], &call->operand[1], &call->result[0]},
                                  CONV_WEIGHTS});
}
