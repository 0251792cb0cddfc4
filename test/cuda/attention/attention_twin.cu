/* Attention on a GPU (or its emulation) and on the CPU, forward and backward, against sums in double.
 *
 *     attention_twin [libhetu.so]       the CPU's kernels are those of that library; without it only the GPU's are tested
 *     attention_twin --fused            as most programs call them: no gradient of lse; where there are as many keys as queries, q, k and v
 *                                       are slices of one tensor, as their gradients are; HETU_ATTENTION=cudnn tests cuDNN's
 *     nvcc -std=c++20 -O3 -Iinclude -Iruntime -o attention_twin test/cuda/attention/attention_twin.cu runtime/cuda/attention*.cu -ldl
 *
 * The bound of an element follows from its own sum. Every sum is one of products x y where x (a probability, or the gradient of a score)
 * may be rounded to the storage type before, and the result is rounded to it: half a unit in the last place, at most 2^-8 of each |x y| and
 * of the result for bf16 (it has 8 bits), nothing for f32. Arithmetic in f32 adds at most 1e-6 of the sum of magnitudes.
 */
#include "attention_runtime.h"

#include "cuda/attention.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#ifdef HT_EMULATED
extern "C" uint64_t ht_emulated_bank_conflicts(void);
#endif

/* ---- cases ---- */

struct Case {
    int batch, s, t, heads, groups, d;
    int causal, segments;                     // segments: 0 none, 32 or 64: their bits
    AttentionPlaces queries = {}, keys = {}; // where the rows of a piece lie in the whole

    static int place(const AttentionPlaces &of, int i) { return of.offset + i + (i >= of.fold ? of.gap : 0); }
};

static const Case cases[] = {
    {1, 1, 1, 1, 1, 1, 0, 0},       // the smallest
    {2, 5, 5, 3, 3, 7, 1, 0},       // rows that cannot be copied 16 bytes at a time
    {1, 64, 64, 2, 1, 64, 1, 0},    // whole tiles
    {1, 130, 130, 2, 2, 64, 1, 0},  // two more rows than tiles
    {2, 65, 129, 4, 2, 40, 0, 0},   // more keys than queries
    {1, 129, 65, 4, 1, 80, 1, 0},   // fewer keys than queries, all heads share them
    {1, 1, 200, 4, 2, 128, 0, 0},   // one query
    {1, 70, 200, 2, 1, 128, 1, 0},  // keys that no query sees
    {1, 150, 150, 2, 1, 16, 1, 32}, // segments
    {2, 100, 100, 2, 2, 33, 0, 64}, // odd heads, wide segments
    {2, 36, 36, 2, 1, 64, 1, 32},   // one segment
    {1, 90, 90, 3, 1, 256, 1, 0},   // the widest heads
    {1, 40, 77, 2, 2, 200, 0, 0},   // between widths
    {1, 33, 70, 1, 1, 251, 1, 0},   // odd and wide
    {1, 300, 300, 1, 1, 128, 1, 0}, // several tiles of queries and keys
    {1, 300, 300, 4, 2, 32, 1, 0},  // heads that share keys, in parts
    {1, 260, 140, 2, 1, 128, 0, 0}, // several parts of queries
    {1, 270, 270, 2, 1, 72, 1, 32}, // and segments
    {1, 70, 260, 2, 1, 64, 1, 32, {90, 0, 0}, {0, 0, 0}},         // a piece of the queries
    {1, 100, 260, 2, 1, 64, 1, 0, {30, 51, 109}, {0, 0, 0}},      // of two ranges
    {1, 150, 150, 4, 2, 32, 1, 64, {0, 80, 200}, {0, 80, 200}},   // and the keys of the same
    {2, 140, 130, 2, 1, 40, 1, 0, {60, 71, 35}, {10, 64, 160}},   // and of others
    {1, 133, 90, 1, 1, 16, 1, 0, {0, 70, 100}, {90, 45, 0}},      // queries that see nothing
    {0, 5, 5, 2, 2, 8, 1, 0},       // nothing
    {1, 0, 5, 2, 1, 8, 1, 0},       // keys that nobody asks for
    {1, 5, 0, 2, 1, 8, 0, 0},       // queries without keys
    {4, 20, 20, 6, 3, 16, 1, 0},    // several batches and groups
};

/* A tensor of a case on the host, as floats that the storage type holds exactly. */
struct Tensor {
    std::vector<int64_t> extent;
    std::vector<float> value;

