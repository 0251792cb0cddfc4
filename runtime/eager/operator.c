/* Computes operators of plain C models on one device, in the working type (tensors of other types
 * are converted), and their gradients. */
#include "eager/operator.h"

#include "cpu/cpu.h"

#include <hetu/rt.h>

#include <string.h>

/* ---- conversion to the working type ---- */

/* Returns the working type of a tensor: i64 for integers, else `real` (f32 or f64). */
static ht_dtype working_type(const ht_node *node, ht_dtype real) {
    return eager_is_integer(node) ? HT_I64 : real;
}

/* Returns memory for a node's elements in the working type: the node's own, or a new buffer. */
static void *target_of(ht_node *node, ht_dtype real) {
    ht_dtype working = working_type(node, real);
    return working == node->dtype ? eager_data(node)
                                  : eager_alloc((size_t)node->count * ht_dtype_bytes(working));
}

#define CONVERT(TO, FROM, VALUE)                                                                   \
    for (int64_t i = 0; i < count; i++) ((TO *)to)[i] = (TO)VALUE(((const FROM *)from)[i])

/* widen converts elements of `dtype` to the working type (i64, or `real`); narrow converts back. */
static void widen(void *to, const void *from, int64_t count, ht_dtype dtype, ht_dtype real) {
    if (dtype == HT_I32) CONVERT(int64_t, int32_t, );
    else if (dtype == HT_BF16 && real == HT_F32) CONVERT(float, uint16_t, ht_bf16_load);
    else if (dtype == HT_BF16) CONVERT(double, uint16_t, ht_bf16_load);
    else CONVERT(double, float, );
}

static void narrow(void *to, const void *from, int64_t count, ht_dtype dtype, ht_dtype real) {
    if (dtype == HT_I32) CONVERT(int32_t, int64_t, );
    else if (dtype == HT_BF16 && real == HT_F32) CONVERT(uint16_t, float, ht_bf16_store);
    else if (dtype == HT_BF16) CONVERT(uint16_t, double, ht_bf16_store);
    else CONVERT(float, double, );
}

/* Returns an operand's elements in the working type, converted if needed; NULL: it is absent. */
static const void *elements_of(ht_node *node, ht_dtype real) {
    if (!node || working_type(node, real) == node->dtype) return node ? eager_data(node) : NULL;
    void *to = target_of(node, real);
    widen(to, eager_data(node), node->count, node->dtype, real);
    return to;
}

void operator_round_float(float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) values[i] = ht_bf16_load(ht_bf16_store(values[i]));
}

void operator_round_double(double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) values[i] = ht_bf16_load(ht_bf16_store((float)values[i]));
}

void operator_product(float *y, const float *x, const float *w, const float *bias, int rank,
                      const ht_axis *axes) {
    ht_product(&(ht_product_call){.y = y,
                                  .y_dtype = HT_F32,
                                  .x = x,
                                  .w = w,
                                  .dtype = HT_F32,
                                  .bias = bias,
                                  .bias_dtype = HT_F32,
                                  .scale = 1,
                                  .rank = rank,
                                  .axes = axes});
}

/* ---- loops ---- */

/* Returns the loops for the tensors' kinds, integer or not (absent ones match both), or NULL. */
static const OperatorVariant *find_variant(const OperatorVariants *variants,
                                           ht_node *const *tensors, int count) {
    uint32_t integers = 0, present = 0;
    for (int i = 0; i < count; i++) {
        present |= (uint32_t)(tensors[i] != NULL) << i;
        integers |= (uint32_t)(tensors[i] && eager_is_integer(tensors[i])) << i;
    }
    for (int v = 0; v < variants->count; v++)
        if (((variants->at[v].integers ^ integers) & present) == 0) return &variants->at[v];
    return NULL;
}

/* Returns the floating-point working type of a call: f32, or f64 if a tensor is f64. All-integer
 * calls also get f64, since f32 cannot represent every integer constant. */
