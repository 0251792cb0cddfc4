/* Writes a resharding plan as the C tables that <hetu/reshard.h> describes. */
#ifndef EMIT_PROGRAM_PLAN_H
#define EMIT_PROGRAM_PLAN_H

#include "reshard/plan.h"
#include "support/text.h"

/* Appends `static const ht_reshard NAME = {...};` and the tables that it refers to. `label` is what messages call the conversion. */
void emit_plan(Text *out, const Plan *plan, const char *name, const char *label);

#endif
