/* Kernels of the GPU against those of the CPU.
 *
 *     twins LIBRARY [GROUP...]     the library has the CPU's kernels: libhetu.so, or what twins.mk beside this file builds without BLAS and
 * MPI
 *
 * Prints a line for each disagreement, and "N checks, M wrong".
 */
#include "twin.h"

#include "host.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;
static int64_t checks, wrong;

/* ---- tensors ---- */

int64_t draw(int64_t below)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

static double draw_real(double low, double high) { return low + (high - low) * (double)draw(1 << 24) / (1 << 24); }

static int64_t bytes_of(ht_dtype dtype)
{
    static const int64_t bytes[] = {4, 2, 8, 4, 8};
    return bytes[dtype];
}

int64_t size_of(const Tensor &tensor) { return ht_view_count(&tensor.view, 0, tensor.view.rank); }

static Tensor make(ht_dtype dtype, const std::vector<int64_t> &extent)
{
    Tensor tensor = {};
    tensor.view.dtype = dtype;
    tensor.view.rank = (int)extent.size();
    for (size_t d = 0; d < extent.size(); d++)
        tensor.view.extent[d] = tensor.view.global[d] = extent[d];
    tensor.bytes.resize((size_t)(size_of(tensor) * bytes_of(dtype)));
    tensor.in_place = -1;
    return tensor;
}

double element(const Tensor &tensor, int64_t i)
{
    const char *data = tensor.bytes.data();
    switch (tensor.view.dtype) {
    case HT_F32: return ((const float *)data)[i];
    case HT_BF16: return ht_bf16_load(((const uint16_t *)data)[i]);
    case HT_F64: return ((const double *)data)[i];
    case HT_I32: return ((const int32_t *)data)[i];
    case HT_I64: return (double)((const int64_t *)data)[i];
    }
    return 0;
}

void set_element(Tensor &tensor, int64_t i, double value)
{
    char *data = tensor.bytes.data();
    switch (tensor.view.dtype) {
    case HT_F32: ((float *)data)[i] = (float)value; break;
    case HT_BF16: ((uint16_t *)data)[i] = ht_bf16_store((float)value); break;
    case HT_F64: ((double *)data)[i] = value; break;
    case HT_I32: ((int32_t *)data)[i] = (int32_t)value; break;
    case HT_I64: ((int64_t *)data)[i] = (int64_t)value; break;
    }
}

Tensor reals_between(ht_dtype dtype, std::vector<int64_t> extent, double low, double high)
{
    Tensor tensor = make(dtype, extent);
    for (int64_t i = 0; i < size_of(tensor); i++)
        set_element(tensor, i, draw_real(low, high));
    return tensor;
}

Tensor reals(ht_dtype dtype, std::vector<int64_t> extent, double high) { return reals_between(dtype, std::move(extent), -high, high); }

Tensor integers(ht_dtype dtype, std::vector<int64_t> extent, int64_t low, int64_t below)
{
    Tensor tensor = make(dtype, extent);
    for (int64_t i = 0; i < size_of(tensor); i++)
        set_element(tensor, i, (double)(low + draw(below - low)));
    return tensor;
}

Tensor absent(ht_dtype dtype)
{
    Tensor tensor = make(dtype, {0});
    tensor.shift = -1;
    return tensor;
}

static bool is_absent(const Tensor &tensor) { return tensor.shift < 0; }

Tensor result(ht_dtype dtype, std::vector<int64_t> extent, double magnitude)
{
    Tensor tensor = make(dtype, extent);
    tensor.magnitude = magnitude;
    return tensor;
}

Tensor piece(Tensor tensor, int dim, int64_t offset, int64_t global)
{
    tensor.view.offset[dim] = offset;
    tensor.view.global[dim] = global;
    return tensor;
}

Tensor shifted(Tensor tensor, int elements)
{
    tensor.shift = elements * bytes_of(tensor.view.dtype);
    return tensor;
}

