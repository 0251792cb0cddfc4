/* Infers types, ranks and extents of a call, and reports mismatches. rule/grammar.h defines rules;
 * ht_broadcast of include/hetu/ops.h broadcasts operands before a call is bound. */
#include "binding/binding.h"

#include <stddef.h>

#define REFUSE(call, list, count, ...)                                                             \
    ((call)->failed = true, (call)->host->refuse(call, list, count, __VA_ARGS__))

/* ---- element types ---- */

const char *dtype_word(ht_dtype dtype) {
    static const char *const words[] = {
        [HT_F32] = "f32", [HT_BF16] = "bf16", [HT_F64] = "f64", [HT_I32] = "i32", [HT_I64] = "i64"};
    return words[dtype];
}

ht_dtype dtype_sum(ht_dtype dtype) {
    return dtype == HT_BF16 ? HT_F32 : dtype == HT_I32 ? HT_I64 : dtype;
}

static bool is_integer(ht_dtype dtype) { return dtype == HT_I32 || dtype == HT_I64; }

/* Returns whether an operand is present and the rule leaves its type open. */
static bool is_open(const BindCall *call, int i) {
    return call->tensors[i].given && call->tensors[i].element.kind == ELEMENT_FOLLOWS;
}

/* Returns the operand that has the working type: the first floating-point one whose type the rule
 * leaves open, else the first that is present; -1: none. */
static int working_operand(const BindCall *call) {
    for (int i = 0; i < call->tensor_count; i++)
        if (is_open(call, i) && !is_integer(call->tensors[i].dtype)) return i;
    for (int i = 0; i < call->tensor_count; i++)
        if (call->tensors[i].given) return i;
    return -1;
}

ht_dtype bind_element(const BindCall *call, Element element) {
    int working = element.kind == ELEMENT_WIDE ? working_operand(call) : -1;
    switch (element.kind) {
    case ELEMENT_FIXED: return (ht_dtype)element.index;
    case ELEMENT_ARGUMENT: return call->host->argument(call, element.index);
    case ELEMENT_WIDE: return working < 0 ? HT_F32 : dtype_sum(call->tensors[working].dtype);
    default: break;
    }
    for (int i = 0; i < call->tensor_count; i++)
        if (call->tensors[i].given &&
            (element.kind == ELEMENT_FOLLOWS || call->tensors[i].operand == element.index))
            return call->tensors[i].dtype;
    return HT_F32;
}

/* Refuses an operand whose type is not the one that the rule gives. */
static void check_given(BindCall *call, int i) {
    const BindTensor *x = &call->tensors[i];
    if (!x->given || x->element.kind == ELEMENT_FOLLOWS) return;
    if (x->element.kind == ELEMENT_INTEGER) {
        if (!is_integer(x->dtype))
            REFUSE(call, &i, 1, "%s: the element type of %s is %s, but must be i32 or i64 here",
                   call->name, x->name, dtype_word(x->dtype));
        return;
    }
    ht_dtype wanted = bind_element(call, x->element);
    if (x->dtype != wanted)
        REFUSE(call, &i, 1,
               "%s: the element type of %s is %s, but must be %s here; convert it first with "
               "ht_cast",
               call->name, x->name, dtype_word(x->dtype), dtype_word(wanted));
}

/* Refuses an operand of a type that the kernel has no code for. */
static void check_kernel(BindCall *call, int i) {
    if (call->types && is_open(call, i) && !(call->types >> call->tensors[i].dtype & 1))
        REFUSE(call, &i, 1,
               "%s: the kernel does not work in %s, the element type of %s; convert it first with "
               "ht_cast",
               call->name, dtype_word(call->tensors[i].dtype), call->tensors[i].name);
}