    explicit Tensor(std::vector<int64_t> extents) : extent(std::move(extents))
    {
        size_t count = 1;
        for (int64_t n : extent)
            count *= (size_t)n;
        value.resize(count);
    }
};

static float next_random(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state >> 32) * 0x1p-31f;
}

static float rounded(float x, bool bf16) { return bf16 ? __bfloat162float(__float2bfloat16(x)) : x; }

static void fill(Tensor *x, bool bf16)
{
    for (float &v : x->value)
        v = rounded(2 * next_random(), bf16);
}

/* The operands of a case; y and lse are the reference's, rounded to storage. */
struct Data {
    Case shape;
    bool bf16, with_dlse;
    Tensor q, k, v, dy, y, lse, dlse; // dlse is 0 where the call gets none
    std::vector<int64_t> segments, key_segments;

    Data(const Case &c, bool is_bf16, bool has_dlse)
        : shape(c), bf16(is_bf16), with_dlse(has_dlse), q({c.batch, c.s, c.heads, c.d}), k({c.batch, c.t, c.groups, c.d}), v(k), dy(q),
          y(q), lse({c.batch, c.s, c.heads}), dlse(lse)
    {
        for (Tensor *x : {&q, &k, &v, &dy})
            fill(x, bf16);
        if (with_dlse)
            fill(&dlse, false);
        segments = segments_of(c.s, c.queries);
        key_segments = segments_of(c.t, c.keys);
    }

    /* The segments of rows of a piece: of a whole row's, which ends here and there. */
    std::vector<int64_t> segments_of(int rows, const AttentionPlaces &places) const
    {
        const int mean_length = 37;
        std::vector<int64_t> of;
        for (int b = 0; shape.segments && b < shape.batch; b++)
            for (int i = 0; i < rows; i++) {
                int64_t segment = 0;
                for (int64_t at = 1; at <= Case::place(places, i); at++)
                    segment += (at + b) * 11 % mean_length == 0;
                of.push_back(segment);
            }
        return of;
    }

    bool sees(int b, int i, int j) const
    {
        return (!shape.causal || Case::place(shape.keys, j) <= Case::place(shape.queries, i)) &&
               (!shape.segments || segments[(size_t)(b * shape.s + i)] == key_segments[(size_t)(b * shape.t + j)]);
    }
    int64_t query(int b, int i, int h) const { return (((int64_t)b * shape.s + i) * shape.heads + h) * shape.d; }
    int64_t key(int b, int j, int h) const
    {
        return (((int64_t)b * shape.t + j) * shape.groups + h / (shape.heads / shape.groups)) * shape.d;
    }
};

/* ---- the reference ---- */

/* A sum in double, with the sums of magnitudes that bound its error. */
struct Sum {
    double value = 0, rounded = 0, exact = 0; // rounded: of products whose factor may be rounded; exact: of all that f32 arithmetic touches
};
typedef std::vector<Sum> Sums;

struct Reference {
    Sums y, lse, dq, dk, dv;
};

static double dot(const Tensor &x, int64_t at, const Tensor &y, int64_t to, int d, double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    for (int i = 0; i < d; i++) {
        double product = (double)x.value[(size_t)(at + i)] * (double)y.value[(size_t)(to + i)];
        sum += product;
        *magnitude += fabs(product);
    }
    return sum;
}

/* to[..] += weight * x[..]; `noise` is the magnitude that the weight's arithmetic touched. */
static void add_row(Sums *to, int64_t at, double weight, double noise, const Tensor &x, int64_t from, int d)
{
    for (int i = 0; i < d; i++) {
        Sum &sum = (*to)[(size_t)(at + i)];
        double value = x.value[(size_t)(from + i)];
        sum.value += weight * value;
        sum.rounded += fabs(weight * value);
        sum.exact += noise * fabs(value);
    }
}

/* e^(score - base), 0 where a query sees nothing. */
static double probability(double score, double base) { return score == -INFINITY ? 0 : exp(score - base); }

/* One query of one head: its scores (with the magnitudes of their sums), -INFINITY where it does not see. */
struct Row {
    std::vector<double> score, magnitude;
    double lse;
};

