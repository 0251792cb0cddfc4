/* The observers that a run may have: HETU_NAN, HETU_PROFILE and HETU_TRACE. */
#ifndef SESSION_OBSERVE_OBSERVERS_H
#define SESSION_OBSERVE_OBSERVERS_H

#include "session/observe/hooks.h"

/* HETU_NAN: the run ends at the first operator that makes a NaN or an infinity. */

/* Ends the program when a call has made a NaN, or an infinity out of finite numbers: none of what
 * it has read is infinite, nor are its own numbers, as those of masks are. The message names the
 * operator, its place in the source, scope and layer, the step, the element and the rank. */
void finite_check(const HookCall *call, int64_t step);

/* HETU_PROFILE: where the time of a run went, by operator and by layer, beside what the machine
 * does of products and copies. */

/* A call took so many seconds; so did something else of a stream. */
void profile_call(const ht_called *call, const ht_whose *whose, double seconds);
void profile_other(ht_stream_kind stream, double seconds);

/* Prints the tables on rank 0's standard error; all ranks together. What the machine does is
 * measured here, on all ranks at once. */
void profile_print(void);

/* HETU_TRACE: the timelines of all ranks in one file of Chrome's format (hetu/trace.h), which
 * Perfetto opens.
 *
 * Times are those of rank 0's clock, in microseconds from the first event on. Ranks that see the
 * same clock, as those of a host do, need nothing for that; the clocks of others are compared with
 * rank 0's when the session opens and when it closes.
 */

/* Ends the program when the file cannot be written. */
void trace_check(const char *path);

/* Compares clocks; all ranks together, before there are events. */
void trace_align(void);

/* Writes the file on rank 0, which knows its name; all ranks together. */
void trace_write(const char *path);

#endif
