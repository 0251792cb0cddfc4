/* Writes a resharding plan as the C tables that <hetu/reshard.h> describes. */
#ifndef EMIT_PROGRAM_PLAN_H
#define EMIT_PROGRAM_PLAN_H

#include "reshard/plan.h"
#include "support/text.h"

/* How a plan that pipelines of one kind share calls its devices: by their positions in a pipeline. */
typedef struct PlanNames {
    int kind;
    int device_count;
    const int *devices; // of the pipeline in which the plan was made, by position
} PlanNames;

/* Appends `static const ht_reshard NAME = {...};` and the tables that it refers to. `label` is what messages call the conversion; `names`
 * NULL: devices are ranks. */
void emit_plan(Text *out, const Plan *plan, const char *name, const char *label, const PlanNames *names);

#endif
