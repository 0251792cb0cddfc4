/* HETU_NAN: the run ends at the first operator that makes a NaN or an infinity. */
#ifndef SESSION_FINITE_H
#define SESSION_FINITE_H

#include "session/window.h"

/* Ends the program when what a call has made has an element that is no finite number: the message names the operator, its place in the
 * source, scope and layer, the step, the element and the rank. */
void finite_check(const ht_called *call, int64_t step, const WindowTensor *made);

#endif
