/* Finds the operators that can be computed in chunks of rows (the region of chunk.h). */
#include "passes/chunk/chunk.h"

#include <string.h>

/* ---- selection ---- */

static bool is_large(const Chunked *region, const Value *value) {
    return type_elements(value->type) >= region->elements;
}

static bool made_within(const Chunked *region, const Value *value) {
    return value && value->kind == VALUE_RESULT && region->in[value->def->index];
}

/* Returns whether an operator reads a large value of the region. */
static bool reads_large(const Chunked *region, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (made_within(region, op->operands[k]) && is_large(region, op->operands[k])) return true;
    return false;
}

/* Returns whether an operator reads a result of a marked operator. */
static bool reads_any(const bool *of, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->kind == VALUE_RESULT &&
            of[op->operands[k]->def->index])
            return true;
    return false;
}

static void mark_makers(bool *needed, const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && op->operands[k]->kind == VALUE_RESULT)
            needed[op->operands[k]->def->index] = true;
}

/* Finds the operators that read large values, and the operators between two such operators. */
static void find_operators(Chunked *region) {
    const Module *module = region->module;
    region->in[region->product->index] = true;
    // 1: readers of large values
    for (int i = region->product->index + 1; i < module->ops.count; i++)
        region->in[i] = reads_large(region, module->ops.at[i]);
    // 2: operators that depend on the region, and operators on which the region depends
    for (int i = region->product->index + 1; i < module->ops.count; i++)
        region->behind[i] = reads_any(region->in, module->ops.at[i]) ||
                            reads_any(region->behind, module->ops.at[i]);
    for (int i = module->ops.count - 1; i >= 0; i--)
        if (region->in[i] || region->needed[i]) mark_makers(region->needed, module->ops.at[i]);
    // 3: operators of both kinds lie between two operators of the region
    for (int i = 0; i < module->ops.count; i++) {
        region->in[i] = region->in[i] || (region->behind[i] && region->needed[i]);
        region->behind[i] = region->behind[i] && !region->in[i];
        region->needed[i] = region->needed[i] && !region->in[i];
    }
}

static void mark(Chunked *region, const Value *value) {
    if (value) region->outside[value->id] = true;
}

static void find_outside(Chunked *region) {
    const Module *module = region->module;
    memset(region->outside, 0, sizeof *region->outside * (size_t)module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; !region->in[i] && k < module->ops.at[i]->operand_count; k++)
            mark(region, module->ops.at[i]->operands[k]);
    mark(region, module->loss);
    for (int i = 0; i < module->outputs.count; i++) mark(region, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        mark(region, param->gradient);
        mark(region, param->updated);
        for (int s = 0; s < param->state_count; s++) mark(region, param->states_updated[s]);
    }
}

/* Returns whether an operator, not a product, makes one large value that only the region reads. */
static bool gives_large(Chunked *region, const Op *op) {
    if (!region->needed[op->index] || op->result_count != 1 || !is_large(region, op->results[0]) ||
        op->def->rule->form == RULE_PRODUCT || op->section == SECTION_UPDATE)
        return false;
    find_outside(region);
    return !region->outside[op->results[0]->id];
}

/* Adds operators that make large values which only the region reads, for example the label
 * smoothing that is added to the gradient of logits. */
static void find_given(Chunked *region) {
    const Module *module = region->module;
    for (int i = module->ops.count - 1; i >= 0; i--)
        if (gives_large(region, module->ops.at[i])) {
            region->in[i] = region->given[i] = true;
            region->needed[i] = false;
        }
    find_outside(region);
}

/* ---- conditions for cutting ---- */

/* Writes to *dim the dimension of a tensor along a bound factor; -1: none. Returns false if there
 * are several, or the dimension has other factors, too. */
static bool dim_along(const BoundAccess *access, int factor, int *dim) {
    *dim = -1;
    for (int d = 0; d < access->rank; d++)
        for (int k = 0; k < access->dims[d].count; k++) {
            if (access->dims[d].factors[k] != factor) continue;
            if (*dim >= 0 || access->dims[d].count != 1) return false;
            *dim = d;
        }
    return true;
}

/* Sets region->factor of an operator to the bound factor that is cut: the factor of the rows of all
 * operands that depend on the product. Returns false if these factors differ. */
