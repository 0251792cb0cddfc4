/* cuDNN's back end: graphs of operations, computed one by one as their descriptors say, each tensor rounded to its type.
 *
 * What cuDNN refuses is refused: shapes that do not fit, numbers used twice, values used before they are made, attributes set after
 * finalizing. A run ends the program when a tensor's elements do not all lie on the device, or its address is not aligned. Two engines are
 * proposed; the first gives other bits each time, and ends the program when it runs.
 *
 *     HETU_EMULATE_CUDNN=none       no engine serves
 *     HETU_EMULATE_CUDNN_RUNS=FILE  each run adds a line
 */
#include "inside.h"

#include <cuda_bf16.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <array>
#include <map>
#include <math.h>
#include <memory>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

struct cudnnContext {
    cudaStream_t stream = nullptr;
};

namespace {

enum { RANK = 4, ENGINES = 2, ALIGNMENT = 16, WORKSPACE = 4096 };

struct Graph;

/* A descriptor; those of a graph's engines and plans keep the graph, not its descriptors. */
struct Descriptor {
    cudnnBackendDescriptorType_t type;
    bool final = false;
    int engine = 0;
    std::shared_ptr<Graph> graph;
    std::map<int, std::vector<char>> value;
    std::map<int, int64_t> count;

    template <typename T> const T *all(int name) const
    {
        auto found = value.find(name);
        return found == value.end() ? nullptr : (const T *)found->second.data();
    }
    template <typename T> T one(int name) const { return *all<T>(name); }
    bool has(int name) const { return value.count(name) != 0; }
    const Descriptor *part(int name) const { return has(name) ? (const Descriptor *)one<void *>(name) : nullptr; }
};

typedef std::array<int64_t, RANK> Sizes;

struct Tensor {
    int64_t number;
    cudnnDataType_t type;
    Sizes extent, stride;
    bool in_memory, by_value;

    int64_t size() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
    int64_t span() const
    {
        int64_t last = 0;
        for (int d = 0; d < RANK; d++)
            last += (extent[d] - 1) * stride[d];
        return last + 1;
    }
    int64_t place(const Sizes &at) const { return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2] + at[3] * stride[3]; }
    Sizes index(int64_t i) const
    {
        Sizes at;
        for (int d = RANK - 1; d >= 0; i /= extent[d], d--)
            at[d] = i % extent[d];
        return at;
    }
    int64_t order(const Sizes &at) const { return ((at[0] * extent[1] + at[1]) * extent[2] + at[2]) * extent[3] + at[3]; }
    /* The element that stands for one of a larger tensor: indices are repeated, or shared by several in a row. */
    int64_t shared(const Sizes &at, const Sizes &of) const
    {
        Sizes own;
        for (int d = 0; d < RANK; d++)
            own[d] = at[d] * extent[d] / of[d];
        return order(own);
    }
};

/* An operation: its operands and result as numbers of tensors. */
struct Operation {
    cudnnBackendDescriptorType_t type;
    int mode;
    int64_t axis;
    std::vector<int64_t> x;
    int64_t y;
};

struct Graph {
    std::map<int64_t, Tensor> tensors;
    std::vector<Operation> operations;
};

std::string last_error;

cudnnStatus_t refuse(const char *why)
{
    last_error = why;
    return CUDNN_STATUS_BAD_PARAM;
}

size_t bytes_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN: return 1;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE: return 4;
    default: return 8;
    }
}

/* ---- graphs out of descriptors ---- */

Tensor tensor_of(const Descriptor *d)
{
    Tensor t = {d->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
                d->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
                {},
                {},
                !d->one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && !d->one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE),
                d->one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    memcpy(t.extent.data(), d->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), sizeof t.extent);
    memcpy(t.stride.data(), d->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES), sizeof t.stride);
    return t;
}

/* The attributes of an operation that are its operands, and the one that is its result. */
struct Shape {
    std::vector<int> x;
    int y, kind, mode;
};

