/* Kernels from bodies, for CUDA: a __global__ function, and the function that launches it.
 *
 *     y[b, o] = x[b, o] + bias[o]    ->    for (int i = ht_thread(); i < 512; i += ht_threads()) {
 *                                              load 4 neighbouring elements, add, store
 *                                          }
 *
 * If tensors are aligned, a thread computes as many neighbouring elements at once as fit into 16
 * bytes of the smallest type. <hetu/cuda_loops.h> has the building blocks of the loops, and the
 * order in which threads add up a sum. */
#include "emit/cuda/vector_lanes.h"
#include "emit/words.h"

enum {
    SERIAL_SUM = 16, // a single thread adds up a sum of fewer elements
    PART_SUM = 2048, // least number of elements in a part of a sum
    BLOCKS = 512     // number of blocks that occupies a whole device
};

/* A body while it is written: its function, and the loops over elements of the result. */
typedef struct KernelBody {
    Device device;
    const Nest *outputs;
} KernelBody;

/* Appends an operand at the current lane. Implements AccessWriter. */
static void text_operand_lane(Text *out, const LocalOp *local, int operand, void *context) {
    const Around *around = context;
    text_lane(out, local, local->result_count + operand, around->more, around);
}

static Around around_of(const Nest *outputs, const Nest *contracted, const Lanes *lanes) {
    return (Around){.outputs = outputs,
                    .contracted = contracted,
                    .access = text_operand_lane,
                    .number = "at$n",
                    .more = lanes};
}

/* Returns the set of tensors that are read by terms summed over exactly the factors of `set`. */
static uint64_t read_by(const LocalOp *local, uint32_t set) {
    return terms_operands(local, set) << local->result_count;
}

/* Appends the loop over several lanes and its statement's blanks. Returns the statement's depth. */
static int emit_lanes(Text *out, const Lanes *lanes, int depth) {
    if (lanes->width > 1) {
        indent(out, depth++);
        text_print(out, "for (int e = 0; e < %d; e++)\n", lanes->width);
    }
    indent(out, depth);
    return depth;
}

/* Appends RESULT[...] = `sum` (NULL: none) + the terms that are not summed. */
static void emit_result(const KernelBody *body, const Lanes *lanes, const char *sum, int depth) {
    const LocalOp *local = body->device.local;
    const Tensor *result = &local->results[0];
    Text *out = body->device.out;
    Around around = around_of(body->outputs, NULL, lanes);
    emit_loads(&body->device, read_by(local, 0), lanes, &around, depth);
    indent(out, depth);
    if (lanes->width > 1) {
        text_print(out, "%s %s_v[%d];\n", value_type(result->value->type.dtype), result->name,
                   lanes->width);
        emit_lanes(out, lanes, depth);
        text_print(out, "%s_v[e] = ", result->name);
    } else {
        text_result(out, local, &around);
    }
    if (sum) text_sum_value(out, local, &around, sum);
    else if (!text_terms(out, local, 0, &around, true)) text_string(out, "0");
    if (lanes->width == 1) {
        text_result_end(out, local);
        return;
    }
    text_string(out, ";\n");
    indent(out, depth);
    text_string(out, "ht_store(");
    text_place(out, local, 0, &around);
    text_print(out, ", %s_v);\n", result->name);
}

/* ---- elements ---- */

/* Appends the body of a kernel without sums. Returns its launch: "grid, block". */
static const char *emit_elementwise(const KernelBody *body) {
    const Device *device = &body->device;
    const Nest *outputs = body->outputs;
    Text *out = device->out;
    Lanes lanes = lanes_along(device->local, read_by(device->local, 0) | 1, outputs, NULL);
    if (!outputs->count) {
        emit_result(body, &lanes, NULL, 1);
        return "1, 1";
    }
    const char *launch = open_steps(device, outputs, &lanes);
    emit_result(body, &lanes, NULL, 2);
    text_string(out, "    }\n");
    return launch;
}

/* ---- sums ---- */

/* The elements of a sum that a thread adds up: from `first` on, every `step`-th. */
typedef struct Stride {
    const char *first, *step;
} Stride;