Tensor in_place(Tensor tensor, int operand)
{
    tensor.in_place = operand;
    return tensor;
}

/* ---- running ---- */

void *cpu_function(const char *symbol)
{
    void *function = dlsym(library, symbol);
    if (!function)
        ht_fail("the library of the CPU's kernels lacks %s", symbol);
    return function;
}

/* A twin at work on one side: where its tensors are. */
struct Side {
    std::vector<ht_view> operands, results;
    std::vector<Tensor> got; // results when it is done
    ht_call call;
};

static ht_call call_of(const Twin &twin, Side &side, const float *hyper)
{
    ht_call call = {};
    call.operand = side.operands.data();
    call.result = side.results.data();
    call.operand_count = (int)side.operands.size();
    call.result_count = (int)side.results.size();
    call.attr = twin.attrs.data();
    call.hyper = hyper;
    call.step = twin.step;
    call.training = twin.training;
    call.seed = twin.seed;
    return call;
}

/* Fills what a kernel has to write with numbers that none of them is. */
static void poison(Tensor &tensor) { memset(tensor.bytes.data(), 0xff, tensor.bytes.size()); }

static Side run_cpu(const Twin &twin)
{
    Side side;
    std::vector<Tensor> operands = twin.operands;
    side.got = twin.results;
    for (Tensor &tensor : operands) {
        tensor.view.data = is_absent(tensor) ? nullptr : tensor.bytes.data();
        side.operands.push_back(tensor.view);
    }
    for (Tensor &tensor : side.got) {
        poison(tensor);
        tensor.view.data = tensor.in_place < 0 ? tensor.bytes.data() : operands[(size_t)tensor.in_place].bytes.data();
        side.results.push_back(tensor.view);
    }
    side.call = call_of(twin, side, twin.hyper);
    ((ht_kernel *)cpu_function(twin.symbol))(&side.call);
    for (Tensor &tensor : side.got)
        if (tensor.in_place >= 0)
            tensor.bytes = operands[(size_t)tensor.in_place].bytes;
    return side;
}

static void upload(Tensor &tensor, std::vector<ht_view> &views)
{
    tensor.view.data = nullptr;
    if (!is_absent(tensor)) {
        tensor.view.data = host_alloc((int64_t)tensor.bytes.size(), tensor.shift);
        host_upload(tensor.view.data, tensor.bytes.data(), (int64_t)tensor.bytes.size());
    }
    views.push_back(tensor.view);
}

/* Puts the tensors on the device. */
static Side begin_gpu(const Twin &twin)
{
    Side side;
    std::vector<Tensor> operands = twin.operands;
    side.got = twin.results;
    for (Tensor &tensor : operands)
        upload(tensor, side.operands);
    for (Tensor &tensor : side.got) {
        if (tensor.in_place >= 0) {
            tensor.view.data = operands[(size_t)tensor.in_place].view.data;
            side.results.push_back(tensor.view);
            continue;
        }
        poison(tensor);
        upload(tensor, side.results);
    }
    return side;
}

static void end_gpu(const Twin &twin, Side &side)
{
    for (Tensor &tensor : side.got)
        host_download(tensor.bytes.data(), tensor.view.data, (int64_t)tensor.bytes.size());
    for (size_t i = 0; i < twin.operands.size(); i++)
        if (!is_absent(twin.operands[i]))
            host_free(side.operands[i].data, twin.operands[i].shift);
    for (size_t i = 0; i < twin.results.size(); i++)
        if (twin.results[i].in_place < 0)
            host_free(side.results[i].data, twin.results[i].shift);
}

