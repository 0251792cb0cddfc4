/* Call sites: finds where a model that runs as plain C calls its operators.
 *
 *     ht_linear in model.c, line 42, compiled with -g      ->  "model.c:42"
 *     the same without -g, in function mlp                 ->  "mlp()"
 *
 * addr2line, which comes with the C compiler, translates the return addresses on the stack. */
#pragma once

#include <hetu/rt.h>

/* Records the callers of the library at this moment. call_sites_find sets call->at to the innermost
 * caller, or (`inner`) to the caller of that caller. `call` lives as long as the process. */
void call_sites_note(ht_called *call, bool inner);

/* Makes call_sites_find give `call` the location of `other`, an earlier recorded call. */
void call_sites_like(ht_called *call, const ht_called *other);

/* Finds the locations of all recorded calls that have none yet. */
void call_sites_find(void);
