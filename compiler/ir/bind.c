/* Binding: how the factors of a rule fall onto the dimensions of a call's operands, and what types the results have.
 *
 * First the ellipses get their counts, from `a..{n}` and from the operands' ranks; then every factor gets its extent, from the operands' extents
 * and from the clause `size`; merged factors are inferred by division. */
#include "ir/expr.h"
#include "ir/ir.h"

#include <string.h>

/* Where a bound factor's extent came from. */
typedef struct Source {
    int operand; // of the call; -1: clause size, or nothing yet
    int dim;
} Source;

typedef struct Binder {
    Arena *arena;
    Diag *diag; // NULL: errors are not reported
    Position at;
    const OpDef *def;
    const Rule *rule;
    const Attr *attrs;
    Value *const *operands;
    int operand_count;
    int *access;    // by operand: the rule's operand
    int *member;    // by operand: which tensor of a variadic one
    int members;    // tensors that the variadic operand stands for
    int *count;     // by factor: how many dimensions it stands for; -1 not known
    bool *each;     // by factor: one a tensor of the variadic operand
    bool *used;     // by factor: a present operand or a result has it
    int *base;      // by factor: its first bound factor
    int bound_count;
    int64_t *extent; // by bound factor; -1 not known
    Source *source;  // by bound factor
    bool failed;
} Binder;

#define ERROR(binder, ...) ((binder)->failed = true, (binder)->diag ? diag_error((binder)->diag, (binder)->at, __VA_ARGS__) : (void)0)
#define NOTE(binder, where, ...) ((binder)->diag ? diag_note((binder)->diag, (where), __VA_ARGS__) : (void)0)

/* ---- what messages say ---- */

static const char *type_text(Binder *binder, Type type)
{
    Text out = {.arena = binder->arena};
    text_print(&out, "%s[", dtype_name(type.dtype));
    for (int d = 0; d < type.rank; d++)
        text_print(&out, d ? ", %lld" : "%lld", (long long)type.extent[d]);
    text_string(&out, "]");
    return text_bytes(&out);
}

static const char *access_text(Binder *binder, const Access *access)
{
    Text out = {.arena = binder->arena};
    text_print(&out, "%s%s[", access->name, access->variadic ? "[]" : "");
    for (int d = 0; d < access->dim_count; d++) {
        const RuleDim *dim = &access->dims[d];
        text_string(&out, d ? ", " : "");
        text_string(&out, dim->count > 1 ? "(" : "");
        for (int k = 0; k < dim->count; k++) {
            const Factor *factor = &binder->rule->factors[dim->factors[k]];
            text_print(&out, "%s%s%s", k ? " " : "", factor->name, factor->ellipsis ? ".." : "");
        }
        text_string(&out, dim->count > 1 ? ")" : "");
    }
    text_string(&out, "]");
    return text_bytes(&out);
}

static void note_value(Binder *binder, int operand)
{
    const Value *value = binder->operands[operand];
    const Access *access = &binder->rule->operands[binder->access[operand]];
    if (value->at.file)
        NOTE(binder, value->at, "%s is made here: %s", access->name, type_text(binder, value->type));
}

/* ---- operands ---- */

static int variadic_operand(const Rule *rule)
{
    for (int i = 0; i < rule->operand_count; i++)
        if (rule->operands[i].variadic)
            return i;
    return -1;
}

/* Gives each operand of the call its operand of the rule. */
static bool map_operands(Binder *binder)
{
    const Rule *rule = binder->rule;
    int variadic = variadic_operand(rule), least = rule->operand_count - (variadic >= 0);
    binder->members = binder->operand_count - least;
    if (binder->members < 0 || (variadic < 0 && binder->members != 0)) {
        ERROR(binder, "%s takes %d tensor%s, not %d", binder->def->name, rule->operand_count, rule->operand_count == 1 ? "" : "s", binder->operand_count);
        return false;
    }
    if (variadic >= 0 && binder->members == 0) {
        ERROR(binder, "%s: %s[] needs at least one tensor", binder->def->name, rule->operands[variadic].name);
        return false;
    }
    for (int i = 0, next = 0; i < rule->operand_count; i++)
        for (int k = 0; k < (i == variadic ? binder->members : 1); k++, next++) {
            binder->access[next] = i;
            binder->member[next] = k;
        }
    return true;
}

