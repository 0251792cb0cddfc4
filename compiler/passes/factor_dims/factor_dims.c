/* Pass factor_dims: splits merged dimensions into factors everywhere, so that axes can cut them.
 *
 *     before    qkv : [b, 2304] = linear(x, w : [768, 2304]); r = reshape(qkv, [b, 3, 12, 64])
 *     after     qkv : [b, 3, 12, 64] = linear(x, w : [768, 3, 12, 64])
 *
 * An axis can then cut the 12 heads, although the source multiplies by one matrix.
 *
 * Requires: bindings as ir_bind makes them.
 *
 * Leaves:
 * - every dimension of every tensor is one bound factor. A reshape or a merged dimension whose
 *   factors do not match the rest of the model keeps dimensions without a factor, which no axis
 *   cuts;
 * - no dimensions of extent 1, and no reshapes that only regroup factors;
 * - names on factors; layouts that the source writes refer to the new dimensions. */
#include "passes/microbatch/rows_per_microbatch.h"
#include "passes/factor_dims/factor_dims.h"
#include "passes/pass_manager.h"

#include <string.h>

/* A value for which the source writes a layout. */
typedef struct Written {
    Value *value;
    Type source;                // the value's type in the source
    int8_t origin[IR_MAX_RANK]; // by new dimension: the dimension of the source that it is part of
} Written;

typedef struct Factoring {
    Module *module;
    Arena *arena; // scratch
    Classes *classes;
    int devices;          // number of devices of the strategy
    const DimName *names; // by atom
    Intern *shared;       // interned data, in the module's arena
    Value **replacement;  // by value id: the value that replaces a dropped reshape's result
    Array(Written) written;
} Factoring;

/* ---- values ---- */

/* Writes to atoms[] the atoms of all dimensions of a value in order. Returns how many there are. */
static int value_atoms(Factoring *factoring, const Value *value, int *atoms) {
    int count = 0, node = factoring->classes->value_node[value->id];
    for (int d = 0; d < value->type.rank; d++)
        for (int j = 0; j < classes_atoms(factoring->classes, node + d); j++)
            atoms[count++] = classes_atom(factoring->classes, node + d, j);
    return count;
}

/* Writes to origin[] the old dimension of each new dimension of a value. */
static void find_origins(Factoring *factoring, const Value *value, int8_t *origin) {
    int count = 0, node = factoring->classes->value_node[value->id];
    for (int d = 0; d < value->type.rank; d++)
        for (int j = 0; j < classes_atoms(factoring->classes, node + d); j++)
            origin[count++] = (int8_t)d;
}

static void factor_value(Factoring *factoring, Value *value) {
    int atoms[IR_MAX_RANK], count = value_atoms(factoring, value, atoms);
    if (value->user_layout) {
        Written written = {.value = value, .source = value->type};
        find_origins(factoring, value, written.origin);
        array_push(factoring->arena, &factoring->written, written);
    }
    int64_t extent[IR_MAX_RANK];
    Dim dims[IR_MAX_RANK];
    bool named = false;
    memset(dims, 0, sizeof dims);
    for (int d = 0; d < count; d++) {
        extent[d] = factoring->classes->atom_extent[atoms[d]];
        dims[d].count = factoring->names[atoms[d]].name != NULL;
        dims[d].names = dims[d].count ? &factoring->names[atoms[d]] : NULL;
        if (atoms[d] == factoring->classes->micro_atom) value->micro = (Micro){MICRO_ROWS, d};
        named |= dims[d].count;
    }
    value->type.rank = count;
    value->type.extent = intern(factoring->shared, extent, sizeof *extent * (size_t)count);
    value->dims = named ? intern(factoring->shared, dims, sizeof *dims * (size_t)count) : NULL;
}

/* ---- bindings ---- */

typedef struct Binder {
    Factoring *factoring;
    const Op *op;
    int factor_count;
    BoundFactor factors[IR_MAX_FACTORS];
    int first[IR_MAX_FACTORS]; // by old bound factor: the first of its new factors
} Binder;

static int add_factor(Binder *binder, int factor, int64_t extent) {
    if (binder->factor_count == IR_MAX_FACTORS)
        BUG("too many factors in a call of %s", binder->op->def->name);
    binder->factors[binder->factor_count] = (BoundFactor){.factor = factor, .extent = extent};
    return binder->factor_count++;
}

/* Replaces every old bound factor by its atoms. */
static void factor_factors(Binder *binder) {
    const Classes *classes = binder->factoring->classes;
    for (int f = 0; f < binder->op->binding->factor_count; f++) {
        int node = classes->op_node[binder->op->index] + f;
        binder->first[f] = binder->factor_count;
        for (int j = 0; j < classes_atoms(classes, node); j++)
            add_factor(binder, binder->op->binding->factors[f].factor,
                       classes->atom_extent[classes_atom(classes, node, j)]);
    }
}

