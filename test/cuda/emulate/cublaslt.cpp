/* cuBLASLt's products by plain loops. */
#include "inside.h"

#include <cublasLt.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <chrono>
#include <stdio.h>
#include <stdlib.h>
#include <thread>
#include <vector>

struct cublasLtContext {
    int device;
};

struct cublasLtMatmulDesc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasLtPointerMode_t pointers = CUBLASLT_POINTER_MODE_HOST;
    cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    void *bias = nullptr, *aux = nullptr;
    int64_t bias_stride = 0, aux_ld = 0, aux_stride = 0;
    int bias_type = -1, aux_type = -1; // -1: that of D
};

struct cublasLtMatrixLayout {
    cudaDataType_t type;
    cublasLtOrder_t order = CUBLASLT_ORDER_COL;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch = 1;
    int64_t stride = 0;
};

struct cublasLtMatmulPreference {
    uint64_t workspace = 0;
    uint32_t alignment[4] = {256, 256, 256, 256}; // of A, B, C, D
};

namespace {

constexpr unsigned with_relu = 2, with_bias = 4, with_gelu = 32, with_aux = 128, bias_gradient_a = 256, bias_gradient_b = 512;

/* Takes an attribute's value when its size is right. */
template <typename T> cublasStatus_t take(T &to, const void *value, size_t size)
{
    if (!value || size < sizeof to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&to, value, sizeof to);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t take_type(int &to, const void *value, size_t size)
{
    int32_t type;
    cublasStatus_t status = take(type, value, size);
    if (!status)
        to = type;
    return status;
}

double load(const void *data, cudaDataType_t type, int64_t i)
{
    switch (type) {
    case CUDA_R_32F: return ((const float *)data)[i];
    case CUDA_R_64F: return ((const double *)data)[i];
    case CUDA_R_16BF: return (float)((const __nv_bfloat16 *)data)[i];
    default: emulate::fail("a product of a type that is not emulated: %d", (int)type);
    }
}

void store(void *data, cudaDataType_t type, int64_t i, double value)
{
    switch (type) {
    case CUDA_R_32F: ((float *)data)[i] = (float)value; break;
    case CUDA_R_64F: ((double *)data)[i] = value; break;
    case CUDA_R_16BF: ((__nv_bfloat16 *)data)[i] = __nv_bfloat16((float)value); break;
    default: emulate::fail("a product of a type that is not emulated: %d", (int)type);
    }
}

int64_t at(const cublasLtMatrixLayout &m, int64_t batch, int64_t row, int64_t column)
{
    return batch * m.stride + (m.order == CUBLASLT_ORDER_COL ? column * m.ld + row : row * m.ld + column);
}

size_t bytes_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_16BF || type == CUDA_R_16F ? 2 : 4; }

/* Everything of a call, by value: it may run when its descriptors are gone. */
struct Product {
    cublasLtMatmulDesc desc;
    cublasLtMatrixLayout a, b, c, d;
    const void *A, *B, *C;
    void *D;
    double alpha, beta;