static bool check_present(Binder *binder)
{
    for (int i = 0; i < binder->operand_count; i++) {
        const Access *access = &binder->rule->operands[binder->access[i]];
        if (!binder->operands[i] && !access->optional)
            ERROR(binder, "%s: the tensor '%s' is absent, and may not be: the rule is %s", binder->def->name, access->name, access_text(binder, access));
    }
    return !binder->failed;
}

/* In a body floating-point operands have one element type, unless the rule says what the result's is. */
static bool check_dtypes(Binder *binder)
{
    int first = -1;
    if (binder->rule->kind != RULE_BODY || binder->rule->results[0].dtype != -1)
        return true;
    for (int i = 0; i < binder->operand_count; i++) {
        const Value *value = binder->operands[i];
        if (!value || value->type.dtype == DTYPE_I32 || value->type.dtype == DTYPE_I64)
            continue;
        if (first >= 0 && binder->operands[first]->type.dtype != value->type.dtype) {
            ERROR(binder, "%s: the element types of %s (%s) and %s (%s) differ; convert one of them first", binder->def->name, binder->rule->operands[binder->access[first]].name,
                  dtype_name(binder->operands[first]->type.dtype), binder->rule->operands[binder->access[i]].name, dtype_name(value->type.dtype));
            note_value(binder, first);
            note_value(binder, i);
            return false;
        }
        first = first < 0 ? i : first;
    }
    return true;
}

static bool access_has(const Access *access, int factor)
{
    for (int d = 0; d < access->dim_count; d++)
        for (int k = 0; k < access->dims[d].count; k++)
            if (access->dims[d].factors[k] == factor)
                return true;
    return false;
}

/* Whether a factor stands in the variadic operand alone. */
static bool only_in_variadic(const Rule *rule, int factor)
{
    int variadic = variadic_operand(rule);
    if (variadic < 0)
        return false;
    for (int i = 0; i < rule->operand_count; i++)
        if (i != variadic && access_has(&rule->operands[i], factor))
            return false;
    for (int i = 0; i < rule->result_count; i++)
        if (access_has(&rule->results[i], factor))
            return false;
    return true;
}

/* Finds which factors occur, and which are one a tensor of the variadic operand. */
static void find_used(Binder *binder)
{
    const Rule *rule = binder->rule;
    for (int f = 0; f < rule->factor_count; f++) {
        binder->each[f] = only_in_variadic(rule, f);
        for (int i = 0; i < binder->operand_count; i++)
            binder->used[f] |= binder->operands[i] && access_has(&rule->operands[binder->access[i]], f);
        for (int i = 0; i < rule->result_count; i++)
            binder->used[f] |= access_has(&rule->results[i], f);
    }
}

/* ---- ellipses ---- */

/* Counts that are written or that no rank can say. */
static bool start_counts(Binder *binder)
{
    for (int f = 0; f < binder->rule->factor_count; f++) {
        const Factor *factor = &binder->rule->factors[f];
        int64_t count = 1;
        if (factor->count) {
            if (!expr_integer(factor->count, binder->attrs, NULL, &count) || count < 0 || count > IR_MAX_RANK) {
                ERROR(binder, "%s: the number of dimensions that '%s..' stands for is %lld, not one of 0 to %d", binder->def->name, factor->name, (long long)count, IR_MAX_RANK);
                return false;
            }
        } else if (factor->ellipsis) {
            count = -1;
        }
        binder->count[f] = (int)count;
    }
    return true;
}