static bool find_factor(Chunked *region, const Op *op) {
    int found = -1;
    if (op == region->product)
        found = op->binding->results[0].dims[region->cut].count == 1
                    ? op->binding->results[0].dims[region->cut].factors[0]
                    : -1;
    for (int k = 0; op != region->product && k < op->operand_count; k++) {
        if (!made_within(region, op->operands[k]) || region->given[op->operands[k]->def->index])
            continue;
        int d = region->dim[op->operands[k]->id] - 1;
        const BoundDim *dim = d < 0 ? NULL : &op->binding->operands[k].dims[d];
        if (!dim || dim->count != 1 || (found >= 0 && dim->factors[0] != found)) return false;
        found = dim->factors[0];
    }
    region->factor[op->index] = found;
    return found >= 0;
}

/* Sets region->factor of an operator that does not depend on the product: the factor of the
 * dimension that a reader cuts. Returns false if no reader cuts one. */
static bool find_given_factor(Chunked *region, const Op *op) {
    const Module *module = region->module;
    int found = -1, dim;
    for (int i = op->index + 1; i < module->ops.count && found < 0; i++) {
        const Op *reader = module->ops.at[i];
        for (int k = 0; region->in[i] && k < reader->operand_count && found < 0; k++)
            if (reader->operands[k] == op->results[0] &&
                dim_along(&reader->binding->operands[k], region->factor[i], &dim) && dim >= 0 &&
                op->binding->results[0].dims[dim].count == 1)
                found = op->binding->results[0].dims[dim].factors[0];
    }
    region->factor[op->index] = found;
    return found >= 0;
}

/* Returns whether an expression or equation of the rule depends on the number of rows. */
static bool counts_rows(const Rule *rule, int factor) {
    bool counts = rule->body && expr_mentions(rule->body, EXPR_SIZE, factor);
    for (int e = 0; e < rule->equations.count; e++)
        counts = counts || expr_mentions(rule->equations.at[e].expr, EXPR_SIZE, factor);
    return counts;
}

/* Returns whether the rule computes rows independently or only adds them up. */
static bool rows_alone(const Op *op, int bound) {
    const Rule *rule = op->def->rule;
    int number = op->binding->factors[bound].factor;
    const Factor *factor = number < 0 ? NULL : &rule->factors[number];
    bool alone = factor && !factor->replicate && !factor->merge &&
                 factor->reduction != REDUCE_MAX && !counts_rows(rule, number);
    for (int r = 0; alone && r < rule->result_count; r++) alone = rule->results[r].place != number;
    return alone &&
           !(rule->causal.when && (rule->causal.from == number || rule->causal.to == number));
}

/* Returns whether a result without rows is a sum over them that can be accumulated. True if every
 * term has rows, and the result is f32 or f64. */
static bool adds_rows(const Op *op, int bound, const Value *result) {
    const Rule *rule = op->def->rule;
    int dim;
    bool adds = rule->kind != RULE_EQUATIONS &&
                rule->factors[op->binding->factors[bound].factor].reduction == REDUCE_SUM &&
                (result->type.dtype == DTYPE_F32 || result->type.dtype == DTYPE_F64);
    for (int k = 0; adds && rule->kind == RULE_BODY && k < op->operand_count; k++)
        adds = !op->operands[k] || (dim_along(&op->binding->operands[k], bound, &dim) && dim >= 0);
    return adds;
}

/* Returns false if the kernel uses offsets and sees dimension `dim` merged with others. */
static bool seen_alone(const Op *op, const BoundAccess *access, int bound, int dim) {
    bool alone = dim < 0 || op->def->rule->kind != RULE_CALL ||
                 !op->def->rule->factors[op->binding->factors[bound].factor].offset;
    for (int d = 0, seen = 0; !alone && d < access->rank; d++)
        if (access->dims[d].written == access->dims[dim].written && seen++) return false;
    return true;
}

static bool operands_fit(const Chunked *region, const Op *op, int bound) {
    int dim;
    for (int k = 0; k < op->operand_count; k++) {
        const Value *value = op->operands[k];
        if (!value) continue;
        if (!dim_along(&op->binding->operands[k], bound, &dim) || value->user_layout ||
            value->kind == VALUE_STATE || (value->kind == VALUE_PARAM && dim >= 0) ||
            !seen_alone(op, &op->binding->operands[k], bound, dim))
            return false;
        if (made_within(region, value) && dim != region->dim[value->id] - 1) return false;
    }
    return true;
}

/* Sets region->dim of an operator's results. Returns false if a result cannot be cut, or if an
 * operator outside of the region reads a large result. */
