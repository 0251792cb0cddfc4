/* Lists a program's conversions with their bytes and seconds, for --report and -Rcomm. */
#include "planner/report/step_timeline.h"
#include "ir/programs/conversions.h"

#include "cost/cost.h"
#include "reshard/plan.h"

#include <string.h>

static int64_t most_received(const Plan *plan) {
    int64_t most = 0;
    for (int slot = 0; slot < plan->device_count; slot++)
        most = plan->received[slot] > most ? plan->received[slot] : most;
    return most;
}

/* Returns the key of a row: position, stage, visit, phase, plan, reason and name of the result. */
static const char *row_key(Arena *arena, const Module *module, const Op *op) {
    const char *name = op->results[0]->name;
    return arena_format(arena, "%s:%d:%d %d %d %d %d %d\n%s\n%s", op->at.file ? op->at.file : "",
                        op->at.line, op->at.column, op->stage, op->visit, (int)op_phase(module, op),
                        op->convert.plan->number, op->convert.tensor,
                        op->source->reason ? op->source->reason : "", name ? name : "");
}

static ConversionRow *row_of(Arena *arena, Intern *numbers, ConversionRows *rows,
                             const Module *module, const Op *op) {
    const char *key = row_key(arena, module, op);
    intptr_t *number = intern_slot(numbers, key, strlen(key));
    if (!*number) {
        array_push(arena, &rows->at, (ConversionRow){.op = op});
        *number = rows->at.count;
    }
    return &rows->at.at[*number - 1];
}

ConversionRows conversion_rows(Arena *arena, Simulation *simulation) {
    Module *module = simulation->module;
    ConversionRows rows = {0};
    Intern *numbers = intern_create(arena);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (!op->convert.plan) continue;
        ReplicaGroups replica_groups;
        const Plan *plan = op_plan_alone(arena, module, op, &replica_groups);
        ConversionRow *row = row_of(arena, numbers, &rows, module, op);
        row->plan = plan;
        row->runs += op_runs(module, op);
        row->bytes += conversion_runs(module, op) * replica_groups_bytes(&replica_groups, plan);
        row->received += op_runs(module, op) * most_received(plan);
        row->seconds +=
            (double)op_runs(module, op) *
            (plan == op->convert.plan->plan ? times_conversion(&simulation->times, op->convert.plan)
             : simulation->times.priced ? conversion_seconds(module->devices->target.cluster, plan)
                                        : 0);
        array_push(arena, &row->scopes, op->source->scope);
    }
    return rows;
}
