/* Batches of unequal lengths: ht_dispatch says under which strategy a batch is trained, and to
 * which row each of its sequences goes.
 *
 * A strategy has rows, and reads each so far as its pipeline does. It holds a batch when the
 * longest sequences find room in the longest rows. A step takes as long under a strategy whatever
 * the rows hold, so of those that hold a batch the fastest is best: by the steps that were
 * measured, and before there are any by tokens a device. Going to another costs a switch; the
 * program goes there when what it has lost since by staying is as much. The next batch is planned
 * by a thread while the current one trains.
 */
#ifndef SESSION_CONTROL_DISPATCH_H
#define SESSION_CONTROL_DISPATCH_H

#include "session/core/session.h"

/* Notes how long a step of a program took. */
void dispatch_note(const ht_program *program, double seconds);
void dispatch_close(ht_session *session);

#endif
