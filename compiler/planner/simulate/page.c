/* Writes simulated steps as the page of the report (planner/report). */
#include "planner/report/report.h"
#include "planner/simulate/simulate.h"

#include <math.h>

/* ---- groups of pipelines that are simulated as one ---- */

static const Pipeline *run_pipeline(const Module *module, int run) {
    return &module->strategy->pipelines.at[module->templates->runs.at[run].pipeline];
}

/* Gives a group timeline rows (lanes) of its own, with the devices of pipeline `run`. */
static void move_lanes(Arena *arena, const Module *module, PipelineGroup *group, int run) {
    group->lanes =
        arena_copy(arena, group->lanes, sizeof(TimelineRow) * (size_t)group->graph.stage_count);
    for (int s = 0; s < group->graph.stage_count; s++) {
        const Stage *stage = &run_pipeline(module, run)->stages.at[s];
        group->lanes[s].devices = stage->devices.at;
        group->lanes[s].device_count = stage->devices.count;
    }
}

/* Splits the report's groups, so that one simulated pipeline stands for all of each group. */
static void split_groups(Arena *arena, const SimulatedSteps *steps, Simulation *simulation) {
    int count = simulation->groups.count;
    const PipelineGroup *old =
        arena_copy(arena, simulation->groups.at, sizeof *old * (size_t)count);
    simulation->groups.count = simulation->groups.capacity = 0;
    for (int g = 0; g < count; g++) {
        for (int i = 0; i < old[g].runs.count; i++) {
            PipelineGroup group = old[g];
            int run = old[g].runs.at[i];
            if (steps->fold.stands[run] != run) continue;
            group.runs.count = group.runs.capacity = 0;
            for (int k = 0; k < old[g].runs.count; k++)
                if (steps->fold.stands[old[g].runs.at[k]] == run)
                    array_push(arena, &group.runs, old[g].runs.at[k]);
            move_lanes(arena, steps->module, &group, run);
            array_push(arena, &simulation->groups, group);
        }
        if (!old[g].runs.count) array_push(arena, &simulation->groups, old[g]);
    }
}

static void widen(Span *span, double begin, double end) {
    bool none = span->end < span->begin;
    span->begin = none ? begin : fmin(span->begin, begin);
    span->end = none ? end : fmax(span->end, end);
}

static const Span no_span = {1, 0};

static Span whole_span(const Span *span) { return span->end < span->begin ? (Span){0, 0} : *span; }

/* A group of the report and its new spans, which count from the step's start until settle(). */
typedef struct Spans {
    const SimulatedSteps *steps;
    PipelineGroup *group;
    int run; // -1: the batch runs as a whole
    Timeline *timeline;
    TimelineTransfer *transfers;
} Spans;

static Spans spans_create(Arena *arena, const SimulatedSteps *steps, PipelineGroup *group) {
    Spans spans = {steps, group, group->runs.count ? group->runs.at[0] : -1,
                   arena_new(arena, Timeline), NULL};
    const Timeline *old = group->timeline;
    *spans.timeline = (Timeline){.rows = arena_array(arena, Span *, group->graph.stage_count),
                                 .busy = arena_array(arena, double, group->graph.stage_count),
                                 .transfer_count = old->transfer_count};
    spans.timeline->transfers = spans.transfers =
        arena_copy(arena, old->transfers, sizeof *old->transfers * (size_t)old->transfer_count);
    for (int s = 0; s < group->graph.stage_count; s++) {
        spans.timeline->rows[s] = arena_array(arena, Span, group->schedule->row_count[s]);
        for (int r = 0; r < group->schedule->row_count[s]; r++)
            spans.timeline->rows[s][r] = no_span;
        group->lanes[s].before = group->lanes[s].update = no_span;
        group->lanes[s].busy = 0;
    }
    for (int t = 0; t < old->transfer_count; t++) spans.transfers[t].span = no_span;
    return spans;
}

/* Widens the span of a row of the schedule's table, or of the time before or after the table. If
 * the batch runs as a whole, a row is a phase. */
static void take_row(Spans *spans, const ProgramRow *row) {
    const Actor *actor = &spans->steps->fold.actors[row->actor];
    double begin = spans->steps->spans[row->first].begin, end = spans->steps->spans[row->last].end;
    bool own = spans->run < 0 ||
               (actor->run &&
                spans->steps->fold.stands[actor->run - spans->steps->module->templates->runs.at] ==
                    spans->run);
    TimelineRow *lane = &spans->group->lanes[spans->run < 0 ? 0 : actor->stage];
    int number = spans->run < 0 && row->row != PHASE_UPDATE ? row->row - PHASE_FORWARD : row->row;
    if (row->step || !own) return;
    if (row->row == -2 || (spans->run < 0 && row->row == PHASE_UPDATE))
        widen(&lane->update, begin, end);
    else if (row->row == -1) widen(&lane->before, begin, end);
    else if (number < spans->group->schedule->row_count[spans->run < 0 ? 0 : row->stage])
        widen(&spans->timeline->rows[spans->run < 0 ? 0 : row->stage][number], begin, end);
}

