/* Runs attention by cuDNN. */
#include "cuda/attention_choice.h"

#include "cuda/cuda.h"
#include "cuda/cudnn_attention.h"
#include "cuda/views.h"

#include <memory>
#include <stdio.h>
#include <tuple>

enum { WIDEST = 128, BACKWARD_OPERANDS = 9 };

/* ---- supported calls ---- */

/* Returns whether cuDNN can address a tensor: bf16, rows of all heads at multiples of 16 bytes. */
static bool is_addressable(const ht_view *view) {
    const int64_t pitch = ht_view_pitch(view, view->rank - 2) * dtype_bytes(HT_BF16);
    return view->dtype == HT_BF16 && pitch % CUDNN_TENSOR_ALIGNMENT == 0 &&
           aligned_to(CUDNN_TENSOR_ALIGNMENT, {view->data});
}

static bool begins_alike(const AttentionPlaces &a, const AttentionPlaces &b) {
    return a.offset == b.offset && !a.gap && !b.gap;
}

static bool is_served(const AttentionShape &a, std::initializer_list<const ht_view *> tensors) {
    for (const ht_view *tensor : tensors)
        if (!is_addressable(tensor)) return false;
    const bool empty = a.batch == 0 || a.s == 0 || a.t == 0 || a.groups == 0;
    return !empty && a.d <= WIDEST && a.d % 8 == 0 && !a.segments.at &&
           (!a.causal || begins_alike(a.queries, a.keys));
}

/* ---- plans ---- */

/* cuDNN on this process's GPU. */
typedef struct Cudnn {
    cudnnHandle_t handle;
    std::unique_ptr<CudnnDevice> device;
} Cudnn;

static void say_once(const std::string &why) {
    static bool said;
    if (!said)
        fprintf(stderr, "hetu: cuDNN does not serve attention here, and slower kernels do: %s\n",
                why.c_str());
    said = true;
}

/* Opens cuDNN once and returns it; nullptr if cuDNN is too old or cannot use the GPU. */
static Cudnn *cudnn(void) {
    static Cudnn &opened = *new Cudnn(); // never freed: cuDNN's library may be unloaded first
    static bool tried;
    if (tried) return opened.device ? &opened : nullptr;
    tried = true;
    const size_t version = cudnnGetVersion();
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (version < (size_t)CUDNN_LEAST_VERSION)
        say_once("version " + std::to_string(version) + " is older than " +
                 std::to_string(CUDNN_LEAST_VERSION));
    else if ((status = cudnnCreate(&opened.handle)) != CUDNN_STATUS_SUCCESS)
        say_once(std::string("cudnnCreate: ") + cudnnGetErrorString(status));
    else opened.device = std::make_unique<CudnnDevice>(opened.handle);
    return opened.device ? &opened : nullptr;
}

static bool is_recorded(void) {
    cudaStreamCaptureStatus status;
    HT_CUDA(cudaStreamIsCapturing(ht_compute_stream(), &status));
    return status != cudaStreamCaptureStatusNone;
}

typedef std::array<int64_t, 16> PlanKey;

static PlanKey key_of(const CudnnAttention &a, bool backward) {
    const CudnnPitches &p = a.pitch;
    return {backward, a.batch, a.s, a.t, a.heads, a.groups, a.d,  a.causal,
            p.q,      p.k,     p.v, p.y, p.dy,    p.dq,     p.dk, p.dv};
}

static std::unique_ptr<CudnnPlan> make_plan(const Cudnn &on, const CudnnAttention &a,
                                            bool backward) {
    CudnnGraph graph;
    if (backward) cudnn_attention_backward(&graph, a);
    else cudnn_attention_forward(&graph, a);
    auto plan = std::make_unique<CudnnPlan>(graph, *on.device, true);
    if (plan->failed()) say_once(plan->why());
    return plan;
}

