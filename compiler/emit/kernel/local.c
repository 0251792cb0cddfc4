/* Finds the local shapes and terms of an operator on the devices of a role. emit/words.c names
 * tensors in emitted C. */
#include "emit/kernel/local.h"

#include "emit/kernel/kernel.h"
#include "emit/emitter.h"
#include "emit/words.h"
#include "ir/programs/device_programs.h"
#include "ir/analysis/side_reduction.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/regions.h"
#include "rule/expr.h"

#include <math.h>
#include <string.h>

int64_t tensor_elements(const Tensor *tensor) {
    int64_t count = 1;
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++) count *= tensor->extent[d];
    return tensor->value && !tensor->empty ? count : 0;
}

int64_t tensor_stride(const Tensor *tensor, int factor) {
    int64_t stride = 0, step = 1;
    for (int d = tensor->value ? tensor->bound->rank - 1 : -1; d >= 0; d--) {
        if (tensor->bound->dims[d].factors[0] == factor) stride += step;
        step *= tensor->extent[d];
    }
    return stride;
}

bool tensor_is_half(const Tensor *tensor) {
    return tensor->value && tensor->value->type.dtype == DTYPE_BF16;
}

int operand_of(const LocalOp *local, int index) {
    for (int k = 0; k < local->operand_count; k++)
        if (local->operands[k].value && local->operands[k].bound->access == index) return k;
    return -1;
}

bool value_turns(const Module *module, const Op *op, const Value *value) {
    bool collects = op->def == module->builtin->collect && value == op->results[0];
    return collects ||
           (value->micro.kind == MICRO_ROWS && value_storage(value)->kind == VALUE_INPUT);
}

/* Sets the local extents of a tensor, and of its factors if this device has some of its elements.
 * `value`, `access` and `bound` must be set. A dimension of a C kernel's tensor may have no factor;
 * such a dimension is never cut (passes/factor_dims). Returns false after an error. */
static bool local_tensor(LocalOp *local, const RoleWriter *writer, Tensor *tensor) {
    const Value *value = tensor->value;
    const BoundAccess *bound = tensor->bound;
    const Access *access = tensor->access;
    if (!value) return true;
    if (!op_local(writer->module, local->op, value, local->device, tensor->extent)) {
        diag_error(writer->module->diag, local->op->at,
                   "\"%s\" would run on pieces that are several boxes; an operator that is not "
                   "elementwise needs one box a device",
                   local->op->def->name);
        diag_note(writer->module->diag, value->at,
                  "the pieces are those of this value; convert it with `reshard` before");
        return false;
    }
    if (!tensor_pitch(writer->module, local->op, (BoundTensor){access, bound, value}, local->device,
                      &tensor->pitch))
        BUG("%s cannot read or make %%%d where it lies", local->op->def->name, value->id);
    tensor->empty = !value_region(writer->module, value, local->device)->box_count;
    for (int d = 0; d < bound->rank && !tensor->empty; d++) {
        if (!bound->dims[d].count && local->rule->kind == RULE_CALL) continue;
        if (bound->dims[d].count != 1)
            BUG("%s: dimension %d of %s is not refined", local->op->def->name, d, access->name);
        int64_t *extent = &local->extent[bound->dims[d].factors[0]];
        if (*extent >= 0 && *extent != tensor->extent[d])
            BUG("%s: pieces of %s differ in factor %s: %lld and %lld", local->op->def->name,
                access->name,
                local->rule->factors[local->op->binding->factors[bound->dims[d].factors[0]].factor]
                    .name,
                (long long)*extent, (long long)tensor->extent[d]);
        *extent = tensor->extent[d];
    }
    return true;
}

/* Checks that a kernel can get a tensor's positions, which are at most two ranges a dimension. */
static bool check_places(const LocalOp *local, RoleWriter *writer, const Tensor *tensor) {
    Range ranges[2];
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++)
        for (int i = 0; i < writer->role->device_count &&
                        written_has_offset(local, tensor, tensor->bound->dims[d].written);
             i++)
            if (region_ranges(value_region(writer->module, tensor->value, writer->role->devices[i]),
                              d, ranges) > 2) {
                diag_error(writer->module->diag, local->op->at,
                           "\"%s\" would run on pieces of more than two ranges of a dimension, and "
                           "its kernel gets the positions of two; split the dimension once",
                           local->op->def->name);
                return false;
            }
    return true;
}