/* The dimensions of an access that are known, and the ellipsis that is not (-1 none, -2 several). */
static int known_rank(const Binder *binder, const Access *access, int *unknown)
{
    int rank = 0;
    *unknown = -1;
    for (int d = 0; d < access->dim_count; d++) {
        int factor = access->dims[d].factors[0], count = access->dims[d].count > 1 ? 1 : binder->count[factor];
        if (count < 0)
            *unknown = *unknown == -1 ? factor : -2;
        else
            rank += count;
    }
    return rank;
}

static void report_rank(Binder *binder, int operand, int rank, bool more)
{
    const Access *access = &binder->rule->operands[binder->access[operand]];
    ERROR(binder, "%s: %s has %d dimension%s, but the rule's %s needs %s%d", binder->def->name, access->name, binder->operands[operand]->type.rank,
          binder->operands[operand]->type.rank == 1 ? "" : "s", access_text(binder, access), more ? "at least " : "", rank);
    note_value(binder, operand);
}

/* Learns a count from one operand's rank; returns whether something was learnt. */
static bool learn_count(Binder *binder, int operand)
{
    int unknown, rank = known_rank(binder, &binder->rule->operands[binder->access[operand]], &unknown);
    int left = binder->operands[operand]->type.rank - rank;
    if (left < 0 || (unknown == -1 && left != 0)) {
        report_rank(binder, operand, rank, unknown != -1);
        return false;
    }
    if (unknown < 0)
        return false;
    binder->count[unknown] = left;
    return true;
}

static bool count_ellipses(Binder *binder)
{
    if (!start_counts(binder))
        return false;
    for (bool learnt = true; learnt && !binder->failed;) {
        learnt = false;
        for (int i = 0; i < binder->operand_count && !binder->failed; i++)
            learnt |= binder->operands[i] && learn_count(binder, i);
    }
    for (int f = 0; f < binder->rule->factor_count && !binder->failed; f++) {
        if (binder->count[f] >= 0)
            continue;
        if (binder->used[f])
            ERROR(binder, "%s: the operands do not tell how many dimensions '%s..' stands for", binder->def->name, binder->rule->factors[f].name);
        binder->count[f] = 0;
    }
    return !binder->failed;
}

/* ---- extents ---- */

static void number_factors(Binder *binder)
{
    for (int f = 0; f < binder->rule->factor_count; f++) {
        binder->base[f] = binder->bound_count;
        if (binder->used[f])
            binder->bound_count += binder->count[f] * (binder->each[f] ? binder->members : 1);
    }
    binder->extent = arena_array(binder->arena, int64_t, binder->bound_count + 1);
    binder->source = arena_array(binder->arena, Source, binder->bound_count + 1);
    for (int b = 0; b < binder->bound_count; b++) {
        binder->extent[b] = -1;
        binder->source[b] = (Source){-1, -1};
    }
}

/* The bound factor of the k-th dimension that `factor` stands for. */
static int bound_factor(const Binder *binder, int factor, int member, int k) { return binder->base[factor] + (binder->each[factor] ? member * binder->count[factor] : 0) + k; }

/* The rule's factor that a bound factor belongs to. */
static int rule_factor_of(const Binder *binder, int bound)
{
    int factor = 0;
    for (int f = 0; f < binder->rule->factor_count; f++)
        if (binder->used[f] && binder->count[f] && binder->base[f] <= bound)
            factor = f;
    return factor;
}

static BoundAccess expand(Binder *binder, const Access *access, int index, int member)
{
    int unused, rank = known_rank(binder, access, &unused);
    BoundDim *dims = arena_array(binder->arena, BoundDim, rank);
    int next = 0;
    for (int d = 0; d < access->dim_count; d++) {
        const RuleDim *dim = &access->dims[d];
        int repeats = dim->count > 1 ? 1 : binder->count[dim->factors[0]];
        for (int k = 0; k < repeats; k++, next++) {
            int *factors = arena_array(binder->arena, int, dim->count);
            for (int j = 0; j < dim->count; j++)
                factors[j] = bound_factor(binder, dim->factors[j], member, k);
            dims[next] = (BoundDim){.count = dim->count, .factors = factors, .written = next};
        }
    }
    return (BoundAccess){.access = index, .rank = rank, .written_rank = rank, .dims = dims};
}