/* Refuses operands of different types whose types the rule leaves open. */
static void check_alike(BindCall *call) {
    int first = -1;
    for (int i = 0; call->alike && i < call->tensor_count && !call->failed; i++) {
        const BindTensor *x = &call->tensors[i], *other = &call->tensors[first < 0 ? i : first];
        if (!is_open(call, i)) continue;
        first = first < 0 ? i : first;
        if (call->tensors[first].dtype != x->dtype)
            REFUSE(call, ((const int[]){first, i}), 2,
                   "%s: the element types of %s (%s) and %s (%s) differ; convert one of them first "
                   "with ht_cast",
                   call->name, other->name, dtype_word(other->dtype), x->name,
                   dtype_word(x->dtype));
    }
}

/* Refuses an expression that would need floating point for a result of integers. */
static void check_integral(BindCall *call) {
    Element result = call->results[0].element;
    int working = working_operand(call);
    if (call->integral || working < 0 || result.kind == ELEMENT_FIXED ||
        result.kind == ELEMENT_ARGUMENT || !is_integer(bind_element(call, result)))
        return;
    const BindTensor *x = &call->tensors[working];
    REFUSE(call, &working, 1,
           "%s: %s is of type %s, and would make the result integers, which hold no fractions; "
           "convert it first: ht_cast(%s, HT_F32)",
           call->name, x->name, dtype_word(x->dtype), x->name);
}

bool bind_types(BindCall *call) {
    for (int i = 0; i < call->tensor_count && !call->failed; i++) check_given(call, i);
    for (int i = 0; i < call->tensor_count && !call->failed; i++) check_kernel(call, i);
    if (!call->failed) check_alike(call);
    if (!call->failed) check_integral(call);
    return !call->failed;
}

/* ---- dimensions ---- */

static void note_used(BindCall *call, const BindTensor *tensor) {
    for (int d = 0; d < tensor->dim_count; d++)
        for (int k = 0; k < tensor->dims[d].count; k++)
            call->factors[tensor->dims[d].factors[k]].used = true;
}

/* Sets each factor's count: 1; N for `a..{N}`; -1 for other ellipses. Refuses a wrong N. */
static void start_counts(BindCall *call) {
    for (int f = 0; f < call->factor_count && !call->failed; f++) {
        BindFactor *factor = &call->factors[f];
        int64_t count = factor->ellipsis ? -1 : 1;
        if (factor->counted &&
            (!call->host->count(call, f, &count) || count < 0 || count > HT_MAX_RANK))
            REFUSE(call, NULL, 0,
                   "%s: the number of dimensions that '%s..' stands for is %lld, not one of 0 to "
                   "%d",
                   call->name, factor->name, (long long)count, HT_MAX_RANK);
        factor->count = (int)count;
    }
}

int bind_rank(const BindCall *call, const BindTensor *tensor, int *unknown) {
    int rank = 0;
    *unknown = -1;
    for (int d = 0; d < tensor->dim_count; d++) {
        int factor = tensor->dims[d].factors[0],
            count = tensor->dims[d].count > 1 ? 1 : call->factors[factor].count;
        if (count < 0) *unknown = *unknown == -1 ? factor : -2;
        else rank += count;
    }
    return rank;
}

/* Infers an ellipsis's count from operand i's rank; refuses a wrong rank. True: count is new. */
static bool learn_count(BindCall *call, int i) {
    const BindTensor *x = &call->tensors[i];
    int unknown, rank = bind_rank(call, x, &unknown);
    if (!x->given || call->failed) return false;
    if (x->rank < rank || (unknown == -1 && x->rank != rank)) {
        REFUSE(call, &i, 1, "%s: %s has %d dimension%s, but the rule's %s needs %s%d", call->name,
               x->name, x->rank, x->rank == 1 ? "" : "s", call->host->access_text(call, i),
               unknown == -1 ? "" : "at least ", rank);
        return false;
    }
    if (unknown < 0) return false;
    call->factors[unknown].count = x->rank - rank;
    return true;
}