static ht_dtype real_of(ht_node *const *tensors, int count) {
    bool floating = false;
    for (int i = 0; i < count; i++) {
        if (tensors[i] && tensors[i]->dtype == HT_F64) return HT_F64;
        floating |= tensors[i] && !eager_is_integer(tensors[i]);
    }
    return floating ? HT_F32 : HT_F64;
}

/* Runs the loops of a call: converts operands to the working type, computes, and converts the
 * results back. `tensors` has the operands, then the results. */
static void run_loops(const Call *call, const OperatorVariants *variants, ht_node *const *tensors,
                      int operand_count, int result_count) {
    const OperatorVariant *variant = find_variant(variants, tensors, operand_count + result_count);
    ht_node *const *results = tensors + operand_count;
    const void **from = eager_alloc((size_t)(operand_count + 1) * sizeof *from);
    void *to[EAGER_RESULTS];
    bool half[EAGER_RESULTS];
    ht_dtype real = real_of(tensors, operand_count + result_count);
    for (int i = 0; i < operand_count; i++) from[i] = elements_of(tensors[i], real);
    for (int i = 0; i < result_count; i++) {
        to[i] = target_of(results[i], real);
        half[i] = results[i]->dtype == HT_BF16;
    }
    (real == HT_F64 ? variant->f64
                    : variant->f32)(&(OperatorData){call->size, call->attr, to, from, half});
    for (int i = 0; i < result_count; i++)
        if (to[i] != results[i]->data)
            narrow(results[i]->data, to[i], results[i]->count, results[i]->dtype, real);
}

/* Returns a new array of the operands, followed by the results. */
static ht_node **row_of(ht_node *const *operands, int operand_count, ht_node *const *results,
                        int result_count) {
    ht_node **row = eager_alloc((size_t)(operand_count + result_count) * sizeof *row);
    memcpy(row, operands, (size_t)operand_count * sizeof *row);
    memcpy(row + operand_count, results, (size_t)result_count * sizeof *row);
    return row;
}

/* ---- results that need no computing ---- */

/* Returns the bit of call operand i in bit masks of the rule's operands. */
static uint32_t bit_of(const Call *call, int i) {
    return UINT32_C(1) << (call->access[i] - call->op->operands);
}

/* Counts the present operands in bit mask `set` whose flag node->zero equals `zero`. */
static int count_operands(const Call *call, uint32_t set, bool zero) {
    int count = 0;
    for (int i = 0; i < call->count; i++)
        count += call->operand[i] && set & bit_of(call, i) && call->operand[i]->zero == zero;
    return count;
}

/* Returns whether results are sure to be zero: all operands of a linear group are zero. */
static bool vanishes(const Call *call) {
    for (int g = 0; g < call->op->group_count; g++) {
        uint32_t set = call->op->groups[g];
        if (count_operands(call, set, true) && !count_operands(call, set, false)) return true;
    }
    return false;
}

/* Returns the operand that equals the result since all others are zero, x in x + 0; NULL: none. */
static ht_node *passed(const Call *call, ht_dtype dtype, ht_dims dims) {
    for (int i = 0; i < call->count; i++) {
        ht_node *node = call->operand[i];
        uint32_t self = bit_of(call, i);
        if (node && call->op->passes & self && !count_operands(call, ~self, false) &&
            node->dtype == dtype && eager_same_shape(node->dims, dims))
            return node;
    }
    return NULL;
}

/* Returns a node that shares the elements of x but has shape `dims`. */
static ht_node *alias(ht_node *x, ht_dims dims) {
    return eager_node_like((ht_node){.dtype = x->dtype,
                                     .dims = dims,
                                     .count = x->count,
                                     .data = eager_dry() ? NULL : eager_data(x)});
}

/* ---- calls ---- */

/* Sets the operands of a call, variadic ones member by member. Ends the program if a required
 * operand is absent or a variadic one has no members. */
