/* Computes when rows and transfers run; the pipeline's bubble follows from it. */
#include "schedule/timeline.h"

#include "schedule/wait_graph.h"

typedef struct Clock {
    const Waits *waits;
    const TimelineCosts *costs;
    Span *spans; // by event (schedule/wait_graph.h): when the event begins and ends
} Clock;

static double seconds_of(const Clock *clock, int event) {
    bool backward;
    if (event < clock->waits->row_count) {
        const ScheduleRow *row = wait_row(clock->waits, event);
        return clock->costs->part[(int)row->phase * clock->waits->graph->visit_count + row->visit];
    }
    int edge = wait_edge(clock->waits, event, &backward);
    return clock->costs->transfer[backward] ? clock->costs->transfer[backward][edge] : 0;
}

static void end_event(void *state, int event, const WaitFor *waited, int count) {
    Clock *clock = state;
    Span *span = &clock->spans[event];
    for (int i = 0; i < count; i++) {
        double end = clock->spans[waited[i].event].end;
        span->begin = end > span->begin ? end : span->begin;
    }
    span->end = span->begin + seconds_of(clock, event);
}

/* Copies the spans of the rows by stage; computes stages' busy times and the last row's end. */
static void take_rows(Arena *arena, Timeline *timeline, const Clock *clock) {
    const Schedule *schedule = clock->waits->schedule;
    timeline->rows = arena_array(arena, Span *, schedule->stage_count);
    timeline->busy = arena_array(arena, double, schedule->stage_count);
    for (int s = 0; s < schedule->stage_count; s++) {
        int count = schedule->row_count[s];
        timeline->rows[s] = arena_copy(arena, clock->spans + clock->waits->first_row[s],
                                       sizeof(Span) * (size_t)count);
        for (int i = 0; i < count; i++)
            timeline->busy[s] += timeline->rows[s][i].end - timeline->rows[s][i].begin;
        if (count && timeline->rows[s][count - 1].end > timeline->seconds)
            timeline->seconds = timeline->rows[s][count - 1].end;
    }
}

static void take_transfers(Arena *arena, Timeline *timeline, const Clock *clock) {
    const Waits *waits = clock->waits;
    timeline->transfer_count = waits->event_count - waits->row_count;
    TimelineTransfer *transfers = arena_array(arena, TimelineTransfer, timeline->transfer_count);
    for (int i = 0; i < timeline->transfer_count; i++) {
        int event = waits->row_count + i;
        transfers[i].edge = wait_edge(waits, event, &transfers[i].backward);
        transfers[i].microbatch = i % waits->microbatches;
        transfers[i].span = clock->spans[event];
    }
    timeline->transfers = transfers;
}

const Timeline *timeline_create(Arena *arena, const StageGraph *graph, const Schedule *schedule,
                                const TimelineCosts *costs) {
    Arena *scratch = arena_create();
    Waits waits = waits_create(scratch, graph, schedule);
    Clock clock = {&waits, costs, arena_array(scratch, Span, waits.event_count)};
    Timeline *timeline = arena_new(arena, Timeline);
    if (waits_visit(scratch, &waits, end_event, &clock))
        BUG("a schedule of %d stages stands still", schedule->stage_count);
    take_rows(arena, timeline, &clock);
    take_transfers(arena, timeline, &clock);
    arena_destroy(scratch);
    return timeline;
}
