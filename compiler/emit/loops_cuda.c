/* Kernels from bodies, for CUDA: a __global__ function, and the function that launches it.
 *
 * A thread computes neighbouring elements at once where they are aligned: 16 bytes of the smallest type. What the loops are made of, and
 * the order in which threads add up a sum, stands in <hetu/cuda_loops.h>.
 */
#include "emit/loops.h"

#include <stdio.h>
#include <string.h>

enum {
    VECTOR = 16,            // bytes that a thread loads or stores at once
    THREADS = 256,          // of a block
    WARP = 32,              // lanes
    WARPS = THREADS / WARP, // of a block
    WARP_SUM = 1024,        // elements that a warp still adds up alone
    SERIAL_SUM = 16,        // elements that a thread still adds up alone
    PART_SUM = 2048,        // least elements of a sum's part
    BLOCKS = 512,           // that keep a device busy
    LONG_INDEX = 1 << 30    // elements from which an index takes 64 bits
};

/* Neighbouring elements along a loop that a thread handles at once. */
typedef struct Lanes {
    const Loop *inner; // NULL: one element
    int width;
} Lanes;

/* A function that is being written. */
typedef struct Device {
    Text *out;
    const LocalOp *local;
    const Nest *outputs;
    const char *index; // type of an index
} Device;

/* ---- how wide ---- */

/* Whether a tensor begins at a multiple of VECTOR bytes: all do but a micro-batch's part of an input. */
static bool is_aligned(const LocalOp *local, const Tensor *tensor)
{
    return !value_turns(local->module, local->op, tensor->value) ||
           tensor_count(tensor) * dtype_size(tensor->value->type.dtype) % VECTOR == 0;
}

static const Tensor *tensor_number(const LocalOp *local, int number) { return number ? &local->operands[number - 1] : &local->results[0]; }

/* Whether neighbours of a tensor along `inner` can be loaded `width` at once wherever the loops of `nest` stand. */
static bool fits(const LocalOp *local, int number, const Nest *nest, const Loop *inner, int width)
{
    for (int l = 0; nest && l < nest->count; l++)
        if (&nest->loop[l] != inner && nest->loop[l].stride[number] % width)
            return false;
    return is_aligned(local, tensor_number(local, number));
}

/* Whether a set of tensors (bit 0 the result, 1 + k operand k) has neighbours along `inner` at all. */
static bool has_neighbours(const LocalOp *local, uint64_t tensors, const Loop *inner, int number)
{
    return number <= local->operand_count && tensors >> number & 1 && inner->stride[number] == 1;
}

/* As many lanes as fill a vector of the smallest type, or fewer where some tensor does not allow so many. */
static Lanes lanes_along(const LocalOp *local, uint64_t tensors, const Loop *inner, const Nest *outer, const Nest *other)
{
    Lanes lanes = {inner, 1};
    for (int t = 0; inner && t <= local->operand_count; t++)
        if (has_neighbours(local, tensors, inner, t) && VECTOR / dtype_size(tensor_number(local, t)->value->type.dtype) > lanes.width)
            lanes.width = VECTOR / dtype_size(tensor_number(local, t)->value->type.dtype);
    while (inner && inner->extent % lanes.width)
        lanes.width /= 2;
    for (int t = 0; inner && t <= local->operand_count; t++)
        while (lanes.width > 1 && has_neighbours(local, tensors, inner, t) &&
               !(fits(local, t, outer, inner, lanes.width) && fits(local, t, other, inner, lanes.width)))
            lanes.width /= 2;
    return lanes;
}

/* An index that reaches every element of every tensor. */
static const char *index_type(const LocalOp *local)
{
    int64_t volume = tensor_count(&local->results[0]);
    for (int f = 0; f < local->factor_count; f++)
        volume *= local->contracted >> f & 1 && local->extent[f] ? local->extent[f] : 1;
    for (int k = 0; k < local->operand_count; k++)
        volume = tensor_count(&local->operands[k]) > volume ? tensor_count(&local->operands[k]) : volume;
    return volume < LONG_INDEX ? "int" : "int64_t";
}

/* ---- elements ---- */