Shape shape_of(cudnnBackendDescriptorType_t type)
{
    switch (type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                CUDNN_ATTR_POINTWISE_MODE};
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                CUDNN_ATTR_OPERATION_MATMUL_DESC,
                CUDNN_ATTR_MATMUL_COMP_TYPE};
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
                CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                CUDNN_ATTR_REDUCTION_OPERATOR};
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, -1, -1};
    default: return {{}, -1, -1, -1};
    }
}

bool is_multiple(const Sizes &large, const Sizes &small)
{
    for (int d = 0; d < RANK; d++)
        if (small[d] < 1 || large[d] % small[d])
            return false;
    return true;
}

const char *mismatch(const Operation &o, const std::map<int64_t, Tensor> &tensors)
{
    const Tensor &x = tensors.at(o.x[0]), &y = tensors.at(o.y);
    switch (o.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
        const Tensor &b = tensors.at(o.x[1]);
        const bool fits = x.extent[3] == b.extent[2] && x.extent[2] == y.extent[2] && b.extent[3] == y.extent[3];
        const bool batches =
            x.extent[0] == y.extent[0] && x.extent[1] == y.extent[1] && b.extent[0] == y.extent[0] && y.extent[1] % b.extent[1] == 0;
        return fits && batches ? nullptr : "the operands of a matmul do not fit";
    }
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return is_multiple(x.extent, y.extent) ? nullptr : "a reduction's result does not fit";
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: return x.size() == y.size() ? nullptr : "a reshape changes the number of elements";
    default:
        for (int64_t number : o.x)
            if (!is_multiple(y.extent, tensors.at(number).extent))
                return "the operands of a pointwise operation do not fit";
        return nullptr;
    }
}

/* Notes a tensor of an operation; false: another one has its number. */
bool note(Graph *graph, std::map<int64_t, const Descriptor *> *seen, const Descriptor *d)
{
    const Tensor t = tensor_of(d);
    if (!seen->emplace(t.number, d).second && seen->at(t.number) != d)
        return false;
    graph->tensors.emplace(t.number, t);
    return true;
}

const char *take_operation(Graph *graph, std::map<int64_t, const Descriptor *> *seen, std::set<int64_t> *made, const Descriptor *d)
{
    const Shape shape = shape_of(d->type);
    const Descriptor *kind = shape.kind < 0 ? nullptr : d->part(shape.kind), *y = d->part(shape.y);
    Operation o = {d->type, kind ? kind->one<int>(shape.mode) : 0, -1, {}, tensor_of(y).number};
    if (kind && kind->has(CUDNN_ATTR_POINTWISE_AXIS))
        o.axis = kind->one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
    for (int name : shape.x)
        if (const Descriptor *x = d->part(name)) {
            const Tensor t = tensor_of(x);
            if (!note(graph, seen, x))
                return "two tensors have one number";
            if (!t.in_memory && !t.by_value && !made->count(t.number))
                return "an operation's operand is made by none before it";
            o.x.push_back(t.number);
        }
    if (!note(graph, seen, y) || !made->insert(o.y).second)
        return "two operations have one result";
    graph->operations.push_back(o);
    return mismatch(o, graph->tensors);
}

/* The graph of a descriptor; nullptr after a refusal. */
std::shared_ptr<Graph> graph_of(const Descriptor *d)
{
    auto graph = std::make_shared<Graph>();
    std::map<int64_t, const Descriptor *> seen;
    std::set<int64_t> made;
    for (int64_t i = 0; i < d->count.at(CUDNN_ATTR_OPERATIONGRAPH_OPS); i++)
        if (const char *why =
                take_operation(graph.get(), &seen, &made, (const Descriptor *)d->all<void *>(CUDNN_ATTR_OPERATIONGRAPH_OPS)[i])) {
            refuse(why);
            return nullptr;
        }
    return graph;
}

/* ---- a run ---- */

float rounded(float value, cudnnDataType_t type) { return type == CUDNN_DATA_BFLOAT16 ? __bfloat162float(__float2bfloat16(value)) : value; }

