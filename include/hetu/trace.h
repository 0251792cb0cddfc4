/* trace.h: streams of traces in Chrome's format. hetu-simulate predicts such traces (--trace), and
 * programs record them (HETU_TRACE); a viewer can show both together.
 *
 * A trace is an object with the list "traceEvents". Process N is device N, and its threads are the
 * streams below. Events are complete ("ph": "X"), `ts` and `dur` are in microseconds, `cat` is the
 * stream's name, and `args` has, where known, `step`, `phase`, `microbatch`, `line` ("gpt.c:42"),
 * `scope` ("h3") and `value`.
 */
#ifndef HETU_TRACE_H
#define HETU_TRACE_H

typedef enum ht_stream_kind {
    HT_STREAM_COMPUTING,
    HT_STREAM_COLLECTIVES, // conversions that computing waits for
    HT_STREAM_MESSAGES,    // between stages
    HT_STREAM_SUMS,        // gradient buckets, exchanged beside computing
    HT_STREAM_WAITING,     // HETU_TRACE only: waiting for transfers and for rank 0
    HT_STREAM_HOST,        // HETU_TRACE only: main, feeds, fetches and all else
    HT_STREAMS
} ht_stream_kind;

/* Returns the name of a stream. */
static inline const char *ht_stream_name(ht_stream_kind stream)
{
    static const char *const names[] = {"computing", "collectives", "messages", "sums", "waiting", "host"};
    return names[stream];
}

#endif
