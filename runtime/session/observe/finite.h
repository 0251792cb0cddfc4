/* HETU_NAN: the run ends at the first operator that makes a NaN or an infinity. */
#ifndef SESSION_OBSERVE_FINITE_H
#define SESSION_OBSERVE_FINITE_H

#include "session/observe/hooks.h"

/* Ends the program when a call has made a NaN, or an infinity out of finite numbers: none of what
 * it has read is infinite, nor are its own numbers, as those of masks are. The message names the
 * operator, its place in the source, scope and layer, the step, the element and the rank. */
void finite_check(const HookCall *call, int64_t step);

#endif
