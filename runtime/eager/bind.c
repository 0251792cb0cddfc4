/* Binds a call of an operator to its rule: checks element types, learns how many dimensions each
 * ellipsis stands for, learns extents, and checks requirements. The messages are those of hetucc
 * (compiler/ir/bind), which makes the same checks at compile time.
 *
 * Example: under the rule y[b.., o] = x[b.., i] * w[i, o], operands x (2, 3, 4) and w (4, 5) give
 * 2 dimensions for b, the extents b = (2, 3), i = 4, o = 5, and the result y (2, 3, 5).
 */
#include "eager/operator.h"

#include <string.h>

/* ---- element types ---- */

static const char *type_name(ht_dtype dtype) {
    static const char *const names[] = {
        [HT_F32] = "f32", [HT_BF16] = "bf16", [HT_F64] = "f64", [HT_I32] = "i32", [HT_I64] = "i64"};
    return names[dtype];
}

/* Returns whether operand i is present and its rule accepts any element type. */
static bool is_open(const Call *call, int i) {
    return call->operand[i] && call->access[i]->element == ELEMENT_FOLLOWS;
}

/* Returns the operand whose element type the call computes in: the first floating-point operand of
 * open type, else the first present operand. Returns NULL if all are absent; *name is its name. */
static const ht_node *working_operand(const Call *call, const char **name) {
    int found = -1;
    for (int i = call->count; i-- > 0;)
        if (call->operand[i]) found = i;
    for (int i = call->count; i-- > 0;)
        if (is_open(call, i) && !eager_is_integer(call->operand[i])) found = i;
    *name = found < 0 ? "" : call->access[found]->name;
    return found < 0 ? NULL : call->operand[found];
}

static ht_dtype wide_type(const Call *call) {
    const char *name;
    const ht_node *working = working_operand(call, &name);
    ht_dtype dtype = working ? working->dtype : HT_F32;
    return dtype == HT_BF16 ? HT_F32 : dtype == HT_I32 ? HT_I64 : dtype;
}

static ht_dtype element_type(const Call *call, const OperatorAccess *access) {
    switch (access->element) {
    case ELEMENT_FIXED: return (ht_dtype)access->of;
    case ELEMENT_ARGUMENT: return (ht_dtype)call->attr[access->of].i;
    case ELEMENT_WIDE: return wide_type(call);
    default: break;
    }
    for (int i = 0; i < call->count; i++)
        if (call->operand[i] && (access->element == ELEMENT_FOLLOWS ||
                                 call->access[i] == &call->op->operands[access->of]))
            return call->operand[i]->dtype;
    return HT_F32;
}

static void check_given(const Call *call) {
    for (int i = 0; i < call->count; i++) {
        const OperatorAccess *access = call->access[i];
        const ht_node *node = call->operand[i];
        if (!node || access->element == ELEMENT_FOLLOWS) continue;
        if (access->element == ELEMENT_INTEGER && !eager_is_integer(node))
            ht_fail("%s: the element type of %s is %s, but must be i32 or i64 here", call->op->name,
                    access->name, type_name(node->dtype));
        if (access->element != ELEMENT_INTEGER && node->dtype != element_type(call, access))
            ht_fail("%s: the element type of %s is %s, but must be %s here; convert it first with "
                    "ht_cast",
                    call->op->name, access->name, type_name(node->dtype),
                    type_name(element_type(call, access)));
    }
}

static void check_open(const Call *call) {
    const Operator *op = call->op;
    int first = -1;
    for (int i = 0; i < call->count && op->values.types; i++)
        if (is_open(call, i) && !(op->values.types >> call->operand[i]->dtype & 1))
            ht_fail("%s: the kernel does not work in %s, the element type of %s; convert it first "
                    "with ht_cast",
                    op->name, type_name(call->operand[i]->dtype), call->access[i]->name);
    for (int i = 0; i < call->count && op->values.alike; i++) {
        first = first < 0 && is_open(call, i) ? i : first;
        if (is_open(call, i) && call->operand[first]->dtype != call->operand[i]->dtype)
            ht_fail("%s: the element types of %s (%s) and %s (%s) differ; convert one of them "
                    "first with ht_cast",
                    op->name, call->access[first]->name, type_name(call->operand[first]->dtype),
                    call->access[i]->name, type_name(call->operand[i]->dtype));
    }
}

