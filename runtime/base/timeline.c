/* Keeps the events of each thread until HETU_TRACE writes them. */
#include "base/timeline.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { CHUNK = 4096, THREADS = 3 };

typedef struct Chunk {
    struct Chunk *next;
    int count;
    TimelineEvent event[CHUNK];
} Chunk;

/* The events of one thread, in chunks. */
typedef struct Log {
    Chunk *first, *last;
    int64_t count, lost;
} Log;

static struct {
    atomic_bool keeps;
    int64_t room;
    Log log[THREADS];
} timeline;

double timeline_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void timeline_open(int64_t room) { timeline.room = room; }

bool timeline_keeps(void) { return atomic_load_explicit(&timeline.keeps, memory_order_relaxed); }

void timeline_keep(bool keep) { atomic_store(&timeline.keeps, keep && timeline.room > 0); }

static Log *log_of(const TimelineEvent *event) {
    return &timeline.log[event->stream == HT_STREAM_MESSAGES ? 1
                         : event->stream == HT_STREAM_SUMS   ? 2
                                                             : 0];
}

/* Returns a chunk of a log with room for an event. */
static Chunk *chunk_of(Log *log) {
    if (log->last && log->last->count < CHUNK) return log->last;
    Chunk *chunk = memory_array(1, sizeof *chunk);
    *(log->last ? &log->last->next : &log->first) = chunk;
    return log->last = chunk;
}

void timeline_add(const TimelineEvent *event) {
    Log *log = log_of(event);
    if (!timeline_keeps()) return;
    if (log->count == timeline.room) {
        log->lost++;
        return;
    }
    Chunk *chunk = chunk_of(log);
    chunk->event[chunk->count++] = *event;
    log->count++;
}

int64_t timeline_lost(void) {
    int64_t lost = 0;
    for (int t = 0; t < THREADS; t++) lost += timeline.log[t].lost;
    return lost;
}

void timeline_each(void (*visit)(const TimelineEvent *event, void *argument), void *argument) {
    for (int t = 0; t < THREADS; t++)
        for (const Chunk *chunk = timeline.log[t].first; chunk; chunk = chunk->next)
            for (int i = 0; i < chunk->count; i++) visit(&chunk->event[i], argument);
}

void timeline_close(void) {
    timeline_keep(false);
    for (int t = 0; t < THREADS; t++) {
        for (Chunk *chunk = timeline.log[t].first, *next; chunk; chunk = next) {
            next = chunk->next;
            free(chunk);
        }
        timeline.log[t] = (Log){0};
    }
    timeline.room = 0;
}
