/* Bodies: what pipelines that are alike have in common.
 *
 * Pipelines of equal meshes, layers, lengths and rows of a micro-batch share one body: the operators of a step of one micro-batch, laid out on the
 * devices of the first of them. A body has stages, each with a mesh of its own; pipelines may differ in how many micro-batches they run.
 */
#ifndef IR_BODY_H
#define IR_BODY_H

#include "ir/mesh.h"
#include "schedule/schedule.h"

#include <stdint.h>

enum { STAGE_ALL = -1 }; // of an operator: it runs on all devices

/* A stage of a body. */
typedef struct BodyStage {
    int body;
    int number;       // in the strategy's pipeline
    const Mesh *mesh; // after pass place
} BodyStage;

typedef struct Body {
    int64_t rows;                 // of a micro-batch; a multiple of Bodies.unit
    bool shorter;                 // its rows are read only so far: its tensors begin those of the padded batch, which bindings have
    int first_stage, stage_count; // of Bodies.stages
    int visit_count;
    const int *visit_stage; // by visit along the data: the stage, counted from first_stage
} Body;

/* A pipeline of the strategy. */
typedef struct BodyRun {
    int body;
    int pipeline;             // of the strategy
    int64_t microbatches;     // of a step
    int64_t first_row;        // of the batch
    const Schedule *schedule; // after pass schedule: of its stages, in the order of the strategy's
} BodyRun;

typedef struct Bodies {
    int64_t unit; // rows of the batch that belong together: a dimension of it counts in them
    Array(BodyStage) stages;
    Array(Body) at;
    Array(BodyRun) runs;
} Bodies;

/* The first run of a body: the one on whose devices its operators are laid out. */
static inline const BodyRun *body_run(const Bodies *bodies, int body)
{
    int first = 0;
    while (bodies->runs.at[first].body != body)
        first++;
    return &bodies->runs.at[first];
}

#endif