/* An operand at one of the lanes: a value that was loaded, or an element that lies apart. An AccessWriter. */
static void text_lane(Text *out, const LocalOp *local, int operand, void *context)
{
    const Around *around = context;
    const Lanes *lanes = around->more;
    int64_t stride = lanes->inner ? lanes->inner->stride[1 + operand] : 0;
    if (lanes->width == 1) {
        text_element(out, local, operand, context);
    } else if (stride == 0 || stride == 1) {
        text_print(out, "%s_v%s", local->operands[operand].name, stride ? "[e]" : "");
    } else {
        Nest apart = lanes->inner->name[0] == 'k' ? *around->contracted : *around->outputs;
        Around there = *around;
        *(lanes->inner->name[0] == 'k' ? &there.contracted : &there.outputs) = &apart;
        char *name = apart.loop[apart.count - 1].name;
        snprintf(name, sizeof apart.loop->name, "(%.8s + e)", lanes->inner->name);
        text_element(out, local, operand, &there);
    }
}

static Around around_of(const Nest *outputs, const Nest *contracted, const Lanes *lanes)
{
    return (Around){.outputs = outputs, .contracted = contracted, .access = text_lane, .number = "at$n", .more = lanes};
}

/* NAME + INDEX */
static void text_place(Text *out, const Tensor *tensor, const Around *around, int number)
{
    Text index = {.arena = out->arena};
    text_index(&index, around, number);
    text_print(out, strcmp(text_bytes(&index), "0") ? "%s + %s" : "%s", tensor->name, text_bytes(&index));
}

/* Loads the operands of a set into variables: one value, or one a lane. */
static void emit_loads(const Device *device, uint64_t operands, const Around *around, int depth)
{
    const Lanes *lanes = around->more;
    Text *out = device->out;
    for (int k = 0; lanes->width > 1 && k < device->local->operand_count; k++) {
        const Tensor *tensor = &device->local->operands[k];
        int64_t stride = lanes->inner->stride[1 + k];
        if (!(operands >> k & 1) || (stride != 0 && stride != 1))
            continue;
        indent(out, depth);
        if (stride) {
            text_print(out, "%s %s_v[%d];\n", value_type(tensor->value->type.dtype), tensor->name, lanes->width);
            indent(out, depth);
            text_print(out, "ht_load(%s_v, ", tensor->name);
            text_place(out, tensor, around, 1 + k);
            text_string(out, ");\n");
        } else {
            text_print(out, "const %s %s_v = ", value_type(tensor->value->type.dtype), tensor->name);
            text_element(out, device->local, k, (void *)around);
            text_string(out, ";\n");
        }
    }
}

/* The beginning of a statement that is done for every lane. */
static int emit_lanes(Text *out, const Lanes *lanes, int depth)
{
    if (lanes->width > 1) {
        indent(out, depth++);
        text_print(out, "for (int e = 0; e < %d; e++)\n", lanes->width);
    }
    indent(out, depth);
    return depth;
}

/* RESULT[...] = the terms that are not summed, with `sum` in front unless that is NULL. */
static void emit_result(const Device *device, const Lanes *lanes, const char *sum, int depth)
{
    const LocalOp *local = device->local;
    const Tensor *result = &local->results[0];
    Text *out = device->out;
    Around around = around_of(device->outputs, NULL, lanes);
    emit_loads(device, terms_operands(local, 0), &around, depth);
    if (lanes->width > 1) {
        indent(out, depth);
        text_print(out, "%s %s_v[%d];\n", value_type(result->value->type.dtype), result->name, lanes->width);
        emit_lanes(out, lanes, depth);
        text_print(out, "%s_v[e] = ", result->name);
    } else {
        indent(out, depth);
        text_result(out, local, &around);
    }
    if (sum)
        text_sum_value(out, local, &around, sum);
    else if (!text_terms(out, local, 0, &around, true))
        text_string(out, "0");
    if (lanes->width == 1) {
        text_result_end(out, local);
        return;
    }
    text_string(out, ";\n");
    indent(out, depth);
    text_string(out, "ht_store(");
    text_place(out, result, &around, 0);
    text_print(out, ", %s_v);\n", result->name);
}

/* ---- loops ---- */

/* The variable that counts steps of a nest: the loop's own where there is one loop and one lane, else `number`. */
static const char *counter(const Nest *nest, const Lanes *lanes, const char *number)
{
    return nest->count == 1 && lanes->width == 1 ? nest->loop[0].name : number;
}

