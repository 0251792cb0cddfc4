/* Binding: the factors of a rule on the dimensions of a call's operands, and the types of the
 * results.
 *
 *     y[b.., o] = x[b.., i] * w[o, i]        x: f32[8, 16, 64], w: f32[32, 64]
 *
 * 1. count_ellipses: x has 3 dimensions, so `b..` stands for 2.
 * 2. bind_extents: b is 8 and 16, i is 64 (x and w agree), o is 32. The clause `size` gives
 *    extents that no operand has. A merged dimension, (h d), gives d when it is divided by h.
 * 3. result_type: y is f32[8, 16, 32].
 */
#include "ir/bind/bind.h"

#include <string.h>

/* ---- messages ---- */

const char *bind_type_text(Binder *binder, Type type) {
    Text out = {.arena = binder->arena};
    text_print(&out, "%s[", dtype_name(type.dtype));
    for (int d = 0; d < type.rank; d++)
        text_print(&out, d ? ", %lld" : "%lld", (long long)type.extent[d]);
    text_string(&out, "]");
    return text_bytes(&out);
}

const char *bind_access_text(Binder *binder, const Access *access) {
    Text out = {.arena = binder->arena};
    rule_print_access(&out, binder->rule, access);
    return text_bytes(&out);
}

void bind_note_value(Binder *binder, int operand) {
    const Value *value = binder->operands[operand];
    const Access *access = &binder->rule->operands[binder->access[operand]];
    if (value->at.file)
        NOTE(binder, value->at, "%s is made here: %s", access->name,
             bind_type_text(binder, value->type));
}

/* ---- operands ---- */

static int variadic_operand(const Rule *rule) {
    for (int i = 0; i < rule->operand_count; i++)
        if (rule->operands[i].variadic) return i;
    return -1;
}

/* Finds the rule's operand of each tensor of the call. Returns false after an error. */
static bool map_operands(Binder *binder) {
    const Rule *rule = binder->rule;
    int variadic = variadic_operand(rule), least = rule->operand_count - (variadic >= 0);
    binder->members = binder->operand_count - least;
    if (binder->members < 0 || (variadic < 0 && binder->members != 0))
        return ERROR(binder, "%s takes %d tensor%s, not %d", binder->def->name, rule->operand_count,
                     rule->operand_count == 1 ? "" : "s", binder->operand_count),
               false;
    if (variadic >= 0 && binder->members == 0)
        return ERROR(binder, "%s: %s[] needs at least one tensor", binder->def->name,
                     rule->operands[variadic].name),
               false;
    for (int i = 0, next = 0; i < rule->operand_count; i++)
        for (int k = 0; k < (i == variadic ? binder->members : 1); k++, next++) {
            binder->access[next] = i;
            binder->member[next] = k;
        }
    return true;
}

/* Reports absent tensors that the rule does not allow to be absent. */
static bool check_present(Binder *binder) {
    for (int i = 0; i < binder->operand_count; i++) {
        const Access *access = &binder->rule->operands[binder->access[i]];
        if (!binder->operands[i] && !access->optional)
            ERROR(binder, "%s: the tensor '%s' is absent, and may not be: the rule is %s",
                  binder->def->name, access->name, bind_access_text(binder, access));
    }
    return !binder->failed;
}

/* Returns whether only the variadic operand has a factor. */
static bool only_in_variadic(const Rule *rule, int factor) {
    int variadic = variadic_operand(rule);
    if (variadic < 0) return false;
    for (int i = 0; i < rule->operand_count; i++)
        if (i != variadic && access_has(&rule->operands[i], factor)) return false;
    for (int i = 0; i < rule->result_count; i++)
        if (access_has(&rule->results[i], factor)) return false;
    return true;
}