/* Ends the program if integer operands would make the result integer, unless the rule allows
 * integer results (`integral`). */
static void check_integral(const Call *call) {
    const OperatorAccess *result = &call->op->results[0];
    const char *name;
    const ht_node *working = working_operand(call, &name);
    ht_dtype dtype = element_type(call, result);
    if (call->op->values.integral || !working || result->element == ELEMENT_FIXED ||
        result->element == ELEMENT_ARGUMENT || (dtype != HT_I32 && dtype != HT_I64))
        return;
    ht_fail("%s: %s is of type %s, and would make the result integers, which hold no fractions; "
            "convert it first: ht_cast(%s, HT_F32)",
            call->op->name, name, type_name(working->dtype), name);
}

/* ---- dimensions ---- */

/* Dimensions and extents of the rule's factors, as far as they are known. */
typedef struct Factors {
    int count[OPERATOR_FACTORS]; // number of dimensions; -1: not known
    bool known[OPERATOR_FACTORS];
    int64_t extent[OPERATOR_FACTORS][HT_MAX_RANK];
    const OperatorAccess *from[OPERATOR_FACTORS]; // operand that gave the extents, from its
                                                  // dimension `at` on; NULL: the rule's size clause
    int at[OPERATOR_FACTORS];
} Factors;

static int dims_of(const Factors *factors, const OperatorDim *dim) {
    return dim->count > 1 ? 1 : factors->count[dim->factors[0]];
}

static void start_counts(const Call *call, Factors *factors) {
    for (int f = 0; f < call->op->factor_count; f++) {
        const OperatorFactor *factor = &call->op->factors[f];
        Wide count = factor->count ? factor->count(call->attr, NULL) : factor->ellipsis ? -1 : 1;
        if (factor->count && (count < 0 || count > HT_MAX_RANK))
            ht_fail(
                "%s: the number of dimensions that '%s..' stands for is %lld, not one of 0 to %d",
                call->op->name, factor->name, (long long)count, HT_MAX_RANK);
        factors->count[f] = (int)count;
    }
}

/* If operand i has one ellipsis of unknown length (number of dimensions), computes the length from
 * the operand's rank and returns true. Ends the program if the rank does not fit the rule. */
static bool learn_count(const Call *call, Factors *factors, int i) {
    const OperatorAccess *access = call->access[i];
    int unknown = -1, unknowns = 0, rank = call->operand[i]->dims.rank, known = 0;
    for (int d = 0; d < access->dim_count; d++) {
        int count = dims_of(factors, &access->dims[d]);
        known += count < 0 ? 0 : count;
        unknowns += count < 0;
        unknown = count < 0 ? access->dims[d].factors[0] : unknown;
    }
    if (rank < known || (!unknowns && rank != known))
        ht_fail("%s: %s has %d dimension%s, but the rule's %s needs %s%d", call->op->name,
                access->name, rank, rank == 1 ? "" : "s", access->text, unknowns ? "at least " : "",
                known);
    if (unknowns == 1) factors->count[unknown] = rank - known;
    return unknowns == 1;
}

static void learn_counts(const Call *call, Factors *factors) {
    start_counts(call, factors);
    for (bool learnt = true; learnt;) {
        learnt = false;
        for (int i = 0; i < call->count; i++)
            learnt |= call->operand[i] && learn_count(call, factors, i);
    }
    for (int f = 0; f < call->op->factor_count; f++)
        factors->count[f] = factors->count[f] < 0 ? 0 : factors->count[f];
}

/* ---- extents ---- */

static int64_t product(const int64_t *extent, int count) {
    int64_t all = 1;
    for (int d = 0; d < count; d++) all *= extent[d];
    return all;
}

/* The source of a factor's extents. */
typedef struct Origin {
    const OperatorAccess *access; // operand; NULL: the size clause of the rule
    int dim;
} Origin;

