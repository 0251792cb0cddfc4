/* Norms, softmax and cross-entropy: rows of all lengths. */
#include "twin.h"

#include "host.h"

#include <math.h>

struct Size {
    int64_t rows, n;
    int shift; // elements by which views begin behind an aligned address
};

/* One element; less than a warp; odd; whole vectors; several teams in a block; a team of all warps; several tiles; many rows. */
static const Size SIZES[] = {{1, 1, 0},    {1, 7, 0},    {3, 8, 0},    {5, 33, 0},   {3, 768, 0},   {2, 768, 1},  {7, 1024, 0},
                             {2, 1500, 0}, {2, 4095, 0}, {3, 8192, 0}, {2, 8200, 0}, {1, 20001, 0}, {300, 24, 0}, {67, 520, 0}};

static const ht_dtype TYPES[] = {HT_F32, HT_BF16};

static std::string label_of(const char *name, const Size &size, ht_dtype dtype)
{
    return std::string(name) + " (" + std::to_string(size.rows) + ", " + std::to_string(size.n) + ") " + name_of(dtype) +
           (size.shift ? " shifted" : "");
}

static Tensor matrix(const Size &size, ht_dtype dtype, double high = 1)
{
    return shifted(reals(dtype, {size.rows, size.n}, high), size.shift);
}

static Tensor matrix_result(const Size &size, ht_dtype dtype, double magnitude)
{
    return shifted(result(dtype, {size.rows, size.n}, magnitude), size.shift);
}

/* ---- norms ---- */

static void check_forward(const Size &size, ht_dtype dtype, bool weight, bool bias)
{
    const Tensor w = weight ? reals(HT_F32, {size.n}) : absent(), b = bias ? reals(HT_F32, {size.n}) : absent();
    Twin layer(TWIN(ht_layer_norm_kernel), label_of("layer_norm", size, dtype));
    layer.operands = {matrix(size, dtype), w, b};
    layer.results = {matrix_result(size, dtype, 8), result(HT_F32, {size.rows}, 1), result(HT_F32, {size.rows}, 8)};
    layer.attrs = {real_attr(0.01)};
    check(layer);
    Twin rms(TWIN(ht_rms_norm_kernel), label_of("rms_norm", size, dtype));
    rms.operands = {matrix(size, dtype), w};
    rms.results = {matrix_result(size, dtype, 8), result(HT_F32, {size.rows}, 8)};
    rms.attrs = {real_attr(0.01)};
    check(rms);
}

/* Statistics as a forward gives them: means near 0, rstd near that of numbers in [-1, 1]. */
static void check_backward(const Size &size, ht_dtype dtype, bool weight, bool more)
{
    const Tensor w = weight ? reals(HT_F32, {size.n}) : absent();
    const Tensor mean = reals(HT_F32, {size.rows}, 0.1), rstd = reals_between(HT_F32, {size.rows}, 1.5, 2);
    const double sums = 4.0 * (double)size.rows;
    Twin layer(TWIN(ht_layer_norm_backward_kernel), label_of("layer_norm_backward", size, dtype));
    layer.operands = {matrix(size, dtype), matrix(size, dtype), mean, rstd, w, more ? matrix(size, dtype) : absent()};
    layer.results = {matrix_result(size, dtype, 16), result(HT_F32, {size.n}, sums), result(HT_F32, {size.n}, sums)};
    check(layer);
    Twin rms(TWIN(ht_rms_norm_backward_kernel), label_of("rms_norm_backward", size, dtype));
    rms.operands = {matrix(size, dtype), matrix(size, dtype), rstd, w, more ? matrix(size, dtype) : absent()};
    rms.results = {matrix_result(size, dtype, 16), result(HT_F32, {size.n}, sums)};
    check(rms);
}

/* Row 0 is shorter than eps. */
static void check_length(const Size &size, ht_dtype dtype)
{
    const double eps = 0.01;
    Tensor x = matrix(size, dtype), y = matrix(size, dtype, 1 / sqrt((double)size.n)), rnorm = reals_between(HT_F32, {size.rows}, 0.5, 2);
    for (int64_t i = 0; i < size.n; i++)
        set_element(x, i, 1e-6);
    set_element(rnorm, 0, 1 / eps);
    Twin forward(TWIN(ht_l2_norm_kernel), label_of("l2_norm", size, dtype));
    forward.operands = {x};
    forward.results = {matrix_result(size, dtype, 1), result(HT_F32, {size.rows}, 1 / eps)};
    forward.attrs = {real_attr(eps)};
    check(forward);
    Twin backward(TWIN(ht_l2_norm_backward_kernel), label_of("l2_norm_backward", size, dtype));
    backward.operands = {matrix(size, dtype), y, rnorm};
    backward.results = {matrix_result(size, dtype, 2 / eps)};
    backward.attrs = {real_attr(eps)};
    check(backward);
}

