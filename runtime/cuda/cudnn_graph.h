/* cudnn_graph.h: graphs of operations for cuDNN's back end, and the plans that it makes of them.
 * C++ only.
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
 * No tensor is computed before its operands. Nothing here needs a GPU but CudnnPlan::run: `device`
 * may describe one that is elsewhere. What cuDNN refuses is remembered, not reported: after it all
 * calls do nothing, and `why` says what it was.
 */
#ifndef CUDA_CUDNN_GRAPH_H
#define CUDA_CUDNN_GRAPH_H

#include <cudnn_graph.h>

#include <array>
#include <map>
#include <string>
#include <vector>

/* The first of cuDNN's versions whose attention needs no care for numbers of keys that are no
 * multiple of 128. */
enum { CUDNN_LEAST_VERSION = 91600 };

enum { CUDNN_RANK = 4, CUDNN_TENSOR_ALIGNMENT = 16 }; // bytes

typedef std::array<int64_t, CUDNN_RANK> CudnnSizes;

/* cuDNN's descriptors, which live as long as this; and the first thing that it refused. */
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
    /* Notes that cuDNN refused what `doing` says, unless something was refused before or the status
     * is success. */
    void check(cudnnStatus_t status, const char *doing);

  private:
    std::vector<cudnnBackendDescriptor_t> all;
    std::string refused;
};

typedef struct CudnnTensor {
    cudnnBackendDescriptor_t at;
    CudnnSizes extent;
} CudnnTensor;

/* The strides of a tensor whose elements lie in order. */
CudnnSizes cudnn_packed(const CudnnSizes &extent);

class CudnnGraph : public CudnnDescriptors {
  public:
    /* A tensor in memory, by the number (1 to 99) that stands for its address when a plan runs;
     * between(): one that need not exist. */
    CudnnTensor tensor(int64_t number, cudnnDataType_t type, const CudnnSizes &extent,
                       const CudnnSizes &stride);
    CudnnTensor between(cudnnDataType_t type, const CudnnSizes &extent, const CudnnSizes &stride);
    CudnnTensor between(cudnnDataType_t type, const CudnnSizes &extent) {
        return between(type, extent, cudnn_packed(extent));
    }
    CudnnTensor constant(float value);

    /* y = mode(x...), computed in `math`; extents of 1 are repeated. Of a selection x is {if true,
     * if false, condition}. */
    void pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t math,
                   const std::vector<CudnnTensor> &x, const CudnnTensor &y, int64_t axis = -1);
    /* c = a b for each of the first two indices; fewer of these in b than in a: several of a share
     * one. */
    void matmul(const CudnnTensor &a, const CudnnTensor &b, const CudnnTensor &c);
    /* y: what x's elements make up that y has fewer of. */
    void reduce(cudnnReduceTensorOp_t op, const CudnnTensor &x, const CudnnTensor &y);
    /* y: the elements of x as y's extents and strides say. */
    void reshape(const CudnnTensor &x, const CudnnTensor &y);
    /* After the last operation. */
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
    int64_t next = 100; // number of a tensor that is not in memory
};

/* The device that a handle belongs to, or the one that a JSON text describes, as cuDNN writes
 * it. */
class CudnnDevice : public CudnnDescriptors {
  public:
    explicit CudnnDevice(cudnnHandle_t handle);
    explicit CudnnDevice(const std::string &json);
    cudnnBackendDescriptor_t descriptor() const { return device; }

  private:
    cudnnBackendDescriptor_t device = nullptr;
};

/* The first of the engines that cuDNN proposes for a graph that serves it on a device;
 * `deterministic`: of those that give the same bits each time. Fails when there is none. The graph
 * need not outlive it. */
class CudnnPlan : public CudnnDescriptors {
  public:
    CudnnPlan(const CudnnGraph &graph, const CudnnDevice &device, bool deterministic);

    /* Bytes of memory on the device that a run needs. */
    int64_t workspace_bytes() const { return workspace; }
    /* Runs it on the handle's stream. */
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

#endif
