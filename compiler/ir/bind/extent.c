/* Extents of factors in a binding.
 *
 *     y[(h d)] = x[h, d]                x: [4, 16]       h: 4, d: 16
 *     y[h, d] = x[(h d)] size(h: 4)     x: [64]          h: 4 by the clause, d: 16 by division
 *
 * A dimension of one factor gives that factor's extent. The clause `size` computes an extent from
 * other extents. A merged dimension gives its one unknown factor by division. These three steps
 * repeat until nothing changes.
 */
#include "ir/bind/bind.h"

void bind_number_factors(Binder *binder) {
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

/* Returns the bound factor of dimension k (from 0) that `factor` stands for, in tensor `member`. */
static int bound_factor(const Binder *binder, int factor, int member, int k) {
    return binder->base[factor] + (binder->each[factor] ? member * binder->count[factor] : 0) + k;
}

int bind_rule_factor(const Binder *binder, int bound) {
    int factor = 0;
    for (int f = 0; f < binder->rule->factor_count; f++)
        if (binder->used[f] && binder->count[f] && binder->base[f] <= bound) factor = f;
    return factor;
}

BoundAccess bind_expand(Binder *binder, const Access *access, int index, int member) {
    int unused, rank = bind_known_rank(binder, access, &unused);
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

/* Reports two extents of one factor, with the operands that they come from. */
static void report_extent(Binder *binder, int bound, int operand, int dim, int64_t extent) {
    const Access *access = &binder->rule->operands[binder->access[operand]];
    const char *factor = binder->rule->factors[bind_rule_factor(binder, bound)].name;
    Source source = binder->source[bound];
    if (source.operand < 0) {
        ERROR(binder, "%s: dimension %d of %s has extent %lld, but factor %s has %lld",
              binder->def->name, dim, access->name, (long long)extent, factor,
              (long long)binder->extent[bound]);
    } else {
        ERROR(binder,
              "%s: dimension %d of %s has extent %lld, but dimension %d of %s has %lld; they must "
              "be equal (factor %s)",
              binder->def->name, dim, access->name, (long long)extent, source.dim,
              binder->rule->operands[binder->access[source.operand]].name,
              (long long)binder->extent[bound], factor);
        bind_note_value(binder, source.operand);
    }
    if (source.operand != operand) bind_note_value(binder, operand);
}

/* Infers the one unknown factor of a merged dimension by division. Returns whether it did. */
static bool learn_merged(Binder *binder, int operand, int dim, const BoundDim *bound,
                         int64_t extent) {
    int unknown = -1;
    int64_t known = 1;
    for (int k = 0; k < bound->count; k++) {
        int64_t each = binder->extent[bound->factors[k]];
        if (each < 0 && unknown >= 0) return false;
        if (each < 0)
            unknown = bound->factors[k];
        else
            known *= each;
    }
    if (unknown >= 0 ? known == 0 || extent % known != 0 : extent != known) {
        const Access *access = &binder->rule->operands[binder->access[operand]];
        ERROR(binder,
              "%s: dimension %d of %s has extent %lld, which is not %s%lld, what its merged "
              "factors in %s give",
              binder->def->name, dim, access->name, (long long)extent,
              unknown >= 0 ? "a multiple of " : "", (long long)known,
              bind_access_text(binder, access));
        bind_note_value(binder, operand);
        for (int k = 0; k < bound->count; k++) {
            int from = binder->source[bound->factors[k]].operand;
            if (from >= 0 && from != operand) bind_note_value(binder, from);
        }
        return false;
    }
    if (unknown < 0) return false;
    binder->extent[unknown] = extent / known;
    binder->source[unknown] = (Source){operand, dim};
    return true;
}

static bool learn_dim(Binder *binder, int operand, int dim, const BoundDim *bound) {
    int64_t extent = binder->operands[operand]->type.extent[dim];
    if (bound->count > 1) return learn_merged(binder, operand, dim, bound, extent);
    int factor = bound->factors[0];
    if (binder->extent[factor] < 0) {
        binder->extent[factor] = extent;
        binder->source[factor] = (Source){operand, dim};
        return true;
    }
    if (binder->extent[factor] != extent) report_extent(binder, factor, operand, dim, extent);
    return false;
}

void bind_factor_sizes(const Binder *binder, int64_t *size) {
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

/* Infers the extent of a factor from its clause `size`. Returns whether it did. */
static bool learn_size(Binder *binder, int f) {
    const Factor *factor = &binder->rule->factors[f];
    int64_t *size = arena_array(binder->arena, int64_t, binder->rule->factor_count), value;
    if (!factor->size || !binder->used[f] || binder->extent[binder->base[f]] >= 0) return false;
    bind_factor_sizes(binder, size);
    if (!expr_integer(factor->size, binder->attrs, size, &value)) return false;
    if (value < 0)
        return ERROR(binder, "%s: the extent of factor %s is %lld", binder->def->name, factor->name,
                     (long long)value),
               false;
    binder->extent[binder->base[f]] = value;
    return true;
}

bool bind_extents(Binder *binder, const BoundAccess *operands) {
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
            ERROR(binder, "%s: the operands do not tell the extent of factor %s", binder->def->name,
                  binder->rule->factors[bind_rule_factor(binder, b)].name);
    return !binder->failed;
}
