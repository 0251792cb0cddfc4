/* The timeline of this rank: what it did when, for HETU_TRACE (session/observe/trace.h).
 *
 *     timeline_open(1000000);
 *     timeline_add(&(TimelineEvent){.begin = begin, .end = timeline_now(), .stream =
 *         HT_STREAM_SUMS, .name = "all-reduce", ...});
 *     timeline_each(visit, argument);
 *
 * The main thread adds to all streams but messages and sums, and each of these has a thread of its
 * own: so nothing is locked. What events point to lives until timeline_close.
 */
#ifndef BASE_TIMELINE_H
#define BASE_TIMELINE_H

#include <hetu/rt.h>
#include <hetu/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TimelineEvent {
    double begin, end;     // seconds on this rank's clock
    const ht_whose *whose; // of a call
    const ht_called *call; // what was called; NULL: `name`, at a place in the source or NULL
    const char *name, *at;
    const char *phase;    // "forward"; NULL: of none
    int step;             // -1: of none
    short microbatch;     // -1: of none
    unsigned char stream; // an ht_stream_kind
} TimelineEvent;

/* Seconds on a clock that only goes on, with or without a timeline. */
double timeline_now(void);

/* From now on up to `room` events of a thread are kept. */
void timeline_open(int64_t room);

/* Whether events are kept at the moment; and whether they are from now on. */
bool timeline_keeps(void);
void timeline_keep(bool keep);

/* Notes an event; where there is no room, it is lost. */
void timeline_add(const TimelineEvent *event);

/* Events that were lost. */
int64_t timeline_lost(void);

/* Calls `visit` with each event, those of a thread in the order of their ends. */
void timeline_each(void (*visit)(const TimelineEvent *event, void *argument), void *argument);

void timeline_close(void);

#ifdef __cplusplus
}
#endif

#endif