/* The indices of a nest's loops out of `number`, which counts steps of `width` elements: "const int i0 = n / 192, i1 = n % 192 * 4;" */
static void emit_indices(const Device *device, const Nest *nest, const Lanes *lanes, const char *number, int depth)
{
    if (!nest->count || !strcmp(counter(nest, lanes, number), nest->loop[0].name))
        return;
    Text *out = device->out;
    indent(out, depth);
    for (int l = 0; l < nest->count; l++) {
        bool last = l == nest->count - 1;
        int64_t below = nest_volume(nest, l + 1, nest->count) / (last ? 1 : lanes->width);
        text_print(out, l ? ", %s = %s" : "const %s %s = %s", l ? nest->loop[l].name : device->index, l ? number : nest->loop[l].name,
                   number);
        if (below > 1)
            text_print(out, " / %lld", (long long)below);
        if (l)
            text_print(out, " %% %lld", (long long)(nest->loop[l].extent / (last ? lanes->width : 1)));
        if (last && lanes->width > 1)
            text_print(out, " * %d", lanes->width);
    }
    text_string(out, ";\n");
}

static int64_t steps_of(const Nest *nest, const Lanes *lanes) { return nest_volume(nest, 0, nest->count) / lanes->width; }

/* The body of a kernel that sums nothing. Returns how it is launched: "grid, block". */
static const char *emit_elementwise(const Device *device)
{
    const LocalOp *local = device->local;
    const Nest *outputs = device->outputs;
    Text *out = device->out;
    Lanes lanes = lanes_along(local, terms_operands(local, 0) << 1 | 1, nest_inner(outputs), outputs, NULL);
    if (!outputs->count) {
        emit_result(device, &lanes, NULL, 1);
        return "1, 1";
    }
    const char *steps = arena_format(out->arena, "%lld", (long long)steps_of(outputs, &lanes));
    text_fill(out, "    for ($index $i = ht_thread(); $i < $steps; $i += ht_threads()) {\n", "index", device->index, "i",
              counter(outputs, &lanes, "i"), "steps", steps, NULL);
    emit_indices(device, outputs, &lanes, "i", 2);
    emit_result(device, &lanes, NULL, 2);
    text_string(out, "    }\n");
    return arena_format(out->arena, "ht_blocks(%s, %d), %d", steps, THREADS, THREADS);
}

/* ---- sums ---- */

/* The loop over the elements of one set of contracted factors: from `first` on, every `step`-th. `sum` is added to. */
static void emit_sum_loop(const Device *device, uint32_t set, const Lanes *columns, const char *first, const char *step, int depth)
{
    const LocalOp *local = device->local;
    Text *out = device->out;
    Nest contracted = nest_of_sum(local, set);
    uint64_t operands = terms_operands(local, set);
    Lanes lanes = columns ? *columns : lanes_along(local, operands << 1, nest_inner(&contracted), &contracted, device->outputs);
    Lanes steps = columns ? (Lanes){NULL, 1} : lanes;
    Around around = around_of(device->outputs, &contracted, &lanes);
    const char *k = counter(&contracted, &steps, "k");
    indent(out, depth);
    text_fill(out, "for ($index $k = $first; $k < $steps; $k += $step) {\n", "index", device->index, "k", k, "first", first, "steps",
              arena_format(out->arena, "%lld", (long long)steps_of(&contracted, &steps)), "step", step, NULL);
    emit_indices(device, &contracted, &steps, "k", depth + 1);
    emit_loads(device, operands, &around, depth + 1);
    emit_lanes(out, &lanes, depth + 1);
    text_print(out, "sum%s += ", !columns ? "" : lanes.width > 1 ? "[e]" : "[0]");
    text_terms(out, local, set, &around, true);
    text_string(out, ";\n");
    indent(out, depth);
    text_string(out, "}\n");
}

static int64_t longest_sum(const LocalOp *local, const uint32_t *sets, int set_count)
{
    int64_t longest = 1;
    for (int s = 0; s < set_count; s++) {
        Nest contracted = nest_of_sum(local, sets[s]);
        int64_t volume = nest_volume(&contracted, 0, contracted.count);
        longest = volume > longest ? volume : longest;
    }
    return longest;
}

/* In how many parts blocks share a sum, where `blocks` of them would add it up alone. */
static int64_t parts_of(int64_t elements, int64_t blocks)
{
    int64_t parts = BLOCKS / blocks, most = elements / PART_SUM;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts;
}

