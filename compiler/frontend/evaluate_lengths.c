/* Evaluates models with the `lengths` to which a pipeline reads rows; sets padding values. */
#include "frontend/models.h"

#include "frontend/pragma/pragma.h"
#include "frontend/strategies.h"
#include "ir/unit.h"
#include "strategy/strategy.h"

#include <string.h>

static const char *padding_name(const Pragma *pragma, int i) { return pragma->names.at[i]; }

void padding_give(const CUnit *unit, Module *module) {
    for (int i = 0; i < unit->pragmas.count; i++) {
        const Pragma *pragma = unit->pragmas.at[i];
        for (int k = 0; pragma->kind == PRAGMA_PADDING && k < pragma->names.count; k++) {
            Value *input = module_input(module, padding_name(pragma, k));
            if (input) input->padding = pragma->padding;
        }
    }
}

static void check_name(const CUnit *unit, const Pragma *pragma, int k, Module *const *modules,
                       int count) {
    Array(const char *) names = {0};
    for (int m = 0; m < count; m++) {
        const Value *input = module_input(modules[m], padding_name(pragma, k));
        bool integer = input && (input->type.dtype == DTYPE_I32 || input->type.dtype == DTYPE_I64);
        double value = *pragma->padding;
        if (integer && (value != (double)(int64_t)value ||
                        (input->type.dtype == DTYPE_I32 && value != (double)(int32_t)value))) {
            diag_error(unit->diag, pragma->name_at.at[k],
                       "the input \"%s\" is of type %s, which does not have the value %g",
                       input->name, dtype_name(input->type.dtype), value);
            return;
        }
        if (input) return;
        for (int i = 0; i < modules[m]->inputs.count; i++)
            array_push(unit->arena, &names, modules[m]->inputs.at[i]->name);
    }
    diag_error(unit->diag, pragma->name_at.at[k], "no model here has an input \"%s\"",
               padding_name(pragma, k));
    diag_suggest(unit->diag, pragma->name_at.at[k], padding_name(pragma, k), names.at, names.count);
}

void padding_check(const CUnit *unit, Module *const *modules, int count) {
    for (int i = 0; count && i < unit->pragmas.count; i++) {
        const Pragma *pragma = unit->pragmas.at[i];
        for (int k = 0; pragma->kind == PRAGMA_PADDING && k < pragma->names.count; k++)
            check_name(unit, pragma, k, modules, count);
    }
}

/* Checks that `other`, with a pipeline's lengths, has module's parameters; false after an error. */
static bool check_parameters(const Module *module, const Module *other, Position at) {
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *own = module->params.at[i],
                        *its = i < other->params.count ? other->params.at[i] : NULL;
        if (its && !strcmp(own->name, its->name) && !strcmp(own->shape, its->shape) &&
            own->init == its->init && own->a == its->a)
            continue;
        diag_error(module->diag, at,
                   "the parameter \"%s\" is another one with the lengths of this pipeline: %s with "
                   "the strategy's, %s here",
                   own->name, own->shape, its ? its->shape : "none");
        diag_note(module->diag, own->value->at,
                  "it is declared here; give it a size that depends on no shape variable");
        return false;
    }
    return true;
}

/* Compares an input with `own`, the same input with a pipeline's lengths. Sets *cut if dimensions
 * differ. False after an error: only dimensions after the first may differ, and must be shorter. */
static bool check_input(const Module *module, const Value *input, const Value *own, Position at,
                        bool *cut) {
    for (int d = 0; d < input->type.rank; d++) {
        int64_t whole = input->type.extent[d],
                length = d < own->type.rank ? own->type.extent[d] : -1;
        if (length == whole) continue;
        *cut = true;
        if (d && length >= 0 && length < whole && own->type.rank == input->type.rank) continue;
        diag_error(
            module->diag, at,
            d ? "with these lengths the input \"%s\" is larger in dimension %d, or has others"
              : "these lengths change the rows of the input \"%s\"; how many rows a pipeline has, "
                "rows(N) says",
            input->name, d);
        diag_note(module->diag, input->at, "the input is here");
        return false;
    }
    return true;
}

