/* Updates of parameters. Consecutive calls are collected and share one launch. */
#include "operators/kernels.h"
#include "cuda/multi_tensor.h"

#include <vector>

enum { MOST_STATES = 2 };

/* The update of one parameter. Results may share the operands' storage. */
typedef struct Update {
    float *p1, *state1[MOST_STATES];
    const float *p, *g, *state[MOST_STATES];
    const float *norm;     // square of the global gradient norm; NULL: no clipping
    int64_t count, chunk;  // number of elements; number of the first chunk
    int64_t decay, vector; // whether weight decay applies; whether addresses are 16-byte aligned
} Update;

/* Launches the collected updates of one optimizer. */
typedef void Launch(const Update *updates, int64_t count, int64_t chunks, const float *hyper);

static std::vector<Update> collected;
static Launch *collected_launch;
static const float *collected_hyper;
static int64_t collected_chunks;

static void launch_collected(void) {
    std::vector<Update> updates;
    updates.swap(collected);
    const int64_t count = (int64_t)updates.size(), chunks = collected_chunks;
    collected_chunks = 0;
    collected_launch(
        static_cast<const Update *>(cuda_constant(updates.data(), count * (int64_t)sizeof(Update))),
        count, chunks, collected_hyper);
}

/* Collects the update of a call. Operands: p, g, the states, norm; results: p1, the new states. */
static void collect(const char *name, const ht_call *call, int states, Launch *launch) {
    const ht_view *in = call->operand, *out = call->result, *norm = &in[2 + states];
    Update update = {};
    update.count = view_size(&in[0]);
    if (update.count == 0) return;
    update.p1 = view_f32(&out[0], name);
    update.p = view_f32(&in[0], name);
    update.g = view_f32(&in[1], name);
    update.norm = view_f32(norm, name);
    update.decay = call->attr[0].i != 0;
    update.vector = aligned_to(16, {update.p1, update.p, update.g});
    for (int s = 0; s < states; s++) {
        update.state1[s] = view_f32(&out[1 + s], name);
        update.state[s] = view_f32(&in[2 + s], name);
        update.vector = update.vector && aligned_to(16, {update.state1[s], update.state[s]});
    }
    const float *hyper = call->hyper + call->attr[1].i;
    if (collected_launch != launch || collected_hyper != hyper) cuda_collected_launch();
    collect_for(launch_collected);
    collected_launch = launch;
    collected_hyper = hyper;
    update.chunk = collected_chunks;
    collected_chunks += collect_chunks(update.count);
    collected.push_back(update);
}

/* Returns the factor that limits the norm to `clip`: 1 if norm is NULL or clip 0, NaN for NaN. */
static __device__ inline float clip_factor(const float *norm, float clip) {
    const float factor = norm && clip != 0 ? clip / (sqrtf(*norm) + 1e-6f) : 1.0f;
    return factor > 1.0f ? 1.0f : factor;
}

/* Updates N neighbouring elements by rule.element(p, g, state...). */
template <int N, typename Rule>
static __device__ inline void update_vector(const Update &u, int64_t i, const Rule &rule) {
    float p[N], g[N], state[Rule::STATES][N];
    ht_load(p, u.p + i);
    ht_load(g, u.g + i);
    CUDA_UNROLL
    for (int s = 0; s < Rule::STATES; s++) ht_load(state[s], u.state[s] + i);
    CUDA_UNROLL
    for (int e = 0; e < N; e++) {
        float mine[Rule::STATES];
        CUDA_UNROLL
        for (int s = 0; s < Rule::STATES; s++) mine[s] = state[s][e];
        p[e] = rule.element(p[e], g[e], mine);
        CUDA_UNROLL
        for (int s = 0; s < Rule::STATES; s++) state[s][e] = mine[s];
    }
    ht_store(u.p1 + i, p);
    CUDA_UNROLL
    for (int s = 0; s < Rule::STATES; s++) ht_store(u.state1[s] + i, state[s]);
}

/* Runs all chunks of all updates. Block i takes chunks i, i + gridDim.x, ... */
template <typename Rule>
__global__ void __launch_bounds__(COLLECT_THREADS)
    update_device(const Update *updates, int64_t count, int64_t chunks, const float *hyper,
                  const CudaStep *step) {
    constexpr int N = 4;
    __shared__ Rule shared;
    if (threadIdx.x == 0) shared.begin(hyper, step);
    __syncthreads();
    Rule rule = shared;
    for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const Update u = chunk_owner(updates, count, chunk);
        const int64_t first = (chunk - u.chunk) * COLLECT_CHUNK,
                      end = first + COLLECT_CHUNK < u.count ? first + COLLECT_CHUNK : u.count;
        const int64_t vectors = u.vector ? first + (end - first) / N * N : first;
        rule.prepare(u, hyper);
        for (int64_t i = first + (int64_t)threadIdx.x * N; i < vectors; i += COLLECT_THREADS * N)
            update_vector<N>(u, i, rule);
        for (int64_t i = vectors + threadIdx.x; i < end; i += COLLECT_THREADS)
            update_vector<1>(u, i, rule);
    }
}