/* Returns whether the cuts of a merged dimension and its factors clash (opaque: equal_dims.h). */
static bool is_opaque(const Binder *binder, int node) {
    const Classes *classes = binder->factoring->classes;
    for (int i = classes->op_equation[binder->op->index]; i < classes->equations.count; i++) {
        const Equation *equation = &classes->equations.at[i];
        if (equation->op != binder->op) break;
        if (equation->left[0] == node) return equation->opaque;
    }
    return false;
}

/* Writes to factors[] the factor of each new dimension into which an old one splits; -1 where the
 * new dimension has no factor, so that no axis cuts it. Returns how many there are. */
static int dim_factors(const Binder *binder, const BoundDim *dim, int node, int *factors) {
    const Classes *classes = binder->factoring->classes;
    int count = 0;
    if (dim->count != 1 && is_opaque(binder, node)) {
        for (int j = 0; j < classes_atoms(classes, node); j++) factors[count++] = -1;
        return count;
    }
    for (int k = 0; k < dim->count; k++) {
        int parts = classes_atoms(classes, classes->op_node[binder->op->index] + dim->factors[k]);
        for (int j = 0; j < parts; j++) factors[count++] = binder->first[dim->factors[k]] + j;
    }
    return count;
}

/* Returns whether the kernel sees the new factors of an old dimension as dimensions of their own.
 * True for an ellipsis factor with clause `offset`. */
static bool shows_factors(const Binder *binder, const BoundDim *dim) {
    const Op *op = binder->op;
    int factor = dim->count == 1 ? op->binding->factors[dim->factors[0]].factor : -1;
    return factor >= 0 && op->def->rule->factors[factor].ellipsis &&
           op->def->rule->factors[factor].offset;
}

static BoundAccess factor_access(Binder *binder, const Value *value, const BoundAccess *old) {
    Factoring *factoring = binder->factoring;
    BoundAccess access = *old;
    BoundDim dims[IR_MAX_RANK];
    memset(dims, 0, sizeof dims);
    int rank = 0, more = 0;
    for (int d = 0; value && d < old->rank; d++) {
        int factors[IR_MAX_RANK];
        int count = dim_factors(binder, &old->dims[d],
                                factoring->classes->value_node[value->id] + d, factors);
        bool shown = shows_factors(binder, &old->dims[d]) &&
                     old->written_rank + more + count - 1 <= IR_MAX_RANK;
        for (int j = 0; j < count; j++, rank++) {
            dims[rank].written = old->dims[d].written + more + (shown ? j : 0);
            dims[rank].count = factors[j] >= 0;
            dims[rank].factors =
                factors[j] >= 0 ? intern(factoring->shared, &factors[j], sizeof(int)) : NULL;
        }
        more += shown && count > 1 ? count - 1 : 0;
    }
    access.rank = rank;
    access.written_rank += more;
    access.dims = intern(factoring->shared, dims, sizeof *dims * (size_t)rank);
    return access;
}

/* Returns the factored accesses of operands or results, interned. */
static const BoundAccess *factor_accesses(Binder *binder, Value *const *values,
                                          const BoundAccess *old, int count) {
    BoundAccess *accesses = arena_array(binder->factoring->arena, BoundAccess, count);
    for (int k = 0; k < count; k++) {
        BoundAccess access = factor_access(binder, values[k], &old[k]);
        accesses[k].access = access.access;
        accesses[k].rank = access.rank;
        accesses[k].written_rank = access.written_rank;
        accesses[k].dims = access.dims;
    }
    return intern(binder->factoring->shared, accesses, sizeof *accesses * (size_t)count);
}

static const Binding *finish_binding(Binder *binder, const BoundAccess *operands,
                                     const BoundAccess *results) {
    Intern *shared = binder->factoring->shared;
    Binding *binding = arena_new(binder->factoring->arena, Binding);
    binding->factor_count = binder->factor_count;
    binding->operand_count = binder->op->operand_count;
    binding->result_count = binder->op->result_count;
    binding->factors =
        intern(shared, binder->factors, sizeof(BoundFactor) * (size_t)binder->factor_count);
    binding->operands = operands;
    binding->results = results;
    return intern(shared, binding, sizeof *binding);
}

static const Binding *factor_binding(Factoring *factoring, const Op *op) {
    Binder *binder = arena_new(factoring->arena, Binder);
    binder->factoring = factoring;
    binder->op = op;
    factor_factors(binder);
    const BoundAccess *operands =
        factor_accesses(binder, op->operands, op->binding->operands, op->operand_count);
    const BoundAccess *results =
        factor_accesses(binder, op->results, op->binding->results, op->result_count);
    return finish_binding(binder, operands, results);
}

