/* Decides how many rows each pipeline's micro-batches have. Refuses a batch that does not fit. */
#include "passes/microbatch/rows_per_microbatch.h"
#include "strategy/layer_placement.h"

#include <string.h>

const Value *microbatch_input(const Module *module) {
    for (int i = 0; i < module->inputs.count; i++)
        if (module->inputs.at[i]->type.rank) return module->inputs.at[i];
    return NULL;
}

/* Returns how many pipelines run: all in training, else only the first; 0 without a strategy. */
static int pipeline_count(const Module *module) {
    return !module->strategy              ? 0
           : module->kind == MODULE_TRAIN ? module->strategy->pipelines.count
                                          : 1;
}

bool microbatch_cuts(const Module *module) {
    int64_t all = 0;
    for (int i = 0; i < pipeline_count(module) && module->kind == MODULE_TRAIN; i++)
        all += module->strategy->pipelines.at[i].microbatches;
    return all > 1 || (all && strategy_has_lengths(module->strategy));
}

bool microbatch_loops(const Module *module) {
    return microbatch_cuts(module) ||
           (module->strategy && module->strategy->pipelines.at[0].stages.count > 1);
}

static bool same_axis(const MeshAxis *a, const MeshAxis *b) {
    if (!text_same(a->name, b->name) || a->count != b->count || !a->weights != !b->weights)
        return false;
    return !a->weights || !memcmp(a->weights, b->weights, sizeof *a->weights * (size_t)a->count);
}

static bool same_range(const LayerRange *a, const LayerRange *b) {
    return text_same(a->tower, b->tower) && text_same(a->name, b->name) && a->first == b->first &&
           a->last == b->last;
}

static bool same_stage(const Stage *a, const Stage *b) {
    bool same = a->devices.count == b->devices.count && a->mesh.count == b->mesh.count &&
                a->layers.count == b->layers.count && text_same(a->recompute, b->recompute);
    for (int i = 0; same && i < a->mesh.count; i++)
        same = same_axis(&a->mesh.at[i], &b->mesh.at[i]);
    for (int i = 0; same && i < a->layers.count; i++)
        same = same_range(&a->layers.at[i], &b->layers.at[i]);
    return same;
}

static bool same_stages(const Pipeline *a, const Pipeline *b) {
    bool same = a->stages.count == b->stages.count;
    for (int i = 0; same && i < a->stages.count; i++)
        same = same_stage(&a->stages.at[i], &b->stages.at[i]);
    return same;
}

/* Returns the rows of a pipeline's micro-batch: as written, else an equal part of the batch. */
static int64_t rows_of(const Module *module, const Pipeline *pipeline, int64_t batch,
                       int64_t microbatches) {
    return module->kind != MODULE_TRAIN || !pipeline->rows ? batch / microbatches : pipeline->rows;
}

/* Returns whether each pipeline without rows(N) is alone and divides the batch; else reports it. */
static bool check_even(const Module *module, int64_t batch) {
    const Strategy *strategy = module->strategy;
    for (int i = 0; i < strategy->pipelines.count; i++) {
        const Pipeline *pipeline = &strategy->pipelines.at[i];
        if (pipeline->rows) continue;
        if (strategy->pipelines.count > 1)
            diag_error(module->diag, pipeline->at,
                       "of several pipelines each says how many rows a micro-batch has: rows(N)");
        else if (batch % pipeline->microbatches)
            diag_error(module->diag, pipeline->at,
                       "a batch of %lld rows does not divide into %lld micro-batches",
                       (long long)batch, (long long)pipeline->microbatches);
    }
    return !diag_errors(module->diag);
}

/* Returns whether the pipelines cover the batch, if there is one; reports an error otherwise. */
static bool check_rows(const Module *module, int64_t batch) {
    if (module->kind != MODULE_TRAIN || (!batch && !microbatch_cuts(module))) return true;
    if (batch)
        return strategy_check_rows(module->diag, module->strategy, batch) &&
               check_even(module, batch);
    diag_error(module->diag, module->strategy->pipelines.at[0].at,
               "the strategy asks for %lld micro-batches, but the model has no input whose rows "
               "they could share",
               (long long)module->strategy->pipelines.at[0].microbatches);
    return false;
}

/* Returns whether each micro-batch has whole units of rows; reports the first that has not. */
static bool check_units(const Module *module, int64_t unit) {
    for (int i = 0; i < module->templates->runs.count; i++) {
        const PipelineRun *run = &module->templates->runs.at[i];
        int64_t rows = module->templates->at.at[run->template_index].rows;
        if (!(rows % unit)) continue;
        diag_error(module->diag, module->strategy->pipelines.at[run->pipeline].at,
                   "a micro-batch of %lld rows does not keep together what the model does: groups "
                   "of %lld rows",
                   (long long)rows, (long long)unit);
        return false;
    }
    return true;
}

/* Returns the model's variant for a pipeline's padding lengths; NULL: the strategy's lengths. */
static const Module *shorter_of(const LengthVariant *variants, int pipeline) {
    return variants ? variants[pipeline].module : NULL;
}

/* Returns the index of the template that fits pipeline `number`; makes one if there is none. */
static int body_of(Module *module, const LengthVariant *variants, int number, int64_t rows) {
    const Pipeline *pipeline = &module->strategy->pipelines.at[number];
    PipelineTemplates *bodies = module->templates;
    for (int i = 0; i < bodies->runs.count; i++)
        if (bodies->at.at[bodies->runs.at[i].template_index].rows == rows &&
            shorter_of(variants, number) == shorter_of(variants, bodies->runs.at[i].pipeline) &&
            same_stages(pipeline, &module->strategy->pipelines.at[bodies->runs.at[i].pipeline]))
            return bodies->runs.at[i].template_index;
    array_push(module->arena, &bodies->at,
               (Body){.rows = rows,
                      .short_rows = shorter_of(variants, number) != NULL,
                      .first_stage = bodies->stages.count,
                      .stage_count = pipeline->stages.count});
    for (int s = 0; s < pipeline->stages.count; s++)
        array_push(module->arena, &bodies->stages,
                   (TemplateStage){.template_index = bodies->at.count - 1, .number = s});
    return bodies->at.count - 1;
}

bool microbatch_bodies(Module *module, const LengthVariant *variants, int64_t batch, int64_t unit) {
    int64_t first_row = 0;
    *module->templates = (PipelineTemplates){0};
    if (!module->strategy) return true;
    if (!check_rows(module, batch)) return false;
    // each pipeline runs its micro-batches of consecutive rows on a template
    for (int i = 0; i < pipeline_count(module); i++) {
        const Pipeline *pipeline = &module->strategy->pipelines.at[i];
        int64_t count = module->kind == MODULE_TRAIN ? pipeline->microbatches : 1,
                rows = rows_of(module, pipeline, batch, count);
        int body = body_of(module, variants, i, rows);
        array_push(module->arena, &module->templates->runs,
                   (PipelineRun){.template_index = body,
                                 .pipeline = i,
                                 .microbatches = count,
                                 .first_row = first_row});
        first_row += rows * count;
    }
    return check_units(module, unit);
}
