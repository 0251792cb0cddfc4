/* Timelines: when each row of a schedule runs and each transfer goes, if parts and transfers take
 * given times. */
#ifndef SCHEDULE_TIMELINE_H
#define SCHEDULE_TIMELINE_H

#include "schedule/schedule.h"

/* Seconds. A transfer takes nothing where there is no list. */
typedef struct TimelineCosts {
    const double *part;        // by part and visit: part * visit_count + visit
    const double *transfer[2]; // by edge: forward, and backward; NULL: nothing
} TimelineCosts;

typedef struct Span {
    double begin, end; // seconds from the begin of the step
} Span;

typedef struct TimelineTransfer {
    int edge, microbatch;
    bool backward;
    Span span;
} TimelineTransfer;

typedef struct Timeline {
    double seconds; // until the last row has run
    Span **rows;    // by stage and row
    double *busy;   // by stage: in which it runs rows
    int transfer_count;
    const TimelineTransfer *transfers; // forward ones by edge and micro-batch, then backward ones
} Timeline;

/* Returns the rows begin as soon as what they wait for has ended, and so do transfers, which
 * need a slot at the receiver and go one after the other along an edge. Of a table that
 * schedule_check accepts. */
const Timeline *timeline_create(Arena *arena, const StageGraph *graph, const Schedule *schedule,
                                const TimelineCosts *costs);

#endif
