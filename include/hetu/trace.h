/* trace.h: what traces in Chrome's format have in common, those that hetu-simulate predicts
 * (--trace) and those that programs write of what they did (HETU_TRACE), so that both can be laid
 * beside each other.
 *
 * An object with the list "traceEvents". A device is a process, whose number is that of the device;
 * what it does is in threads, whose numbers are those of the streams below. Events are complete
 * ("ph": "X"), `ts` and `dur` are in microseconds, `cat` is the stream's name, and `args` has what
 * is known of `step`, `phase`, `microbatch`, `line` ("gpt.c:42"), `scope` ("h3") and `value`.
 */
#ifndef HETU_TRACE_H
#define HETU_TRACE_H

typedef enum ht_stream_kind {
    HT_STREAM_COMPUTING,
    HT_STREAM_COLLECTIVES, // conversions for which a part stops
    HT_STREAM_MESSAGES,    // between stages
    HT_STREAM_SUMS,        // of gradients, beside computing
    HT_STREAM_WAITING,     // of programs that run: for what is under way, and for rank 0
    HT_STREAM_HOST,        // of programs that run: main, feeds, fetches and all else
    HT_STREAMS
} ht_stream_kind;

/* The name of a stream. */
static inline const char *ht_stream_name(ht_stream_kind stream)
{
    static const char *const names[] = {"computing", "collectives", "messages", "sums", "waiting", "host"};
    return names[stream];
}

#endif