/* Sets `used` and `each` of all factors. */
static void find_used(Binder *binder) {
    const Rule *rule = binder->rule;
    for (int f = 0; f < rule->factor_count; f++) {
        binder->each[f] = only_in_variadic(rule, f);
        for (int i = 0; i < binder->operand_count; i++)
            binder->used[f] |=
                binder->operands[i] && access_has(&rule->operands[binder->access[i]], f);
        for (int i = 0; i < rule->result_count; i++)
            binder->used[f] |= access_has(&rule->results[i], f);
    }
}

/* ---- ellipses ---- */

/* Sets counts: 1 for a factor, N for `a..{N}`, -1 for other ellipses. Returns false on error. */
static bool start_counts(Binder *binder) {
    for (int f = 0; f < binder->rule->factor_count; f++) {
        const Factor *factor = &binder->rule->factors[f];
        int64_t count = 1;
        if (factor->count) {
            if (!expr_integer(factor->count, binder->attrs, NULL, &count) || count < 0 ||
                count > IR_MAX_RANK)
                return ERROR(binder,
                             "%s: the number of dimensions that '%s..' stands for is %lld, not one "
                             "of 0 to %d",
                             binder->def->name, factor->name, (long long)count, IR_MAX_RANK),
                       false;
        } else if (factor->ellipsis) {
            count = -1;
        }
        binder->count[f] = (int)count;
    }
    return true;
}

int bind_known_rank(const Binder *binder, const Access *access, int *unknown) {
    int rank = 0;
    *unknown = -1;
    for (int d = 0; d < access->dim_count; d++) {
        int factor = access->dims[d].factors[0],
            count = access->dims[d].count > 1 ? 1 : binder->count[factor];
        if (count < 0)
            *unknown = *unknown == -1 ? factor : -2;
        else
            rank += count;
    }
    return rank;
}

static void report_rank(Binder *binder, int operand, int rank, bool more) {
    const Access *access = &binder->rule->operands[binder->access[operand]];
    ERROR(binder, "%s: %s has %d dimension%s, but the rule's %s needs %s%d", binder->def->name,
          access->name, binder->operands[operand]->type.rank,
          binder->operands[operand]->type.rank == 1 ? "" : "s", bind_access_text(binder, access),
          more ? "at least " : "", rank);
    bind_note_value(binder, operand);
}

/* Infers an ellipsis' count from the rank of one operand. Returns whether the count is new. */
static bool learn_count(Binder *binder, int operand) {
    int unknown,
        rank = bind_known_rank(binder, &binder->rule->operands[binder->access[operand]], &unknown);
    int left = binder->operands[operand]->type.rank - rank;
    if (left < 0 || (unknown == -1 && left != 0)) {
        report_rank(binder, operand, rank, unknown != -1);
        return false;
    }
    if (unknown < 0) return false;
    binder->count[unknown] = left;
    return true;
}

/* Infers the counts of all ellipses, until nothing changes. Returns false after an error. */
static bool count_ellipses(Binder *binder) {
    if (!start_counts(binder)) return false;
    for (bool learnt = true; learnt && !binder->failed;) {
        learnt = false;
        for (int i = 0; i < binder->operand_count && !binder->failed; i++)
            learnt |= binder->operands[i] && learn_count(binder, i);
    }
    for (int f = 0; f < binder->rule->factor_count && !binder->failed; f++) {
        if (binder->count[f] >= 0) continue;
        if (binder->used[f])
            ERROR(binder, "%s: the operands do not tell how many dimensions '%s..' stands for",
                  binder->def->name, binder->rule->factors[f].name);
        binder->count[f] = 0;
    }
    return !binder->failed;
}

/* ---- results ---- */