static void report_extent(Binder *binder, int bound, int operand, int dim, int64_t extent)
{
    const Access *access = &binder->rule->operands[binder->access[operand]];
    const char *factor = binder->rule->factors[rule_factor_of(binder, bound)].name;
    Source source = binder->source[bound];
    if (source.operand < 0) {
        ERROR(binder, "%s: dimension %d of %s has extent %lld, but factor %s has %lld", binder->def->name, dim, access->name, (long long)extent, factor, (long long)binder->extent[bound]);
    } else {
        ERROR(binder, "%s: dimension %d of %s has extent %lld, but dimension %d of %s has %lld; they must be equal (factor %s)", binder->def->name, dim, access->name, (long long)extent,
              source.dim, binder->rule->operands[binder->access[source.operand]].name, (long long)binder->extent[bound], factor);
        note_value(binder, source.operand);
    }
    if (source.operand != operand)
        note_value(binder, operand);
}

/* Learns from a dimension of several factors: the one that is unknown, by division. */
static bool learn_merged(Binder *binder, int operand, int dim, const BoundDim *bound, int64_t extent)
{
    int unknown = -1;
    int64_t known = 1;
    for (int k = 0; k < bound->count; k++) {
        int64_t each = binder->extent[bound->factors[k]];
        if (each < 0 && unknown >= 0)
            return false;
        if (each < 0)
            unknown = bound->factors[k];
        else
            known *= each;
    }
    if (unknown >= 0 ? known == 0 || extent % known != 0 : extent != known) {
        const Access *access = &binder->rule->operands[binder->access[operand]];
        ERROR(binder, "%s: dimension %d of %s has extent %lld, which is not %s%lld, what its merged factors in %s give", binder->def->name, dim, access->name, (long long)extent,
              unknown >= 0 ? "a multiple of " : "", (long long)known, access_text(binder, access));
        note_value(binder, operand);
        for (int k = 0; k < bound->count; k++) {
            int from = binder->source[bound->factors[k]].operand;
            if (from >= 0 && from != operand)
                note_value(binder, from);
        }
        return false;
    }
    if (unknown < 0)
        return false;
    binder->extent[unknown] = extent / known;
    binder->source[unknown] = (Source){operand, dim};
    return true;
}

static bool learn_dim(Binder *binder, int operand, int dim, const BoundDim *bound)
{
    int64_t extent = binder->operands[operand]->type.extent[dim];
    if (bound->count > 1)
        return learn_merged(binder, operand, dim, bound, extent);
    int factor = bound->factors[0];
    if (binder->extent[factor] < 0) {
        binder->extent[factor] = extent;
        binder->source[factor] = (Source){operand, dim};
        return true;
    }
    if (binder->extent[factor] != extent)
        report_extent(binder, factor, operand, dim, extent);
    return false;
}

/* The global extents of the rule's factors as far as they are known: products for ellipses, sums over a variadic operand. */
static void factor_sizes(const Binder *binder, int64_t *size)
{
    for (int f = 0; f < binder->rule->factor_count; f++) {
        int members = binder->each[f] ? binder->members : 1;
        size[f] = binder->used[f] ? 0 : -1;
        for (int m = 0; m < members && size[f] >= 0; m++) {
            int64_t product = 1;
            for (int k = 0; k < binder->count[f] && product >= 0; k++) {
                int64_t extent = binder->extent[bound_factor(binder, f, m, k)];
                product = extent < 0 ? -1 : product * extent;
            }
            size[f] = product < 0 ? -1 : size[f] + product;
        }
    }
}

