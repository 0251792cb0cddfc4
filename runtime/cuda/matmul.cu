/* Matrix products by cuBLASLt, for product.cu, which uses kernels of contract.cu for other
 * products. f32 is never computed as TF32 (CUBLAS_COMPUTE_32F). For each kind of product, cuBLASLt
 * proposes algorithms once, and the fastest one is found by measuring. */
#include "cuda/product.h"
#include "cuda/autotune.h"
#include "cuda/cuda.h"
#include "cuda/views.h"

#include <map>
#include <vector>

static const int64_t MOST_ALIGNMENT = 256;

enum { MOST_ALGORITHMS = 8 }; // algorithms proposed by cuBLASLt that are measured

/* cuBLASLt's descriptors of a kind of product. */
typedef struct Prepared {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d;
    int count; // number of algorithms; 0: cuBLASLt does not support the product
    cublasLtMatmulAlgo_t algorithm[MOST_ALGORITHMS]; // fastest first by cuBLASLt's estimate
} Prepared;

static void check(cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    cuda_check_device();
    ht_fail("cuBLASLt: %s: %s", what, cublasLtGetStatusName(status));
}

static cublasLtHandle_t handle(void) {
    static cublasLtHandle_t opened;
    if (!opened) check(cublasLtCreate(&opened), "cublasLtCreate");
    return opened;
}

