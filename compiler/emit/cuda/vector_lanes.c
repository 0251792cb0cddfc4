/* Decides how many neighbouring elements a CUDA thread loads at once (lanes_along), and the sizes
 * of launches. */
#include "emit/cuda/vector_lanes.h"

#include "emit/words.h"

#include <stdio.h>
#include <string.h>

enum {
    VECTOR = 16,         // bytes of one load or store of a thread
    LONG_INDEX = 1 << 30 // from this number of elements on, an index has 64 bits
};

/* Returns a Device whose index type counts up to the product of all factors. */
Device device_of(Text *out, const LocalOp *local) {
    int64_t volume = 1;
    for (int f = 0; f < local->factor_count; f++) volume *= local->extent[f] ? local->extent[f] : 1;
    return (Device){.out = out, .local = local, .index = volume < LONG_INDEX ? "int" : "int64_t"};
}

/* ---- how wide ---- */

/* Returns whether a tensor begins at a multiple of VECTOR bytes. Only a micro-batch's rows of an
 * input may begin elsewhere. */
static bool is_aligned(const LocalOp *local, const Tensor *tensor) {
    return !value_turns(local->module, local->op, tensor->value) ||
           tensor_elements(tensor) * dtype_size(tensor->value->type.dtype) % VECTOR == 0;
}

/* Returns whether `width` neighbours of a tensor along `inner` are always aligned in `nest`. */
static bool fits(const LocalOp *local, int tensor, const Nest *nest, const Loop *inner, int width) {
    for (int l = 0; nest && l < nest->count; l++)
        if (&nest->loop[l] != inner && nest->loop[l].stride[tensor] % width) return false;
    return is_aligned(local, &local->tensors[tensor]);
}

Lanes lanes_along(const LocalOp *local, uint64_t tensors, const Nest *nest, const Nest *other) {
    Lanes lanes = {nest, 1};
    const Loop *inner = nest_inner(nest);
    if (local->tensor_count > 64) BUG("%s: too many tensors for a kernel", local->op->def->name);
    for (int t = 0; inner && tensors >> t; t++) {
        bool neighbours = tensors >> t & 1 && inner->stride[t] == 1;
        int width = neighbours ? VECTOR / dtype_size(local->tensors[t].value->type.dtype) : 1;
        lanes.width = width > lanes.width ? width : lanes.width;
    }
    while (inner && inner->extent % lanes.width) lanes.width /= 2;
    for (int t = 0; inner && tensors >> t; t++)
        while (tensors >> t & 1 && inner->stride[t] == 1 && lanes.width > 1 &&
               !(fits(local, t, nest, inner, lanes.width) &&
                 fits(local, t, other, inner, lanes.width)))
            lanes.width /= 2;
    return lanes;
}

/* ---- elements ---- */

static int64_t inner_stride(const Lanes *lanes, int tensor) {
    return lanes->width > 1 ? nest_inner(lanes->nest)->stride[tensor] : 0;
}

/* Appends lane e of a tensor that is not contiguous along the lanes: its index uses (i0 + e). */
static void text_apart(Text *out, const LocalOp *local, int tensor, const Lanes *lanes,
                       const Around *around) {
    Nest apart = *lanes->nest;
    Around there = *around;
    Loop *inner = &apart.loop[apart.count - 1];
    *(around->contracted == lanes->nest ? &there.contracted : &there.outputs) = &apart;
    snprintf(inner->name, sizeof inner->name, "(%.8s + e)", nest_inner(lanes->nest)->name);
    text_tensor(out, local, tensor, &there);
}

void text_lane(Text *out, const LocalOp *local, int tensor, const Lanes *lanes,
               const Around *around) {
    int64_t stride = inner_stride(lanes, tensor);
    if (lanes->width == 1) text_tensor(out, local, tensor, around);
    else if (stride == 0 || stride == 1)
        text_print(out, "%s_v%s", local->tensors[tensor].name, stride ? "[e]" : "");
    else text_apart(out, local, tensor, lanes, around);
}

void text_place(Text *out, const LocalOp *local, int tensor, const Around *around) {
    Text index = {.arena = out->arena};
    text_index(&index, around, tensor);
    text_print(out, strcmp(text_bytes(&index), "0") ? "%s + %s" : "%s", local->tensors[tensor].name,
               text_bytes(&index));
}

/* Appends the load of a tensor: neighbouring elements, or one element for all lanes. */
static void emit_load(const Device *device, int number, const Lanes *lanes, const Around *around,
                      int depth) {
    const Tensor *tensor = &device->local->tensors[number];
    const char *type = value_type(tensor->value->type.dtype);
    Text *out = device->out;
    indent(out, depth);
    if (inner_stride(lanes, number)) {
        text_print(out, "%s %s_v[%d];\n", type, tensor->name, lanes->width);
        indent(out, depth);
        text_print(out, "ht_load(%s_v, ", tensor->name);
        text_place(out, device->local, number, around);
        text_string(out, ");\n");
    } else {
        text_print(out, "const %s %s_v = ", type, tensor->name);
        text_tensor(out, device->local, number, around);
        text_string(out, ";\n");
    }
}