/* Sets the extents of factor f. Returns true. */
static bool know(Call *call, Factors *factors, int f, const int64_t *extent, Origin from) {
    memcpy(factors->extent[f], extent, sizeof *extent * (size_t)factors->count[f]);
    factors->known[f] = true;
    factors->from[f] = from.access;
    factors->at[f] = from.dim;
    call->size[f] = product(extent, factors->count[f]);
    return true;
}

/* Sets the extents of factor f to those of operand i from dimension `dim` on. Ends the program if
 * known extents differ. Returns whether the extents are new. */
static bool learn_single(Call *call, Factors *factors, int i, int dim, int f) {
    const OperatorAccess *access = call->access[i], *from = factors->from[f];
    const int64_t *extent = call->operand[i]->dims.extent + dim;
    if (!factors->known[f]) return know(call, factors, f, extent, (Origin){access, dim});
    for (int d = 0; d < factors->count[f]; d++) {
        int64_t known = factors->extent[f][d];
        const char *name = call->op->factors[f].name;
        if (extent[d] != known && from)
            ht_fail("%s: dimension %d of %s has extent %ld, but dimension %d of %s has %ld; they "
                    "must be equal (factor %s)",
                    call->op->name, dim + d, access->name, (long)extent[d], factors->at[f] + d,
                    from->name, (long)known, name);
        if (extent[d] != known)
            ht_fail("%s: dimension %d of %s has extent %ld, but factor %s has %ld", call->op->name,
                    dim + d, access->name, (long)extent[d], name, (long)known);
    }
    return false;
}

/* Computes the one unknown factor of a merged dimension by division: extent 12 with a known factor
 * of 3 gives 4. Returns whether it computed one; ends the program at a remainder. */
static bool learn_merged(Call *call, Factors *factors, int i, int dim, const OperatorDim *merged) {
    int unknown = -1;
    int64_t known = 1, extent = call->operand[i]->dims.extent[dim];
    for (int k = 0; k < merged->count; k++) {
        int f = merged->factors[k];
        if (!factors->known[f] && unknown >= 0) return false;
        if (factors->known[f])
            known *= call->size[f];
        else
            unknown = f;
    }
    if (unknown >= 0 ? known == 0 || extent % known != 0 : extent != known)
        ht_fail("%s: dimension %d of %s has extent %ld, which is not %s%ld, what its merged "
                "factors in %s give",
                call->op->name, dim, call->access[i]->name, (long)extent,
                unknown >= 0 ? "a multiple of " : "", (long)known, call->access[i]->text);
    if (unknown < 0) return false;
    return know(call, factors, unknown, &(int64_t){extent / known}, (Origin){call->access[i], dim});
}

static bool learn_operand(Call *call, Factors *factors, int i, bool merged) {
    const OperatorAccess *access = call->access[i];
    bool learnt = false;
    for (int d = 0, at = 0; call->operand[i] && d < access->dim_count;
         at += dims_of(factors, &access->dims[d++])) {
        const OperatorDim *dim = &access->dims[d];
        if (merged && dim->count > 1)
            learnt |= learn_merged(call, factors, i, at, dim);
        else if (!merged && dim->count == 1 && !call->op->factors[dim->factors[0]].each)
            learnt |= learn_single(call, factors, i, at, dim->factors[0]);
    }
    return learnt;
}

/* Sets the extent of factor f by its size clause once all factors that the clause reads are known.
 * Returns whether the extent is new. */
static bool learn_size(Call *call, Factors *factors, int f) {
    const OperatorFactor *factor = &call->op->factors[f];
    if (!factor->size || factors->known[f]) return false;
    for (int g = 0; g < call->op->factor_count; g++)
        if (factor->size_of >> g & 1 && !factors->known[g]) return false;
    Wide size = factor->size(call->attr, call->size);
    if (size < 0 || size > INT64_MAX)
        ht_fail("%s: the extent of factor %s is %lld", call->op->name, factor->name,
                (long long)size);
    return know(call, factors, f, &(int64_t){(int64_t)size}, (Origin){NULL, 0});
}

/* Sums the extents of `each` factors over the members of a variadic operand: concatenating (2, 5)
 * and (3, 5) gives extent 5. */