static cudaDataType_t type_of(ht_dtype dtype) {
    return dtype == HT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

template <typename T>
static void describe(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                     T value) {
    check(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
}

template <typename T>
static void describe(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                     T value) {
    check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute");
}

template <typename T>
static void describe(cublasLtMatmulPreference_t preference,
                     cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
}

static cublasLtMatrixLayout_t layout_of(const Matrix &m, int64_t batch) {
    cublasLtMatrixLayout_t layout;
    check(cublasLtMatrixLayoutCreate(&layout, type_of(m.dtype), (uint64_t)m.rows,
                                     (uint64_t)m.columns, m.pitch),
          "cublasLtMatrixLayoutCreate");
    if (batch > 1) {
        describe(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, (int32_t)batch);
        describe(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.stride);
    }
    return layout;
}

static cublasLtEpilogue_t epilogue_of(const Matmul &m) {
    if (m.sums_of) return m.sums_of == 'a' ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
    switch (m.epilogue) {
    case HT_RELU: return m.biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case HT_GELU:
        if (m.aux) return m.biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        return m.biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case HT_NO_EPILOGUE: break;
    }
    return m.biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static cublasLtMatmulDesc_t product_of(const Matmul &m) {
    cublasLtMatmulDesc_t product;
    check(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    describe(product, CUBLASLT_MATMUL_DESC_TRANSA, m.a.op);
    describe(product, CUBLASLT_MATMUL_DESC_TRANSB, m.b.op);
    describe(product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(m));
    if (m.aux) {
        describe(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, m.d.pitch);
        describe(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, m.d.stride);
    }
    return product;
}

/* Returns the largest power of 2, up to MOST_ALIGNMENT, that divides an address. */
static uint32_t alignment_of(const void *data) {
    int64_t alignment = MOST_ALIGNMENT;
    while (reinterpret_cast<uintptr_t>(data) % (uintptr_t)alignment) alignment /= 2;
    return (uint32_t)alignment;
}

/* Sets bias and aux in the descriptor: cuBLASLt chooses algorithms by their alignment, too. */
static void point(cublasLtMatmulDesc_t product, const Matmul &m, const Operands &at) {
    if (m.biased || m.sums_of) describe(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, at.bias);
    if (m.aux) describe(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, at.aux);
}

/* Sets the algorithms of `p` to those that cuBLASLt proposes for the addresses' alignments. */
static void choose(Prepared *p, const Matmul &m, const Operands &at) {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best[MOST_ALGORITHMS];
    int found = 0;
    point(p->product, m, at);
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    describe(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t)MATMUL_WORKSPACE);
    describe(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(at.a));
    describe(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(at.b));
    describe(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(at.d));
    describe(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(at.d));
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle(), p->product, p->a, p->b, p->d, p->d, preference, MOST_ALGORITHMS, best, &found);
    for (int i = 0; i < found && status == CUBLAS_STATUS_SUCCESS; i++)
        if (best[i].state == CUBLAS_STATUS_SUCCESS) p->algorithm[p->count++] = best[i].algo;
    check(cublasLtMatmulPreferenceDestroy(preference), "cublasLtMatmulPreferenceDestroy");
}

/* Returns a kind of product and the alignments of its addresses, as numbers. */
static std::vector<int64_t> key_of(const Matmul &m, const Operands &at) {
    std::vector<int64_t> key = {m.batch, m.biased, m.epilogue, m.aux, m.sums_of};
    const void *const addresses[] = {at.a, at.b, at.d, m.biased || m.sums_of ? at.bias : nullptr,
                                     m.aux ? at.aux : nullptr};
    for (const void *address : addresses) key.push_back(alignment_of(address));
    for (const Matrix *matrix : {&m.a, &m.b, &m.d})
        key.insert(key.end(), {matrix->dtype, matrix->op, matrix->rows, matrix->columns,
                               matrix->pitch, matrix->stride});
    return key;
}

static const Prepared &prepared(const Matmul &m, const Operands &at) {
    static std::map<std::vector<int64_t>, Prepared> known;
    auto [entry, added] = known.try_emplace(key_of(m, at));
    if (added) {
        entry->second = {product_of(m),
                         layout_of(m.a, m.batch),
                         layout_of(m.b, m.batch),
                         layout_of(m.d, m.batch),
                         0,
                         {}};
        choose(&entry->second, m, at);
    }
    return entry->second;
}

/* Returns whether cuBLASLt's rules for bias, aux and results hold; cuBLASLt may not check them. */
static bool is_allowed(const Matmul &m, const Operands &at) {
    const int64_t multiple = 8; // elements
    const bool aux_fits = m.d.pitch % multiple == 0 && (m.batch == 1 || m.d.stride % multiple == 0);
    return ((!m.biased && !m.sums_of) || alignment_of(at.bias) >= MATMUL_ALIGNMENT) &&
           (!m.aux || (aux_fits && alignment_of(at.aux) >= MATMUL_ALIGNMENT));
}

/* Returns the part of a batch, from product `first` on, that one call computes. A part has at most
 * 65535 products, since grids of kernels have a limit. */
static Matmul part_of(const Matmul &m, int64_t first) {
    const int64_t most = 65535, rest = m.batch - first;
    Matmul part = m;
    part.batch = rest < most ? rest : most;
    return part;
}

bool matmul_possible(const Matmul &m, const Operands &at) {
    return is_allowed(m, at) && prepared(part_of(m, 0), at).count > 0;
}

/* A product that is about to run. */
typedef struct Run {
    const Prepared *prepared;
    const Operands *at;
    float scale, add;
    void *workspace;
} Run;

/* Runs a product with algorithm `number`; `context` is a Run. The signature is AutotuneRun. */
static void run_algorithm(int number, void *context) {
    const Run &r = *static_cast<const Run *>(context);
    const Prepared &p = *r.prepared;
    check(cublasLtMatmul(handle(), p.product, &r.scale, r.at->a, p.a, r.at->b, p.b, &r.add, r.at->d,
                         p.d, r.at->d, p.d, &p.algorithm[number], r.workspace, MATMUL_WORKSPACE,
                         ht_compute_stream()),
          "cublasLtMatmul");
}

static void run_part(const Matmul &m, const Operands &at, float scale, float add, void *workspace) {
    const Prepared &p = prepared(m, at);
    if (p.count == 0)
        ht_fail("cuBLASLt has no product of %ld x %ld and %ld x %ld matrices with these pitches",
                (long)m.a.rows, (long)m.a.columns, (long)m.b.rows, (long)m.b.columns);
    point(p.product, m, at);
    Run r = {&p, &at, scale, add, workspace};
    run_algorithm(autotune_choose("algorithm", key_of(m, at), p.count,
                                  add == 0 ? run_algorithm : nullptr, &r),
                  &r);
}

/* Returns the address of matrix `first` of a batch. */
template <typename T> static T *matrix_at(T *data, const Matrix &m, int64_t first) {
    return data ? (T *)((char *)data + first * m.stride * dtype_bytes(m.dtype)) : data;
}

void matmul_run(const Matmul &m, const Operands &at, float scale, float add, void *workspace) {
    for (int64_t first = 0; first < m.batch;) {
        const Matmul part = part_of(m, first);
        const Operands there = {matrix_at(at.a, m.a, first), matrix_at(at.b, m.b, first),
                                matrix_at(at.d, m.d, first), at.bias,
                                matrix_at(at.aux, m.d, first)};
        run_part(part, there, scale, add, workspace);
        first += part.batch;
    }
}
