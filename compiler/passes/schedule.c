/* Pass schedule: gives each stage the order in which it runs its phases.
 *
 *     schedule 1f1b, two stages, three micro-batches (a weight gradient follows each B):
 *     stage 0: F0 F1 B0 F2 B1 B2
 *     stage 1: F0 B0 F1 B1 F2 B2
 *
 * schedule/gpipe_1f1b_zero_bubble.c makes tables. To overlap communication with computation,
 * ir/analysis/async_collectives.h, and prefetch.c for `zero 3`, decide where collectives begin.
 *
 * Requires: pass specialize, which orders operators by phase.
 *
 * Leaves: PipelineRun.schedule, a table for which schedule_check has proved that no stage waits
 * forever. Pipelines of the same template with equal numbers of micro-batches share a table. */
#include "ir/analysis/phases.h"
#include "passes/pass_manager.h"

static const Schedule *made_before(const PipelineTemplates *bodies, int run) {
    for (int r = 0; r < run; r++)
        if (bodies->runs.at[r].template_index == bodies->runs.at[run].template_index &&
            bodies->runs.at[r].microbatches == bodies->runs.at[run].microbatches)
            return bodies->runs.at[r].schedule;
    return NULL;
}

static const Schedule *make(Module *module, const StageGraph *graph, const PipelineRun *run) {
    const Strategy *strategy = module->strategy;
    const Schedule *schedule =
        schedule_create(module->arena, strategy_schedule(strategy), graph, run->microbatches);
    schedule_check(module->diag, strategy->schedule_at.file ? strategy->schedule_at : strategy->at,
                   graph, schedule, run->microbatches);
    return schedule;
}

void pass_schedule(Module *module, const PassContext *context) {
    (void)context;
    PipelineTemplates *bodies = module->templates;
    for (int r = 0; r < bodies->runs.count; r++) {
        PipelineRun *run = &bodies->runs.at[r];
        run->schedule = made_before(bodies, r);
        if (run->schedule) continue;
        StageGraph graph = template_graph(module->arena, module, run->template_index);
        run->schedule = make(module, &graph, run);
    }
}