bool bind_counts(BindCall *call) {
    for (int i = 0; i < call->tensor_count; i++)
        if (call->tensors[i].given) note_used(call, &call->tensors[i]);
    for (int i = 0; i < call->result_count; i++) note_used(call, &call->results[i]);
    start_counts(call);
    for (bool learnt = true; learnt && !call->failed;) {
        learnt = false;
        for (int i = 0; i < call->tensor_count; i++) learnt |= learn_count(call, i);
    }
    for (int f = 0; f < call->factor_count && !call->failed; f++) {
        BindFactor *factor = &call->factors[f];
        if (factor->count < 0 && factor->used)
            REFUSE(call, NULL, 0,
                   "%s: the operands do not tell how many dimensions '%s..' stands for", call->name,
                   factor->name);
        if (factor->count < 0) factor->count = 0;
        factor->base = call->bound_count;
        if (factor->used) call->bound_count += factor->count * (factor->each ? call->members : 1);
    }
    return !call->failed;
}

/* ---- extents ---- */

int bind_bound(const BindCall *call, int factor, int member, int k) {
    const BindFactor *own = &call->factors[factor];
    return own->base + (own->each ? member * own->count : 0) + k;
}

int bind_factor(const BindCall *call, int bound) {
    int factor = 0;
    for (int f = 0; f < call->factor_count; f++)
        if (call->factors[f].used && call->factors[f].count && call->factors[f].base <= bound)
            factor = f;
    return factor;
}

/* Sets call->size from the extents of the bound factors; -1: unknown or unused. */
static void bind_sizes(BindCall *call) {
    int64_t *size = call->size;
    for (int f = 0; f < call->factor_count; f++) {
        int members = call->factors[f].each ? call->members : 1;
        size[f] = call->factors[f].used ? 0 : -1;
        for (int m = 0; m < members && size[f] >= 0; m++) {
            int64_t product = 1;
            for (int k = 0; k < call->factors[f].count && product >= 0; k++) {
                int64_t extent = call->extent[bind_bound(call, f, m, k)];
                product = extent < 0 ? -1 : product * extent;
            }
            size[f] = product < 0 ? -1 : size[f] + product;
        }
    }
}

/* Sets the extent and the source of a bound factor. Returns true. */
static bool know(BindCall *call, int bound, int64_t extent, int i, int dim) {
    call->extent[bound] = extent;
    call->source[bound] = (BindSource){i, dim};
    return true;
}

/* Reports that dimension `dim` of operand i has `extent`, not its bound factor's known extent. */
static void refuse_extent(BindCall *call, int bound, int i, int dim, int64_t extent) {
    BindSource source = call->source[bound];
    const char *name = call->tensors[i].name,
               *factor = call->factors[bind_factor(call, bound)].name;
    if (source.tensor < 0)
        REFUSE(call, &i, 1, "%s: dimension %d of %s has extent %lld, but factor %s has %lld",
               call->name, dim, name, (long long)extent, factor, (long long)call->extent[bound]);
    else
        REFUSE(call, ((const int[]){source.tensor, i}), source.tensor == i ? 1 : 2,
               "%s: dimension %d of %s has extent %lld, but dimension %d of %s has %lld; they must "
               "be equal (factor %s)",
               call->name, dim, name, (long long)extent, source.dim,
               call->tensors[source.tensor].name, (long long)call->extent[bound], factor);
}

/* Reports that dimension `dim` of operand i is not (or with `divides`, is no multiple of) `known`,
 * the product of those of its merged factors that are known. */
static void refuse_merged(BindCall *call, int i, int dim, const RuleDim *merged, int64_t known,
                          bool divides) {
    const BindTensor *x = &call->tensors[i];
    int from[HT_MAX_RANK + 1] = {i}, count = 1;
    for (int k = 0; k < merged->count && count <= HT_MAX_RANK; k++) {
        int source = call->source[bind_bound(call, merged->factors[k], x->member, 0)].tensor;
        if (source >= 0 && source != i) from[count++] = source;
    }
    REFUSE(call, from, count,
           "%s: dimension %d of %s has extent %lld, which is not %s%lld, what its merged factors "
           "in %s give",
           call->name, dim, x->name, (long long)x->extent[dim], divides ? "a multiple of " : "",
           (long long)known, call->host->access_text(call, i));
}