void emit_loads(const Device *device, uint64_t tensors, const Lanes *lanes, const Around *around,
                int depth) {
    for (int t = 0; lanes->width > 1 && tensors >> t; t++)
        if (tensors >> t & 1 && inner_stride(lanes, t) <= 1)
            emit_load(device, t, lanes, around, depth);
}

/* ---- counters ---- */

const char *counter(const Nest *nest, const Lanes *lanes, const char *number) {
    return nest->count == 1 && lanes->width == 1 ? nest->loop[0].name : number;
}

int64_t steps_of(const Nest *nest, const Lanes *lanes) {
    return nest_volume(nest, 0, nest->count) / lanes->width;
}

void emit_indices(const Device *device, const Nest *nest, const Lanes *lanes, const char *number,
                  int depth) {
    if (!nest->count || !strcmp(counter(nest, lanes, number), nest->loop[0].name)) return;
    Text *out = device->out;
    indent(out, depth);
    text_print(out, "const %s ", device->index);
    for (int l = 0; l < nest->count; l++) {
        bool last = l == nest->count - 1;
        int64_t below = nest_volume(nest, l + 1, nest->count) / (last ? 1 : lanes->width);
        text_print(out, "%s%s = %s", l ? ", " : "", nest->loop[l].name, number);
        if (below > 1) text_print(out, " / %lld", (long long)below);
        if (l)
            text_print(out, " %% %lld",
                       (long long)(nest->loop[l].extent / (last ? lanes->width : 1)));
        if (last && lanes->width > 1) text_print(out, " * %d", lanes->width);
    }
    text_string(out, ";\n");
}

const char *open_steps(const Device *device, const Nest *nest, const Lanes *lanes) {
    Text *out = device->out;
    const char *steps = c_number(out->arena, steps_of(nest, lanes));
    text_fill(out, "    for ($index $i = ht_thread(); $i < $steps; $i += ht_threads()) {\n",
              "index", device->index, "i", counter(nest, lanes, "i"), "steps", steps, NULL);
    emit_indices(device, nest, lanes, "i", 2);
    return arena_format(out->arena, "ht_blocks(%s, %d), %d", steps, CUDA_THREADS, CUDA_THREADS);
}

void emit_own_step(const Device *device, const Nest *nest, const Lanes *lanes, int each,
                   const char *thread) {
    bool wide = !strcmp(device->index, "int64_t");
    text_print(device->out, "    const %s %s = blockIdx.x * %d%s + %s;\n", device->index,
               counter(nest, lanes, "i"), each, wide ? "L" : "", thread);
}

static const Lanes ONE = {NULL, 1};

void emit_own_warp(const Device *device, const Nest *nest) {
    emit_own_step(device, nest, &ONE, CUDA_WARPS, "threadIdx.y");
    text_print(device->out, "    if (%s >= %lld)\n        return;\n", counter(nest, &ONE, "i"),
               (long long)steps_of(nest, &ONE));
    emit_indices(device, nest, &ONE, "i", 1);
}

void emit_own_block(const Device *device, const Nest *nest) {
    if (nest->count)
        text_print(device->out, "    const %s %s = blockIdx.x;\n", device->index,
                   counter(nest, &ONE, "i"));
    emit_indices(device, nest, &ONE, "i", 1);
}

const char *launch_warps(Arena *arena, const Nest *nest) {
    return arena_format(arena, "%lld, dim3(%d, %d)",
                        (long long)((steps_of(nest, &ONE) + CUDA_WARPS - 1) / CUDA_WARPS),
                        CUDA_WARP, CUDA_WARPS);
}

/* ---- functions ---- */

/* Appends the parameters of the __global__ function that its body reads, and their arguments. */
static void text_arguments(Text *parameters, Text *arguments, const LocalOp *local,
                           const char *body) {
    for (int t = 0; t < local->tensor_count; t++) {
        const Tensor *tensor = &local->tensors[t];
        if (!tensor->value || !has_word(body, tensor->name)) continue;
        const char *comma = parameters->length ? ", " : "",
                   *qualifier = t < local->result_count ? "" : "const ";
        text_print(parameters, "%s%s%s *%s", comma, qualifier, c_type(tensor->value->type.dtype),
                   tensor->name);
        text_print(arguments, "%s%s", comma, tensor->name);
    }
    for (int t = 0, flag = 0; t < local->term_count; t++)
        if (local->terms[t].flagged) {
            text_print(parameters, ", int64_t at%d", flag);
            text_print(arguments, ", at[%d]", flag++);
        }
}

void emit_launch(Text *before, Text *out, const LocalOp *local, const Kernel *kernel,
                 DeviceText text) {
    Arena *arena = out->arena;
    Text parameters = {.arena = arena}, arguments = {.arena = arena};
    const char *name = arena_format(arena, "%s_device", kernel->name);
    text_arguments(&parameters, &arguments, local, text.body);
    text_fill(before,
              "static __global__ void $name($parameters)\n"
              "{\n"
              "$body"
              "}\n"
              "\n",
              "name", name, "parameters", text_bytes(&parameters), "body", text.body, NULL);
    text_fill(out, "    ht_launch($name, $launch, 0, $arguments);\n", "name", name, "launch",
              text.launch, "arguments", text_bytes(&arguments), NULL);
}