void check_norms(void)
{
    const Size empty = {0, 8, 0};
    for (ht_dtype dtype : TYPES) {
        for (const Size &size : SIZES) {
            const bool weight = draw(4) > 0, bias = draw(4) > 0;
            check_forward(size, dtype, weight, bias);
            check_backward(size, dtype, weight, draw(2) > 0);
            check_length(size, dtype);
        }
        check_forward(empty, dtype, true, true);
        check_backward(empty, dtype, true, true);
        check_forward(SIZES[4], dtype, false, false);
        check_backward(SIZES[4], dtype, false, true);
        check_forward(SIZES[4], dtype, false, true);
    }
}

/* ---- softmax and cross-entropy ---- */

static void check_soft(const Size &size, ht_dtype dtype)
{
    Twin forward(TWIN(ht_softmax_kernel), label_of("softmax", size, dtype));
    forward.operands = {matrix(size, dtype, 5)};
    forward.results = {matrix_result(size, dtype, 1)};
    check(forward);
    Twin backward(TWIN(ht_softmax_backward_kernel), label_of("softmax_backward", size, dtype));
    backward.operands = {matrix(size, dtype), shifted(reals_between(dtype, {size.rows, size.n}, 0, 2 / (double)size.n), size.shift)};
    backward.results = {matrix_result(size, dtype, 2)};
    check(backward);
}

/* Targets of a vocabulary of `n + cut` classes of which the piece has those from `offset` on; some are ignored. */
static Tensor targets(const Size &size, ht_dtype dtype, int64_t classes)
{
    Tensor target = integers(dtype, {size.rows}, 0, classes);
    for (int64_t r = 1; r < size.rows; r += 3)
        set_element(target, r, -100);
    return target;
}

static void check_entropy(const Size &size, ht_dtype dtype, ht_dtype index, int64_t offset, int64_t rest)
{
    const int64_t classes = offset + size.n + rest;
    const Tensor x = piece(matrix(size, dtype, 3), 1, offset, classes), target = targets(size, index, classes);
    const Tensor peak = reals_between(HT_F32, {size.rows}, 3, 4);
    Twin top(TWIN(ht_row_max_kernel), label_of("row_max", size, dtype));
    top.operands = {x};
    top.results = {result(HT_F32, {size.rows}, 0)};
    check(top);
    Twin mass(TWIN(ht_mass_kernel), label_of("mass", size, dtype));
    mass.operands = {x, target, peak};
    mass.results = {result(HT_F32, {size.rows}, (double)size.n), result(HT_F32, {size.rows}, 1)};
    check(mass);
    if (size.n > 0) {
        Twin both(TWIN(ht_peak_mass_kernel), label_of("peak_mass", size, dtype));
        both.operands = {x, target};
        both.results = {result(HT_F32, {size.rows}, 0), result(HT_F32, {size.rows}, (double)size.n), result(HT_F32, {size.rows}, 1)};
        check(both);
    }
    Twin backward(TWIN(ht_mass_backward_kernel), label_of("mass_backward", size, dtype));
    backward.operands = {reals(HT_F32, {size.rows}), reals(HT_F32, {size.rows}), x, target, peak};
    backward.results = {matrix_result(size, dtype, 2)};
    check(backward);
    backward.results[0] = in_place(backward.results[0], 2);
    backward.label += ", in place";
    check(backward);
    backward.label = label_of("mass_backward, results aligned otherwise", size, dtype);
    backward.results[0] = shifted(matrix_result(size, dtype, 2), size.shift + 1);
    check(backward);
}

void check_softmax(void)
{
    const Size empty = {0, 8, 0}, vocabulary = {3, 50257, 0};
    for (ht_dtype dtype : TYPES) {
        for (const Size &size : SIZES) {
            check_soft(size, dtype);
            check_entropy(size, dtype, draw(2) ? HT_I32 : HT_I64, draw(2) ? 0 : draw(100), draw(2) ? 0 : draw(100));
        }
        check_soft(empty, dtype);
        check_entropy(empty, dtype, HT_I32, 0, 0);
        check_entropy(vocabulary, dtype, HT_I64, 0, 0);
    }
}