template <typename Rule>
static void launch(const Update *updates, int64_t count, int64_t chunks, const float *hyper) {
    ht_launch(update_device<Rule>, collect_blocks(chunks), COLLECT_THREADS, 0, updates, count,
              chunks, hyper, cuda_step());
}

/* AdamW and Adam; <hetu/ops.h> lists the hyper-parameters. */
struct AdamW {
    static constexpr int STATES = 2;
    /* decay: decay that is added to the gradient (Adam); factor: result of clip_factor. */
    float rate, beta1, beta2, eps, shrink, decay, factor;
    float correct1, correct2; // 1 / (1 - beta1^t), and 1 / sqrt(1 - beta2^t)

    __device__ void begin(const float *hyper, const CudaStep *step) {
        const double t = (double)step->step + 1;
        rate = hyper[0];
        beta1 = hyper[1];
        beta2 = hyper[2];
        eps = hyper[3];
        correct1 = (float)(1.0 / (1.0 - pow((double)beta1, t)));
        correct2 = (float)(1.0 / sqrt(1.0 - pow((double)beta2, t)));
    }

    __device__ void prepare(const Update &u, const float *hyper) {
        const float all = u.decay ? hyper[4] : 0.0f;
        decay = hyper[6] != 0 ? all : 0.0f;
        shrink = hyper[6] != 0 ? 1.0f : 1.0f - rate * all;
        factor = clip_factor(u.norm, hyper[5]);
    }

    __device__ float element(float p, float g, float (&state)[STATES]) const {
        const float grad = g * factor + (decay == 0 ? 0 : decay * p);
        state[0] = beta1 * state[0] + (1.0f - beta1) * grad;
        state[1] = beta2 * state[1] + (1.0f - beta2) * grad * grad;
        return p * shrink - rate * (state[0] * correct1) / (sqrtf(state[1]) * correct2 + eps);
    }
};

void ht_adamw_kernel(const ht_call *call) { collect("adamw", call, AdamW::STATES, launch<AdamW>); }

/* Stochastic gradient descent with momentum. */
struct Sgd {
    static constexpr int STATES = 1;
    float rate, momentum, decay, factor;
    bool nesterov;

    __device__ void begin(const float *hyper, const CudaStep *) {
        rate = hyper[0];
        momentum = hyper[1];
        nesterov = hyper[4] != 0;
    }

    __device__ void prepare(const Update &u, const float *hyper) {
        decay = u.decay ? hyper[2] : 0.0f;
        factor = clip_factor(u.norm, hyper[3]);
    }

    __device__ float element(float p, float g, float (&state)[STATES]) const {
        const float grad = g * factor + (decay == 0 ? 0 : decay * p);
        state[0] = (momentum == 0 ? 0 : momentum * state[0]) + grad;
        return p - rate * (nesterov ? grad + momentum * state[0] : state[0]);
    }
};

void ht_sgd_kernel(const ht_call *call) { collect("sgd", call, Sgd::STATES, launch<Sgd>); }

/* Lion; <hetu/ops.h> lists the hyper-parameters. */
struct Lion {
    static constexpr int STATES = 1;
    float rate, beta1, beta2, shrink, factor;

    __device__ void begin(const float *hyper, const CudaStep *) {
        rate = hyper[0];
        beta1 = hyper[1];
        beta2 = hyper[2];
    }

    __device__ void prepare(const Update &u, const float *hyper) {
        shrink = u.decay ? 1.0f - rate * hyper[3] : 1.0f;
        factor = clip_factor(u.norm, hyper[4]);
    }

    __device__ float element(float p, float g, float (&state)[STATES]) const {
        const float grad = g * factor, ahead = beta1 * state[0] + (1.0f - beta1) * grad;
        state[0] = beta2 * state[0] + (1.0f - beta2) * grad;
        return p * shrink - rate * (ahead > 0 ? 1.0f : ahead < 0 ? -1.0f : ahead);
    }
};

void ht_lion_kernel(const ht_call *call) { collect("lion", call, Lion::STATES, launch<Lion>); }

/* ---- numbers of the step ---- */

static __global__ void number_device(float *y, const float *number) { *y = *number; }

static __global__ void steps_device(float *y, const CudaStep *step) { *y = (float)step->step; }

/* Returns one hyper-parameter as a scalar. Attribute: its index. */
void ht_hyper_kernel(const ht_call *call) {
    ht_launch(number_device, 1, 1, 0, view_f32(&call->result[0], "number"),
              call->hyper + call->attr[0].i);
}

void ht_steps_kernel(const ht_call *call) {
    ht_launch(steps_device, 1, 1, 0, view_f32(&call->result[0], "steps"), cuda_step());
}