/* Learns from the clause size of one factor. */
static bool learn_size(Binder *binder, int f)
{
    const Factor *factor = &binder->rule->factors[f];
    int64_t *size = arena_array(binder->arena, int64_t, binder->rule->factor_count), value;
    if (!factor->size || !binder->used[f] || binder->extent[binder->base[f]] >= 0)
        return false;
    factor_sizes(binder, size);
    if (!expr_integer(factor->size, binder->attrs, size, &value))
        return false;
    if (value < 0) {
        ERROR(binder, "%s: the extent of factor %s is %lld", binder->def->name, factor->name, (long long)value);
        return false;
    }
    binder->extent[binder->base[f]] = value;
    return true;
}

static bool learn_extents(Binder *binder, const BoundAccess *operands)
{
    for (bool learnt = true; learnt && !binder->failed;) {
        learnt = false;
        for (int i = 0; i < binder->operand_count; i++)
            for (int d = 0; d < operands[i].rank && !binder->failed; d++)
                if (operands[i].dims[d].count == 1)
                    learnt |= learn_dim(binder, i, d, &operands[i].dims[d]);
        for (int f = 0; f < binder->rule->factor_count && !binder->failed; f++)
            learnt |= learn_size(binder, f);
        for (int i = 0; i < binder->operand_count; i++)
            for (int d = 0; d < operands[i].rank && !binder->failed; d++)
                if (operands[i].dims[d].count > 1)
                    learnt |= learn_dim(binder, i, d, &operands[i].dims[d]);
    }
    for (int b = 0; b < binder->bound_count && !binder->failed; b++)
        if (binder->extent[b] < 0)
            ERROR(binder, "%s: the operands do not tell the extent of factor %s", binder->def->name, binder->rule->factors[rule_factor_of(binder, b)].name);
    return !binder->failed;
}

/* ---- results ---- */

static DType result_dtype(const Binder *binder, const Access *result)
{
    if (result->dtype >= 0)
        return (DType)result->dtype;
    if (result->dtype <= -2)
        return (DType)binder->attrs[-2 - result->dtype].i;
    for (int i = 0; i < binder->operand_count; i++)
        if (binder->operands[i])
            return binder->operands[i]->type.dtype;
    return DTYPE_F32;
}

static Type result_type(Binder *binder, const Access *result, const BoundAccess *bound)
{
    int64_t *extent = arena_array(binder->arena, int64_t, bound->rank + 1);
    if (bound->rank > IR_MAX_RANK)
        ERROR(binder, "%s: the result %s has %d dimensions; at most %d are allowed", binder->def->name, result->name, bound->rank, IR_MAX_RANK);
    for (int d = 0; d < bound->rank; d++) {
        extent[d] = 1;
        for (int k = 0; k < bound->dims[d].count; k++)
            extent[d] *= binder->extent[bound->dims[d].factors[k]];
    }
    return (Type){.dtype = result_dtype(binder, result), .rank = bound->rank, .extent = extent};
}

static const BoundFactor *bound_factors(Binder *binder)
{
    BoundFactor *factors = arena_array(binder->arena, BoundFactor, binder->bound_count + 1);
    for (int b = 0; b < binder->bound_count; b++)
        factors[b] = (BoundFactor){.factor = rule_factor_of(binder, b), .extent = binder->extent[b]};
    return factors;
}

static const Binding *bind_rule(Binder *binder, Type *types)
{
    const Rule *rule = binder->rule;
    find_used(binder);
    if (!check_dtypes(binder) || !count_ellipses(binder))
        return NULL;
    number_factors(binder);
    BoundAccess *operands = arena_array(binder->arena, BoundAccess, binder->operand_count + 1);
    BoundAccess *results = arena_array(binder->arena, BoundAccess, rule->result_count);
    for (int i = 0; i < binder->operand_count; i++) {
        operands[i].access = binder->access[i];
        if (binder->operands[i])
            operands[i] = expand(binder, &rule->operands[binder->access[i]], binder->access[i], binder->member[i]);
    }
    for (int i = 0; i < rule->result_count; i++)
        results[i] = expand(binder, &rule->results[i], i, 0);
    if (!learn_extents(binder, operands))
        return NULL;
    for (int i = 0; i < rule->result_count; i++)
        types[i] = result_type(binder, &rule->results[i], &results[i]);
    Binding *binding = arena_new(binder->arena, Binding);
    *binding = (Binding){.factor_count = binder->bound_count, .operand_count = binder->operand_count, .result_count = rule->result_count, .factors = bound_factors(binder), .operands = operands, .results = results};
    return binder->failed ? NULL : binding;
}

