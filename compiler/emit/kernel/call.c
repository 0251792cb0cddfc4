/* Writes the functions that run a C kernel on views of tensors. */
#include "emit/kernel/kernel.h"
#include "emit/kernel/local.h"
#include "emit/words.h"
#include "ir/text/text.h"

#include <math.h>

/* Returns the extent of a dimension of the whole tensor: of the whole batch for a micro-batch (of
 * the padded batch if a pipeline has padding lengths), and of all chunks together for a chunk. */
static int64_t global_extent(const LocalOp *local, const Tensor *tensor, int d) {
    const BoundDim *dim = &tensor->bound->dims[d];
    const PipelineTemplates *bodies = local->module->templates;
    int stage = local->op->stage;
    bool shorter =
        stage != STAGE_ALL && bodies->at.at[bodies->stages.at[stage].template_index].short_rows;
    const Chunk *chunk = tensor->value->chunk;
    if (chunk && chunk->dim == d) return chunk->extent;
    return (shorter || value_cut_along(tensor->value, d)) && dim->count
               ? local->op->binding->factors[dim->factors[0]].extent
               : tensor->value->type.extent[d];
}

/* Returns a kernel view's extent: the product of the extents of the dimensions that it merges. */
static int64_t written_extent(const LocalOp *local, const Tensor *tensor, int written,
                              bool global) {
    int64_t extent = 1;
    for (int d = 0; d < tensor->bound->rank; d++)
        if (tensor->bound->dims[d].written == written)
            extent *= global ? global_extent(local, tensor, d) : tensor->extent[d];
    return extent;
}

static void emit_extents(Text *out, const LocalOp *local, const char *field, const Tensor *tensor,
                         bool global) {
    text_print(out, ", .%s = {", field);
    for (int w = 0; w < tensor->bound->written_rank; w++)
        text_print(out, "%s%lld", w ? ", " : "",
                   (long long)written_extent(local, tensor, w, global));
    text_string(out, "}");
}

/* Appends where the current micro-batch begins in a dimension of the view of the whole batch. */
static void emit_turn_offset(Text *out, const LocalOp *local, const Tensor *tensor, int written) {
    int64_t stride = 0, unit = local->module->templates->row_unit;
    for (int d = 0; d < tensor->bound->rank; d++) {
        if (tensor->bound->dims[d].written != written) continue;
        stride = value_cut_along(tensor->value, d) ? 1 : stride * tensor->value->type.extent[d];
    }
    if (stride && unit > 1)
        text_print(out, " + r->row / %lld * %lld", (long long)unit, (long long)stride);
    else if (stride) text_print(out, " + r->row * %lld", (long long)stride);
}

/* Appends a field of a view with a number of the device for each dimension: "offset", where the
 * piece begins; "fold" and "gap" of a zigzag dimension, the length of the first range and the
 * distance to the second. `number` is the column of the first number. */
static void emit_places(Text *out, const LocalOp *local, const Tensor *tensor, int which,
                        int number) {
    static const char *const FIELDS[] = {"offset", "fold", "gap"};
    int written = 0;
    for (int w = 0; w < tensor->bound->written_rank; w++) {
        bool zigzag = written_is_zigzag(tensor, w);
        if (!written_has_offset(local, tensor, w)) continue;
        if (!which || zigzag) {
            text_print(out, written ? "" : ", .%s = {", FIELDS[which]);
            for (; written < w; written++) text_string(out, written ? ", 0" : "0");
            text_print(out, "%sat[%d]", written++ ? ", " : "", number + which);
        }
        if (!which) emit_turn_offset(out, local, tensor, w);
        number += zigzag ? 3 : 1;
    }
    text_string(out, written ? "}" : "");
}

/* Returns how many numbers of the device the view of a tensor reads. */
static int place_count(const LocalOp *local, const Tensor *tensor) {
    int count = 0;
    for (int w = 0; w < tensor->bound->written_rank; w++)
        if (written_has_offset(local, tensor, w)) count += written_is_zigzag(tensor, w) ? 3 : 1;
    return count;
}

static void emit_view(Text *out, const LocalOp *local, const Tensor *tensor, int *number) {
    if (!tensor->value) {
        text_print(out, "        {0}, /* %s is absent */\n", tensor->access->name);
        return;
    }
    text_print(out, "        {.data = %s, .dtype = %s, .rank = %d", tensor->name,
               c_dtype(tensor->value->type.dtype), tensor->bound->written_rank);
    if (tensor->bound->written_rank) {
        emit_extents(out, local, "extent", tensor, false);
        emit_places(out, local, tensor, 0, *number);
        emit_places(out, local, tensor, 1, *number);
        emit_places(out, local, tensor, 2, *number);
        *number += place_count(local, tensor);
        emit_extents(out, local, "global", tensor, true);
    }
    if (tensor->pitch) text_print(out, ", .pitch = %lld", (long long)tensor->pitch);
    text_string(out, "},\n");
}

