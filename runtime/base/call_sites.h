/* Places in the source of a model that runs as plain C: where its operators are called. A place is
 * found from the addresses of the callers by addr2line, which comes with the C compiler, and so has
 * a line where the model was compiled with -g; else it is the function's name. */
#ifndef BASE_CALL_SITES_H
#define BASE_CALL_SITES_H

#include <hetu/rt.h>

/* Notes who calls the library at this moment: call->at is that place after call_sites_find; or the
 * place where that function is called, for `inner`. `call` lives as long as the process. */
void call_sites_note(ht_called *call, bool inner);

/* `call` is where another is, of which call_sites_note has heard. */
void call_sites_like(ht_called *call, const ht_called *other);

/* Finds the places that were noted and are not found yet. */
void call_sites_find(void);

#endif
