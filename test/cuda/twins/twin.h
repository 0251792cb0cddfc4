/* twin.h: a kernel on a GPU (or its emulation) and on the CPU, with the same random operands.
 *
 *     Twin twin(TWIN(ht_softmax_kernel), "softmax");
 *     twin.operands = {reals(HT_BF16, {5, 33})};
 *     twin.results = {result(HT_BF16, {5, 33}, 1)};
 *     check(twin);
 *
 * Each result says what magnitude its sums have: the sum of the absolute values of what is added up for an element. Two orders of summation
 * differ by a few roundings of that, 2^-24 each; bf16 by one unit in the last place more, 2^-7 of the element. A magnitude of 0 asks for
 * the same bits. The GPU's kernel runs twice, and must give the same bits twice.
 */
#ifndef TWINS_TWIN_H
#define TWINS_TWIN_H

#include "operators/kernels.h"

#include <hetu/product.h>
#include <hetu/rt.h>

#include <initializer_list>
#include <string>
#include <vector>

/* A view with its elements on the host, and where they begin on the device behind a multiple of 256 bytes. */
struct Tensor {
    ht_view view;
    std::vector<char> bytes;
    int64_t shift;
    double magnitude; // of a result
    int in_place;     // the operand in whose storage a result lies; -1: none
};

/* Elements below `high`, from -high on unless `low` says otherwise. */
Tensor reals(ht_dtype dtype, std::vector<int64_t> extent, double high = 1);
Tensor reals_between(ht_dtype dtype, std::vector<int64_t> extent, double low, double high);
Tensor integers(ht_dtype dtype, std::vector<int64_t> extent, int64_t low, int64_t below);
Tensor absent(ht_dtype dtype = HT_F32);
Tensor result(ht_dtype dtype, std::vector<int64_t> extent, double magnitude);

/* The tensor as a piece of a larger one; not aligned; in the storage of an operand. */
Tensor piece(Tensor tensor, int dim, int64_t offset, int64_t global);
Tensor shifted(Tensor tensor, int elements = 1);
Tensor in_place(Tensor tensor, int operand);

int64_t size_of(const Tensor &tensor);
double element(const Tensor &tensor, int64_t i);
void set_element(Tensor &tensor, int64_t i, double value);

/* A random number below `below`. */
int64_t draw(int64_t below);

struct Twin {
    ht_kernel *kernel;
    const char *symbol; // of the CPU's
    std::string label;
    std::vector<Tensor> operands, results;
    std::vector<ht_attr> attrs;
    float hyper[8] = {};
    int64_t step = 0;
    int training = 1;
    uint64_t seed = 5;

    Twin(ht_kernel *gpu, const char *name, std::string what) : kernel(gpu), symbol(name), label(std::move(what)) {}
};
#define TWIN(kernel) kernel, #kernel

/* Runs a kernel on both; several: one after another before any result is looked at. */
void check(Twin &twin);
void check_together(std::vector<Twin> &twins);

/* The CPU's function of that name. */
void *cpu_function(const char *symbol);

/* Compares a result of the GPU with the CPU's; `error` is what they may differ by beside the roundings of the magnitude. Returns whether
 * they agree. */
bool compare(const std::string &label, const Tensor &gpu, const Tensor &cpu, double error);

/* Notes a failure, and counts checks. */
void fail(const std::string &label, const char *format, ...) __attribute__((format(printf, 2, 3)));
void passed(void);

inline const char *name_of(ht_dtype dtype)
{
    static const char *const names[] = {"f32", "bf16", "f64", "i32", "i64"};
    return names[dtype];
}

/* The groups of cases. */
void check_norms(void);
void check_softmax(void);
void check_tables(void);
void check_shapes(void);
void check_updates(void);
void check_products(void);
void check_faults(void);

#endif