static Row score_row(const Data &data, int b, int i, int h)
{
    const Case &c = data.shape;
    double scale = 1 / sqrt((double)c.d), peak = -INFINITY, sum = 0;
    Row row = {std::vector<double>((size_t)c.t, -INFINITY), std::vector<double>((size_t)c.t), 0};
    for (int j = 0; j < c.t; j++)
        if (data.sees(b, i, j)) {
            row.score[(size_t)j] = scale * dot(data.q, data.query(b, i, h), data.k, data.key(b, j, h), c.d, &row.magnitude[(size_t)j]);
            row.magnitude[(size_t)j] = 1 + scale * row.magnitude[(size_t)j];
            peak = fmax(peak, row.score[(size_t)j]);
        }
    for (double score : row.score)
        sum += probability(score, peak);
    row.lse = sum > 0 ? peak + log(sum) : -INFINITY;
    return row;
}

static void reference_forward(const Data &data, Reference *to, int b, int i, int h)
{
    const Case &c = data.shape;
    Row row = score_row(data, b, i, h);
    double noise = 0;
    for (int j = 0; j < c.t; j++) {
        double p = probability(row.score[(size_t)j], row.lse);
        noise = fmax(noise, row.magnitude[(size_t)j]);
        add_row(&to->y, data.query(b, i, h), p, p * row.magnitude[(size_t)j], data.v, data.key(b, j, h), c.d);
    }
    to->lse[(size_t)(data.query(b, i, h) / c.d)] = {row.lse, 0, noise};
}

static void reference_backward(const Data &data, Reference *to, int b, int i, int h)
{
    const Case &c = data.shape;
    int64_t query = data.query(b, i, h);
    Row row = score_row(data, b, i, h);
    double scale = 1 / sqrt((double)c.d), delta_magnitude, delta = dot(data.dy, query, data.y, query, c.d, &delta_magnitude);
    double lse = data.lse.value[(size_t)(query / c.d)];
    delta -= data.dlse.value[(size_t)(query / c.d)];
    delta_magnitude += fabs(data.dlse.value[(size_t)(query / c.d)]);
    for (int j = 0; j < c.t; j++) {
        int64_t key = data.key(b, j, h);
        double dp_magnitude, dp = dot(data.dy, query, data.v, key, c.d, &dp_magnitude), p = probability(row.score[(size_t)j], lse);
        double ds = scale * p * (dp - delta), noise = p * row.magnitude[(size_t)j];
        double ds_noise = scale * noise * (dp_magnitude + delta_magnitude);
        add_row(&to->dv, key, p, noise, data.dy, query, c.d);
        add_row(&to->dk, key, ds, ds_noise, data.q, query, c.d);
        add_row(&to->dq, query, ds, ds_noise, data.k, key, c.d);
    }
}

static Reference reference(Data *data)
{
    const Case &c = data->shape;
    Reference to = {Sums(data->y.value.size()), Sums(data->lse.value.size()), Sums(data->q.value.size()), Sums(data->k.value.size()),
                    Sums(data->k.value.size())};
    for (int b = 0; b < c.batch; b++)
        for (int i = 0; i < c.s; i++)
            for (int h = 0; h < c.heads; h++)
                reference_forward(*data, &to, b, i, h);
    for (size_t i = 0; i < to.y.size(); i++)
        data->y.value[i] = rounded((float)to.y[i].value, data->bf16);
    for (size_t i = 0; i < to.lse.size(); i++)
        data->lse.value[i] = (float)to.lse[i].value;
    for (int b = 0; b < c.batch; b++)
        for (int i = 0; i < c.s; i++)
            for (int h = 0; h < c.heads; h++)
                reference_backward(*data, &to, b, i, h);
    return to;
}

/* ---- calls ---- */

/* Where a test's tensors lie: on the device, or on the host for the CPU's kernels. */
struct Memory {
    bool device;
    std::vector<void *> taken;

    void *take(const void *from, size_t size)
    {
        void *memory = nullptr;
        if (device)
            HT_CUDA(cudaMalloc(&memory, size));
        else
            memory = malloc(size + 1);
        taken.push_back(memory);
        if (from && device)
            HT_CUDA(cudaMemcpy(memory, from, size, cudaMemcpyHostToDevice));
        else if (from)
            memcpy(memory, from, size);
        return memory;
    }
    void get(void *to, const void *from, size_t size) const
    {
        if (device)
            HT_CUDA(cudaMemcpy(to, from, size, cudaMemcpyDeviceToHost));
        else
            memcpy(to, from, size);
    }
    ~Memory()
    {
        for (void *memory : taken)
            if (device)
                HT_CUDA(cudaFree(memory));
            else
                free(memory);
    }
};