/* ---- reshapes ---- */

/* Makes the access of one side of a reshape. No axis cuts dimension d if factor[d] is -1. */
static BoundAccess view_access(Binder *binder, const int *factor, int count) {
    Factoring *factoring = binder->factoring;
    BoundDim dims[IR_MAX_RANK];
    memset(dims, 0, sizeof dims);
    for (int d = 0; d < count; d++) {
        dims[d].written = d;
        dims[d].count = factor[d] >= 0;
        dims[d].factors =
            factor[d] >= 0 ? intern(factoring->shared, &factor[d], sizeof(int)) : NULL;
    }
    return (BoundAccess){.rank = count,
                         .written_rank = count,
                         .dims = intern(factoring->shared, dims, sizeof *dims * (size_t)count)};
}

/* Makes the binding of a reshape: atoms with which both sides begin or end become factors. */
static const Binding *view_binding(Factoring *factoring, const Op *op) {
    Binder *binder = arena_new(factoring->arena, Binder);
    binder->factoring = factoring;
    binder->op = op;
    int x[IR_MAX_RANK], y[IR_MAX_RANK], x_factor[IR_MAX_RANK], y_factor[IR_MAX_RANK];
    int m = value_atoms(factoring, op->operands[0], x),
        n = value_atoms(factoring, op->results[0], y), first = 0, last = 0;
    memset(x_factor, -1, sizeof x_factor);
    memset(y_factor, -1, sizeof y_factor);
    while (first < m && first < n && x[first] == y[first]) {
        x_factor[first] = y_factor[first] =
            add_factor(binder, -1, factoring->classes->atom_extent[x[first]]);
        first++;
    }
    while (last < m - first && last < n - first && x[m - 1 - last] == y[n - 1 - last]) {
        x_factor[m - 1 - last] = y_factor[n - 1 - last] =
            add_factor(binder, -1, factoring->classes->atom_extent[x[m - 1 - last]]);
        last++;
    }
    BoundAccess *sides = arena_array(factoring->arena, BoundAccess, 2);
    sides[0] = view_access(binder, x_factor, m);
    sides[1] = view_access(binder, y_factor, n);
    return finish_binding(binder, intern(factoring->shared, &sides[0], sizeof *sides),
                          intern(factoring->shared, &sides[1], sizeof *sides));
}

/* Returns whether a reshape only regroups: equal atoms on both sides, no layout in the source. */
static bool only_regroups(Factoring *factoring, const Op *op) {
    int x[IR_MAX_RANK], y[IR_MAX_RANK];
    int m = value_atoms(factoring, op->operands[0], x),
        n = value_atoms(factoring, op->results[0], y);
    return m == n && !memcmp(x, y, sizeof *x * (size_t)n) && !op->results[0]->user_layout;
}

static Value *replaced(const Factoring *factoring, Value *value) {
    return value && factoring->replacement[value->id] ? factoring->replacement[value->id] : value;
}

/* Removes reshapes that only regroup, and replaces their results by their operands. */
static void drop_reshapes(Factoring *factoring) {
    Module *module = factoring->module;
    int kept = 0;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        for (int k = 0; k < op->operand_count; k++)
            op->operands[k] = replaced(factoring, op->operands[k]);
        if (op->def->rule->kind == RULE_VIEW && only_regroups(factoring, op))
            factoring->replacement[op->results[0]->id] = op->operands[0];
        else module->ops.at[kept++] = op;
    }
    module->ops.count = kept;
    module->loss = replaced(factoring, module->loss);
    for (int i = 0; i < module->outputs.count; i++)
        module->outputs.at[i].value = replaced(factoring, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++)
        module->params.at[i]->gradient = replaced(factoring, module->params.at[i]->gradient);
}

/* ---- limits ---- */

static int atoms_of(const Factoring *factoring, int node, int count) {
    int atoms = 0;
    for (int i = 0; i < count; i++) atoms += classes_atoms(factoring->classes, node + i);
    return atoms;
}

static void check_value(Factoring *factoring, Value *value) {
    if (atoms_of(factoring, factoring->classes->value_node[value->id], value->type.rank) >
        IR_MAX_RANK)
        diag_error(factoring->module->diag, value->at,
                   "reshapes split this value into more than %d dimensions", IR_MAX_RANK);
    if (type_elements(value->type) >
        INT64_MAX / 4 / dtype_size(value->type.dtype) / factoring->devices)
        diag_error(factoring->module->diag, value->at,
                   "this tensor has too many elements for the %d devices of the strategy",
                   factoring->devices);
}

