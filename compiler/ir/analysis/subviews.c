/* Computes strides and offsets of subviews, which passes/memory/alias_views.c chooses. */
#include "ir/analysis/subviews.h"
#include "ir/programs/regions.h"

/* Writes the strides, in elements, of a contiguous value on a device to stride[]. */
static void own_strides(Module *module, const Value *value, int device, int64_t *stride) {
    int64_t extent[IR_MAX_RANK], step = 1;
    value_local(module, value, device, extent);
    for (int d = value->type.rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= extent[d];
    }
}

/* Writes a value's strides in its storage to stride[], and its first element's index to *first. */
static void value_strides(Module *module, const Value *value, int device, int64_t *stride,
                          int64_t *first) {
    const Subview *within = value->subview;
    *first = 0;
    if (!within) {
        own_strides(module, value, device, stride);
        return;
    }
    int64_t whole[IR_MAX_RANK];
    value_strides(module, within->whole, device, whole, first);
    *first += within->dim < 0 ? 0 : within->start * whole[within->dim];
    bool dropped = value->type.rank < within->whole->type.rank;
    for (int d = 0; d < value->type.rank; d++) stride[d] = whole[d + (dropped && d >= within->dim)];
}

int64_t value_displacement(Module *module, const Value *value, int device) {
    int64_t stride[IR_MAX_RANK], first = 0;
    if (value->subview) value_strides(module, value, device, stride, &first);
    return first * dtype_size(value->type.dtype);
}

/* Returns the last dimension of the factor that clause `pitch` names; -1: the tensor has none. */
static int row_dim(const Op *op, const Access *access, const BoundAccess *bound) {
    for (int d = bound->rank - 1; d >= 0; d--)
        if (bound->dims[d].count == 1 &&
            op->binding->factors[bound->dims[d].factors[0]].factor == access->pitch)
            return d;
    return -1;
}

bool tensor_pitch(Module *module, const Op *op, BoundTensor tensor, int device, int64_t *pitch) {
    const Value *value = tensor.value;
    int64_t stride[IR_MAX_RANK], extent[IR_MAX_RANK], first;
    int row = tensor.access->pitch < 0 ? -1 : row_dim(op, tensor.access, tensor.bound);
    *pitch = 0;
    if (!value->subview) return true;
    if (row < 0 || !value_local(module, value, device, extent)) return false;
    value_strides(module, value, device, stride, &first);
    // all dimensions but `row` must be contiguous inside the next outer one
    int64_t step = 1;
    for (int d = value->type.rank - 1; d >= 0; d--) {
        step = d == row ? stride[d] : step;
        if (stride[d] != step) return false;
        step *= extent[d];
    }
    *pitch = stride[row];
    return true;
}

const Value *value_made_within(const Value *value, const Value *whole) {
    while (value->subview && value->subview->dim < 0) value = value->subview->whole;
    return value->subview && value->subview->whole == whole ? value : NULL;
}

bool op_moves_nothing(const Op *op) {
    if (op->result_count != 1 || op->def->rule->kind != RULE_CALL) return false;
    if (op->def->rule->copy.shift && op->operand_count == 1)
        return op->results[0]->subview && op->results[0]->subview->whole == op->operands[0];
    return op->def->rule->copy.row >= 0 && op->operand_count &&
           value_made_within(op->operands[0], op->results[0]);
}
