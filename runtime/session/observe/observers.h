/* The observers of a run: HETU_NAN, HETU_PROFILE and HETU_TRACE. */
#pragma once

#include "session/observe/hooks.h"

/* HETU_NAN: ends the run at the first operator that makes a NaN or an infinity. */

/* Ends the program when a call has made a NaN, or an infinity from finite operands. An operator
 * with an infinite attribute, such as a mask, may make infinities. The message has the operator,
 * its place in the source, scope, layer, step, element and rank. */
void finite_check(const HookCall *call, int64_t step);

/* HETU_PROFILE: time by operator and by layer; measured rates of matrix products and copies. */

/* Add the time of one run of a call, or other time of a stream. */
void profile_call(const ht_called *call, const ht_whose *whose, double seconds);
void profile_other(ht_stream_kind stream, double seconds);

/* Prints the tables on rank 0's standard error, after all ranks have measured the machine's rates
 * at the same time. All ranks call it together. */
void profile_print(void);

/* HETU_TRACE: writes the timelines of all ranks to one file in Chrome's trace format
 * (hetu/trace.h), which Perfetto opens.
 *
 * Times are microseconds since the first event, on rank 0's clock. Ranks of one host share a clock.
 * The clocks of other hosts are compared with rank 0's when the session opens and closes. */

/* Ends the program if the file cannot be written. */
void trace_check(const char *path);

/* Compares the clocks. All ranks call it together, before the first event. */
void trace_align(void);

/* Writes the file on rank 0; `path` is NULL on other ranks. All ranks call it together. */
void trace_write(const char *path);
