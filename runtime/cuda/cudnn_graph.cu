/* Builds graphs of operations for cuDNN, and makes and runs their plans. */
#include "cuda/cudnn_graph.h"

#include <algorithm>

/* ---- descriptors ---- */

CudnnDescriptors::~CudnnDescriptors() {
    for (auto at = all.rbegin(); at != all.rend(); ++at) cudnnBackendDestroyDescriptor(*at);
}

void CudnnDescriptors::check(cudnnStatus_t status, const char *doing) {
    if (failed() || status == CUDNN_STATUS_SUCCESS) return;
    char text[160] = ""; // the beginning of cuDNN's error message
    cudnnGetLastErrorString(text, sizeof text);
    refused = std::string(doing) + ": " + cudnnGetErrorString(status) +
              (text[0] ? std::string(" (") + text + ")" : "");
    std::replace(refused.begin(), refused.end(), '\n', ' ');
}

cudnnBackendDescriptor_t CudnnDescriptors::make(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    if (failed()) return nullptr;
    check(cudnnBackendCreateDescriptor(type, &made), "making a descriptor");
    if (made) all.push_back(made);
    return made;
}

void CudnnDescriptors::set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int64_t count, const void *value) {
    if (!failed())
        check(cudnnBackendSetAttribute(of, name, type, count, value),
              ("attribute " + std::to_string(name)).c_str());
}

void CudnnDescriptors::finalize(cudnnBackendDescriptor_t of) {
    if (!failed()) check(cudnnBackendFinalize(of), "finalizing a descriptor");
}

/* ---- tensors ---- */

CudnnSizes cudnn_packed(const CudnnSizes &extent) {
    CudnnSizes stride;
    int64_t next = 1;
    for (int d = CUDNN_RANK - 1; d >= 0; d--) {
        stride[(size_t)d] = next;
        next *= extent[(size_t)d];
    }
    return stride;
}

CudnnTensor CudnnGraph::describe(int64_t number, cudnnDataType_t type, const CudnnSizes &extent,
                                 const CudnnSizes &stride, bool is_virtual, bool by_value) {
    cudnnBackendDescriptor_t at = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(at, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number);
    set(at, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    set(at, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, CUDNN_RANK, extent.data());
    set(at, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, CUDNN_RANK, stride.data());
    set(at, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, (int64_t)CUDNN_TENSOR_ALIGNMENT);
    set(at, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
    set(at, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, by_value);
    finalize(at);
    return {at, extent};
}

CudnnTensor CudnnGraph::tensor(int64_t number, cudnnDataType_t type, const CudnnSizes &extent,
                               const CudnnSizes &stride) {
    return describe(number, type, extent, stride, false, false);
}

CudnnTensor CudnnGraph::between(cudnnDataType_t type, const CudnnSizes &extent,
                                const CudnnSizes &stride) {
    return describe(next++, type, extent, stride, true, false);
}

CudnnTensor CudnnGraph::constant(float value) {
    values[next] = value;
    return describe(next++, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
}

/* ---- operations ---- */

void CudnnGraph::add(cudnnBackendDescriptor_t operation) {
    finalize(operation);
    operations.push_back(operation);
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t math,
                           const std::vector<CudnnTensor> &x, const CudnnTensor &y, int64_t axis) {
    static const cudnnBackendAttributeName_t operands[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                           CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                           CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    cudnnBackendDescriptor_t kind = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    set(kind, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, math);
    if (axis >= 0) set(kind, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
    finalize(kind);
    cudnnBackendDescriptor_t operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        kind);
    for (size_t i = 0; i < x.size(); i++)
        set(operation, operands[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, x[i].at);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y.at);
    add(operation);
}

void CudnnGraph::matmul(const CudnnTensor &a, const CudnnTensor &b, const CudnnTensor &c) {
    cudnnBackendDescriptor_t kind = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    finalize(kind);
    cudnnBackendDescriptor_t operation = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, kind);
    set(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, a.at);
    set(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, b.at);
    set(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, c.at);
    add(operation);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t op, const CudnnTensor &x, const CudnnTensor &y) {
    cudnnBackendDescriptor_t kind = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
    set(kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    finalize(kind);
    cudnnBackendDescriptor_t operation = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, kind);
    set(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, x.at);
    set(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y.at);
    add(operation);
}

void CudnnGraph::reshape(const CudnnTensor &x, const CudnnTensor &y) {
    cudnnBackendDescriptor_t operation = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, x.at);
    set(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y.at);
    add(operation);
}

void CudnnGraph::finish() {
    graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        (int64_t)operations.size(), operations.data());
    finalize(graph);
}

/* ---- devices and plans ---- */

CudnnDevice::CudnnDevice(cudnnHandle_t handle) {
    device = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set(device, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, handle);
    finalize(device);
}

CudnnDevice::CudnnDevice(const std::string &json) {
    device = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)json.size(),
        json.data());
    finalize(device);
}