size_t element_bytes(cudnnDataType_t type) { return type == CUDNN_DATA_BFLOAT16 ? 2 : 4; }

struct Run {
    std::shared_ptr<Graph> graph;
    std::map<int64_t, const void *> address;
    std::map<int64_t, std::vector<float>> value; // of tensors, in the order of their indices

    const std::vector<float> &of(int64_t number)
    {
        std::vector<float> &at = value[number];
        const Tensor &t = graph->tensors.at(number);
        if (at.empty() && t.by_value)
            at.assign(1, *(const float *)address.at(number));
        for (int64_t i = 0; at.size() < (size_t)t.size(); i++) {
            const int64_t place = t.place(t.index(i));
            at.push_back(t.type == CUDNN_DATA_BFLOAT16 ? __bfloat162float(((const __nv_bfloat16 *)address.at(number))[place])
                                                       : ((const float *)address.at(number))[place]);
        }
        return at;
    }

    void put(int64_t number, std::vector<float> result)
    {
        const Tensor &t = graph->tensors.at(number);
        for (int64_t i = 0; i < t.size(); i++) {
            result[(size_t)i] = rounded(result[(size_t)i], t.type);
            if (!t.in_memory)
                continue;
            void *to = const_cast<void *>(address.at(number));
            const int64_t place = t.place(t.index(i));
            if (t.type == CUDNN_DATA_BFLOAT16)
                ((__nv_bfloat16 *)to)[place] = __float2bfloat16(result[(size_t)i]);
            else
                ((float *)to)[place] = result[(size_t)i];
        }
        value[number] = std::move(result);
    }
};

float pointwise(int mode, const float *x)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD: return x[0] + x[1];
    case CUDNN_POINTWISE_MUL: return x[0] * x[1];
    case CUDNN_POINTWISE_DIV: return x[0] / x[1];
    case CUDNN_POINTWISE_SUB: return x[0] - x[1];
    case CUDNN_POINTWISE_EXP: return expf(x[0]);
    case CUDNN_POINTWISE_LOG: return logf(x[0]);
    case CUDNN_POINTWISE_CMP_GE: return x[0] >= x[1];
    case CUDNN_POINTWISE_BINARY_SELECT: return x[2] != 0 ? x[0] : x[1];
    }
    emulate::fail("cuDNN's pointwise operation %d is not emulated", mode);
}

std::vector<float> run_pointwise(Run *run, const Operation &o)
{
    const Tensor &y = run->graph->tensors.at(o.y);
    std::vector<const std::vector<float> *> x;
    for (int64_t number : o.x)
        x.push_back(&run->of(number));
    std::vector<float> result((size_t)y.size());
    for (int64_t i = 0; i < y.size(); i++) {
        const Sizes at = y.index(i);
        float operand[3] = {};
        for (size_t k = 0; k < o.x.size(); k++)
            operand[k] = (*x[k])[(size_t)run->graph->tensors.at(o.x[k]).shared(at, y.extent)];
        result[(size_t)i] = o.mode == CUDNN_POINTWISE_GEN_INDEX ? (float)at[(size_t)o.axis] : pointwise(o.mode, operand);
    }
    return result;
}

std::vector<float> run_matmul(Run *run, const Operation &o)
{
    const Tensor &a = run->graph->tensors.at(o.x[0]), &b = run->graph->tensors.at(o.x[1]), &y = run->graph->tensors.at(o.y);
    const std::vector<float> &left = run->of(o.x[0]), &right = run->of(o.x[1]);
    std::vector<float> result((size_t)y.size());
    for (int64_t i = 0; i < y.size(); i++) {
        const Sizes at = y.index(i);
        const int64_t row = a.order({at[0], at[1], at[2], 0}), column = b.order({at[0], at[1] * b.extent[1] / y.extent[1], 0, at[3]});
        float sum = 0;
        for (int64_t k = 0; k < a.extent[3]; k++)
            sum += left[(size_t)(row + k)] * right[(size_t)(column + k * b.extent[3])];
        result[(size_t)i] = sum;
    }
    return result;
}