/* Appends the array of the views of the results, or of the operands. */
static void emit_views(Text *out, const LocalOp *local, bool results, int *number) {
    int count = results ? local->result_count : local->operand_count;
    text_print(out, "    const ht_view %s[] = {\n", results ? "result" : "operand");
    for (int k = 0; k < count; k++)
        emit_view(out, local, results ? &local->results[k] : &local->operands[k], number);
    text_string(out, count ? "    };\n" : "        {0},\n    };\n");
}

static void emit_shape_attr(Text *out, const Attr *attr) {
    text_print(out, "{.dims = {%d, {", attr->count);
    for (int d = 0; d < attr->count; d++)
        text_print(out, "%s%lld", d ? ", " : "", (long long)attr->ints[d]);
    text_string(out, attr->count ? "}}}" : "0}}}");
}

static void emit_double(Text *out, double value) {
    if (isnan(value) || isinf(value))
        text_string(out, isnan(value) ? "NAN" : value < 0 ? "-INFINITY" : "INFINITY");
    else print_number(out, value);
}

static void emit_attrs(Text *out, const OpDef *def, const Attr *attrs) {
    text_string(out, "    static const ht_attr attr[] = {\n");
    for (int p = 0, a = 0; p < def->param_count; p++) {
        ParamKind kind = def->params[p].kind;
        if (kind == PARAM_TENSOR || kind == PARAM_TENSORS) continue;
        text_string(out, "        ");
        if (kind == PARAM_FLOAT) {
            text_string(out, "{.f = ");
            emit_double(out, attrs[a].f);
            text_string(out, "}");
        } else if (kind == PARAM_SHAPE) {
            emit_shape_attr(out, &attrs[a]);
        } else {
            text_print(out, "{.i = %lld}", (long long)attrs[a].i);
        }
        text_print(out, ", /* %s */\n", def->params[p].name);
        a++;
    }
    text_string(out, "    };\n");
}

/* Returns whether the results are maxima over an empty factor; otherwise the results are sums. */
static bool identity_is_maximum(const LocalOp *local) {
    for (int f = 0; f < local->factor_count; f++)
        if (!local->extent[f] &&
            local->rule->factors[local->op->binding->factors[f].factor].reduction == REDUCE_MAX)
            return true;
    return false;
}

/* Returns the operand that is added to a result (clause `plus`); NULL: none. */
static const Tensor *added_to(const LocalOp *local, const Tensor *result) {
    int k = result->access->plus < 0 ? -1 : operand_of(local, result->access->plus);
    return k < 0 ? NULL : &local->operands[k];
}

void emit_identity(Text *out, const LocalOp *local) {
    for (int k = 0; k < local->result_count; k++)
        if (tensor_elements(&local->results[k]) && added_to(local, &local->results[k]))
            text_print(out, "    ht_copy(%s, %s, %lld);\n", local->results[k].name,
                       added_to(local, &local->results[k])->name,
                       (long long)(tensor_elements(&local->results[k]) *
                                   dtype_size(local->results[k].value->type.dtype)));
        else if (tensor_elements(&local->results[k]))
            text_print(out, "    ht_fill_identity(%s, %s, %lld, %s);\n", local->results[k].name,
                       c_dtype(local->results[k].value->type.dtype),
                       (long long)tensor_elements(&local->results[k]),
                       identity_is_maximum(local) ? "true" : "false");
}

void emit_call(Text *out, const LocalOp *local, const char *kernel, bool update) {
    int number = 0;
    emit_views(out, local, true, &number);
    emit_views(out, local, false, &number);
    const OpDef *def = local->op->def;
    if (def->attr_count) emit_attrs(out, def, local->op->attrs);
    text_fill(out,
              "    ht_call call = {.result = result, .operand = operand, .result_count = $results, "
              ".operand_count = $operands$attr$hyper};\n"
              "    ht_run_kernel(r, $kernel, &call, where);\n",
              "results", c_number(out->arena, local->result_count), "operands",
              c_number(out->arena, local->operand_count), "attr",
              def->attr_count ? ", .attr = attr" : "", "hyper", update ? ", .hyper = r->hyper" : "",
              "kernel", kernel, NULL);
}
