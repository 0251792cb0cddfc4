/* Pass recompute: activation checkpointing. Runs marked operators again in the backward section,
 * instead of keeping their results. Nothing is offloaded to the host.
 *
 *     stage devices(0-3) recompute(selective)
 *
 *     before    h = gelu(x)                  forward, kept for backward
 *               dw = linear_dw(dy, h)        backward
 *     after     h = gelu(x)                  forward, not kept
 *               h' = gelu(x) recomputes h    backward
 *               dw = linear_dw(dy, h')
 *
 * - The pragma `recompute` marks the operators of one statement; their operands are kept.
 * - recompute(full) of a stage marks every operator: each layer keeps only its inputs. Operators
 *   outside of layers form one more layer.
 * - recompute(selective) marks, in each layer, operators with few arithmetic operations for each
 *   byte: all but products, attention and the like.
 *
 * Requires: the loop over micro-batches.
 *
 * Leaves: copies in the backward section; their OpSource.recomputes names the forward operator. */
#include "ir/analysis/phases.h"
#include "passes/recompute/clone.h"

#include "cost/cost.h"
#include "passes/pass_manager.h"

#include <string.h>

/* Operations for each byte of memory traffic above which an operator counts as compute-bound. */
#define OPERATIONS_A_BYTE 32

/* Returns whether an operator is compute-bound when all of its dimensions are long. Does not use
 * the model's own extents, so that small models are treated like large ones. */
static bool is_dear(Arena *scratch, const Op *op) {
    const double length = 1024;
    double *extent = arena_array(scratch, double, op->binding->factor_count + 1);
    for (int f = 0; f < op->binding->factor_count; f++) extent[f] = length;
    Work work = op_work(op, extent);
    return work.operations > OPERATIONS_A_BYTE * work.bytes;
}

/* Returns the recompute option of an operator's stage: "full", "selective", or NULL. */
static const char *stage_recompute(const Module *module, const Op *op) {
    const PipelineTemplates *bodies = module->templates;
    if (!module->strategy) return NULL;
    if (op->stage == STAGE_ALL)
        return bodies->stages.count > 1 || bodies->runs.count > 1
                   ? NULL
                   : module->strategy->pipelines.at[0].stages.at[0].recompute;
    const TemplateStage *stage = &bodies->stages.at[op->stage];
    return module->strategy->pipelines
        .at[template_first_run(bodies, stage->template_index)->pipeline]
        .stages.at[stage->number]
        .recompute;
}

static bool is_marked(Arena *scratch, const Module *module, const Op *op) {
    const char *stage = stage_recompute(module, op);
    if (!op_in_step(module, op) || op_crosses_stages(module, op)) return false;
    return op->source->recompute || (stage && (!strcmp(stage, "full") || !is_dear(scratch, op)));
}

typedef struct RegionKey {
    const char *tower, *name; // names of the tower and the layer; NULL: outside of layers
    int64_t number;           // -1: outside of layers
    int64_t stage, visit;
} RegionKey;

static const char *shared_text(Intern *shared, const char *text) {
    return text ? intern(shared, text, strlen(text) + 1) : NULL;
}

/* Returns the number of an operator's region: its layer if its stage has the option, else minus the
 * number of the pragma's statement. */
static int region_of(Arena *scratch, Intern *regions, const Module *module, const Op *op,
                     int *count) {
    RegionKey key;
    memset(&key, 0, sizeof key);
    if (!stage_recompute(module, op)) return -op->source->recompute;
    if (op->source->layer)
        key = (RegionKey){shared_text(regions, op->source->layer->tower),
                          shared_text(regions, op->source->layer->name), op->source->layer->number,
                          0, 0};
    else key.number = -1;
    key.stage = op->stage;
    key.visit = op->visit;
    int **known = intern_slot(regions, &key, sizeof key);
    if (!*known) {
        *known = arena_new(scratch, int);
        **known = ++*count;
    }
    return **known;
}

/* Warns if the first stage recomputes layers but the model has no layers. */
static void check_layers(const Module *module) {
    const Stage *stage = module->strategy ? &module->strategy->pipelines.at[0].stages.at[0] : NULL;
    bool layers = false;
    for (int i = 0; i < module->ops.count; i++) layers |= module->ops.at[i]->source->layer != NULL;
    if (!layers && stage && stage->recompute) {
        diag_warning(module->diag, stage->recompute_at,
                     "%s has no layers, so recompute(%s) takes all of it for one", module->name,
                     stage->recompute);
        diag_note(module->diag, module->source->at,
                  "`#pragma hspmd layer(l)` says that the next statement is layer l");
    }
}

void pass_recompute(Module *module, const PassContext *context) {
    (void)context;
    Arena *scratch = arena_create();
    Intern *regions = intern_create(scratch);
    int count = module->ops.count, region_count = 0, marked = 0;
    bool *may = arena_array(scratch, bool, count);
    int *region = arena_array(scratch, int, count);
    if (module->kind == MODULE_TRAIN) check_layers(module);
    ir_number(module);
    // mark operators and number their regions
    for (int i = 0; i < count; i++) {
        may[i] = is_marked(scratch, module, module->ops.at[i]);
        region[i] = region_of(scratch, regions, module, module->ops.at[i], &region_count);
        marked += may[i];
    }
    if (marked) make_anew(module, &(Anew){may, region});
    arena_destroy(scratch);
}
