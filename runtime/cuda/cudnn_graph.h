/* cudnn_graph.h: graphs of operations for cuDNN's backend API, and execution plans. C++ only.
 *
 *     CudnnGraph graph;
 *     CudnnTensor x = graph.tensor(1, CUDNN_DATA_BFLOAT16, {b, h, s, d}, strides), ...;
 *     CudnnTensor scores = graph.between(CUDNN_DATA_FLOAT, {b, h, s, t});
 *     graph.matmul(x, y, scores);
 *     graph.pointwise(CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, {scores, graph.constant(0.5f)},
 *         scaled);
 *     graph.finish();
 *     CudnnPlan plan(graph, device, true);
 *     if (!plan.failed())
 *         plan.run(handle, {{1, address}, ...}, workspace);
 *
 * Operations are added after the operations that compute their operands. Only CudnnPlan::run needs
 * a GPU; `device` may describe a GPU of another machine. After the first error of cuDNN all calls
 * do nothing, and `why` returns the error. */
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <map>
#include <string>
#include <vector>

/* The first cuDNN version whose attention is correct for numbers of keys not a multiple of 128. */
enum { CUDNN_LEAST_VERSION = 91600 };

/* CUDNN_RANK: dimensions of every tensor; CUDNN_TENSOR_ALIGNMENT: bytes. */
enum { CUDNN_RANK = 4, CUDNN_TENSOR_ALIGNMENT = 16 };

typedef std::array<int64_t, CUDNN_RANK> CudnnSizes;

/* Owns cuDNN's descriptors, and keeps the first error. */
class CudnnDescriptors {
  public:
    CudnnDescriptors() = default;
    CudnnDescriptors(const CudnnDescriptors &) = delete;
    CudnnDescriptors &operator=(const CudnnDescriptors &) = delete;
    ~CudnnDescriptors();

    cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type);
    void set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, int64_t count, const void *value);
    template <typename T>
    void set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, const T &value) {
        set(of, name, type, 1, &value);
    }
    void finalize(cudnnBackendDescriptor_t of);

    bool failed() const { return !refused.empty(); }
    const std::string &why() const { return refused; }
    /* Records the error of operation `doing`, unless it succeeded or an earlier error is known. */
    void check(cudnnStatus_t status, const char *doing);

  private:
    std::vector<cudnnBackendDescriptor_t> all;
    std::string refused;
};

typedef struct CudnnTensor {
    cudnnBackendDescriptor_t at;
    CudnnSizes extent;
} CudnnTensor;

/* Returns the strides of a contiguous tensor. */
CudnnSizes cudnn_packed(const CudnnSizes &extent);

class CudnnGraph : public CudnnDescriptors {
  public:
    /* tensor returns a tensor in memory; its number (1 to 99) stands for its address in run.
     * between returns an intermediate tensor, which need not be stored. */
    CudnnTensor tensor(int64_t number, cudnnDataType_t type, const CudnnSizes &extent,
                       const CudnnSizes &stride);
    CudnnTensor between(cudnnDataType_t type, const CudnnSizes &extent, const CudnnSizes &stride);
    CudnnTensor between(cudnnDataType_t type, const CudnnSizes &extent) {
        return between(type, extent, cudnn_packed(extent));
    }
    CudnnTensor constant(float value);

    /* Adds y = mode(x...), computed in `math`; extents of 1 are broadcast. For a selection, x is
     * {if true, if false, condition}. */
    void pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t math,
                   const std::vector<CudnnTensor> &x, const CudnnTensor &y, int64_t axis = -1);
    /* Adds c = a b for each pair of the first two indices. Where an index of b has a smaller
     * extent, several matrices of a share one matrix of b. */
    void matmul(const CudnnTensor &a, const CudnnTensor &b, const CudnnTensor &c);
    /* Adds a reduction of x over the dimensions in which y has a smaller extent. */
    void reduce(cudnnReduceTensorOp_t op, const CudnnTensor &x, const CudnnTensor &y);
    /* Adds a copy of x's elements with y's extents and strides. */
    void reshape(const CudnnTensor &x, const CudnnTensor &y);
    /* Ends the graph, after the last operation. */
    void finish();

    cudnnBackendDescriptor_t descriptor() const { return graph; }
    const std::map<int64_t, float> &constants() const { return values; }

  private:
    CudnnTensor describe(int64_t number, cudnnDataType_t type, const CudnnSizes &extent,
                         const CudnnSizes &stride, bool is_virtual, bool by_value);
    void add(cudnnBackendDescriptor_t operation);

    std::vector<cudnnBackendDescriptor_t> operations;
    std::map<int64_t, float> values;
    cudnnBackendDescriptor_t graph = nullptr;
    int64_t next = 100; // number of the next tensor that is not in memory
};

/* The device of a handle, or the device that a JSON text in cuDNN's format describes. */
class CudnnDevice : public CudnnDescriptors {
  public:
    explicit CudnnDevice(cudnnHandle_t handle);
    explicit CudnnDevice(const std::string &json);
    cudnnBackendDescriptor_t descriptor() const { return device; }

  private:
    cudnnBackendDescriptor_t device = nullptr;
};

/* An execution plan: the first engine proposed by cuDNN that supports the graph on a device. With
 * `deterministic`, only engines that give the same bits in each run count. failed() is true if
 * there is no engine. The graph may be destroyed before the plan. */
class CudnnPlan : public CudnnDescriptors {
  public:
    CudnnPlan(const CudnnGraph &graph, const CudnnDevice &device, bool deterministic);

    /* Returns the bytes of device memory that a run needs. */
    int64_t workspace_bytes() const { return workspace; }
    /* Runs the plan on the handle's stream. */
    void run(cudnnHandle_t handle, const std::vector<std::pair<int64_t, const void *>> &tensors,
             void *memory);

  private:
    void propose(const CudnnGraph &graph, const CudnnDevice &device, cudnnBackendHeurMode_t mode,
                 bool deterministic);
    bool take(cudnnBackendDescriptor_t config, const CudnnDevice &device);

    std::map<int64_t, float> values;
    cudnnBackendDescriptor_t plan = nullptr;
    int64_t workspace = 0;
};