static void check_op(Factoring *factoring, const Op *op) {
    bool view = op->def->rule->kind == RULE_VIEW;
    if (!view && atoms_of(factoring, factoring->classes->op_node[op->index],
                          op->binding->factor_count) > IR_MAX_FACTORS)
        diag_error(factoring->module->diag, op->at,
                   "reshapes split the dimensions of this call of %s into more than %d factors",
                   op->def->name, IR_MAX_FACTORS);
}

/* ---- the pass ---- */

/* Calls `visit` for every value of the module. */
static void each_value(Factoring *factoring, void (*visit)(Factoring *, Value *)) {
    Module *module = factoring->module;
    for (int i = 0; i < module->params.count; i++) {
        Parameter *parameter = module->params.at[i];
        visit(factoring, parameter->value);
        for (int s = 0; s < parameter->state_count; s++) visit(factoring, parameter->states[s]);
    }
    for (int i = 0; i < module->inputs.count; i++) visit(factoring, module->inputs.at[i]);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            visit(factoring, module->ops.at[i]->results[r]);
}

/* Returns whether all values and calls are within the compiler's limits; reports those beyond. */
static bool check_limits(Factoring *factoring) {
    each_value(factoring, check_value);
    for (int i = 0; i < factoring->module->ops.count; i++)
        check_op(factoring, factoring->module->ops.at[i]);
    return !diag_errors(factoring->module->diag);
}

static void factor_ops(Factoring *factoring) {
    Module *module = factoring->module;
    const Binding **bindings = arena_array(factoring->arena, const Binding *, module->ops.count);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bindings[i] = op->def->rule->kind == RULE_VIEW ? view_binding(factoring, op)
                                                       : factor_binding(factoring, op);
    }
    for (int i = 0; i < module->ops.count; i++) module->ops.at[i]->binding = bindings[i];
}

/* Replaces outputs that are parameters which change by copies made before all other operators. */
static void keep_outputs(Module *module) {
    const OpDef *copy = module_def(module, rule_inserted(module->arena, "copy", "y[i..] = x[i..]"));
    for (int i = 0; i < module->outputs.count; i++) {
        Output *output = &module->outputs.at[i];
        if (output->value->kind != VALUE_PARAM || !param_changes(module, output->value)) continue;
        Op place = op_place_at(output->value->at),
           *op = ir_op_like(module, &(OpCall){copy, &output->value, 1, NULL}, &place);
        op->results[0]->dims = output->value->dims;
        op->results[0]->name = output->value->name;
        array_push(module->arena, &module->ops, op);
        memmove(module->ops.at + 1, module->ops.at,
                sizeof *module->ops.at * (size_t)(module->ops.count - 1));
        module->ops.at[0] = op;
        output->value = op->results[0];
    }
}

static void factor_layouts(Factoring *factoring) {
    for (int i = 0; i < factoring->written.count; i++) {
        Written *written = &factoring->written.at[i];
        written->value->user_layout =
            factor_written(factoring->module, written->value, written->source, written->origin);
    }
}

/* Makes the pipeline templates, with the strategy's micro-batches. Returns false after an error. */
static bool cut_batch(Factoring *factoring, const LengthVariant *variants) {
    Module *module = factoring->module;
    const Classes *classes = factoring->classes;
    int64_t rows = classes->batch_rows,
            unit = classes->micro_atom < 0 ? 1 : rows / classes->atom_extent[classes->micro_atom];
    bool fits = microbatch_bodies(module, variants, rows, unit);
    if (!microbatch_loops(module)) *module->templates = (PipelineTemplates){0};
    module->templates->row_unit = unit;
    if (fits) batches_check(module, classes);
    return fits && !diag_errors(module->diag);
}

static void factor_module(Factoring *factoring) {
    Module *module = factoring->module;
    factoring->names = atom_names(module->arena, module, factoring->classes);
    factoring->shared = module_interned(module);
    factoring->replacement = arena_array(factoring->arena, Value *, module->next_id);
    factor_ops(factoring);
    drop_reshapes(factoring);
    each_value(factoring, factor_value);
    keep_outputs(module);
    factor_layouts(factoring);
    ir_number(module);
}

void pass_factor_dims(Module *module, const PassContext *context) {
    Factoring factoring = {.module = module, .arena = arena_create()};
    factoring.devices = module->strategy ? strategy_device_count(module->strategy) : 1;
    ir_number(module);
    factoring.classes = classes_create(factoring.arena, module);
    if (cut_batch(&factoring, context->links->variants) && check_limits(&factoring))
        factor_module(&factoring);
    arena_destroy(factoring.arena);
}
