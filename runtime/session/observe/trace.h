/* HETU_TRACE: the timelines of all ranks in one file of Chrome's format (hetu/trace.h), which
 * Perfetto opens.
 *
 * Times are those of rank 0's clock, in microseconds from the first event on. Ranks that see the
 * same clock, as those of a host do, need nothing for that; the clocks of others are compared with
 * rank 0's when the session opens and when it closes.
 */
#ifndef SESSION_OBSERVE_TRACE_H
#define SESSION_OBSERVE_TRACE_H

/* Ends the program when the file cannot be written. */
void trace_check(const char *path);

/* Compares clocks; all ranks together, before there are events. */
void trace_align(void);

/* Writes the file on rank 0, which knows its name; all ranks together. */
void trace_write(const char *path);

#endif
