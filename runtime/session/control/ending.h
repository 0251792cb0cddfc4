/* Programs that are told to end by a signal (base/signals.h), on rank 0.
 *
 * A main that calls ht_told_to_end ends by itself. Of one that does not, but has saved or gone on
 * from a checkpoint, the session saves once more, between two steps, as ht_save did last, and ends
 * the program with the status 128 + signal.
 */
#ifndef SESSION_CONTROL_ENDING_H
#define SESSION_CONTROL_ENDING_H

#include "session/core/session.h"

/* From now on a signal does not end the ranks at once; on all of them. */
void ending_heed(ht_session *session);

/* Notes how main has saved, or what it has told ht_remember at the same place; and what it has gone
 * on from. */
void ending_saved(ht_session *session, const char *folder, const ht_noted *noted);
void ending_remembered(ht_session *session, const char *folder, const ht_noted *noted);
void ending_resumed(ht_session *session, const char *folder);

/* In front of a step or a run: ends the program if that is due. */
void ending_turn(const ht_program *next);

/* At the end of a session. */
void ending_close(ht_session *session);

#endif
