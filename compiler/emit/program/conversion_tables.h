/* Writes a resharding plan as the C tables that <hetu/reshard.h> describes. */
#ifndef EMIT_PROGRAM_CONVERSION_TABLES_H
#define EMIT_PROGRAM_CONVERSION_TABLES_H

#include "emit/emitter.h"
#include "reshard/plan.h"

/* How emitted tables call the devices of a plan. */
typedef struct PlanNames {
    int kind;         // of pipelines by whose positions they name devices; -1: by ranks
    int least, span;  // of the plan's devices
    const int *place; // by device from `least` on: its place in its replica group
    int replica_group_count, size; // replica groups, and the devices of each
    const char *replica_groups; // the name of the table of replica groups: their devices, replica
                                // group by replica group
} PlanNames;

/* How tables call the devices of a plan of replica groups; `kind` and `positions` (NULL: ranks) are
 * of the pipelines by whose positions they name devices. The table of replica groups is written
 * when it is new. */
PlanNames plan_names(Emitter *emitter, Text *out, const ReplicaGroups *replica_groups, int kind,
                     const int *positions);

/* Appends `static const ht_reshard NAME = {...};` and those tables that it refers to and that are
 * not written yet. `label` is what messages call the conversion. */
void emit_plan(Text *out, Emitter *emitter, const Plan *plan, const char *name, const char *label,
               const PlanNames *names);

#endif
