/* Calls of attention by cuDNN. */
#include "cuda/cudnn_engine.h"

#include "cuda/cudnn_attention.h"
#include "cuda/views.h"

#include <memory>
#include <stdio.h>
#include <tuple>

enum { WIDEST = 128, BACKWARD_OPERANDS = 9, UNIT = 256 }; // UNIT: bytes to which parts of scratch memory are aligned

/* ---- what cuDNN serves ---- */

/* Whether cuDNN can address a tensor of the call: bf16, rows of all heads at multiples of 16 bytes. */
static bool is_addressable(const ht_view *view)
{
    const int64_t pitch = ht_view_pitch(view, view->rank - 2) * dtype_bytes(HT_BF16);
    return view->dtype == HT_BF16 && pitch % CUDNN_TENSOR_ALIGNMENT == 0 && aligned_to(CUDNN_TENSOR_ALIGNMENT, {view->data});
}

static bool begins_alike(const AttentionPlaces &a, const AttentionPlaces &b) { return a.offset == b.offset && !a.gap && !b.gap; }

static bool is_served(const AttentionShape &a, std::initializer_list<const ht_view *> tensors)
{
    for (const ht_view *tensor : tensors)
        if (!is_addressable(tensor))
            return false;
    const bool empty = a.batch == 0 || a.s == 0 || a.t == 0 || a.groups == 0;
    return !empty && a.d <= WIDEST && a.d % 8 == 0 && !a.segments.at && (!a.causal || begins_alike(a.queries, a.keys));
}

/* ---- plans ---- */

/* cuDNN on this process's GPU. */
typedef struct Cudnn {
    cudnnHandle_t handle;
    std::unique_ptr<CudnnDevice> device;
} Cudnn;

static void say_once(const std::string &why)
{
    static bool said;
    if (!said)
        fprintf(stderr, "hetu: cuDNN does not serve attention here, and slower kernels do: %s\n", why.c_str());
    said = true;
}

/* nullptr: this version of cuDNN is too old, or cannot use the GPU. */
static Cudnn *cudnn(void)
{
    static Cudnn opened;
    static bool tried;
    if (tried)
        return opened.device ? &opened : nullptr;
    tried = true;
    const size_t version = cudnnGetVersion();
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (version < (size_t)CUDNN_LEAST_VERSION)
        say_once("version " + std::to_string(version) + " is older than " + std::to_string(CUDNN_LEAST_VERSION));
    else if ((status = cudnnCreate(&opened.handle)) != CUDNN_STATUS_SUCCESS)
        say_once(std::string("cudnnCreate: ") + cudnnGetErrorString(status));
    else
        opened.device = std::make_unique<CudnnDevice>(opened.handle);
    return opened.device ? &opened : nullptr;
}

static bool is_recorded(void)
{
    cudaStreamCaptureStatus status;
    HT_CUDA(cudaStreamIsCapturing(ht_compute_stream(), &status));
    return status != cudaStreamCaptureStatusNone;
}

typedef std::array<int64_t, 16> PlanKey;

static PlanKey key_of(const CudnnAttention &a, bool backward)
{
    const CudnnPitches &p = a.pitch;
    return {backward, a.batch, a.s, a.t, a.heads, a.groups, a.d, a.causal, p.q, p.k, p.v, p.y, p.dy, p.dq, p.dk, p.dv};
}

static std::unique_ptr<CudnnPlan> make_plan(const Cudnn &on, const CudnnAttention &a, bool backward)
{
    CudnnGraph graph;
    if (backward)
        cudnn_attention_backward(&graph, a);
    else
        cudnn_attention_forward(&graph, a);
    auto plan = std::make_unique<CudnnPlan>(graph, *on.device, true);
    if (plan->failed())
        say_once(plan->why());
    return plan;
}

/* The plan for a shape, from the second time on the one of before; nullptr: there is none. The scale follows from d. */
static CudnnPlan *plan_for(const CudnnAttention &a, bool backward)
{
    static std::map<PlanKey, std::unique_ptr<CudnnPlan>> plans;
    Cudnn *on = cudnn();
    if (!on)
        return nullptr;
    const PlanKey key = key_of(a, backward);
    auto found = plans.find(key);
    if (found == plans.end()) {
        if (is_recorded())
            return nullptr;
        found = plans.emplace(key, make_plan(*on, a, backward)).first;
    }
    return found->second->failed() ? nullptr : found->second.get();
}

static void run(CudnnPlan *plan, const std::vector<std::pair<int64_t, const void *>> &tensors, void *workspace)
{
    const cudnnStatus_t status = cudnnSetStream(cudnn()->handle, ht_compute_stream());
    if (status != CUDNN_STATUS_SUCCESS)
        ht_fail("cuDNN: cudnnSetStream: %s", cudnnGetErrorString(status));
    plan->run(cudnn()->handle, tensors, workspace);
    if (plan->failed())
        ht_fail("cuDNN: %s", plan->why().c_str());
}

/* ---- statistics ---- */

/* A row's logarithm lies at [b, s, h] in a program, and at [b, h, s] for cuDNN: to the latter, or back. */
__global__ void turn_statistics_device(float *to, const float *from, int64_t count, int64_t s, int64_t heads, bool back)
{
    for (int64_t at = ht_thread(); at < count; at += ht_threads()) {
        const int64_t h = at % heads, i = at / heads % s, b = at / heads / s, turned = (b * heads + h) * s + i;
        to[back ? at : turned] = from[back ? turned : at];
    }
}

