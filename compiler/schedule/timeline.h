/* A timeline: when rows and transfers of a schedule begin and end, given the seconds of each. */
#pragma once

#include "schedule/schedule.h"

/* Seconds of phases and transfers. */
typedef struct TimelineCosts {
    const double *part;        // entry phase * visit_count + visit: seconds of the phase
    const double *transfer[2]; // [0] forward, [1] backward: seconds by edge; NULL: no time
} TimelineCosts;

typedef struct Span {
    double begin, end; // seconds from the start of the step
} Span;

typedef struct TimelineTransfer {
    int edge, microbatch;
    bool backward;
    Span span;
} TimelineTransfer;

typedef struct Timeline {
    double seconds; // seconds until the end of the last row
    Span **rows;    // by stage and row: when the row runs
    double *busy;   // by stage: seconds in which the stage runs rows
    int transfer_count;
    const TimelineTransfer *transfers; // forward ones by edge and micro-batch, then backward ones
} Timeline;

/* Returns the timeline. Rows and transfers begin as soon as all events that they wait for have
 * ended (schedule/wait_graph.h). A transfer needs a free slot at the receiver, and waits for the
 * previous transfer along its edge. The table must have passed schedule_check. */
const Timeline *timeline_create(Arena *arena, const StageGraph *graph, const Schedule *schedule,
                                const TimelineCosts *costs);
