/* Binds a call of an operator to its rule by compiler/binding, as hetucc does at compile time.
 *
 * Example: under the rule y[b.., o] = x[b.., i] * w[i, o], operands x (2, 3, 4) and w (4, 5) give
 * 2 dimensions for b, the extents b = (2, 3), i = 4, o = 5, and the result y (2, 3, 5). */
#include "base/c_locale.h"
#include "eager/operator.h"

#include <stdarg.h>

static bool host_count(const BindCall *bind, int factor, int64_t *value) {
    const Call *call = bind->context;
    *value = (int64_t)call->op->factors[factor].count(call->attr, NULL);
    return true;
}

static bool host_size(const BindCall *bind, int factor, int64_t *value) {
    const Call *call = bind->context;
    const OperatorFactor *own = &call->op->factors[factor];
    for (int g = 0; g < bind->factor_count; g++)
        if (own->size_of >> g & 1 && bind->size[g] < 0) return false;
    Wide size = own->size(call->attr, bind->size);
    *value = size > INT64_MAX ? -1 : (int64_t)size;
    return true;
}

static const char *host_violated(const BindCall *bind) {
    const Call *call = bind->context;
    for (int r = 0; r < call->op->requirement_count; r++)
        if (!call->op->requirements[r].holds(call->attr, bind->size))
            return call->op->requirements[r].text;
    return NULL;
}

static const char *host_access_text(const BindCall *bind, int tensor) {
    return ((const Call *)bind->context)->access[tensor]->text;
}

static ht_dtype host_argument(const BindCall *bind, int index) {
    return (ht_dtype)((const Call *)bind->context)->attr[index].i;
}

static void host_refuse(const BindCall *bind, const int *tensors, int count, const char *format,
                        ...) {
    (void)bind, (void)tensors, (void)count;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    plain_vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    ht_fail("%s", text);
}

static BindTensor tensor_of(const OperatorAccess *access, int operand, const ht_node *node) {
    BindTensor tensor = {.name = access->name,
                         .element = access->element,
                         .operand = operand,
                         .dim_count = access->dim_count,
                         .dims = access->dims};
    if (!node) return tensor;
    tensor.given = true;
    tensor.dtype = node->dtype;
    tensor.rank = node->dims.rank;
    tensor.extent = node->dims.extent;
    return tensor;
}

/* Returns the tensors and factors of a call in the form that compiler/binding takes. */
static BindCall describe(Call *call) {
    static const BindHost host = {host_count,       host_size,     host_violated,
                                  host_access_text, host_argument, host_refuse};
    const Operator *op = call->op;
    BindCall bind = {.host = &host,
                     .context = call,
                     .name = op->name,
                     .tensor_count = call->count,
                     .result_count = op->result_count,
                     .factor_count = op->factor_count,
                     .members = call->count - op->operand_count + 1,
                     .types = op->values.types,
                     .alike = op->values.alike,
                     .integral = op->values.integral,
                     .size = call->size};
    bind.tensors = eager_alloc((size_t)bind.tensor_count * sizeof *bind.tensors);
    bind.results = eager_alloc((size_t)bind.result_count * sizeof *bind.results);
    bind.factors = eager_alloc((size_t)bind.factor_count * sizeof *bind.factors);
    for (int i = 0, member = 0; i < call->count; i++) {
        member = i && call->access[i] == call->access[i - 1] ? member + 1 : 0;
        bind.tensors[i] =
            tensor_of(call->access[i], (int)(call->access[i] - op->operands), call->operand[i]);
        bind.tensors[i].member = member;
    }
    for (int k = 0; k < op->result_count; k++)
        bind.results[k] = tensor_of(&op->results[k], -1, NULL);
    for (int f = 0; f < op->factor_count; f++)
        bind.factors[f] = (BindFactor){.name = op->factors[f].name,
                                       .ellipsis = op->factors[f].ellipsis,
                                       .counted = op->factors[f].count,
                                       .sized = op->factors[f].size,
                                       .each = op->factors[f].each};
    return bind;
}

static void add_extent(ht_dims *dims, int64_t extent) {
    if (dims->rank++ < HT_MAX_RANK) dims->extent[dims->rank - 1] = extent;
}

static ht_dims result_dims(const BindCall *bind, const BindTensor *result) {
    ht_dims dims = {0};
    for (int d = 0; d < result->dim_count; d++) {
        const RuleDim *dim = &result->dims[d];
        const BindFactor *first = &bind->factors[dim->factors[0]];
        int64_t merged = 1;
        for (int k = 0; k < dim->count; k++) merged *= bind->size[dim->factors[k]];
        for (int e = 0; dim->count == 1 && e < first->count; e++)
            add_extent(&dims, bind->extent[first->base + e]);
        if (dim->count > 1) add_extent(&dims, merged);
    }
    if (dims.rank > HT_MAX_RANK)
        ht_fail("%s: the result %s has %d dimensions; at most %d are allowed", bind->name,
                result->name, dims.rank, HT_MAX_RANK);
    return dims;
}

static ht_dims view_dims(const Call *call) {
    const ht_node *x = call->operand[0];
    ht_dims dims = call->attr[call->op->shape].dims, to = dims;
    eager_check_rank(dims.rank);
    if (!bind_shape(dims.extent, dims.rank, x->count, to.extent))
        ht_fail("%s: %s has %ld elements, which the shape %s cannot hold", call->op->name,
                eager_shape_text(x->dims), (long)x->count, eager_shape_text(dims));
    return to;
}

void call_bind(Call *call, ht_dtype *types, ht_dims *shapes) {
    const Operator *op = call->op;
    BindCall bind = describe(call);
    bind_types(&bind);
    for (int k = 0; k < op->result_count; k++)
        if ((unsigned)(types[k] = bind_element(&bind, op->results[k].element)) > HT_I64)
            ht_fail("%d is no ht_dtype", (int)types[k]);
    if (op->kind == OPERATOR_VIEW) {
        shapes[0] = view_dims(call);
        return;
    }
    bind_counts(&bind);
    bind.extent = eager_alloc((size_t)bind.bound_count * sizeof *bind.extent);
    bind.source = eager_alloc((size_t)bind.bound_count * sizeof *bind.source);
    bind_extents(&bind);
    for (int k = 0; k < op->result_count; k++) shapes[k] = result_dims(&bind, &bind.results[k]);
    for (int f = 0; f < op->factor_count; f++) call->size[f] = bind.size[f] < 0 ? 1 : bind.size[f];
}
