/* Bodies: what pipelines that are alike have in common.
 *
 * Pipelines of equal meshes, layers, lengths and rows of a micro-batch share one body: the
 * operators of a step of one micro-batch, laid out on the devices of the first of them. A body has
 * stages, each with a mesh of its own; pipelines may differ in how many micro-batches they run.
 */
#ifndef IR_PIPELINE_TEMPLATE_H
#define IR_PIPELINE_TEMPLATE_H

#include "ir/mesh.h"
#include "schedule/schedule.h"

#include <stdint.h>

enum { STAGE_ALL = -1 }; // of an operator: it runs on all devices

/* A stage of a body. */
typedef struct TemplateStage {
    int template_index;
    int number;       // in the strategy's pipeline
    const Mesh *mesh; // after pass seed_layouts
} TemplateStage;

typedef struct Body {
    int64_t rows;    // of a micro-batch; a multiple of PipelineTemplates.row_unit
    bool short_rows; // its rows are read only so far: its tensors begin those of the padded batch,
                     // which bindings have
    int first_stage, stage_count; // of Bodies.stages
    int visit_count;
    const int *visit_stage; // by visit along the data: the stage, counted from first_stage
} Body;

/* A pipeline of the strategy. */
typedef struct PipelineRun {
    int template_index;
    int pipeline;             // of the strategy
    int64_t microbatches;     // of a step
    int64_t first_row;        // of the batch
    const Schedule *schedule; // after pass schedule: of its stages, in the order of the strategy's
} PipelineRun;

typedef struct PipelineTemplates {
    int64_t row_unit; // rows of the batch that belong together: a dimension of it counts in them
    Array(TemplateStage) stages;
    Array(Body) at;
    Array(PipelineRun) runs;
} PipelineTemplates;

/* The first run of a body: the one on whose devices its operators are laid out. */
static inline const PipelineRun *template_first_run(const PipelineTemplates *bodies, int body) {
    int first = 0;
    while (bodies->runs.at[first].template_index != body) first++;
    return &bodies->runs.at[first];
}

#endif