static ht_view put(Memory *memory, const Tensor &x, bool bf16)
{
    if (!bf16)
        return view_of(memory->take(x.value.data(), x.value.size() * sizeof(float)), HT_F32, x.extent);
    std::vector<__nv_bfloat16> narrow(x.value.size());
    for (size_t i = 0; i < narrow.size(); i++)
        narrow[i] = __float2bfloat16(x.value[i]);
    return view_of(memory->take(narrow.data(), narrow.size() * sizeof(__nv_bfloat16)), HT_BF16, x.extent);
}

static ht_view put_segments(Memory *memory, const Data &data, const std::vector<int64_t> &segments, int rows)
{
    std::vector<int> narrow(segments.begin(), segments.end());
    if (!data.shape.segments)
        return view_of(nullptr, HT_I32, {data.shape.batch, rows});
    bool wide = data.shape.segments == 64;
    void *at = wide ? memory->take(segments.data(), segments.size() * 8) : memory->take(narrow.data(), narrow.size() * 4);
    return view_of(at, wide ? HT_I64 : HT_I32, {data.shape.batch, rows});
}

static void set_places(ht_view *view, const AttentionPlaces &places)
{
    view->offset[1] = places.offset;
    view->fold[1] = places.fold;
    view->gap[1] = places.gap;
}

static std::vector<float> get(const Memory &memory, const ht_view &view)
{
    size_t count = (size_t)ht_view_count(&view, 0, view.rank);
    std::vector<float> wide(count);
    if (view.dtype == HT_F32) {
        memory.get(wide.data(), view.data, count * sizeof(float));
        return wide;
    }
    std::vector<__nv_bfloat16> narrow(count);
    memory.get(narrow.data(), view.data, count * sizeof(__nv_bfloat16));
    for (size_t i = 0; i < count; i++)
        wide[i] = __bfloat162float(narrow[i]);
    return wide;
}

/* ---- checks ---- */

static int passed, failed;

/* How often what makes up an element is rounded: cuDNN stores the sum of each head before it adds up those of a group. */
static int times_rounded(const Case &c, const char *result)
{
    const char *choice = getenv("HETU_ATTENTION");
    return choice && !strcmp(choice, "cudnn") && c.heads > c.groups && (!strcmp(result, "dk") || !strcmp(result, "dv")) ? 2 : 1;
}

/* The largest error in units of its bound; a NaN or an infinity where there is none counts as infinite. */
static double worst(const std::vector<float> &got, const Sums &want, bool bf16, int times)
{
    const double arithmetic = 1e-6, half_unit = bf16 ? 0x1p-8 * 1.01 : 0, tiny = 1e-7;
    double most = 0;
    for (size_t i = 0; i < want.size(); i++) {
        const Sum &sum = want[i];
        double error = (double)got[i] == sum.value ? 0 : fabs((double)got[i] - sum.value);
        double bound = half_unit * (times * sum.rounded + fabs(sum.value)) + arithmetic * (sum.rounded + sum.exact) + tiny;
        most = fmax(most, isfinite(error) ? error / bound : INFINITY);
    }
    return most;
}

static void check(const char *where, const Data &data, const char *result, const std::vector<float> &got, const Sums &want, bool bf16)
{
    const Case &c = data.shape;
    double error = worst(got, want, bf16, times_rounded(c, result));
    bool fine = error <= 1;
    passed += fine;
    failed += !fine;
    printf("%s %s %-4s b %d s %3d t %3d heads %d/%d d %3d%s%s  %-3s  %.3f of the bound%s\n", fine ? "ok    " : "FAILED", where,
           data.bf16 ? "bf16" : "f32", c.batch, c.s, c.t, c.heads, c.groups, c.d, c.causal ? " causal" : "", c.segments ? " segments" : "",
           result, error, fine ? "" : "   <<<");
}

/* A call's results are the same bits when it runs again. */
static void check_again(const Data &data, const ht_call *call, ht_kernel *kernel, const Memory &memory)
{
    std::vector<std::vector<float>> first;
    for (int i = 0; i < call->result_count; i++)
        first.push_back(get(memory, call->result[i]));
    kernel(call);
    HT_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < call->result_count; i++) {
        const std::vector<float> again = get(memory, call->result[i]);
        bool same = first[(size_t)i].empty() || memcmp(first[(size_t)i].data(), again.data(), again.size() * sizeof(float)) == 0;
        passed += same;
        failed += !same;
        if (!same)
            printf("FAILED result %d of the backward of s %d t %d d %d has other bits the second time\n", i, data.shape.s, data.shape.t,
                   data.shape.d);
    }
}