/* Widens the span of the transfer with a message's edge, direction and micro-batch. */
static void take_message(Spans *spans, const ProgramTask *task, const EngineSpan *span) {
    if (task->stream != STREAM_MESSAGES || task->step || task->run != spans->run || spans->run < 0)
        return;
    for (int t = 0; t < spans->timeline->transfer_count; t++) {
        TimelineTransfer *transfer = &spans->transfers[t];
        if (transfer->microbatch == task->microbatch &&
            transfer->backward == (task->phase == PHASE_BACKWARD) && transfer->edge == task->edge)
            widen(&transfer->span, span->begin, span->end);
    }
}

static double lane_busy(const Spans *spans, int stage) {
    double busy = 0;
    for (int r = 0; r < spans->group->schedule->row_count[stage]; r++)
        busy += spans->timeline->rows[stage][r].end - spans->timeline->rows[stage][r].begin;
    const TimelineRow *lane = &spans->group->lanes[stage];
    return busy + lane->before.end - lane->before.begin + lane->update.end - lane->update.begin;
}

/* Returns when the first row of a group's table begins, in seconds; 0: no row runs. */
static double table_begin(const Spans *spans) {
    double begin = INFINITY;
    for (int s = 0; s < spans->group->graph.stage_count; s++)
        if (spans->group->schedule->row_count[s] &&
            spans->timeline->rows[s][0].begin <= spans->timeline->rows[s][0].end)
            begin = fmin(begin, spans->timeline->rows[s][0].begin);
    return isfinite(begin) ? begin : 0;
}

/* Makes a table's spans count from its first row, as the report expects; sets the busy seconds. */
static void settle(Spans *spans) {
    double begin = spans->group->begin = table_begin(spans);
    for (int s = 0; s < spans->group->graph.stage_count; s++) {
        for (int r = 0; r < spans->group->schedule->row_count[s]; r++) {
            Span *row = &spans->timeline->rows[s][r];
            *row = row->end < row->begin ? (Span){begin, begin} : *row;
            *row = (Span){row->begin - begin, row->end - begin};
            spans->timeline->seconds = fmax(spans->timeline->seconds, row->end);
        }
        spans->group->lanes[s].before = whole_span(&spans->group->lanes[s].before);
        spans->group->lanes[s].update = whole_span(&spans->group->lanes[s].update);
        spans->group->lanes[s].busy = spans->timeline->busy[s] = lane_busy(spans, s);
    }
    for (int t = 0; t < spans->timeline->transfer_count; t++) {
        Span *span = &spans->transfers[t].span;
        *span =
            span->end < span->begin ? (Span){0, 0} : (Span){span->begin - begin, span->end - begin};
    }
    spans->group->timeline = spans->timeline;
}

static void take_group(Arena *arena, const SimulatedSteps *steps, PipelineGroup *group) {
    Spans spans = spans_create(arena, steps, group);
    for (int r = 0; r < steps->program.rows.count; r++)
        take_row(&spans, &steps->program.rows.at[r]);
    for (int t = 0; t < steps->program.tasks.count; t++)
        take_message(&spans, &steps->program.tasks.at[t], &steps->spans[t]);
    settle(&spans);
}

static void take_sums(const SimulatedSteps *steps, Simulation *simulation) {
    for (int f = 0; f < simulation->collectives.count; f++) {
        Span span = no_span;
        for (int t = 0; t < steps->program.tasks.count; t++)
            if (steps->program.tasks.at[t].op == simulation->collectives.at[f].op &&
                !steps->program.tasks.at[t].step)
                widen(&span, steps->spans[t].begin, steps->spans[t].end);
        simulation->collectives.at[f].span = whole_span(&span);
    }
}

static Simulation simulation_of(Arena *arena, const SimulatedSteps *steps) {
    Simulation simulation = simulation_create(arena, steps->module);
    split_groups(arena, steps, &simulation);
    for (int g = 0; g < simulation.groups.count; g++)
        take_group(arena, steps, &simulation.groups.at[g]);
    take_sums(steps, &simulation);
    simulation.length = steps->seconds[0];
    return simulation;
}

void steps_page(Text *out, SimulatedSteps *const *steps, int count) {
    Simulation *simulations = arena_array(out->arena, Simulation, count);
    for (int i = 0; i < count; i++) simulations[i] = simulation_of(out->arena, steps[i]);
    report_simulations_page(out, simulations, count);
}
