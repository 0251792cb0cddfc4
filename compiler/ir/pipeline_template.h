/* Pipeline templates: the operators that equal pipelines share.
 *
 *     pipeline stage devices(0-1) mesh(tp:2)     template 0, laid out on devices 0 and 1
 *     pipeline stage devices(2-3) mesh(tp:2)     template 0, too
 *     pipeline stage devices(4) stage devices(5) template 1, of two stages
 *
 * Pipelines with equal meshes, layers, lengths and rows of a micro-batch share one template: the
 * operators of one micro-batch, laid out on the devices of the first of these pipelines. A template
 * has stages, each with its own mesh. Its pipelines may run different numbers of micro-batches. */
#pragma once

#include "ir/mesh.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Schedule Schedule; // schedule/schedule.h

enum { STAGE_ALL = -1 }; // stage of an operator that runs on all devices

/* A stage of a template. */
typedef struct TemplateStage {
    int template_index;
    int number;       // index of the stage in the strategy's pipeline
    const Mesh *mesh; // after pass seed_layouts
} TemplateStage;

/* A template. */
typedef struct Body {
    int64_t rows;    // rows of a micro-batch; a multiple of PipelineTemplates.row_unit
    bool short_rows; // shorter padding lengths: along shortened dimensions, tensors have only the
                     // first elements of the batch's tensors; Op.binding has the batch's extents
    int first_stage, stage_count; // range of PipelineTemplates.stages
    int visit_count;
    const int *visit_stage; // stage of each visit, in forward order, relative to first_stage
} Body;

/* A pipeline of the strategy. */
typedef struct PipelineRun {
    int template_index;
    int pipeline;             // index into the strategy's pipelines
    int64_t microbatches;     // number of micro-batches per step
    int64_t first_row;        // row of the batch at which its rows begin
    const Schedule *schedule; // after pass schedule; its stages are in the strategy's order
} PipelineRun;

typedef struct PipelineTemplates {
    int64_t row_unit; // rows that are never parted; the batch's first dimension counts such units
    Array(TemplateStage) stages;
    Array(Body) at;
    Array(PipelineRun) runs;
} PipelineTemplates;

/* Returns the first pipeline of a template. The operators are laid out on its devices. */
static inline const PipelineRun *template_first_run(const PipelineTemplates *bodies, int body) {
    int first = 0;
    while (bodies->runs.at[first].template_index != body) first++;
    return &bodies->runs.at[first];
}