/* Sets an empty piece's extents: a factor is empty unless another tensor has elements along it. */
static void local_empty_tensor(LocalOp *local, Tensor *tensor) {
    for (int d = 0; tensor->empty && d < tensor->bound->rank; d++) {
        int64_t *extent =
            tensor->bound->dims[d].count ? &local->extent[tensor->bound->dims[d].factors[0]] : NULL;
        if (extent) *extent = *extent < 0 ? 0 : *extent;
        tensor->extent[d] = extent ? *extent : tensor->value->type.extent[d];
    }
}

static uint32_t bound_factors(const BoundAccess *bound) {
    uint32_t set = 0;
    for (int d = 0; d < bound->rank; d++)
        for (int f = 0; f < bound->dims[d].count; f++) set |= 1u << bound->dims[d].factors[f];
    return set;
}

static bool local_tensors(LocalOp *local, RoleWriter *writer) {
    const Op *op = local->op;
    Arena *arena = writer->emitter->arena;
    const Rule *rule = local->rule;
    bool ok = true;
    for (int k = 0; k < op->result_count; k++) {
        const BoundAccess *bound = &op->binding->results[k];
        const Access *access = &rule->results[bound->access];
        local->results[k] = (Tensor){.value = op->results[k],
                                     .access = access,
                                     .bound = bound,
                                     .name = tensor_name(arena, rule, access->name, -1)};
    }
    for (int k = 0, number = -1; k < op->operand_count; k++) {
        const BoundAccess *bound = &op->binding->operands[k];
        const Access *access = &rule->operands[bound->access];
        number = access->variadic ? number + 1 : -1;
        local->operands[k] = (Tensor){.value = op->operands[k],
                                      .access = access,
                                      .bound = bound,
                                      .name = tensor_name(arena, rule, access->name, number)};
    }
    for (int t = 0; t < local->tensor_count; t++)
        ok = local_tensor(local, writer, &local->tensors[t]) && ok;
    for (int t = 0; t < local->tensor_count; t++) {
        local_empty_tensor(local, &local->tensors[t]);
        ok = check_places(local, writer, &local->tensors[t]) && ok;
    }
    return ok;
}

uint64_t expr_operands(const LocalOp *local, const Expr *expr, bool *absent) {
    uint64_t set = 0;
    if (expr->kind == EXPR_ACCESS) {
        int k = operand_of(local, expr->index);
        *absent = *absent || k < 0;
        return k < 0 ? 0 : UINT64_C(1) << k;
    }
    for (int a = 0; a < expr->arg_count; a++) set |= expr_operands(local, expr->arg[a], absent);
    return set;
}

/* Returns an upper bound of the number of terms of `expr`. */
static int term_most(const Expr *expr) {
    if (expr->kind == EXPR_ADD || expr->kind == EXPR_SUB)
        return term_most(expr->arg[0]) + term_most(expr->arg[1]);
    return expr->kind == EXPR_NEG ? term_most(expr->arg[0]) : 1;
}

/* Returns whether an expression divides by an empty contracted factor: the mean of no elements. */
static bool is_mean_of_nothing(const LocalOp *local, const Expr *expr) {
    const Binding *binding = local->op->binding;
    for (int f = 0; f < binding->factor_count && expr->kind == EXPR_DIV; f++)
        if (local->contracted >> f & 1 && !binding->factors[f].extent &&
            expr_mentions(expr->arg[1], EXPR_SIZE, binding->factors[f].factor))
            return true;
    for (int a = 0; a < expr->arg_count; a++)
        if (is_mean_of_nothing(local, expr->arg[a])) return true;
    return false;
}

/* Collects the terms of `expr` that read no absent operand. */
static void collect_terms(LocalOp *local, const Expr *expr, bool minus) {
    if (expr->kind == EXPR_ADD || expr->kind == EXPR_SUB) {
        collect_terms(local, expr->arg[0], minus);
        collect_terms(local, expr->arg[1], minus != (expr->kind == EXPR_SUB));
        return;
    }
    if (expr->kind == EXPR_NEG) {
        collect_terms(local, expr->arg[0], !minus);
        return;
    }
    bool absent = false;
    uint64_t operands = expr_operands(local, expr, &absent);
    if (absent) return;
    Term *term = &local->terms[local->term_count++];
    *term = (Term){.expr = expr, .minus = minus};
    for (int k = 0; k < local->operand_count; k++)
        if (operands >> k & 1)
            term->contracted |= bound_factors(&local->op->binding->operands[k]) & local->contracted;
    if (is_mean_of_nothing(local, expr))
        *term = (Term){.expr = expr_number(local->module->arena, NAN, "NAN"), .minus = minus};
}