/* Returns the cached or new plan for a shape; nullptr if cuDNN has none, or during capture. */
static CudnnPlan *plan_for(const CudnnAttention &a, bool backward) {
    static auto &plans =
        *new std::map<PlanKey, std::unique_ptr<CudnnPlan>>(); // never freed, like `opened`
    Cudnn *on = cudnn();
    if (!on) return nullptr;
    const PlanKey key = key_of(a, backward);
    auto found = plans.find(key);
    if (found == plans.end()) {
        if (is_recorded()) return nullptr;
        found = plans.emplace(key, make_plan(*on, a, backward)).first;
    }
    return found->second->failed() ? nullptr : found->second.get();
}

static void run(CudnnPlan *plan, const std::vector<std::pair<int64_t, const void *>> &tensors,
                void *workspace) {
    const cudnnStatus_t status = cudnnSetStream(cudnn()->handle, ht_compute_stream());
    if (status != CUDNN_STATUS_SUCCESS)
        ht_fail("cuDNN: cudnnSetStream: %s", cudnnGetErrorString(status));
    plan->run(cudnn()->handle, tensors, workspace);
    if (plan->failed()) cuda_check_device();
    if (plan->failed()) ht_fail("cuDNN: %s", plan->why().c_str());
}

/* ---- statistics ---- */

/* Transposes row statistics between the program's order [b, s, h] and cuDNN's order [b, h, s]. */
__global__ void turn_statistics_device(float *to, const float *from, int64_t count, int64_t s,
                                       int64_t heads, bool back) {
    for (int64_t at = ht_thread(); at < count; at += ht_threads()) {
        const int64_t h = at % heads, i = at / heads % s, b = at / heads / s,
                      turned = (b * heads + h) * s + i;
        to[back ? at : turned] = from[back ? turned : at];
    }
}

static void turn_statistics(float *to, const float *from, const CudnnAttention &a, bool back) {
    const int threads = 256;
    const int64_t count = a.batch * a.s * a.heads;
    ht_launch(turn_statistics_device, ht_blocks(count, threads), threads, 0, to, from, count, a.s,
              a.heads, back);
}

/* ---- calls ---- */

static int64_t pitch_of(const ht_view *view) { return ht_view_pitch(view, view->rank - 2); }

static int64_t statistics_bytes(const CudnnAttention &a) {
    return cuda_aligned(a.batch * a.heads * a.s * (int64_t)sizeof(float));
}

static CudnnAttention attention_of(const AttentionShape &a, const CudnnPitches &pitch) {
    return {a.batch, a.s, a.t, a.heads, a.groups, a.d, a.causal != 0, a.scale, pitch};
}

bool cudnn_attention(const AttentionShape &shape, const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    if (!is_served(shape, {&in[0], &in[1], &in[2], &out[0]})) return false;
    const CudnnAttention a = attention_of(
        shape, {shape.q_pitch, shape.k_pitch, shape.v_pitch, pitch_of(&out[0]), 0, 0, 0, 0});
    CudnnPlan *plan = plan_for(a, false);
    if (!plan) return false;
    char *memory = (char *)cuda_scratch(statistics_bytes(a) + plan->workspace_bytes());
    run(plan,
        {{CUDNN_Q, in[0].data},
         {CUDNN_K, in[1].data},
         {CUDNN_V, in[2].data},
         {CUDNN_Y, out[0].data},
         {CUDNN_STATS, memory}},
        memory + statistics_bytes(a));
    turn_statistics((float *)out[1].data, (const float *)memory, a, true);
    return true;
}

/* Chooses the part of a call for one run of backward: some batches with all heads, or some groups
 * of one batch. The parts divide the call evenly, and their statistics begin at addresses that
 * cuDNN accepts. cuDNN stores the scores of each head in bf16; a part has at most
 * attention_kept_bytes of scores. Returns false if the scores of one group need more. */