std::vector<float> run_reduction(Run *run, const Operation &o)
{
    const Tensor &x = run->graph->tensors.at(o.x[0]), &y = run->graph->tensors.at(o.y);
    const std::vector<float> &from = run->of(o.x[0]);
    const bool adds = o.mode == CUDNN_REDUCE_TENSOR_ADD;
    std::vector<float> result((size_t)y.size(), adds ? 0 : -INFINITY);
    for (int64_t i = 0; i < x.size(); i++) {
        float &to = result[(size_t)y.shared(x.index(i), x.extent)];
        to = adds ? to + from[(size_t)i] : std::max(to, from[(size_t)i]);
    }
    return result;
}

/* What lies at a place of x's storage lies at the same place of y's. */
std::vector<float> run_reshape(Run *run, const Operation &o)
{
    const Tensor &x = run->graph->tensors.at(o.x[0]), &y = run->graph->tensors.at(o.y);
    const std::vector<float> &from = run->of(o.x[0]);
    std::vector<float> stored((size_t)std::max(x.span(), y.span()), NAN), result((size_t)y.size());
    for (int64_t i = 0; i < x.size(); i++)
        stored[(size_t)x.place(x.index(i))] = from[(size_t)i];
    for (int64_t i = 0; i < y.size(); i++)
        result[(size_t)i] = stored[(size_t)y.place(y.index(i))];
    return result;
}

void run_all(Run *run)
{
    for (const Operation &o : run->graph->operations)
        run->put(o.y, o.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR      ? run_matmul(run, o)
                      : o.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ? run_reduction(run, o)
                      : o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR   ? run_reshape(run, o)
                                                                               : run_pointwise(run, o));
}

/* Ends the program unless each tensor has an address that cuDNN could use. */
void check_addresses(const Run &run)
{
    for (const auto &[number, t] : run.graph->tensors) {
        if (!t.in_memory && !t.by_value)
            continue;
        auto found = run.address.find(number);
        if (found == run.address.end() || !found->second)
            emulate::fail("cuDNN: tensor %ld has no address", (long)number);
        if (t.in_memory &&
            (!ht_emulated_is_device(found->second, (size_t)t.span() * element_bytes(t.type)) || (uintptr_t)found->second % ALIGNMENT))
            emulate::fail("cuDNN: tensor %ld does not lie in an allocation on the device, at a multiple of %d bytes", (long)number,
                          ALIGNMENT);
    }
}

void note_run()
{
    const char *name = getenv("HETU_EMULATE_CUDNN_RUNS");
    FILE *file = name ? fopen(name, "a") : nullptr;
    if (!file)
        return;
    fputs("attention\n", file);
    fclose(file);
}

/* ---- what is asked of descriptors ---- */

cudnnStatus_t give_engines(const Descriptor *d, int64_t requested, int64_t *count, void *elements)
{
    const char *choice = getenv("HETU_EMULATE_CUDNN");
    *count = choice && !strcmp(choice, "none") ? 0 : ENGINES;
    for (int64_t i = 0; i < std::min(requested, *count); i++) {
        Descriptor *to = ((Descriptor **)elements)[i];
        to->graph = d->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->graph;
        to->engine = (int)i;
        to->final = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give_notes(const Descriptor *d, int64_t requested, int64_t *count, void *elements)
{
    const cudnnBackendNumericalNote_t notes[] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    *count = d->engine == 0 ? 2 : 1;
    memcpy(elements, notes, (size_t)std::min(requested, *count) * sizeof notes[0]);
    return CUDNN_STATUS_SUCCESS;
}

/* What a descriptor must have. */
std::vector<int> needs_of(cudnnBackendDescriptorType_t type)
{
    switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return {CUDNN_ATTR_TENSOR_UNIQUE_ID,      CUDNN_ATTR_TENSOR_DATA_TYPE,  CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES,
                CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_ATTR_TENSOR_IS_BY_VALUE};
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR: return {CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC};
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR: return {CUDNN_ATTR_MATMUL_COMP_TYPE};
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR: return {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE};
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return {CUDNN_ATTR_OPERATIONGRAPH_OPS};
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP};
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP};
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS};
    default: {
        Shape shape = shape_of(type);
        std::vector<int> needs(shape.x.begin(), shape.x.empty() ? shape.x.end() : shape.x.begin() + 1);
        for (int name : {shape.y, shape.kind})
            if (name >= 0)
                needs.push_back(name);
        return needs;
    }
    }
}