    cudaDataType_t bias_type() const { return desc.bias_type < 0 ? d.type : (cudaDataType_t)desc.bias_type; }
    cudaDataType_t aux_type() const { return desc.aux_type < 0 ? d.type : (cudaDataType_t)desc.aux_type; }
    int64_t depth() const { return (int64_t)(desc.transpose_a == CUBLAS_OP_N ? a.columns : a.rows); }
};

double element_a(const Product &p, int64_t batch, int64_t i, int64_t k)
{
    return load(p.A, p.a.type, p.desc.transpose_a == CUBLAS_OP_N ? at(p.a, batch, i, k) : at(p.a, batch, k, i));
}

double element_b(const Product &p, int64_t batch, int64_t k, int64_t j)
{
    return load(p.B, p.b.type, p.desc.transpose_b == CUBLAS_OP_N ? at(p.b, batch, k, j) : at(p.b, batch, j, k));
}

/* The approximation by tanh, which is cuBLASLt's. */
double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

double finish(const Product &p, int64_t batch, int64_t i, int64_t j, double value)
{
    unsigned epilogue = p.desc.epilogue;
    if (epilogue & with_bias)
        value += load(p.desc.bias, p.bias_type(), batch * p.desc.bias_stride + i);
    if ((epilogue & with_aux) && (epilogue & with_gelu))
        store(p.desc.aux, p.aux_type(), batch * p.desc.aux_stride + j * p.desc.aux_ld + i, value);
    if ((epilogue & with_aux) && (epilogue & with_relu)) {
        int64_t bit = batch * p.desc.aux_stride + j * p.desc.aux_ld + i;
        unsigned char *byte = (unsigned char *)p.desc.aux + bit / 8, one = (unsigned char)(1u << bit % 8);
        *byte = (unsigned char)(value > 0 ? *byte | one : *byte & ~one);
    }
    return epilogue & with_relu ? (value <= 0 ? 0 : value) : epilogue & with_gelu ? gelu(value) : value;
}

/* Sums of A's or B's rows over the summed index, for gradients of biases. */
void fill_bias_gradient(const Product &p)
{
    bool of_a = p.desc.epilogue & bias_gradient_a;
    for (int64_t i = 0; i < (int64_t)(of_a ? p.d.rows : p.d.columns); i++) {
        float sum = 0;
        for (int64_t k = 0; k < p.depth(); k++)
            sum += (float)(of_a ? element_a(p, 0, i, k) : element_b(p, 0, k, i));
        store(p.desc.bias, p.bias_type(), i, sum);
    }
}

/* One batch. op(A) is laid out with the rows of D innermost, so that a column of D is a sum of vectors. */
template <typename Sum> void multiply_batch(const Product &p, int64_t batch)
{
    int64_t rows = (int64_t)p.d.rows, columns = (int64_t)p.d.columns, depth = p.depth();
    std::vector<Sum> left((size_t)(rows * depth)), column((size_t)rows);
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < rows; i++)
            left[(size_t)(k * rows + i)] = (Sum)element_a(p, batch, i, k);
    for (int64_t j = 0; j < columns; j++) {
        std::fill(column.begin(), column.end(), Sum(0));
        for (int64_t k = 0; k < depth; k++) {
            Sum factor = (Sum)element_b(p, batch, k, j);
            for (int64_t i = 0; i < rows; i++)
                column[(size_t)i] += left[(size_t)(k * rows + i)] * factor;
        }
        for (int64_t i = 0; i < rows; i++) {
            double value = p.alpha * column[(size_t)i];
            if (p.beta != 0)
                value += p.beta * load(p.C, p.c.type, at(p.c, batch, i, j));
            store(p.D, p.d.type, at(p.d, batch, i, j), finish(p, batch, i, j, value));
        }
    }
}

void multiply(const Product &p)
{
    for (int64_t batch = 0; batch < p.d.batch; batch++)
        if (p.desc.compute == CUBLAS_COMPUTE_64F)
            multiply_batch<double>(p, batch);
        else
            multiply_batch<float>(p, batch);
    if ((unsigned)p.desc.epilogue & (bias_gradient_a | bias_gradient_b))
        fill_bias_gradient(p);
}

bool is_layout(const cublasLtMatrixLayout &m)
{
    const int32_t most_batch = 65535; // of a grid
    return m.rows > 0 && m.columns > 0 && m.batch > 0 && m.batch <= most_batch &&
           m.ld >= (int64_t)(m.order == CUBLASLT_ORDER_COL ? m.rows : m.columns);
}

bool fits_types(const Product &p)
{
    if (p.desc.compute == CUBLAS_COMPUTE_64F)
        return p.a.type == CUDA_R_64F && p.b.type == CUDA_R_64F && p.c.type == CUDA_R_64F && p.d.type == CUDA_R_64F;
    if (p.desc.scale != CUDA_R_32F || p.a.type != p.b.type || p.c.type != p.d.type)
        return false;
    return (p.a.type == CUDA_R_32F && p.d.type == CUDA_R_32F) ||
           (p.a.type == CUDA_R_16BF && (p.d.type == CUDA_R_16BF || p.d.type == CUDA_R_32F));
}