/* Returns whether an engine may give different bits in each run, or cuDNN does not tell. */
static bool may_differ(CudnnDescriptors *of, cudnnBackendDescriptor_t config) {
    cudnnBackendDescriptor_t engine = of->make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &count, &engine) ||
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
                                 notes))
        return true;
    return std::find(notes, notes + count, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != notes + count;
}

CudnnPlan::CudnnPlan(const CudnnGraph &graph, const CudnnDevice &device, bool deterministic)
    : values(graph.constants()) {
    if (graph.failed() || device.failed()) {
        check(CUDNN_STATUS_NOT_SUPPORTED,
              (graph.failed() ? graph : (const CudnnDescriptors &)device).why().c_str());
        return;
    }
    propose(graph, device, CUDNN_HEUR_MODE_A, deterministic);
    if (!plan) propose(graph, device, CUDNN_HEUR_MODE_FALLBACK, deterministic);
    if (!plan) check(CUDNN_STATUS_NOT_SUPPORTED, "no engine serves this graph");
}

/* Makes the plan of the first supported engine that one of cuDNN's heuristics proposes, if any. */
void CudnnPlan::propose(const CudnnGraph &graph, const CudnnDevice &device,
                        cudnnBackendHeurMode_t mode, bool deterministic) {
    CudnnDescriptors asked;
    cudnnBackendDescriptor_t heuristics = asked.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    asked.set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              graph.descriptor());
    asked.set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    asked.set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              device.descriptor());
    asked.finalize(heuristics);
    int64_t count = 0;
    if (asked.failed() ||
        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr))
        return;
    std::vector<cudnnBackendDescriptor_t> configs;
    for (int64_t i = 0; i < count; i++)
        configs.push_back(asked.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    if (cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, configs.data()))
        return;
    for (int64_t i = 0; i < count && !plan; i++)
        if (!deterministic || !may_differ(&asked, configs[(size_t)i]))
            take(configs[(size_t)i], device);
}

/* Creates a plan from an engine's configuration. False: the engine does not support the graph. */
bool CudnnPlan::take(cudnnBackendDescriptor_t config, const CudnnDevice &device) {
    cudnnBackendDescriptor_t made = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t count = 0;
    if (!made || cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config))
        return false;
    cudnnBackendDescriptor_t on = device.descriptor();
    if (cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &on) ||
        cudnnBackendFinalize(made) ||
        cudnnBackendGetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                 1, &count, &workspace))
        return false;
    plan = made;
    return true;
}

void CudnnPlan::run(cudnnHandle_t handle,
                    const std::vector<std::pair<int64_t, const void *>> &tensors, void *memory) {
    CudnnDescriptors pack;
    std::vector<int64_t> numbers;
    std::vector<const void *> addresses;
    for (const auto &tensor : tensors) {
        numbers.push_back(tensor.first);
        addresses.push_back(tensor.second);
    }
    for (const auto &value : values) {
        numbers.push_back(value.first);
        addresses.push_back(&value.second);
    }
    cudnnBackendDescriptor_t variant = pack.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(variant, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, (int64_t)numbers.size(),
             numbers.data());
    pack.set(variant, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             (int64_t)addresses.size(), addresses.data());
    pack.set(variant, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, memory);
    pack.finalize(variant);
    if (pack.failed()) check(CUDNN_STATUS_BAD_PARAM, pack.why().c_str());
    else check(cudnnBackendExecute(handle, plan, variant), "running a plan");
}
