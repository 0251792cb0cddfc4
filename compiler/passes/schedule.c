/* Pass schedule: in which order the stages of each pipeline run their parts.
 *
 * Requires: pass specialize, which puts operators into the order of their parts. Leaves: PipelineRun.schedule, a table that is proved to end
 * (schedule_check); pipelines of one body and as many micro-batches have one.
 */
#include "ir/analysis/phases.h"
#include "passes/pipeline.h"

static const Schedule *made_before(const PipelineTemplates *bodies, int run)
{
    for (int r = 0; r < run; r++)
        if (bodies->runs.at[r].template_index == bodies->runs.at[run].template_index && bodies->runs.at[r].microbatches == bodies->runs.at[run].microbatches)
            return bodies->runs.at[r].schedule;
    return NULL;
}

static const Schedule *make(Module *module, const StageGraph *graph, const PipelineRun *run)
{
    const Strategy *strategy = module->strategy;
    const Schedule *schedule = schedule_create(module->arena, strategy_schedule(strategy), graph, run->microbatches);
    schedule_check(module->diag, strategy->schedule_at.file ? strategy->schedule_at : strategy->at, graph, schedule, run->microbatches);
    return schedule;
}

void pass_schedule(Module *module)
{
    PipelineTemplates *bodies = &module->templates;
    for (int r = 0; r < bodies->runs.count; r++) {
        PipelineRun *run = &bodies->runs.at[r];
        run->schedule = made_before(bodies, r);
        if (run->schedule)
            continue;
        StageGraph graph = template_graph(module->arena, module, run->template_index);
        run->schedule = make(module, &graph, run);
    }
}
