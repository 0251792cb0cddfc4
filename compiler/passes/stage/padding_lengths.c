/* Padding lengths: operators of pipelines that read their rows only up to shorter lengths.
 *
 *     pipeline lengths(seq: 512) of a model with seq 1024
 *     x : [8, 1024] in the padded batch, [8, 512] in this pipeline
 *
 * The frontend evaluates the model again with these lengths (ModuleLinks.variants), and the variant
 * goes through the same passes. So operators i of both correspond. A pipeline's tensors are leading
 * parts of the padded batch's tensors. Bindings and constants, such as the number of elements that
 * a mean divides by, keep the values of the padded batch. */
#include "passes/stage/stage.h"

#include <string.h>

static bool same_shape(const Value *a, const Value *b) {
    return a->type.rank == b->type.rank &&
           !memcmp(a->type.extent, b->type.extent, sizeof *a->type.extent * (size_t)a->type.rank);
}

/* Returns whether two operators are the same except for extents. */
static bool same_operator(const Op *op, const Op *other) {
    bool same = !strcmp(op->def->name, other->def->name) &&
                op->operand_count == other->operand_count &&
                op->result_count == other->result_count && op->loop == other->loop &&
                op->def->attr_count == other->def->attr_count;
    for (int k = 0; same && k < op->operand_count; k++)
        same = !op->operands[k] == !other->operands[k] &&
               (!op->operands[k] || op->operands[k]->id == other->operands[k]->id);
    for (int r = 0; same && r < op->result_count; r++)
        same = op->results[r]->type.rank == other->results[r]->type.rank &&
               micro_equal(op->results[r]->micro, other->results[r]->micro);
    return same;
}

/* Returns whether an operator accumulates or collects over all pipelines. */
static bool is_common(const Module *module, const Op *op) {
    return op->def == module->builtin->accumulate || op->def == module->builtin->collect;
}

/* Returns whether operator i is the same in both modules, and results to which all pipelines
 * contribute have equal shapes. Reports an error otherwise. */
static bool operators_fit(const Module *module, const Module *other, int i, Position at) {
    const Op *op = module->ops.at[i], *own = i < other->ops.count ? other->ops.at[i] : NULL;
    if (!own || !same_operator(op, own)) {
        diag_error(
            module->diag, op->at,
            "with the lengths of a pipeline, %s goes another way here than with the strategy's",
            module->name);
        diag_note(
            module->diag, at,
            "the lengths are here; what the model computes may depend on them in its shapes alone");
        return false;
    }
    for (int r = 0; is_common(module, op) && r < op->result_count; r++)
        if (!same_shape(op->results[r], own->results[r])) {
            diag_error(module->diag, op->at,
                       "what is made here is put together from all pipelines, but its shape "
                       "depends on their lengths");
            diag_note(
                module->diag, at,
                "the lengths are here; give all pipelines the same, or make this value row by row");
            return false;
        }
    return true;
}

/* Returns whether each source dimension that is shorter in the variant is one dimension of the
 * factored input. A pipeline then reads the first elements of that dimension. */
static bool stays_whole(const Type given[2], Type refined) {
    int at = 0;
    for (int d = 0; d < given[0].rank; d++) {
        int64_t elements = 1, whole = given[0].extent[d];
        int first = at;
        while (at < refined.rank && elements < whole) elements *= refined.extent[at++];
        if (given[1].extent[d] != whole && (at != first + 1 || elements != whole)) return false;
    }
    return true;
}

/* Returns whether the shorter dimensions of each input stay whole; else reports an input. */
static bool inputs_fit(const Module *module, const ModuleLinks *links, const LengthVariant *variant,
                       Position at) {
    for (int i = 0; i < module->inputs.count; i++) {
        const Value *input = module->inputs.at[i], *own = variant->module->inputs.at[i];
        Type given[2] = {links->input_types[i], variant->input_types[i]};
        if (same_shape(input, own) ||
            (input->type.rank == own->type.rank && stays_whole(given, input->type)))
            continue;
        diag_error(module->diag, at,
                   "the model takes such dimensions of the input \"%s\" apart, so pipelines cannot "
                   "read them only so far",
                   input->name);
        diag_note(module->diag, input->at, "the input is here");
        return false;
    }
    return true;
}

static bool shorter_fits(const Module *module, const ModuleLinks *links,
                         const LengthVariant *variant, Position at) {
    const Module *other = variant->module;
    bool fits = inputs_fit(module, links, variant, at);
    for (int i = 0; fits && i < module->params.count; i++)
        if (!same_shape(module->params.at[i]->value, other->params.at[i]->value)) {
            diag_error(module->diag, at,
                       "with these lengths the parameter \"%s\" is taken apart in another way",
                       module->params.at[i]->name);
            fits = false;
        }
    // an operator with another name shows the difference in the source best, so report it first
    for (int i = 0; fits && i < module->ops.count && i < other->ops.count; i++)
        if (strcmp(module->ops.at[i]->def->name, other->ops.at[i]->def->name))
            fits = operators_fit(module, other, i, at);
    for (int i = 0; fits && i < module->ops.count; i++) fits = operators_fit(module, other, i, at);
    if (fits && other->ops.count != module->ops.count) {
        diag_error(module->diag, at,
                   "with these lengths %s has %d operators, and %d with the strategy's",
                   module->name, other->ops.count, module->ops.count);
        fits = false;
    }
    return fits;
}

bool lengths_fit(const Module *module, const ModuleLinks *links) {
    for (int r = 0; r < module->templates->runs.count && module->kind == MODULE_TRAIN; r++) {
        const PipelineRun *run = &module->templates->runs.at[r];
        const Pipeline *pipeline = &module->strategy->pipelines.at[run->pipeline];
        if (!pipeline->lengths.count) continue;
        if (!links->variants) {
            diag_error(
                module->diag, pipeline->lengths.at[0].at,
                "the model with these lengths is known to the source alone, not to this text");
            return false;
        }
        const LengthVariant *other = &links->variants[run->pipeline];
        Position at = pipeline->lengths.at[0].at;
        if (other->module && template_first_run(module->templates, run->template_index) == run &&
            (!shorter_fits(module, links, other, at) ||
             !padding_is_safe(module, other->module, at)))
            return false;
    }
    return true;
}

void take_lengths(const Staging *staging, const Op *op, Op *copy) {
    if (!staging->shorter) return;
    const Op *own = staging->shorter->ops.at[op->index];
    Attr *attrs =
        arena_copy(staging->module->arena, op->attrs, sizeof *attrs * (size_t)op->def->attr_count);
    for (int a = 0; a < op->def->attr_count; a++)
        if (opdef_attr_kind(op->def, a) == PARAM_INT || opdef_attr_kind(op->def, a) == PARAM_SHAPE)
            attrs[a] = own->attrs[a];
    copy->attrs = attrs;
    for (int r = 0; r < op->result_count; r++)
        copy->results[r]->type.extent = own->results[r]->type.extent;
}