bool fits_epilogue(const Product &p)
{
    const int64_t gelu_multiple = 8, relu_multiple = 128;
    unsigned epilogue = p.desc.epilogue;
    if (p.desc.compute == CUBLAS_COMPUTE_64F && epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        return false;
    if ((epilogue & with_bias) && p.bias_type() != p.d.type && !(p.d.type == CUDA_R_32F && p.bias_type() == CUDA_R_32F))
        return false;
    if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && p.d.order != CUBLASLT_ORDER_COL)
        return false;
    if (!(epilogue & with_aux))
        return true;
    int64_t multiple = epilogue & with_gelu ? gelu_multiple : relu_multiple;
    return p.desc.aux_ld >= (int64_t)p.d.rows && p.desc.aux_ld % multiple == 0 && p.desc.aux_stride % multiple == 0;
}

/* What cuBLASLt would say about the descriptors alone. */
cublasStatus_t check_shape(const Product &p)
{
    if (!is_layout(p.a) || !is_layout(p.b) || !is_layout(p.c) || !is_layout(p.d))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool plain_a = p.desc.transpose_a == CUBLAS_OP_N, plain_b = p.desc.transpose_b == CUBLAS_OP_N;
    uint64_t rows = plain_a ? p.a.rows : p.a.columns, columns = plain_b ? p.b.columns : p.b.rows;
    uint64_t depth_b = plain_b ? p.b.rows : p.b.columns;
    if (rows != p.d.rows || columns != p.d.columns || depth_b != (uint64_t)p.depth() || p.c.rows != p.d.rows || p.c.columns != p.d.columns)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p.a.batch != p.d.batch || p.b.batch != p.d.batch || p.c.batch != p.d.batch)
        return CUBLAS_STATUS_INVALID_VALUE;
    return fits_types(p) && fits_epilogue(p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Whether a matrix lies on the device from its first element to its last. */
bool on_device(const void *data, const cublasLtMatrixLayout &m)
{
    int64_t last = at(m, m.batch - 1, (int64_t)m.rows - 1, (int64_t)m.columns - 1);
    return ht_emulated_is_device(data, (size_t)(last + 1) * bytes_of(m.type));
}

/* What an algorithm was chosen for: it relies on the alignment of A, B, C, D, bias and aux, and on the size of the workspace. NULL for bias
 * or aux counts as aligned to anything, as it does to cuBLASLt. */
enum { CHOSEN = 6, CHOSEN_WORKSPACE = CHOSEN, CHOSEN_NUMBER };

/* The largest power of 2 up to 256 that divides an address. */
uint64_t alignment_of(const void *address)
{
    const uintptr_t bits = (uintptr_t)address | 256;
    return bits & (~bits + 1);
}

void note_choice(cublasLtMatmulAlgo_t *algorithm, const cublasLtMatmulPreference &preference, const cublasLtMatmulDesc &desc)
{
    for (int i = 0; i < 4; i++)
        algorithm->data[i] = preference.alignment[i];
    algorithm->data[4] = alignment_of(desc.bias);
    algorithm->data[5] = alignment_of(desc.aux);
    algorithm->data[CHOSEN_WORKSPACE] = preference.workspace;
}

/* Whether a product is one that the algorithm was chosen for. */
bool fits_choice(const cublasLtMatmulAlgo_t *algorithm, const Product &p, size_t workspace_size)
{
    if (!algorithm)
        return true;
    const void *address[CHOSEN] = {p.A, p.B, p.C, p.D, p.desc.bias, p.desc.aux};
    for (int i = 0; i < CHOSEN; i++)
        if (alignment_of(address[i]) < algorithm->data[i])
            return false;
    return workspace_size >= algorithm->data[CHOSEN_WORKSPACE];
}

/* HETU_EMULATE_ALGORITHMS=N:I: cuBLASLt proposes N algorithms, all but number I take 2 ms more; 1:0 unless set. Number 0 or 1 of the two.
 */
int algorithms(int number)
{
    const char *text = getenv("HETU_EMULATE_ALGORITHMS");
    int read[2] = {1, 0};
    if (text && sscanf(text, "%d:%d", &read[0], &read[1]) != 2)
        emulate::fail("HETU_EMULATE_ALGORITHMS=%s is not N:I", text);
    return read[number];
}

double scalar(const cublasLtMatmulDesc &desc, const void *value) { return load(value, desc.scale, 0); }

} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    int count;
    if (cudaGetDeviceCount(&count))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasLtContext{emulate::current_device()};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "an error of cuBLASLt";
    }
}