void take_engine(Descriptor *plan)
{
    const Descriptor *config = plan->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (emulate::capturing())
        emulate::fail("cuDNN makes a plan while a stream is captured");
    plan->engine = config->engine;
    plan->graph = config->graph;
}

} // namespace

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    }
    return "unknown";
}

void cudnnGetLastErrorString(char *message, size_t size) { snprintf(message, size, "%s", last_error.c_str()); }

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    if (emulate::capturing())
        emulate::fail("cudnnCreate while a stream is captured");
    *handle = new cudnnContext;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor)
{
    Descriptor *made = new Descriptor;
    made->type = type;
    *descriptor = made;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    delete (Descriptor *)descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *elements)
{
    Descriptor *d = (Descriptor *)descriptor;
    if (!d || d->final || count < 1 || !elements)
        return refuse("an attribute that cannot be set");
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++)
            if (!((Descriptor *const *)elements)[i] || !((Descriptor *const *)elements)[i]->final)
                return refuse("a descriptor that is not finalized");
    if ((name == CUDNN_ATTR_TENSOR_DIMENSIONS || name == CUDNN_ATTR_TENSOR_STRIDES) && count != RANK)
        return refuse("a tensor whose rank is not 4");
    d->value[name].assign((const char *)elements, (const char *)elements + (size_t)count * bytes_of(type));
    d->count[name] = count;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    Descriptor *d = (Descriptor *)descriptor;
    for (int name : needs_of(d->type))
        if (!d->has(name))
            return refuse("a descriptor that lacks an attribute");
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && !(d->graph = graph_of(d)))
        return CUDNN_STATUS_BAD_PARAM;
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        take_engine(d);
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                                       int64_t requested, int64_t *count, void *elements)
{
    const Descriptor *d = (const Descriptor *)descriptor;
    if (!d->final)
        return refuse("what is asked of a descriptor that is not finalized");
    *count = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: return give_engines(d, requested, count, elements);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: return give_notes(d, requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        (*(Descriptor **)elements)->engine = d->engine;
        (*(Descriptor **)elements)->final = true;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: *(int64_t *)elements = WORKSPACE; return CUDNN_STATUS_SUCCESS;
    default: return refuse("an attribute that is not emulated");
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    const Descriptor *of = (const Descriptor *)plan, *with = (const Descriptor *)pack;
    if (!of->final || !with->final || !with->has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE))
        return refuse("a run that lacks something");
    if (of->engine == 0)
        emulate::fail("cuDNN: an engine runs that gives other bits each time");
    void *workspace = with->one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (!ht_emulated_is_device(workspace, WORKSPACE))
        emulate::fail("cuDNN: the workspace does not lie in an allocation on the device");
    auto run = std::make_shared<Run>();
    run->graph = of->graph;
    for (int64_t i = 0; i < with->count.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS); i++)
        run->address[with->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)[i]] =
            with->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)[i];
    check_addresses(*run);
    for (const auto &[number, t] : run->graph->tensors)
        if (t.by_value)
            run->of(number);
    ht_emulated_enqueue(handle->stream, [run, workspace] {
        Run own = *run;
        memset(workspace, 0xff, WORKSPACE);
        run_all(&own);
        note_run();
    });
    return CUDNN_STATUS_SUCCESS;
}