/* Appends the loop that adds the terms of one set of factors to `sum`. */
static void emit_sum_loop(const KernelBody *body, uint32_t set, const Lanes *columns, Stride stride,
                          int depth) {
    const Device *device = &body->device;
    const LocalOp *local = device->local;
    Text *out = device->out;
    Nest contracted = nest_of_sum(local, set);
    Lanes lanes =
        columns ? *columns : lanes_along(local, read_by(local, set), &contracted, body->outputs);
    Lanes steps = columns ? (Lanes){NULL, 1} : lanes;
    Around around = around_of(body->outputs, &contracted, &lanes);
    const char *k = counter(&contracted, &steps, "k");
    indent(out, depth);
    text_fill(out, "for ($index $k = $first; $k < $steps; $k += $step) {\n", "index", device->index,
              "k", k, "first", stride.first, "steps",
              c_number(out->arena, steps_of(&contracted, &steps)), "step", stride.step, NULL);
    emit_indices(device, &contracted, &steps, "k", depth + 1);
    emit_loads(device, read_by(local, set), &lanes, &around, depth + 1);
    emit_lanes(out, &lanes, depth + 1);
    text_print(out, "sum%s += ", !columns ? "" : lanes.width > 1 ? "[e]" : "[0]");
    text_terms(out, local, set, &around, true);
    text_string(out, ";\n");
    close_bracket(out, depth);
}

static int64_t longest_sum(const LocalOp *local, const uint32_t *sets, int set_count) {
    int64_t longest = 1;
    for (int s = 0; s < set_count; s++) {
        Nest contracted = nest_of_sum(local, sets[s]);
        int64_t volume = nest_volume(&contracted, 0, contracted.count);
        longest = volume > longest ? volume : longest;
    }
    return longest;
}

/* Returns the number of parts of each sum: BLOCKS / `blocks`, less for short sums, at least 1. */
static int64_t parts_of(int64_t elements, int64_t blocks) {
    int64_t parts = BLOCKS / blocks, most = elements / PART_SUM;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts;
}

/* Returns the C text of a thread's first element. The threads of a block, and `parts` blocks, take
 * consecutive elements of the sum. */
static const char *first_text(Arena *arena, int64_t parts, const char *thread, int threads) {
    return parts > 1 ? arena_format(arena, "blockIdx.y * %d + %s", threads, thread) : thread;
}

/* Returns the C text of the grid: `blocks` blocks for the result, `parts` parts of each sum. */
static const char *grid_text(Arena *arena, int64_t blocks, int64_t parts) {
    return parts > 1 ? arena_format(arena, "dim3(%lld, %lld)", (long long)blocks, (long long)parts)
                     : c_number(arena, blocks);
}

/* Appends sums with one warp for each element of the result. Returns the launch. */
static const char *emit_warp_sums(const KernelBody *body, const uint32_t *sets, int set_count) {
    Text *out = body->device.out;
    const Lanes one = {NULL, 1};
    emit_own_warp(&body->device, body->outputs);
    text_print(out, "    %s sum = 0;\n", sum_type(body->device.local));
    for (int s = 0; s < set_count; s++)
        emit_sum_loop(body, sets[s], NULL, (Stride){"threadIdx.x", c_number(out->arena, CUDA_WARP)},
                      1);
    text_string(out, "    sum = ht_warp_sum(sum);\n"
                     "    if (threadIdx.x == 0)\n");
    emit_result(body, &one, "sum", 2);
    return launch_warps(out->arena, body->outputs);
}

/* Appends sums with one or several CUDA blocks for each result element. Returns the launch. */
static const char *emit_block_sums(const KernelBody *body, const uint32_t *sets, int set_count,
                                   int64_t results, int64_t longest) {
    Text *out = body->device.out;
    const Lanes one = {NULL, 1};
    int64_t parts = parts_of(longest, results);
    emit_own_block(&body->device, body->outputs);
    text_print(out, "    %s sum = 0;\n", sum_type(body->device.local));
    for (int s = 0; s < set_count; s++)
        emit_sum_loop(body, sets[s], NULL,
                      (Stride){first_text(out->arena, parts, "threadIdx.x", CUDA_THREADS),
                               c_number(out->arena, parts * CUDA_THREADS)},
                      1);
    text_string(out, "    if (ht_block_sum(sum))\n");
    emit_result(body, &one, "sum", 2);
    return arena_format(out->arena, "%s, %d", grid_text(out->arena, results, parts), CUDA_THREADS);
}