/* All twins, one after another. The numbers of the step are those of the first. */
static std::vector<Side> run_gpu(const std::vector<Twin> &twins)
{
    std::vector<Side> sides;
    const float *hyper = host_step(twins[0].hyper, twins[0].step, twins[0].seed, twins[0].training);
    for (const Twin &twin : twins)
        sides.push_back(begin_gpu(twin));
    for (size_t t = 0; t < twins.size(); t++) {
        sides[t].call = call_of(twins[t], sides[t], hyper);
        twins[t].kernel(&sides[t].call);
    }
    host_wait();
    for (size_t t = 0; t < twins.size(); t++)
        end_gpu(twins[t], sides[t]);
    return sides;
}

/* ---- comparing ---- */

void passed(void) { checks++; }

void fail(const std::string &label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("wrong: %s: ", label.c_str());
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    checks++;
    wrong++;
}

bool compare(const std::string &label, const Tensor &gpu, const Tensor &cpu, double error)
{
    const double roundings = 16, unit = 0x1p-24, half = gpu.view.dtype == HT_BF16 ? 0x1p-7 : 0;
    if (gpu.magnitude == 0 && error == 0) {
        if (gpu.bytes == cpu.bytes)
            return true;
        for (int64_t i = 0; i < size_of(gpu); i++)
            if (memcmp(&gpu.bytes[(size_t)(i * bytes_of(gpu.view.dtype))], &cpu.bytes[(size_t)(i * bytes_of(gpu.view.dtype))],
                       (size_t)bytes_of(gpu.view.dtype))) {
                fail(label, "element %ld is %.9g, on the CPU %.9g, not the same bits", (long)i, element(gpu, i), element(cpu, i));
                return false;
            }
    }
    for (int64_t i = 0; i < size_of(gpu); i++) {
        const double a = element(gpu, i), b = element(cpu, i);
        const double bound = error + roundings * unit * (gpu.magnitude + fabs(b)) + half * fabs(b);
        if (!(fabs(a - b) <= bound) && !(isinf(b) && a == b)) {
            fail(label, "element %ld is %.9g, on the CPU %.9g", (long)i, a, b);
            return false;
        }
    }
    return true;
}

void check_together(std::vector<Twin> &twins)
{
    std::vector<Side> first = run_gpu(twins), second = run_gpu(twins);
    for (size_t t = 0; t < twins.size(); t++) {
        Side cpu = run_cpu(twins[t]);
        bool right = true;
        for (size_t r = 0; right && r < cpu.got.size(); r++) {
            const std::string label = twins[t].label + ", result " + std::to_string(r);
            right = compare(label, first[t].got[r], cpu.got[r], 0);
            if (right && first[t].got[r].bytes != second[t].got[r].bytes) {
                fail(label, "two runs give different bits");
                right = false;
            }
        }
        if (right)
            passed();
    }
    if (const char *fault = host_fault())
        fail(twins[0].label, "a fault: %s", fault);
}

void check(Twin &twin)
{
    std::vector<Twin> twins = {twin};
    check_together(twins);
}

/* ---- the program ---- */

/* Whether the command line names a group, or none at all. */
static bool is_chosen(const char *group, int argc, char **argv)
{
    bool chosen = argc < 3;
    for (int a = 2; a < argc; a++)
        chosen = chosen || !strcmp(argv[a], group);
    return chosen;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*check)(void);
    } groups[] = {{"norms", check_norms},     {"softmax", check_softmax},   {"tables", check_tables}, {"shapes", check_shapes},
                  {"updates", check_updates}, {"products", check_products}, {"faults", check_faults}};
    if (argc < 2) {
        fprintf(stderr, "usage: twins LIBRARY [GROUP...]\n");
        return 2;
    }
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    if (!host_open())
        return 1;
    for (const auto &group : groups)
        if (is_chosen(group.name, argc, argv)) {
            int64_t before = checks, wrong_before = wrong;
            group.check();
            printf("%-10s %6ld checks, %ld wrong\n", group.name, (long)(checks - before), (long)(wrong - wrong_before));
        }
    printf("%ld checks, %ld wrong\n", (long)checks, (long)wrong);
    return wrong || !checks;
}