/* ---- views ---- */

/* The type that the shape argument gives; one extent may be -1, and is what is left. */
static bool view_type(Binder *binder, Type *type)
{
    const Attr *shape = &binder->attrs[binder->rule->shape_attr];
    Type from = binder->operands[0]->type;
    int64_t *extent = arena_array(binder->arena, int64_t, shape->count + 1), known = 1, elements = type_elements(from);
    int open = -1;
    bool valid = shape->count <= IR_MAX_RANK;
    for (int d = 0; d < shape->count && valid; d++) {
        extent[d] = shape->ints[d];
        valid = extent[d] >= 0 || (extent[d] == -1 && open < 0);
        if (extent[d] == -1)
            open = d;
        else
            known *= extent[d];
    }
    if (valid && open >= 0)
        extent[open] = known > 0 && elements % known == 0 ? elements / known : 0;
    *type = (Type){.dtype = from.dtype, .rank = shape->count, .extent = extent};
    if (valid && type_elements(*type) == elements)
        return true;
    memcpy(extent, shape->ints, sizeof *extent * (size_t)(valid || shape->count <= IR_MAX_RANK ? shape->count : 0));
    ERROR(binder, "%s: %s has %lld elements, which the shape %s cannot hold", binder->def->name, type_text(binder, from), (long long)elements,
          strchr(type_text(binder, *type), '['));
    note_value(binder, 0);
    return false;
}

typedef Array(BoundFactor) Factors;
typedef Array(int) Ints;

static void add_factor(Binder *binder, Factors *factors, int64_t extent, Ints *a, Ints *b)
{
    int index = factors->count;
    array_push(binder->arena, factors, (BoundFactor){.factor = -1, .extent = extent});
    if (a)
        array_push(binder->arena, a, index);
    if (b)
        array_push(binder->arena, b, index);
}

/* Dimensions [from, to) of each side hold the same elements: as long as one side's extent divides the other's they share factors. Where none does, each side
 * keeps factors of its own. Walks from the major end. */
static void match_segment(Binder *binder, Factors *factors, const int64_t *x, int x_count, Ints *x_dims, const int64_t *y, int y_count, Ints *y_dims)
{
    int start = factors->count, i = 0, j = 0;
    int64_t left = x[0], right = y[0];
    while (i < x_count && j < y_count) {
        int64_t shared = left < right ? left : right;
        if (left == 1) {
            add_factor(binder, factors, 1, &x_dims[i], NULL);
            left = ++i < x_count ? x[i] : 1;
            continue;
        }
        if (right == 1) {
            add_factor(binder, factors, 1, NULL, &y_dims[j]);
            right = ++j < y_count ? y[j] : 1;
            continue;
        }
        if (left % shared || right % shared)
            break;
        add_factor(binder, factors, shared, &x_dims[i], &y_dims[j]);
        left /= shared;
        right /= shared;
        if (left == 1 && ++i < x_count)
            left = x[i];
        if (right == 1 && ++j < y_count)
            right = y[j];
    }
    bool complete = i == x_count && j == y_count;
    for (; !complete && i < x_count && x[i] == 1; complete = ++i == x_count && j == y_count)
        add_factor(binder, factors, 1, &x_dims[i], NULL);
    for (; !complete && j < y_count && y[j] == 1; complete = ++j == y_count && i == x_count)
        add_factor(binder, factors, 1, NULL, &y_dims[j]);
    if (complete)
        return;
    factors->count = start;
    for (int d = 0; d < x_count; d++) {
        x_dims[d].count = 0;
        add_factor(binder, factors, x[d], &x_dims[d], NULL);
    }
    for (int d = 0; d < y_count; d++) {
        y_dims[d].count = 0;
        add_factor(binder, factors, y[d], NULL, &y_dims[d]);
    }
}