static void take_operands(Call *call, const ht_tensors *operands) {
    const Operator *op = call->op;
    eager_run.op = op->name;
    for (int k = 0; k < op->operand_count; k++) call->count += operands[k].count;
    call->operand = eager_alloc((size_t)call->count * sizeof *call->operand);
    call->access = eager_alloc((size_t)call->count * sizeof *call->access);
    for (int k = 0, next = 0; k < op->operand_count; k++) {
        const OperatorAccess *access = &op->operands[k];
        if (operands[k].count < 1)
            ht_fail("%s: %s[] needs at least one tensor", op->name, access->name);
        for (int m = 0; m < operands[k].count; m++, next++) {
            ht_tensor x = operands[k].at[m];
            if (!x.node && !access->optional)
                ht_fail("%s: the tensor '%s' is absent, and may not be: the rule is %s", op->name,
                        access->name, access->text);
            call->operand[next] = x.node ? eager_operand(op->name, x) : NULL;
            call->access[next] = access;
        }
    }
}

/* Returns whether operands that must have equal types are a mix of bf16 and f32. */
static bool mixes_floats(const Operator *op, const ht_tensors *operands) {
    unsigned types = 0;
    for (int k = 0; k < op->operand_count; k++)
        for (int m = 0; m < operands[k].count && op->operands[k].element.kind == ELEMENT_FOLLOWS;
             m++)
            if (operands[k].at[m].node) types |= 1u << operands[k].at[m].node->dtype;
    return op->values.alike && types == (1u << HT_F32 | 1u << HT_BF16);
}

/* Returns the operands, bf16 cast to f32 if both occur, as in compiler/frontend/eval/op.c. */
static const ht_tensors *promoted(const Operator *op, const ht_tensors *operands) {
    if (!mixes_floats(op, operands)) return operands;
    ht_tensors *wide = eager_alloc((size_t)op->operand_count * sizeof *wide);
    for (int k = 0; k < op->operand_count; k++) {
        wide[k] = operands[k];
        if (op->operands[k].element.kind != ELEMENT_FOLLOWS) continue;
        ht_tensor *tensors = eager_alloc((size_t)operands[k].count * sizeof *tensors);
        for (int m = 0; m < operands[k].count; m++) {
            ht_tensor x = operands[k].at[m];
            tensors[m] = x.node && x.node->dtype == HT_BF16 ? ht_cast(x, HT_F32) : x;
        }
        wide[k].at = tensors;
    }
    return wide;
}

/* Fills the results with the reduction's identity (0, or the lowest value for a maximum) if a
 * factor that is not `each` has extent 0. Returns whether it did so; then no kernel may run. */
static bool fill_empty(const Call *call, ht_node *const *results) {
    bool empty = false, maximum = false;
    for (int f = 0; f < call->op->factor_count; f++)
        if (call->size[f] == 0) {
            empty |= !call->op->factors[f].each;
            maximum |= call->op->factors[f].maximum;
        }
    for (int k = 0; empty && k < call->op->result_count; k++)
        ht_fill_identity(results[k]->data, results[k]->dtype, results[k]->count, maximum);
    return empty;
}

static void compute(const Call *call, ht_node *const *results) {
    const Operator *op = call->op;
    if (op->kind == OPERATOR_LOOPS)
        run_loops(call, &op->loops, row_of(call->operand, call->count, results, op->result_count),
                  call->count, op->result_count);
    else if (!fill_empty(call, results))
        eager_run_kernel(op->kernel, (NodeList){results, op->result_count},
                         (NodeList){call->operand, call->count}, call->attr);
}

/* Creates the results of a call and computes them, except in a dry evaluation (shapes alone).
 * Results that are zero, a view, or equal to an operand need no computing. */