const char *cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }
size_t cublasLtGetVersion(void) { return 130000; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
    *desc = new cublasLtMatmulDesc{compute, scale};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t size)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return take(desc->compute, value, size);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return take(desc->scale, value, size);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return take(desc->pointers, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(desc->transpose_a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(desc->transpose_b, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(desc->epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(desc->bias, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return take(desc->bias_stride, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(desc->aux, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(desc->aux_ld, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return take(desc->aux_stride, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return take_type(desc->aux_type, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return take_type(desc->bias_type, value, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld)
{
    *layout = new cublasLtMatrixLayout;
    (*layout)->type = type;
    (*layout)->rows = rows;
    (*layout)->columns = columns;
    (*layout)->ld = ld;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t size)
{
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return take(layout->type, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return take(layout->order, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return take(layout->rows, value, size);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return take(layout->columns, value, size);
    case CUBLASLT_MATRIX_LAYOUT_LD: return take(layout->ld, value, size);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return take(layout->batch, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return take(layout->stride, value, size);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new cublasLtMatmulPreference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(preference->workspace, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(preference->alignment[0], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(preference->alignment[1], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(preference->alignment[2], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(preference->alignment[3], value, size);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    *count = 0;
    if (requested < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = check_shape({*desc, *a, *b, *c, *d, nullptr, nullptr, nullptr, nullptr, 1, 0});
    if (status)
        return status;
    for (; *count < requested && *count < algorithms(0); (*count)++) {
        results[*count] = {};
        note_choice(&results[*count].algo, *preference, *desc);
        results[*count].algo.data[CHOSEN_NUMBER] = (uint64_t)*count;
    }
    return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algorithm,
                              void *workspace, size_t workspace_size, cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (desc->pointers != CUBLASLT_POINTER_MODE_HOST)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Product p = {*desc, *a, *b, *c, *d, A, B, C, D, scalar(*desc, alpha), scalar(*desc, beta)};
    if (cublasStatus_t status = check_shape(p))
        return status;
    if (!fits_choice(algorithm, p, workspace_size))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool needs_bias = desc->epilogue & (with_bias | bias_gradient_a | bias_gradient_b);
    if ((needs_bias && !desc->bias) || ((desc->epilogue & with_aux) && !desc->aux) || (C == D && (c->ld != d->ld || c->type != d->type)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!on_device(A, *a) || !on_device(B, *b) || !on_device(D, *d) || (p.beta != 0 && !on_device(C, *c)) ||
        (needs_bias && !ht_emulated_is_device(desc->bias, bytes_of(p.bias_type()))) ||
        (workspace_size && !ht_emulated_is_device(workspace, workspace_size)))
        emulate::fail("a matrix of a product does not lie in an allocation on the device");
    const bool slow = algorithm && (int)algorithm->data[CHOSEN_NUMBER] != algorithms(1);
    auto work = [p, slow] {
        if (slow)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        multiply(p);
    };
    ht_emulated_enqueue(stream, work, "kernel", "product");
    return CUBLAS_STATUS_SUCCESS;
}