/* Infers the one unknown factor of a merged dimension: 4 for extent 12 with a known factor of 3.
 * Refuses an extent that the known factors do not give. Returns whether an extent is new. */
static bool learn_merged(BindCall *call, int i, int dim, const RuleDim *merged) {
    int unknown = -1;
    int64_t known = 1, extent = call->tensors[i].extent[dim];
    for (int k = 0; k < merged->count; k++) {
        int bound = bind_bound(call, merged->factors[k], call->tensors[i].member, 0);
        if (call->extent[bound] < 0 && unknown >= 0) return false;
        if (call->extent[bound] < 0) unknown = bound;
        else known *= call->extent[bound];
    }
    if (unknown >= 0 ? known == 0 || extent % known != 0 : extent != known) {
        refuse_merged(call, i, dim, merged, known, unknown >= 0);
        return false;
    }
    return unknown >= 0 && know(call, unknown, extent / known, i, dim);
}

/* Infers extents from operand i's merged or (merged = false) other dimensions. True: one is new. */
static bool learn_operand(BindCall *call, int i, bool merged) {
    const BindTensor *x = &call->tensors[i];
    bool learnt = false;
    for (int d = 0, dim = 0; x->given && d < x->dim_count; d++) {
        const RuleDim *own = &x->dims[d];
        int repeats = own->count > 1 ? 1 : call->factors[own->factors[0]].count;
        for (int k = 0; k < repeats && !call->failed; k++, dim++) {
            int bound = bind_bound(call, own->factors[0], x->member, k);
            if (merged != (own->count > 1)) continue;
            if (merged) learnt |= learn_merged(call, i, dim, own);
            else if (call->extent[bound] < 0) learnt |= know(call, bound, x->extent[dim], i, dim);
            else if (call->extent[bound] != x->extent[dim])
                refuse_extent(call, bound, i, dim, x->extent[dim]);
        }
    }
    return learnt;
}

/* Infers the extent of a factor from its clause `size`. Returns whether the extent is new. */
static bool learn_size(BindCall *call, int f) {
    const BindFactor *factor = &call->factors[f];
    int64_t value;
    if (!factor->sized || !factor->used || call->failed || call->extent[factor->base] >= 0)
        return false;
    bind_sizes(call);
    if (!call->host->size(call, f, &value)) return false;
    if (value >= 0) return know(call, factor->base, value, -1, -1);
    REFUSE(call, NULL, 0, "%s: the extent of factor %s is %lld", call->name, factor->name,
           (long long)value);
    return false;
}

bool bind_extents(BindCall *call) {
    for (int b = 0; b < call->bound_count; b++) know(call, b, -1, -1, -1);
    for (bool learnt = true; learnt && !call->failed;) {
        learnt = false;
        for (int i = 0; i < call->tensor_count; i++) learnt |= learn_operand(call, i, false);
        for (int f = 0; f < call->factor_count; f++) learnt |= learn_size(call, f);
        for (int i = 0; i < call->tensor_count; i++) learnt |= learn_operand(call, i, true);
    }
    for (int b = 0; b < call->bound_count && !call->failed; b++)
        if (call->extent[b] < 0)
            REFUSE(call, NULL, 0, "%s: the operands do not tell the extent of factor %s",
                   call->name, call->factors[bind_factor(call, b)].name);
    if (call->failed) return false;
    bind_sizes(call);
    const char *violated = call->host->violated(call);
    if (violated)
        REFUSE(call, NULL, 0, "%s: the call does not keep to %s, which its rule requires",
               call->name, violated);
    return !call->failed;
}

bool bind_shape(const int64_t *asked, int rank, int64_t elements, int64_t *extent) {
    int64_t known = 1;
    int open = -1;
    for (int d = 0; d < rank; d++) {
        extent[d] = asked[d];
        if (asked[d] == -1 && open < 0) open = d;
        else if (asked[d] < 0 || __builtin_mul_overflow(known, asked[d], &known)) return false;
    }
    if (open < 0) return known == elements;
    if (known == 0 || elements % known != 0) return false;
    extent[open] = elements / known;
    return true;
}
