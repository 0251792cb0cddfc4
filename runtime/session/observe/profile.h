/* HETU_PROFILE: where the time of a run went, by operator and by layer, beside what the machine
 * does of products and copies. */
#ifndef SESSION_OBSERVE_PROFILE_H
#define SESSION_OBSERVE_PROFILE_H

#include <hetu/rt.h>
#include <hetu/trace.h>

/* A call took so many seconds; so did something else of a stream. */
void profile_call(const ht_called *call, const ht_whose *whose, double seconds);
void profile_other(ht_stream_kind stream, double seconds);

/* Prints the tables on rank 0's standard error; all ranks together. What the machine does is
 * measured here, on all ranks at once. */
void profile_print(void);

#endif