/* Cuts both shapes into the shortest runs of equal products and matches each; extents of 1 have factors of their own. */
static void match_views(Binder *binder, Factors *factors, Type x, Ints *x_dims, Type y, Ints *y_dims)
{
    int i = 0, j = 0;
    while (i < x.rank || j < y.rank) {
        if (i < x.rank && x.extent[i] == 1) {
            add_factor(binder, factors, 1, &x_dims[i++], NULL);
            continue;
        }
        if (j < y.rank && y.extent[j] == 1) {
            add_factor(binder, factors, 1, NULL, &y_dims[j++]);
            continue;
        }
        int i_end = i + 1, j_end = j + 1;
        int64_t left = x.extent[i], right = y.extent[j];
        while (left != right)
            if (left < right)
                left *= x.extent[i_end++];
            else
                right *= y.extent[j_end++];
        match_segment(binder, factors, x.extent + i, i_end - i, x_dims + i, y.extent + j, j_end - j, y_dims + j);
        i = i_end;
        j = j_end;
    }
}

/* Without elements there is nothing to match: every dimension is on its own. */
static void match_empty(Binder *binder, Factors *factors, Type type, Ints *dims)
{
    for (int d = 0; d < type.rank; d++)
        add_factor(binder, factors, type.extent[d], &dims[d], NULL);
}

static BoundAccess view_access(Binder *binder, const Ints *factors, int rank)
{
    BoundDim *dims = arena_array(binder->arena, BoundDim, rank + 1);
    for (int d = 0; d < rank; d++)
        dims[d] = (BoundDim){.count = factors[d].count, .factors = factors[d].at, .written = d};
    return (BoundAccess){.access = 0, .rank = rank, .written_rank = rank, .dims = dims};
}

static const Binding *bind_view(Binder *binder, Type *types)
{
    Factors factors = {0};
    Ints *x_dims = arena_array(binder->arena, Ints, IR_MAX_RANK), *y_dims = arena_array(binder->arena, Ints, IR_MAX_RANK);
    Type x = binder->operands[0]->type;
    if (!view_type(binder, &types[0]))
        return NULL;
    if (type_elements(x) > 0) {
        match_views(binder, &factors, x, x_dims, types[0], y_dims);
    } else {
        match_empty(binder, &factors, x, x_dims);
        match_empty(binder, &factors, types[0], y_dims);
    }
    BoundAccess *accesses = arena_array(binder->arena, BoundAccess, 2);
    accesses[0] = view_access(binder, x_dims, x.rank);
    accesses[1] = view_access(binder, y_dims, types[0].rank);
    Binding *binding = arena_new(binder->arena, Binding);
    *binding = (Binding){.factor_count = factors.count, .operand_count = 1, .result_count = 1, .factors = factors.at, .operands = &accesses[0], .results = &accesses[1]};
    return binding;
}

const Binding *ir_bind(Arena *arena, Diag *diag, Position at, const OpDef *def, const Attr *attrs, Value *const *operands, int operand_count, Type *types)
{
    int factors = def->rule->factor_count + 1;
    Binder binder = {.arena = arena,
                     .diag = diag,
                     .at = at,
                     .def = def,
                     .rule = def->rule,
                     .attrs = attrs,
                     .operands = operands,
                     .operand_count = operand_count,
                     .access = arena_array(arena, int, operand_count + 1),
                     .member = arena_array(arena, int, operand_count + 1),
                     .count = arena_array(arena, int, factors),
                     .each = arena_array(arena, bool, factors),
                     .used = arena_array(arena, bool, factors),
                     .base = arena_array(arena, int, factors)};
    if (!map_operands(&binder) || !check_present(&binder))
        return NULL;
    return def->rule->kind == RULE_VIEW ? bind_view(&binder, types) : bind_rule(&binder, types);
}