/* ---- slices of one tensor ---- */

/* q, k and v of a case as slices of one tensor of the device, or nothing of it but its memory: full of zeros. */
struct Fused {
    Memory *memory;
    Case shape;
    bool bf16;
    std::vector<float> value; // as stored
    void *data;

    Fused(Memory *from, const Data &of, bool filled)
        : memory(from), shape(of.shape), bf16(of.bf16), value((size_t)(of.shape.batch * of.shape.s * pitch()))
    {
        const Tensor *parts[] = {&of.q, &of.k, &of.v};
        for (int part = 0; part < 3 && filled; part++)
            for (size_t i = 0; i < parts[part]->value.size(); i++)
                value[place(part, (int64_t)i)] = parts[part]->value[i];
        Tensor all({(int64_t)value.size()});
        all.value = value;
        data = put(memory, all, bf16).data;
    }

    int64_t pitch() const { return (int64_t)(shape.heads + 2 * shape.groups) * shape.d; }
    int64_t width(int part) const { return (int64_t)(part == 0 ? shape.heads : shape.groups) * shape.d; }
    int64_t first(int part) const { return part == 0 ? 0 : width(0) + (part - 1) * width(1); }
    size_t place(int part, int64_t i) const { return (size_t)(i / width(part) * pitch() + first(part) + i % width(part)); }

    ht_view view(int part) const
    {
        const size_t size = bf16 ? sizeof(__nv_bfloat16) : sizeof(float);
        ht_view v = view_of((char *)data + (size_t)first(part) * size, bf16 ? HT_BF16 : HT_F32,
                            {shape.batch, shape.s, part == 0 ? shape.heads : shape.groups, shape.d});
        v.pitch = pitch();
        return v;
    }

    std::vector<float> slice(int part) const
    {
        const std::vector<float> all = get(*memory, view_of(data, bf16 ? HT_BF16 : HT_F32, {(int64_t)value.size()}));
        std::vector<float> found((size_t)(shape.batch * shape.s * width(part)));
        for (size_t i = 0; i < found.size(); i++)
            found[i] = all[place(part, (int64_t)i)];
        return found;
    }
};

/* The backward of a call that keeps so many bytes of scores at a time. */
static void backward_keeping(int64_t bytes, const ht_call *call)
{
    const int64_t most = attention_kept_bytes;
    attention_kept_bytes = bytes;
    ht_attention_backward_kernel(call);
    attention_kept_bytes = most;
}

/* Bytes of the scores of `heads` heads of a case in bf16, where whole tiles are kept. */
static int64_t scores_bytes(const Case &c, int heads)
{
    const int64_t tile = 128;
    return (c.s + tile - 1) / tile * tile * ((c.t + tile - 1) / tile * tile) * 2 * heads;
}

/* The kernels on slices, without a gradient of lse; kept: bytes of scores that backward keeps, 0: as many as it does. */
static void run_fused(const Data &data, const Reference &want, int64_t kept)
{
    Memory memory = {true, {}};
    Tensor empty_q(data.q.extent), empty_lse(data.lse.extent);
    Fused in(&memory, data, true), to(&memory, data, false);
    ht_view q = in.view(0), k = in.view(1), v = in.view(2), dy = put(&memory, data.dy, data.bf16), y = put(&memory, data.y, data.bf16);
    set_places(&q, data.shape.queries);
    set_places(&k, data.shape.keys);
    ht_view segments = put_segments(&memory, data, data.segments, data.shape.s), none = view_of(nullptr, HT_F32, data.lse.extent);
    ht_view in_forward[] = {q, k, v, segments, segments}, to_forward[] = {put(&memory, empty_q, data.bf16), put(&memory, empty_lse, false)};
    ht_view in_backward[] = {dy, q, k, v, y, put(&memory, data.lse, false), segments, segments, none};
    ht_view to_backward[] = {to.view(0), to.view(1), to.view(2)};
    AttentionCall forward(in_forward, 5, to_forward, 2, data.shape.causal), backward(in_backward, 9, to_backward, 3, data.shape.causal);
    ht_attention_kernel(&forward.call);
    kept ? backward_keeping(kept, &backward.call) : ht_attention_backward_kernel(&backward.call);
    HT_CUDA(cudaDeviceSynchronize());
    check("fused", data, "y", get(memory, to_forward[0]), want.y, data.bf16);
    check("fused", data, "lse", get(memory, to_forward[1]), want.lse, false);
    check("fused", data, "dq", to.slice(0), want.dq, data.bf16);
    check("fused", data, "dk", to.slice(1), want.dk, data.bf16);
    check("fused", data, "dv", to.slice(2), want.dv, data.bf16);
}