static bool find_part(const CudnnAttention &a, CudnnAttention *part) {
    const int64_t tile = 128, queries = (a.s + tile - 1) / tile * tile,
                  keys = (a.t + tile - 1) / tile * tile;
    const int64_t shared = a.heads / a.groups,
                  group = shared * queries * keys * dtype_bytes(HT_BF16);
    auto divisor = [&](int64_t count, int64_t heads) {
        int64_t found = count;
        for (int64_t n = count - 1; n > 0 && found * heads / shared * group > attention_kept_bytes;
             n--)
            found = count % n == 0 &&
                            n * heads * a.s * (int64_t)sizeof(float) % CUDNN_TENSOR_ALIGNMENT == 0
                        ? n
                        : found;
        return found;
    };
    *part = a;
    part->batch = divisor(a.batch, a.heads);
    if (part->batch == 1) part->groups = divisor(a.groups, shared);
    part->heads = part->groups * shared;
    return part->batch * part->groups * group <= attention_kept_bytes;
}

/* The first batch, and the first group of heads, of a run of backward. */
typedef struct PartPlace {
    int64_t batch, group;
} PartPlace;

/* Returns a run's address in a bf16 tensor. `rows`: rows of a batch; `heads`: heads of a group. */
static const void *from_place(const ht_view *view, const PartPlace &at, int64_t rows,
                              int64_t heads) {
    const int64_t d = view->extent[view->rank - 1];
    return (const char *)view->data +
           (at.batch * rows * pitch_of(view) + at.group * heads * d) * dtype_bytes(HT_BF16);
}

/* Runs backward for a part; `lse` (whole call) and `sums` (part) are in cuDNN's order. */
static void run_part(CudnnPlan *plan, const ht_call *call, const CudnnAttention &all,
                     const PartPlace &at, const float *lse, void *sums, void *workspace) {
    const ht_view *in = call->operand, *out = call->result;
    const int64_t shared = all.heads / all.groups;
    auto queries = [&](const ht_view *view) { return from_place(view, at, all.s, shared); };
    auto keys = [&](const ht_view *view) { return from_place(view, at, all.t, 1); };
    run(plan,
        {{CUDNN_Q, queries(&in[1])},
         {CUDNN_K, keys(&in[2])},
         {CUDNN_V, keys(&in[3])},
         {CUDNN_Y, queries(&in[4])},
         {CUDNN_DY, queries(&in[0])},
         {CUDNN_DQ, queries(&out[0])},
         {CUDNN_DK, keys(&out[1])},
         {CUDNN_DV, keys(&out[2])},
         {CUDNN_STATS, lse + (at.batch * all.heads + at.group * shared) * all.s},
         {CUDNN_SUMS, sums}},
        workspace);
}

bool cudnn_attention_gradient(const AttentionShape &shape, const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result, *dy = &in[0], *q = &in[1], *k = &in[2],
                  *v = &in[3], *y = &in[4], *lse = &in[5];
    if (in[BACKWARD_OPERANDS - 1].data ||
        !is_served(shape, {dy, q, k, v, y, &out[0], &out[1], &out[2]}))
        return false;
    const CudnnAttention all =
        attention_of(shape, {shape.q_pitch, shape.k_pitch, shape.v_pitch, pitch_of(y), pitch_of(dy),
                             pitch_of(&out[0]), pitch_of(&out[1]), pitch_of(&out[2])});
    CudnnAttention part;
    CudnnPlan *plan = find_part(all, &part) ? plan_for(part, true) : nullptr;
    if (!plan) return false;
    char *memory = (char *)cuda_scratch(statistics_bytes(all) + statistics_bytes(part) +
                                        plan->workspace_bytes());
    char *sums = memory + statistics_bytes(all), *workspace = sums + statistics_bytes(part);
    turn_statistics((float *)memory, (const float *)lse->data, all, false);
    for (PartPlace at = {0, 0}; at.batch < all.batch; at.batch += part.batch)
        for (at.group = 0; at.group < all.groups; at.group += part.groups)
            run_part(plan, call, all, at, (const float *)memory, sums, workspace);
    return true;
}