static void turn_statistics(float *to, const float *from, const CudnnAttention &a, bool back)
{
    const int threads = 256;
    const int64_t count = a.batch * a.s * a.heads;
    ht_launch(turn_statistics_device, ht_blocks(count, threads), threads, 0, to, from, count, a.s, a.heads, back);
}

/* ---- calls ---- */

static int64_t pitch_of(const ht_view *view) { return ht_view_pitch(view, view->rank - 2); }

static int64_t padded(int64_t bytes) { return (bytes + UNIT - 1) / UNIT * UNIT; }

static int64_t statistics_bytes(const CudnnAttention &a) { return padded(a.batch * a.heads * a.s * (int64_t)sizeof(float)); }

static CudnnAttention attention_of(const AttentionShape &a, const CudnnPitches &pitch)
{
    return {a.batch, a.s, a.t, a.heads, a.groups, a.d, a.causal != 0, a.scale, pitch};
}

bool cudnn_attention(const AttentionShape &shape, const ht_call *call)
{
    const ht_view *in = call->operand, *out = call->result;
    if (!is_served(shape, {&in[0], &in[1], &in[2], &out[0]}))
        return false;
    const CudnnAttention a = attention_of(shape, {shape.q_pitch, shape.k_pitch, shape.v_pitch, pitch_of(&out[0]), 0, 0, 0, 0});
    CudnnPlan *plan = plan_for(a, false);
    if (!plan)
        return false;
    char *memory = (char *)cuda_scratch(statistics_bytes(a) + plan->workspace_bytes());
    run(plan, {{CUDNN_Q, in[0].data}, {CUDNN_K, in[1].data}, {CUDNN_V, in[2].data}, {CUDNN_Y, out[0].data}, {CUDNN_STATS, memory}},
        memory + statistics_bytes(a));
    turn_statistics((float *)out[1].data, (const float *)memory, a, true);
    return true;
}

/* How many of a call's batches a run of backward takes: a divisor of their number whose statistics begin where cuDNN can address them.
 * cuDNN keeps a matrix of scores a head in bf16, of which at most attention_kept_bytes are kept at a time, as by our kernels. */
static int64_t batches_at_once(const CudnnAttention &a)
{
    const int64_t tile = 128, queries = (a.s + tile - 1) / tile * tile, keys = (a.t + tile - 1) / tile * tile;
    const int64_t each = a.heads * queries * keys * dtype_bytes(HT_BF16);
    auto parts = [&](int64_t batches) {
        return a.batch % batches == 0 && batches * a.heads * a.s * (int64_t)sizeof(float) % CUDNN_TENSOR_ALIGNMENT == 0;
    };
    int64_t found = a.batch;
    for (int64_t batches = a.batch - 1; batches > 0 && found * each > attention_kept_bytes; batches--)
        found = parts(batches) ? batches : found;
    return found;
}

/* The address of the rows of a tensor of bf16 from a batch on. */
static const void *from_batch(const ht_view *view, int64_t batch, int64_t rows)
{
    return (const char *)view->data + batch * rows * pitch_of(view) * dtype_bytes(HT_BF16);
}

bool cudnn_attention_gradient(const AttentionShape &shape, const ht_call *call)
{
    const ht_view *in = call->operand, *out = call->result, *dy = &in[0], *q = &in[1], *k = &in[2], *v = &in[3], *y = &in[4], *lse = &in[5];
    if (in[BACKWARD_OPERANDS - 1].data || !is_served(shape, {dy, q, k, v, y, &out[0], &out[1], &out[2]}))
        return false;
    const CudnnAttention all = attention_of(shape, {shape.q_pitch, shape.k_pitch, shape.v_pitch, pitch_of(y), pitch_of(dy),
                                                    pitch_of(&out[0]), pitch_of(&out[1]), pitch_of(&out[2])});
    CudnnAttention part = all;
    part.batch = batches_at_once(all);
    CudnnPlan *plan = plan_for(part, true);
    if (!plan)
        return false;
    const int64_t rows = all.heads * all.s;
    char *memory = (char *)cuda_scratch(statistics_bytes(all) + statistics_bytes(part) + plan->workspace_bytes());
    char *sums = memory + statistics_bytes(all), *workspace = sums + statistics_bytes(part);
    turn_statistics((float *)memory, (const float *)lse->data, all, false);
    for (int64_t b = 0; b < all.batch; b += part.batch)
        run(plan,
            {{CUDNN_Q, from_batch(q, b, all.s)},
             {CUDNN_K, from_batch(k, b, all.t)},
             {CUDNN_V, from_batch(v, b, all.t)},
             {CUDNN_Y, from_batch(y, b, all.s)},
             {CUDNN_DY, from_batch(dy, b, all.s)},
             {CUDNN_DQ, from_batch(&out[0], b, all.s)},
             {CUDNN_DK, from_batch(&out[1], b, all.t)},
             {CUDNN_DV, from_batch(&out[2], b, all.t)},
             {CUDNN_STATS, (const float *)memory + b * rows},
             {CUDNN_SUMS, sums}},
            workspace);
    return true;
}