static void sum_members(Call *call, Factors *factors) {
    for (int i = 0; i < call->count; i++)
        for (int d = 0, at = 0; call->operand[i] && d < call->access[i]->dim_count;
             at += dims_of(factors, &call->access[i]->dims[d++])) {
            int f = call->access[i]->dims[d].factors[0];
            if (call->op->factors[f].each && call->access[i]->dims[d].count == 1) {
                call->size[f] += product(call->operand[i]->dims.extent + at, factors->count[f]);
                factors->known[f] = true;
            }
        }
}

static void learn_extents(Call *call, Factors *factors) {
    sum_members(call, factors);
    for (bool learnt = true; learnt;) {
        learnt = false;
        for (int i = 0; i < call->count; i++) learnt |= learn_operand(call, factors, i, false);
        for (int f = 0; f < call->op->factor_count; f++) learnt |= learn_size(call, factors, f);
        for (int i = 0; i < call->count; i++) learnt |= learn_operand(call, factors, i, true);
    }
    for (int f = 0; f < call->op->factor_count; f++)
        call->size[f] = factors->known[f] ? call->size[f] : 1;
}

/* ---- results ---- */

static void add_extent(ht_dims *dims, int64_t extent) {
    if (dims->rank++ < HT_MAX_RANK) dims->extent[dims->rank - 1] = extent;
}

static ht_dims result_dims(const Call *call, const Factors *factors, const OperatorAccess *result) {
    ht_dims dims = {0};
    for (int d = 0; d < result->dim_count; d++) {
        const OperatorDim *dim = &result->dims[d];
        int64_t merged = 1;
        for (int k = 0; k < dim->count; k++) {
            int f = dim->factors[k];
            if (!factors->known[f])
                ht_fail("%s: the operands do not tell the extent of factor %s", call->op->name,
                        call->op->factors[f].name);
            merged *= call->size[f];
            for (int e = 0; dim->count == 1 && e < factors->count[f]; e++)
                add_extent(&dims, factors->extent[f][e]);
        }
        if (dim->count > 1) add_extent(&dims, merged);
    }
    if (dims.rank > HT_MAX_RANK)
        ht_fail("%s: the result %s has %d dimensions; at most %d are allowed", call->op->name,
                result->name, dims.rank, HT_MAX_RANK);
    return dims;
}

/* Replaces the extent -1, at most one, so that the shape has `elements` elements: (2, -1) becomes
 * (2, 6) for 12. Returns false if the element count cannot match. */
static bool infer_extent(ht_dims *dims, int64_t elements) {
    int64_t known = 1, *open = NULL;
    for (int d = 0; d < dims->rank; d++) {
        if (dims->extent[d] == -1 && !open)
            open = &dims->extent[d];
        else if (dims->extent[d] < 0 || __builtin_mul_overflow(known, dims->extent[d], &known))
            return false;
    }
    if (!open) return known == elements;
    if (known == 0 || elements % known != 0) return false;
    *open = elements / known;
    return true;
}

static ht_dims view_dims(const Call *call) {
    const ht_node *x = call->operand[0];
    ht_dims dims = call->attr[call->op->shape].dims, to = dims;
    eager_check_rank(dims.rank);
    if (!infer_extent(&to, x->count))
        ht_fail("%s: %s has %ld elements, which the shape %s cannot hold", call->op->name,
                eager_shape_text(x->dims), (long)x->count, eager_shape_text(dims));
    return to;
}

void call_bind(Call *call, ht_dtype *types, ht_dims *shapes) {
    const Operator *op = call->op;
    Factors factors = {0};
    check_given(call);
    check_open(call);
    check_integral(call);
    for (int k = 0; k < op->result_count; k++)
        if ((unsigned)(types[k] = element_type(call, &op->results[k])) > HT_I64)
            ht_fail("%d is no ht_dtype", (int)types[k]);
    if (op->kind == OPERATOR_VIEW) {
        shapes[0] = view_dims(call);
        return;
    }
    learn_counts(call, &factors);
    learn_extents(call, &factors);
    for (int r = 0; r < op->requirement_count; r++)
        if (!op->requirements[r].holds(call->attr, call->size))
            ht_fail("%s: the call does not keep to %s, which its rule requires", op->name,
                    op->requirements[r].text);
    for (int k = 0; k < op->result_count; k++)
        shapes[k] = result_dims(call, &factors, &op->results[k]);
}
