/* What a running program can say of the calls of its parts (ht_called): source line, scope, layer,
 * operator, what the call makes, and what that costs by the operator's rule. The windows that
 * HETU_TRACE, HETU_PROFILE and HETU_NAN open read these tables, and nothing else does.
 */
#ifndef EMIT_PROGRAM_CALL_NOTES_H
#define EMIT_PROGRAM_CALL_NOTES_H

#include "emit/program/calls.h"

/* The notes on a list of calls, as rows of the tables `calls` and `made`. */
Notes notes_of(const RoleWriter *writer, const Calls *calls);

#endif