static bool check_inputs(const Module *module, const Module *other, const ShapeValue *length) {
    bool cut = false, padded = false;
    for (int i = 0; i < module->inputs.count; i++) {
        bool own = false;
        const Value *input = module->inputs.at[i], *its = module_input(other, input->name);
        if (!its || its->index != i) {
            diag_error(module->diag, length->at,
                       "with these lengths the model has other inputs: \"%s\" is none of them, or "
                       "not in its place",
                       input->name);
            return false;
        }
        if (!check_input(module, input, its, length->at, &own)) return false;
        cut |= own;
        padded |= own && input->padding;
    }
    if (!cut)
        diag_error(module->diag, length->at,
                   "\"%s\" is no dimension of the data: no input of %s becomes shorter by it",
                   length->name, module->name);
    else if (!padded)
        diag_error(module->diag, length->at,
                   "nothing says what a row may lose behind this length; \"#pragma hspmd "
                   "padding(targets: -100)\" says what stands for nothing in an input");
    return cut && padded;
}

static const Type *input_types(CUnit *unit, const Module *module) {
    Type *types = arena_array(unit->arena, Type, module->inputs.count);
    for (int i = 0; i < module->inputs.count; i++) types[i] = module->inputs.at[i]->type;
    return types;
}

/* Returns the model with the lengths of pipeline p, evaluated once for all pipelines with these
 * lengths; `before` has the variants of earlier pipelines. The module is NULL after an error. */
static LengthVariant variant_of(CUnit *unit, const Module *module, const LengthVariant *before,
                                int p, const Evaluator *evaluator) {
    const Pipeline *pipeline = &module->strategy->pipelines.at[p];
    for (int i = 0; i < p; i++)
        if (before[i].module &&
            shapes_same(&module->strategy->pipelines.at[i].lengths, &pipeline->lengths))
            return before[i];
    Module *other = evaluator->evaluate(unit, module, evaluator->data);
    if (diag_errors(unit->diag) || !check_parameters(module, other, pipeline->lengths.at[0].at) ||
        !check_inputs(module, other, &pipeline->lengths.at[0]))
        return (LengthVariant){0};
    return (LengthVariant){other, input_types(unit, other)};
}

/* Checks that each of several lengths of a pipeline, taken alone, shortens an input and changes no
 * parameter. Returns false after an error. */
static bool check_each(CUnit *unit, const Module *module, int p, const Evaluator *evaluator) {
    Pipeline pipeline = module->strategy->pipelines.at[p];
    ShapeValues all = pipeline.lengths;
    bool good = true;
    for (int i = 0; good && all.count > 1 && i < all.count; i++) {
        pipeline.lengths.at = &all.at[i];
        pipeline.lengths.count = 1;
        if (!strategies_give_lengths(unit, module->strategy, &pipeline, &good)) continue;
        const Module *other = evaluator->evaluate(unit, module, evaluator->data);
        good = !diag_errors(unit->diag) && check_parameters(module, other, all.at[i].at) &&
               check_inputs(module, other, &all.at[i]);
    }
    return good;
}

void lengths_evaluate(CUnit *unit, const Module *module, ModuleLinks *links,
                      const Evaluator *evaluator) {
    const Strategy *strategy = module->strategy;
    bool good = true;
    if (module->kind != MODULE_TRAIN) return;
    links->input_types = input_types(unit, module);
    links->variants = arena_array(unit->arena, LengthVariant, strategy->pipelines.count);
    for (int p = 0; good && p < strategy->pipelines.count; p++) {
        LengthVariant *own = &links->variants[p];
        good = check_each(unit, module, p, evaluator);
        if (good && strategies_give_lengths(unit, strategy, &strategy->pipelines.at[p], &good)) {
            *own = variant_of(unit, module, links->variants, p, evaluator);
            good = own->module != NULL;
        }
    }
}
