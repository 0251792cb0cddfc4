/* Pipeline templates (Body): the operators that equal pipelines share.
 *
 *     pipeline stage devices(0-1) mesh(tp:2)     template 0, laid out on devices 0 and 1
 *     pipeline stage devices(2-3) mesh(tp:2)     template 0, too
 *     pipeline stage devices(4) stage devices(5) template 1, of two stages
 *
 * Pipelines with equal meshes, layers, lengths and rows of a micro-batch share one template: the
 * operators of one micro-batch, laid out on the devices of the first of these pipelines. A template
 * has stages, each with its own mesh. Its pipelines may run different numbers of micro-batches.
 */
#ifndef IR_PIPELINE_TEMPLATE_H
#define IR_PIPELINE_TEMPLATE_H

#include "ir/mesh.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Schedule Schedule;

enum { STAGE_ALL = -1 }; // stage of an operator that runs on all devices

/* A stage of a template. */
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
    int pipeline;             // number in the strategy
    int64_t microbatches;     // in a step
    int64_t first_row;        // row of the batch at which its rows begin
    const Schedule *schedule; // after pass schedule: of its stages, in the order of the strategy's
} PipelineRun;

typedef struct PipelineTemplates {
    int64_t row_unit; // rows of the batch that belong together: a dimension of it counts in them
    Array(TemplateStage) stages;
    Array(Body) at;
    Array(PipelineRun) runs;
} PipelineTemplates;

/* Returns the first pipeline of a template: its operators are laid out on the devices of this one.
 */
static inline const PipelineRun *template_first_run(const PipelineTemplates *bodies, int body) {
    int first = 0;
    while (bodies->runs.at[first].template_index != body) first++;
    return &bodies->runs.at[first];
}

#endif