/* Returns the type of a result from the extents of its factors. */
static Type result_type(Binder *binder, const Access *result, const BoundAccess *bound) {
    int64_t *extent = arena_array(binder->arena, int64_t, bound->rank + 1);
    if (bound->rank > IR_MAX_RANK)
        ERROR(binder, "%s: the result %s has %d dimensions; at most %d are allowed",
              binder->def->name, result->name, bound->rank, IR_MAX_RANK);
    for (int d = 0; d < bound->rank; d++) {
        extent[d] = 1;
        for (int k = 0; k < bound->dims[d].count; k++)
            extent[d] *= binder->extent[bound->dims[d].factors[k]];
    }
    Type type = {.dtype = bind_result_dtype(binder, result), .rank = bound->rank, .extent = extent};
    if (type_elements(type) > IR_MAX_ELEMENTS)
        ERROR(binder, "%s: the result %s, %s, has too many elements", binder->def->name,
              result->name, bind_type_text(binder, type));
    return type;
}

static const BoundFactor *bound_factors(Binder *binder) {
    BoundFactor *factors = arena_array(binder->arena, BoundFactor, binder->bound_count + 1);
    for (int b = 0; b < binder->bound_count; b++)
        factors[b] =
            (BoundFactor){.factor = bind_rule_factor(binder, b), .extent = binder->extent[b]};
    return factors;
}

/* Binds a rule that is no view, in the steps of the file's header. NULL: an error was reported. */
static const Binding *bind_rule(Binder *binder, Type *types) {
    const Rule *rule = binder->rule;
    find_used(binder);
    if (!bind_check_dtypes(binder) || !count_ellipses(binder)) return NULL;
    bind_number_factors(binder);
    if (binder->bound_count > IR_MAX_FACTORS || binder->operand_count > IR_MAX_OPERANDS) {
        ERROR(binder, "%s: a call of %d tensors and %d factors; at most %d and %d are possible",
              binder->def->name, binder->operand_count, binder->bound_count, IR_MAX_OPERANDS,
              IR_MAX_FACTORS);
        NOTE(binder, binder->at, "make it of several calls");
        return NULL;
    }
    // dimensions of operands and results
    BoundAccess *operands = arena_array(binder->arena, BoundAccess, binder->operand_count + 1);
    BoundAccess *results = arena_array(binder->arena, BoundAccess, rule->result_count);
    for (int i = 0; i < binder->operand_count; i++) {
        operands[i].access = binder->access[i];
        if (binder->operands[i])
            operands[i] = bind_expand(binder, &rule->operands[binder->access[i]], binder->access[i],
                                      binder->member[i]);
    }
    for (int i = 0; i < rule->result_count; i++)
        results[i] = bind_expand(binder, &rule->results[i], i, 0);
    // extents, conditions, types
    if (!bind_extents(binder, operands) || !bind_check_requirements(binder)) return NULL;
    for (int i = 0; i < rule->result_count; i++)
        types[i] = result_type(binder, &rule->results[i], &results[i]);
    Binding *binding = arena_new(binder->arena, Binding);
    *binding = (Binding){.factor_count = binder->bound_count,
                         .operand_count = binder->operand_count,
                         .result_count = rule->result_count,
                         .factors = bound_factors(binder),
                         .operands = operands,
                         .results = results};
    return binder->failed ? NULL : binding;
}

const Binding *ir_bind(Arena *arena, Diag *diag, Position at, const OpCall *call, Type *types) {
    const Rule *rule = call->def->rule;
    int factors = rule->factor_count + 1;
    Binder binder = {.arena = arena,
                     .diag = diag,
                     .at = at,
                     .def = call->def,
                     .rule = rule,
                     .attrs = call->attrs,
                     .operands = call->operands,
                     .operand_count = call->operand_count,
                     .access = arena_array(arena, int, call->operand_count + 1),
                     .member = arena_array(arena, int, call->operand_count + 1),
                     .count = arena_array(arena, int, factors),
                     .each = arena_array(arena, bool, factors),
                     .used = arena_array(arena, bool, factors),
                     .base = arena_array(arena, int, factors)};
    if (!map_operands(&binder) || !check_present(&binder)) return NULL;
    return rule->kind == RULE_VIEW ? bind_view(&binder, types) : bind_rule(&binder, types);
}
