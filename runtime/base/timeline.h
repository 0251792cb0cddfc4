/* Records the trace events of this rank for HETU_TRACE (session/observe/trace.c).
 *
 *     timeline_open(1000000);
 *     timeline_add(&(TimelineEvent){.begin = begin, .end = timeline_now(), .stream =
 *         HT_STREAM_SUMS, .name = "all-reduce", ...});
 *     timeline_each(visit, argument);
 *
 * The streams of messages and of sums have a thread each; the main thread has all other streams.
 * Threads share no list, so there are no locks. Texts of events must live until timeline_close. */
#pragma once

#include <hetu/rt.h>
#include <hetu/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TimelineEvent {
    double begin, end;     // seconds on this rank's clock
    const ht_whose *whose; // scope and layer of the call; NULL: none
    const ht_called *call; // the operator call; NULL: `name` and `at` instead
    const char *name, *at; // at: source location; NULL: none
    const char *phase;     // "forward"; NULL: outside a phase
    int step;              // -1: outside a step
    short microbatch;      // -1: none
    unsigned char stream;  // an ht_stream_kind
} TimelineEvent;

/* Returns the seconds of a monotonic clock; works before timeline_open, too. */
double timeline_now(void);

/* Sets the maximum number of events of each thread; timeline_keep starts recording. */
void timeline_open(int64_t room);

/* Return whether events are recorded now, and switch recording on or off. */
bool timeline_keeps(void);
void timeline_keep(bool keep);

/* Records an event while recording is on; counts it as lost if there is no room. */
void timeline_add(const TimelineEvent *event);

/* Returns the number of lost events. */
int64_t timeline_lost(void);

/* Calls `visit` for each event; events of a thread come in the order of their end times. */
void timeline_each(void (*visit)(const TimelineEvent *event, void *argument), void *argument);

void timeline_close(void);

#ifdef __cplusplus
}
#endif