/* Returns the expression with the terms of a rule: its body, or the product before an epilogue. */
static const Expr *summed_body(const Rule *rule) {
    return rule->kind == RULE_BODY                          ? rule->body
           : rule->kind == RULE_EQUATIONS && rule->epilogue ? rule->equations.at[0].expr
                                                            : NULL;
}

bool local_op(LocalOp *local, RoleWriter *writer, const Op *op) {
    memset(local, 0, sizeof *local);
    local->module = writer->module;
    local->backend = writer->emitter->backend;
    local->op = op;
    local->device = writer->role->devices[0];
    local->rule = op->def->rule;
    local->result_count = op->result_count;
    local->operand_count = op->operand_count;
    local->tensor_count = op->result_count + op->operand_count;
    local->results = local->tensors;
    local->operands = local->tensors + op->result_count;
    local->factor_count = op->binding->factor_count;
    if (op->operand_count > IR_MAX_OPERANDS || op->result_count > IR_MAX_RESULTS ||
        local->factor_count > IR_MAX_FACTORS)
        BUG("%s: too many operands, results or factors", op->def->name);
    for (int f = 0; f < local->factor_count; f++) local->extent[f] = -1;
    if (!local_tensors(local, writer)) return false;
    uint32_t kept = 0;
    for (int k = 0; k < op->result_count; k++) kept |= bound_factors(&op->binding->results[k]);
    for (int f = 0; f < local->factor_count; f++) {
        local->extent[f] = local->extent[f] < 0 ? 1 : local->extent[f];
        local->contracted |= kept >> f & 1 ? 0 : 1u << f;
    }
    const Expr *body = summed_body(local->rule);
    if (body) {
        local->terms = arena_array(writer->emitter->arena, Term, term_most(body));
        collect_terms(local, body, false);
        flag_terms(local, writer);
    }
    return true;
}

/* Returns whether two devices have pieces of the same shape of a value. */
static bool same_local(Module *module, const Value *value, int device, int other) {
    int64_t own[IR_MAX_RANK], its[IR_MAX_RANK];
    bool has = value_region(module, value, device)->box_count,
         same = has == (value_region(module, value, other)->box_count > 0);
    if (!same || !has || !value_local(module, value, device, own) ||
        !value_local(module, value, other, its))
        return same && !has;
    return !memcmp(own, its, sizeof *own * (size_t)value->type.rank);
}

/* Returns whether the pieces of a product's tensors have the same shapes on all devices that
 * compute `sum`. Devices with the same sum must get the same bits, so either all compute it with
 * this product or none does. */
static bool runs_alike(const LocalOp *local, RoleWriter *writer, const Op *sum) {
    bool alike = true;
    for (int r = 0; r < writer->module->devices->roles->role_count && alike; r++) {
        const Role *role = &writer->module->devices->roles->at[r];
        for (int t = 0; role_runs(writer->module, role, sum) && t < local->tensor_count && alike;
             t++)
            alike = !local->tensors[t].value || same_local(writer->module, local->tensors[t].value,
                                                           local->device, role->devices[0]);
    }
    return alike;
}

void local_take_sum(LocalOp *local, RoleWriter *writer) {
    const Op *op = local->op, *sum = op->index ? local->module->ops.at[op->index - 1] : NULL;
    Product product;
    if (!sum || op_side_reduction(local->module, sum) != op || local_nothing(local) ||
        !product_of(local, &product) || product.bias >= 0 || !runs_alike(local, writer, sum))
        return;
    local->summed = summed_operand(sum, op);
    local->sums =
        (Tensor){.value = sum->results[0], .bound = &sum->binding->results[0], .name = "sums_"};
    if (op_local(writer->module, sum, local->sums.value, local->device, local->sums.extent))
        local->sum = sum;
}

bool local_nothing(const LocalOp *local) {
    for (int k = 0; k < local->result_count; k++)
        if (tensor_elements(&local->results[k])) return false;
    return true;
}

/* Returns whether a contracted factor belongs to one tensor of a variadic operand. If that tensor
 * is empty, the results need not be empty. */
static bool is_of_member(const LocalOp *local, int factor) {
    int rule_factor = local->op->binding->factors[factor].factor;
    if (!local->rule->factors[rule_factor].contracted) return false;
    for (int k = 0; k < local->rule->operand_count; k++)
        if (local->rule->operands[k].variadic && access_has(&local->rule->operands[k], rule_factor))
            return true;
    return false;
}

bool local_empty(const LocalOp *local) {
    for (int f = 0; f < local->factor_count; f++)
        if (!local->extent[f] && !is_of_member(local, f)) return true;
    return false;
}