static const char *number_text(Arena *arena, int64_t number) { return arena_format(arena, "%lld", (long long)number); }

/* The first element of a thread, and its step: threads of a block lie along the sum, and so do `parts` blocks. */
static const char *first_text(Arena *arena, int64_t parts, const char *thread, int threads)
{
    return parts > 1 ? arena_format(arena, "blockIdx.y * %d + %s", threads, thread) : thread;
}

/* A grid of so many blocks for the result, each sum in so many parts. */
static const char *grid_text(Arena *arena, int64_t blocks, int64_t parts)
{
    return parts > 1 ? arena_format(arena, "dim3(%lld, %lld)", (long long)blocks, (long long)parts) : number_text(arena, blocks);
}

/* How an index is made of a block and a thread: "blockIdx.x * 8 + threadIdx.y". */
static const char *place_text(const Device *device, int each, const char *thread)
{
    bool wide = !strcmp(device->index, "int64_t");
    return arena_format(device->out->arena, "blockIdx.x * %d%s + %s", each, wide ? "L" : "", thread);
}

/* A warp for each element of the result. */
static const char *emit_warp_sums(const Device *device, const uint32_t *sets, int set_count, int64_t results)
{
    Text *out = device->out;
    const Lanes one = {NULL, 1};
    text_fill(out,
              "    const $index $i = $place;\n"
              "    if ($i >= $results)\n"
              "        return;\n",
              "index", device->index, "i", counter(device->outputs, &one, "i"), "place", place_text(device, WARPS, "threadIdx.y"),
              "results", number_text(out->arena, results), NULL);
    emit_indices(device, device->outputs, &one, "i", 1);
    text_print(out, "    %s sum = 0;\n", sum_type(device->local));
    for (int s = 0; s < set_count; s++)
        emit_sum_loop(device, sets[s], NULL, "threadIdx.x", number_text(out->arena, WARP), 1);
    text_string(out, "    sum = ht_warp_sum(sum);\n"
                     "    if (threadIdx.x == 0)\n");
    emit_result(device, &one, "sum", 2);
    return arena_format(out->arena, "%lld, dim3(%d, %d)", (long long)((results + WARPS - 1) / WARPS), WARP, WARPS);
}

/* A block for each element of the result, or several. */
static const char *emit_block_sums(const Device *device, const uint32_t *sets, int set_count, int64_t results, int64_t longest)
{
    Text *out = device->out;
    const Lanes one = {NULL, 1};
    int64_t parts = parts_of(longest, results);
    if (device->outputs->count)
        text_print(out, "    const %s %s = blockIdx.x;\n", device->index, counter(device->outputs, &one, "i"));
    emit_indices(device, device->outputs, &one, "i", 1);
    text_print(out, "    %s sum = 0;\n", sum_type(device->local));
    for (int s = 0; s < set_count; s++)
        emit_sum_loop(device, sets[s], NULL, first_text(out->arena, parts, "threadIdx.x", THREADS),
                      number_text(out->arena, parts * THREADS), 1);
    text_string(out, "    if (ht_block_sum(sum))\n");
    emit_result(device, &one, "sum", 2);
    return arena_format(out->arena, "%s, %d", grid_text(out->arena, results, parts), THREADS);
}

/* The lanes of neighbouring elements of the result that one thread adds up. */
static Lanes column_lanes(const Device *device, const uint32_t *sets, int set_count)
{
    const LocalOp *local = device->local;
    const Loop *inner = nest_inner(device->outputs);
    Lanes lanes = lanes_along(local, terms_operands(local, 0) << 1 | 1, inner, device->outputs, NULL);
    for (int s = 0; s < set_count; s++) {
        Nest contracted = nest_of_sum(local, sets[s]);
        Lanes mine = lanes_along(local, terms_operands(local, sets[s]) << 1 | 1, inner, device->outputs, &contracted);
        lanes.width = mine.width < lanes.width ? mine.width : lanes.width;
    }
    return lanes;
}

/* Neighbouring elements of the result for each thread, the rows that they add up shared by the warps of a block and by blocks; `alone`:
 * each thread adds up all of them. */