/* ---- programs ---- */

static void run_case(const char *where, bool device, const Data &data, const Reference &want, ht_kernel *forward, ht_kernel *backward)
{
    Memory memory = {device, {}};
    Tensor empty_q(data.q.extent), empty_k(data.k.extent), empty_lse(data.lse.extent);
    ht_view q = put(&memory, data.q, data.bf16), k = put(&memory, data.k, data.bf16), v = put(&memory, data.v, data.bf16);
    ht_view dy = put(&memory, data.dy, data.bf16), y = put(&memory, data.y, data.bf16), lse = put(&memory, data.lse, false);
    ht_view segments = put_segments(&memory, data, data.segments, data.shape.s);
    ht_view key_segments = put_segments(&memory, data, data.key_segments, data.shape.t);
    set_places(&q, data.shape.queries);
    set_places(&k, data.shape.keys);
    ht_view to_forward[] = {put(&memory, empty_q, data.bf16), put(&memory, empty_lse, false)};
    ht_view to_backward[] = {put(&memory, empty_q, data.bf16), put(&memory, empty_k, data.bf16), put(&memory, empty_k, data.bf16)};
    ht_view in_forward[] = {q, k, v, segments, key_segments};
    ht_view dlse = data.with_dlse ? put(&memory, data.dlse, false) : view_of(nullptr, HT_F32, data.dlse.extent);
    ht_view in_backward[] = {dy, q, k, v, y, lse, segments, key_segments, dlse};
    AttentionCall forward_call(in_forward, 5, to_forward, 2, data.shape.causal);
    forward(&forward_call.call);
    AttentionCall backward_call(in_backward, 9, to_backward, 3, data.shape.causal);
    backward(&backward_call.call);
    HT_CUDA(cudaDeviceSynchronize());
    if (device)
        check_again(data, &backward_call.call, backward, memory);
    check(where, data, "y", get(memory, to_forward[0]), want.y, data.bf16);
    check(where, data, "lse", get(memory, to_forward[1]), want.lse, false);
    check(where, data, "dq", get(memory, to_backward[0]), want.dq, data.bf16);
    check(where, data, "dk", get(memory, to_backward[1]), want.dk, data.bf16);
    check(where, data, "dv", get(memory, to_backward[2]), want.dv, data.bf16);
}

/* The backward of a call with memory for the scores of few queries at a time, on a GPU whose blocks have little memory. */
static void backward_in_parts(const ht_call *call)
{
    attention_shared_bytes = 99 * 1024;
    backward_keeping(1, call);
    attention_shared_bytes = 0;
}

/* A kernel of the CPU's library, which has the names of this program's. */
static ht_kernel *cpu_kernel(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return (ht_kernel *)found;
}

int main(int count, char **argument)
{
    const bool fused = count > 1 && !strcmp(argument[1], "--fused");
    void *library = count > 1 && !fused ? dlopen(argument[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : nullptr;
    if (count > 1 && !fused && !library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    open_runtime();
    for (const Case &c : cases)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            Data data(c, bf16, !fused);
            Reference want = reference(&data);
            if (fused && c.s == c.t) {
                run_fused(data, want, 0);
                if (c.heads > 1)
                    run_fused(data, want, scores_bytes(c, c.heads / c.groups));
                continue;
            }
            run_case("gpu", true, data, want, ht_attention_kernel, ht_attention_backward_kernel);
            if (c.s > 128)
                run_case("part", true, data, want, ht_attention_kernel, backward_in_parts);
            if (library)
                run_case("cpu", false, data, want, cpu_kernel(library, "ht_attention_kernel"),
                         cpu_kernel(library, "ht_attention_backward_kernel"));
        }
#ifdef HT_EMULATED
    printf("%llu conflicts between banks of shared memory\n", (unsigned long long)ht_emulated_bank_conflicts());
    failed += ht_emulated_bank_conflicts() != 0;
#endif
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
