/* Implements the choice of factors that split rules cut, by the names of tensors' dimensions.
 * Sequence parallelism is `split heads:tp ffn:tp seq:tp`: operators without heads and ffn, such as
 * norms, are cut along seq. The model itself chooses the tokens of an expert, and its capacity
 * (test/users/models/moe.c). Tokens reach experts by conversions (propagate_layouts.c,
 * reshard/copy/all_to_all.c). */
#include "passes/seed_layouts/tensor_sequence_expert_splits.h"

int factor_dim(const BoundAccess *access, int f) {
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].count == 1 && access->dims[d].factors[0] == f) return d;
    return -1;
}

DimName factor_name(const Op *op, int f) {
    DimName name = {0};
    for (int k = 0; !name.name && k < op->result_count; k++) {
        int d = factor_dim(&op->binding->results[k], f);
        name = d >= 0 ? dim_name(op->results[k]->dims, d) : name;
    }
    for (int k = 0; !name.name && k < op->operand_count; k++) {
        int d = op->operands[k] ? factor_dim(&op->binding->operands[k], f) : -1;
        name = d >= 0 ? dim_name(op->operands[k]->dims, d) : name;
    }
    return name;
}

static bool all_results_have(const Op *op, int f) {
    for (int k = 0; k < op->result_count; k++)
        if (factor_dim(&op->binding->results[k], f) < 0) return false;
    return true;
}

/* Returns whether some tensor has a dimension without a factor, which no axis may cut. Such
 * is a merged dimension whose factors do not match the rest of the model (pass factor_dims). */
static bool has_opaque(const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        for (int d = 0; op->operands[k] && d < op->binding->operands[k].rank; d++)
            if (!op->binding->operands[k].dims[d].count) return true;
    for (int k = 0; k < op->result_count; k++)
        for (int d = 0; d < op->binding->results[k].rank; d++)
            if (!op->binding->results[k].dims[d].count) return true;
    return false;
}

/* Returns whether a factor of the rule is merged with others in some dimension. */
static bool is_merged(const Rule *rule, int factor) {
    for (int k = 0; k < rule->operand_count + rule->result_count; k++) {
        const Access *access =
            k < rule->operand_count ? &rule->operands[k] : &rule->results[k - rule->operand_count];
        for (int d = 0; d < access->dim_count; d++)
            for (int i = 0; access->dims[d].count > 1 && i < access->dims[d].count; i++)
                if (access->dims[d].factors[i] == factor) return true;
    }
    return false;
}

/* Returns whether bound factor f is an inner part of one of the dimensions that the kernel sees. A
 * piece of f would then not be a contiguous range of that dimension. */
static bool is_inner(const Value *value, const BoundAccess *access, int f) {
    int d = value ? factor_dim(access, f) : -1;
    return d > 0 && access->dims[d - 1].written == access->dims[d].written &&
           !value_cut_along(value, d - 1);
}

/* Returns whether a cut of bound factor f gives contiguous ranges to a kernel that uses offsets. */
static bool keeps_range(const Op *op, int f) {
    if (!op->def->rule->factors[op->binding->factors[f].factor].offset) return true;
    for (int k = 0; k < op->operand_count; k++)
        if (is_inner(op->operands[k], &op->binding->operands[k], f)) return false;
    for (int k = 0; k < op->result_count; k++)
        if (is_inner(op->results[k], &op->binding->results[k], f)) return false;
    return true;
}

bool factor_takes_pieces(const Op *op, int f) {
    const Rule *rule = op->def->rule;
    int factor = op->binding->factors[f].factor;
    return !rule->factors[factor].replicate && !(is_merged(rule, factor) && has_opaque(op)) &&
           keeps_range(op, f);
}

bool factor_may_cut(const Op *op, int f) {
    const Rule *rule = op->def->rule;
    int factor = op->binding->factors[f].factor;
    if (rule->kind == RULE_VIEW || factor < 0)
        return all_results_have(op, f) && factor_dim(&op->binding->operands[0], f) >= 0;
    return factor_takes_pieces(op, f) &&
           (all_results_have(op, f) || rule->factors[factor].reduction != REDUCE_NONE);
}

/* Returns how many bound factors have a name; *first: the first of these that may be cut, or -1. */
static int count_named(const Op *op, DimName name, int *first) {
    int count = 0;
    *first = -1;
    for (int f = 0; f < op->binding->factor_count; f++)
        if (dim_equal(factor_name(op, f), name)) {
            *first = *first < 0 && factor_may_cut(op, f) ? f : *first;
            count++;
        }
    return count;
}

static bool has_axis(const NamedCut *cuts, int count, int axis) {
    for (int i = 0; i < count; i++)
        if (cuts[i].axis == axis) return true;
    return false;
}

/* Returns whether every tensor of the operator except scalars has the factor. */
static bool all_have(const Op *op, int f) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->type.rank &&
            factor_dim(&op->binding->operands[k], f) < 0)
            return false;
    return all_results_have(op, f);
}

/* Returns whether the operator sums products: two operands have a factor that no result has. */
static bool is_product(const Op *op) {
    for (int f = 0; f < op->binding->factor_count; f++) {
        int operands = 0, results = 0;
        for (int k = 0; k < op->operand_count; k++)
            operands += op->operands[k] && factor_dim(&op->binding->operands[k], f) >= 0;
        for (int k = 0; k < op->result_count; k++)
            results += factor_dim(&op->binding->results[k], f) >= 0;
        if (operands > 1 && !results) return true;
    }
    return false;
}

int factor_beside(const Mesh *mesh, const Op *op, const NamedCut *cut, int after, int *rule) {
    for (int i = after; i < mesh->rules.count; i++) {
        int factor;
        bool own = mesh->rules.at[i].axis == cut->axis && mesh->rules.at[i].zigzag == cut->zigzag;
        if (own && count_named(op, mesh->rules.at[i].dim, &factor) == 1 && factor >= 0 &&
            factor != cut->factor && all_have(op, factor)) {
            *rule = i;
            return factor;
        }
    }
    return -1;
}

bool factor_in_all(const Op *op, int f) { return all_have(op, f); }

bool factor_numbers(const Op *op, int f) { return is_product(op) && all_have(op, f); }

/* Prefers the batch factor of a batched matrix product, which all tensors have, over a factor that
 * some tensors lack. So each expert's weights stay in place, whatever else the axis could cut. */
static void prefer_common(const Mesh *mesh, const Op *op, RuleUse *uses, NamedCut *cuts,
                          int count) {
    for (int i = 0; i < count && is_product(op); i++) {
        int rule, common = all_have(op, cuts[i].factor)
                               ? -1
                               : factor_beside(mesh, op, &cuts[i], 0, &rule);
        if (common < 0) continue;
        cuts[i].factor = common;
        if (uses) uses[rule].used = true;
    }
}

int factors_named(const Mesh *mesh, const Op *op, RuleUse *uses, NamedCut cuts[MESH_MOST]) {
    int count = 0;
    // rules for one factor of the operator come first, then rules for several factors
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < mesh->rules.count; i++) {
            const MeshRule *rule = &mesh->rules.at[i];
            int factor,
                named = has_axis(cuts, count, rule->axis) ? 0 : count_named(op, rule->dim, &factor);
            if (!named || (named > 1) != pass) continue;
            if (factor >= 0) cuts[count++] = (NamedCut){rule->axis, factor, rule->zigzag};
            if (uses && factor >= 0) uses[i].used = true;
            else if (uses) uses[i].refused = op;
        }
    prefer_common(mesh, op, uses, cuts, count);
    return count;
}