/* Returns how many neighbouring elements of the result a thread computes. */
static Lanes column_lanes(const KernelBody *body, const uint32_t *sets, int set_count) {
    const LocalOp *local = body->device.local;
    Lanes lanes = lanes_along(local, read_by(local, 0) | 1, body->outputs, NULL);
    for (int s = 0; s < set_count; s++) {
        Nest contracted = nest_of_sum(local, sets[s]);
        Lanes mine = lanes_along(local, read_by(local, sets[s]) | 1, body->outputs, &contracted);
        lanes.width = mine.width < lanes.width ? mine.width : lanes.width;
    }
    return lanes;
}

/* Appends sums over rows. Each thread computes neighbouring elements of the result; the warps of a
 * block, and several blocks, share the rows. `alone`: a thread adds all. Returns the launch. */
static const char *emit_column_sums(const KernelBody *body, const uint32_t *sets, int set_count,
                                    int64_t longest, bool alone) {
    Text *out = body->device.out;
    Arena *arena = out->arena;
    Lanes lanes = column_lanes(body, sets, set_count);
    int64_t steps = steps_of(body->outputs, &lanes);
    int across = alone ? CUDA_THREADS : CUDA_WARP;
    int64_t blocks = (steps + across - 1) / across,
            parts = alone ? 1 : parts_of(longest * CUDA_WARP, blocks);
    const char *i = counter(body->outputs, &lanes, "i");
    emit_own_step(&body->device, body->outputs, &lanes, across, "threadIdx.x");
    emit_indices(&body->device, body->outputs, &lanes, "i", 1);
    text_print(out, "    %s sum[%d] = {0};\n", sum_type(body->device.local), lanes.width);
    text_print(out, "    if (%s < %lld) {\n", i, (long long)steps);
    for (int s = 0; s < set_count; s++)
        emit_sum_loop(body, sets[s], &lanes,
                      alone ? (Stride){"0", "1"}
                            : (Stride){first_text(arena, parts, "threadIdx.y", CUDA_WARPS),
                                       c_number(arena, parts * CUDA_WARPS)},
                      2);
    if (!alone)
        text_print(out, "    }\n    if (ht_column_sums(sum) && %s < %lld) {\n", i,
                   (long long)steps);
    emit_result(body, &lanes, lanes.width > 1 ? "sum[e]" : "sum[0]", 2);
    text_string(out, "    }\n");
    if (alone) return arena_format(arena, "%lld, %d", (long long)blocks, CUDA_THREADS);
    return arena_format(arena, "%s, dim3(%d, %d)", grid_text(arena, blocks, parts), CUDA_WARP,
                        CUDA_WARPS);
}

static const char *emit_sums(const KernelBody *body, const uint32_t *sets, int set_count) {
    int64_t results = nest_volume(body->outputs, 0, body->outputs->count),
            longest = longest_sum(body->device.local, sets, set_count);
    if (sums_columns(body->device.local, body->outputs, sets[0]) ||
        (longest < SERIAL_SUM && results > CUDA_THREADS))
        return emit_column_sums(body, sets, set_count, longest, longest < SERIAL_SUM);
    if (longest <= CUDA_WARP_SUM && results > 1) return emit_warp_sums(body, sets, set_count);
    return emit_block_sums(body, sets, set_count, results, longest);
}

void loops_cuda(Text *before, Text *out, const LocalOp *local, const Kernel *kernel) {
    uint32_t *sets = arena_array(out->arena, uint32_t, local->term_count + 1);
    int set_count = contracted_sets(local, sets);
    Nest outputs = nest_of_result(local);
    Text text = {.arena = out->arena};
    KernelBody body = {device_of(&text, local), &outputs};
    const char *launch = set_count ? emit_sums(&body, sets, set_count) : emit_elementwise(&body);
    emit_launch(before, out, local, kernel, (DeviceText){text_bytes(&text), launch});
}