static bool results_fit(Chunked *region, const Op *op, int bound) {
    for (int r = 0; r < op->result_count; r++) {
        const Value *value = op->results[r];
        int dim;
        if (value->user_layout || !dim_along(&op->binding->results[r], bound, &dim) ||
            !seen_alone(op, &op->binding->results[r], bound, dim) ||
            (dim < 0 && !adds_rows(op, bound, value)) ||
            (is_large(region, value) && (dim < 0 || region->outside[value->id])))
            return false;
        region->dim[value->id] = dim + 1;
    }
    return true;
}

/* Returns whether an operator may be computed in chunks at all. */
static bool may_be_cut(const Module *module, const Op *op) {
    return op->section != SECTION_UPDATE && op->def != module->builtin->reshard &&
           op->def->rule->kind != RULE_VIEW && !op->source->recompute && !op->source->chunk;
}

/* Removes from the region an operator that does not depend on the product and cannot be cut. */
static void leave_out(Chunked *region, const Op *op) {
    region->in[op->index] = region->given[op->index] = false;
    region->needed[op->index] = true;
    region->dim[op->results[0]->id] = 0;
    find_outside(region);
}

/* Finds the factors along which operators that do not depend on the product are cut, starting from
 * their readers. Removes from the region the operators that cannot be cut. */
static void fit_given(Chunked *region) {
    const Module *module = region->module;
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        if (region->given[i] &&
            (!may_be_cut(module, op) || !find_given_factor(region, op) ||
             !rows_alone(op, region->factor[i]) || !results_fit(region, op, region->factor[i])))
            leave_out(region, op);
    }
}

/* Returns whether all operators of the region can be computed in chunks. */
static bool operators_fit(Chunked *region) {
    const Module *module = region->module;
    bool fit = true;
    for (int i = 0; i < module->ops.count && fit; i++)
        if (region->in[i] && !region->given[i])
            fit = may_be_cut(module, module->ops.at[i]) && find_factor(region, module->ops.at[i]) &&
                  rows_alone(module->ops.at[i], region->factor[i]) &&
                  results_fit(region, module->ops.at[i], region->factor[i]);
    if (fit) fit_given(region);
    for (int i = 0; i < module->ops.count && fit; i++)
        if (region->in[i]) fit = operands_fit(region, module->ops.at[i], region->factor[i]);
    return fit;
}

/* Returns whether an operator of the region reads the result of a product of the region other than
 * the first. Chunks of such a region would cut whole layers. */
static bool has_layers(const Chunked *region) {
    const Module *module = region->module;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; region->in[i] && k < module->ops.at[i]->operand_count; k++) {
            const Value *value = module->ops.at[i]->operands[k];
            if (made_within(region, value) && value->def != region->product &&
                value->def->def->rule->form == RULE_PRODUCT)
                return true;
        }
    return false;
}

/* Returns whether chunks save memory: results with rows read outside have at most elements / 2. */
static bool wins_memory(const Chunked *region) {
    const Module *module = region->module;
    int64_t given = 0;
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; region->in[i] && r < module->ops.at[i]->result_count; r++) {
            const Value *value = module->ops.at[i]->results[r];
            given += region->outside[value->id] && region->dim[value->id]
                         ? type_elements(value->type)
                         : 0;
        }
    return given <= region->elements / 2;
}

Chunked *chunked_of(Arena *arena, Module *module, Op *product, int dim) {
    Chunked *region = arena_new(arena, Chunked);
    int count = module->ops.count + 1, values = module->next_id;
    *region = (Chunked){.module = module,
                        .arena = arena,
                        .product = product,
                        .cut = dim,
                        .elements = type_elements(product->results[0]->type)};
    region->in = arena_array(arena, bool, count);
    region->given = arena_array(arena, bool, count);
    region->behind = arena_array(arena, bool, count);
    region->needed = arena_array(arena, bool, count);
    region->factor = arena_array(arena, int, count);
    region->dim = arena_array(arena, int, values);
    region->outside = arena_array(arena, bool, values);
    find_operators(region);
    find_given(region);
    int operators = 0;
    for (int i = 0; i < module->ops.count; i++) {
        operators += region->in[i];
        region->section = region->in[i] ? module->ops.at[i]->section : region->section;
    }
    return operators > 1 && !has_layers(region) && operators_fit(region) && wins_memory(region)
               ? region
               : NULL;
}