static const char *emit_column_sums(const Device *device, const uint32_t *sets, int set_count, int64_t longest, bool alone)
{
    Text *out = device->out;
    Arena *arena = out->arena;
    Lanes lanes = column_lanes(device, sets, set_count);
    int64_t steps = steps_of(device->outputs, &lanes);
    int across = alone ? THREADS : WARP;
    int64_t blocks = (steps + across - 1) / across, parts = alone ? 1 : parts_of(longest * WARP, blocks);
    const char *i = counter(device->outputs, &lanes, "i");
    text_fill(out, "    const $index $i = $place;\n", "index", device->index, "i", i, "place", place_text(device, across, "threadIdx.x"),
              NULL);
    emit_indices(device, device->outputs, &lanes, "i", 1);
    text_print(out, "    %s sum[%d] = {0};\n", sum_type(device->local), lanes.width);
    text_print(out, "    if (%s < %lld) {\n", i, (long long)steps);
    for (int s = 0; s < set_count; s++)
        emit_sum_loop(device, sets[s], &lanes, alone ? "0" : first_text(arena, parts, "threadIdx.y", WARPS),
                      alone ? "1" : number_text(arena, parts * WARPS), 2);
    if (!alone)
        text_print(out, "    }\n    if (ht_column_sums(sum) && %s < %lld) {\n", i, (long long)steps);
    emit_result(device, &lanes, lanes.width > 1 ? "sum[e]" : "sum[0]", 2);
    text_string(out, "    }\n");
    if (alone)
        return arena_format(arena, "%lld, %d", (long long)blocks, THREADS);
    return arena_format(arena, "%s, dim3(%d, %d)", grid_text(arena, blocks, parts), WARP, WARPS);
}

static const char *emit_sums(const Device *device, const uint32_t *sets, int set_count)
{
    int64_t results = nest_volume(device->outputs, 0, device->outputs->count), longest = longest_sum(device->local, sets, set_count);
    if (sums_columns(device->local, device->outputs, sets[0]) || (longest < SERIAL_SUM && results > THREADS))
        return emit_column_sums(device, sets, set_count, longest, longest < SERIAL_SUM);
    if (longest <= WARP_SUM && results > 1)
        return emit_warp_sums(device, sets, set_count, results);
    return emit_block_sums(device, sets, set_count, results, longest);
}

/* ---- functions ---- */

/* Parameters of the __global__ function and arguments of the launch: what its text uses. */
static void text_arguments(Text *parameters, Text *arguments, const LocalOp *local, const char *body)
{
    text_print(parameters, "%s *%s", c_type(local->results[0].value->type.dtype), local->results[0].name);
    text_string(arguments, local->results[0].name);
    for (int k = 0; k < local->operand_count; k++)
        if (local->operands[k].value && has_word(body, local->operands[k].name)) {
            text_print(parameters, ", const %s *%s", c_type(local->operands[k].value->type.dtype), local->operands[k].name);
            text_print(arguments, ", %s", local->operands[k].name);
        }
    for (int t = 0, flag = 0; t < local->term_count; t++)
        if (local->terms[t].flagged) {
            text_print(parameters, ", int64_t at%d", flag);
            text_print(arguments, ", at[%d]", flag++);
        }
}

void loops_cuda(Text *before, Text *out, const LocalOp *local, const Kernel *kernel)
{
    Arena *arena = out->arena;
    uint32_t *sets = arena_array(arena, uint32_t, local->term_count + 1);
    int set_count = contracted_sets(local, sets);
    Nest outputs = nest_of_result(local);
    Text body = {.arena = arena}, parameters = {.arena = arena}, arguments = {.arena = arena};
    Device device = {.out = &body, .local = local, .outputs = &outputs, .index = index_type(local)};
    const char *launch = set_count ? emit_sums(&device, sets, set_count) : emit_elementwise(&device);
    text_arguments(&parameters, &arguments, local, text_bytes(&body));
    text_fill(before,
              "static __global__ void $name_device($parameters)\n"
              "{\n"
              "$body"
              "}\n"
              "\n",
              "name_device", arena_format(arena, "%s_device", kernel->name), "parameters", text_bytes(&parameters), "body",
              text_bytes(&body), NULL);
    text_fill(out, "    ht_launch($name_device, $launch, 0, $arguments);\n", "name_device", arena_format(arena, "%s_device", kernel->name),
              "launch", launch, "arguments", text_bytes(&arguments), NULL);
}