static void make_results(const Call *call, const ht_dtype *types, const ht_dims *shapes,
                         ht_node **results) {
    const Operator *op = call->op;
    const OperatorVariant *variant;
    bool zero = vanishes(call);
    ht_node *whole = op->kind == OPERATOR_LOOPS  ? passed(call, types[0], shapes[0])
                     : op->kind == OPERATOR_VIEW ? call->operand[0]
                                                 : NULL;
    for (int k = 0; k < op->result_count; k++)
        results[k] =
            zero    ? eager_zeros(&(ht_node){
                          .dtype = types[k], .dims = shapes[k], .count = eager_elements(shapes[k])})
            : whole ? alias(whole, shapes[k])
                    : eager_node(types[k], shapes[k]);
    variant =
        find_variant(&op->loops, row_of(call->operand, call->count, results, op->result_count),
                     call->count + op->result_count);
    if (variant && variant->refusal) ht_fail("%s: %s", op->name, variant->refusal);
    if (!zero && !whole && !eager_dry()) compute(call, results);
}

void operator_call(const Operator *op, const ht_tensors *operands, const ht_attr *attr,
                   ht_tensor *results) {
    Call call = {.op = op, .attr = attr};
    ht_dtype types[EAGER_RESULTS];
    ht_dims shapes[EAGER_RESULTS];
    ht_node *result[EAGER_RESULTS];
    if (op->kind == OPERATOR_UPDATE)
        ht_fail("%s is for optimizers; a model does not call it", op->name);
    take_operands(&call, promoted(op, operands));
    call_bind(&call, types, shapes);
    make_results(&call, types, shapes, result);
    eager_trace_operator(op, op->result_count, result, call.count, call.operand);
    for (int a = 0; a < op->attr_count; a++) eager_trace_argument(&attr[a]);
    for (int k = 0; k < op->result_count; k++) results[k] = eager_tensor(result[k]);
    Entry entry = {.op = op,
                   .gradient = op->backward.function,
                   .attr = attr,
                   .attr_count = op->attr_count,
                   .result = result,
                   .result_count = op->result_count,
                   .operand = call.operand,
                   .operand_count = call.count,
                   .size = call.size,
                   .size_count = op->factor_count};
    eager_look(op->name, &entry);
    entry.note = eager_run.looked;
    if (op->backward.exists) eager_record(&entry);
}

/* ---- gradients ---- */

/* Returns the gradient of operand k by the operator's rule: dy reshaped for a view, dy itself, or
 * the result of the gradient loops. NULL: no gradient. */
static ht_node *gradient_of(const Entry *entry, int k) {
    const Operator *op = entry->op;
    ht_node *x = entry->operand[k], *dy = eager_gradient_of(entry->result[0]), *dx;
    if (op->kind == OPERATOR_VIEW) return alias(dy, x->dims);
    const OperatorGradient *gradient = &op->backward.gradients[k];
    if (gradient->same && eager_same_shape(x->dims, dy->dims)) return dy;
    if (!gradient->loops.count) return NULL;
    dx = eager_node(x->dtype, x->dims);
    ht_node *results[] = {dy, dx};
    Call call = {.op = op, .attr = entry->attr};
    memcpy(call.size, entry->size, (size_t)entry->size_count * sizeof *entry->size);
    run_loops(&call, &gradient->loops, row_of(entry->operand, entry->operand_count, results, 2),
              entry->operand_count + 1, 1);
    return dx;
}

void operator_backward(const Entry *entry) {
    if (entry->op->kind != OPERATOR_VIEW && !entry->op->backward.gradients)
        ht_fail("the gradient of %s is needed, but the operator has none: say grad(g), the C "
                "function that builds it, or grad(none) if no "
                "gradient flows",
                entry->op->name);
    for (int k = 0; k < entry->operand_count; k++)
        if (entry->operand[k] && entry->operand[k]->needs_gradient)
            eager_add_gradient(entry->operand[k], gradient_of(entry, k));
}
